// SPDX-License-Identifier: MIT OR Apache-2.0
// Helpers for firmware that tests the board.
#ifndef WEIR_SOC_TEST_H
#define WEIR_SOC_TEST_H

#include <soc.h>

#define EXIT(code)                                                                                                                         \
    do {                                                                                                                                   \
        SOC_EXIT = (code);                                                                                                                 \
        for (;;) {                                                                                                                         \
        }                                                                                                                                  \
    } while (0)
#define CHECK(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            EXIT(__LINE__);                                                                                                                \
        }                                                                                                                                  \
    } while (0)

#define HANDLER __attribute__((interrupt("machine"), aligned(4)))

// Waits until mtime reaches `cycle`.
static inline void wait_until(uint32_t cycle)
{
    while ((int32_t) (SOC_MTIME_LOW - cycle) < 0) {
    }
}

// Enables the interrupts of these lines.
static inline void listen(uint32_t lines)
{
    SOC_CSR_WRITE(0xbc0, lines);
    SOC_ENABLE = lines;
    SOC_CSR_WRITE(mie, SOC_MIE_EXTERNAL);
    SOC_CSR_SET(mstatus, SOC_MSTATUS_MIE);
}

// The registers of weir_limit (rtl/limit/README.md).
#define LIMIT_ID SOC_REGISTER(SOC_LIMIT_BASE)
#define LIMIT_SHAPE SOC_REGISTER(SOC_LIMIT_BASE + 0x4)
#define LIMIT_WIDTHS SOC_REGISTER(SOC_LIMIT_BASE + 0x8)
#define LIMIT_TICK SOC_REGISTER(SOC_LIMIT_BASE + 0xc)
#define LIMIT_BEGAN SOC_REGISTER(SOC_LIMIT_BASE + 0x40)
#define LIMIT_OF(source, offset) SOC_REGISTER(SOC_LIMIT_BASE + 0x8000u + 32u * (source) + (offset))
#define LIMIT_CONTROL(source) LIMIT_OF(source, 0x0u)
#define LIMIT_RATE(source) LIMIT_OF(source, 0x4u)
#define LIMIT_BURST(source) LIMIT_OF(source, 0x8u)
#define LIMIT_STATUS(source) LIMIT_OF(source, 0xcu)
#define LIMIT_HELD(source) LIMIT_OF(source, 0x10u)
#define LIMIT_ENABLED 1u
#define LIMIT_ON 2u
#define LIMIT_BURSTY 4u
#define LIMIT_NOTIFY 8u
#define LIMIT_LOCKED 0x80000000u
// The smallest RATE whose interval is at most `clocks`: ceil(2**32 / clocks).
#define RATE_OF(clocks) ((uint32_t) ((0x100000000ull + (clocks) - 1) / (clocks)))

#endif
