/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Weir on FreeRTOS: received packets wait for workers, tasks that are as urgent as the packets'
 * receivers.
 *
 * The interrupt of a network card reads the first bytes of a frame and determines the receiver
 * (demux, lee2010 §4). The frame then waits in the lane of the receiver's class. If the lane is
 * full, the frame is dropped before any other work is done for it. Each class has its own buffers
 * and a worker. The worker is a task with the urgency of the class, and hands the frames to the
 * stack (defer, zhang2006 §3.2). The time that the interrupt and the worker spend on a frame is
 * charged to its receiver (account, zhang2006 §3.1).
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
 * The port supports one card and one processor. The card's interrupt may call FreeRTOS. The comment
 * of each function says from where it may be called. How often the interrupt comes is limited by
 * `limit` (ports/cortex-m), and how much each interrupt does by `work` (core/include/weir/work.h).
 * The unit of work is a frame; a long frame is several units.
 */
#ifndef WEIR_FREERTOS_H
#define WEIR_FREERTOS_H

#include <assert.h>

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
 * The clock that measures costs: 32 bits that count up and wrap. Costs are in units of this clock.
 * All files of a program must use the same clock.
 */
#ifndef WEIR_FREERTOS_CLOCK
#error "define WEIR_FREERTOS_CLOCK, such as -DWEIR_FREERTOS_CLOCK='(*(volatile uint32_t *) 0xe0001004)', a Cortex-M's DWT_CYCCNT"
#endif

/**
 * The size of a buffer in bytes, a multiple of 4. It holds the longest frame (1,514 bytes) and the
 * checksum that a card delivers with it.
 */
#ifndef WEIR_FREERTOS_LONGEST
#define WEIR_FREERTOS_LONGEST 1520u
#endif

/**
 * The number of bytes of a frame that demux reads, a multiple of 4 and at least 60, the length of
 * the shortest frame. In nearly all frames the ports are within 60 bytes. Ports behind a tag and
 * IPv6 need 64, and ports behind IPv4 options up to 80.
 */
#ifndef WEIR_FREERTOS_HEAD
#define WEIR_FREERTOS_HEAD 60u
#endif
static_assert(WEIR_FREERTOS_HEAD >= 60u && WEIR_FREERTOS_HEAD % 4u == 0, "WEIR_FREERTOS_HEAD is in whole words, and at least 60");

/** The number of bytes behind a frame's head that count as another unit of work. */
#ifndef WEIR_FREERTOS_UNIT
#define WEIR_FREERTOS_UNIT 64u
#endif
static_assert(WEIR_FREERTOS_UNIT > 0u, "WEIR_FREERTOS_UNIT is at least 1");

/**
 * The index of the thread-local pointer that this port uses, below
 * configNUM_THREAD_LOCAL_STORAGE_POINTERS. No other code may set this pointer in any task.
 */
#ifndef WEIR_FREERTOS_POINTER
#define WEIR_FREERTOS_POINTER 0
#endif
static_assert(WEIR_FREERTOS_POINTER < configNUM_THREAD_LOCAL_STORAGE_POINTERS,
              "WEIR_FREERTOS_POINTER is below configNUM_THREAD_LOCAL_STORAGE_POINTERS");

/** The number of bytes in each buffer that the stack may use, for example for its own descriptor of
 * the frame. */
#ifndef WEIR_FREERTOS_STACK_BYTES
#define WEIR_FREERTOS_STACK_BYTES 32u
#endif

/** The reason why a frame was not given to the stack. Each reason has a counter. */
typedef enum {
    WEIR_FREERTOS_NO_RECEIVER = 0, /**< no receiver has bound its port, or it is a fragment, and such frames are dropped */
    WEIR_FREERTOS_MALFORMED = 1,   /**< its headers are truncated or inconsistent, or the frame is too long */
    WEIR_FREERTOS_LANE_FULL = 2,   /**< all buffers of its class, or of its receiver's quota, are in use */
    WEIR_FREERTOS_OVER_BUDGET = 3, /**< its receiver's budget was used up */
    WEIR_FREERTOS_TOO_DEEP = 4,    /**< its port is beyond the bytes or headers that demux reads, and orphans are dropped */
    WEIR_FREERTOS_REASONS = 5
} weir_freertos_reason_t;

/** A frame in a buffer of its class. */
typedef struct weir_freertos_frame {
    struct weir_freertos_frame *next;
    struct weir_freertos_net *net;
    uint32_t spent; /**< its cost until now, in units of the clock */
    uint16_t length;
    uint16_t receiver; /**< the receiver's index, or WEIR_DEMUX_NO_LINK */
    uint8_t which;     /**< the frame's class */
    uint32_t stack[WEIR_FREERTOS_STACK_BYTES / 4u];
    uint32_t words[WEIR_FREERTOS_LONGEST / 4u]; /**< the frame's bytes in the order of arrival */
} weir_freertos_frame_t;

