/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* driver=demux: the rest of ../stages.h is its own. */
#ifndef NODE_DEMUXED_H
#define NODE_DEMUXED_H

struct netif;

/* Makes the workers, which hand frames to `netif`. */
void demuxed_start(struct netif *netif);

/* Begins the next millisecond of all budgets. */
void demuxed_refill(void);

#endif
