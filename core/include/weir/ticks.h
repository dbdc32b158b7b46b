/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Time as a counter that wraps.
 *
 * A port counts time in ticks of one timer. Instants are compared modulo the counter's width: an
 * instant is "reached" when it lies less than half a wrap in the past. State that depends on an
 * older instant must be aged before that (weir_limit_age()).
 */
#ifndef WEIR_TICKS_H
#define WEIR_TICKS_H

#include <stdbool.h>
#include <stdint.h>

/** The width of an instant in bits: 16, 32 or 64, the width of the timer that the port reads. */
#ifndef WEIR_TICK_BITS
#define WEIR_TICK_BITS 32
#endif

#if WEIR_TICK_BITS == 16
typedef uint16_t weir_ticks_t;
#define WEIR_TICKS_HALF ((weir_ticks_t) 0x8000u)
#elif WEIR_TICK_BITS == 32
typedef uint32_t weir_ticks_t;
#define WEIR_TICKS_HALF ((weir_ticks_t) 0x80000000u)
#elif WEIR_TICK_BITS == 64
typedef uint64_t weir_ticks_t;
#define WEIR_TICKS_HALF ((weir_ticks_t) 0x8000000000000000u)
#else
#error "WEIR_TICK_BITS must be 16, 32 or 64"
#endif

/**
 * Functions on hot paths are inlined even at -Os, because a call costs an 8-bit processor more than
 * the whole decision.
 */
#if defined(__GNUC__) || defined(__clang__)
#define WEIR_INLINE static inline __attribute__((always_inline))
#define WEIR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define WEIR_INLINE static inline
#define WEIR_UNLIKELY(x) (x)
#endif

/** Returns the ticks from `earlier` to `later`, modulo the width. */
WEIR_INLINE weir_ticks_t weir_ticks_between(weir_ticks_t earlier, weir_ticks_t later)
{
    return (weir_ticks_t) (later - earlier);
}

/** Returns true iff `at` is not after `now`. It is valid while the two are less than half a wrap
 * apart. */
WEIR_INLINE bool weir_ticks_reached(weir_ticks_t now, weir_ticks_t at)
{
    return weir_ticks_between(at, now) < WEIR_TICKS_HALF;
}

#endif
