/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Eight lines in one trap, with ordinary handlers that do nothing. The trap tests line 0 first and
 * line 7 last. The background has every kind of instruction that an interrupt may hit: loads,
 * stores, branches, shifts of all lengths, and accesses to registers.
 */
#include <weir/riscv.h>

WEIR_RISCV_UNLIMITED(line0, 0)
{
}
WEIR_RISCV_UNLIMITED(line1, 1)
{
}
WEIR_RISCV_UNLIMITED(line2, 2)
{
}
WEIR_RISCV_UNLIMITED(line3, 3)
{
}
WEIR_RISCV_UNLIMITED(line4, 4)
{
}
WEIR_RISCV_UNLIMITED(line5, 5)
{
}
WEIR_RISCV_UNLIMITED(line6, 6)
{
}
WEIR_RISCV_UNLIMITED(line7, 7)
{
}
WEIR_RISCV_TRAP(line0, line1, line2, line3, line4, line5, line6, line7);

volatile uint32_t progress;

/* The longest instruction is a shift by 31. It retires this many cycles after the instruction
 * before it. */
__attribute__((naked, noinline)) static void shift(void)
{
    __asm__ volatile("li t0, -1\n li t1, 31\n"
                     ".globl before_shift\n before_shift: nop\n"
                     ".globl shift_itself\n shift_itself: srl t0, t0, t1\n ret" ::
                         : "t0", "t1");
}

int main(void)
{
    weir_riscv_run();
    weir_riscv_start(line0);
    weir_riscv_start(line1);
    weir_riscv_start(line2);
    weir_riscv_start(line3);
    weir_riscv_start(line4);
    weir_riscv_start(line5);
    weir_riscv_start(line6);
    weir_riscv_start(line7);
    shift();
    weir_riscv_interrupts_on();
    for (uint32_t turn = 0;; turn++) {
        progress += turn >> (turn & 31);
        if ((turn & 3) == 0) {
            progress += WEIR_CHIP_MTIME[0];
        }
        if ((turn & 63) == 0) {
            shift();
        }
    }
}
