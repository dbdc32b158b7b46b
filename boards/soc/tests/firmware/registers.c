// SPDX-License-Identifier: MIT OR Apache-2.0
// Tests the limiter's registers over the board's bus.
#include "test.h"

HANDLER void weir_riscv_trap(void)
{
    EXIT(__LINE__);
}

#define REFUSED(access)                                                                                                                    \
    do {                                                                                                                                   \
        SOC_ERRORS = 0;                                                                                                                    \
        (void) (access);                                                                                                                   \
        CHECK(SOC_ERRORS == 1);                                                                                                            \
        SOC_ERRORS = 0;                                                                                                                    \
    } while (0)

int main(void)
{
    CHECK(LIMIT_ID >> 8 == 0x574549u && LIMIT_TICK == 1 && (LIMIT_SHAPE & 0x3ffu) == SOC_LINES - 1);
    CHECK((LIMIT_WIDTHS & 0xff) == 32 && (LIMIT_WIDTHS >> 8 & 0xff) == 32 && (LIMIT_WIDTHS >> 16 & 0xff) == 8 && LIMIT_WIDTHS >> 24 == 16);
    for (uint32_t source = 0; source < SOC_LINES; source++) {
        // Nothing is limited after a reset.
        CHECK(LIMIT_CONTROL(source) == LIMIT_ENABLED && LIMIT_STATUS(source) == 1 && LIMIT_HELD(source) == 0 && LIMIT_BURST(source) == 1);
        LIMIT_RATE(source) = 1000u + source;
        LIMIT_BURST(source) = 255u - source;
        LIMIT_CONTROL(source) = LIMIT_ENABLED | LIMIT_ON | (source & 1 ? LIMIT_BURSTY : 0) | LIMIT_NOTIFY;
    }
    for (uint32_t source = 0; source < SOC_LINES; source++) {
        CHECK(LIMIT_RATE(source) == 1000u + source && LIMIT_BURST(source) == 255u - source);
        CHECK(LIMIT_CONTROL(source) == (LIMIT_ENABLED | LIMIT_ON | (source & 1 ? LIMIT_BURSTY : 0) | LIMIT_NOTIFY));
    }
    CHECK(SOC_ERRORS == 0);

    REFUSED(LIMIT_RATE(1) = 0);
    REFUSED(LIMIT_BURST(1) = 0);
    REFUSED(LIMIT_BURST(1) = 256);
    REFUSED(LIMIT_CONTROL(1) = 0x10u);
    REFUSED(LIMIT_STATUS(1) = 0);
    REFUSED(LIMIT_ID = 0);
    REFUSED(LIMIT_OF(1, 0x14));
    REFUSED(LIMIT_RATE(SOC_LINES));
    REFUSED(LIMIT_RATE(SOC_LINES) = 1);
    REFUSED(LIMIT_OF(1023, 0x1c) = 1);
    REFUSED(SOC_REGISTER(SOC_LIMIT_BASE + 0x10u));
    CHECK(LIMIT_RATE(1) == 1001u && LIMIT_BURST(1) == 254u && LIMIT_CONTROL(1) == (LIMIT_ENABLED | LIMIT_ON | LIMIT_BURSTY | LIMIT_NOTIFY));

    LIMIT_CONTROL(2) = LIMIT_LOCKED | LIMIT_ENABLED | LIMIT_ON;
    REFUSED(LIMIT_RATE(2) = 5);
    REFUSED(LIMIT_BURST(2) = 5);
    REFUSED(LIMIT_CONTROL(2) = LIMIT_LOCKED | LIMIT_ENABLED);
    REFUSED(LIMIT_CONTROL(2) = LIMIT_ENABLED | LIMIT_ON);
    LIMIT_CONTROL(2) = LIMIT_LOCKED | LIMIT_ON;
    CHECK(LIMIT_CONTROL(2) == (LIMIT_LOCKED | LIMIT_ON) && LIMIT_RATE(2) == 1002u && LIMIT_BURST(2) == 253u && SOC_ERRORS == 0);
    return 0;
}
