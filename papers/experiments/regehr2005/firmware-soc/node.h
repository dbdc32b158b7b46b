/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The common part of the firmware of soc-fig1: line 0 with rising edges, a handler that counts and
 * works, a background loop that counts (regehr2005 §6).
 *
 * NODE_WORK   clocks of work in the handler (§6.2: 0, §6.3: 250), at least 16 if any
 */
#ifndef NODE_H
#define NODE_H

#include <stdint.h>

#include "weir/ticks.h"

#ifndef NODE_WORK
#define NODE_WORK 0
#endif

/** Turns of the background loop: the rate of progress that §6.1 observes. */
extern volatile uint32_t progress;
/** Runs of the handler: requests served. */
extern volatile uint32_t handled;

/**
 * Takes NODE_WORK clocks, to the nearest NODE_TURN: in a loop, so that it takes one register, and a
 * size that does not depend on its length.
 */
#define NODE_TURN 10
WEIR_INLINE void node_work(void)
{
    uint32_t turns = NODE_WORK / NODE_TURN;
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(turns));
}

/**
 * The work of the handler for one request: the least that lets an observer see that the request was
 * served, and NODE_WORK clocks.
 */
WEIR_INLINE void node_handle(void)
{
    handled++;
    if (NODE_WORK != 0) {
        node_work();
    }
}

/** Switches the line on, or starts its limiter; each policy has its own function. Interrupts are
 * off. */
void node_start(void);

#endif
