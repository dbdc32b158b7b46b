/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The members of the kernel's structures that the BPF programs read. The loader finds their offsets
 * in the running kernel (CO-RE).
 */
#ifndef WEIR_LINUX_KERNEL_H
#define WEIR_LINUX_KERNEL_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/*
 * A program declares all of its arguments, even unused ones, and libbpf's macro adds a parameter of
 * its own.
 */
#pragma clang diagnostic ignored "-Wunused-parameter"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Atomic counters of the kernel: atomic_t and atomic64_t. */
typedef struct {
    int counter;
} atomic_t;
typedef struct {
    long long counter;
} atomic64_t;

struct kernfs_node {
    __u64 id;
};

struct cgroup {
    struct kernfs_node *kn;
};

struct css_set {
    struct cgroup *dfl_cgrp;
};

/* A user, by the number that it has outside of all user namespaces. */
typedef struct {
    __u32 val;
} kuid_t;

struct cred {
    kuid_t uid;
    kuid_t euid;
};

struct signal_struct {
    atomic_t live;
};

struct pid {
    unsigned int level;
};

struct inode {
    unsigned short i_mode;
};

struct file {
    struct inode *f_inode;
};

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

/* The bit of `flags` that marks a kernel thread (<linux/sched.h>). */
#define PF_KTHREAD 0x00200000

struct task_struct {
    unsigned int __state;
    unsigned int flags;
    int on_cpu;
    unsigned int rt_priority;
    unsigned int policy;
    int pid;
    int tgid;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    __u64 start_boottime;
    char comm[16];
    struct signal_struct *signal;
    const struct cred *real_cred;
    struct css_set *cgroups;
    struct files_struct *files;
};

struct in6_addr {
    union {
        __u8 u6_addr8[16];
    } in6_u;
};

struct net {
    __u64 net_cookie;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct sock_common {
    unsigned short skc_family;
    volatile unsigned char skc_state;
    unsigned char skc_reuse : 4;
    unsigned char skc_reuseport : 1;
    unsigned char skc_ipv6only : 1;
    __u16 skc_num;
    __be32 skc_rcv_saddr;
    int skc_bound_dev_if;
    possible_net_t skc_net;
    struct in6_addr skc_v6_rcv_saddr;
    atomic64_t skc_cookie;
};

struct sock {
    struct sock_common __sk_common;
    __u16 sk_protocol;
};

struct socket {
    struct sock *sk;
};

struct device {
    struct device *parent;
};

struct net_device {
    struct device dev;
};

struct napi_struct {
    struct net_device *dev;
    struct task_struct *thread;
};

struct irqaction;

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

struct bpf_iter__task_file {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
    __u32 fd;
    struct file *file;
};

/* A task's registers when it entered the kernel. They differ between processor architectures. */
struct pt_regs___x86 {
    unsigned long di;
    unsigned long orig_ax;
};
struct pt_regs___arm64 {
    __u64 orig_x0;
    __s32 syscallno;
};

#pragma clang attribute pop

/* Scheduling policies. BPF programs cannot include <linux/sched.h>, which needs the C library. */
#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_DEADLINE 6

/*
 * The urgency of a task: its real-time priority, 99 for SCHED_DEADLINE, or 0 for all other
 * policies. A priority that the task has inherited through a lock does not count.
 */
static __always_inline __u8 weir_urgency_of(struct task_struct *task)
{
    unsigned int policy = BPF_CORE_READ(task, policy);
    if (policy == SCHED_DEADLINE) {
        return 99;
    }
    return policy == SCHED_FIFO || policy == SCHED_RR ? (__u8) BPF_CORE_READ(task, rt_priority) : 0;
}

/* Number of the system call of a task with these registers, or -1 if it is not known. */
static __always_inline long weir_call_of(const void *registers)
{
    const struct pt_regs___x86 *x86 = registers;
    const struct pt_regs___arm64 *arm64 = registers;
    if (bpf_core_field_exists(x86->orig_ax)) {
        return (long) BPF_CORE_READ(x86, orig_ax);
    }
    if (bpf_core_field_exists(arm64->syscallno)) {
        return BPF_CORE_READ(arm64, syscallno);
    }
    return -1;
}

/* The first argument of the system call of a task with these registers. */
static __always_inline long weir_first_argument_of(const void *registers)
{
    const struct pt_regs___x86 *x86 = registers;
    const struct pt_regs___arm64 *arm64 = registers;
    if (bpf_core_field_exists(x86->orig_ax)) {
        return (long) BPF_CORE_READ(x86, di);
    }
    if (bpf_core_field_exists(arm64->syscallno)) {
        return (long) BPF_CORE_READ(arm64, orig_x0);
    }
    return 0;
}

#endif
