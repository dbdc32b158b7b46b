/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The two drivers of the card.
 *
 * masked: the interrupt switches itself off and wakes the driver's task, which reads all frames
 * that are there and switches it on again. As long as the task may not run, no interrupt comes.
 *
 * packet: each interrupt takes one frame's status and gives it to the driver's task by a queue.
 */
#ifndef NODE_DRIVER_H
#define NODE_DRIVER_H

struct netif;

/* Switches the card on and makes the driver's task, which hands frames to `netif`. */
void driver_start(struct netif *netif);

/* The card's interrupt. */
void driver_interrupt(void);

#endif
