// SPDX-License-Identifier: GPL-3.0-or-later
// Masks INT5 (falling edges) from its handler, as a limiter does, and unmasks it from a compare
// interrupt that also wakes the processor.
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

ISR(INT5_vect)
{
    EIMSK = 0;
    OCR0 = TCNT0 + 20;
    TIFR = 1 << OCF0;
    TIMSK = 1 << OCIE0;
}

ISR(TIMER0_COMP_vect)
{
    TIMSK = 0;
    EIMSK = 1 << INT5;
}

int main(void)
{
    EICRB = 1 << ISC51;
    TCCR0 = 1 << CS01;
    EIMSK = 1 << INT5;
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
    for (;;) {
        sleep_mode();
    }
}
