// SPDX-License-Identifier: MIT OR Apache-2.0
// Receives more events before cycle 270000 than an event device can count.
#include "test.h"

HANDLER void weir_riscv_trap(void)
{
    EXIT(__LINE__);
}

int main(void)
{
    wait_until(270000);
    CHECK(SOC_EVENT_COUNT(0) == 65535u && SOC_EVENT_COUNT(1) == 1);
    SOC_EVENT_POP(0) = 1;
    CHECK(SOC_EVENT_COUNT(0) == 65534u && SOC_EVENT_WIRE(0) == 0 && SOC_EVENT_WIRE(1) == 1);
    return 0;
}
