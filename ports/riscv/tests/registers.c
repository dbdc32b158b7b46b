/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A background loop that fills every register and checks that two interrupting lines do not change
 * them. The exit code is 1 if a register was changed, or 0 after enough checks.
 */
#include "watched.h"
#include "weir/riscv.h"

/* Overwrites every register that the ABI lets a function change, so that the interrupt must save
 * it. * */
#define SPOIL()                                                                                                                            \
    __asm__ volatile("li t0, -1\n li t1, -1\n li t2, -1\n li t3, -1\n li t4, -1\n li t5, -1\n li t6, -1\n li a0, -1\n li a1, -1\n"         \
                     "li a2, -1\n li a3, -1\n li a4, -1\n li a5, -1\n li a6, -1\n li a7, -1\n li ra, -1\n" ::                              \
                         : "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "ra")

WEIR_RISCV_LIMIT(line, 0, .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .burst = TEST_BURST)
{
    WATCHED(WATCHED_HANDLER);
    SPOIL();
}

#ifdef TEST_SHARED
WEIR_RISCV_UNLIMITED(other, 1)
{
    SPOIL();
}
WEIR_RISCV_TRAP(line, other);
#else
WEIR_RISCV_TRAP(line);
#endif

/* clang-format off */
__attribute__((naked, noreturn, used)) static void look(void)
{
    __asm__ volatile(
        ".macro each what\n"
        ".irp r, 1,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n \\what \\r\n .endr\n"
        ".endm\n"
        ".macro fill r\n li x\\r, 0x12340 + \\r\n .endm\n"
        ".macro check r\n li x31, 0x12340 + \\r\n bne x31, x\\r, 9f\n .endm\n"
        /*
         * x2 is the stack pointer. x3 is the global pointer, which no code may change, because the
         * linker may let handlers access their data through it. x31 counts in between.
         */
        "8: each fill\n"
        ".rept 60\n nop\n .endr\n"
        "each check\n"
        ".option push\n .option norelax\n la x31, __global_pointer$\n .option pop\n bne x31, x3, 9f\n"
        "lw x31, looks\n addi x31, x31, -1\n sw x31, looks, x30\n"
        "bnez x31, 8b\n"
        "li x30, 0x1fff0000\n sw zero, 0(x30)\n"
        "7: j 7b\n"
        "9: li x30, 0x1fff0000\n li x31, 1\n sw x31, 0(x30)\n"
        "6: j 6b\n");
}
/* clang-format on */

uint32_t looks = TEST_LOOKS;

int main(void)
{
    weir_riscv_run();
    weir_riscv_start(line);
#ifdef TEST_SHARED
    weir_riscv_start(other);
#endif
    WATCHED(WATCHED_START);
    weir_riscv_interrupts_on();
    look();
}
