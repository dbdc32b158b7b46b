/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Marks for a run on boards/soc: instructions whose addresses are in the section .weir_marks, each
 * with its meaning. The simulator notes when they retire.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include <stdint.h>

/* The twins of these values are in ports/riscv/tests/run.py. */
#define WATCHED_START 0x10
#define WATCHED_DISABLED 0x11
#define WATCHED_ENABLING 0x12
#define WATCHED_HANDLER 0x20

/** Leaves a mark; it may be inlined at several places. */
#define WATCHED(what) __asm__ volatile("1: nop\n .pushsection .weir_marks\n .word 1b, %0\n .popsection" ::"i"(what) : "memory")

/** Ends the run with an exit code, 0 for success. */
static inline __attribute__((always_inline)) void watched_exit(uint32_t code)
{
    *(volatile uint32_t *) 0x1fff0000u = code;
}

/**
 * A pseudo-random number, the same in every run: a step of Marsaglia's xorshift, whose shifts this
 * processor makes bit by bit.
 */
static inline uint32_t watched_dice(void)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/** Waits for some hundred to some ten thousand clocks, at random. */
static inline void watched_wait(void)
{
    for (uint32_t turns = 20u + (watched_dice() & 1023u); turns != 0; turns--) {
        __asm__ volatile("nop");
    }
}

#endif
