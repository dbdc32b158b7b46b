// SPDX-License-Identifier: MIT OR Apache-2.0
// Does a fixed amount of work between two marks. Interrupts of line 0 prolong it. The handler is as
// short as possible.
#include "test.h"

HANDLER void weir_riscv_trap(void)
{
    SOC_PENDING = 1u;
}

__attribute__((noinline)) void begin(void)
{
    __asm__ volatile("");
}
__attribute__((noinline)) void end(void)
{
    __asm__ volatile("");
}

int main(void)
{
    listen(1);
    wait_until(500);
    begin();
    for (uint32_t left = 2000; left != 0; left--) {
        __asm__ volatile("nop\n nop\n nop\n nop");
    }
    end();
    return 0;
}
