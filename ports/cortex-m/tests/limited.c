/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A limited source on IRQ20 of mps2-an385 (and with NESTED one on IRQ21, in another, more urgent
 * group). It writes down every event, with what the port did, and tells all of them by
 * semihosting: a line of hexadecimal words per event. Macros: LIMIT (the initialiser), DIVISOR,
 * LAST (the tick at which it ends), PRIORITY (the group's), USER (the thread switches the source
 * off and on, each for so many turns of a loop), WORK (turns of a loop in the handler's body),
 * TICKED (no timer, but a tick of so many clocks).
 */
#include <stdint.h>

#include "weir/limit_types.h"

static void note(const weir_limit_state_t *state, uint32_t kind, weir_ticks_t now, bool pending, weir_limit_step_t step);
#define WEIR_CORTEX_M_ON_EVENT(state, kind, now, pending, step) note(state, kind, now, pending, step)

#include <weir/chips/cmsdk.h>
#include <weir/cortex_m.h>

#ifndef PRIORITY
#define PRIORITY 0x80
#endif
#ifndef USER
#define USER 0
#endif
#ifndef WORK
#define WORK 0
#endif

#ifdef TICKED
WEIR_CMSDK_DUAL_TIMER(counter, 0x40002000, 10, DIVISOR);
WEIR_CORTEX_M_CLOCK(ticks, counter_now());
#else
WEIR_CMSDK_DUAL_TIMER(ticks, 0x40002000, 10, DIVISOR);
#endif

volatile uint32_t served, progress;

#ifdef NESTED
static volatile bool is_in_body;
#endif

WEIR_CORTEX_M_LIMIT(source, ticks, 20, irq20, LIMIT)
{
    served++;
#ifdef NESTED
    is_in_body = true;
#endif
    for (uint32_t left = WORK; left > 0; left--) {
        progress++;
    }
#ifdef NESTED
    is_in_body = false;
#endif
}

#ifdef TICKED
WEIR_CORTEX_M_TICKED_GROUP(group, ticks, PRIORITY, source);

static void sys_tick(void)
{
    group_tick();
}

/* SysTick as a tick that exists already: every TICKED clocks of 25 MHz. */
static void group_run(void)
{
    counter_begin();
    *(volatile uint8_t *) 0xe000ed23 = PRIORITY;
    *(volatile uint32_t *) 0xe000e014 = TICKED - 1;
    *(volatile uint32_t *) 0xe000e018 = 0;
    *(volatile uint32_t *) 0xe000e010 = 7; /* the processor's clock, with its interrupt, on */
}
#else
WEIR_CORTEX_M_GROUP(group, ticks, PRIORITY, dual_timer, source);
#endif

#ifdef NESTED
/* A more urgent group with a timer of its own. */
WEIR_CMSDK_TWO_TIMERS(fine, 0x40000000, 0x40001000, 9);

volatile uint32_t served_urgent;
volatile uint32_t nested;

WEIR_CORTEX_M_LIMIT(urgent, fine, 21, irq21, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_EAGER, .interval = 500, .burst = 1)
{
    served_urgent++;
    nested += is_in_body;
}

WEIR_CORTEX_M_GROUP(urgent_group, fine, 0x40, timer1, urgent);
volatile uint32_t held, held_urgent;
#endif

#define EVENTS ((volatile uint32_t *) 0x21000000)
#define TEXT ((volatile char *) 0x21800000)
enum { MOST = 30000, WORDS = 3 };
static uint32_t count;

static void wait(uint32_t turns)
{
    for (volatile uint32_t left = turns; left > 0; left--) {
    }
}

/* The kind, pending, the actions in the order of crates/core-sys, and whether the NVIC lets the
 * line in; the instant; the step's instant. */
static void note(const weir_limit_state_t *state, uint32_t kind, weir_ticks_t now, bool pending, weir_limit_step_t step)
{
    if (state != &source_state || count >= MOST) {
        return;
    }
    volatile uint32_t *event = EVENTS + WORDS * count++;
    event[0] = kind | (uint32_t) pending << 4 |
               ((uint32_t) step.serve | (uint32_t) step.ack << 1 | (uint32_t) step.mask << 2 | (uint32_t) step.unmask << 3 |
                (uint32_t) step.arm << 4 | (uint32_t) step.watch << 5 | (uint32_t) step.disarm << 6)
                   << 8 |
               (uint32_t) weir_nvic_is_enabled(20) << 16;
    event[1] = now;
    event[2] = step.at;
}

static void semihosting(uint32_t operation, uint32_t argument)
{
    __asm volatile("mov r0, %0\n\tmov r1, %1\n\tbkpt 0xab" ::"r"(operation), "r"(argument) : "r0", "r1", "memory");
}

static void tell(void)
{
    volatile char *to = TEXT;
    for (uint32_t at = 0; at < WORDS * count; at++) {
        for (int shift = 28; shift >= 0; shift -= 4) {
            *to++ = "0123456789abcdef"[EVENTS[at] >> shift & 15];
        }
        *to++ = at % WORDS == WORDS - 1 ? '\n' : ' ';
    }
    *to = 0;
    semihosting(4, (uint32_t) TEXT); /* SYS_WRITE0 */
    uint32_t block[2] = {0x20026, 0};
    semihosting(0x20, (uint32_t) block); /* SYS_EXIT_EXTENDED */
}

void start(void)
{
    group_run();
    source_start();
#ifdef NESTED
    urgent_group_run();
    urgent_start();
#endif
    weir_ticks_t begin = ticks_now();
    while (weir_ticks_between(begin, ticks_now()) < LAST) {
#ifdef NESTED
        /* A critical section of the group's priority: the group waits, the urgent one does not. */
        uint32_t before = weir_cortex_m_hold(PRIORITY), others = served, urgent_ones = served_urgent;
        wait(500);
        held += served - others;
        held_urgent += served_urgent - urgent_ones;
        weir_cortex_m_restore(before);
#endif
        if (USER > 0) {
            source_disable();
            wait(USER);
            source_enable();
            wait(USER);
        }
    }
    __asm volatile("cpsid i");
    tell();
}

static void stop(void)
{
    for (;;) {
    }
}

typedef void (*vector)(void);
extern const vector vectors[];
__attribute__((section(".vectors"))) const vector vectors[16 + 22] = {
    [0] = (vector) 0x20400000, /* the stack's end */
    [1] = start,
    [2] = stop,
    [3] = stop,
#ifdef TICKED
    [15] = sys_tick,
#else
    [16 + 10] = dual_timer,
#endif
    [16 + 20] = irq20,
#ifdef NESTED
    [16 + 9] = timer1,
    [16 + 21] = irq21,
#endif
};
