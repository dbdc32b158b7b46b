/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The line of limited.c without a limiter. It shows the requests that a plain handler takes. */
#include "watched.h"

ISR(INT0_vect)
{
    watched_handler(0);
}

int main(void)
{
    EICRA = 0x03;
    EIMSK = 1u << INT0;
    sei();
    for (;;) {
        progress++;
    }
}