/** A class of receivers: the urgency of its worker, and its buffers. */
typedef struct {
    UBaseType_t urgency;           /**< a priority of FreeRTOS; it must rise from class to class */
    weir_freertos_frame_t *frames; /**< the class's buffers */
    uint16_t count;                /**< number of these buffers: so many of its frames can be in the system at once */
} weir_freertos_class_t;

/** A receiver: a task, identified by its index in the array of all receivers. */
typedef struct {
    weir_account_total_t account; /**< the cost of its frames in units of the clock, and their number */
    uint32_t lane_full;           /**< how many of its frames were dropped because no buffer was free */
    uint32_t over_budget;         /**< how many of its frames were dropped because the budget was used up; the worker handled the others */
    uint32_t budget;              /**< frames per period of the budgets; 0 means no limit */
    uint32_t left;                /**< the rest of the budget in the current period */
    uint16_t quota;               /**< how many buffers of its class it may use; UINT16_MAX means all */
    uint16_t held;                /**< how many buffers of its class it uses now */
} weir_freertos_receiver_t;

/** The lane of a class: the frames that wait for the class's worker, and the free buffers. */
typedef struct {
    struct weir_freertos_net *net;
    weir_freertos_frame_t *free, *first, *last;
    TaskHandle_t worker;
    uint32_t spent; /**< while the worker is busy: the cost of its frame until now */
    bool is_busy;   /**< whether the worker handles a frame */
} weir_freertos_lane_t;

/** A function that hands a frame to the stack. The stack returns the frame by
 * weir_freertos_release(), at once or later. */
typedef void weir_freertos_input_t(void *context, weir_freertos_frame_t *frame);

/** The configuration of a card, for weir_freertos_start(). */
typedef struct {
    const weir_freertos_class_t *classes;
    uint8_t count;        /**< the number of classes, 1 to WEIR_CLASSES */
    uint8_t common;       /**< the class of frames without a port, such as ARP and ICMP */
    uint8_t orphans;      /**< the class of frames whose port nobody has bound, or WEIR_DEMUX_DROP */
    uint8_t fragments;    /**< the class of fragments, or WEIR_DEMUX_DROP */
    uint16_t slots;       /**< the slots of the demux table: a power of two, at least 4 */
    uint16_t bindings;    /**< the largest number of bindings at the same time */
    uint16_t receivers;   /**< the number of receivers */
    uint16_t stack_words; /**< the stack size of each worker, in words */
    uint32_t gather;      /**< moderate: how long frames wait to share an interrupt, in units of the clock; 0 means that they do not wait */
    uint32_t overhead;    /**< the cost of an interrupt before and after weir_freertos_take(), in units of the clock */
    weir_freertos_input_t *input;
    void *context;
} weir_freertos_config_t;

/** The state of a card and its receivers. The memory comes from FreeRTOS's heap, during
 * weir_freertos_start() only. */
typedef struct weir_freertos_net {
    weir_demux_t demux;
    weir_demux_slot_t *slots;
    weir_demux_link_t *links;
    weir_freertos_receiver_t *receivers;
    weir_freertos_lane_t *lanes;
    weir_freertos_config_t config;
    weir_moderate_t card;                    /**< moderate: all frames that wait in the card count as one packet */
    weir_account_total_t all;                /**< all frames and their cost */
    weir_account_total_t nobody;             /**< the frames that belong to no receiver, and their cost */
    uint32_t dropped[WEIR_FREERTOS_REASONS]; /**< dropped frames by reason */
    uint32_t *charged;                       /**< the cost to which the time from `since` on is added; NULL means none */
    uint32_t *interrupted;                   /**< the value of `charged` before the current interrupt */
    uint32_t since;
    uint32_t in_interrupt;         /**< the time that the interrupt has spent on the current frame */
    weir_account_total_t *refused; /**< the total of the receiver whose frame was refused last */
} weir_freertos_net_t;

/** The reason why a call was rejected. A rejected call changes nothing, except that a card that
 * fails to start is left empty. */
typedef enum {
    WEIR_FREERTOS_OK = 0,
    WEIR_FREERTOS_BAD_CLASSES = 1,  /**< there are none or more than WEIR_CLASSES, one has no buffer, or the urgencies do not rise */
    WEIR_FREERTOS_BAD_TABLE = 2,    /**< weir_demux_start() rejects the sizes, or the class of orphans or fragments */
    WEIR_FREERTOS_NO_MEMORY = 3,    /**< FreeRTOS' heap is too small */
    WEIR_FREERTOS_BAD_URGENCY = 4,  /**< no class has this urgency */
    WEIR_FREERTOS_BAD_KEY = 5,      /**< port 0, or a protocol other than UDP and TCP */
    WEIR_FREERTOS_BAD_RECEIVER = 6, /**< the index is not below the number of receivers */
    WEIR_FREERTOS_FULL = 7,         /**< the table has no room for another binding */
    WEIR_FREERTOS_NOT_BOUND = 8,    /**< the receiver has not bound this port */
    WEIR_FREERTOS_BAD_GATHER = 9    /**< `gather` is half a wrap of the clock or more */
} weir_freertos_error_t;

