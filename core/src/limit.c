/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Set-up and reconfiguration of limiters. This code does not run at each interrupt, and may
 * therefore divide.
 */
#include "weir/limit.h"

static const weir_limit_step_t nothing = {false, false, false, false, false, false, false, 0};

weir_limit_error_t weir_limit_check(const weir_limit_config_t *c)
{
    return weir_limit_checked(c);
}

weir_limit_step_t weir_limit_start_with(weir_limit_state_t *s, const weir_limit_config_t *c, weir_ticks_t now)
{
    static const weir_limit_state_t zero;
    weir_limit_step_t step = nothing;
    *s = zero;
    s->allowed = c->burst;
    step.unmask = true;
    if (c->policy == WEIR_LIMIT_BURSTY) {
        s->due = (weir_ticks_t) (now + c->interval);
        step.arm = c->timing == WEIR_LIMIT_EAGER;
        step.watch = c->timing == WEIR_LIMIT_LAZY;
        step.at = s->due;
    } else {
        s->due = now;
        s->flags = WEIR_LIMIT_IS_AGED;
    }
    return step;
}

/* The instant from which a request is in time after a change, as a signed distance from `now`. */
typedef struct {
    bool full;          /* the new bucket is full, and the past no longer matters */
    weir_ticks_t ahead; /* else `due` is now + ahead - back */
    weir_ticks_t back;
} due_after_change_t;

/*
 * Converts the debt of the old bucket at `now`, which is a number of whole intervals and a part of
 * one. The whole intervals are repaid at the new rate. The part is repaid in no more time than it
 * has left, so that changes that come faster than the interval do not delay the refill. Tokens are
 * counted from the old burst, which is allowed in combination with the longer of the intervals.
 * Only if both the burst and the interval shrink are tokens counted from the new burst, with the
 * difference as a debt: the old burst was taken at the old rate, and its curve does not allow the
 * new rate in addition (LIMIT-CHANGE-1).
 */
static due_after_change_t due_after_change(const weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now)
{
    const weir_limit_config_t *from = &limit->config;
    due_after_change_t after = {false, 0, 0};
    weir_ticks_t full_at = (weir_ticks_t) (limit->state.due + weir_limit_slack(from));
    weir_ticks_t whole = 0;
    bool owes = (limit->state.flags & WEIR_LIMIT_IS_AGED) == 0 && !weir_ticks_reached(now, full_at);
    if (owes) {
        weir_ticks_t left = (weir_ticks_t) (weir_ticks_between(now, full_at) - 1u);
        whole = (weir_ticks_t) (left / from->interval);
        weir_ticks_t part = (weir_ticks_t) (left - (weir_ticks_t) (whole * from->interval) + 1u);
        after.ahead = part < to->interval ? part : to->interval;
        whole++;
    }
    weir_ticks_t tokens = to->interval < from->interval && to->burst < from->burst ? to->burst : from->burst;
    if (whole <= tokens) {
        weir_ticks_t left = (weir_ticks_t) (tokens - whole);
        if (left >= to->burst) {
            after.full = true;
        } else if (owes) {
            after.back = (weir_ticks_t) (left * to->interval);
        } else {
            after.back = (weir_ticks_t) ((weir_ticks_t) (left - 1u) * to->interval);
        }
    } else {
        /*
         * However large the debt is, `due` and the instant at which the bucket is full stay within
         * half a wrap.
         */
        weir_ticks_t debt = (weir_ticks_t) (whole - tokens);
        weir_ticks_t most = (weir_ticks_t) ((WEIR_TICKS_HALF - 1u) / to->interval - to->burst - 1u);
        after.ahead = (weir_ticks_t) (after.ahead + (weir_ticks_t) ((debt < most ? debt : most) * to->interval));
    }
    return after;
}

