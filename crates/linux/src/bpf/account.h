/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The counters that account.bpf.c shares with the program that loads it. Every element belongs to
 * one CPU and one host, so nothing else writes to it at the same time. Counterpart:
 * src/account/layout.rs.
 */
#ifndef WEIR_LINUX_ACCOUNT_H
#define WEIR_LINUX_ACCOUNT_H

#include <stdint.h>

/**
 * Flag beside the number of a kernel thread, which may have ended when the counters are read.
 * Numbers are below 2^22.
 */
#define WEIR_ACCOUNT_KERNEL 0x80000000u

/** Place of interrupt work: a CPU, and the host whose time was used. */
typedef struct {
    uint32_t cpu;
    uint32_t host; /**< the process that was interrupted, or WEIR_ACCOUNT_KERNEL and the thread that did the work; 0: the CPU was idle */
} weir_account_place_t;

/** Costs at a place so far. Times are in ns, each without nested interrupts. */
typedef struct {
    uint64_t device;     /**< in handlers of network devices */
    uint64_t others;     /**< in handlers of other devices */
    uint64_t receive;    /**< in the soft interrupt that receives (NET_RX) */
    uint64_t soft;       /**< in the other soft interrupts */
    uint64_t interrupts; /**< how many handlers of devices ran */
    uint64_t polled;     /**< packets that were taken from devices */
} weir_account_spent_t;

/** Receiver of packets, and the place of their delivery. */
typedef struct {
    weir_account_place_t place;
    uint32_t interface; /**< its index in the socket's network namespace */
    uint16_t port;
    uint16_t protocol;
    uint64_t cookie; /**< the socket; 0: any of that port, since there was no room for another socket */
} weir_account_delivery_t;

/** Work for which the maps had no room. */
typedef struct {
    uint64_t time; /**< ns */
    uint64_t packets;
} weir_account_lost_t;

_Static_assert(sizeof(weir_account_place_t) == 8 && sizeof(weir_account_spent_t) == 48, "as in layout.rs");
_Static_assert(sizeof(weir_account_delivery_t) == 24 && sizeof(weir_account_lost_t) == 16, "as in layout.rs");

#endif
