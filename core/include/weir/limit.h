/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * limit: how often a source may interrupt (regehr2005 §3 and §4).
 *
 * A pure machine: events in (request, timer expired, user enable and disable, reconfigure), actions out (serve, mask, unmask, arm).
 * It reads no clock and touches no register; the port does, and performs the actions. What each policy promises is numbered in
 * core/CONTRACTS.md; the numbers stand in the comments here.
 *
 * Every function of this header is inline, without division, heap, libc or function pointer. Given a configuration that is a
 * compile-time constant, a compiler reduces each to the few instructions of the one policy; given one in RAM, rates and bursts can
 * change at run time (weir_limit_reconfigure(), src/limit.c).
 *
 * Context: a source's events must not overtake each other. On one processor: call from its interrupt handlers, or from a thread with
 * those interrupts off.
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include "weir/ticks.h"

/**
 * 1 keeps a record per source (weir_limit_record_t); 0 saves its time and memory, and is the default where ticks have 16 bits: on the smallest
 * processors. Every file of a program, src/limit.c too, must be compiled with the same value: with another it does not link.
 */
#ifndef WEIR_LIMIT_RECORD
#if WEIR_TICK_BITS == 16
#define WEIR_LIMIT_RECORD 0
#else
#define WEIR_LIMIT_RECORD 1
#endif
#endif

/* The functions of src/limit.c are named after what the layout of a limiter depends on, unless somebody has named them already. */
#define WEIR_LIMIT_JOIN_(name, record, bits) name##_with_record_##record##_and_ticks_##bits
#define WEIR_LIMIT_JOIN(name, record, bits) WEIR_LIMIT_JOIN_(name, record, bits)
#ifndef weir_limit_check
#define weir_limit_check WEIR_LIMIT_JOIN(weir_limit_check, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#define weir_limit_start_with WEIR_LIMIT_JOIN(weir_limit_start, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#define weir_limit_reconfigure WEIR_LIMIT_JOIN(weir_limit_reconfigure, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#define weir_limits_next WEIR_LIMIT_JOIN(weir_limits_next, WEIR_LIMIT_RECORD, WEIR_TICK_BITS)
#endif

/** Called when a source begins to be refused, and when that has ended; `state` is its weir_limit_state_t pointer. In interrupt context. */
#ifndef WEIR_ON_OVERLOAD_BEGIN
#define WEIR_ON_OVERLOAD_BEGIN(state) ((void) (state))
#endif
#ifndef WEIR_ON_OVERLOAD_END
#define WEIR_ON_OVERLOAD_END(state) ((void) (state))
#endif

/** How the requests of a source are limited. */
enum {
    /** Every request is served: no limit, no promise. */
    WEIR_LIMIT_OFF = 0,
    /** A minimum interarrival time, anchored where the request was served (regehr2005 §3.2; LIMIT-STRICT-*). */
    WEIR_LIMIT_STRICT = 1,
    /** A minimum interarrival time, anchored at nominal time: the exact rate in the long run (LIMIT-PACED-*). */
    WEIR_LIMIT_PACED = 2,
    /** `burst` requests per period of a timer (regehr2005 §3.3; LIMIT-BURSTY-*). */
    WEIR_LIMIT_BURSTY = 3,
    /** A token bucket: `burst` tokens, one more each interval (LIMIT-BUCKET-*). */
    WEIR_LIMIT_BUCKET = 4
};

/** When a limiter masks its source, and which timer interrupts it takes. */
enum {
    /** strict, paced, bucket: mask as soon as the next request would be too early. bursty: the clearing timer always interrupts (regehr2005 §3.3). */
    WEIR_LIMIT_EAGER = 0,
    /**
     * Mask only when a request did come too early; below the limit there is no timer interrupt and no wake-up. For bursty it is the
     * optimisation of regehr2005 §3.3 without its losses below the limit: the count is cleared by a request, too, once its period is over.
     */
    WEIR_LIMIT_LAZY = 1,
    /** bursty only: a one-shot timer, started by the first request of a burst, clears the count (regehr2005 §4). */
    WEIR_LIMIT_ONE_SHOT = 2
};

/** What the source's interrupt condition is, and so what becomes of a request that comes while the source is masked. */
enum {
    /** An edge sets a pending bit, which survives masking: one request is kept per masked interval. */
    WEIR_LIMIT_EDGE = 0,
    /** An edge without a pending bit: requests in a masked interval are lost. */
    WEIR_LIMIT_EDGE_UNLATCHED = 1,
    /** A level: the device itself keeps asking until it is satisfied. */
    WEIR_LIMIT_LEVEL = 2
};

