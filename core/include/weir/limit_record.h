/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The record of a limiter's past. It is empty with WEIR_LIMIT_RECORD 0. Included by weir/limit.h.
 */
#ifndef WEIR_LIMIT_RECORD_H
#define WEIR_LIMIT_RECORD_H

#include "weir/limit_types.h"

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

/**
 * Call this at each expiry and at the unmasking, so that an interval longer than a wrap saturates
 * instead of looking short.
 */
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

/** Records how long a handler ran, from `begin` to `now`. */
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

#endif
