/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The counters that account.bpf.c shares with the program that loads it. Every element belongs to
 * one CPU and one host, so nothing else writes to it at the same time. src/account/layout.rs
 * declares the same structures in Rust.
 */
#ifndef WEIR_LINUX_ACCOUNT_H
#define WEIR_LINUX_ACCOUNT_H

#include <stdint.h>

/**
 * Flag that is added to the number of a kernel thread, since the thread may have ended when the
 * counters are read. Numbers of threads are below 2^22.
 */
#define WEIR_ACCOUNT_KERNEL 0x80000000u

/** Where interrupt work was done: on which CPU, and in the time of which process or thread. */
typedef struct {
    uint32_t cpu;
    uint32_t host; /**< the interrupted process, or WEIR_ACCOUNT_KERNEL plus the kernel thread that did the work, or 0 for an idle CPU */
} weir_account_place_t;

/** Costs at a place so far. Times are in ns, and none includes the time of nested interrupts. */
typedef struct {
    uint64_t device;     /**< in handlers of network devices */
    uint64_t others;     /**< in handlers of other devices */
    uint64_t receive;    /**< in the soft interrupt that receives (NET_RX) */
    uint64_t soft;       /**< in the other soft interrupts */
    uint64_t interrupts; /**< number of device handlers that ran */
    uint64_t polled;     /**< packets that were taken from devices */
} weir_account_spent_t;

/** A socket that received packets, and the place where they were delivered to it. */
typedef struct {
    weir_account_place_t place;
    uint32_t interface; /**< index of the interface on which the packets arrived, in its network namespace */
    uint16_t port;
    uint16_t protocol;
    uint64_t cookie; /**< cookie of the socket, or 0 for any socket of the port, if the map had no room for another socket */
} weir_account_delivery_t;

/** Work that was not counted, since the maps had no room for another place or socket. */
typedef struct {
    uint64_t time; /**< ns */
    uint64_t packets;
} weir_account_lost_t;

_Static_assert(sizeof(weir_account_place_t) == 8 && sizeof(weir_account_spent_t) == 48, "as in layout.rs");
_Static_assert(sizeof(weir_account_delivery_t) == 24 && sizeof(weir_account_lost_t) == 16, "as in layout.rs");

#endif
