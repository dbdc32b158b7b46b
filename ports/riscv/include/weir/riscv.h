/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Weir on RISC-V: limits on interrupt lines in machine mode.
 *
 *     #include <weir/riscv.h>
 *
 *     WEIR_RISCV_LIMIT(button, 0, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_LAZY, .interval = 12500, .burst = 1)
 *     {
 *         presses++;                       // the body of the handler
 *     }
 *
 *     WEIR_RISCV_TRAP(button);             // every source of the program
 *
 *     int main(void)
 *     {
 *         weir_riscv_run();                // the timer and the lines may interrupt
 *         weir_riscv_start(button);        // 12500 ticks of mtime: at most 4 kHz at 50 MHz
 *         weir_riscv_interrupts_on();
 *         ...
 *
 * The port runs in machine mode, with mtvec in direct mode at weir_riscv_trap. The chip's header is
 * weir/chips/soc.h, unless -DWEIR_RISCV_CHIP='"..."' names another one.
 */
#ifndef WEIR_RISCV_H
#define WEIR_RISCV_H

#ifndef WEIR_RISCV_CHIP
#define WEIR_RISCV_CHIP "weir/chips/soc.h"
#endif
#include WEIR_RISCV_CHIP

#include "weir/riscv/trap.h"

#endif
