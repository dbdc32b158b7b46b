/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Weir on FreeRTOS: packets wait for workers that are as urgent as their receivers.
 *
 * The interrupt of a network card reads the first bytes of a frame, and asks for whom it is (demux,
 * lee2010 §4). A frame whose class has room waits in the class's lane; any other is dropped before
 * anything else is done for it. Each class has buffers of its own and a worker, a task of its
 * receivers' urgency, which hands its frames to the stack (defer, zhang2006 §3.2). What interrupt
 * and worker take for a frame is charged to its receiver (account, zhang2006 §3.1).
 *
 *     static const weir_freertos_driver_t card = {
 *         .count = card_count, .head = card_head, .rest = card_rest, .acknowledge = card_acknowledge};
 *
 *     void card_handler(void)
 *     {
 *         static weir_work_t work;
 *         BaseType_t woken = pdFALSE;
 *         weir_freertos_take(&net, &card, &work, 24, &woken); // the `max_work` of the system file
 *         portYIELD_FROM_ISR(woken);
 *     }
 *
 * One card, one processor. The interrupt may call FreeRTOS; the functions say from where they may
 * be called. How often the interrupt comes is limit's business (ports/cortex-m), and how much it
 * does each time is work's (core/include/weir/work.h): a frame is a unit, and more if it is long.
 */
#ifndef WEIR_FREERTOS_H
#define WEIR_FREERTOS_H

#include "FreeRTOS.h"
#include "task.h"

#include "weir/account.h"
#include "weir/demux.h"
#include "weir/moderate.h"
#include "weir/work.h"

#if WEIR_TICK_BITS != 32
#error "compile with -DWEIR_TICK_BITS=32: the clock has 32 bits"
#endif

/**
 * The clock that costs are counted with: 32 bits that count up and wrap. A cost is in its units.
 * Every file of a program has the same.
 */
#ifndef WEIR_FREERTOS_CLOCK
#error "define WEIR_FREERTOS_CLOCK, such as -DWEIR_FREERTOS_CLOCK='(*(volatile uint32_t *) 0xe0001004)', a Cortex-M's DWT_CYCCNT"
#endif

/**
 * Bytes of a buffer, in whole words: the longest frame (1,514), and the checksum that a card hands
 * over with it.
 */
#ifndef WEIR_FREERTOS_LONGEST
#define WEIR_FREERTOS_LONGEST 1520u
#endif

/**
 * Bytes of a frame that demux wants to see, in whole words, at least 60: the shortest frame. Behind
 * them lie the ports of hardly any frame: those behind a tag and IPv6 need 64, behind options of
 * IPv4 up to 80.
 */
#ifndef WEIR_FREERTOS_HEAD
#define WEIR_FREERTOS_HEAD 60u
#endif
_Static_assert(WEIR_FREERTOS_HEAD >= 60u && WEIR_FREERTOS_HEAD % 4u == 0, "WEIR_FREERTOS_HEAD is in whole words, and at least 60");

/** So many bytes of a frame behind its head are as much work as a frame. */
#ifndef WEIR_FREERTOS_UNIT
#define WEIR_FREERTOS_UNIT 64u
#endif
_Static_assert(WEIR_FREERTOS_UNIT > 0u, "WEIR_FREERTOS_UNIT is at least 1");

/**
 * Which of a task's thread-local pointers is this port's, below
 * configNUM_THREAD_LOCAL_STORAGE_POINTERS. Nobody else may set it, in any task.
 */
#ifndef WEIR_FREERTOS_POINTER
#define WEIR_FREERTOS_POINTER 0
#endif
_Static_assert(WEIR_FREERTOS_POINTER < configNUM_THREAD_LOCAL_STORAGE_POINTERS,
               "WEIR_FREERTOS_POINTER is below configNUM_THREAD_LOCAL_STORAGE_POINTERS");

/** Bytes of a frame's buffer that the stack may use, such as for its own view of the frame. */
#ifndef WEIR_FREERTOS_STACK_BYTES
#define WEIR_FREERTOS_STACK_BYTES 32u
#endif

