/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The handlers of a small aircraft's controller. Their limits come from system.toml:
 * weir generate system.toml --chip atmega128
 */
#include "weir_system.h"

volatile uint16_t sparks;
volatile uint16_t samples;
volatile uint16_t pulses;
volatile uint8_t received;
volatile uint32_t progress;

WEIR_SOURCE_ignition
{
    sparks++;
}

WEIR_SOURCE_gyro
{
    samples++;
}

WEIR_SOURCE_radio
{
    pulses++;
}

WEIR_SOURCE_gps
{
    received = UDR1;
}

int main(void)
{
    EICRA = (1 << ISC11) | (1 << ISC10) | (1 << ISC01) | (1 << ISC00); /* rising edges on INT0 and INT1 */
    EICRB = (1 << ISC41) | (1 << ISC40);                               /* and on INT4 */
    UBRR1L = 103;                                                      /* 9600 bit/s of 16 MHz */
    UCSR1B = (1 << RXEN1) | (1 << RXCIE1);
    weir_system_start();
    sei();
    for (;;) {
        progress++; /* the work that matters */
    }
}
