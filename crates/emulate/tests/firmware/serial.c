// SPDX-License-Identifier: GPL-3.0-or-later
// Uses one of simavr's own peripherals: sends bytes from the interrupt that asks for the next one.
#include <avr/interrupt.h>
#include <avr/io.h>
#include <stdint.h>

volatile uint16_t sent;
volatile uint16_t completed;

ISR(USART0_UDRE_vect)
{
    UDR0 = 'x';
    sent++;
}

ISR(USART0_TX_vect)
{
    completed++;
}

int main(void)
{
    UBRR0L = 25; /* 9600 baud at 4 MHz */
    UCSR0B = (1 << TXEN0) | (1 << UDRIE0) | (1 << TXCIE0);
    sei();
    for (;;) {
    }
}
