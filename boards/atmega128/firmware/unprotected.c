/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * "Pure interrupts" (regehr2005 §5.2): an ordinary handler for each line. The firmware also runs
 * behind a hardware limiter.
 */
#include "node.h"

ISR(INT0_vect)
{
    node_handle();
}

#if NODE_SOURCES >= 2
ISR(INT1_vect)
{
    node_handle();
}
#endif

#if NODE_SOURCES >= 3
ISR(INT2_vect)
{
    node_handle();
}
#endif

void node_start(void)
{
    EIMSK = (uint8_t) ((1u << NODE_SOURCES) - 1u);
}
