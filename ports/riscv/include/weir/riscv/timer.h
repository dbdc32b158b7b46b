/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * mtime and mtimecmp as the limiters' timer. Ticks are the low word of mtime. Both words of the
 * compare register are written.
 *
 * The timer's interrupt always stays enabled. If no limiter wants it, it is set WEIR_RISCV_REST
 * ticks ahead, and then ages idle sources (CONTRACTS.md, Ageing). So a compared instant is never
 * half a wrap old, and no enable bit needs to be switched.
 */
#ifndef WEIR_RISCV_TIMER_H
#define WEIR_RISCV_TIMER_H

#include "weir/riscv/csr.h"

#if WEIR_TICK_BITS != 32
#error "ports/riscv counts in the low word of mtime: compile with -DWEIR_TICK_BITS=32"
#endif

/** The ticks between two ageings: an eighth of a wrap (weir_riscv_can_keep_young()). */
#define WEIR_RISCV_REST ((weir_ticks_t) 0x20000000u)

/**
 * Computes WEIR_RISCV_REST where it is used. Otherwise the compiler would derive the constant from
 * a condition by shifts, which take a clock per bit on a processor without a barrel shifter.
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

/** An instant with all 64 bits. */
typedef struct {
    uint32_t high;
    weir_ticks_t low;
} weir_riscv_instant_t;

/**
 * Returns the current instant. The high word is read before the low one. If a carry comes in
 * between, which happens at most once per wrap, the instant is a whole wrap too early, and so is an
 * alarm that is computed from it: the alarm's interrupt finds nothing due. In the other order, the
 * alarm would be a whole wrap too late.
 */
WEIR_INLINE weir_riscv_instant_t weir_riscv_instant(void)
{
    /*
     * Computes the address in assembler. If the compiler knew this constant, it would keep it in a
     * register for the whole interrupt, and would have to save the register.
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
 * instant. Call it with interrupts off, because the timer may meanwhile compare with a half-written
 * instant.
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

/** Sets the timer to interrupt at `at`, less than half a wrap away from `now`. If `at` has been
 * reached, the interrupt comes at once. */
WEIR_INLINE void weir_riscv_alarm_at(weir_riscv_instant_t now, weir_ticks_t at)
{
    weir_riscv_alarm_after(now, weir_ticks_reached(now.low, at) ? 0 : weir_ticks_between(now.low, at));
}

/** Does the same as weir_riscv_alarm_at(), unless the timer is already set for an earlier instant,
 * which another source wants. */
WEIR_INLINE void weir_riscv_alarm_by(weir_riscv_instant_t now, weir_ticks_t at)
{
    if (!weir_ticks_reached(at, WEIR_CHIP_MTIMECMP[0])) {
        weir_riscv_alarm_at(now, at);
    }
}

#endif
