/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The timer of a group that every Cortex-M3 or larger has: SysTick is the alarm (ARMv7-M
 * Architecture Reference Manual, B3.3), and the cycle counter of the debug unit tells the time
 * (C1.8).
 *
 * SysTick has 24 bits, so an alarm that is further away comes in steps of 2^24 clocks. Each step is
 * an interrupt in which nothing is due. If an RTOS uses SysTick for its tick, the group uses that
 * tick (WEIR_CORTEX_M_TICKED_GROUP).
 */
#ifndef WEIR_CHIPS_SYSTICK_H
#define WEIR_CHIPS_SYSTICK_H

#include "weir/cortex_m/group.h"

/** The largest interval that SysTick can count, in clocks of the processor. */
#define WEIR_SYSTICK_MOST 0xffffffu

/** Stops SysTick. */
WEIR_INLINE void weir_systick_stop(void)
{
    *(volatile uint32_t *) 0xe000e010u = 0; /* SYST_CSR */
}

/** Makes SysTick interrupt every `clocks` + 1 clocks of the processor. `clocks` is at most
 * WEIR_SYSTICK_MOST. */
WEIR_INLINE void weir_systick_start(uint32_t clocks)
{
    weir_systick_stop();
    *(volatile uint32_t *) 0xe000e014u = clocks; /* SYST_RVR */
    *(volatile uint32_t *) 0xe000e018u = 0;      /* SYST_CVR */
    *(volatile uint32_t *) 0xe000e010u = 7;      /* SYST_CSR: CLKSOURCE, TICKINT, ENABLE */
}

/** Starts the cycle counter, which a reset leaves stopped. */
WEIR_INLINE void weir_cycles_begin(void)
{
    *(volatile uint32_t *) 0xe000edfcu |= 1u << 24; /* DEMCR.TRCENA */
    *(volatile uint32_t *) 0xe0001000u |= 1u;       /* DWT_CTRL.CYCCNTENA */
}

/** The number of clocks of the processor: 32 bits that count up and wrap. */
WEIR_INLINE uint32_t weir_cycles(void)
{
    return *(volatile uint32_t *) 0xe0001004u; /* DWT_CYCCNT */
}

/** SysTick and the cycle counter as a timer of the port, at the processor's clock. */
#define WEIR_SYSTICK(name) WEIR_SYSTICK_BESIDE(name, weir_cycles_begin(), weir_cycles())

/**
 * Does the same as WEIR_SYSTICK with another counter in place of the cycle counter. The statement
 * `begin_it` starts the counter, and the expression `instant` is its value: 32 bits that count up
 * once per clock of the processor, and wrap.
 */
#define WEIR_SYSTICK_BESIDE(name, begin_it, instant)                                                                                       \
    enum { name##_irq = WEIR_NVIC_SYSTICK };                                                                                               \
    WEIR_INLINE weir_ticks_t name##_now(void)                                                                                              \
    {                                                                                                                                      \
        return (instant);                                                                                                                  \
    }                                                                                                                                      \
    /* SysTick begins again after 0. The code that acknowledges the interrupt stops it. */                                                 \
    WEIR_INLINE void name##_set(weir_ticks_t left)                                                                                         \
    {                                                                                                                                      \
        weir_systick_start(left < WEIR_SYSTICK_MOST ? left : WEIR_SYSTICK_MOST);                                                           \
    }                                                                                                                                      \
    WEIR_INLINE void name##_acknowledge(void)                                                                                              \
    {                                                                                                                                      \
        weir_systick_stop();                                                                                                               \
    }                                                                                                                                      \
    WEIR_INLINE void name##_begin(void)                                                                                                    \
    {                                                                                                                                      \
        begin_it;                                                                                                                          \
        weir_systick_stop();                                                                                                               \
    }                                                                                                                                      \
    WEIR_CORTEX_M_TIMER(name)

#endif
