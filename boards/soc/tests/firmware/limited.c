// SPDX-License-Identifier: MIT OR Apache-2.0
// Limits line 0 to one interrupt per INTERVAL clocks with bursts of BURST, and sets CONTROL. The
// handler counts.
#include "test.h"

volatile uint32_t handled, overloads, progress, held;

// These are variables instead of constants, so that the code is the same for all values.
static volatile uint32_t rate = RATE_OF(INTERVAL), burst = BURST, control = CONTROL;

HANDLER void weir_riscv_trap(void)
{
    if (SOC_CSR_READ(0xfc0) & 1u) {
        SOC_PENDING = 1u;
        handled++;
    } else {
        // Clear first: an overload that begins from now on is then a new edge for the controller.
        LIMIT_BEGAN = LIMIT_BEGAN;
        SOC_PENDING = 1u << SOC_LINE_OVERLOAD;
        overloads++;
    }
}

int main(void)
{
    LIMIT_RATE(0) = rate;
    LIMIT_BURST(0) = burst;
    LIMIT_CONTROL(0) = control;
    listen(1u | 1u << SOC_LINE_OVERLOAD);
    while (SOC_MTIME_LOW < 100000u) {
        progress++;
    }
    held = LIMIT_HELD(0);
    for (;;) {
        progress++;
    }
}
