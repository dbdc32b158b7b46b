/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mode exact (lee2010 §4). The program finds the receiver of each packet before the kernel spends
 * time on the packet, and gives the packet to a kernel thread of the receiver's class. The kernel's
 * scheduler runs that thread at the urgency of the class. Packets without a receiver are left to
 * the kernel unchanged.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "table.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define ETHERTYPE_ARP 0x0806u
#define ETHERTYPE_PTP 0x88f7u
#define ETHERTYPE_IPV6 0x86ddu
#define UDP 17u
#define TCP 6u
#define PTP_EVENT 319u
#define PTP_GENERAL 320u

/**
 * Most bytes of a frame that are read. The verifier needs such a bound. The headers that core's
 * parser follows are always shorter.
 */
#define DEEPEST 0x3fffu

/* The counters of each CPU. User space sets the number of elements before loading. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, weir_xdp_counts_t);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, WEIR_XDP_PORTS);
    __type(key, uint32_t);
    __type(value, uint64_t);
} ports SEC(".maps");

struct table {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, WEIR_XDP_FAMILIES);
    __type(key, uint32_t);
    __type(value, weir_xdp_table_t);
};

struct table table_a SEC(".maps");
struct table table_b SEC(".maps");

/*
 * The tables that are in use, one for each version of IP. When user space changes this map, the
 * kernel waits until all running programs have ended. So after the change, no program reads the
 * former tables.
 */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __array(values, struct table);
} in_use SEC(".maps") = {.values = {&table_a}};

/* The CPUMAP of a class. It has an entry for each CPU on which the class has a kernel thread. */
struct threads {
    __uint(type, BPF_MAP_TYPE_CPUMAP);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct bpf_cpumap_val);
};

struct threads class_0 SEC(".maps");
struct threads class_1 SEC(".maps");
struct threads class_2 SEC(".maps");
struct threads class_3 SEC(".maps");
struct threads class_4 SEC(".maps");
struct threads class_5 SEC(".maps");
struct threads class_6 SEC(".maps");
struct threads class_7 SEC(".maps");

/**
 * A frame, as core's parser reads it. If `is_plain` is true, `plain` points to its first
 * WEIR_DEMUX_PLAIN bytes, whose presence has been checked. Otherwise each byte is checked.
 */
typedef struct {
    struct xdp_md *ctx;
    const uint8_t *plain;
    bool is_plain;
} frame_t;

/*
 * This function and weir_xdp_parse_any() are not inlined, so that the verifier checks each of them
 * once, for any arguments. Otherwise their callers would have too many paths to verify.
 */
__noinline int weir_xdp_byte_at(struct xdp_md *ctx, uint32_t at)
{
    const uint8_t *byte = (const uint8_t *) (long) ctx->data + (at & DEEPEST);
    /* Core's parser has already checked `at` against the length, but the verifier cannot know. */
    return byte + 1 <= (const uint8_t *) (long) ctx->data_end ? *byte : 0;
}

static __always_inline uint8_t weir_xdp_byte(const void *frame, uint16_t at)
{
    const frame_t *of = frame;
    return of->is_plain ? of->plain[at] : (uint8_t) weir_xdp_byte_at(of->ctx, at);
}

static __always_inline uint16_t weir_xdp_be16(const void *frame, uint16_t at)
{
    const frame_t *of = frame;
    if (of->is_plain) {
        return __builtin_bswap16(*(const uint16_t *) (of->plain + at));
    }
    return (uint16_t) ((uint16_t) (weir_xdp_byte(frame, at) << 8) | weir_xdp_byte(frame, (uint16_t) (at + 1u)));
}

/*
 * Redirects the packet to the thread of a class on a CPU. Returns XDP_REDIRECT, or XDP_PASS if the
 * class has no thread on that CPU.
 */
static __always_inline long give(uint8_t which, uint32_t cpu)
{
    switch (which) {
    case 0:
        return bpf_redirect_map(&class_0, cpu, XDP_PASS);
    case 1:
        return bpf_redirect_map(&class_1, cpu, XDP_PASS);
    case 2:
        return bpf_redirect_map(&class_2, cpu, XDP_PASS);
    case 3:
        return bpf_redirect_map(&class_3, cpu, XDP_PASS);
    case 4:
        return bpf_redirect_map(&class_4, cpu, XDP_PASS);
    case 5:
        return bpf_redirect_map(&class_5, cpu, XDP_PASS);
    case 6:
        return bpf_redirect_map(&class_6, cpu, XDP_PASS);
    default:
        return bpf_redirect_map(&class_7, cpu, XDP_PASS);
    }
}

