// SPDX-License-Identifier: GPL-3.0-or-later
// Enables an interrupt for which there is no handler.
#include <avr/interrupt.h>
#include <avr/io.h>

int main(void)
{
    TIMSK = 1 << TOIE0;
    TCCR0 = 1 << CS00;
    sei();
    for (;;) {
    }
}