/** What a limiter is told once. Checked by weir_limit_check(). */
typedef struct {
    /** strict, paced, bucket: the interval T; bursty: the timer's period P. In ticks, 1 ..; `burst` intervals must stay below half a wrap. */
    weir_ticks_t interval;
    /** strict: ticks to set the timer short by while the source is masked. At most the *least* latency from expiry to service, else LIMIT-STRICT-1 breaks. */
    weir_ticks_t lag;
    /** bursty, bucket: N, 1 to 255. strict and paced: 1. */
    uint8_t burst;
    /** WEIR_LIMIT_OFF, _STRICT, _PACED, _BURSTY or _BUCKET. */
    uint8_t policy;
    /** WEIR_LIMIT_EAGER, _LAZY or _ONE_SHOT. */
    uint8_t timing;
    /** WEIR_LIMIT_EDGE, _EDGE_UNLATCHED or _LEVEL. */
    uint8_t trigger;
} weir_limit_config_t;

/** What happened at a source since it was started; counts wrap, times saturate. */
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

/** What a limiter remembers between two events. Zeroed and then started by weir_limit_start(). */
typedef struct {
    /** strict, paced, bucket: the instant from which the next request is in time. bursty: the instant at which the count is next cleared. */
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

/** A limiter whose rate and burst can change. */
typedef struct {
    weir_limit_config_t config;
    weir_limit_state_t state;
} weir_limit_t;

/** Bits of weir_limit_state_t.flags. */
enum {
    WEIR_LIMIT_IS_MASKED = 0x01,    /**< the limiter wants the source off */
    WEIR_LIMIT_IS_HELD = 0x02,      /**< a request was taken too early and waits in software */
    WEIR_LIMIT_IS_SUSTAINED = 0x04, /**< the last request was served by an expiry */
    WEIR_LIMIT_IS_USER_OFF = 0x08,  /**< the user wants the source off (regehr2005 §4) */
    WEIR_LIMIT_IS_AGED = 0x10,      /**< `due` lies so far back that it no longer matters */
    WEIR_LIMIT_IS_OVERLOAD = 0x20,  /**< requests are being refused */
    WEIR_LIMIT_IS_WAITING = 0x40 /**< a held request could be served, but the user had the source off; until it is served or refused anew */
};

/** What the port does now, in this order: mask or unmask; arm, watch or disarm; acknowledge; serve. */
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

/** True iff the source is on: both the user and the limiter want it (LIMIT-ENABLE-1, regehr2005 §4). */
WEIR_INLINE bool weir_limit_is_on(const weir_limit_state_t *state)
{
    return (state->flags & (WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_USER_OFF)) == 0;
}

/* ------------------------------------------------------------------------------------------------ the record */

#if WEIR_LIMIT_RECORD
WEIR_INLINE void weir_limit_note_taken(weir_limit_state_t *s)
{
    s->record.taken++;
}

WEIR_INLINE void weir_limit_note_served(weir_limit_state_t *s)
{
    s->record.served++;
}

WEIR_INLINE void weir_limit_note_masked(weir_limit_state_t *s, weir_ticks_t now)
{
    s->record.masked_intervals++;
    s->masked_since = now;
    s->masked_for = 0;
}

/** Called at each expiry and at the unmasking, so that an interval longer than a wrap saturates instead of looking short. */
WEIR_INLINE void weir_limit_note_still_masked(weir_limit_state_t *s, weir_ticks_t now)
{
    weir_ticks_t more = weir_ticks_between(s->masked_since, now);
    s->masked_since = now;
    s->masked_for = more > (weir_ticks_t) (WEIR_TICKS_HALF - s->masked_for) ? WEIR_TICKS_HALF : (weir_ticks_t) (s->masked_for + more);
    if (s->masked_for > s->record.longest_masked) {
        s->record.longest_masked = s->masked_for;
    }
}

WEIR_INLINE void weir_limit_note_refused(weir_limit_state_t *s, weir_ticks_t now)
{
    if ((s->flags & WEIR_LIMIT_IS_OVERLOAD) == 0) {
        s->flags |= WEIR_LIMIT_IS_OVERLOAD;
        if (s->record.overloads == 0) {
            s->record.first_overload = now;
        }
        if (s->record.overloads < UINT16_MAX) {
            s->record.overloads++;
        }
        s->record.last_overload = now;
        WEIR_ON_OVERLOAD_BEGIN(s);
    }
}

WEIR_INLINE void weir_limit_note_in_time(weir_limit_state_t *s)
{
    if ((s->flags & WEIR_LIMIT_IS_OVERLOAD) != 0) {
        s->flags &= (uint8_t) ~WEIR_LIMIT_IS_OVERLOAD;
        WEIR_ON_OVERLOAD_END(s);
    }
}

/** Tells the record how long a handler ran, from `begin` to `now`. */
WEIR_INLINE void weir_limit_done(weir_limit_state_t *s, weir_ticks_t begin, weir_ticks_t now)
{
    weir_ticks_t ran = weir_ticks_between(begin, now);
    if (ran > s->record.longest_handler) {
        s->record.longest_handler = ran;
    }
}
#else
#define weir_limit_note_taken(s) ((void) (s))
#define weir_limit_note_served(s) ((void) (s))
#define weir_limit_note_masked(s, now) ((void) (s), (void) (now))
#define weir_limit_note_still_masked(s, now) ((void) (s), (void) (now))
#define weir_limit_note_refused(s, now) ((void) (s), (void) (now))
#define weir_limit_note_in_time(s) ((void) (s))
#define weir_limit_done(s, begin, now) ((void) (s), (void) (begin), (void) (now))
#endif

/* ------------------------------------------------------------------------------------------------ parts of the policies */

/** The span that a full bucket is ahead: (N - 1) intervals, 0 for strict and paced. */
WEIR_INLINE weir_ticks_t weir_limit_slack(const weir_limit_config_t *c)
{
    return c->policy == WEIR_LIMIT_BUCKET ? (weir_ticks_t) ((weir_ticks_t) (c->burst - 1u) * c->interval) : 0;
}

/** Has the timer note the instant after which the past no longer matters: for a bucket, when it is full again. */
WEIR_INLINE void weir_limit_watch(const weir_limit_state_t *s, const weir_limit_config_t *c, weir_limit_step_t *step)
{
    step->watch = true;
    step->at = (weir_ticks_t) (s->due + weir_limit_slack(c));
}

/** No request is left at `now`, and `due` is reached: the past no longer matters, or the timer notes when (LIMIT-TIME-2). */
WEIR_INLINE void weir_limit_rest(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, weir_limit_step_t *step)
{
    weir_ticks_t slack = weir_limit_slack(c);
    if (slack == 0 || weir_ticks_reached(now, (weir_ticks_t) (s->due + slack))) {
        s->flags |= WEIR_LIMIT_IS_AGED;
    } else {
        weir_limit_watch(s, c, step);
    }
}

/** Masks the source until `due`; a request that an interrupt has already consumed is held in software unless its level asks again. */
WEIR_INLINE void weir_limit_refuse_until_due(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, weir_limit_step_t *step)
{
    s->flags |= WEIR_LIMIT_IS_MASKED;
    if (c->trigger != WEIR_LIMIT_LEVEL) {
        s->flags |= WEIR_LIMIT_IS_HELD;
    }
    weir_limit_note_refused(s, now);
    weir_limit_note_masked(s, now);
    step->mask = true;
    step->arm = true;
    step->at = s->due;
}

/** Admits one request at `now` and moves `due` on: strict from `now`; bucket as a virtual scheduler that never runs more than the slack behind. */
WEIR_INLINE void weir_limit_admit(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool fresh)
{
    weir_ticks_t slack = weir_limit_slack(c);
    if (slack == 0 || fresh || weir_ticks_between(s->due, now) > slack) {
        s->due = (weir_ticks_t) (now - slack);
    }
    s->due = (weir_ticks_t) (s->due + c->interval);
}

/** strict, paced and bucket: an interrupt was taken. */
WEIR_INLINE weir_limit_step_t weir_limit_request_spaced(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool elapsed)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    if (c->timing != WEIR_LIMIT_LAZY && c->policy != WEIR_LIMIT_BUCKET) {
        /* The source is only unmasked when a request is in time: nothing to decide. */
        s->due = (weir_ticks_t) (now + c->interval - c->lag);
        s->flags = WEIR_LIMIT_IS_MASKED;
        step.mask = true;
        step.arm = true;
    } else {
        bool fresh = elapsed || (s->flags & WEIR_LIMIT_IS_AGED) != 0;
        if (!fresh && !weir_ticks_reached(now, s->due)) {
            weir_limit_refuse_until_due(s, c, now, &step);
            return step;
        }
        weir_limit_note_in_time(s);
        weir_limit_admit(s, c, now, fresh);
        if (c->timing == WEIR_LIMIT_LAZY || weir_ticks_reached(now, s->due)) {
            s->flags = 0;
            weir_limit_watch(s, c, &step);
        } else {
            s->flags = WEIR_LIMIT_IS_MASKED;
            step.mask = true;
            step.arm = true;
        }
    }
    if (step.mask) {
        weir_limit_note_masked(s, now);
        step.at = s->due;
    }
    weir_limit_note_served(s);
    step.serve = true;
    return step;
}

