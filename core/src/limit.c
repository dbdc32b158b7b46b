/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Set-up and reconfiguration of limiters: what does not run at each interrupt, and may therefore divide. */
#include "weir/limit.h"

static const weir_limit_step_t nothing = {false, false, false, false, false, false, false, 0};

weir_limit_error_t weir_limit_check(const weir_limit_config_t *c)
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
    bool strict_eager = c->policy == WEIR_LIMIT_STRICT && c->timing == WEIR_LIMIT_EAGER;
    if (c->lag >= c->interval || (c->lag != 0 && !strict_eager)) {
        return WEIR_LIMIT_BAD_LAG;
    }
    return WEIR_LIMIT_OK;
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

/* Tokens that the old bucket still owes at `now`, rounded up: 0 if it is full (strict and paced: 0 or 1). */
static weir_ticks_t tokens_owed(const weir_limit_t *limit, weir_ticks_t now)
{
    weir_ticks_t full = (weir_ticks_t) (limit->state.due + weir_limit_slack(&limit->config));
    if ((limit->state.flags & WEIR_LIMIT_IS_AGED) != 0 || weir_ticks_reached(now, full)) {
        return 0;
    }
    return (weir_ticks_t) ((weir_ticks_between(now, full) - 1u) / limit->config.interval + 1u);
}

/*
 * The new bucket begins with as many tokens as the smaller of the two holds, less what is owed: so what passes across the change is at most
 * min(N, N') plus one per shorter interval, which the curve with the shorter interval allows.
 */
static void change_spaced(weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now, weir_limit_step_t *step)
{
    weir_limit_state_t *s = &limit->state;
    weir_ticks_t owed = tokens_owed(limit, now);
    weir_ticks_t least = limit->config.burst < to->burst ? limit->config.burst : to->burst;
    weir_ticks_t due = (weir_ticks_t) (now + (weir_ticks_t) (owed + 1u - least) * to->interval);
    bool single = limit->config.burst == 1 && to->burst == 1;
    if (single && owed != 0 && weir_ticks_between(now, s->due) < weir_ticks_between(now, due)) {
        /* One request at a time: every gap stays at least the shorter of the two intervals, so the earlier of the two instants will do. */
        due = s->due;
    }
    bool was_masked = (s->flags & WEIR_LIMIT_IS_MASKED) != 0;
    s->flags &= (uint8_t) ~WEIR_LIMIT_IS_AGED;
    s->due = due;
    limit->config = *to;
    bool early = !weir_ticks_reached(now, due);
    if (was_masked) {
        if ((s->flags & WEIR_LIMIT_IS_WAITING) == 0) {
            step->arm = true;
            step->at = early ? due : now;
        }
    } else if (early && to->timing == WEIR_LIMIT_EAGER) {
        s->flags |= WEIR_LIMIT_IS_MASKED;
        weir_limit_note_masked(s, now);
        step->mask = true;
        step->arm = true;
        step->at = due;
    } else {
        weir_limit_watch(s, to, step);
    }
}

/*
 * The period that is running becomes the first of the new ones: at most the smaller burst in it, and it lasts until both the old and a whole new
 * period are over.
 */
static void change_bursty(weir_limit_t *limit, const weir_limit_config_t *to, weir_ticks_t now, weir_limit_step_t *step)
{
    weir_limit_state_t *s = &limit->state;
    bool was_masked = (s->flags & WEIR_LIMIT_IS_MASKED) != 0;
    bool over = (s->flags & WEIR_LIMIT_IS_AGED) != 0 || weir_ticks_reached(now, s->due);
    bool idle = to->timing == WEIR_LIMIT_ONE_SHOT && s->count == 0;
    weir_ticks_t whole = (weir_ticks_t) (now + to->interval);
    if (over || weir_ticks_between(now, s->due) < to->interval) {
        s->due = whole;
    }
    s->flags &= (uint8_t) ~WEIR_LIMIT_IS_AGED;
    if (to->burst < s->allowed) {
        s->allowed = to->burst;
    }
    limit->config = *to;
    if (!was_masked && s->count >= s->allowed) {
        s->flags |= WEIR_LIMIT_IS_MASKED;
        weir_limit_note_masked(s, now);
        step->mask = true;
    }
    bool masked = (s->flags & WEIR_LIMIT_IS_MASKED) != 0;
    bool waiting = (s->flags & WEIR_LIMIT_IS_WAITING) != 0;
    step->at = s->due;
    step->arm = to->timing == WEIR_LIMIT_EAGER || (to->timing == WEIR_LIMIT_LAZY ? masked && !waiting : !idle);
    step->watch = to->timing == WEIR_LIMIT_LAZY && !step->arm;
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
        weir_ticks_t left = weir_ticks_reached(now, due) ? 0 : weir_ticks_between(now, due);
        if (!any || left < least) {
            any = true;
            least = left;
            *at = (weir_ticks_t) (now + left);
        }
    }
    return any;
}
