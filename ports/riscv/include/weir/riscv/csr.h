/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The control registers of RISC-V's machine mode that the port uses, and functions for sections
 * with interrupts off.
 */
#ifndef WEIR_RISCV_CSR_H
#define WEIR_RISCV_CSR_H

#include <stdbool.h>
#include <stdint.h>

#include "weir/ticks.h"

#define WEIR_RISCV_MSTATUS_MIE 0x8u
#define WEIR_RISCV_MIE_TIMER 0x80u
#define WEIR_RISCV_MIE_EXTERNAL 0x800u

/**
 * Switches interrupts off. Returns whether they were on, as the argument for weir_riscv_restore().
 * Both functions are barriers for the compiler.
 */
WEIR_INLINE uint32_t weir_riscv_lock(void)
{
    uint32_t before;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before)::"memory");
    return before & WEIR_RISCV_MSTATUS_MIE;
}

/** Ends a section that weir_riscv_lock() began. Sections nest, and may be used in interrupts as
 * well. */
WEIR_INLINE void weir_riscv_restore(uint32_t before)
{
    __asm__ volatile("csrs mstatus, %0" ::"r"(before) : "memory");
}

/** Switches interrupts on. */
WEIR_INLINE void weir_riscv_interrupts_on(void)
{
    __asm__ volatile("csrsi mstatus, 8" ::: "memory");
}

/** A compiler barrier: the compiler must reload all values from memory after it. */
#define WEIR_RISCV_BARRIER() __asm__ volatile("" ::: "memory")

/** In a trap: returns true iff the trap is an interrupt, not an exception. */
WEIR_INLINE bool weir_riscv_is_interrupt(void)
{
    int32_t cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    return cause < 0;
}

#endif