/** bursty: an interrupt was taken. */
WEIR_INLINE weir_limit_step_t weir_limit_request_bursty(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool elapsed)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    bool lazy = c->timing == WEIR_LIMIT_LAZY;
    bool over = lazy && (elapsed || (s->flags & WEIR_LIMIT_IS_AGED) != 0 || weir_ticks_reached(now, s->due));
    if (lazy && WEIR_UNLIKELY(s->count >= s->allowed)) {
        if (!over) {
            weir_limit_refuse_until_due(s, c, now, &step);
            return step;
        }
        /* A whole period has passed since the count was cleared: it is cleared now, one period before the next time. */
        weir_limit_note_in_time(s);
        s->count = 0;
        s->allowed = c->burst;
        s->flags = 0;
        s->due = (weir_ticks_t) (now + c->interval);
        step.watch = true;
        step.at = s->due;
    }
    weir_limit_note_served(s);
    step.serve = true;
    if (c->timing == WEIR_LIMIT_ONE_SHOT && s->count == 0) {
        s->due = (weir_ticks_t) (now + c->interval);
        step.arm = true;
        step.at = s->due;
    }
    s->count++;
    /* A lazy limiter masks before one request too many only if the last period, too, ended with a request that waited, and this one is not over. */
    if (WEIR_UNLIKELY(s->count >= s->allowed) && (!lazy || ((s->flags & WEIR_LIMIT_IS_SUSTAINED) != 0 && !over))) {
        s->flags |= WEIR_LIMIT_IS_MASKED;
        weir_limit_note_masked(s, now);
        step.mask = true;
        if (lazy) {
            step.arm = true;
            step.at = s->due;
        }
    }
    return step;
}

