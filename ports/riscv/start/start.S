/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The way from reset to main: the stack, the global pointer, the trap, a cleared .bss. When main
 * returns, its value is the exit code of a simulated board.
 */
    .section .text.start, "ax"
    .globl _start
_start:
    la sp, weir_stack_top
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la t0, weir_riscv_trap
    csrw mtvec, t0
    la t0, weir_bss_begin
    la t1, weir_bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  call main
    li t0, 0x1fff0000
    sw a0, 0(t0)
3:  j 3b
