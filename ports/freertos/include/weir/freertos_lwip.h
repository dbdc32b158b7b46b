/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Weir on FreeRTOS with lwIP. Workers hand frames to lwIP at their own urgency, under lwIP's core
 * lock, instead of through its single thread. A worker waits at most for the work that a less
 * urgent task does under this lock, because the mutex inherits the worker's urgency.
 *
 * lwIP must be configured with LWIP_TCPIP_CORE_LOCKING and LWIP_SUPPORT_CUSTOM_PBUF, and the netif
 * must have been added with ethernet_input in place of tcpip_input. Frames stay in the buffers of
 * their class: received frames do not use lwIP's own pool, and no class can exhaust another's
 * buffers.
 */
#ifndef WEIR_FREERTOS_LWIP_H
#define WEIR_FREERTOS_LWIP_H

#include "lwip/netif.h"

#include "weir/freertos.h"

/** The weir_freertos_input_t for lwIP. The context is the `netif`. */
void weir_freertos_lwip_input(void *netif, weir_freertos_frame_t *frame);

#endif
