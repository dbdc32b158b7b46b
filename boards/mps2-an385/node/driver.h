/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The two drivers of the card that do not use Weir's stages.
 *
 * masked: the interrupt disables itself and wakes the driver's task. The task reads all waiting
 * frames and enables the interrupt again. As long as the task cannot run, no interrupt comes.
 *
 * packet: each interrupt takes the status of one frame, and passes it to the driver's task through
 * a queue.
 */
#ifndef NODE_DRIVER_H
#define NODE_DRIVER_H

struct netif;

/* Enables the card and creates the driver's task, which hands frames to `netif`. */
void driver_start(struct netif *netif);

/* Handles the card's interrupt. */
void driver_interrupt(void);

#endif
