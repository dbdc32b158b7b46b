/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * regehr2005 §6.4: several lines, bursty, whose counts one timer of 200 Hz clears (every 20,000
 * cycles at 4 MHz). NODE_CHANNEL replaces channel A of timer 1.
 */
#include "node.h"
#include "weir/avr.h"

#ifndef NODE_CHANNEL
#define NODE_CHANNEL TIMER1A
#endif

/* An additional macro, so that NODE_CHANNEL is replaced by the name of a channel before Weir's
 * macros see it. */
#define SHARED(name, number, channel, n) WEIR_AVR_LIMIT_SHARED(name, INT##number, channel, .interval = 20000, .burst = n)
#define SHARED_TIMER(channel) WEIR_AVR_SHARED_TIMER(channel, 20000)
#define RUN(channel) weir_avr_run_timer(channel, 1)

SHARED(a, 0, NODE_CHANNEL, 5)
{
    node_handle();
}

#if NODE_SOURCES >= 2
SHARED(b, 1, NODE_CHANNEL, 7)
{
    node_handle();
}
#endif

#if NODE_SOURCES >= 3
SHARED(c, 2, NODE_CHANNEL, 5)
{
    node_handle();
}
#endif

SHARED_TIMER(NODE_CHANNEL)
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
    RUN(NODE_CHANNEL);
    weir_avr_start(a);
#if NODE_SOURCES >= 2
    weir_avr_start(b);
#endif
#if NODE_SOURCES >= 3
    weir_avr_start(c);
#endif
    weir_avr_start_shared();
}
