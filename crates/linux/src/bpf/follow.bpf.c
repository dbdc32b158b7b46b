/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Reports to user space which processes receive on which ports, and changes of that, with the
 * urgencies of the processes.
 *
 * All reports are records of the same type. Changes are reported through the ring buffer, and the
 * iterators report existing sockets and threads. src/receivers/record.rs decodes the records.
 */
#include "kernel.h"

#include <bpf/bpf_endian.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
/* In several languages, listeners use multipath TCP by default. Their packets are TCP packets. */
#define IPPROTO_MPTCP 262
/* States of a socket. UDP sockets use the states of TCP, too. */
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define AF_INET 2
#define AF_INET6 10

enum weir_follow_kind {
    WEIR_FOLLOW_BOUND = 1,    /* a process has bound a socket, or an iterator has found a bound socket */
    WEIR_FOLLOW_RELEASED = 2, /* a socket was released */
    WEIR_FOLLOW_SENT = 3,     /* a socket has sent a packet, whose binding was not reported; the process may not be its owner */
    WEIR_FOLLOW_FORKED = 4,   /* a process was created, with the sockets of its parent */
    WEIR_FOLLOW_THREAD = 5,   /* a thread was created, or an iterator has found a thread */
    WEIR_FOLLOW_ENDED = 6,    /* a thread has ended */
    WEIR_FOLLOW_EXITED = 7,   /* a process has ended */
    WEIR_FOLLOW_EXECUTED = 8, /* a process has executed a program, which ends its other threads and closes sockets with FD_CLOEXEC */
    WEIR_FOLLOW_MIGRATED = 9, /* a process was moved to another cgroup */
};

#define WEIR_FOLLOW_V4 1
#define WEIR_FOLLOW_V6 2

/*
 * Stands for the user of a process whose effective user differs from its real user (set-user-ID).
 * No user has this number.
 */
#define WEIR_FOLLOW_MIXED 0xffffffff

struct weir_follow_record {
    __u32 kind;
    __u32 pid;
    __u32 tid;
    __u32 other;     /* for FORKED, the number of the parent process */
    __u64 start;     /* start of the process, in ns since boot, which distinguishes processes with the same number */
    __u64 cookie;    /* cookie of the socket */
    __u64 namespace; /* cookie of the socket's network namespace */
    __u64 cgroup;    /* number of the process's cgroup v2 */
    __u32 device;    /* index of the interface that the socket is bound to, or 0; only an iterator knows it */
    __u16 port;
    __u8 protocol;
    __u8 urgency;   /* urgency of the thread */
    __u8 loopback;  /* whether the socket is bound to an address of the loopback interface */
    __u8 connected; /* whether the socket is connected; only an iterator knows it */
    __u8 families;  /* versions of IP that the socket receives: WEIR_FOLLOW_V4, _V6, or both; 0: see follow_bind6() */
    __u8 padding;
    __u32 user; /* number of the process's user, or WEIR_FOLLOW_MIXED */
    char comm[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} records SEC(".maps");

/* Number of records that were lost for lack of room. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} lost SEC(".maps");

/*
 * Processes that have had a socket. Events of other processes are not reported. If the map has no
 * room for a process, the next scan finds the process.
 */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, __u8);
} readers SEC(".maps");

/*
 * Cookie of a socket that has been reported. A socket that a listener has accepted inherits the
 * listener's cookie. So follow_release() does not report its end, which changes nothing, since the
 * listener has the same port.
 */
struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
    __type(key, int);
    __type(value, __u64);
} told SEC(".maps");

static __always_inline struct weir_follow_record *begin(__u32 kind)
{
    struct weir_follow_record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
    if (r == NULL) {
        __u32 zero = 0;
        __u64 *count = bpf_map_lookup_elem(&lost, &zero);
        if (count != NULL) {
            __sync_fetch_and_add(count, 1);
        }
        return NULL;
    }
    __builtin_memset(r, 0, sizeof(*r));
    r->kind = kind;
    return r;
}

static __always_inline void describe(struct weir_follow_record *r, struct task_struct *task)
{
    r->pid = BPF_CORE_READ(task, tgid);
    r->tid = BPF_CORE_READ(task, pid);
    r->start = BPF_CORE_READ(task, group_leader, start_boottime);
    r->urgency = weir_urgency_of(task);
    r->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
    r->user = BPF_CORE_READ(task, group_leader, real_cred, uid.val);
    if (r->user != BPF_CORE_READ(task, group_leader, real_cred, euid.val)) {
        r->user = WEIR_FOLLOW_MIXED;
    }
    BPF_CORE_READ_STR_INTO(&r->comm, task, group_leader, comm);
}

