/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A periodic timer interrupt that does nothing: the cost of polling (polling.c) without the look at
 * the line.
 */
#include "node.h"

/*
 * The attribute makes this interrupt save all registers that an interrupt that polls a line can
 * have to save: later compilers leave out unused ones.
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
