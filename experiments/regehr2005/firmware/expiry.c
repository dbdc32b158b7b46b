/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A periodic timer interrupt that does nothing: what polling (polling.c) costs besides looking at the line. */
#include "node.h"

ISR(TIMER1_COMPA_vect)
{
}

void node_start(void)
{
    OCR1A = NODE_INTERVAL - 1u;
    TIMSK = 1u << OCIE1A;
    TCCR1B = (1u << WGM12) | (1u << CS10);
}
