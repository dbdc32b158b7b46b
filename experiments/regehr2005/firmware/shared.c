/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* regehr2005 §6.4: several lines, bursty, whose counts one timer of 200 Hz clears (20,000 cycles of 4 MHz). */
#include "node.h"
#include "weir/avr.h"

WEIR_AVR_LIMIT_SHARED(a, INT0, TIMER1A, .interval = 20000, .burst = 5)
{
    node_handle();
}

#if NODE_SOURCES >= 2
WEIR_AVR_LIMIT_SHARED(b, INT1, TIMER1A, .interval = 20000, .burst = 7)
{
    node_handle();
}
#endif

#if NODE_SOURCES >= 3
WEIR_AVR_LIMIT_SHARED(c, INT2, TIMER1A, .interval = 20000, .burst = 5)
{
    node_handle();
}
#endif

WEIR_AVR_SHARED_TIMER(TIMER1A, 20000)
{
    weir_avr_clear(a);
#if NODE_SOURCES >= 2
    weir_avr_clear(b);
#endif
#if NODE_SOURCES >= 3
    weir_avr_clear(c);
#endif
}

void node_start(void)
{
    weir_avr_run_timer(TIMER1A, 1);
    weir_avr_start(a);
#if NODE_SOURCES >= 2
    weir_avr_start(b);
#endif
#if NODE_SOURCES >= 3
    weir_avr_start(c);
#endif
    weir_avr_start_shared();
}
