/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node's servers: UDP on port 5000 (received and dropped) and 7 (sent back), lwIP's web pages
 * on port 80, and Modbus/TCP on port 502. */
#ifndef NODE_SERVERS_H
#define NODE_SERVERS_H

#include <stdint.h>

enum { SERVERS_UDP_PORT = 5000, SERVERS_ECHO_PORT = 7, SERVERS_MODBUS_PORT = 502 };

/* Returns the FreeRTOS priority of the UDP server on port 5000. */
uint32_t servers_udp_urgency(void);

/* Creates the servers' tasks. Must be called in lwIP's thread. */
void servers_start(void);

#endif
