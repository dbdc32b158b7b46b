// SPDX-License-Identifier: MIT OR Apache-2.0
// The handler of an event device takes one event. It acknowledges first, because the controller
// latches edges: acknowledging last would lose the edge of an event that comes in between.
#include "test.h"

volatile uint32_t handled, empty;

HANDLER void weir_riscv_trap(void)
{
    SOC_PENDING = 1u;
    if (SOC_EVENT_COUNT(0) == 0) {
        empty++;
    }
    SOC_EVENT_POP(0) = 1;
    handled++;
}

int main(void)
{
    CHECK(SOC_EVENT_COUNT(0) == 0 && SOC_EVENT_CONTROL(0) == 0);
    // A pop without a waiting event takes nothing.
    SOC_EVENT_POP(0) = 1;
    CHECK(SOC_EVENT_COUNT(0) == 0);
    SOC_EVENT_CONTROL(0) = QUEUE;
    CHECK(SOC_EVENT_CONTROL(0) == QUEUE);
    wait_until(BEGIN);
    listen(1);
    for (;;) {
    }
}
