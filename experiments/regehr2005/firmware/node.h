/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * What every firmware of regehr2005 §6 has in common: external lines with rising edges, a handler that counts and works, a background loop that counts.
 *
 * NODE_WORK     cycles of work in the handler (§6.2: 0, §6.3: 250)
 * NODE_SOURCES  lines in use, INT0 upwards (1 to 3)
 * NODE_SLEEP    the background sleeps instead of counting
 */
#ifndef NODE_H
#define NODE_H

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>

#ifndef NODE_WORK
#define NODE_WORK 0
#endif
#ifndef NODE_SOURCES
#define NODE_SOURCES 1
#endif

/** Turns of the background loop: the rate of progress that §6.1 observes. */
extern volatile uint32_t progress;
/** Runs of the handler: requests served. Modulo 2^16. */
extern volatile uint16_t handled;

/** What the handler does for one request: the least that lets an observer see it was served, and NODE_WORK cycles. */
static inline __attribute__((always_inline)) void node_handle(void)
{
    handled++;
    __builtin_avr_delay_cycles(NODE_WORK);
}

/** Switches the lines on, or starts their limiters; each policy has its own. Timer 1 is stopped and every line masked before. */
void node_start(void);

#endif
