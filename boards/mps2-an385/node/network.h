/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node's network interface. */
#ifndef NODE_NETWORK_H
#define NODE_NETWORK_H

/* Starts lwIP. If the packets are real, also starts the card, its driver and the servers, and sets
 * the address. */
void network_start(void);

#endif
