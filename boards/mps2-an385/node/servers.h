/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the node serves: UDP on port 5000 (received and dropped) and 7 (sent back), lwIP's pages on
 * port 80, and Modbus/TCP on port 502. */
#ifndef NODE_SERVERS_H
#define NODE_SERVERS_H

#include <stdint.h>

enum { SERVERS_UDP_PORT = 5000, SERVERS_ECHO_PORT = 7, SERVERS_MODBUS_PORT = 502 };

/* How urgent UDP's server on port 5000 is. */
uint32_t servers_udp_urgency(void);

/* Makes the servers' tasks. Called in lwIP's thread. */
void servers_start(void);

#endif
