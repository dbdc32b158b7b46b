/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Three sources on one timer (regehr2005 §3.5). Their bursts and the timer come from system.toml:
 * weir generate system.toml --chip atmega128
 */
#include "weir_system.h"

volatile uint16_t first_served, second_served, third_served;
volatile uint32_t progress;

WEIR_SOURCE_first
{
    first_served++;
}

WEIR_SOURCE_second
{
    second_served++;
}

WEIR_SOURCE_third
{
    third_served++;
}

WEIR_TIMER_clearing;

int main(void)
{
    EICRA = 0x3f; /* rising edges on INT0, INT1 and INT2 */
    weir_system_start();
    sei();
    for (;;) {
        progress++; /* the work that matters */
    }
}
