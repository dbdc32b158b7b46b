/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The optimised bursty scheduler of regehr2005 §3.3, with and without the statement that the paper
 * calls necessary. This is not Weir's code.
 *
 * TEST_CLEARS  1: the timer's pending bit is cleared just before its interrupt is enabled; 0: it is
 *              not
 */
#include "watched.h"

static uint8_t count;

ISR(INT0_vect)
{
    if (++count >= TEST_BURST) {
        EIMSK &= (uint8_t) ~(1u << INT0);
        if (TEST_CLEARS) {
            TIFR = 1u << OCF1A;
        }
        TIMSK |= 1u << OCIE1A;
    }
    watched_handler(0);
}

ISR(TIMER1_COMPA_vect)
{
    count = 0;
    TIMSK &= (uint8_t) ~(1u << OCIE1A);
    EIMSK |= 1u << INT0;
}

int main(void)
{
    EICRA = 0x03;
    OCR1A = TEST_INTERVAL - 1u;
    TCCR1B = (1u << WGM12) | (1u << CS10);
    EIMSK = 1u << INT0;
    sei();
    for (;;) {
        progress++;
    }
}