/** Starts the receivers of a card. Call it before the scheduler starts, or in a task. */
weir_freertos_error_t weir_freertos_start(weir_freertos_net_t *net, const weir_freertos_config_t *config);

/**
 * Binds a port (protocol 17 is UDP, 6 is TCP) to `receiver`, an index that the caller chooses. From
 * then on, frames for this port wait for the worker with this urgency, and their cost is charged to
 * the receiver. Call it together with the stack's bind(). A receiver has a single urgency, the one
 * given last. Call it in a task.
 */
weir_freertos_error_t weir_freertos_bind(weir_freertos_net_t *net, uint8_t protocol, uint16_t port, uint16_t receiver, UBaseType_t urgency);

/** Unbinds the port from the receiver. Frames that already wait still go to the stack. Call it in a
 * task. */
weir_freertos_error_t weir_freertos_unbind(weir_freertos_net_t *net, uint8_t protocol, uint16_t port, uint16_t receiver);

/**
 * Limits the receiver to `frames` frames between two calls of weir_freertos_refill(), from this
 * call on. 0 means no limit. A frame that finds no free buffer counts as well. Call it in a task.
 */
weir_freertos_error_t weir_freertos_set_budget(weir_freertos_net_t *net, uint16_t receiver, uint32_t frames);

/**
 * Limits the number of buffers that hold frames of the receiver at the same time, from this call
 * on. 0 means no limit. With a quota, a receiver whose frames the stack keeps cannot take all
 * buffers from the other receivers of its class. Call it in a task.
 */
weir_freertos_error_t weir_freertos_set_quota(weir_freertos_net_t *net, uint16_t receiver, uint16_t frames);

/** Starts the next period of all budgets. Call it in an interrupt that the card's interrupt cannot
 * preempt, or in a critical section. */
void weir_freertos_refill(weir_freertos_net_t *net);

/**
 * Returns true if the waiting time of gathered frames is over. The caller must then make the card's
 * interrupt pending in the interrupt controller, because the interrupt is off at the card. Call it
 * in FreeRTOS's tick.
 */
WEIR_INLINE bool weir_freertos_wait_ends(weir_freertos_net_t *net)
{
    return weir_moderate_expired_with(&net->card.state, &net->card.config, WEIR_FREERTOS_CLOCK);
}

/* Charges the time until now to the current payer, and makes `to` the payer from now on. */
WEIR_INLINE void weir_freertos_charge(weir_freertos_net_t *net, uint32_t *to)
{
    uint32_t now = WEIR_FREERTOS_CLOCK;
    if (net->charged != NULL) {
        *net->charged += now - net->since;
    }
    net->since = now;
    net->charged = to;
}

/** A driver's description of the frame that it has begun to read. */
typedef struct {
    uint16_t length; /**< bytes without the checksum; for a broken frame, the bytes that the card holds of it */
    bool is_broken;  /**< the card reports an error, or the frame is too long for a buffer; its bytes are not used */
} weir_freertos_head_t;

/**
 * The driver of a card. Only weir_freertos_take() calls its functions, in the card's interrupt. If
 * the driver is a constant in the file of the interrupt's handler, the compiler calls the functions
 * directly instead of through pointers.
 */
typedef struct {
    /** Whether frames may be taken now, according to a limiter that this function calls. A limiter
     * that refuses must request the interrupt again when it opens: with `gather` the card's own
     * request may be off by then. NULL means always. */
    bool (*is_let_in)(void);
    /** Returns the number of waiting frames, or a lower bound that is 0 only if no frame waits. */
    uint32_t (*count)(void);
    /** Begins the next frame. Reads its first WEIR_FREERTOS_HEAD bytes, or the whole frame if it is
     * shorter, into `words`. Reads nothing of a broken frame. */
    weir_freertos_head_t (*head)(uint32_t *words);
    /** Reads the rest of the frame that `head` has begun, from byte WEIR_FREERTOS_HEAD on, into
     * `words`. If `words` is NULL, discards the rest, or all of a broken frame. */
    void (*rest)(weir_freertos_head_t frame, uint32_t *words);
    /** Ends the card's interrupt request, if the card keeps it after the frames are gone. Called
     * when no frame waits. */
    void (*acknowledge)(void);
    /** Makes the interrupt come again. Called if a frame arrived before acknowledge(), which may
     * have ended this frame's request as well. NULL if the card requests as long as a frame
     * waits. */
    void (*request)(void);
    /** Switches the card's interrupt on or off. May be NULL if `gather` of the configuration is
     * 0. */
    void (*enable)(bool is_on);
} weir_freertos_driver_t;

