/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The configuration of a limiter, its state, and the actions that it requests from the port.
 * Included by weir/limit.h.
 */
#ifndef WEIR_LIMIT_TYPES_H
#define WEIR_LIMIT_TYPES_H

#include "weir/ticks.h"

/**
 * 1 keeps a record per source (weir_limit_record_t). 0 saves the record's time and memory. 0 is the
 * default if ticks have 16 bits, as on the smallest processors. Every file of a program, including
 * src/limit.c, must be compiled with the same value; a mixture does not link.
 */
#ifndef WEIR_LIMIT_RECORD
#if WEIR_TICK_BITS == 16
#define WEIR_LIMIT_RECORD 0
#else
#define WEIR_LIMIT_RECORD 1
#endif
#endif

/*
 * The names of the functions of src/limit.c contain the settings that the layout of a limiter
 * depends on, unless the user has already defined the names.
 */
#define WEIR_LIMIT_JOIN_(name, record, bits) name##_with_record_##record##_and_ticks_##bits
#define WEIR_LIMIT_JOIN(name, record, bits) WEIR_LIMIT_JOIN_(name, record, bits)
#ifndef weir_limit_check
#define weir_limit_check WEIR_LIMIT_JOIN(weir_limit_check, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#define weir_limit_start_with WEIR_LIMIT_JOIN(weir_limit_start, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#define weir_limit_reconfigure WEIR_LIMIT_JOIN(weir_limit_reconfigure, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#define weir_limits_next WEIR_LIMIT_JOIN(weir_limits_next, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#endif

/**
 * Hooks that are called when a source begins to be refused, and when this has ended. `state` is the
 * source's weir_limit_state_t pointer. They run in interrupt context.
 */
#ifndef WEIR_ON_OVERLOAD_BEGIN
#define WEIR_ON_OVERLOAD_BEGIN(state) ((void) (state))
#endif
#ifndef WEIR_ON_OVERLOAD_END
#define WEIR_ON_OVERLOAD_END(state) ((void) (state))
#endif

/** The policies of a limit. */
enum {
    /** Every request is served: there is no limit and no promise. */
    WEIR_LIMIT_OFF = 0,
    /**
     * A minimum interarrival time, measured from when the previous request was served (regehr2005
     * §3.2; LIMIT-STRICT-*).
     */
    WEIR_LIMIT_STRICT = 1,
    /**
     * A minimum interarrival time, measured from the nominal instant of the previous request, so
     * that the rate is exact in the long run (LIMIT-PACED-*).
     */
    WEIR_LIMIT_PACED = 2,
    /** `burst` requests per period of a timer (regehr2005 §3.3; LIMIT-BURSTY-*). */
    WEIR_LIMIT_BURSTY = 3,
    /** A token bucket with `burst` tokens, which gets one token per interval (LIMIT-BUCKET-*). */
    WEIR_LIMIT_BUCKET = 4
};

/** The timing: when a limiter masks its source, and which timer interrupts it takes. */
enum {
    /**
     * strict, paced, bucket: mask as soon as the next request would be too early. bursty: the
     * clearing timer always interrupts (regehr2005 §3.3).
     */
    WEIR_LIMIT_EAGER = 0,
    /**
     * Mask only when a request did come too early. Below the limit there is no timer interrupt and
     * no wake-up. With bursty, this is the optimisation of regehr2005 §3.3 without its losses below
     * the limit: a request, too, clears the count once its period is over.
     */
    WEIR_LIMIT_LAZY = 1,
    /**
     * bursty only: a one-shot timer, started by the first request of a burst, clears the count
     * (regehr2005 §4).
     */
    WEIR_LIMIT_ONE_SHOT = 2
};

/**
 * The source's interrupt condition. It decides what happens to a request that comes while the
 * source is masked.
 */
enum {
    /**
     * An edge sets a pending bit, which masking does not clear. One request is kept per masked
     * interval.
     */
    WEIR_LIMIT_EDGE = 0,
    /** An edge without a pending bit. Requests in a masked interval are lost. */
    WEIR_LIMIT_EDGE_UNLATCHED = 1,
    /** A level. The device keeps requesting until it is served. */
    WEIR_LIMIT_LEVEL = 2
};

