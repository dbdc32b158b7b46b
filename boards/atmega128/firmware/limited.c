/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One line behind Weir. NODE_POLICY, NODE_TIMING, NODE_INTERVAL, NODE_LAG (ticks) and NODE_BURST
 * set the limit, and the macros for weir/avr.h choose the flavour. The handler is that of
 * unprotected.c. NODE_LINE is the line's number (0).
 */
#include "node.h"
#include "weir/avr.h"

#ifndef NODE_LAG
#define NODE_LAG 0
#endif
#ifndef NODE_LINE
#define NODE_LINE 0
#endif

/*
 * An additional macro, so that NODE_LINE and NODE_CHANNEL are replaced by the number of a line and
 * the name of a channel before Weir's macros see them.
 */
#define LIMIT(number, channel) LIMIT_LINE(number, channel)
#define LIMIT_LINE(number, channel)                                                                                                        \
    WEIR_AVR_LIMIT(line, INT##number, channel, .policy = NODE_POLICY, .timing = NODE_TIMING, .interval = NODE_INTERVAL, .lag = NODE_LAG,   \
                   .burst = NODE_BURST)
#define RUN(channel) weir_avr_run_timer(channel, NODE_PRESCALER)

LIMIT(NODE_LINE, NODE_CHANNEL)
{
    node_handle();
}

void node_start(void)
{
    RUN(NODE_CHANNEL);
    weir_avr_start(line);
}
