/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Limited sources in one group, on IRQ20 and the following lines of mps2-an385. Macros: SOURCES
 * (their numbers: 0,1), MEMBERS (their names: source0,source1), LIMIT0 to LIMIT7 (initialisers),
 * DIVISOR, LAST (the tick at which it ends), PRIORITY (the group's), WORK (turns of a loop in the
 * handlers' bodies), USER (the thread switches each source off and on, for up to so many turns),
 * CHANGES (the limits, {interval, burst}, to which the thread changes the sources at random, after
 * up to PAUSE turns), BEFORE_WRAP (the timer starts so many ticks before it wraps), RECORD (the
 * thread copies the record of source 0), TICKED (no timer, but a tick of so many clocks), SYSTICK
 * (the timer is SysTick, beside another; with CYCLES beside the cycle counter), NESTED (a more
 * urgent group, on IRQ28), RESTS (the thread sleeps, and the run ends when IRQ28 asks).
 */
#ifdef RECORD
/* The numbers of overloads that began and ended, and of hook calls in the wrong order
 * (LIMIT-RECORD-3). */
volatile unsigned begun, ended, misordered;
#define WEIR_ON_OVERLOAD_BEGIN(state) ((void) (state), misordered += begun != ended, begun++)
#define WEIR_ON_OVERLOAD_END(state) ((void) (state), ended++, misordered += begun != ended)
#endif

#ifdef CHANGES
#include <stdint.h>
static uint32_t limit_of(uint32_t source);
#define TOLD_LIMIT(source) limit_of(source)
#endif

#include "told.h"

#ifndef SOURCES
#define SOURCES 0
#define MEMBERS source0
#endif
#ifndef PRIORITY
#define PRIORITY 0x80
#endif
#ifndef WORK
#define WORK 0
#endif

#ifdef TICKED
WEIR_CMSDK_DUAL_TIMER(counter, 0x40002000, 10, DIVISOR);
WEIR_CORTEX_M_CLOCK(ticks, counter_now());
#elif defined CYCLES
WEIR_SYSTICK(ticks);
#elif defined SYSTICK
/* The cycle counter stands still in QEMU. This timer counts at SysTick's 25 MHz instead. */
WEIR_CMSDK_DUAL_TIMER(counter, 0x40002000, 10, DIVISOR);
WEIR_SYSTICK_BESIDE(ticks, counter_begin(), counter_now());
#else
WEIR_CMSDK_DUAL_TIMER(ticks, 0x40002000, 10, DIVISOR);
#endif

volatile uint32_t progress, entered;

#ifdef NESTED
static volatile bool is_in_body;
#endif

static void body(void)
{
    /* Stop the run if a member of a group interrupts another member, which must never happen. */
    if (entered++ != 0) {
        stop();
    }
#ifdef NESTED
    is_in_body = true;
#endif
    for (uint32_t left = WORK; left > 0; left--) {
        progress++;
    }
#ifdef NESTED
    is_in_body = false;
#endif
    entered--;
}

#ifdef CHANGES
#define LIMITED WEIR_CORTEX_M_LIMIT_TUNABLE
#else
#define LIMITED WEIR_CORTEX_M_LIMIT
#endif
#define SOURCE(n)                                                                                                                          \
    volatile uint32_t served##n;                                                                                                           \
    LIMITED(source##n, ticks, 20 + (n), irq2##n, LIMIT##n)                                                                                 \
    {                                                                                                                                      \
        served##n++;                                                                                                                       \
        body();                                                                                                                            \
    }
WEIR_CORTEX_M_EACH(SOURCE, SOURCES)

#ifdef TICKED
WEIR_CORTEX_M_TICKED_GROUP(group, ticks, PRIORITY, MEMBERS);

static void sys_tick(void)
{
    group_tick();
}

/* Uses SysTick as an existing tick, every TICKED clocks of 25 MHz. */
static void group_run(void)
{
    counter_begin();
    weir_nvic_set_priority(WEIR_NVIC_SYSTICK, PRIORITY);
    weir_systick_start(TICKED - 1);
}
#elif defined SYSTICK
WEIR_CORTEX_M_GROUP(group, ticks, PRIORITY, sys_tick, MEMBERS);
#else
WEIR_CORTEX_M_GROUP(group, ticks, PRIORITY, dual_timer, MEMBERS);
#endif

#ifdef NESTED
/* A more urgent group with a timer of its own. */
WEIR_CMSDK_TWO_TIMERS(fine, 0x40000000, 0x40001000, 9);

volatile uint32_t served_urgent;
volatile uint32_t nested;

WEIR_CORTEX_M_LIMIT(urgent, fine, 28, irq28, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_EAGER, .interval = 500, .burst = 1)
{
    served_urgent++;
    nested += is_in_body;
}

WEIR_CORTEX_M_GROUP(urgent_group, fine, 0x40, timer1, urgent);
volatile uint32_t held, held_urgent;
#endif

#ifdef RESTS
static volatile bool is_over;

static void irq28(void)
{
    is_over = true;
}
#endif

static uint32_t told_source(const weir_limit_state_t *state)
{
#define IS_SOURCE(n)                                                                                                                       \
    if (state == source##n##_state_of()) {                                                                                                 \
        return n;                                                                                                                          \
    }
    WEIR_CORTEX_M_EACH(IS_SOURCE, SOURCES)
    return TOLD_NONE;
}

#ifdef CHANGES
static uint32_t limit_of(uint32_t source)
{
#define LIMIT_OF(n)                                                                                                                        \
    if (source == (n)) {                                                                                                                   \
        return source##n##_limit.config.interval | (uint32_t) source##n##_limit.config.burst << 24;                                        \
    }
    WEIR_CORTEX_M_EACH(LIMIT_OF, SOURCES)
    return 0;
}

static const struct {
    weir_ticks_t interval;
    uint8_t burst;
} changes[] = {CHANGES};
/* The number of changes that were wrongly accepted or wrongly rejected (LIMIT-CHANGE-4). */
volatile uint32_t misjudged;

#define CHANGE(n)                                                                                                                          \
    {                                                                                                                                      \
        uint32_t to = dice(sizeof changes / sizeof changes[0]);                                                                            \
        misjudged += source##n##_change(changes[to].interval, changes[to].burst) != WEIR_LIMIT_OK;                                         \
        misjudged += source##n##_change(0, 1) != WEIR_LIMIT_BAD_INTERVAL;                                                                  \
        misjudged += source##n##_change(0x30000000, 1) != WEIR_LIMIT_BAD_INTERVAL;                                                         \
        misjudged += source##n##_change(1000, 0) != WEIR_LIMIT_BAD_BURST;                                                                  \
    }                                                                                                                                      \
    wait_at_random(PAUSE);
#endif

#ifdef RECORD
/* The number of impossible copies: a count has fallen, or more requests were served than taken. */
volatile uint32_t torn;

static void copy_record(void)
{
    static weir_limit_record_t before;
    weir_limit_record_t copy;
    source0_record(&copy);
    torn += copy.taken < before.taken || copy.served < before.served || copy.served > copy.taken;
    before = copy;
}
#endif

void start(void)
{
    group_run();
#ifdef BEFORE_WRAP
    *(volatile uint32_t *) 0x40002000 = BEFORE_WRAP; /* what the timer counts down from */
#ifndef TICKED
    ticks_alarm_after(ticks_now(), WEIR_CORTEX_M_REST);
#endif
#endif
#define START(n) source##n##_start();
    WEIR_CORTEX_M_EACH(START, SOURCES)
#ifdef NESTED
    urgent_group_run();
    urgent_start();
#endif
#ifdef RESTS
    weir_nvic_set_priority(28, 0xff);
    weir_nvic_enable(28);
    while (!is_over) {
        __asm volatile("wfi");
    }
#else
    weir_ticks_t begin = ticks_now();
    while (weir_ticks_between(begin, ticks_now()) < LAST) {
#ifdef NESTED
        /* A critical section at the group's priority: the group waits, and the urgent group does
         * not. */
        uint32_t before = weir_cortex_m_hold(PRIORITY), others = served0, urgent_ones = served_urgent;
        wait(500);
        held += served0 - others;
        held_urgent += served_urgent - urgent_ones;
        weir_cortex_m_restore(before);
#endif
#ifdef CHANGES
        WEIR_CORTEX_M_EACH(CHANGE, SOURCES)
#endif
#ifdef RECORD
        copy_record();
#endif
#ifdef USER
#define SWITCH(n)                                                                                                                          \
    source##n##_disable();                                                                                                                 \
    wait_at_random(USER);                                                                                                                  \
    source##n##_enable();                                                                                                                  \
    wait_at_random(USER);
        WEIR_CORTEX_M_EACH(SWITCH, SOURCES)
#endif
    }
#endif
    __asm volatile("cpsid i");
#ifdef RECORD
    weir_limit_record_t last;
    source0_record(&last);
    for (uint32_t at = 0; at < sizeof last / 4; at++) {
        tell_word(((const uint32_t *) &last)[at], at == sizeof last / 4 - 1 ? '\n' : ' ');
    }
#endif
    tell_events();
    leave(0);
}

extern const vector vectors[];
#define VECTOR(n) [36 + (n)] = irq2##n,
__attribute__((section(".vectors"))) const vector vectors[16 + 29] = {
    TOLD_FIRST_VECTORS,
#if defined TICKED || defined SYSTICK
    [15] = sys_tick,
#else
    [16 + 10] = dual_timer,
#endif
    WEIR_CORTEX_M_EACH(VECTOR, SOURCES)
#ifdef NESTED
        [16 + 9] = timer1,
#endif
#if defined NESTED || defined RESTS
    [16 + 28] = irq28,
#endif
};
