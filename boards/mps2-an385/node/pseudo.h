/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Simulated packets (behnke2021 §III-D.2): a pin takes the card's place. */
#ifndef NODE_PSEUDO_H
#define NODE_PSEUDO_H

/* Makes the queue of descriptors and the pseudo driver's task. */
void pseudo_start(void);

/* The pin's interrupt: copies a packet's descriptor to the queue. */
void pseudo_interrupt(void);

#endif
