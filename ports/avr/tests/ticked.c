/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One limited line without a timer of its own. The existing tick is that of timer 3, which restarts
 * at each match.
 *
 * TEST_POLICY, TEST_TIMING, TEST_INTERVAL, TEST_BURST   the limit, in units of the clock
 * TEST_TICK        cycles from tick to tick
 * TEST_FINE_CLOCK  the clock is timer 1, in cycles; else it counts the ticks
 */
#include "watched.h"

#ifdef TEST_FINE_CLOCK
#define CLOCK() TCNT1
#else
static volatile weir_ticks_t ticks;
#define CLOCK() ticks
#endif

WEIR_AVR_LIMIT_TICK(line, INT0, CLOCK(), .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .burst = TEST_BURST)
{
    watched_handler(0);
}

ISR(TIMER3_COMPA_vect)
{
#ifndef TEST_FINE_CLOCK
    ticks++;
#endif
    weir_avr_tick(line);
}

int main(void)
{
    EICRA = 0x03; /* rising edges */
    TCCR1B = 1u << CS10;
    OCR3A = TEST_TICK - 1u;
    ETIMSK = 1u << OCIE3A;
    TCCR3B = (1u << WGM32) | (1u << CS30);
    watched_begin(WATCHED_START);
    weir_avr_start(line);
    watched_end();
    sei();
    for (;;) {
        progress++;
    }
}