/** What becomes of a frame that is not given to the stack. */
typedef enum {
    WEIR_FREERTOS_NO_RECEIVER = 0, /**< nobody is bound, or it is a fragment; and such frames are dropped */
    WEIR_FREERTOS_MALFORMED = 1,   /**< its headers are cut off or contradict themselves, or it is too long */
    WEIR_FREERTOS_LANE_FULL = 2,   /**< all buffers of its class, or of its receiver's quota, are in use */
    WEIR_FREERTOS_OVER_BUDGET = 3, /**< as many as its receiver may have came before */
    WEIR_FREERTOS_TOO_DEEP =
        4, /**< its port is not among the first bytes, or behind more headers than demux follows; and orphans are dropped */
    WEIR_FREERTOS_REASONS = 5
} weir_freertos_reason_t;

/** A frame in a buffer of its class. */
typedef struct weir_freertos_frame {
    struct weir_freertos_frame *next;
    struct weir_freertos_net *net;
    uint32_t spent; /**< what was done for it until now */
    uint16_t length;
    uint16_t receiver; /**< its index, or WEIR_DEMUX_NO_LINK */
    uint8_t which;     /**< class */
    uint32_t stack[WEIR_FREERTOS_STACK_BYTES / 4u];
    uint32_t words[WEIR_FREERTOS_LONGEST / 4u]; /**< the bytes, in the order in which they came */
} weir_freertos_frame_t;

/** A class of receivers: how urgent its worker is, and its buffers. */
typedef struct {
    UBaseType_t urgency;           /**< FreeRTOS's; rises from class to class */
    weir_freertos_frame_t *frames; /**< so many of its frames can be in the system at once */
    uint16_t count;
} weir_freertos_class_t;

/** Who receives: a task, named by its place in the array of all receivers. */
typedef struct {
    weir_account_total_t account; /**< what its frames took, in units of the clock, and how many they were */
    uint32_t lane_full;           /**< those of them that were dropped: no buffer */
    uint32_t over_budget;         /**< and those beyond the budget; the others were its worker's */
    uint32_t budget;              /**< frames for each tick of the budget; 0: as many as come */
    uint32_t left;                /**< of it, until the next */
    uint16_t quota;               /**< buffers of its class that it may use; UINT16_MAX: all of them */
    uint16_t held;                /**< of them, now */
} weir_freertos_receiver_t;

/** What waits for a class's worker. */
typedef struct {
    struct weir_freertos_net *net;
    weir_freertos_frame_t *free, *first, *last;
    TaskHandle_t worker;
    uint32_t spent; /**< while it is busy: what was done for its frame until now */
    bool is_busy;   /**< its worker handles a frame */
} weir_freertos_lane_t;

/** What hands a frame to the stack. It returns it by weir_freertos_release(), at once or later. */
typedef void weir_freertos_input_t(void *context, weir_freertos_frame_t *frame);

/** How weir_freertos_start() sets up a card. */
typedef struct {
    const weir_freertos_class_t *classes;
    uint8_t count;        /**< of classes: 1 to WEIR_CLASSES */
    uint8_t common;       /**< the class of what has no port: ARP, ICMP and the like */
    uint8_t orphans;      /**< the class of ports that nobody has, or WEIR_DEMUX_DROP */
    uint8_t fragments;    /**< the class of fragments, or WEIR_DEMUX_DROP */
    uint16_t slots;       /**< of the table: a power of two, at least 4 */
    uint16_t bindings;    /**< the most that can exist at once */
    uint16_t receivers;   /**< the most */
    uint16_t stack_words; /**< of each worker */
    uint32_t gather;      /**< moderate: how long frames wait to share an interrupt, in units of the clock; 0: not at all */
    uint32_t overhead;    /**< what an interrupt takes before and after weir_freertos_take(), in units of the clock */
    weir_freertos_input_t *input;
    void *context;
} weir_freertos_config_t;

/** A card's receivers. Its memory comes from FreeRTOS' heap, at the start only. */
typedef struct weir_freertos_net {
    weir_demux_t demux;
    weir_demux_slot_t *slots;
    weir_demux_link_t *links;
    weir_freertos_receiver_t *receivers;
    weir_freertos_lane_t *lanes;
    weir_freertos_config_t config;
    weir_moderate_t card;                    /**< moderate: what waits in the card is its one packet */
    weir_account_total_t all;                /**< frames, and what they took */
    weir_account_total_t nobody;             /**< those of no receiver, and what they took */
    uint32_t dropped[WEIR_FREERTOS_REASONS]; /**< all, by reason */
    uint32_t *charged;                       /**< what pays for the time from `since` on; NULL: nobody */
    uint32_t *interrupted;                   /**< and did before the interrupt */
    uint32_t since;
    uint32_t in_interrupt;         /**< what the interrupt has taken for the present frame */
    weir_account_total_t *refused; /**< whose the frame was that was not admitted last */
} weir_freertos_net_t;

