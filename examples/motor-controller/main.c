/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The handlers of a motor controller. Their limits come from system.toml: weir generate system.toml
 * --chip atmega128
 */
#include "weir_system.h"

volatile uint16_t edges;
volatile uint16_t presses;
volatile uint8_t received;
volatile uint32_t progress;

WEIR_SOURCE_encoder
{
    edges++;
}

WEIR_SOURCE_button
{
    presses++;
}

WEIR_SOURCE_uart
{
    received = UDR0;
}

int main(void)
{
    EICRA = (1 << ISC11) | (1 << ISC10) | (1 << ISC01) | (1 << ISC00); /* rising edges on INT0 and INT1 */
    UBRR0L = 8;                                                        /* 115200 bit/s of 16 MHz */
    UCSR0B = (1 << RXEN0) | (1 << RXCIE0);
    weir_system_start();
    sei();
    for (;;) {
        progress++; /* the work that matters */
    }
}