/** The user has the source off while its interval ends: nothing may be served, and what is held must wait (LIMIT-ENABLE-2). */
WEIR_INLINE void weir_limit_expired_user_off(weir_limit_state_t *s)
{
    if ((s->flags & WEIR_LIMIT_IS_HELD) != 0) {
        s->flags |= WEIR_LIMIT_IS_WAITING;
    } else {
        weir_limit_note_in_time(s);
        s->flags = WEIR_LIMIT_IS_USER_OFF;
    }
}

/** strict, paced and bucket: the timer that was armed has expired. */
WEIR_INLINE weir_limit_step_t weir_limit_expired_spaced(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool pending)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    if ((s->flags & WEIR_LIMIT_IS_MASKED) == 0) {
        return step;
    }
    weir_limit_note_still_masked(s, now);
    if (WEIR_UNLIKELY((s->flags & (WEIR_LIMIT_IS_USER_OFF | WEIR_LIMIT_IS_WAITING)) != 0)) {
        if ((s->flags & WEIR_LIMIT_IS_USER_OFF) != 0) {
            weir_limit_expired_user_off(s);
            step.disarm = true;
            weir_limit_rest(s, c, now, &step);
            return step;
        }
        /* `due` was reached before the wait began; it may lie far back by now. */
        if ((s->flags & WEIR_LIMIT_IS_AGED) != 0) {
            s->due = (weir_ticks_t) (now - weir_limit_slack(c));
        } else if (!weir_ticks_reached(now, s->due)) {
            s->due = now;
        }
    }
    bool held = (s->flags & WEIR_LIMIT_IS_HELD) != 0;
    if (!held && !pending) {
        weir_limit_note_in_time(s);
        step.unmask = true;
        step.disarm = true;
        s->flags = 0;
        weir_limit_rest(s, c, now, &step);
        return step;
    }
    if (!held) {
        weir_limit_note_taken(s);
        weir_limit_note_refused(s, now);
    }
    weir_limit_note_served(s);
    step.serve = true;
    step.ack = !held;
    if (c->policy == WEIR_LIMIT_PACED && !weir_ticks_reached(now, (weir_ticks_t) (s->due + c->interval))) {
        s->due = (weir_ticks_t) (s->due + c->interval);
    } else {
        weir_limit_admit(s, c, now, false);
    }
    /*
     * Stay masked while requests keep coming. A lazy limiter whose previous request was also served by an expiry stays for one interval
     * more: else a source at exactly the limit could make it pay a refused interrupt for each one served.
     */
    bool stay = c->timing != WEIR_LIMIT_LAZY || (held && pending) || (s->flags & WEIR_LIMIT_IS_SUSTAINED) != 0;
    if (stay && (c->policy != WEIR_LIMIT_BUCKET || !weir_ticks_reached(now, s->due))) {
        /* The next request can only be served by an expiry, at least `lag` after the instant that is armed. */
        s->due = (weir_ticks_t) (s->due - c->lag);
        s->flags = (uint8_t) ((s->flags & WEIR_LIMIT_IS_OVERLOAD) | WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_SUSTAINED);
        step.arm = true;
        step.at = s->due;
    } else {
        s->flags = (uint8_t) ((s->flags & WEIR_LIMIT_IS_OVERLOAD) | WEIR_LIMIT_IS_SUSTAINED);
        step.unmask = true;
        step.disarm = true;
        weir_limit_watch(s, c, &step);
    }
    return step;
}

