/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two or three limited lines, INT0 to INT2, on timer 1: bursts of 4, 7 and 2 each period.
 *
 * TEST_SOURCES  2 or 3
 * TEST_PERIOD   of the shared timer, in cycles
 * TEST_USER     the user switches INT1 off and on, and waits before each switch for so many cycles,
 *               times a random number from 1 to 16
 */
#include "watched.h"

WEIR_AVR_LIMIT_SHARED(a, INT0, TIMER1A, .interval = TEST_PERIOD, .burst = 4)
{
    watched_handler(0);
}

WEIR_AVR_LIMIT_SHARED(b, INT1, TIMER1A, .interval = TEST_PERIOD, .burst = 7)
{
    watched_handler(1);
}

#if TEST_SOURCES >= 3
WEIR_AVR_LIMIT_SHARED(c, INT2, TIMER1A, .interval = TEST_PERIOD, .burst = 2)
{
    watched_handler(2);
}
#endif

WEIR_AVR_SHARED_TIMER(TIMER1A, TEST_PERIOD)
{
    weir_avr_clear(a);
    weir_avr_clear(b);
#if TEST_SOURCES >= 3
    weir_avr_clear(c);
#endif
}

#ifdef TEST_USER
static void wait_a_while(void)
{
    static uint16_t dice = 1;
    dice = (uint16_t) (dice >> 1) ^ ((dice & 1u) != 0 ? 0xb400u : 0u);
    for (uint8_t turns = (uint8_t) (1u + (dice & 15u)); turns != 0; turns--) {
        __builtin_avr_delay_cycles(TEST_USER);
    }
}

static void switch_off_and_on(void)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        watched_begin(WATCHED_DISABLE);
        weir_avr_disable(b);
        watched_end();
    }
    wait_a_while();
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        watched_begin(WATCHED_ENABLE);
        weir_avr_enable(b);
        watched_end();
    }
    wait_a_while();
}
#endif

int main(void)
{
    EICRA = 0x3f; /* rising edges */
    weir_avr_run_timer(TIMER1A, 1);
    weir_avr_start(a);
    weir_avr_start(b);
#if TEST_SOURCES >= 3
    weir_avr_start(c);
#endif
    weir_avr_start_shared();
    sei();
    for (;;) {
        progress++;
#ifdef TEST_USER
        switch_off_and_on();
#endif
    }
}
