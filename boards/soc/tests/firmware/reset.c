// SPDX-License-Identifier: MIT OR Apache-2.0
// Changes every register, resets the system in the middle of a flood on line 0, and checks that
// every register has its value from power-up.
#include "test.h"

HANDLER void weir_riscv_trap(void)
{
    EXIT(__LINE__);
}

int main(void)
{
    if (SOC_RESET == 0) {
        wait_until(3000);
        CHECK(SOC_PENDING == 1 && SOC_EVENT_COUNT(0) > 10);
        LIMIT_RATE(0) = RATE_OF(100000);
        LIMIT_CONTROL(0) = LIMIT_LOCKED | LIMIT_ON | LIMIT_ENABLED | LIMIT_NOTIFY;
        SOC_ENABLE = 0xff;
        SOC_MTIMECMP_LOW = 5;
        SOC_MTIMECMP_HIGH = 0;
        SOC_MSIP = 1;
        SOC_EVENT_CONTROL(0) = SOC_EVENT_QUEUE;
        (void) SOC_REGISTER(0x20000000u);
        wait_until(4000);
        CHECK(SOC_ERRORS == 1 && LIMIT_HELD(0) > 0 && LIMIT_BEGAN == 1);
        SOC_RESET = 1;
    }
    CHECK(SOC_RESET == 1 && SOC_MTIME_LOW < 200 && SOC_MTIME_HIGH == 0);
    CHECK(SOC_ENABLE == 0 && SOC_MTIMECMP_LOW == 0xffffffffu && SOC_MTIMECMP_HIGH == 0xffffffffu && SOC_MSIP == 0);
    CHECK(SOC_EVENT_CONTROL(0) == 0 && SOC_EVENT_COUNT(0) < 20 && SOC_ERRORS == 0 && SOC_ERROR_ADDRESS == 0);
    CHECK(LIMIT_CONTROL(0) == LIMIT_ENABLED && LIMIT_HELD(0) < 20 && LIMIT_BEGAN == 0);
    LIMIT_RATE(0) = 7;
    CHECK(LIMIT_RATE(0) == 7 && SOC_ERRORS == 0 && SOC_CSR_READ(mie) == 0);
    // The flood continues after the reset, and its requests still arrive.
    wait_until(1000);
    CHECK(SOC_PENDING == 1);
    return 0;
}