static __always_inline void tell(__u32 kind, struct task_struct *task, __u32 other)
{
    struct weir_follow_record *r = begin(kind);
    if (r != NULL) {
        describe(r, task);
        r->other = other;
        bpf_ringbuf_submit(r, 0);
    }
}

static __always_inline void mark(__u32 pid)
{
    __u8 one = 1;
    bpf_map_update_elem(&readers, &pid, &one, BPF_ANY);
}

static __always_inline bool is_marked(__u32 pid)
{
    return bpf_map_lookup_elem(&readers, &pid) != NULL;
}

/* ------------------------------------------------------------------------------------- sockets */

static __always_inline bool has_ports(__u32 protocol)
{
    return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

static __always_inline int bound(struct bpf_sock *sk, bool loopback, __u8 families)
{
    struct task_struct *task = (struct task_struct *) bpf_get_current_task();
    if (!has_ports(sk->protocol)) {
        return 1;
    }
    __u64 cookie = bpf_get_socket_cookie(sk);
    __u64 *mine = bpf_sk_storage_get(&told, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
    if (mine != NULL) {
        *mine = cookie;
    }
    struct weir_follow_record *r = begin(WEIR_FOLLOW_BOUND);
    if (r != NULL) {
        describe(r, task);
        r->cookie = cookie;
        r->namespace = bpf_get_netns_cookie(sk);
        r->protocol = (__u8) sk->protocol;
        r->port = (__u16) sk->src_port;
        r->loopback = loopback;
        r->families = families;
        mark(r->pid);
        bpf_ringbuf_submit(r, 0);
    }
    return 1;
}

SEC("cgroup/post_bind4")
int follow_bind4(struct bpf_sock *sk)
{
    return bound(sk, (sk->src_ip4 & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000), WEIR_FOLLOW_V4);
}

/*
 * A socket that is bound to the address :: receives IPv6, and perhaps IPv4. Only an iterator can
 * read the option that decides, so the record has 0 for the versions of IP.
 */
SEC("cgroup/post_bind6")
int follow_bind6(struct bpf_sock *sk)
{
    __u32 high = sk->src_ip6[0] | sk->src_ip6[1];
    __u32 middle = sk->src_ip6[2];
    __u32 low = sk->src_ip6[3];
    bool is_mapped = high == 0 && middle == bpf_htonl(0xffff);
    if (is_mapped) {
        return bound(sk, (low & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000), WEIR_FOLLOW_V4);
    }
    bool is_any = (high | middle | low) == 0;
    return bound(sk, (high | middle) == 0 && low == bpf_htonl(1), is_any ? 0 : WEIR_FOLLOW_V6);
}

SEC("cgroup/sock_release")
int follow_release(struct bpf_sock *sk)
{
    __u64 cookie = bpf_get_socket_cookie(sk);
    __u64 *mine = bpf_sk_storage_get(&told, sk, NULL, 0);
    if (mine == NULL || *mine != cookie) {
        return 1;
    }
    struct weir_follow_record *r = begin(WEIR_FOLLOW_RELEASED);
    if (r != NULL) {
        r->cookie = cookie;
        bpf_ringbuf_submit(r, 0);
    }
    return 1;
}

/*
 * Reports the first packet of a socket whose binding was not reported. The kernel may choose a port
 * at the first send or connect, and no program can be attached to that.
 */
SEC("cgroup_skb/egress")
int follow_egress(struct __sk_buff *skb)
{
    struct bpf_sock *sk = skb->sk;
    if (sk == NULL) {
        return 1;
    }
    sk = bpf_sk_fullsock(sk);
    if (sk == NULL || !has_ports(sk->protocol) || bpf_sk_storage_get(&told, sk, NULL, 0) != NULL) {
        return 1;
    }
    __u64 *mine = bpf_sk_storage_get(&told, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
    if (mine != NULL) {
        *mine = bpf_get_socket_cookie(skb);
        struct weir_follow_record *r = begin(WEIR_FOLLOW_SENT);
        if (r != NULL) {
            describe(r, (struct task_struct *) bpf_get_current_task());
            r->cookie = *mine;
            bpf_ringbuf_submit(r, 0);
        }
    }
    return 1;
}

/* ----------------------------------------------------------------------------------- processes */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child)
{
    if (!is_marked(parent->tgid)) {
        return 0;
    }
    if (parent->tgid == child->tgid) {
        tell(WEIR_FOLLOW_THREAD, child, 0);
    } else {
        mark(child->tgid);
        tell(WEIR_FOLLOW_FORKED, child, parent->tgid);
    }
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(follow_exec, struct task_struct *task)
{
    if (is_marked(task->tgid)) {
        tell(WEIR_FOLLOW_EXECUTED, task, 0);
    }
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(follow_exit, struct task_struct *task)
{
    __u32 pid = task->tgid;
    if (!is_marked(pid)) {
        return 0;
    }
    bool is_last = BPF_CORE_READ(task, signal, live.counter) == 0;
    if (is_last) {
        bpf_map_delete_elem(&readers, &pid);
    }
    tell(is_last ? WEIR_FOLLOW_EXITED : WEIR_FOLLOW_ENDED, task, 0);
    return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(follow_migration, struct cgroup *destination, const char *path, struct task_struct *task)
{
    if (is_marked(task->tgid)) {
        tell(WEIR_FOLLOW_MIGRATED, task, 0);
    }
    return 0;
}

/* ----------------------------------------------------------------------- what is there already */

static __always_inline bool is_loopback(const struct sock *sk, __u16 family)
{
    if (family == AF_INET) {
        return (BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr) & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
    }
    __u32 address[4] = {0};
    BPF_CORE_READ_INTO(&address, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
    if (address[0] != 0 || address[1] != 0) {
        return false;
    }
    if (address[2] == bpf_htonl(0xffff)) {
        return (address[3] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
    }
    return address[2] == 0 && address[3] == bpf_htonl(1);
}

static __always_inline __u8 families_of(const struct sock *sk, __u16 family)
{
    if (family == AF_INET) {
        return WEIR_FOLLOW_V4;
    }
    __u32 address[4] = {0};
    BPF_CORE_READ_INTO(&address, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
    if ((address[0] | address[1]) == 0 && address[2] == bpf_htonl(0xffff)) {
        return WEIR_FOLLOW_V4;
    }
    const struct sock_common *common = &sk->__sk_common;
    bool is_any = (address[0] | address[1] | address[2] | address[3]) == 0;
    return is_any && BPF_CORE_READ_BITFIELD_PROBED(common, skc_ipv6only) == 0 ? WEIR_FOLLOW_V4 | WEIR_FOLLOW_V6 : WEIR_FOLLOW_V6;
}

SEC("iter/task_file")
int follow_files(struct bpf_iter__task_file *context)
{
    struct task_struct *task = context->task;
    struct file *file = context->file;
    if (task == NULL || file == NULL) {
        return 0;
    }
    /* The process has ended, and that has been reported. Its files are closed only later. */
    if (BPF_CORE_READ(task, signal, live.counter) == 0) {
        return 0;
    }
    struct socket *socket = bpf_sock_from_file(file);
    if (socket == NULL) {
        return 0;
    }
    struct sock *sk = socket->sk;
    if (sk == NULL) {
        return 0;
    }
    __u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
    __u16 protocol = BPF_CORE_READ(sk, sk_protocol);
    __u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);
    if (protocol == IPPROTO_MPTCP) {
        protocol = IPPROTO_TCP;
    }
    if ((family != AF_INET && family != AF_INET6) || !has_ports(protocol) || port == 0) {
        return 0;
    }
    struct weir_follow_record r = {.kind = WEIR_FOLLOW_BOUND};
    describe(&r, task);
    r.cookie = bpf_get_socket_cookie(sk);
    r.namespace = BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
    r.device = (__u32) BPF_CORE_READ(sk, __sk_common.skc_bound_dev_if);
    r.protocol = (__u8) protocol;
    r.port = port;
    r.loopback = is_loopback(sk, family);
    r.families = families_of(sk, family);
    unsigned char state = BPF_CORE_READ(sk, __sk_common.skc_state);
    r.connected = state != TCP_LISTEN && state != TCP_CLOSE;
    __u64 *mine = bpf_sk_storage_get(&told, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
    if (mine != NULL) {
        *mine = r.cookie;
    }
    mark(r.pid);
    bpf_seq_write(context->meta->seq, &r, sizeof(r));
    return 0;
}

/* Reports the threads of marked processes. The scan of the files marks them, so it runs first. */
SEC("iter/task")
int follow_threads(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    if (task == NULL || !is_marked(BPF_CORE_READ(task, tgid))) {
        return 0;
    }
    struct weir_follow_record r = {.kind = WEIR_FOLLOW_THREAD};
    describe(&r, task);
    bpf_seq_write(context->meta->seq, &r, sizeof(r));
    return 0;
}
