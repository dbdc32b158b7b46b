/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A flooded source beside a main loop that calls the source's functions all the time.
 *
 * TEST_KIND       1 a limit in RAM, changed to what it is; 2 a source of a shared timer, enabled
 *                 while it is on; 3 a strict limit, with interrupts off; 4 as 2, but left alone
 * TEST_CHANNEL, TEST_PRESCALER, TEST_INTERVAL, TEST_TIMING   the limit, in ticks
 * TEST_PAUSE      cycles between two calls
 * TEST_OFF        kind 3: cycles for which interrupts are off, and up to 765 more
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <util/delay_basic.h>

#include "weir/avr.h"

#ifndef TEST_TIMING
#define TEST_TIMING WEIR_LIMIT_LAZY
#endif

volatile uint16_t served, soon;

/* An additional macro, so that TEST_CHANNEL is replaced by its name before Weir's macros see it. */
#define TIMER_RUNS(channel) weir_avr_run_timer(channel, TEST_PRESCALER)

#if TEST_KIND == 1
#define LIMIT(channel)                                                                                                                     \
    WEIR_AVR_LIMIT_TUNABLE(line, INT0, channel, .policy = WEIR_LIMIT_STRICT, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .burst = 1)
#elif TEST_KIND == 2 || TEST_KIND == 4
#define LIMIT(channel) WEIR_AVR_LIMIT_SHARED(line, INT0, channel, .interval = TEST_INTERVAL, .burst = 1)
#define CLEARED(channel) WEIR_AVR_SHARED_TIMER(channel, TEST_INTERVAL)
#else
#define LIMIT(channel)                                                                                                                     \
    WEIR_AVR_LIMIT(line, INT0, channel, .policy = WEIR_LIMIT_STRICT, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .burst = 1)
#endif

LIMIT(TEST_CHANNEL)
{
    /* The time of the last call in units of TCNT1, which counts every eighth cycle. */
    static uint16_t last;
    uint16_t now = TCNT1;
    if (served != 0 && (uint16_t) (now - last) < TEST_INTERVAL * (uint32_t) TEST_PRESCALER / 8 - 8) {
        soon++;
    }
    last = now;
    served++;
}

#if TEST_KIND == 2 || TEST_KIND == 4
CLEARED(TEST_CHANNEL)
{
    weir_avr_clear(line);
}
#endif

int main(void)
{
    EICRA = 0x03;
    TCCR1B = 2;
    TIMER_RUNS(TEST_CHANNEL);
    weir_avr_start(line);
#if TEST_KIND == 2 || TEST_KIND == 4
    weir_avr_start_shared();
#endif
    sei();
    for (uint8_t turn = 1;; turn++) {
        __builtin_avr_delay_cycles(TEST_PAUSE);
#if TEST_KIND == 1
        (void) weir_avr_change(line, TEST_INTERVAL, 1);
#elif TEST_KIND == 2
        weir_avr_enable(line);
#elif TEST_KIND == 3
        cli();
        __builtin_avr_delay_cycles(TEST_OFF);
        if (turn != 0) {
            _delay_loop_1(turn);
        }
        sei();
#endif
    }
}