/* The parts of weir_freertos_take(), in freertos.c. */
weir_freertos_frame_t *weir_freertos_admit(weir_freertos_net_t *net, const uint8_t *head, uint16_t length);
void weir_freertos_defer(weir_freertos_net_t *net, weir_freertos_frame_t *frame, BaseType_t *woken);

/* Returns the time that the interrupt has spent since the last frame. This time belongs to the
 * current frame. */
WEIR_INLINE uint32_t weir_freertos_take_spent(weir_freertos_net_t *net)
{
    uint32_t now = WEIR_FREERTOS_CLOCK;
    uint32_t spent = net->in_interrupt + (now - net->since);
    net->since = now;
    net->in_interrupt = 0;
    return spent;
}

/* Charges the time for skipping a frame that was not admitted to the frame's receiver. */
WEIR_INLINE void weir_freertos_discard(weir_freertos_net_t *net)
{
    weir_account_count(&net->all, net->refused, weir_freertos_take_spent(net));
}

/* The units of work of a frame of `length` bytes in addition to its first unit. */
WEIR_INLINE uint16_t weir_freertos_further_work(uint16_t length)
{
    return length > WEIR_FREERTOS_HEAD ? (uint16_t) ((length - WEIR_FREERTOS_HEAD) / WEIR_FREERTOS_UNIT) : 0;
}

/* Takes the next frame, whose first unit of work has been granted. A frame that needs more units
 * than are left is read to its end, and no other frame is taken after it. */
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

/* Takes the waiting frames, and those that arrive in the meantime, as far as work is granted. */
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

/* Returns true if a frame is left. Otherwise ends the card's request. */
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

/* moderate (behnke2022 §2.2): returns whether the card's frames wait for further frames. */
WEIR_INLINE bool weir_freertos_frames_wait(weir_freertos_net_t *net)
{
    return net->card.config.absolute != 0 && net->card.state.phase != WEIR_MODERATE_RAISED &&
           !weir_moderate_arrive(&net->card, WEIR_FREERTOS_CLOCK).interrupt;
}

/* moderate: called after frames were taken; `is_left` tells whether frames are left, which may have
 * to wait for further frames. Returns whether to switch the card's interrupt on again. */
WEIR_INLINE bool weir_freertos_frames_taken(weir_freertos_net_t *net, bool is_left)
{
    uint32_t now = WEIR_FREERTOS_CLOCK;
    weir_moderate_take(&net->card, 1, now);
    return !is_left || weir_moderate_arrive(&net->card, now).interrupt;
}

/**
 * Handles the card's interrupt: takes its frames, for at most `most` units of work. A frame is one
 * unit, and each WEIR_FREERTOS_UNIT bytes behind its head are another. The last frame may need more
 * units than are left.
 *
 * Each frame is read into a buffer of its class and waits there for the class's worker. If there is
 * no buffer, the frame is discarded and the reason is counted. The time of the interrupt is charged
 * to the receivers of its frames. If frames are left, the interrupt comes again. `*woken` is set to
 * pdTRUE if a worker must run; pass it to portYIELD_FROM_ISR(). Call it in the card's interrupt,
 * which must be allowed to call FreeRTOS.
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

/** Returns a frame's buffer to its class, once the stack no longer needs the frame. Call it in a
 * task. */
void weir_freertos_release(weir_freertos_frame_t *frame);

/** The number of requests that a task has answered in the current tick of FreeRTOS. All zero at
 * first. */
typedef struct {
    TickType_t tick;
    uint32_t answered;
} weir_freertos_pace_t;

/**
 * Call this when a task is about to answer a request. If the task has already answered `most`
 * requests (at least 1) in the current tick, it waits for the next tick. So clients that send a new
 * request after each answer get at most `most` answers per tick at the expense of less urgent
 * tasks, and none of their requests is dropped. Answers of the stack itself, such as to connection
 * requests, are not paced; a budget bounds them. A client that sends several requests in advance
 * fills the receiver's buffers meanwhile, and must retransmit the requests that find no buffer.
 * Call it in the receiver's task. It needs INCLUDE_vTaskDelay 1.
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
 * Tells the port that another task runs. Call it from FreeRTOSConfig.h. The argument is the task's
 * thread-local pointer that belongs to this port, by default the first one:
 *
 *     #define traceTASK_SWITCHED_IN() weir_freertos_switched(pxCurrentTCB->pvThreadLocalStoragePointers[0])
 *
 * Without this call, the time for which a worker is preempted is charged to the frame that it
 * handles.
 */
void weir_freertos_switched(void *lane);

#endif
