/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Measures what interrupts cost, and in whose time they run (zhang2006 §4: the time of
 * net_rx_action and the packets that each process received). These programs only count. The program
 * in user space reads the counters, and computes from the differences which processes to charge.
 *
 * Each program runs once for an interrupt, a soft interrupt or a poll of a device. Only
 * account_delivered runs for each packet that a socket receives. It is attached only on request.
 */
#include "kernel.h"

#include "account.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The number of the soft interrupt that receives packets (<linux/interrupt.h>). */
#define NET_RX_SOFTIRQ 3u

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, weir_account_place_t);
    __type(value, weir_account_spent_t);
} spent SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, weir_account_delivery_t);
    __type(value, __u64);
} deliveries SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, weir_account_lost_t);
} lost SEC(".maps");

/* Numbers of the network devices' interrupts. The program in user space sets them. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32);
    __type(value, __u8);
} network_interrupts SEC(".maps");

/* The interrupt and the soft interrupt that are running on a CPU. Times are in ns. */
struct running {
    __u64 handler_began; /* 0 if no handler is running */
    __u64 handled;       /* sum of the times of all handlers so far */
    __u64 soft_began;
    __u64 handled_before; /* the value of `handled` when the soft interrupt began */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct running);
} running SEC(".maps");

static __always_inline struct running *now_running(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&running, &zero);
}

static __always_inline weir_account_lost_t *now_lost(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&lost, &zero);
}

static __always_inline weir_account_place_t here(void)
{
    struct task_struct *task = bpf_get_current_task_btf();
    __u32 host = (__u32) task->tgid;
    if (host != 0 && (task->flags & PF_KTHREAD) != 0) {
        host |= WEIR_ACCOUNT_KERNEL;
    }
    return (weir_account_place_t) {.cpu = bpf_get_smp_processor_id(), .host = host};
}

/* Finds the counters of this CPU and host, or creates them. NULL if the map is full. */
static __always_inline weir_account_spent_t *spent_here(void)
{
    weir_account_place_t place = here();
    weir_account_spent_t *found = bpf_map_lookup_elem(&spent, &place);
    if (found == NULL) {
        weir_account_spent_t nothing = {0};
        bpf_map_update_elem(&spent, &place, &nothing, BPF_NOEXIST);
        found = bpf_map_lookup_elem(&spent, &place);
    }
    return found;
}

static __always_inline void lose_time(__u64 time)
{
    weir_account_lost_t *l = now_lost();
    if (l != NULL) {
        l->time += time;
    }
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(account_handler_begins, int number, struct irqaction *action)
{
    struct running *r = now_running();
    if (r != NULL) {
        r->handler_began = bpf_ktime_get_ns();
    }
    return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(account_handler_ends, int number, struct irqaction *action, int result)
{
    struct running *r = now_running();
    /* The interrupt may have begun before the programs were attached. */
    if (r == NULL || r->handler_began == 0) {
        return 0;
    }
    __u64 time = bpf_ktime_get_ns() - r->handler_began;
    r->handler_began = 0;
    r->handled += time;
    weir_account_spent_t *s = spent_here();
    if (s == NULL) {
        lose_time(time);
        return 0;
    }
    __u32 key = (__u32) number;
    if (bpf_map_lookup_elem(&network_interrupts, &key) != NULL) {
        s->device += time;
    } else {
        s->others += time;
    }
    s->interrupts++;
    return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(account_soft_begins, unsigned int which)
{
    struct running *r = now_running();
    if (r != NULL) {
        r->handled_before = r->handled;
        r->soft_began = bpf_ktime_get_ns();
    }
    return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(account_soft_ends, unsigned int which)
{
    struct running *r = now_running();
    if (r == NULL || r->soft_began == 0) {
        return 0;
    }
    __u64 time = bpf_ktime_get_ns() - r->soft_began;
    __u64 handled = r->handled - r->handled_before;
    r->soft_began = 0;
    time = time > handled ? time - handled : 0;
    weir_account_spent_t *s = spent_here();
    if (s == NULL) {
        lose_time(time);
    } else if (which == NET_RX_SOFTIRQ) {
        s->receive += time;
    } else {
        s->soft += time;
    }
    return 0;
}

/*
 * Counts the packets that a poll has taken from a device. Virtual devices, such as the backlog of a
 * CPU or a tunnel, are left out, since their packets were counted where they arrived. A veth is
 * left out, too, unless a thread polls it.
 */
SEC("tp_btf/napi_poll")
int BPF_PROG(account_polled, struct napi_struct *napi, int work, int budget)
{
    struct net_device *device = napi->dev;
    if (work <= 0 || device == NULL || (device->dev.parent == NULL && napi->thread == NULL)) {
        return 0;
    }
    weir_account_spent_t *s = spent_here();
    if (s != NULL) {
        s->polled += (__u64) work;
    }
    return 0;
}

static __always_inline bool count(const weir_account_delivery_t *delivery, __u64 packets)
{
    __u64 *count = bpf_map_lookup_elem(&deliveries, delivery);
    if (count != NULL) {
        *count += packets;
        return true;
    }
    return bpf_map_update_elem(&deliveries, delivery, &packets, BPF_NOEXIST) == 0;
}

/*
 * Counts a packet, or several that were joined, for the socket that receives it. At this point only
 * the queueing of the packet remains to be done.
 */
SEC("cgroup_skb/ingress")
int account_delivered(struct __sk_buff *skb)
{
    struct bpf_sock *sk = skb->sk == NULL ? NULL : bpf_sk_fullsock(skb->sk);
    if (sk == NULL) {
        return 1;
    }
    weir_account_delivery_t delivery = {
        .place = here(),
        .interface = skb->ifindex,
        .port = (uint16_t) sk->src_port,
        .protocol = (uint16_t) sk->protocol,
        .cookie = bpf_get_socket_cookie(skb),
    };
    __u64 packets = skb->gso_segs > 1 ? skb->gso_segs : 1;
    if (!count(&delivery, packets)) {
        delivery.cookie = 0;
        if (!count(&delivery, packets)) {
            weir_account_lost_t *l = now_lost();
            if (l != NULL) {
                l->packets += packets;
            }
        }
    }
    return 1;
}