/** bursty: between two clearings, the timer was set for a request that waits for the user: it is one more of this period. */
WEIR_INLINE weir_limit_step_t weir_limit_expired_waiting(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    if ((s->flags & WEIR_LIMIT_IS_USER_OFF) == 0) {
        weir_limit_note_still_masked(s, now);
        s->flags &= (uint8_t) ~(WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_HELD | WEIR_LIMIT_IS_WAITING);
        if (c->timing == WEIR_LIMIT_LAZY && s->count == 0) {
            s->due = (weir_ticks_t) (now + c->interval);
        }
        step = weir_limit_request_bursty(s, c, now, false);
        step.unmask = !step.mask;
        step.mask = false;
    }
    step.arm = step.arm || c->timing == WEIR_LIMIT_EAGER || (c->timing == WEIR_LIMIT_ONE_SHOT && s->count != 0);
    step.watch = c->timing == WEIR_LIMIT_LAZY && !step.arm;
    step.disarm = !step.arm;
    step.at = s->due;
    return step;
}

/** bursty: the clearing timer has expired. */
WEIR_INLINE weir_limit_step_t weir_limit_expired_bursty(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool pending)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    if (c->timing == WEIR_LIMIT_LAZY && (s->flags & WEIR_LIMIT_IS_MASKED) == 0) {
        return step;
    }
    if (WEIR_UNLIKELY((s->flags & WEIR_LIMIT_IS_WAITING) != 0)) {
        if ((s->flags & WEIR_LIMIT_IS_AGED) == 0 && !weir_ticks_reached(now, s->due)) {
            return weir_limit_expired_waiting(s, c, now);
        }
        if (c->timing == WEIR_LIMIT_LAZY) {
            /* Not the timer but the user made it wait: the next period is counted from here. */
            s->flags &= (uint8_t) ~WEIR_LIMIT_IS_AGED;
            s->due = (weir_ticks_t) (now - c->interval);
        }
    }
    bool first_of_next = false;
    s->count = 0;
    s->allowed = c->burst;
    if ((s->flags & WEIR_LIMIT_IS_MASKED) != 0) {
        weir_limit_note_still_masked(s, now);
        bool held = (s->flags & WEIR_LIMIT_IS_HELD) != 0;
        if (WEIR_UNLIKELY((s->flags & WEIR_LIMIT_IS_USER_OFF) != 0)) {
            weir_limit_expired_user_off(s);
        } else {
            if (held || pending) {
                if (!held) {
                    weir_limit_note_taken(s);
                }
                weir_limit_note_refused(s, now);
                weir_limit_note_served(s);
                step.serve = true;
                step.ack = !held;
                s->count = 1;
                first_of_next = true;
            } else {
                weir_limit_note_in_time(s);
            }
            s->flags &= WEIR_LIMIT_IS_OVERLOAD;
            if (step.serve && c->timing == WEIR_LIMIT_LAZY) {
                s->flags |= WEIR_LIMIT_IS_SUSTAINED;
            }
            if (s->count < s->allowed) {
                step.unmask = true;
            } else {
                s->flags |= WEIR_LIMIT_IS_MASKED;
            }
        }
    }
    if (c->timing != WEIR_LIMIT_ONE_SHOT) {
        /*
         * From the nominal instant: counted from the late one, a source just below the limit could keep in step with the latency and pay an
         * expiry each period.
         */
        s->due = (weir_ticks_t) (s->due + c->interval);
        if (WEIR_UNLIKELY(weir_ticks_reached(now, s->due))) {
            s->due = (weir_ticks_t) (now + c->interval);
        }
    }
    if (c->timing == WEIR_LIMIT_EAGER) {
        step.arm = true;
    } else if (c->timing == WEIR_LIMIT_LAZY) {
        step.arm = (s->flags & (WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_WAITING)) == WEIR_LIMIT_IS_MASKED;
        step.watch = !step.arm;
        step.disarm = !step.arm;
    } else {
        s->due = (weir_ticks_t) (now + c->interval);
        step.arm = first_of_next;
        step.disarm = !first_of_next;
    }
    step.at = s->due;
    return step;
}

