/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The interrupt controller and the priority mask (ARMv7-M Architecture Reference Manual, B3.4 and
 * B1.4.3). Each register takes a one for the bit that it changes, so none is read first.
 */
#ifndef WEIR_CORTEX_M_NVIC_H
#define WEIR_CORTEX_M_NVIC_H

#include <stdbool.h>
#include <stdint.h>

#include "weir/ticks.h"

#define WEIR_NVIC_REGISTER(offset, irq) (*(volatile uint32_t *) (0xe000e000u + (offset) + 4u * ((irq) / 32u)))
#define WEIR_NVIC_BIT(irq) (1u << ((irq) % 32u))

/** Lets a line in. Its pending bit, if set, interrupts at once. */
WEIR_INLINE void weir_nvic_enable(uint32_t irq)
{
    WEIR_NVIC_REGISTER(0x100u, irq) = WEIR_NVIC_BIT(irq);
}

/**
 * Masks a line; its pending bit goes on noting requests. When this returns the line interrupts no
 * more: without the barriers it could once.
 */
WEIR_INLINE void weir_nvic_disable(uint32_t irq)
{
    WEIR_NVIC_REGISTER(0x180u, irq) = WEIR_NVIC_BIT(irq);
    __asm volatile("dsb\n\tisb" ::: "memory");
}

/** Is the line let in? */
WEIR_INLINE bool weir_nvic_is_enabled(uint32_t irq)
{
    return (WEIR_NVIC_REGISTER(0x100u, irq) & WEIR_NVIC_BIT(irq)) != 0;
}

/** Makes a line interrupt as if it had asked. */
WEIR_INLINE void weir_nvic_pend(uint32_t irq)
{
    WEIR_NVIC_REGISTER(0x200u, irq) = WEIR_NVIC_BIT(irq);
}

/** Does a request wait? */
WEIR_INLINE bool weir_nvic_is_pending(uint32_t irq)
{
    return (WEIR_NVIC_REGISTER(0x200u, irq) & WEIR_NVIC_BIT(irq)) != 0;
}

/** Forgets a request that waits. */
WEIR_INLINE void weir_nvic_clear(uint32_t irq)
{
    WEIR_NVIC_REGISTER(0x280u, irq) = WEIR_NVIC_BIT(irq);
}

/** Sets a line's priority: 0 is the most urgent, and chips have only the upper bits. */
WEIR_INLINE void weir_nvic_set_priority(uint32_t irq, uint8_t priority)
{
    *(volatile uint8_t *) (0xe000e400u + irq) = priority;
}

/**
 * Holds back every interrupt that is as urgent as `priority` or less, and returns what
 * weir_cortex_m_restore() needs. Nothing changes where more is held back already: BASEPRI_MAX only
 * takes what is more.
 */
WEIR_INLINE uint32_t weir_cortex_m_hold(uint8_t priority)
{
    uint32_t before;
    __asm volatile("mrs %0, basepri" : "=r"(before)::"memory");
    __asm volatile("msr basepri_max, %0\n\tdsb\n\tisb" ::"r"((uint32_t) priority) : "memory");
    return before;
}

/** Holds back again what was held back before weir_cortex_m_hold(). */
WEIR_INLINE void weir_cortex_m_restore(uint32_t before)
{
    __asm volatile("msr basepri, %0" ::"r"(before) : "memory");
}

#endif
