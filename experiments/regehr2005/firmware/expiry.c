/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A periodic timer interrupt that does nothing: what polling (polling.c) costs besides looking at
 * the line.
 */
#include "node.h"

/*
 * With all that an interrupt can have to save, as an interrupt has that looks at a line: later
 * compilers leave out what is not used.
 */
#if __GNUC__ >= 8
#define EXPIRY_SAVES_ALL __attribute__((no_gccisr))
#else
#define EXPIRY_SAVES_ALL
#endif

ISR(TIMER1_COMPA_vect, EXPIRY_SAVES_ALL)
{
}

void node_start(void)
{
    OCR1A = NODE_INTERVAL - 1u;
    TIMSK = 1u << OCIE1A;
    TCCR1B = (1u << WGM12) | (1u << CS10);
}
