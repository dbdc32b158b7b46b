// SPDX-License-Identifier: MIT OR Apache-2.0
// Requests that come while their line is masked are taken afterwards, each once, and the lowest
// line first. Lines 1 and 3 rise before cycle 3000.
#include "test.h"

static volatile uint32_t order, spurious;

HANDLER void weir_riscv_trap(void)
{
    const uint32_t asking = SOC_CSR_READ(0xfc0);
    if (asking == 0) {
        spurious++;
        return;
    }
    const uint32_t lowest = asking & -asking;
    order = order << 8 | lowest;
    // This is the last access before the return, and the processor must see its effect in time.
    SOC_PENDING = lowest;
}

int main(void)
{
    CHECK(SOC_PENDING == 0 && SOC_ENABLE == 0);
    SOC_ENABLE = 0xffu;
    wait_until(3000);
    CHECK(SOC_PENDING == 0x0au && order == 0);
    // Writing a zero clears nothing.
    SOC_PENDING = 0xf5u;
    CHECK(SOC_PENDING == 0x0au);
    listen(0xff);
    wait_until(4000);
    CHECK(order == 0x0208u && spurious == 0 && SOC_PENDING == 0);
    return 0;
}
