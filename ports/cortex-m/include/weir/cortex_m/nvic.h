/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The interrupt controller and the priority mask (ARMv7-M Architecture Reference Manual, B3.4 and
 * B1.4.3). Writing a one to a bit of these registers changes only that bit, so no register is read
 * first. Lines are numbered from 0, and SysTick, which may be a timer of the port, is -1, as in
 * CMSIS.
 */
#ifndef WEIR_CORTEX_M_NVIC_H
#define WEIR_CORTEX_M_NVIC_H

#include <stdbool.h>
#include <stdint.h>

#include "weir/ticks.h"

#define WEIR_NVIC_REGISTER(offset, irq) (*(volatile uint32_t *) (0xe000e000u + (offset) + 4u * ((uint32_t) (irq) / 32u)))
#define WEIR_NVIC_BIT(irq) (1u << ((uint32_t) (irq) % 32u))
#define WEIR_NVIC_SYSTICK (-1)

/** Enables a line. The line interrupts at once if its pending bit is set. SysTick has no such bit
 * here. */
WEIR_INLINE void weir_nvic_enable(int32_t irq)
{
    if (irq != WEIR_NVIC_SYSTICK) {
        WEIR_NVIC_REGISTER(0x100u, irq) = WEIR_NVIC_BIT(irq);
    }
}

/**
 * Disables a line. Its pending bit continues to record requests. The line does not interrupt any
 * more once this function has returned; without the barriers it could do so once.
 */
WEIR_INLINE void weir_nvic_disable(uint32_t irq)
{
    WEIR_NVIC_REGISTER(0x180u, irq) = WEIR_NVIC_BIT(irq);
    __asm volatile("dsb\n\tisb" ::: "memory");
}

/** Whether the line is enabled. */
WEIR_INLINE bool weir_nvic_is_enabled(uint32_t irq)
{
    return (WEIR_NVIC_REGISTER(0x100u, irq) & WEIR_NVIC_BIT(irq)) != 0;
}

/** Sets the pending bit of a line or of SysTick, as if it had requested an interrupt. */
WEIR_INLINE void weir_nvic_pend(int32_t irq)
{
    if (irq == WEIR_NVIC_SYSTICK) {
        *(volatile uint32_t *) 0xe000ed04u = 1u << 26; /* ICSR.PENDSTSET */
    } else {
        WEIR_NVIC_REGISTER(0x200u, irq) = WEIR_NVIC_BIT(irq);
    }
}

/** Whether the line's pending bit is set. */
WEIR_INLINE bool weir_nvic_is_pending(uint32_t irq)
{
    return (WEIR_NVIC_REGISTER(0x200u, irq) & WEIR_NVIC_BIT(irq)) != 0;
}

/** Clears the line's pending bit. */
WEIR_INLINE void weir_nvic_clear(uint32_t irq)
{
    WEIR_NVIC_REGISTER(0x280u, irq) = WEIR_NVIC_BIT(irq);
}

/** Sets the priority of a line or of SysTick. 0 is the most urgent. Chips implement only the upper
 * bits. */
WEIR_INLINE void weir_nvic_set_priority(int32_t irq, uint8_t priority)
{
    uint32_t address = irq == WEIR_NVIC_SYSTICK ? 0xe000ed23u : 0xe000e400u + (uint32_t) irq; /* SHPR3, NVIC_IPRn */
    *(volatile uint8_t *) address = priority;
}

/**
 * Masks every interrupt that is as urgent as `priority` or less, and returns the argument for
 * weir_cortex_m_restore(). Nothing changes if more interrupts are masked already, because
 * BASEPRI_MAX only accepts a stricter mask.
 */
WEIR_INLINE uint32_t weir_cortex_m_hold(uint8_t priority)
{
    uint32_t before;
    __asm volatile("mrs %0, basepri" : "=r"(before)::"memory");
    __asm volatile("msr basepri_max, %0\n\tdsb\n\tisb" ::"r"((uint32_t) priority) : "memory");
    return before;
}

/** Restores the mask from before weir_cortex_m_hold(). */
WEIR_INLINE void weir_cortex_m_restore(uint32_t before)
{
    __asm volatile("msr basepri, %0" ::"r"(before) : "memory");
}

#endif
