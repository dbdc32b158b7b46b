/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Counts, for each device and urgency, the receivers' threads that wait for a packet (zhang2006
 * §3.2: the next interrupt is predicted to be for the most urgent of them), and rings when the most
 * urgent class of a device may have changed.
 *
 * A thread waits from when it leaves the CPU, asleep in a system call that receives or polls, until
 * it is on a CPU again. The descriptors that it polls are not checked.
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
 * How each system call waits, set by user level, since the numbers differ between processor
 * architectures.
 */
enum {
    WEIR_WAITING_NO = 0,
    WEIR_WAITING_RECEIVES = 1, /* it receives, or polls */
    WEIR_WAITING_READS = 2,    /* it receives if its first argument is a socket */
};

const volatile __u8 calls[CALLS] = {0};

/*
 * A registered thread as one word, so that all of it changes at once: its urgency, whether it
 * waits, and a bit for each device.
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
    __u32 applied[DEVICES]; /* the urgency that user level has given to the device's bottom half */
    __u32 rung;             /* whether user level is to look, and has not begun to */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct weir_waiting_state);
} state SEC(".maps");

/* Wakes user level; `rung` keeps the ring buffer from becoming full. */
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
 * Adds a waiting thread, or removes one. A comparison with an old value of `applied` does no harm:
 * user level looks again after it has written `applied`.
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

/* Whether a task that sleeps does so to receive. */
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

/* Runs for a thread that has just been registered, since it may be asleep already. */
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
    __u32 word; /* its urgency and its devices; no device: it is no receiver any longer */
};

/*
 * Called by user level: registers a thread, or changes its registration. Returns 1 if there is no
 * room.
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
    /* Sets the urgency and the devices, whether it waits in between or not. */
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
