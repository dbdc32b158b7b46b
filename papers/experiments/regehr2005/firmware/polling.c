/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * "Pure polling" (regehr2005 §5.2): a timer looks at the line's pending bit once in NODE_INTERVAL
 * cycles.
 */
#include "node.h"

ISR(TIMER1_COMPA_vect)
{
    if ((EIFR & (1u << INTF0)) != 0) {
        EIFR = 1u << INTF0;
        node_handle();
    }
}

void node_start(void)
{
    OCR1A = NODE_INTERVAL - 1u;
    TIMSK = 1u << OCIE1A;
    TCCR1B = (1u << WGM12) | (1u << CS10);
}
