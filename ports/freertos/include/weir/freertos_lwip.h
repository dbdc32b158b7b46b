/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Weir on FreeRTOS with lwIP: workers give frames to lwIP at their own urgency, under its core
 * lock, and not through its one thread. A worker waits at most for what a less urgent task does
 * under that lock: the mutex lends it the worker's urgency.
 *
 * lwIP needs LWIP_TCPIP_CORE_LOCKING and LWIP_SUPPORT_CUSTOM_PBUF, and a netif that was added with
 * ethernet_input in place of tcpip_input. Frames stay in their class's buffers: lwIP's own pool is
 * not used for what is received, and no class can use up another's.
 */
#ifndef WEIR_FREERTOS_LWIP_H
#define WEIR_FREERTOS_LWIP_H

#include "lwip/netif.h"

#include "weir/freertos.h"

/** A weir_freertos_input_t; `netif` is its context. */
void weir_freertos_lwip_input(void *netif, weir_freertos_frame_t *frame);

#endif
