/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * limit: bounds how often a source may interrupt (regehr2005 §3 and §4).
 *
 * The limiter is a pure state machine. Its inputs are events (request, timer expired, user enable
 * and disable, reconfigure), and its outputs are actions (serve, mask, unmask, arm). It reads no
 * clock and no register; the port does so, and performs the actions. The promises of each policy
 * are numbered in core/CONTRACTS.md, and the comments here cite these numbers.
 *
 * Every function of this header is inline, and uses no division, heap, libc or function pointer. If
 * the configuration is a compile-time constant, a compiler reduces each function to the few
 * instructions of its policy. If it is in RAM, rates and bursts can change at run time
 * (weir_limit_reconfigure(), src/limit.c).
 *
 * Context: calls for the same source must not interrupt each other. On a single processor, call
 * them from its interrupt handlers, or from a thread with these interrupts off.
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include "weir/limit_policies.h"

/* ---------------------------------------------------------------------------------- the events */

/**
 * Call this when the source's interrupt was taken at `now` while the source is on (otherwise call
 * weir_limit_refused()). `elapsed` is true if the port's timer has noted that the watched instant
 * has passed; it is false if the port keeps no such note. Constant time.
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
 * Call this when the source's interrupt was taken although the source is masked or held off,
 * because the interrupt was already on its way. The request is held, unless its level will request
 * again, and the source is masked once more. A port that watches calls weir_limit_elapsed() first
 * if its note is set.
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
        /*
         * The user alone has the source off. The request waits for the user, and for `due` if that
         * is still to come.
         */
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

/** With the policy off: a request that was on its way when the user disabled the source has waited
 * for the user. */
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

/**
 * Call this when the timer has expired. `now` is at or after the armed instant `at`. `pending` is
 * true if the source's pending bit is set. Constant time.
 */
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

/**
 * Returns true iff a held request has waited for the user, who has now enabled the source. An
 * expiry is then wanted at once.
 */
WEIR_INLINE bool weir_limit_is_released(const weir_limit_state_t *s)
{
    return (s->flags & (WEIR_LIMIT_IS_WAITING | WEIR_LIMIT_IS_USER_OFF)) == WEIR_LIMIT_IS_WAITING;
}

/** Returns true iff an expiry is wanted: at once if weir_limit_is_released(), otherwise at
 * state.due. */
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

/**
 * Returns true iff an idle source can outlive `due`, so that `due` has to be aged. This is not so
 * for a bursty limiter that is eager or one-shot, because its first request sets `due` anew.
 */
WEIR_INLINE bool weir_limit_can_age(const weir_limit_state_t *s, const weir_limit_config_t *c)
{
    return (c->policy != WEIR_LIMIT_BURSTY || c->timing == WEIR_LIMIT_LAZY) && !weir_limit_is_armed(s, c);
}

/**
 * The watched instant has passed, however long ago. A port that watches calls this, if its note is
 * set, before weir_limit_refused_with(), weir_limit_user_enable() and weir_limit_reconfigure().
 * (weir_limit_request_with() gets the note as an argument.)
 */
WEIR_INLINE void weir_limit_elapsed(weir_limit_state_t *s, const weir_limit_config_t *c)
{
    if (weir_limit_can_age(s, c)) {
        s->flags |= WEIR_LIMIT_IS_AGED;
    }
}

/**
 * Ages an idle source, so that an instant in the distant past is not mistaken for a future one. A
 * port whose timer has no compare flag to watch with calls this at least once per half a wrap minus
 * `burst` intervals. More frequent calls do no harm.
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

/**
 * The mode without a timer: call this from an existing tick instead of arming a timer. It also ages
 * the source. The tick's period adds to the latency L.
 */
WEIR_INLINE weir_limit_step_t weir_limit_tick_with(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool pending)
{
    if (weir_limit_is_armed(s, c) && (weir_limit_is_released(s) || weir_ticks_reached(now, s->due))) {
        return weir_limit_expired_with(s, c, now, pending);
    }
    weir_limit_age(s, c, now);
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    return step;
}

/** Call this when the user switches the source off (regehr2005 §4). */
WEIR_INLINE weir_limit_step_t weir_limit_user_disable(weir_limit_state_t *s)
{
    weir_limit_step_t step = {false, false, true, false, false, false, false, 0};
    s->flags |= WEIR_LIMIT_IS_USER_OFF;
    return step;
}

