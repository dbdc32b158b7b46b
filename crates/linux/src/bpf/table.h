/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The table of receivers and the counters that demux.bpf.c shares with the program that loads it.
 * src/exact/layout.rs declares the same structures in Rust.
 */
#ifndef WEIR_LINUX_TABLE_H
#define WEIR_LINUX_TABLE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Number of slots of a table. It is a constant, since the verifier must know it. Half of the slots
 * are always usable (DEMUX-TABLE-5).
 */
#define WEIR_XDP_SLOTS 16384u
#define WEIR_DEMUX_MASK(table) ((void) (table), (uint16_t) (WEIR_XDP_SLOTS - 1u))

/**
 * How the code in core/ reads a frame. The file that includes this header defines the two
 * functions. `frame` is not a pointer to the bytes of the frame, but to the program's own frame_t.
 */
#define WEIR_DEMUX_BYTE(frame, at) weir_xdp_byte(frame, at)
static __attribute__((always_inline)) inline uint8_t weir_xdp_byte(const void *frame, uint16_t at);
#define WEIR_DEMUX_BE16(frame, at) weir_xdp_be16(frame, at)
static __attribute__((always_inline)) inline uint16_t weir_xdp_be16(const void *frame, uint16_t at);

#include "weir/demux.h"

/** Most classes. Each has a CPUMAP. */
#define WEIR_XDP_CLASSES 8u

/**
 * Number of tables: one for IPv4 and for packets without IP, and one for IPv6. The same port may
 * belong to different processes in the two versions of IP.
 */
#define WEIR_XDP_FAMILIES 2u

/** In weir_xdp_table_t::cpu: stands for the CPU on which the packet arrived. */
#define WEIR_XDP_SAME_CPU 0xffffffffu

/**
 * One of the tables. There are two for each version of IP: the program uses one while the other is
 * written.
 */
typedef struct {
    weir_demux_t head;
    uint16_t unused;
    uint32_t cpu[WEIR_XDP_CLASSES]; /**< where the bottom half of a class runs, or WEIR_XDP_SAME_CPU */
    uint32_t map[WEIR_XDP_CLASSES]; /**< the number of the CPUMAP of a class */
    weir_demux_slot_t slots[WEIR_XDP_SLOTS];
} weir_xdp_table_t;

/** Reasons for leaving a packet to the kernel as if there were no program. */
enum {
    WEIR_XDP_NO_RECEIVER = 0,
    WEIR_XDP_ARP = 1,
    WEIR_XDP_PTP = 2,
    WEIR_XDP_FRAGMENT = 3,
    WEIR_XDP_MULTI_BUFFER = 4, /**< it lies in several buffers: a jumbo frame, or packets that the card has joined */
    WEIR_XDP_TRUNCATED = 5,
    WEIR_XDP_MALFORMED = 6,
    WEIR_XDP_TOO_DEEP = 7,
    WEIR_XDP_NO_THREAD = 8, /**< its class has no kernel thread on the CPU to which it should go */
    WEIR_XDP_REASONS = 9
};

/** Numbers of packets since the program was loaded. Each CPU has counters that only it writes. */
typedef struct {
    uint64_t given[WEIR_XDP_CLASSES];   /**< packets that were given to a kernel thread of the class */
    uint64_t dropped[WEIR_XDP_CLASSES]; /**< the part of `given` that was dropped, since the thread's queue was full */
    uint64_t left[WEIR_XDP_REASONS];    /**< packets that were left to the kernel, by reason */
    uint64_t unused[7];                 /* keeps two CPUs from writing to the same cache line */
} weir_xdp_counts_t;

/** Number of ports that are counted for each CPU: first all of UDP, then all of TCP. */
#define WEIR_XDP_PORTS 131072u

_Static_assert(sizeof(weir_demux_t) == 14 && sizeof(weir_demux_slot_t) == 8, "as in layout.rs");
_Static_assert(offsetof(weir_xdp_table_t, cpu) == 16 && offsetof(weir_xdp_table_t, slots) == 80, "as in layout.rs");
_Static_assert(sizeof(weir_xdp_table_t) == 80 + 8 * WEIR_XDP_SLOTS, "as in layout.rs");
_Static_assert(offsetof(weir_xdp_counts_t, left) == 128 && sizeof(weir_xdp_counts_t) == 256, "as in layout.rs");

#endif
