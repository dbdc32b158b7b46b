/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* driver=demux: the rest of ../stages.h is its own. */
#ifndef NODE_DEMUXED_H
#define NODE_DEMUXED_H

#include <stdbool.h>

struct netif;

/* Makes the workers, which hand frames to `netif`. */
void demuxed_start(struct netif *netif);

/* Has the time of gathered frames passed, by the tick? Are they to be taken now? */
bool demuxed_wait_ends(void);
bool demuxed_is_due(void);

/* The first server of Modbus gets one frame in a millisecond and the UDP server's port has nobody,
 * or all is as it was at the start. */
void demuxed_change(bool is_other);

/* Begins the next millisecond of all budgets. */
void demuxed_refill(void);

#endif
