/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The chip-specific part of ports/riscv for boards/soc: VexRiscv_Min, a 64-bit timer and 32 lines
 * that latch a rising edge.
 *
 * A line passes through two enable bits: the controller's ENABLE, which is set once when a source
 * is started, and the processor's own, in a CSR of VexRiscv. Weir masks by the latter, because that
 * takes one instruction, needs no address and is atomic.
 *
 * To support another chip, write another header with these names, and select it by
 * -DWEIR_RISCV_CHIP='"its/header.h"' (ports/riscv/README.md).
 */
#ifndef WEIR_CHIPS_SOC_H
#define WEIR_CHIPS_SOC_H

#include <stdint.h>

/** The timer counts clocks in 64 bits, in two words with the low word first. */
#define WEIR_CHIP_MTIME ((volatile uint32_t *) 0x10010000u)
#define WEIR_CHIP_MTIMECMP ((volatile uint32_t *) 0x10010008u)

#define WEIR_CHIP_PENDINGS (*(volatile uint32_t *) 0x10020000u) /* write one to clear */
#define WEIR_CHIP_ENABLES (*(volatile uint32_t *) 0x10020004u)
#define WEIR_CHIP_MASK_CSR "0xbc0"  /* VexRiscv's irq mask: set bits are on */
#define WEIR_CHIP_TAKEN_CSR "0xfc0" /* the lines that ask, both enable bits applied */
#define WEIR_CHIP_BIT(line) (1u << (line))

/**
 * Masks or unmasks a line, 0 to 31. Call with interrupts off. The bits of the lines 0 to 4 fit into
 * the instruction.
 */
#define WEIR_CHIP_MASK(line) __asm__ volatile("csrc " WEIR_CHIP_MASK_CSR ", %0" ::"rK"(WEIR_CHIP_BIT(line)) : "memory")
#define WEIR_CHIP_UNMASK(line) __asm__ volatile("csrs " WEIR_CHIP_MASK_CSR ", %0" ::"rK"(WEIR_CHIP_BIT(line)) : "memory")
/** Enables a line at the interrupt controller for good. From then on the masking bit decides. Call
 * it with interrupts off. */
#define WEIR_CHIP_CONNECT(line) (WEIR_CHIP_ENABLES |= WEIR_CHIP_BIT(line))
/** The first macro tests a line's pending bit, whether the line is masked or not. The second clears
 * the bit. */
#define WEIR_CHIP_PENDING(line) ((WEIR_CHIP_PENDINGS & WEIR_CHIP_BIT(line)) != 0)
#define WEIR_CHIP_ACK(line) (WEIR_CHIP_PENDINGS = WEIR_CHIP_BIT(line))

/**
 * For the trap's entry, in assembler: sets t0 to a nonzero value iff line %0 requests and is
 * enabled. Only t0 may be changed. The bit of a line above 10 does not fit into an immediate, so it
 * is shifted down, which takes a clock per bit on this processor. A second register would avoid
 * this, but would have to be saved.
 */
#define WEIR_CHIP_DISPATCH                                                                                                                 \
    "csrr t0, " WEIR_CHIP_TAKEN_CSR "\n .if %0 < 11\n andi t0, t0, 1 << %0\n .else\n srli t0, t0, %0\n andi t0, t0, 1\n .endif"
/**
 * In a trap, before the handler: tells the interrupt controller that this line's request is being
 * served. On this chip it clears the pending bit, so that the next edge is kept.
 */
#define WEIR_CHIP_BEGIN(line) WEIR_CHIP_ACK(line)
/** In a trap, after the handler: tells the interrupt controller that the handler has ended. This
 * chip needs nothing. */
#define WEIR_CHIP_END(line) ((void) 0)

#endif