/** Why a call is refused. Nothing is changed then, but a card that does not start is empty. */
typedef enum {
    WEIR_FREERTOS_OK = 0,
    WEIR_FREERTOS_BAD_CLASSES = 1,  /**< none, more than WEIR_CLASSES, without a buffer, or their urgencies do not rise */
    WEIR_FREERTOS_BAD_TABLE = 2,    /**< weir_demux_start() refuses the sizes or the classes of orphans and fragments */
    WEIR_FREERTOS_NO_MEMORY = 3,    /**< FreeRTOS' heap is too small */
    WEIR_FREERTOS_BAD_URGENCY = 4,  /**< no class has this urgency */
    WEIR_FREERTOS_BAD_KEY = 5,      /**< port 0, or a protocol other than UDP and TCP */
    WEIR_FREERTOS_BAD_RECEIVER = 6, /**< not below the number of receivers */
    WEIR_FREERTOS_FULL = 7,         /**< the table has no room for another binding */
    WEIR_FREERTOS_NOT_BOUND = 8,    /**< that receiver does not have that port */
    WEIR_FREERTOS_BAD_GATHER = 9    /**< half a wrap of the clock, or more */
} weir_freertos_error_t;

/** Starts a card's receivers, before the scheduler or in a task. */
weir_freertos_error_t weir_freertos_start(weir_freertos_net_t *net, const weir_freertos_config_t *config);

/**
 * From now on frames for this port (17 is UDP, 6 is TCP) wait for the worker of this urgency, and
 * what they take is charged to `receiver`, an index that the caller chooses. Call it beside the
 * stack's bind(). A receiver has one urgency, the latest one given. In a task.
 */
weir_freertos_error_t weir_freertos_bind(weir_freertos_net_t *net, uint8_t protocol, uint16_t port, uint16_t receiver, UBaseType_t urgency);

/** The receiver closes the port. Frames that wait for it still go to the stack. In a task. */
weir_freertos_error_t weir_freertos_unbind(weir_freertos_net_t *net, uint8_t protocol, uint16_t port, uint16_t receiver);

/**
 * The receiver gets at most so many frames between two calls of weir_freertos_refill(), from this
 * call on; 0: as many as come. One that its class has no buffer for counts. In a task.
 */
weir_freertos_error_t weir_freertos_set_budget(weir_freertos_net_t *net, uint16_t receiver, uint32_t frames);

/**
 * At most so many buffers of its class hold frames of the receiver at once, from this call on; 0:
 * as many as there are. So a receiver whose frames the stack keeps does not starve others of its
 * class. In a task.
 */
weir_freertos_error_t weir_freertos_set_quota(weir_freertos_net_t *net, uint16_t receiver, uint16_t frames);

/** Begins the next period of all budgets. In an interrupt that the card's cannot interrupt, or a
 * critical section. */
void weir_freertos_refill(weir_freertos_net_t *net);

/**
 * Has the time of waiting frames passed? Then the card's interrupt is to come, by the interrupt
 * controller's request, though it is off at the card. In FreeRTOS's tick.
 */
WEIR_INLINE bool weir_freertos_wait_ends(weir_freertos_net_t *net)
{
    return weir_moderate_expired_with(&net->card.state, &net->card.config, WEIR_FREERTOS_CLOCK);
}

/* Whoever is charged has had the time until now; from now on `to` has it. */
WEIR_INLINE void weir_freertos_charge(weir_freertos_net_t *net, uint32_t *to)
{
    uint32_t now = WEIR_FREERTOS_CLOCK;
    if (net->charged != NULL) {
        *net->charged += now - net->since;
    }
    net->since = now;
    net->charged = to;
}

/** What a driver says of the frame that it has begun. */
typedef struct {
    uint16_t length; /**< bytes, without the checksum; of a broken frame those that the card has of it */
    bool is_broken;  /**< the card says so, or the frame is too long for a buffer: nobody looks at it */
} weir_freertos_head_t;

/**
 * The driver of a card. Its functions are called in the card's interrupt, by weir_freertos_take()
 * alone. If the driver is a constant in the file of the interrupt's handler, the compiler sees the
 * functions and calls none of them through a pointer.
 */
