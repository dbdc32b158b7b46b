/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Measures, on a chip, the costs of the chip's limits, and prints them as the table [cpu.costs] of
 * a system file. The port's README explains how to build the program. CHIP names the chip's header,
 * and POLICIES the limits (see below).
 *
 * The thread masks all interrupts and lets in one at a time, between two reads of the cycle
 * counter. It makes requests, waits for the timer, and pauses at random, so that every event
 * happens in many states of its limiter. The program prints the longest time of each event. The
 * handler's body, which adds one to a counter, is included.
 */
#include <stdint.h>

#include <weir/cortex_m.h>

#include CHIP

/* The limits to measure. Each has a name, and its policy and timing as a system file writes
 * them. */
#ifndef POLICIES
#define POLICIES(DO)                                                                                                                       \
    DO(strict, eager, STRICT, EAGER, 1)                                                                                                    \
    DO(strict, lazy, STRICT, LAZY, 1)                                                                                                      \
    DO(paced, eager, PACED, EAGER, 1)                                                                                                      \
    DO(paced, lazy, PACED, LAZY, 1)                                                                                                        \
    DO(bursty, eager, BURSTY, EAGER, 3)                                                                                                    \
    DO(bursty, lazy, BURSTY, LAZY, 3)                                                                                                      \
    DO(bursty, one_shot, BURSTY, ONE_SHOT, 3)                                                                                              \
    DO(bucket, eager, BUCKET, EAGER, 4)                                                                                                    \
    DO(bucket, lazy, BUCKET, LAZY, 4)
#endif

enum {
    INTERVAL = 1000, /* ticks of the timer */
    STEPS = 1000,
    BODIES = 8, /* turns of the loop in which a body's cost is measured */
    VECTORS = 16 + 240
};
enum { REQUEST_SERVED, REQUEST_REFUSED, EXPIRY_SERVED, EXPIRY_EMPTY, EVENTS };
static const char *const event_names[EVENTS] = {"request_served", "request_refused", "expiry_served", "expiry_empty"};

static volatile uint32_t bodies;

WEIR_INLINE void body(void)
{
    bodies++;
}

