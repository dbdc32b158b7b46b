/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The policies: what each decides when an interrupt was taken and when its timer has expired.
 * Included by weir/limit.h, whose events call the right policy.
 */
#ifndef WEIR_LIMIT_POLICIES_H
#define WEIR_LIMIT_POLICIES_H

#include "weir/limit_record.h"

/** The lead of a full bucket: (N - 1) intervals. It is 0 for strict and paced. */
WEIR_INLINE weir_ticks_t weir_limit_slack(const weir_limit_config_t *c)
{
    return c->policy == WEIR_LIMIT_BUCKET ? (weir_ticks_t) ((weir_ticks_t) (c->burst - 1u) * c->interval) : 0;
}

/**
 * Makes the timer note the instant after which the past no longer matters. For a bucket, this is
 * when it is full again.
 */
WEIR_INLINE void weir_limit_watch(const weir_limit_state_t *s, const weir_limit_config_t *c, weir_limit_step_t *step)
{
    step->watch = true;
    step->at = (weir_ticks_t) (s->due + weir_limit_slack(c));
}

/**
 * Call this if no request waits at `now` and `due` is reached. Either the past no longer matters,
 * or the timer notes the instant from which it does not (LIMIT-TIME-2).
 */
WEIR_INLINE void weir_limit_rest(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, weir_limit_step_t *step)
{
    weir_ticks_t slack = weir_limit_slack(c);
    if (slack == 0 || weir_ticks_reached(now, (weir_ticks_t) (s->due + slack))) {
        s->flags |= WEIR_LIMIT_IS_AGED;
    } else {
        weir_limit_watch(s, c, step);
    }
}

/**
 * Masks the source until `due`. A request that an interrupt has already consumed is held in
 * software, unless its level will request again.
 */
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

/**
 * Admits one request at `now` and advances `due`. strict counts from `now`. bucket is a virtual
 * scheduler that is never more than the slack behind.
 */
WEIR_INLINE void weir_limit_admit(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool fresh)
{
    weir_ticks_t slack = weir_limit_slack(c);
    if (slack == 0 || fresh || weir_ticks_between(s->due, now) > slack) {
        s->due = (weir_ticks_t) (now - slack);
    }
    s->due = (weir_ticks_t) (s->due + c->interval);
}

/** strict, paced and bucket: handles an interrupt that was taken. */
WEIR_INLINE weir_limit_step_t weir_limit_request_spaced(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool elapsed)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    if (c->timing != WEIR_LIMIT_LAZY && c->policy != WEIR_LIMIT_BUCKET) {
        /* The source is unmasked only when a request is in time, so no check is needed. */
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

/** bursty: handles an interrupt that was taken. */
WEIR_INLINE weir_limit_step_t weir_limit_request_bursty(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now, bool elapsed)
{
    weir_limit_step_t step = {false, false, false, false, false, false, false, 0};
    bool lazy = c->timing == WEIR_LIMIT_LAZY;
    bool over = lazy && (elapsed || (s->flags & WEIR_LIMIT_IS_AGED) != 0 || weir_ticks_reached(now, s->due));
    if (over) {
        /*
         * A period has passed without a request too many. A timer that interrupts in overload only
         * did not notice it.
         */
        weir_limit_note_in_time(s);
    }
    if (lazy && WEIR_UNLIKELY(s->count >= s->allowed)) {
        if (!over) {
            weir_limit_refuse_until_due(s, c, now, &step);
            return step;
        }
        /*
         * A whole period has passed since the count was cleared. So the count is cleared now, and
         * again one period from now.
         */
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
    /*
     * A lazy limiter masks before the first request too many only if the previous period, too,
     * ended with a waiting request, and this period is not over.
     */
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

/**
 * The user has the source off while its interval ends. Nothing may be served, and the held request
 * must wait (LIMIT-ENABLE-2).
 */
WEIR_INLINE void weir_limit_expired_user_off(weir_limit_state_t *s)
{
    if ((s->flags & WEIR_LIMIT_IS_HELD) != 0) {
        s->flags |= WEIR_LIMIT_IS_WAITING;
    } else {
        weir_limit_note_in_time(s);
        s->flags = WEIR_LIMIT_IS_USER_OFF;
    }
}

/** strict, paced and bucket: handles the expiry of the armed timer. */
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
        /* `due` was reached before the request began to wait, perhaps long ago. */
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
     * The source stays masked while requests keep coming. A lazy limiter whose previous request was
     * also served by an expiry masks for one more interval: otherwise a source at exactly the limit
     * could make it pay a refused interrupt for each one served.
     */
    bool stay = c->timing != WEIR_LIMIT_LAZY || (held && pending) || (s->flags & WEIR_LIMIT_IS_SUSTAINED) != 0;
    if (stay && (c->policy != WEIR_LIMIT_BUCKET || !weir_ticks_reached(now, s->due))) {
        /*
         * Only an expiry can serve the next request, and it does so at least `lag` after the armed
         * instant.
         */
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

/**
 * bursty: between two clearings, the timer was set for a request that waits for the user. This
 * request counts in the current period.
 */
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

/** bursty: handles the expiry of the clearing timer. */
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
            /* The request waited for the user, not for the timer, so the next period begins now. */
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
    } else {
        weir_limit_note_in_time(s);
    }
    if (c->timing != WEIR_LIMIT_ONE_SHOT) {
        /*
         * The next period is counted from the nominal instant. If it were counted from the late
         * one, a source just below the limit could stay in step with the latency, and cause an
         * expiry in each period.
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

#endif