typedef struct {
    /** May frames be taken now? For a limiter that is called here. NULL: always. */
    bool (*is_let_in)(void);
    /** How many frames wait, at least; 0: none. */
    uint32_t (*count)(void);
    /** Begins the next frame. Reads its first WEIR_FREERTOS_HEAD bytes into `words`, or all of it
     * if it has fewer. Reads nothing of a broken one. */
    weir_freertos_head_t (*head)(uint32_t *words);
    /** Reads the rest of the frame that `head` has begun, behind its first WEIR_FREERTOS_HEAD
     * bytes, into `words`. NULL: throws the rest away, and of a broken frame all. */
    void (*rest)(weir_freertos_head_t frame, uint32_t *words);
    /** No frame waits: ends the request of the card, if the card keeps one. */
    void (*acknowledge)(void);
    /** A frame came before acknowledge(), which may have ended its request, too: makes the
     * interrupt come again. NULL: a card whose request lasts as long as a frame waits. */
    void (*request)(void);
    /** Switches the card's interrupt on or off. NULL: `gather` of the configuration is 0. */
    void (*enable)(bool is_on);
} weir_freertos_driver_t;

/* The parts of weir_freertos_take(), in freertos.c. */
weir_freertos_frame_t *weir_freertos_admit(weir_freertos_net_t *net, const uint8_t *head, uint16_t length);
void weir_freertos_defer(weir_freertos_net_t *net, weir_freertos_frame_t *frame, BaseType_t *woken);

/* What the interrupt has taken since the last frame is the present one's. */
WEIR_INLINE uint32_t weir_freertos_take_spent(weir_freertos_net_t *net)
{
    uint32_t now = WEIR_FREERTOS_CLOCK;
    uint32_t spent = net->in_interrupt + (now - net->since);
    net->since = now;
    net->in_interrupt = 0;
    return spent;
}

/* A frame that was not admitted is skipped: what that took is its receiver's. */
WEIR_INLINE void weir_freertos_discard(weir_freertos_net_t *net)
{
    weir_account_count(&net->all, net->refused, weir_freertos_take_spent(net));
}

/* The units of work of a frame of `length` bytes beyond its first. */
WEIR_INLINE uint16_t weir_freertos_further_work(uint16_t length)
{
    return length > WEIR_FREERTOS_HEAD ? (uint16_t) ((length - WEIR_FREERTOS_HEAD) / WEIR_FREERTOS_UNIT) : 0;
}

/* Takes the next frame, whose first unit of work is granted. A frame may need more units than are
 * left: it is read to its end, and no other is taken after it. */
WEIR_INLINE void weir_freertos_take_frame(weir_freertos_net_t *net, const weir_freertos_driver_t *card, weir_work_t *work,
                                          BaseType_t *woken)
{
    uint32_t head[WEIR_FREERTOS_HEAD / 4u];
    weir_freertos_head_t next = card->head(head);
    (void) weir_work_take_some(work, weir_freertos_further_work(next.length));
    if (next.is_broken) {
        card->rest(next, NULL);
        net->dropped[WEIR_FREERTOS_MALFORMED]++;
        net->refused = &net->nobody;
        weir_freertos_discard(net);
        return;
    }
    weir_freertos_frame_t *frame = weir_freertos_admit(net, (const uint8_t *) head, next.length);
    if (frame == NULL) {
        card->rest(next, NULL);
        weir_freertos_discard(net);
        return;
    }
    uint32_t seen = next.length < WEIR_FREERTOS_HEAD ? (next.length + 3u) / 4u : WEIR_FREERTOS_HEAD / 4u;
    for (uint32_t at = 0; at < seen; at++) {
        frame->words[at] = head[at];
    }
    card->rest(next, frame->words + WEIR_FREERTOS_HEAD / 4u);
    weir_freertos_defer(net, frame, woken);
}

/* Takes the frames that wait, and those that come meanwhile, as far as the work is granted. */
WEIR_INLINE void weir_freertos_take_frames(weir_freertos_net_t *net, const weir_freertos_driver_t *card, weir_work_t *work, uint16_t most,
                                           BaseType_t *woken)
{
    weir_work_begin(work, most);
    uint32_t waiting = card->count();
    while (waiting > 0 && weir_work_take(work)) {
        weir_freertos_take_frame(net, card, work, woken);
        waiting--;
        if (waiting == 0) {
            waiting = card->count();
        }
    }
}