#define SOURCE(kind, when, POLICY, TIMING, n)                                                                                              \
    CHIP_TIMER(kind##_##when##_ticks);                                                                                                     \
    WEIR_CORTEX_M_LIMIT(kind##_##when, kind##_##when##_ticks, CHIP_LINE, kind##_##when##_line, .policy = WEIR_LIMIT_##POLICY,              \
                        .timing = WEIR_LIMIT_##TIMING, .interval = INTERVAL, .burst = (n))                                                 \
    {                                                                                                                                      \
        body();                                                                                                                            \
    }                                                                                                                                      \
    WEIR_CORTEX_M_GROUP(kind##_##when##_group, kind##_##when##_ticks, 0x80, kind##_##when##_alarm, kind##_##when);
POLICIES(SOURCE)

static void stop(void)
{
    for (;;) {
    }
}

/* The interrupt function of a line without a limit. */
static void ordinary(void)
{
    body();
}

typedef void (*vector)(void);
/* The vector table is in RAM, because the lines' functions change from limit to limit. */
static vector vectors_in_use[VECTORS] __attribute__((aligned(1024)));

static uint32_t dice(uint32_t below)
{
    static uint32_t state;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void say(const char *text)
{
    for (; *text != 0; text++) {
        chip_say(*text);
    }
}

static void say_number(uint32_t number)
{
    if (number > 9) {
        say_number(number / 10);
    }
    chip_say((char) ('0' + number % 10));
}

/* Lets in the waiting interrupt, and returns the cycles until the thread continues. */
static __attribute__((noinline)) uint32_t let_in(void)
{
    uint32_t before = chip_cycles();
    __asm volatile("cpsie i\n\tisb\n\tcpsid i\n\tisb" ::: "memory");
    return chip_cycles() - before;
}

/* The cycles between the two reads of the counter if no interrupt waits. */
static uint32_t unmeasured;

/* The cost of an interrupt from the measured cycles. The result is never too small: two reads may
 * differ from the true time by up to one step of the counter. */
static uint32_t cost_of(uint32_t cycles)
{
    return cycles + CHIP_GRAIN - 1 - unmeasured + CHIP_UNSEEN;
}

static void calibrate(void)
{
    unmeasured = UINT32_MAX;
    for (uint32_t turn = 0; turn < 64; turn++) {
        for (uint32_t left = dice(16); left > 0; left--) {
            __asm volatile("nop");
        }
        uint32_t cycles = let_in();
        unmeasured = cycles < unmeasured ? cycles : unmeasured;
    }
}

/* The longest time of each event of the current limit. It is 0 if the event did not happen. */
static volatile uint32_t longest[EVENTS];

static void note(uint32_t event, uint32_t cycles)
{
    if (cost_of(cycles) > longest[event]) {
        longest[event] = cost_of(cycles);
    }
}

/* Makes a request and lets it in, if the line is enabled. The timer's interrupt waits in the
 * meantime. */
static void request(void)
{
    weir_nvic_pend(CHIP_LINE);
    if (!weir_nvic_is_enabled(CHIP_LINE)) {
        return; /* it waits for the timer */
    }
    weir_nvic_disable(CHIP_TIMER_LINE);
    uint32_t before = bodies, cycles = let_in();
    weir_nvic_enable(CHIP_TIMER_LINE);
    note(bodies == before ? REQUEST_REFUSED : REQUEST_SERVED, cycles);
}

/* Lets in the timer's interrupt, if it waits. The time is not recorded if a request of the line was
 * taken as well. */
static void expiry(void)
{
    if (!weir_nvic_is_pending(CHIP_TIMER_LINE)) {
        return;
    }
    bool waited = weir_nvic_is_pending(CHIP_LINE);
    uint32_t before = bodies, cycles = let_in(), ran = bodies - before;
    bool is_alone = ran == 0 ? !waited : ran == 1;
    if (is_alone) {
        note(ran == 0 ? EXPIRY_EMPTY : EXPIRY_SERVED, cycles);
    }
}

/*
 * Takes a started limiter through its states at random: overload, requests at about the allowed
 * rate, and pauses, with and without a request that waits while the line is masked.
 */
static void walk(weir_ticks_t (*now)(void))
{
    static const uint32_t most[] = {INTERVAL / 8, INTERVAL / 8, INTERVAL * 2, INTERVAL * 6};
    for (uint32_t step = 0; step < STEPS; step++) {
        weir_ticks_t begin = now(), rest = dice(most[step / 64 % 4]);
        while (weir_ticks_between(begin, now()) < rest) {
            expiry();
        }
        if (step / 32 % 2 == 0 || weir_nvic_is_enabled(CHIP_LINE)) {
            request();
        }
    }
}

static void say_events(const char *timing)
{
    say(timing);
    say(" = {");
    const char *comma = " ";
    for (uint32_t event = 0; event < EVENTS; event++) {
        if (longest[event] != 0) {
            say(comma);
            say(event_names[event]);
            say(" = \"");
            say_number(longest[event]);
            say(" cycles\"");
            comma = ", ";
            longest[event] = 0;
        }
    }
    say(" }\n");
}

static void measure_ordinary(void)
{
    vectors_in_use[16 + CHIP_LINE] = ordinary;
    weir_nvic_enable(CHIP_LINE);
    for (uint32_t turn = 0; turn < 64; turn++) {
        for (uint32_t left = dice(16); left > 0; left--) {
            __asm volatile("nop");
        }
        request();
    }
    weir_nvic_disable(CHIP_LINE);
    say_events("off");
}

#define MEASURE(kind, when, POLICY, TIMING, n)                                                                                             \
    static void measure_##kind##_##when(void)                                                                                              \
    {                                                                                                                                      \
        vectors_in_use[16 + CHIP_LINE] = kind##_##when##_line;                                                                             \
        vectors_in_use[16 + CHIP_TIMER_LINE] = kind##_##when##_alarm;                                                                      \
        kind##_##when##_group_run();                                                                                                       \
        kind##_##when##_start();                                                                                                           \
        walk(kind##_##when##_ticks_now);                                                                                                   \
        weir_nvic_disable(CHIP_LINE);                                                                                                      \
        weir_nvic_disable(CHIP_TIMER_LINE);                                                                                                \
        weir_nvic_clear(CHIP_LINE);                                                                                                        \
        weir_nvic_clear(CHIP_TIMER_LINE);                                                                                                  \
        say(#kind ".");                                                                                                                    \
        say_events(#when);                                                                                                                 \
    }
POLICIES(MEASURE)

void start(void)
{
    extern uint32_t bss_begin[], bss_end[];
    for (uintptr_t at = (uintptr_t) bss_begin; at < (uintptr_t) bss_end; at += 4) {
        *(volatile uint32_t *) at = 0;
    }
    __asm volatile("cpsid i" ::: "memory");
    for (uint32_t number = 0; number < VECTORS; number++) {
        vectors_in_use[number] = stop;
    }
    *(volatile uint32_t *) 0xe000ed08 = (uint32_t) vectors_in_use; /* VTOR */
    chip_begin();
    calibrate();
    say("[cpu.costs]\n");
    measure_ordinary();
#define RUN(kind, when, POLICY, TIMING, n) measure_##kind##_##when();
    POLICIES(RUN)
    chip_end();
}

extern const vector vectors[];
__attribute__((section(".vectors"))) const vector vectors[4] = {(vector) STACK_END, start, stop, stop};
