/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * mtime and mtimecmp as the limiters' timer: ticks are the low word of mtime; both words of the
 * compare register are written.
 *
 * The timer's interrupt stays enabled. If no limiter wants it, it is set WEIR_RISCV_REST ahead, and
 * then ages idle sources (CONTRACTS.md, Ageing): so an instant in a comparison is never half a wrap
 * old, and no enable bit needs to be switched.
 */
#ifndef WEIR_RISCV_TIMER_H
#define WEIR_RISCV_TIMER_H

#include "weir/riscv/csr.h"

#if WEIR_TICK_BITS != 32
#error "ports/riscv counts in the low word of mtime: compile with -DWEIR_TICK_BITS=32"
#endif

/** Ticks between two ageings, an eighth of a wrap (weir_riscv_can_keep_young()). */
#define WEIR_RISCV_REST ((weir_ticks_t) 0x20000000u)

/**
 * WEIR_RISCV_REST, computed at the place of its use: the compiler would derive a constant from a
 * condition by shifts, which take a clock per bit on a processor without a shifter.
 */
WEIR_INLINE weir_ticks_t weir_riscv_rest(void)
{
    weir_ticks_t rest = WEIR_RISCV_REST;
    __asm__("" : "+r"(rest));
    return rest;
}

/** The present instant in ticks. */
WEIR_INLINE weir_ticks_t weir_riscv_now(void)
{
    return WEIR_CHIP_MTIME[0];
}

/** An instant with all its bits. */
typedef struct {
    uint32_t high;
    weir_ticks_t low;
} weir_riscv_instant_t;

/**
 * The present instant. The high word is read before the low one: if a carry comes in between, the
 * instant is a whole wrap early, once in a wrap, and so is an alarm that is counted from it: its
 * interrupt finds nothing due. In the other order the alarm would be a whole wrap late.
 */
WEIR_INLINE weir_riscv_instant_t weir_riscv_instant(void)
{
    /*
     * The address is computed here: a constant that the compiler knew would occupy a register
     * through the whole interrupt, and this register would have to be saved.
     */
    volatile uint32_t *mtime;
    __asm__("li %0, %1" : "=r"(mtime) : "i"(WEIR_CHIP_MTIME));
    weir_riscv_instant_t now;
    now.high = mtime[1];
    now.low = mtime[0];
    return now;
}

/**
 * Sets the timer to interrupt `left` ticks, less than half a wrap, after `now`, a very recent
 * instant. Call with interrupts off, because the timer may compare with a half-written instant
 * meanwhile.
 */
WEIR_INLINE void weir_riscv_alarm_after(weir_riscv_instant_t now, weir_ticks_t left)
{
    volatile uint32_t *mtimecmp;
    __asm__("li %0, %1" : "=r"(mtimecmp) : "i"(WEIR_CHIP_MTIME));
    mtimecmp += WEIR_CHIP_MTIMECMP - WEIR_CHIP_MTIME;
    weir_ticks_t at = (weir_ticks_t) (now.low + left);
    mtimecmp[0] = at;
    mtimecmp[1] = now.high + (at < now.low ? 1u : 0u);
}

/** Sets the timer to interrupt at `at`, less than half a wrap away from `now`; at once if that
 * instant is reached. */
WEIR_INLINE void weir_riscv_alarm_at(weir_riscv_instant_t now, weir_ticks_t at)
{
    weir_riscv_alarm_after(now, weir_ticks_reached(now.low, at) ? 0 : weir_ticks_between(now.low, at));
}

/** Like weir_riscv_alarm_at(), unless the timer is set for an earlier instant, which another source
 * wants. */
WEIR_INLINE void weir_riscv_alarm_by(weir_riscv_instant_t now, weir_ticks_t at)
{
    if (!weir_ticks_reached(at, WEIR_CHIP_MTIMECMP[0])) {
        weir_riscv_alarm_at(now, at);
    }
}

#endif
