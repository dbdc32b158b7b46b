// SPDX-License-Identifier: MIT OR Apache-2.0
// From the reset to main(), and the trap handler of firmware that has none.
//
// soc_trap is where all interrupts and exceptions go; firmware that wants any defines it:
//
//     __attribute__((interrupt("machine"))) void soc_trap(void) { ... }
//
// What main returns is the exit code. A trap without a handler exits with 0x80000000 | mcause, or, of an interrupt, 0xc0000000 | mcause.

    .section .start, "ax"
    .globl _start
    .type _start, @function
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_top
    la t0, soc_trap
    csrw mtvec, t0
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  li a0, 0
    li a1, 0
    call main
    li t0, 0x1fff0000
    sw a0, 0(t0)
3:  j 3b
    .size _start, . - _start

    .text
    .weak soc_trap
    .type soc_trap, @function
    .balign 4
soc_trap:
    csrr a0, mcause
    li t0, 0x80000000
    srli t1, a0, 1
    or a0, a0, t1
    or a0, a0, t0
    li t0, 0x1fff0000
    sw a0, 0(t0)
4:  j 4b
    .size soc_trap, . - soc_trap
