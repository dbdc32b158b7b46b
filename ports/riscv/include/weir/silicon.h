/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The driver of the limiter in silicon (rtl/limit), for any processor that reaches its registers as
 * memory.
 *
 *     static weir_silicon_t limiter;
 *
 *     weir_silicon_open(&limiter, 0x11000000u);
 *     weir_silicon_limit(&limiter, UART, WEIR_LIMIT_BUCKET, WEIR_SILICON_RATE(4000, 1, 32), 4);   // 4 at once, one more every 4000 clocks
 *     weir_silicon_lock(&limiter, UART);
 *
 * The limiter rejects invalid accesses by a bus error, which not every processor reports to its
 * program. So each call first reads from the limiter what was built (SHAPE, WIDTHS) and whether the
 * source is locked. If the call is not possible, it returns the reason and writes nothing.
 *
 * The driver needs a limiter whose registers can be read. A limiter that was built with READBACK =
 * 0 is set up by plain writes of constants (weir generate --rtl makes them).
 *
 * Context: calls that write CONTROL of one source must not interrupt each other. These are all
 * calls except those that read, and weir_silicon_clear_held(). Sources are independent of each
 * other.
 */
#ifndef WEIR_SILICON_H
#define WEIR_SILICON_H

#include <stdbool.h>
#include <stdint.h>

#include "weir/limit.h"
#include "weir_limit.h" /* rtl/limit/registers/generated */

/** A limiter with the parameters that weir_silicon_open() has read from it. */
typedef struct {
    uintptr_t base;
    uint32_t most_rate; /**< RATE takes 1 to this */
    uint32_t phase;     /**< 2^PHASE_BITS - 1 */
    uint32_t tick;      /**< clocks in which a phase is advanced once */
    uint32_t shape;     /**< SHAPE, as read */
    uint16_t sources;   /**< 1 to 1024 */
    uint8_t most_burst; /**< BURST takes 1 to this; 1: strict only */
    bool counts;        /**< HELD is there */
} weir_silicon_t;

/** The reason why a call did nothing. */
typedef enum {
    WEIR_SILICON_OK = 0,
    WEIR_SILICON_ABSENT,     /**< no limiter answers at this address, or one of another version, or one that cannot be read */
    WEIR_SILICON_BAD_SOURCE, /**< the limiter has no such source */
    WEIR_SILICON_BAD_RATE,   /**< RATE is 0 or wider than the register: an interval that the formula cannot give */
    WEIR_SILICON_BAD_BURST,  /**< BURST is 0 or wider than the register; not 1 with strict */
    WEIR_SILICON_BAD_POLICY, /**< none of strict, bucket, bursty (off, paced); or one that was not built */
    WEIR_SILICON_NOT_BUILT,  /**< this limiter has no such bit or register */
    WEIR_SILICON_LOCKED      /**< until reset */
} weir_silicon_error_t;

/*
 * ------------------------------------------------------------------------------------------------ intervals
 *
 * T = tick * ceil(2^W / RATE). With m = 2^W - 1: ceil((m + 1) / d) = m / d + 1 for whole d from 1
 * to m + 1, so 32 bits are enough, for W = 32, too.
 */

#define WEIR_SILICON_PHASE_(bits) (0xffffffffu >> (32 - (bits)))
#define WEIR_SILICON_TICKS_(interval, tick) (((interval) + (tick) - 1u) / (tick))

/**
 * The RATE for an interval of at least `interval` clocks, and as few more as possible, at
 * PHASE_BITS = `bits`: the limit is never above the one asked for. For constants. The result is 0,
 * which the register refuses, for less than two ticks and for more than 2^W of them. `interval` +
 * `tick` must be below 2^32.
 */
#define WEIR_SILICON_RATE(interval, tick, bits)                                                                                            \
    (WEIR_SILICON_TICKS_(interval, tick) < 2u                                                                                              \
         ? 0u                                                                                                                              \
         : WEIR_SILICON_PHASE_(bits) / (WEIR_SILICON_TICKS_(interval, tick) < 2u ? 1u : WEIR_SILICON_TICKS_(interval, tick) - 1u))

/** The interval in clocks that a RATE of at least 1 actually gives, in 64 bits. For constants. */
#define WEIR_SILICON_INTERVAL(rate, tick, bits) ((uint64_t) (tick) * ((uint64_t) (WEIR_SILICON_PHASE_(bits) / (rate)) + 1u))

/**
 * Does the same as WEIR_SILICON_RATE() for this limiter at run time, by two divisions in 32 bits.
 * The result is 0 also if the interval would need more bits than RATE has.
 */
static inline uint32_t weir_silicon_rate(const weir_silicon_t *limiter, uint32_t interval)
{
    uint32_t ticks = interval / limiter->tick;
    if (ticks * limiter->tick != interval) {
        ticks++;
    }
    uint32_t rate = ticks < 2 ? 0 : limiter->phase / (ticks - 1u);
    return rate > limiter->most_rate ? 0 : rate;
}

/* ----------------------------------------------------------------------------------- registers */