/* ------------------------------------------------------------------------------------------------ the events */

/**
 * The source's interrupt was taken at `now`; the source is on (else weir_limit_refused()).
 * `elapsed`: the port's timer noted that the instant it was told to watch has passed; false if it keeps no such note.
 * Constant time.
 */
WEIR_INLINE weir_limit_step_t weir_limit_request_with(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool elapsed)
{
    weir_limit_note_taken(s);
    if (c->policy == WEIR_LIMIT_BURSTY) {
        return weir_limit_request_bursty(s, c, now, elapsed);
    }
    if (c->policy != WEIR_LIMIT_OFF) {
        return weir_limit_request_spaced(s, c, now, elapsed);
    }
    weir_limit_note_served(s);
    weir_limit_step_t step = {true, false, false, false, false, false, false, 0};
    return step;
}

/**
 * The source's interrupt was taken although the source is masked or held off (it was already on its way). It is held, unless its level
 * asks again; the mask is asked for once more. A port that watches calls weir_limit_elapsed() first if its note is there.
 */
WEIR_INLINE weir_limit_step_t weir_limit_refused_with(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now)
{
    weir_limit_step_t step = {false, false, true, false, false, false, false, 0};
    weir_limit_note_taken(s);
    if ((s->flags & WEIR_LIMIT_IS_MASKED) != 0) {
        weir_limit_note_refused(s, now);
        if (c->trigger != WEIR_LIMIT_LEVEL) {
            s->flags |= WEIR_LIMIT_IS_HELD;
        }
    } else if (c->trigger != WEIR_LIMIT_LEVEL) {
        /* Only the user has it off: the request waits for him, and for `due` if that is still to come. */
        bool spaced = c->policy != WEIR_LIMIT_BURSTY && c->policy != WEIR_LIMIT_OFF;
        bool early = spaced && (s->flags & WEIR_LIMIT_IS_AGED) == 0 && !weir_ticks_reached(now, s->due);
        s->flags |= WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_HELD;
        if (!early) {
            s->flags |= WEIR_LIMIT_IS_WAITING;
        }
        weir_limit_note_masked(s, now);
        step.arm = early;
        step.at = s->due;
    }
    return step;
}

/** off: a request that was on its way when the user disabled the source has waited for him. */
WEIR_INLINE weir_limit_step_t weir_limit_expired_off(weir_limit_state_t *s, weir_ticks_t now)
{
    weir_limit_step_t step = {false, false, false, false, false, false, true, 0};
    if ((s->flags & (WEIR_LIMIT_IS_HELD | WEIR_LIMIT_IS_USER_OFF)) == WEIR_LIMIT_IS_HELD) {
        weir_limit_note_still_masked(s, now);
        weir_limit_note_served(s);
        weir_limit_note_in_time(s);
        s->flags = WEIR_LIMIT_IS_AGED;
        step.serve = true;
        step.unmask = true;
    }
    return step;
}

/** The timer expired: `now` is at or after the `at` that was armed. `pending`: the source's pending bit is set. Constant time. */
WEIR_INLINE weir_limit_step_t weir_limit_expired_with(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool pending)
{
    if (c->policy == WEIR_LIMIT_BURSTY) {
        return weir_limit_expired_bursty(s, c, now, pending);
    }
    if (c->policy != WEIR_LIMIT_OFF) {
        return weir_limit_expired_spaced(s, c, now, pending);
    }
    return weir_limit_expired_off(s, now);
}

