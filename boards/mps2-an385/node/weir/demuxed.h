/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of ../stages.h that only driver=demux has. */
#ifndef NODE_DEMUXED_H
#define NODE_DEMUXED_H

#include <stdbool.h>

struct netif;

/* Creates the workers, which hand frames to `netif`. */
void demuxed_start(struct netif *netif);

/* Both functions are about gathered frames. The first, called in the tick, returns whether their
 * waiting time is over. The second returns whether to take them now. */
bool demuxed_wait_ends(void);
bool demuxed_is_due(void);

/* If `is_other`, gives the first Modbus server a budget of one frame per millisecond and unbinds
 * the port of the UDP server. Otherwise restores the settings from the start. */
void demuxed_change(bool is_other);

/* Starts the next period of all budgets, which is a millisecond. */
void demuxed_refill(void);

#endif