/** The address of a register with this offset (weir_limit.h). */
WEIR_INLINE volatile uint32_t *weir_silicon_register(const weir_silicon_t *limiter, uint32_t offset)
{
    return (volatile uint32_t *) (limiter->base + offset);
}

WEIR_INLINE uint32_t weir_silicon_read(const weir_silicon_t *limiter, uint32_t offset)
{
    return *weir_silicon_register(limiter, offset);
}

WEIR_INLINE void weir_silicon_write(const weir_silicon_t *limiter, uint32_t offset, uint32_t value)
{
    *weir_silicon_register(limiter, offset) = value;
}

/* One field of a register's value. */
#define WEIR_SILICON_FIELD(value, field) (((value) >> field##_SHIFT) & field##_MASK)

/** True iff the limiter was built with the feature of this bit of SHAPE. */
WEIR_INLINE bool weir_silicon_has(const weir_silicon_t *limiter, uint32_t shape_bit)
{
    return (limiter->shape & shape_bit) != 0;
}

/** Reads the parameters of the limiter at `base`. The limiter's state does not change. */
static inline weir_silicon_error_t weir_silicon_open(weir_silicon_t *limiter, uintptr_t base)
{
    limiter->base = base;
    if (weir_silicon_read(limiter, WEIR_LIMIT_ID) != WEIR_LIMIT_ID_VALUE) {
        return WEIR_SILICON_ABSENT;
    }
    uint32_t widths = weir_silicon_read(limiter, WEIR_LIMIT_WIDTHS);
    uint32_t burst_bits = WEIR_SILICON_FIELD(widths, WEIR_LIMIT_WIDTHS_BURST);
    limiter->shape = weir_silicon_read(limiter, WEIR_LIMIT_SHAPE);
    limiter->sources = (uint16_t) (WEIR_SILICON_FIELD(limiter->shape, WEIR_LIMIT_SHAPE_LAST) + 1u);
    limiter->tick = weir_silicon_read(limiter, WEIR_LIMIT_TICK);
    limiter->phase = WEIR_SILICON_PHASE_(WEIR_SILICON_FIELD(widths, WEIR_LIMIT_WIDTHS_PHASE));
    limiter->most_rate = WEIR_SILICON_PHASE_(WEIR_SILICON_FIELD(widths, WEIR_LIMIT_WIDTHS_RATE));
    limiter->most_burst = burst_bits == 0 ? 1 : (uint8_t) WEIR_SILICON_PHASE_(burst_bits);
    limiter->counts = WEIR_SILICON_FIELD(widths, WEIR_LIMIT_WIDTHS_HELD) != 0;
    return WEIR_SILICON_OK;
}

/* ---------------------------------------------------------------------------------- setting up */

/* Sets and clears bits of CONTROL. ENABLE always changes; the other bits change unless the source
 * is locked. */
static inline weir_silicon_error_t weir_silicon_control_(const weir_silicon_t *limiter, uint16_t source, uint32_t clear, uint32_t set)
{
    if (source >= limiter->sources) {
        return WEIR_SILICON_BAD_SOURCE;
    }
    uint32_t before = weir_silicon_read(limiter, WEIR_LIMIT_CONTROL(source));
    uint32_t after = (before & ~clear) | set;
    if ((before & WEIR_LIMIT_CONTROL_LOCK_BIT) != 0 && ((before ^ after) & ~WEIR_LIMIT_CONTROL_ENABLE_BIT) != 0) {
        return WEIR_SILICON_LOCKED;
    }
    weir_silicon_write(limiter, WEIR_LIMIT_CONTROL(source), after);
    return WEIR_SILICON_OK;
}

/**
 * Limits a source: `policy` is WEIR_LIMIT_STRICT, _BUCKET or _BURSTY (one-shot), `rate` a RATE,
 * `burst` 1 with strict. May be called again while the limiter runs: for the few clocks between its
 * writes the new rate is in force with the old burst, then both with the old policy. The enable bit
 * does not change.
 */
static inline weir_silicon_error_t weir_silicon_limit(const weir_silicon_t *limiter, uint16_t source, uint8_t policy, uint32_t rate,
                                                      uint8_t burst)
{
    bool is_bursty = policy == WEIR_LIMIT_BURSTY;
    if (source >= limiter->sources) {
        return WEIR_SILICON_BAD_SOURCE;
    }
    if ((policy != WEIR_LIMIT_STRICT && policy != WEIR_LIMIT_BUCKET && !is_bursty) ||
        (is_bursty && !weir_silicon_has(limiter, WEIR_LIMIT_SHAPE_BURSTS_BIT))) {
        return WEIR_SILICON_BAD_POLICY;
    }
    if (rate == 0 || rate > limiter->most_rate) {
        return WEIR_SILICON_BAD_RATE;
    }
    if (burst == 0 || burst > limiter->most_burst || (policy == WEIR_LIMIT_STRICT && burst != 1)) {
        return WEIR_SILICON_BAD_BURST;
    }
    if ((weir_silicon_read(limiter, WEIR_LIMIT_CONTROL(source)) & WEIR_LIMIT_CONTROL_LOCK_BIT) != 0) {
        return WEIR_SILICON_LOCKED;
    }
    weir_silicon_write(limiter, WEIR_LIMIT_RATE(source), rate);
    weir_silicon_write(limiter, WEIR_LIMIT_BURST(source), burst);
    return weir_silicon_control_(limiter, source, WEIR_LIMIT_CONTROL_POLICY_BIT,
                                 WEIR_LIMIT_CONTROL_LIMIT_BIT | (is_bursty ? WEIR_LIMIT_CONTROL_POLICY_BIT : 0));
}

