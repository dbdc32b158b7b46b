/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Counts, for each device and urgency, the receivers' threads that wait for a packet. The next
 * interrupt is predicted to be for the most urgent of them (zhang2006 §3.2). The program wakes user
 * space through the ring buffer `bell` when the most urgent waiting class of a device may have
 * changed. A class here is an urgency from 0 to 99.
 *
 * A thread counts as waiting from the moment at which it falls asleep in a system call that
 * receives or polls until it is on a CPU again. It is not checked which descriptors it polls.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TASK_INTERRUPTIBLE 1
#define S_IFMT 0170000
#define S_IFSOCK 0140000

#define DEVICES 8
#define CLASSES 100
#define CALLS 512

/*
 * How each system call waits, by its number. User space sets this before loading, since the numbers
 * differ between processor architectures.
 */
enum {
    WEIR_WAITING_NO = 0,
    WEIR_WAITING_RECEIVES = 1, /* the call receives, or polls */
    WEIR_WAITING_READS = 2,    /* the call receives if its first argument is a socket */
};

const volatile __u8 calls[CALLS] = {0};

/*
 * The state of a registered thread: its urgency, whether it waits, and a bit for each device. It is
 * a single word, so that it changes atomically.
 */
#define URGENCY(word) ((word) & 0xff)
#define WAITS 0x100
#define DEVICES_OF(word) ((word) >> 16)

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, __u32);
} threads SEC(".maps");

struct weir_waiting_state {
    int waiting[DEVICES][CLASSES];
    __u32 applied[DEVICES]; /* the urgency that user space has given to the device's bottom half */
    __u32 rung;             /* whether the bell has rung, and user space has not yet reacted */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct weir_waiting_state);
} state SEC(".maps");

/* A record in this ring buffer wakes user space. `rung` keeps the buffer from becoming full. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} bell SEC(".maps");

static __always_inline void ring(struct weir_waiting_state *s)
{
    if (__sync_lock_test_and_set(&s->rung, 1) == 0) {
        __u64 nothing = 0;
        bpf_ringbuf_output(&bell, &nothing, sizeof(nothing), 0);
    }
}

/*
 * Adds a waiting thread (`change` is 1) or removes one (-1). A comparison with an old value of
 * `applied` does no harm, since user space checks the counts again after it has written `applied`.
 */
static __always_inline void count(__u32 word, int change)
{
    __u32 zero = 0;
    struct weir_waiting_state *s = bpf_map_lookup_elem(&state, &zero);
    __u32 class = URGENCY(word);
    if (s == NULL || class >= CLASSES) {
        return;
    }
#pragma unroll
    for (int device = 0; device < DEVICES; device++) {
        if ((DEVICES_OF(word) >> device & 1) == 0) {
            continue;
        }
        int before = __sync_fetch_and_add(&s->waiting[device][class], change);
        __u32 applied = *(volatile __u32 *) &s->applied[device];
        if (change > 0 ? before == 0 && class > applied : before == 1 && class == applied) {
            ring(s);
        }
    }
}

static __always_inline void begin_to_wait(__u32 *word)
{
    __u32 before = __sync_fetch_and_or(word, WAITS);
    if ((before & WAITS) == 0) {
        count(before, 1);
    }
}

static __always_inline void end_to_wait(__u32 *word)
{
    if ((*(volatile __u32 *) word & WAITS) == 0) {
        return;
    }
    __u32 before = __sync_fetch_and_and(word, ~(__u32) WAITS);
    if ((before & WAITS) != 0) {
        count(before, -1);
    }
}

static __always_inline bool is_socket(struct task_struct *task, __u32 descriptor)
{
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file **files = BPF_CORE_READ(table, fd);
    struct file *file = NULL;
    if (descriptor >= BPF_CORE_READ(table, max_fds) || bpf_probe_read_kernel(&file, sizeof(file), files + descriptor) != 0) {
        return false;
    }
    return (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
}

/* Whether a sleeping task sleeps in a system call that receives or polls. */
static __always_inline bool receives(struct task_struct *task)
{
    void *registers = (void *) bpf_task_pt_regs(task);
    long call = weir_call_of(registers);
    if (call < 0 || call >= CALLS) {
        return false;
    }
    __u8 how = calls[call];
    return how == WEIR_WAITING_RECEIVES || (how == WEIR_WAITING_READS && is_socket(task, (__u32) weir_first_argument_of(registers)));
}

SEC("tp_btf/sched_switch")
int BPF_PROG(waiting_switch, bool preempted, struct task_struct *previous, struct task_struct *next)
{
    if ((previous->flags & PF_KTHREAD) == 0 && !preempted && (previous->__state & TASK_INTERRUPTIBLE) != 0) {
        __u32 tid = previous->pid;
        __u32 *word = bpf_map_lookup_elem(&threads, &tid);
        if (word != NULL && receives(previous)) {
            begin_to_wait(word);
        }
    }
    if ((next->flags & PF_KTHREAD) == 0) {
        __u32 tid = next->pid;
        __u32 *word = bpf_map_lookup_elem(&threads, &tid);
        if (word != NULL) {
            end_to_wait(word);
        }
    }
    return 0;
}

/* User space runs this for a thread that it has just registered, which may be waiting already. */
SEC("iter/task")
int waiting_already(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    if (task == NULL || (task->__state & TASK_INTERRUPTIBLE) == 0) {
        return 0;
    }
    if (bpf_core_field_exists(task->on_cpu) && task->on_cpu != 0) {
        return 0;
    }
    __u32 tid = task->pid;
    __u32 *word = bpf_map_lookup_elem(&threads, &tid);
    if (word != NULL && receives(task)) {
        begin_to_wait(word);
    }
    return 0;
}

struct weir_waiting_change {
    __u32 tid;
    __u32 word; /* urgency and devices of the thread; without devices its registration is removed */
};

/*
 * Registers a thread, or changes its registration. User space calls this. Returns 1 if the map is
 * full.
 */
SEC("syscall")
int waiting_register(struct weir_waiting_change *change)
{
    __u32 tid = change->tid;
    __u32 fresh = change->word;
    __u32 *word = bpf_map_lookup_elem(&threads, &tid);
    if (word == NULL) {
        return DEVICES_OF(fresh) != 0 && bpf_map_update_elem(&threads, &tid, &fresh, BPF_NOEXIST) != 0;
    }
    /* The loop keeps the bit WAITS, which may change at the same time. */
    __u32 before = *(volatile __u32 *) word;
    for (int attempt = 0; attempt < 64; attempt++) {
        __u32 seen = __sync_val_compare_and_swap(word, before, (before & WAITS) | fresh);
        if (seen == before) {
            break;
        }
        before = seen;
    }
    if ((before & WAITS) != 0) {
        count(fresh, 1);
        count(before, -1);
    }
    if (DEVICES_OF(fresh) == 0) {
        bpf_map_delete_elem(&threads, &tid);
    }
    return 0;
}