/* Ends the card's request if no frame is left. */
WEIR_INLINE bool weir_freertos_is_left(const weir_freertos_driver_t *card)
{
    if (card->count() != 0) {
        return true;
    }
    card->acknowledge();
    if (card->count() == 0) {
        return false;
    }
    if (card->request != NULL) {
        card->request();
    }
    return true;
}

/* moderate (behnke2022 §2.2): do the card's frames wait for others? */
WEIR_INLINE bool weir_freertos_frames_wait(weir_freertos_net_t *net)
{
    return net->card.config.absolute != 0 && net->card.state.phase != WEIR_MODERATE_RAISED &&
           !weir_moderate_arrive(&net->card, WEIR_FREERTOS_CLOCK).interrupt;
}

/* moderate: the frames were taken, but for those that are left if `is_left`, which wait for others
 * or not: is the card's interrupt to be on again? */
WEIR_INLINE bool weir_freertos_frames_taken(weir_freertos_net_t *net, bool is_left)
{
    uint32_t now = WEIR_FREERTOS_CLOCK;
    weir_moderate_take(&net->card, 1, now);
    return !is_left || weir_moderate_arrive(&net->card, now).interrupt;
}

/**
 * The card interrupts: takes its frames, `most` units of work at most. A frame is a unit, and each
 * WEIR_FREERTOS_UNIT bytes behind its head another; the last frame may need more than is left.
 *
 * Each frame is read into a buffer of its class, for its worker, or thrown away if it has none; a
 * reason is counted then. What the interrupt takes is charged to the receivers of its frames.
 * Frames that are left request again. `*woken` is set to pdTRUE if a worker is to run, for
 * portYIELD_FROM_ISR(). In the card's interrupt, which may call FreeRTOS.
 */
WEIR_INLINE void weir_freertos_take(weir_freertos_net_t *net, const weir_freertos_driver_t *card, weir_work_t *work, uint16_t most,
                                    BaseType_t *woken)
{
    net->interrupted = net->charged;
    weir_freertos_charge(net, &net->in_interrupt);
    net->in_interrupt += net->config.overhead;
    if (card->is_let_in == NULL || card->is_let_in()) {
        if (card->enable != NULL && weir_freertos_frames_wait(net)) {
            card->enable(false);
        } else {
            weir_freertos_take_frames(net, card, work, most, woken);
            bool is_left = weir_freertos_is_left(card);
            if (card->enable != NULL && net->card.config.absolute != 0 && weir_freertos_frames_taken(net, is_left)) {
                card->enable(true);
            }
        }
    }
    weir_freertos_charge(net, net->interrupted);
}

/** The stack no longer needs a frame: its buffer is its class's again. In a task. */
void weir_freertos_release(weir_freertos_frame_t *frame);

/** How many requests a task has answered in FreeRTOS's present tick. All zero at first. */
typedef struct {
    TickType_t tick;
    uint32_t answered;
} weir_freertos_pace_t;

/**
 * A task is about to answer a request: it waits for the next tick if it has answered `most` (at
 * least 1) in this one. So clients that each ask again as soon as they have an answer take at most
 * `most` answers in a tick from less urgent tasks, and nothing of theirs is dropped. What the stack
 * itself answers, such as requests for connections, has no such pace: a budget is a bound on it.
 * A client that sends several requests ahead fills the receiver's buffers meanwhile, and has to
 * send again what finds none. In the receiver's task; it needs INCLUDE_vTaskDelay 1.
 */
WEIR_INLINE void weir_freertos_keep_pace(weir_freertos_pace_t *pace, uint32_t most)
{
    if (pace->answered >= most && pace->tick == xTaskGetTickCount()) {
        vTaskDelay(1);
    }
    TickType_t now = xTaskGetTickCount();
    if (pace->tick != now) {
        pace->tick = now;
        pace->answered = 0;
    }
    pace->answered++;
}

/**
 * Another task runs. For FreeRTOSConfig.h, where a thread-local pointer of tasks, by default the
 * first, is left to this port:
 *
 *     #define traceTASK_SWITCHED_IN() weir_freertos_switched(pxCurrentTCB->pvThreadLocalStoragePointers[0])
 *
 * Without it the time that a worker is preempted is charged to the frame that it handles.
 */
void weir_freertos_switched(void *lane);

#endif
