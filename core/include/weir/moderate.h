/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * moderate: bounds how long a packet may wait to share an interrupt (behnke2022 §2.2).
 *
 * A NIC has an array of queues, one per receiver; a queue is identified by its index. Each queue
 * has a length, an absolute timer, a packet timer and a count threshold. The inputs are events (a
 * packet arrives, a timer is due, packets are taken, the parameters change). The results tell
 * whether the packet was accepted and whether the queue interrupts. The guarantees are numbered in
 * core/CONTRACTS.md (MODERATE-*).
 *
 * The absolute timer runs from the first packet that waits. The paper calls this timer periodic. A
 * free-running timer would interrupt as rarely, but also for empty queues, and a packet's wait
 * would depend on where in the period it arrives. A queue needs no hardware timer of its own:
 * weir_moderate_next() returns the earliest instant at which any queue is due.
 *
 * A window begins with a packet that finds an empty queue, and ends when the queue *raises* its
 * interrupt: its timer is due, the count is reached, or it is not moderated at all. Until the
 * interrupt has *taken* packets, later packets join them without another interrupt. Packets that
 * were not taken begin a window of their own.
 *
 * Every function of this header is inline, takes constant time, and uses no division, heap, libc or
 * function pointer. No instant outlives its window, so no state has to be aged. A port calls
 * weir_moderate_expired() within half a wrap of the instant that weir_moderate_next() returned.
 *
 * Context: calls for the same queue must not interrupt each other.
 */
#ifndef WEIR_MODERATE_H
#define WEIR_MODERATE_H

#include "weir/ticks.h"

/*
 * The names of the functions of src/moderate.c contain the width of the ticks, unless the user has
 * already defined the names.
 */
#define WEIR_MODERATE_JOIN_(name, bits) name##_with_ticks_##bits
#define WEIR_MODERATE_JOIN(name, bits) WEIR_MODERATE_JOIN_(name, bits)
#ifndef weir_moderate_check
#define weir_moderate_check WEIR_MODERATE_JOIN(weir_moderate_check, WEIR_TICK_BITS)
#define weir_moderate_start WEIR_MODERATE_JOIN(weir_moderate_start, WEIR_TICK_BITS)
#define weir_moderate_reconfigure WEIR_MODERATE_JOIN(weir_moderate_reconfigure, WEIR_TICK_BITS)
#define weir_moderate_next WEIR_MODERATE_JOIN(weir_moderate_next, WEIR_TICK_BITS)
#define weir_moderate_expired WEIR_MODERATE_JOIN(weir_moderate_expired, WEIR_TICK_BITS)
#endif

/** The configuration of a queue. weir_moderate_check() checks it. */
typedef struct {
    /**
     * The longest time that a packet waits for an interrupt, in ticks, below half a wrap. 0 means
     * that the queue is not moderated: it interrupts as soon as a packet waits.
     */
    weir_ticks_t absolute;
    /**
     * Interrupt after this many ticks without a packet, 1 to `absolute`. 0 means no such timer.
     * This timer alone could delay for ever, so it needs `absolute`.
     */
    weir_ticks_t packet;
    /**
     * Interrupt when this many packets wait, 1 to `size`. 0 means no threshold. A threshold above 1
     * needs `absolute`.
     */
    uint16_t count;
    /** The largest number of packets that can wait, 1 to 65535. Further packets are dropped. */
    uint16_t size;
} weir_moderate_config_t;

/** Values of weir_moderate_state_t.phase. */
enum {
    WEIR_MODERATE_IDLE = 0,  /**< no packet waits */
    WEIR_MODERATE_OPEN = 1,  /**< packets wait for more, or for the timer */
    WEIR_MODERATE_RAISED = 2 /**< the queue has asked for an interrupt that has not taken packets yet */
};

/** The state of a queue between two events. Counts wrap. */
typedef struct {
    weir_ticks_t first;  /**< open: the instant at which the window began */
    weir_ticks_t last;   /**< open: the instant from which the packet timer runs; less than `absolute` after `first` */
    uint32_t accepted;   /**< packets that were let in */
    uint32_t dropped;    /**< packets that found the queue full */
    uint32_t interrupts; /**< times that the queue raised its interrupt */
    uint16_t waiting;    /**< packets in the queue */
    uint8_t phase;       /**< WEIR_MODERATE_IDLE, _OPEN or _RAISED */
} weir_moderate_state_t;

