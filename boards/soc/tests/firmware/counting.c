// SPDX-License-Identifier: MIT OR Apache-2.0
// Counts in variables of every size. The long variable begins just below a carry into its upper
// half.
#include "test.h"

volatile uint8_t count8;
volatile uint16_t count16 = 65000;
volatile uint32_t count32;
volatile uint64_t count64 = 0xfffffff0u;
volatile uint32_t falling = 1000000;

HANDLER void weir_riscv_trap(void)
{
    EXIT(__LINE__);
}

__attribute__((noinline)) void counted(void)
{
    count8++;
    count16++;
    count32++;
    count64++;
    falling--;
}

int main(void)
{
    for (;;) {
        counted();
    }
}
