// SPDX-License-Identifier: GPL-3.0-or-later
// A chip in front that repeats every request of its INT0 as a rising edge on PB0.
#include <avr/interrupt.h>
#include <avr/io.h>

ISR(INT0_vect)
{
    PORTB |= 1 << PB0;
    PORTB &= ~(1 << PB0);
}

int main(void)
{
    DDRB = 1 << PB0;
    EICRA = (1 << ISC01) | (1 << ISC00);
    EIMSK = 1 << INT0;
    sei();
    for (;;) {
    }
}
