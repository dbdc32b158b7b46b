/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hardware scheduler of regehr2005 §3.4 as a special-purpose program on a second
 * microcontroller (§6.1): requests come in on INT0, those that may pass go out as a pulse on PB0.
 * The program runs without interrupts: it polls the pending bit, and timer 1 is its counter.
 *
 * NODE_INTERVAL  cycles between two requests that pass
 */
#include <avr/io.h>

int main(void)
{
    DDRB = 1u << PB0;
    EICRA = 0x03; /* rising edge */
    OCR1A = NODE_INTERVAL - 1u;
    TCCR1B = (1u << WGM12) | (1u << CS10);
    for (;;) {
        /* Case 1: the counter is at zero. The first request resets it and is propagated. */
        while ((EIFR & (1u << INTF0)) == 0) {
        }
        for (;;) {
            TCNT1 = 0;
            TIFR = 1u << OCF1A;
            EIFR = 1u << INTF0;
            PORTB |= 1u << PB0;
            /*
             * Case 2: the counter is not at zero. An arrival is merely noted, in the pending bit.
             */
            while ((TIFR & (1u << OCF1A)) == 0) {
            }
            PORTB &= (uint8_t) ~(1u << PB0);
            if ((EIFR & (1u << INTF0)) == 0) {
                break;
            }
        }
    }
}
