/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One limited line that leaves marks in the trace.
 *
 * TEST_LIMIT      WEIR_RISCV_LIMIT or WEIR_RISCV_LIMIT_TUNABLE
 * TEST_POLICY, TEST_TIMING, TEST_INTERVAL (ticks), TEST_BURST, TEST_LAG   the limit
 * TEST_USER       the user switches the line off and on at random
 * TEST_CHANGES    the limit changes, at random instants, among {TEST_INTERVAL, TEST_BURST} and this
 *                 list of pairs
 * TEST_BEGIN      the low word of mtime at the start
 * TEST_IDLE       the line stays idle while mtime jumps by this, five times; then it is taken as
 *                 usual
 */
#include "watched.h"
#include "weir/riscv.h"

#ifndef TEST_LIMIT
#define TEST_LIMIT WEIR_RISCV_LIMIT
#endif
#ifndef TEST_LAG
#define TEST_LAG 0
#endif

TEST_LIMIT(line, 0, .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .lag = TEST_LAG, .burst = TEST_BURST)
{
    WATCHED(WATCHED_HANDLER);
}

WEIR_RISCV_TRAP(line);

#ifdef TEST_CHANGES
static const struct {
    weir_ticks_t interval;
    uint8_t burst;
} changes[] = {{TEST_INTERVAL, TEST_BURST}, TEST_CHANGES};

static void change(void)
{
    uint32_t to = watched_dice() & 0xffu;
    while (to >= sizeof changes / sizeof changes[0]) {
        to -= sizeof changes / sizeof changes[0];
    }
    if (weir_riscv_change(line, changes[to].interval, changes[to].burst) != WEIR_LIMIT_OK) {
        watched_exit(1);
    }
    if (weir_riscv_change(line, 0x40000001u, 1) != WEIR_LIMIT_BAD_INTERVAL || weir_riscv_change(line, TEST_INTERVAL, 0) == WEIR_LIMIT_OK) {
        watched_exit(2);
    }
}
#endif

int main(void)
{
#ifdef TEST_BEGIN
    WEIR_CHIP_MTIME[0] = TEST_BEGIN;
#endif
    weir_riscv_run();
    weir_riscv_start(line);
    WATCHED(WATCHED_START);
    weir_riscv_interrupts_on();
#ifdef TEST_IDLE
    for (uint32_t jumps = 0; jumps < 5; jumps++) {
        for (uint32_t turns = 1000; turns != 0; turns--) {
            __asm__ volatile("nop");
        }
        uint32_t before = weir_riscv_lock();
        uint32_t low = WEIR_CHIP_MTIME[0];
        uint32_t high = WEIR_CHIP_MTIME[1];
        uint32_t later = low + TEST_IDLE;
        WEIR_CHIP_MTIME[1] = high + (later < low ? 1u : 0u);
        WEIR_CHIP_MTIME[0] = later;
        weir_riscv_restore(before);
    }
#endif
    for (;;) {
#ifdef TEST_USER
        weir_riscv_disable(line);
        WATCHED(WATCHED_DISABLED);
        watched_wait();
        WATCHED(WATCHED_ENABLING);
        weir_riscv_enable(line);
#endif
#ifdef TEST_CHANGES
        change();
#endif
#if defined(TEST_USER) || defined(TEST_CHANGES)
        watched_wait();
#endif
    }
}
