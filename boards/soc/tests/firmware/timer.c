// SPDX-License-Identifier: MIT OR Apache-2.0
// Tests the timer and the software interrupt.
#include "test.h"

static volatile uint32_t ticks, signals, entered;

HANDLER void weir_riscv_trap(void)
{
    if (SOC_CSR_READ(mcause) == 0x80000007u) {
        entered = SOC_MTIME_LOW;
        ticks++;
        SOC_MTIMECMP_LOW = SOC_MTIMECMP_LOW + 500u;
    } else if (SOC_CSR_READ(mcause) == 0x80000003u) {
        signals++;
        SOC_MSIP = 0;
    } else {
        EXIT(__LINE__);
    }
}

int main(void)
{
    CHECK(SOC_MTIMECMP_LOW == 0xffffffffu && SOC_MTIMECMP_HIGH == 0xffffffffu && SOC_MTIME_HIGH == 0);
    const uint32_t before = SOC_MTIME_LOW;
    CHECK(SOC_MTIME_LOW - before < 30);
    SOC_CSR_WRITE(mie, SOC_MIE_TIMER);
    SOC_CSR_SET(mie, SOC_MIE_SOFTWARE);
    SOC_MTIMECMP_LOW = 2000;
    SOC_MTIMECMP_HIGH = 0;
    SOC_CSR_SET(mstatus, SOC_MSTATUS_MIE);
    wait_until(1900);
    CHECK(ticks == 0);
    wait_until(2300);
    CHECK(ticks == 1 && entered >= 2000 && entered < 2100);
    wait_until(3700);
    CHECK(ticks == 4);
    SOC_MSIP = 1;
    wait_until(3900);
    CHECK(SOC_MSIP == 0 && signals == 1);
    // The low word carries into the high word, and both words are compared.
    SOC_MTIMECMP_HIGH = 1;
    SOC_MTIMECMP_LOW = 50;
    SOC_MTIME_LOW = 0xffffff00u;
    while (SOC_MTIME_HIGH == 0) {
        CHECK(ticks == 4);
    }
    wait_until(400);
    CHECK(SOC_MTIME_HIGH == 1 && ticks == 5 && entered >= 50 && entered < 150);
    return 0;
}
