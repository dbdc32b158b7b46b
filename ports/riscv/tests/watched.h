/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Marks for a run on boards/soc. A mark is an instruction whose address is listed in the section
 * .weir_marks together with its meaning. The simulator records when the instruction retires.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include <stdint.h>

/* ports/riscv/tests/run.py has the same values. */
#define WATCHED_START 0x10
#define WATCHED_DISABLED 0x11
#define WATCHED_ENABLING 0x12
#define WATCHED_HANDLER 0x20

/** Leaves a mark. It may be inlined in several places. */
#define WATCHED(what) __asm__ volatile("1: nop\n .pushsection .weir_marks\n .word 1b, %0\n .popsection" ::"i"(what) : "memory")

/** Ends the run with an exit code, 0 for success. */
static inline __attribute__((always_inline)) void watched_exit(uint32_t code)
{
    *(volatile uint32_t *) 0x1fff0000u = code;
}

/**
 * Returns a pseudo-random number; the sequence is the same in every run. This is a step of
 * Marsaglia's xorshift, and this processor shifts bit by bit.
 */
static inline uint32_t watched_dice(void)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/** Waits for a random time, from some hundred to some ten thousand clocks. */
static inline void watched_wait(void)
{
    for (uint32_t turns = 20u + (watched_dice() & 1023u); turns != 0; turns--) {
        __asm__ volatile("nop");
    }
}

#endif
