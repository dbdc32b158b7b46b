// SPDX-License-Identifier: MIT OR Apache-2.0
// Polls the pending bit of line 0, and clears it whenever it is set.
#include "test.h"

volatile uint32_t taken;

HANDLER void weir_riscv_trap(void)
{
    EXIT(__LINE__);
}

int main(void)
{
    for (;;) {
        while (!(SOC_PENDING & 1u)) {
        }
        SOC_PENDING = 1u;
        taken++;
    }
}
