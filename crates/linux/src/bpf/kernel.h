/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * What the BPF programs read of the kernel's structures: only those members, found where the running kernel has them (CO-RE).
 */
#ifndef WEIR_LINUX_KERNEL_H
#define WEIR_LINUX_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
    int pid;
    int tgid;
};

#pragma clang attribute pop

#endif