/** A queue whose parameters can change at run time. */
typedef struct {
    weir_moderate_config_t config;
    weir_moderate_state_t state;
} weir_moderate_t;

/** The fate of a packet. */
typedef struct {
    bool accepted;  /**< it waits in the queue; else the queue was full and it is dropped */
    bool interrupt; /**< the queue interrupts now */
} weir_moderate_step_t;

/** Returns the ticks from the beginning of an open window to the instant at which its timers are
 * due. */
WEIR_INLINE weir_ticks_t weir_moderate_span(const weir_moderate_state_t *s, const weir_moderate_config_t *c)
{
    if (c->packet != 0) {
        /* Both terms are below half a wrap, so their sum fits. */
        weir_ticks_t quiet = (weir_ticks_t) (weir_ticks_between(s->first, s->last) + c->packet);
        if (quiet < c->absolute) {
            return quiet;
        }
    }
    return c->absolute;
}

/** Returns true iff the queue has an open window whose timers are due. */
WEIR_INLINE bool weir_moderate_is_due(const weir_moderate_state_t *s, const weir_moderate_config_t *c, weir_ticks_t now)
{
    return s->phase == WEIR_MODERATE_OPEN && weir_ticks_between(s->first, now) >= weir_moderate_span(s, c);
}

/** Returns the instant at which an open window is due. It has no meaning in another phase. */
WEIR_INLINE weir_ticks_t weir_moderate_due_at(const weir_moderate_state_t *s, const weir_moderate_config_t *c)
{
    return (weir_ticks_t) (s->first + weir_moderate_span(s, c));
}

WEIR_INLINE void weir_moderate_raise(weir_moderate_state_t *s)
{
    s->phase = WEIR_MODERATE_RAISED;
    s->interrupts++;
}

/** Returns true iff enough packets wait for an interrupt without a timer. */
WEIR_INLINE bool weir_moderate_is_enough(const weir_moderate_state_t *s, const weir_moderate_config_t *c)
{
    return c->absolute == 0 || (c->count != 0 && s->waiting >= c->count);
}

/**
 * Begins a window for the packets that wait, of which there is at least one. Returns true iff the
 * window ends at once.
 */
WEIR_INLINE bool weir_moderate_begin(weir_moderate_state_t *s, const weir_moderate_config_t *c, weir_ticks_t now)
{
    if (weir_moderate_is_enough(s, c)) {
        weir_moderate_raise(s);
        return true;
    }
    s->phase = WEIR_MODERATE_OPEN;
    s->first = now;
    s->last = now;
    return false;
}

/**
 * Call this when a packet for this queue arrives. If the timers are due already, but the port has
 * not called weir_moderate_expired() yet, the queue interrupts here, because the packet must not
 * restart a timer that has expired. A dropped packet restarts no timer.
 */
WEIR_INLINE weir_moderate_step_t weir_moderate_arrive_with(weir_moderate_state_t *s, const weir_moderate_config_t *c, weir_ticks_t now)
{
    weir_moderate_step_t step = {false, false};
    if (WEIR_UNLIKELY(s->waiting >= c->size)) {
        s->dropped++;
        return step;
    }
    step.accepted = true;
    s->accepted++;
    s->waiting++;
    if (s->phase == WEIR_MODERATE_IDLE) {
        step.interrupt = weir_moderate_begin(s, c, now);
    } else if (s->phase == WEIR_MODERATE_OPEN) {
        if (weir_moderate_is_enough(s, c) || weir_moderate_is_due(s, c, now)) {
            weir_moderate_raise(s);
            step.interrupt = true;
        } else {
            s->last = now;
        }
    }
    return step;
}

/** Call this when the port's timer has fired. Returns true iff this queue is due, and interrupts
 * now. */
WEIR_INLINE bool weir_moderate_expired_with(weir_moderate_state_t *s, const weir_moderate_config_t *c, weir_ticks_t now)
{
    if (!weir_moderate_is_due(s, c, now)) {
        return false;
    }
    weir_moderate_raise(s);
    return true;
}

/**
 * Takes up to `count` packets and returns how many were taken. Call it for single packets inside
 * the interrupt, or from a receiver that polls. If polling empties the queue, its window ends;
 * otherwise the window continues.
 */
