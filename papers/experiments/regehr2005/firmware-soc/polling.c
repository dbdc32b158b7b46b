/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * "Pure polling" (regehr2005 §5.2): the timer's interrupt, the only one, looks at the line's
 * pending bit once in NODE_INTERVAL clocks.
 */
#include "node.h"
#include "weir/riscv.h"

__attribute__((interrupt("machine"), aligned(4))) void weir_riscv_trap(void);
void weir_riscv_trap(void)
{
    volatile uint32_t *mtimecmp = WEIR_CHIP_MTIMECMP;
    uint32_t next = mtimecmp[0] + NODE_INTERVAL;
    mtimecmp[0] = next;
    if (WEIR_UNLIKELY(next < NODE_INTERVAL)) {
        mtimecmp[1] = mtimecmp[1] + 1u;
    }
    if (WEIR_CHIP_PENDING(0)) {
        WEIR_CHIP_ACK(0);
        node_handle();
    }
}

void node_start(void)
{
    weir_riscv_alarm_after(weir_riscv_instant(), NODE_INTERVAL);
    __asm__ volatile("csrs mie, %0" ::"r"(WEIR_RISCV_MIE_TIMER));
}