static __always_inline bool is_clocks(uint8_t protocol, uint16_t port)
{
    return protocol == UDP && (port == PTP_EVENT || port == PTP_GENERAL);
}

/*
 * The reason why a packet is left to the kernel whichever ports are bound. WEIR_XDP_NO_RECEIVER if
 * there is none, so that the table decides.
 */
static __always_inline uint8_t untouched(const weir_demux_packet_t *packet)
{
    switch (packet->outcome) {
    case WEIR_DEMUX_PORT:
        /* Any additional delay would make the synchronisation of clocks less exact. */
        return is_clocks(packet->protocol, packet->port) ? WEIR_XDP_PTP : WEIR_XDP_NO_RECEIVER;
    case WEIR_DEMUX_NOT_IP:
        if (packet->ethertype == ETHERTYPE_ARP) {
            return WEIR_XDP_ARP;
        }
        return packet->ethertype == ETHERTYPE_PTP ? WEIR_XDP_PTP : WEIR_XDP_NO_RECEIVER;
    case WEIR_DEMUX_OTHER_PROTOCOL:
        return WEIR_XDP_NO_RECEIVER;
    case WEIR_DEMUX_TRUNCATED:
        return WEIR_XDP_TRUNCATED;
    case WEIR_DEMUX_MALFORMED:
        return WEIR_XDP_MALFORMED;
    case WEIR_DEMUX_TOO_DEEP:
        return WEIR_XDP_TOO_DEEP;
    default:
        return WEIR_XDP_FRAGMENT;
    }
}

static __always_inline void count_port(uint8_t protocol, uint16_t port, uint32_t cpu)
{
    uint32_t at = cpu * WEIR_XDP_PORTS + (protocol == TCP ? WEIR_XDP_PORTS / 2u : 0u) + port;
    uint64_t *counted = bpf_map_lookup_elem(&ports, &at);
    if (counted) {
        (*counted)++;
    }
}

/*
 * Gives the packet to the thread of its class, on the CPU that the table names. Returns false if
 * there is no such thread.
 */
static __always_inline bool is_given(const weir_xdp_table_t *table, uint8_t class, uint32_t cpu, weir_xdp_counts_t *count)
{
    uint8_t which = class & (WEIR_XDP_CLASSES - 1u);
    uint32_t to = table->cpu[which];
    if (give(which, to == WEIR_XDP_SAME_CPU ? cpu : to) != XDP_REDIRECT) {
        return false;
    }
    count->given[which]++;
    return true;
}

/* Parses a frame of any form. The verifier assumes that `packet` may be null, hence the check. */
__noinline int weir_xdp_parse_any(struct xdp_md *ctx, uint32_t length, weir_demux_packet_t *packet)
{
    if (packet) {
        frame_t frame = {ctx, NULL, false};
        *packet = weir_demux_parse((const uint8_t *) &frame, (uint16_t) (length < DEEPEST ? length : DEEPEST));
    }
    return 0;
}

static __always_inline const weir_xdp_table_t *table_in_use(bool is_v6)
{
    uint32_t zero = 0;
    uint32_t family = is_v6;
    void *table = bpf_map_lookup_elem(&in_use, &zero);
    return table ? bpf_map_lookup_elem(table, &family) : NULL;
}

/*
 * Counts a packet that is left to the kernel. The compiler knows the possible reasons from the
 * switch in untouched(), and would drop the comparison. The verifier does not know them, and would
 * then refuse the program (clang 19). So the assembly hides the value of the reason from the
 * compiler.
 */
static __always_inline void count_left(weir_xdp_counts_t *count, uint32_t reason)
{
    __asm__ volatile("" : "+r"(reason));
    if (reason < sizeof count->left / sizeof count->left[0]) {
        count->left[reason]++;
    }
}

/*
 * Handles all packets that is_usual() does not. It is not inlined, so that the variables on its
 * stack cost the usual packets nothing.
 */
