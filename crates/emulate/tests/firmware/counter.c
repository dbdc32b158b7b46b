// SPDX-License-Identifier: GPL-3.0-or-later
// A firmware for most runs: the background counts, and so does an interrupt. With -DSLEEP the
// background sleeps instead.
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>

volatile uint32_t progress;
volatile uint16_t handled;
volatile uint8_t handled_byte;

ISR(INT0_vect)
{
    handled++;
    handled_byte++;
}

int main(void)
{
    EICRA = (1 << ISC01) | (1 << ISC00);
    EIMSK = 1 << INT0;
    sei();
    for (;;) {
#ifdef SLEEP
        set_sleep_mode(SLEEP_MODE_IDLE);
        sleep_mode();
#else
        progress++;
#endif
    }
}