/**
 * Call this when the user switches the source on. The source is enabled only if the limiter agrees.
 * Waiting requests are served from the timer's interrupt, not here.
 */
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

/* ---------------------------------------------------------------------- set-up, in src/limit.c */

/** The result of weir_limit_check() and weir_limit_reconfigure(). */
typedef enum {
    WEIR_LIMIT_OK = 0,
    WEIR_LIMIT_BAD_POLICY,   /**< policy, timing or trigger is none of the named ones, or ONE_SHOT with another policy than bursty */
    WEIR_LIMIT_BAD_INTERVAL, /**< interval is 0, or `burst` intervals reach half a wrap of the ticks */
    WEIR_LIMIT_BAD_BURST,    /**< burst is 0, or not 1 with strict or paced */
    WEIR_LIMIT_BAD_LAG,      /**< lag is not below interval, or not 0 with another policy than strict */
    WEIR_LIMIT_BAD_CHANGE    /**< a change may touch interval, burst and lag only */
} weir_limit_error_t;

/**
 * Does the same as weir_limit_check(), for the compiler: it vanishes if the configuration is a
 * constant.
 */
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
    /*
     * The interval is bounded: a bucket looks at most N intervals ahead and N - 1
     * back; the other policies look one ahead. One more interval is reserved for the ageing and the
     * latency.
     */
    weir_ticks_t span = c->policy == WEIR_LIMIT_BUCKET ? (weir_ticks_t) (c->burst + 1u) : 2u;
    if (c->interval == 0 || c->interval > (weir_ticks_t) ((WEIR_TICKS_HALF - 1u) / span)) {
        return WEIR_LIMIT_BAD_INTERVAL;
    }
    if (c->lag >= c->interval || (c->lag != 0 && c->policy != WEIR_LIMIT_STRICT)) {
        return WEIR_LIMIT_BAD_LAG;
    }
    return WEIR_LIMIT_OK;
}

/**
 * Checks a configuration. Returns WEIR_LIMIT_OK iff every promise of its policy holds with it.
 */
weir_limit_error_t weir_limit_check(const weir_limit_config_t *config);

/**
 * Resets all state and starts the source at `now`, unmasked and with nothing served yet. The
 * configuration must have passed weir_limit_check().
 */
weir_limit_step_t weir_limit_start_with(weir_limit_state_t *state, const weir_limit_config_t *config, weir_ticks_t now);

/**
 * Changes rate and burst at run time, from thread or interrupt context (regehr2005 §1). In any
 * window no more requests pass than the larger of the old and the new curve allows
 * (LIMIT-CHANGE-1). On an error nothing is changed, and the step is empty.
 */
weir_limit_error_t weir_limit_reconfigure(weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now, weir_limit_step_t *step);

/**
 * Finds the earliest instant at which one of several sources on the same compare channel wants to
 * expire (regehr2005 §3.5). Returns false if none wants to. O(count).
 */
bool weir_limits_next(const weir_limit_t *const *limits, uint8_t count, weir_ticks_t now, weir_ticks_t *at);

/* ------------------------------------------------------------------ the same on a weir_limit_t */

/** weir_limit_start_with() for a limiter with a changeable configuration. */
WEIR_INLINE weir_limit_step_t weir_limit_start(weir_limit_t *limit, weir_ticks_t now)
{
    return weir_limit_start_with(&limit->state, &limit->config, now);
}

/** weir_limit_request_with() for a limiter with a changeable configuration. */
WEIR_INLINE weir_limit_step_t weir_limit_request(weir_limit_t *limit, weir_ticks_t now)
{
    return weir_limit_request_with(&limit->state, &limit->config, now, false);
}

/** weir_limit_refused_with() for a limiter with a changeable configuration. */
WEIR_INLINE weir_limit_step_t weir_limit_refused(weir_limit_t *limit, weir_ticks_t now)
{
    return weir_limit_refused_with(&limit->state, &limit->config, now);
}

/** weir_limit_expired_with() for a limiter with a changeable configuration. */
WEIR_INLINE weir_limit_step_t weir_limit_expired(weir_limit_t *limit, weir_ticks_t now, bool pending)
{
    return weir_limit_expired_with(&limit->state, &limit->config, now, pending);
}

/** weir_limit_tick_with() for a limiter with a changeable configuration. */
WEIR_INLINE weir_limit_step_t weir_limit_tick(weir_limit_t *limit, weir_ticks_t now, bool pending)
{
    return weir_limit_tick_with(&limit->state, &limit->config, now, pending);
}

#endif