/** True iff a held request has waited for the user, who now wants the source on: an expiry is wanted at once. */
WEIR_INLINE bool weir_limit_is_released(const weir_limit_state_t *s)
{
    return (s->flags & (WEIR_LIMIT_IS_WAITING | WEIR_LIMIT_IS_USER_OFF)) == WEIR_LIMIT_IS_WAITING;
}

/** True iff an expiry is wanted: at once if weir_limit_is_released(), else at state.due. */
WEIR_INLINE bool weir_limit_is_armed(const weir_limit_state_t *s, const weir_limit_config_t *c)
{
    if (c->policy == WEIR_LIMIT_BURSTY && c->timing == WEIR_LIMIT_EAGER) {
        return true;
    }
    if (c->policy == WEIR_LIMIT_BURSTY && c->timing == WEIR_LIMIT_ONE_SHOT && s->count != 0) {
        return true;
    }
    return (s->flags & (WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_WAITING)) == WEIR_LIMIT_IS_MASKED || weir_limit_is_released(s);
}

/** True iff `due` is an instant that an idle source can outlive: a bursty limiter's other than the lazy one is set anew by its first request. */
WEIR_INLINE bool weir_limit_can_age(const weir_limit_state_t *s, const weir_limit_config_t *c)
{
    return (c->policy != WEIR_LIMIT_BURSTY || c->timing == WEIR_LIMIT_LAZY) && !weir_limit_is_armed(s, c);
}

/**
 * A port that watches calls this before weir_limit_refused_with(), weir_limit_user_enable() and weir_limit_reconfigure() if its note is there
 * (a request takes the note itself): the instant that was watched has passed, however long ago.
 */
WEIR_INLINE void weir_limit_elapsed(weir_limit_state_t *s, const weir_limit_config_t *c)
{
    if (weir_limit_can_age(s, c)) {
        s->flags |= WEIR_LIMIT_IS_AGED;
    }
}

/**
 * Ages an idle source, so that an instant long past is not taken for one to come. A port whose timer has no compare flag to watch with
 * calls this at least once in half a wrap less `burst` intervals; to call it more often does no harm.
 */
WEIR_INLINE void weir_limit_age(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now)
{
    if (weir_limit_can_age(s, c)) {
        weir_ticks_t since = weir_ticks_between(s->due, now);
        if (since >= weir_limit_slack(c) && since < WEIR_TICKS_HALF) {
            s->flags |= WEIR_LIMIT_IS_AGED;
        }
    }
}

/** The timer-less mode: call from a tick that exists already, instead of arming; ages as well. The tick's period adds to the latency L. */
WEIR_INLINE weir_limit_step_t weir_limit_tick_with(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool pending)
{
    if (weir_limit_is_armed(s, c) && (weir_limit_is_released(s) || weir_ticks_reached(now, s->due))) {
        return weir_limit_expired_with(s, c, now, pending);
    }
    weir_limit_age(s, c, now);
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    return step;
}

/** The user wants the source off (regehr2005 §4). */
WEIR_INLINE weir_limit_step_t weir_limit_user_disable(weir_limit_state_t *s)
{
    weir_limit_step_t step = {false, false, true, false, false, false, false, 0};
    s->flags |= WEIR_LIMIT_IS_USER_OFF;
    return step;
}

/** The user wants the source on; it comes on only if the limiter wants it too, and what waited is served from the timer's interrupt, not here. */
WEIR_INLINE weir_limit_step_t weir_limit_user_enable(weir_limit_state_t *s, weir_ticks_t now)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    s->flags &= (uint8_t) ~WEIR_LIMIT_IS_USER_OFF;
    if ((s->flags & WEIR_LIMIT_IS_WAITING) != 0) {
        step.arm = true;
        step.at = now;
    } else if ((s->flags & WEIR_LIMIT_IS_MASKED) == 0) {
        step.unmask = true;
    }
    return step;
}

/* ------------------------------------------------------------------------------------------------ set-up, in src/limit.c */

/** What weir_limit_check() and weir_limit_reconfigure() found. */
typedef enum {
    WEIR_LIMIT_OK = 0,
    WEIR_LIMIT_BAD_POLICY,   /**< policy, timing or trigger is none of the named ones, or ONE_SHOT with another policy than bursty */
    WEIR_LIMIT_BAD_INTERVAL, /**< interval is 0, or `burst` intervals reach half a wrap of the ticks */
    WEIR_LIMIT_BAD_BURST,    /**< burst is 0, or not 1 with strict or paced */
    WEIR_LIMIT_BAD_LAG,      /**< lag is not below interval, or not 0 with another policy than strict */
    WEIR_LIMIT_BAD_CHANGE    /**< a change may touch interval, burst and lag only */
} weir_limit_error_t;

