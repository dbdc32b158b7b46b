/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One limited line whose limit changes back and forth. Each change leaves a mark in the trace. The
 * time between two changes is random, from 8 to 23 times TEST_PAUSE cycles.
 *
 * TEST_POLICY, TEST_TIMING, TEST_INTERVAL, TEST_BURST   the limit, of timer 1
 * TEST_OTHER_INTERVAL, TEST_OTHER_BURST                 the other
 */
#include "watched.h"

WEIR_AVR_LIMIT_TUNABLE(line, INT0, TIMER1A, .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .burst = TEST_BURST)
{
    watched_handler(0);
}

static void wait_a_while(void)
{
    static uint16_t dice = 1;
    dice = (uint16_t) (dice >> 1) ^ ((dice & 1u) != 0 ? 0xb400u : 0u);
    for (uint8_t turns = (uint8_t) (8u + (dice & 15u)); turns != 0; turns--) {
        __builtin_avr_delay_cycles(TEST_PAUSE);
    }
}

static void change(uint8_t to, weir_ticks_t interval, uint8_t burst)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        watched_begin((uint8_t) (WATCHED_CHANGE + to));
        if (weir_avr_change(line, interval, burst) != WEIR_LIMIT_OK) {
            watched_begin(WATCHED_FAILURE);
        }
        watched_end();
    }
}

int main(void)
{
    EICRA = 0x03; /* rising edges */
    weir_avr_run_timer(TIMER1A, 1);
    watched_begin(WATCHED_START);
    weir_avr_start(line);
    watched_end();
    sei();
    for (;;) {
        progress++;
        wait_a_while();
        change(1, TEST_OTHER_INTERVAL, TEST_OTHER_BURST);
        wait_a_while();
        change(0, TEST_INTERVAL, TEST_BURST);
    }
}
