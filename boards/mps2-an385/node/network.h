/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node's network interface. */
#ifndef NODE_NETWORK_H
#define NODE_NETWORK_H

/* Starts lwIP, and with real packets the card, its driver, the address and the servers. */
void network_start(void);

#endif