/** weir_limit_check() for the compiler: nothing remains of it if the configuration is a constant. */
WEIR_INLINE weir_limit_error_t weir_limit_checked(const weir_limit_config_t *c)
{
    bool bursty = c->policy == WEIR_LIMIT_BURSTY;
    bool counts = bursty || c->policy == WEIR_LIMIT_BUCKET;
    if (c->policy > WEIR_LIMIT_BUCKET || c->timing > WEIR_LIMIT_ONE_SHOT || c->trigger > WEIR_LIMIT_LEVEL ||
        (c->timing == WEIR_LIMIT_ONE_SHOT && !bursty)) {
        return WEIR_LIMIT_BAD_POLICY;
    }
    if (c->policy == WEIR_LIMIT_OFF) {
        return WEIR_LIMIT_OK;
    }
    if (c->burst == 0 || (!counts && c->burst != 1)) {
        return WEIR_LIMIT_BAD_BURST;
    }
    /* A bucket looks N intervals ahead and N - 1 back; the others one. One interval is kept for the ageing and the latency. */
    weir_ticks_t span = c->policy == WEIR_LIMIT_BUCKET ? (weir_ticks_t) (c->burst + 1u) : 2u;
    if (c->interval == 0 || c->interval > (weir_ticks_t) ((WEIR_TICKS_HALF - 1u) / span)) {
        return WEIR_LIMIT_BAD_INTERVAL;
    }
    if (c->lag >= c->interval || (c->lag != 0 && c->policy != WEIR_LIMIT_STRICT)) {
        return WEIR_LIMIT_BAD_LAG;
    }
    return WEIR_LIMIT_OK;
}

/** Whether a configuration can be kept; WEIR_LIMIT_OK iff every promise of its policy holds with it. */
weir_limit_error_t weir_limit_check(const weir_limit_config_t *config);

/** Forgets everything and starts the source at `now`: unmasked, nothing served yet. The configuration has passed weir_limit_check(). */
weir_limit_step_t weir_limit_start_with(weir_limit_state_t *state, const weir_limit_config_t *config, weir_ticks_t now);

/**
 * Changes rate and burst at run time, from thread or interrupt context (regehr2005 §1). What passes in any window is never more than the larger
 * of the two curves lets through (LIMIT-CHANGE-1). On an error nothing is changed and the step is empty.
 */
weir_limit_error_t weir_limit_reconfigure(weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now, weir_limit_step_t *step);

/**
 * For several sources on one compare channel (regehr2005 §3.5): the earliest instant at which one of them wants to expire.
 * Returns false if none does. O(count).
 */
bool weir_limits_next(const weir_limit_t *const *limits, uint8_t count, weir_ticks_t now, weir_ticks_t *at);

/* ------------------------------------------------------------------------------------------------ the same on a weir_limit_t */

/** weir_limit_start_with() on a limiter that can change. */
WEIR_INLINE weir_limit_step_t weir_limit_start(weir_limit_t *limit, weir_ticks_t now)
{
    return weir_limit_start_with(&limit->state, &limit->config, now);
}

/** weir_limit_request_with() on a limiter that can change. */
WEIR_INLINE weir_limit_step_t weir_limit_request(weir_limit_t *limit, weir_ticks_t now)
{
    return weir_limit_request_with(&limit->state, &limit->config, now, false);
}

/** weir_limit_refused_with() on a limiter that can change. */
WEIR_INLINE weir_limit_step_t weir_limit_refused(weir_limit_t *limit, weir_ticks_t now)
{
    return weir_limit_refused_with(&limit->state, &limit->config, now);
}

/** weir_limit_expired_with() on a limiter that can change. */
WEIR_INLINE weir_limit_step_t weir_limit_expired(weir_limit_t *limit, weir_ticks_t now, bool pending)
{
    return weir_limit_expired_with(&limit->state, &limit->config, now, pending);
}

/** weir_limit_tick_with() on a limiter that can change. */
WEIR_INLINE weir_limit_step_t weir_limit_tick(weir_limit_t *limit, weir_ticks_t now, bool pending)
{
    return weir_limit_tick_with(&limit->state, &limit->config, now, pending);
}

#endif