/** The configuration of a limiter. weir_limit_check() checks it. */
typedef struct {
    /**
     * strict, paced, bucket: the interval T. bursty: the timer's period P. It is in ticks and at
     * least 1; `burst` intervals must stay below half a wrap.
     */
    weir_ticks_t interval;
    /**
     * strict: the number of ticks by which the timer is set early while the source is masked. It
     * must not exceed the *least* latency from expiry to service, or LIMIT-STRICT-1 is violated.
     */
    weir_ticks_t lag;
    /** bursty, bucket: the burst N, 1 to 255. strict and paced: 1. */
    uint8_t burst;
    /** WEIR_LIMIT_OFF, _STRICT, _PACED, _BURSTY or _BUCKET. */
    uint8_t policy;
    /** WEIR_LIMIT_EAGER, _LAZY or _ONE_SHOT. */
    uint8_t timing;
    /** WEIR_LIMIT_EDGE, _EDGE_UNLATCHED or _LEVEL. */
    uint8_t trigger;
} weir_limit_config_t;

/** What has happened at a source since its start. Counts wrap, and times saturate. */
typedef struct {
    uint32_t taken;               /**< interrupts that asked this limiter, and requests that an expiry took from the pending bit */
    uint32_t served;              /**< of those, how many ran the handler */
    uint32_t masked_intervals;    /**< times the limiter masked the source */
    uint16_t overloads;           /**< times that refusing began; one overload lasts until a request comes in time or none is left */
    weir_ticks_t longest_masked;  /**< ticks, at least this long; saturates at half a wrap */
    weir_ticks_t longest_handler; /**< ticks, as told by weir_limit_done() */
    weir_ticks_t first_overload;  /**< instant, valid while `overloads` is not 0 and no wrap has passed */
    weir_ticks_t last_overload;   /**< instant, likewise */
} weir_limit_record_t;

/** The state of a limiter between two events. weir_limit_start() initialises it. */
typedef struct {
    /**
     * strict, paced, bucket: the instant from which the next request is in time. bursty: the next
     * instant at which the count is cleared.
     */
    weir_ticks_t due;
    uint8_t count;   /**< bursty: requests served since the count was cleared */
    uint8_t allowed; /**< bursty: how many may be served until then; the burst, but for the first period after a change */
    uint8_t flags;   /**< WEIR_LIMIT_IS_* */
#if WEIR_LIMIT_RECORD
    weir_ticks_t masked_since;
    weir_ticks_t masked_for;
    weir_limit_record_t record;
#endif
} weir_limit_state_t;

/** A limiter whose rate and burst can change at run time. */
typedef struct {
    weir_limit_config_t config;
    weir_limit_state_t state;
} weir_limit_t;

/** The bits of weir_limit_state_t.flags. */
enum {
    WEIR_LIMIT_IS_MASKED = 0x01,    /**< the limiter wants the source off */
    WEIR_LIMIT_IS_HELD = 0x02,      /**< a request was taken too early and waits in software */
    WEIR_LIMIT_IS_SUSTAINED = 0x04, /**< the last request was served by an expiry */
    WEIR_LIMIT_IS_USER_OFF = 0x08,  /**< the user wants the source off (regehr2005 §4) */
    WEIR_LIMIT_IS_AGED = 0x10,      /**< `due` lies so far back that it no longer matters */
    WEIR_LIMIT_IS_OVERLOAD = 0x20,  /**< requests are being refused */
    WEIR_LIMIT_IS_WAITING = 0x40 /**< a held request could be served, but the user had the source off; until it is served or refused anew */
};

/**
 * The actions that the port must perform next, in this order: mask or unmask; arm, watch or disarm;
 * acknowledge; serve.
 */
typedef struct {
    bool serve;  /**< run the handler */
    bool ack;    /**< the request being served is the one in the pending bit: clear it first */
    bool mask;   /**< clear the source's enable bit */
    bool unmask; /**< set the source's enable bit */
    bool arm;    /**< interrupt at `at` and call weir_limit_expired(); at once if `at` is reached */
    bool
        watch; /**< note, without an interrupt, that `at` has passed (at once if it has); without a compare flag ignore it and call weir_limit_age() */
    bool disarm; /**< no timer interrupt is wanted any more */
    weir_ticks_t at;
} weir_limit_step_t;

/**
 * Returns true iff the source is on, that is, both the user and the limiter want it on
 * (LIMIT-ENABLE-1, regehr2005 §4).
 */
WEIR_INLINE bool weir_limit_is_on(const weir_limit_state_t *state)
{
    return (state->flags & (WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_USER_OFF)) == 0;
}

#endif
