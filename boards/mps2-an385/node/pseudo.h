/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Simulated packets (behnke2021 §III-D.2): the interrupt of a pin takes the place of the card's. */
#ifndef NODE_PSEUDO_H
#define NODE_PSEUDO_H

/* Creates the queue of descriptors and the task of the pseudo driver. */
void pseudo_start(void);

/* Handles the pin's interrupt: copies a packet's descriptor to the queue. */
void pseudo_interrupt(void);

#endif