/** Lets all requests of a source through, or limits them again with the old settings. */
static inline weir_silicon_error_t weir_silicon_set_limited(const weir_silicon_t *limiter, uint16_t source, bool on)
{
    if (!weir_silicon_has(limiter, WEIR_LIMIT_SHAPE_LIMITS_BIT) && !on) {
        return WEIR_SILICON_NOT_BUILT;
    }
    return weir_silicon_control_(limiter, source, WEIR_LIMIT_CONTROL_LIMIT_BIT, on ? WEIR_LIMIT_CONTROL_LIMIT_BIT : 0);
}

/** Sets the user's enable bit (regehr2005 §4), also for a locked source. */
static inline weir_silicon_error_t weir_silicon_set_enabled(const weir_silicon_t *limiter, uint16_t source, bool on)
{
    if (!weir_silicon_has(limiter, WEIR_LIMIT_SHAPE_ENABLES_BIT) && !on) {
        return WEIR_SILICON_NOT_BUILT;
    }
    return weir_silicon_control_(limiter, source, WEIR_LIMIT_CONTROL_ENABLE_BIT, on ? WEIR_LIMIT_CONTROL_ENABLE_BIT : 0);
}

/** Sets whether the beginning of an overload of this source requests the limiter's own interrupt.
 * */
static inline weir_silicon_error_t weir_silicon_set_notify(const weir_silicon_t *limiter, uint16_t source, bool on)
{
    if (!weir_silicon_has(limiter, WEIR_LIMIT_SHAPE_OVERLOAD_BIT) && on) {
        return WEIR_SILICON_NOT_BUILT;
    }
    return weir_silicon_control_(limiter, source, WEIR_LIMIT_CONTROL_NOTIFY_BIT, on ? WEIR_LIMIT_CONTROL_NOTIFY_BIT : 0);
}

/** Locks all settings of a source except the enable bit, until reset. */
static inline weir_silicon_error_t weir_silicon_lock(const weir_silicon_t *limiter, uint16_t source)
{
    if (!weir_silicon_has(limiter, WEIR_LIMIT_SHAPE_LOCK_BIT)) {
        return WEIR_SILICON_NOT_BUILT;
    }
    return weir_silicon_control_(limiter, source, 0, WEIR_LIMIT_CONTROL_LOCK_BIT);
}

/* -------------------------------------------------------------------------------- what happens */

/**
 * The number of a source's requests that were not delivered at once, since the start or the last
 * clearing. The counter saturates. The result is 0 if there is no counter or no such source.
 */
static inline uint32_t weir_silicon_held(const weir_silicon_t *limiter, uint16_t source)
{
    if (!limiter->counts || source >= limiter->sources) {
        return 0;
    }
    return WEIR_SILICON_FIELD(weir_silicon_read(limiter, WEIR_LIMIT_HELD(source)), WEIR_LIMIT_HELD_COUNT);
}

/** Clears the count of a source's requests that were not delivered at once. */
static inline weir_silicon_error_t weir_silicon_clear_held(const weir_silicon_t *limiter, uint16_t source)
{
    if (source >= limiter->sources) {
        return WEIR_SILICON_BAD_SOURCE;
    }
    if (!limiter->counts) {
        return WEIR_SILICON_NOT_BUILT;
    }
    weir_silicon_write(limiter, WEIR_LIMIT_HELD(source), 0);
    return WEIR_SILICON_OK;
}

/** True iff the source is in overload. An overload begins with the first request that is held back,
 * and ends when the whole burst is available again and no request waits. */
static inline bool weir_silicon_is_overloaded(const weir_silicon_t *limiter, uint16_t source)
{
    return source < limiter->sources && (weir_silicon_read(limiter, WEIR_LIMIT_STATUS(source)) & WEIR_LIMIT_STATUS_OVERLOAD_BIT) != 0;
}

/**
 * For the limiter's own interrupt: returns and clears the overloads that began since the last call,
 * with a bit for each of the sources 32 * `word` to 32 * `word` + 31. The limiter's interrupt
 * requests until every word has been read. An overload that begins in the meantime is kept for the
 * next call. The result is 0 if there are no such sources.
 */
static inline uint32_t weir_silicon_take_began(const weir_silicon_t *limiter, uint8_t word)
{
    if (32u * word >= limiter->sources || !weir_silicon_has(limiter, WEIR_LIMIT_SHAPE_OVERLOAD_BIT)) {
        return 0;
    }
    uint32_t began = weir_silicon_read(limiter, WEIR_LIMIT_BEGAN(word));
    weir_silicon_write(limiter, WEIR_LIMIT_BEGAN(word), began);
    return began;
}

#endif
