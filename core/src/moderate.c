/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Set-up and change of moderated queues, and searches over all queues. */
#include "weir/moderate.h"

weir_moderate_error_t weir_moderate_check(const weir_moderate_config_t *c)
{
    if (c->size == 0) {
        return WEIR_MODERATE_BAD_SIZE;
    }
    if (c->absolute >= WEIR_TICKS_HALF || (c->absolute == 0 && (c->packet != 0 || c->count > 1))) {
        return WEIR_MODERATE_BAD_ABSOLUTE;
    }
    if (c->packet > c->absolute) {
        return WEIR_MODERATE_BAD_PACKET;
    }
    if (c->count > c->size) {
        return WEIR_MODERATE_BAD_COUNT;
    }
    return WEIR_MODERATE_OK;
}

void weir_moderate_start(weir_moderate_t *queue, const weir_moderate_config_t *config)
{
    static const weir_moderate_state_t zero;
    queue->config = *config;
    queue->state = zero;
}

weir_moderate_error_t weir_moderate_reconfigure(weir_moderate_t *queue, const weir_moderate_config_t *to, weir_ticks_t now, bool *interrupt)
{
    *interrupt = false;
    weir_moderate_error_t error = weir_moderate_check(to);
    if (error != WEIR_MODERATE_OK) {
        return error;
    }
    queue->config = *to;
    weir_moderate_state_t *s = &queue->state;
    if (s->phase == WEIR_MODERATE_OPEN && (weir_moderate_is_enough(s, to) || weir_moderate_is_due(s, to, now))) {
        weir_moderate_raise(s);
        *interrupt = true;
    }
    return WEIR_MODERATE_OK;
}

bool weir_moderate_next(const weir_moderate_t *queues, uint16_t count, weir_ticks_t now, weir_ticks_t *at)
{
    bool any = false;
    weir_ticks_t least = 0;
    for (uint16_t i = 0; i < count; i++) {
        const weir_moderate_state_t *s = &queues[i].state;
        if (s->phase != WEIR_MODERATE_OPEN) {
            continue;
        }
        weir_ticks_t span = weir_moderate_span(s, &queues[i].config);
        weir_ticks_t waited = weir_ticks_between(s->first, now);
        weir_ticks_t left = waited >= span ? 0 : (weir_ticks_t) (span - waited);
        if (!any || left < least) {
            any = true;
            least = left;
            *at = (weir_ticks_t) (now + left);
        }
    }
    return any;
}

uint16_t weir_moderate_expired(weir_moderate_t *queues, uint16_t count, uint16_t from, weir_ticks_t now)
{
    uint16_t i = from;
    while (i < count && !weir_moderate_expired_with(&queues[i].state, &queues[i].config, now)) {
        i++;
    }
    return i;
}
