/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code that the test firmwares share. They record every event of their sources together with the
 * step that the port performed. At the end they print all events by semihosting, as a line of
 * hexadecimal words per event. Include this file in place of weir/cortex_m.h, and define the
 * functions that are only declared here.
 */
#ifndef TOLD_H
#define TOLD_H

#include <stdint.h>

#include "weir/limit_types.h"

static void note(const weir_limit_state_t *state, uint32_t kind, weir_ticks_t now, bool pending, weir_limit_step_t step);
#define WEIR_CORTEX_M_ON_EVENT(state, kind, now, pending, step) note(state, kind, now, pending, step)

#include <weir/chips/cmsdk.h>
#include <weir/chips/systick.h>
#include <weir/cortex_m.h>

/* Returns the number of a source, or TOLD_NONE. */
static uint32_t told_source(const weir_limit_state_t *state);
#ifndef TOLD_IS_ENABLED
/* Whether the source's enable bit is set, and whether its request waits. */
#define TOLD_IS_ENABLED(source) weir_nvic_is_enabled(20 + (source))
#define TOLD_IS_PENDING(source) weir_nvic_is_pending(20 + (source))
#endif
#ifndef TOLD_LIMIT
/* The current interval of a source that can change, with the burst in the upper 8 bits. */
#define TOLD_LIMIT(source) 0
#endif

/* The buffer of the recorded events. */
#ifndef TOLD_EVENTS
#define TOLD_EVENTS ((volatile uint32_t *) 0x21000000)
#define TOLD_TEXT ((volatile char *) 0x21800000)
#endif
enum { TOLD_MOST = 25000, TOLD_WORDS = 4, TOLD_NONE = 15 };
static uint32_t told_count;
static volatile char *told_end = TOLD_TEXT;

static inline uint32_t exception_now(void)
{
    uint32_t number;
    __asm volatile("mrs %0, ipsr" : "=r"(number));
    return number;
}

/*
 * The words of an event. The first combines the kind, pending, whether a request waits now, the
 * actions in the order of crates/core-sys, the enable bit, the source, and the exception in which
 * the event happens. The others are the instant, the step's instant, and the current limit.
 */
static void note(const weir_limit_state_t *state, uint32_t kind, weir_ticks_t now, bool pending, weir_limit_step_t step)
{
    uint32_t source = told_source(state);
    if (source == TOLD_NONE || told_count >= TOLD_MOST) {
        return;
    }
    volatile uint32_t *event = TOLD_EVENTS + TOLD_WORDS * told_count++;
    uint32_t actions = (uint32_t) step.serve | (uint32_t) step.ack << 1 | (uint32_t) step.mask << 2 | (uint32_t) step.unmask << 3 |
                       (uint32_t) step.arm << 4 | (uint32_t) step.watch << 5 | (uint32_t) step.disarm << 6;
    event[0] = kind | (uint32_t) pending << 4 | (uint32_t) TOLD_IS_PENDING(source) << 5 | actions << 8 |
               (uint32_t) TOLD_IS_ENABLED(source) << 16 | source << 20 | exception_now() << 24;
    event[1] = now;
    event[2] = step.at;
    event[3] = TOLD_LIMIT(source);
}

static void semihosting(uint32_t operation, uint32_t argument)
{
    __asm volatile("mov r0, %0\n\tmov r1, %1\n\tbkpt 0xab" ::"r"(operation), "r"(argument) : "r0", "r1", "memory");
}

static void tell_word(uint32_t word, char after)
{
    for (int shift = 28; shift >= 0; shift -= 4) {
        *told_end++ = "0123456789abcdef"[word >> shift & 15];
    }
    *told_end++ = after;
}

/* Prints the recorded events. */
static inline void tell_events(void)
{
    for (uint32_t at = 0; at < TOLD_WORDS * told_count; at++) {
        tell_word(TOLD_EVENTS[at], at % TOLD_WORDS == TOLD_WORDS - 1 ? '\n' : ' ');
    }
    *told_end = 0;
    semihosting(4, (uint32_t) TOLD_TEXT); /* SYS_WRITE0 */
}

/* Ends the run with an exit code. */
static inline void leave(uint32_t code)
{
    uint32_t block[2] = {0x20026, code};
    semihosting(0x20, (uint32_t) block); /* SYS_EXIT_EXTENDED */
}

static inline void wait(uint32_t turns)
{
    for (volatile uint32_t left = turns; left > 0; left--) {
    }
}

/* Returns a pseudo-random number from 0 to `below` - 1. The sequence is the same in each run. */
static inline uint32_t dice(uint32_t below)
{
    static uint32_t state = 2463534242;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

/* Waits for a random number of turns: mostly few, and sometimes many times as many. */
static inline void wait_at_random(uint32_t most)
{
    wait(1 + dice(most) * (dice(8) == 0 ? 8 : 1));
}

static inline void stop(void)
{
    for (;;) {
    }
}

typedef void (*vector)(void);
/* The beginning of a vector table: the initial stack pointer, the reset handler, and the fault
 * handlers. */
#define TOLD_FIRST_VECTORS [0] = (vector) 0x20400000, [1] = start, [2] = stop, [3] = stop

#endif
