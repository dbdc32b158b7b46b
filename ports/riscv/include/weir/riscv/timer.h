/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * mtime and mtimecmp as the limiters' timer: ticks are the low word of mtime, the compare register is written whole.
 *
 * The timer's interrupt stays enabled. Where no limiter wants it, it is set WEIR_RISCV_REST ahead, and then keeps idle sources young (CONTRACTS.md, Ageing):
 * so an instant that is compared is never half a wrap old, and no register needs to be switched on and off.
 */
#ifndef WEIR_RISCV_TIMER_H
#define WEIR_RISCV_TIMER_H

#include "weir/riscv/csr.h"

#if WEIR_TICK_BITS != 32
#error "ports/riscv counts in the low word of mtime: compile with -DWEIR_TICK_BITS=32"
#endif

/** Ticks from one ageing to the next, an eighth of a wrap (weir_riscv_can_keep_young()). */
#define WEIR_RISCV_REST ((weir_ticks_t) 0x20000000u)

/** WEIR_RISCV_REST, made where it is wanted: from a constant the compiler would shift it out of a condition, a clock a bit where there is no shifter. */
WEIR_INLINE weir_ticks_t weir_riscv_rest(void)
{
    weir_ticks_t rest = WEIR_RISCV_REST;
    __asm__("" : "+r"(rest));
    return rest;
}

/** Now, in ticks. */
WEIR_INLINE weir_ticks_t weir_riscv_now(void)
{
    return WEIR_CHIP_MTIME[0];
}

/**
 * Has the timer interrupt at `at`, or at once if that is reached; less than half a wrap away. With interrupts off.
 *
 * The high word is read before the low one: if the carry comes between them the alarm is a whole wrap early, once in a wrap, and its interrupt finds nothing
 * due. In the other order it would be a whole wrap late. The timer may compare with a half-written instant meanwhile, which nobody sees.
 */
WEIR_INLINE void weir_riscv_alarm_at(weir_ticks_t at)
{
    /* An address of its own: one that the compiler knew would live through all of an interrupt, in a register more to save. */
    volatile uint32_t *mtime;
    __asm__("li %0, %1" : "=r"(mtime) : "i"(WEIR_CHIP_MTIME));
    volatile uint32_t *mtimecmp = mtime + (WEIR_CHIP_MTIMECMP - WEIR_CHIP_MTIME);
    uint32_t high = mtime[1];
    weir_ticks_t now = mtime[0];
    if (WEIR_UNLIKELY(weir_ticks_reached(now, at))) {
        at = now;
    }
    mtimecmp[0] = at;
    mtimecmp[1] = high + (at < now ? 1u : 0u);
}

/** The same, unless the timer is set for an earlier instant, which another source wants. */
WEIR_INLINE void weir_riscv_alarm_by(weir_ticks_t at)
{
    if (!weir_ticks_reached(at, WEIR_CHIP_MTIMECMP[0])) {
        weir_riscv_alarm_at(at);
    }
}

#endif