WEIR_INLINE uint16_t weir_moderate_remove(weir_moderate_state_t *s, uint16_t count)
{
    uint16_t taken = count < s->waiting ? count : s->waiting;
    s->waiting = (uint16_t) (s->waiting - taken);
    if (s->waiting == 0 && s->phase == WEIR_MODERATE_OPEN) {
        s->phase = WEIR_MODERATE_IDLE;
    }
    return taken;
}

/**
 * Call this when the interrupt is over. Packets that wait now, because they were left or came in
 * the meantime, begin a new window. Returns true iff that window interrupts at once: without
 * moderation, or if the count is reached again. Does nothing if the queue has raised no interrupt.
 */
WEIR_INLINE bool weir_moderate_done_with(weir_moderate_state_t *s, const weir_moderate_config_t *c, weir_ticks_t now)
{
    if (s->phase != WEIR_MODERATE_RAISED) {
        return false;
    }
    s->phase = WEIR_MODERATE_IDLE;
    return s->waiting != 0 && weir_moderate_begin(s, c, now);
}

/**
 * Combines weir_moderate_remove() and weir_moderate_done_with(), for an interrupt that takes
 * `count` packets, or as many as there are.
 */
WEIR_INLINE bool weir_moderate_take_with(weir_moderate_state_t *s, const weir_moderate_config_t *c, uint16_t count, weir_ticks_t now)
{
    weir_moderate_remove(s, count);
    return weir_moderate_done_with(s, c, now);
}

/* --------------------------------------------------------------------------- in src/moderate.c */

/** The result of weir_moderate_check() and weir_moderate_reconfigure(). */
typedef enum {
    WEIR_MODERATE_OK = 0,
    WEIR_MODERATE_BAD_SIZE,     /**< size is 0 */
    WEIR_MODERATE_BAD_ABSOLUTE, /**< absolute reaches half a wrap of the ticks, or is 0 though a packet timer or a count above 1 needs it */
    WEIR_MODERATE_BAD_PACKET,   /**< packet is above absolute: it would never run out first */
    WEIR_MODERATE_BAD_COUNT     /**< count is above size: it would never be reached */
} weir_moderate_error_t;

/** Checks a configuration. Returns WEIR_MODERATE_OK iff every promise holds with it. */
weir_moderate_error_t weir_moderate_check(const weir_moderate_config_t *config);

/** Initialises an empty queue with all counts 0. The configuration must have passed
 * weir_moderate_check(). */
void weir_moderate_start(weir_moderate_t *queue, const weir_moderate_config_t *config);

/**
 * Changes the parameters at run time (behnke2022 §2.2 "must be dynamically adjustable during
 * runtime"). An open window is treated as if the new parameters had been in force since it began.
 * `*interrupt` is set iff the change ends the window. Packets beyond a smaller size stay. On an
 * error nothing is changed.
 */
weir_moderate_error_t weir_moderate_reconfigure(weir_moderate_t *queue, const weir_moderate_config_t *to, weir_ticks_t now,
                                                bool *interrupt);

/**
 * Finds the earliest instant at which one of the queues is due; it is `now` if one is due already.
 * Returns false if no timer runs. O(count).
 */
bool weir_moderate_next(const weir_moderate_t *queues, uint16_t count, weir_ticks_t now, weir_ticks_t *at);

/**
 * Call this when the port's timer has fired. Returns the first queue at index `from` or above that
 * is due, and that interrupts now, or `count` if there is none. The port calls again with the index
 * after the returned one. O(count - from).
 */
uint16_t weir_moderate_expired(weir_moderate_t *queues, uint16_t count, uint16_t from, weir_ticks_t now);

/* --------------------------------------------------------------- the same on a weir_moderate_t */

/** weir_moderate_arrive_with() for a queue with changeable parameters. */
WEIR_INLINE weir_moderate_step_t weir_moderate_arrive(weir_moderate_t *queue, weir_ticks_t now)
{
    return weir_moderate_arrive_with(&queue->state, &queue->config, now);
}

/** weir_moderate_take_with() for a queue with changeable parameters. */
WEIR_INLINE bool weir_moderate_take(weir_moderate_t *queue, uint16_t count, weir_ticks_t now)
{
    return weir_moderate_take_with(&queue->state, &queue->config, count, now);
}

#endif