/* Changes a strict, paced or bucket limiter. */
static void change_spaced(weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now, weir_limit_step_t *step)
{
    weir_limit_state_t *s = &limit->state;
    due_after_change_t after = due_after_change(limit, to, now);
    limit->config = *to;
    s->flags &= (uint8_t) ~WEIR_LIMIT_IS_AGED;
    if (after.full) {
        s->flags |= WEIR_LIMIT_IS_AGED;
        s->due = (weir_ticks_t) (now - weir_limit_slack(to));
    } else {
        s->due = (weir_ticks_t) (now + after.ahead - after.back);
    }
    bool early = !weir_ticks_reached(now, s->due);
    if ((s->flags & WEIR_LIMIT_IS_MASKED) != 0) {
        if (early) {
            s->flags &= (uint8_t) ~WEIR_LIMIT_IS_WAITING;
        }
        step->arm = weir_limit_is_armed(s, to);
        step->at = early ? s->due : now;
        if (!step->arm && !after.full) {
            /* The source waits for the user, so the port's note was about the old bucket. */
            weir_limit_watch(s, to, step);
        }
    } else if (early && to->timing == WEIR_LIMIT_EAGER) {
        s->flags |= WEIR_LIMIT_IS_MASKED;
        weir_limit_note_masked(s, now);
        step->mask = true;
        step->arm = true;
        step->at = s->due;
    } else if (!after.full) {
        weir_limit_watch(s, to, step);
    }
}

/*
 * If one of the two curves lies above the other, every period stays at least as long as that
 * curve's, with at most its burst. If neither does (burst and interval both grow or both shrink),
 * the running period takes at most the smaller burst and lasts for two of the longer periods: what
 * one policy may let through before must not add to what the other may let through after
 * (LIMIT-CHANGE-1; checked exhaustively in tests/).
 */
static void change_bursty(weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now, weir_limit_step_t *step)
{
    weir_limit_state_t *s = &limit->state;
    const weir_limit_config_t from = limit->config;
    bool over = (s->flags & WEIR_LIMIT_IS_AGED) != 0 || weir_ticks_reached(now, s->due);
    limit->config = *to;
    if ((to->burst > from.burst && to->interval > from.interval) || (to->burst < from.burst && to->interval < from.interval)) {
        weir_ticks_t longer = to->interval > from.interval ? to->interval : from.interval;
        s->due = (weir_ticks_t) (now + longer + longer);
        s->allowed = to->burst < s->allowed ? to->burst : s->allowed;
        s->flags &= (uint8_t) ~WEIR_LIMIT_IS_AGED;
        if (to->timing == WEIR_LIMIT_ONE_SHOT && s->count == 0) {
            s->count = 1; /* a one-shot that runs has counted something */
        }
    } else {
        s->allowed = to->burst;
        if (!over && weir_ticks_between(now, s->due) > to->interval) {
            s->due = (weir_ticks_t) (now + to->interval);
        }
    }
    if (s->count >= s->allowed && to->timing != WEIR_LIMIT_LAZY) {
        s->flags &= (uint8_t) ~WEIR_LIMIT_IS_WAITING;
        if ((s->flags & WEIR_LIMIT_IS_MASKED) == 0) {
            s->flags |= WEIR_LIMIT_IS_MASKED;
            weir_limit_note_masked(s, now);
            step->mask = true;
        }
    }
    step->arm = weir_limit_is_armed(s, to);
    step->watch = to->timing == WEIR_LIMIT_LAZY && !step->arm && (s->flags & WEIR_LIMIT_IS_AGED) == 0;
    step->at = weir_limit_is_released(s) ? now : s->due;
}

weir_limit_error_t weir_limit_reconfigure(weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now, weir_limit_step_t *step)
{
    *step = nothing;
    weir_limit_error_t error = weir_limit_check(to);
    if (error != WEIR_LIMIT_OK) {
        return error;
    }
    const weir_limit_config_t *from = &limit->config;
    if (from->policy != to->policy || from->timing != to->timing || from->trigger != to->trigger) {
        return WEIR_LIMIT_BAD_CHANGE;
    }
    if (to->policy == WEIR_LIMIT_BURSTY) {
        change_bursty(limit, to, now, step);
    } else if (to->policy != WEIR_LIMIT_OFF) {
        change_spaced(limit, to, now, step);
    }
    return WEIR_LIMIT_OK;
}

bool weir_limits_next(const weir_limit_t *const *limits, uint8_t count, weir_ticks_t now, weir_ticks_t *at)
{
    bool any = false;
    weir_ticks_t least = 0;
    for (uint8_t i = 0; i < count; i++) {
        const weir_limit_t *limit = limits[i];
        if (!weir_limit_is_armed(&limit->state, &limit->config)) {
            continue;
        }
        weir_ticks_t due = limit->state.due;
        weir_ticks_t left = weir_limit_is_released(&limit->state) || weir_ticks_reached(now, due) ? 0 : weir_ticks_between(now, due);
        if (!any || left < least) {
            any = true;
            least = left;
            *at = (weir_ticks_t) (now + left);
        }
    }
    return any;
}