static __noinline int unusual(struct xdp_md *ctx, uint32_t length, uint32_t cpu, weir_xdp_counts_t *count)
{
    weir_demux_packet_t packet = {0};
    weir_xdp_parse_any(ctx, length, &packet);
    const weir_xdp_table_t *table = table_in_use(packet.ethertype == ETHERTYPE_IPV6);
    if (!table) {
        return XDP_PASS;
    }
    uint8_t reason = untouched(&packet);
    if (reason == WEIR_XDP_NO_RECEIVER) {
        weir_demux_found_t found = weir_demux_classify(&table->head, table->slots, &packet);
        if (found.kind == WEIR_DEMUX_BOUND) {
            if (is_given(table, found.which, cpu, count)) {
                if (packet.outcome == WEIR_DEMUX_PORT) {
                    count_port(packet.protocol, packet.port, cpu);
                }
                return XDP_REDIRECT;
            }
            reason = WEIR_XDP_NO_THREAD;
        }
    }
    count_left(count, reason);
    return XDP_PASS;
}

/*
 * Handles UDP and TCP packets for a bound port whose headers are at their usual offsets. Returns
 * false for all other packets. It is compiled once for each version of IP, so that all offsets are
 * constants.
 */
static __always_inline bool is_usual(const uint8_t *data, uint32_t length, bool is_v6, uint32_t cpu, weir_xdp_counts_t *count)
{
    frame_t frame = {NULL, data, true};
    weir_demux_packet_t packet;
    if (!weir_demux_parse_plain((const uint8_t *) &frame, (uint16_t) (length < DEEPEST ? length : DEEPEST), &packet) ||
        packet.outcome != WEIR_DEMUX_PORT || is_clocks(packet.protocol, packet.port)) {
        return false;
    }
    const weir_xdp_table_t *table = table_in_use(is_v6);
    if (!table) {
        return false;
    }
    weir_demux_found_t found = weir_demux_lookup(&table->head, table->slots, weir_demux_by_port(packet.protocol, packet.port));
    if (found.kind != WEIR_DEMUX_BOUND || !is_given(table, found.which, cpu, count)) {
        return false;
    }
    count_port(packet.protocol, packet.port, cpu);
    return true;
}

SEC("xdp.frags")
int weir_demux(struct xdp_md *ctx)
{
    uint32_t cpu = bpf_get_smp_processor_id();
    weir_xdp_counts_t *count = bpf_map_lookup_elem(&counts, &cpu);
    if (!count) {
        return XDP_PASS;
    }
    uint32_t length = ctx->data_end - ctx->data;
    if (bpf_xdp_get_buff_len(ctx) != length) {
        count->left[WEIR_XDP_MULTI_BUFFER]++;
        return XDP_PASS;
    }
    const uint8_t *data = (const uint8_t *) (long) ctx->data;
    if (data + WEIR_DEMUX_PLAIN <= (const uint8_t *) (long) ctx->data_end) {
        frame_t frame = {NULL, data, true};
        uint16_t type = weir_xdp_be16(&frame, 12);
        bool is_v6 = type == ETHERTYPE_IPV6;
        if (is_v6 ? is_usual(data, length, true, cpu, count) : is_usual(data, length, false, cpu, count)) {
            return XDP_REDIRECT;
        }
    }
    return unusual(ctx, length, cpu, count);
}

/*
 * Counts packets that found a thread's queue full. It runs once for each batch of at most 8 packets
 * that is put into a queue.
 */
SEC("tp_btf/xdp_cpumap_enqueue")
int weir_dropped(uint64_t *arguments)
{
    uint32_t map = (uint32_t) arguments[0];
    uint32_t drops = (uint32_t) arguments[2];
    if (drops == 0) {
        return 0;
    }
    uint32_t cpu = bpf_get_smp_processor_id();
    weir_xdp_counts_t *count = bpf_map_lookup_elem(&counts, &cpu);
    const weir_xdp_table_t *table = table_in_use(false);
    if (!count || !table) {
        return 0;
    }
    for (uint8_t which = 0; which < WEIR_XDP_CLASSES; which++) {
        if (table->map[which] == map) {
            count->dropped[which] += drops;
        }
    }
    return 0;
}
