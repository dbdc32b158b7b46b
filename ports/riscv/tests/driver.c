/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests weir/silicon.h on the board's limiter: rejected calls, settings and counts. The exit code
 * is the line number of the first check that fails, or 0. Line 0 is flooded all the time. At the
 * end the bus must not have reported an error, because the driver does not attempt impossible
 * accesses.
 */
#include "watched.h"
#include "weir/riscv.h"
#include "weir/silicon.h"

#define BASE 0x11000000u
#define BUS_ERRORS (*(volatile uint32_t *) 0x1fff0008u)
#define OVERLOAD_LINE 8

#define CHECK(what)                                                                                                                        \
    do {                                                                                                                                   \
        if (!(what)) {                                                                                                                     \
            watched_exit(__LINE__);                                                                                                        \
        }                                                                                                                                  \
    } while (0)

static weir_silicon_t limiter;
static volatile uint32_t served;
static volatile uint32_t began;

WEIR_RISCV_UNLIMITED(line, 0)
{
    served++;
    WATCHED(WATCHED_HANDLER);
}

WEIR_RISCV_UNLIMITED(overload, OVERLOAD_LINE)
{
    began |= weir_silicon_take_began(&limiter, 0);
}

WEIR_RISCV_TRAP(line, overload);

static void wait(uint32_t turns)
{
    for (; turns != 0; turns--) {
        __asm__ volatile("nop");
    }
}

static void formula(void)
{
    CHECK(limiter.sources == 8 && limiter.tick == 1 && limiter.phase == 0xffffffffu && limiter.most_burst == 255 && limiter.counts);
    _Static_assert(WEIR_SILICON_INTERVAL(WEIR_SILICON_RATE(4000u, 1u, 32), 1u, 32) == 4000, "short intervals are exact");
    _Static_assert(WEIR_SILICON_INTERVAL(WEIR_SILICON_RATE(65536u, 1u, 32), 1u, 32) == 65536, "those whose quotients are far apart");
    _Static_assert(WEIR_SILICON_INTERVAL(WEIR_SILICON_RATE(1000001u, 64u, 20), 64u, 20) >= 1000001, "never shorter than asked");
    _Static_assert(WEIR_SILICON_RATE(1u, 1u, 32) == 0 && WEIR_SILICON_RATE(64u, 64u, 32) == 0, "less than two ticks cannot be given");
    _Static_assert(WEIR_SILICON_RATE(300u, 1u, 8) == 0, "nor more than 2^W");
    CHECK(weir_silicon_rate(&limiter, 4000) == WEIR_SILICON_RATE(4000u, 1u, 32));
    CHECK(weir_silicon_rate(&limiter, 1) == 0 && weir_silicon_rate(&limiter, 0) == 0);
    CHECK(weir_silicon_rate(&limiter, 2) == 0xffffffffu && weir_silicon_rate(&limiter, 0xffffffffu) == 1);
}

static void refusals(void)
{
    CHECK(weir_silicon_limit(&limiter, 8, WEIR_LIMIT_STRICT, 1, 1) == WEIR_SILICON_BAD_SOURCE);
    CHECK(weir_silicon_limit(&limiter, 1, WEIR_LIMIT_STRICT, 0, 1) == WEIR_SILICON_BAD_RATE);
    CHECK(weir_silicon_limit(&limiter, 1, WEIR_LIMIT_STRICT, 1, 2) == WEIR_SILICON_BAD_BURST);
    CHECK(weir_silicon_limit(&limiter, 1, WEIR_LIMIT_BUCKET, 1, 0) == WEIR_SILICON_BAD_BURST);
    CHECK(weir_silicon_limit(&limiter, 1, WEIR_LIMIT_PACED, 1, 1) == WEIR_SILICON_BAD_POLICY);
    CHECK(weir_silicon_set_enabled(&limiter, 8, true) == WEIR_SILICON_BAD_SOURCE);
    CHECK(weir_silicon_clear_held(&limiter, 8) == WEIR_SILICON_BAD_SOURCE && weir_silicon_held(&limiter, 8) == 0);
    CHECK(weir_silicon_take_began(&limiter, 1) == 0 && !weir_silicon_is_overloaded(&limiter, 8));
    CHECK(weir_silicon_limit(&limiter, 1, WEIR_LIMIT_BURSTY, 77, 9) == WEIR_SILICON_OK);
    CHECK(weir_silicon_lock(&limiter, 1) == WEIR_SILICON_OK);
    CHECK(weir_silicon_limit(&limiter, 1, WEIR_LIMIT_BUCKET, 78, 10) == WEIR_SILICON_LOCKED);
    CHECK(weir_silicon_set_limited(&limiter, 1, false) == WEIR_SILICON_LOCKED);
    CHECK(weir_silicon_set_notify(&limiter, 1, true) == WEIR_SILICON_LOCKED);
    CHECK(weir_silicon_read(&limiter, WEIR_LIMIT_RATE(1)) == 77 && weir_silicon_read(&limiter, WEIR_LIMIT_BURST(1)) == 9);
    CHECK(weir_silicon_set_enabled(&limiter, 1, false) == WEIR_SILICON_OK &&
          weir_silicon_set_enabled(&limiter, 1, true) == WEIR_SILICON_OK);
}

static void limits(void)
{
    uint32_t before = served;
    wait(2000);
    CHECK(served > before && weir_silicon_held(&limiter, 0) == 0);
    CHECK(weir_silicon_set_notify(&limiter, 0, true) == WEIR_SILICON_OK);
    CHECK(weir_silicon_limit(&limiter, 0, WEIR_LIMIT_STRICT, weir_silicon_rate(&limiter, 5000), 1) == WEIR_SILICON_OK);
    WATCHED(WATCHED_START);
    wait(20000);
    CHECK(began == 1 && weir_silicon_is_overloaded(&limiter, 0) && weir_silicon_held(&limiter, 0) > 10);
    CHECK(weir_silicon_set_enabled(&limiter, 0, false) == WEIR_SILICON_OK);
    wait(10);
    before = served;
    WATCHED(WATCHED_DISABLED);
    wait(5000);
    WATCHED(WATCHED_ENABLING);
    CHECK(served == before);
    CHECK(weir_silicon_clear_held(&limiter, 0) == WEIR_SILICON_OK);
    CHECK(weir_silicon_set_enabled(&limiter, 0, true) == WEIR_SILICON_OK);
    wait(3000);
    CHECK(served > before && weir_silicon_held(&limiter, 0) < 10000);
}

int main(void)
{
    CHECK(weir_silicon_open(&limiter, BASE + 0x100u) == WEIR_SILICON_ABSENT);
    BUS_ERRORS = 0; /* that one was meant */
    CHECK(weir_silicon_open(&limiter, BASE) == WEIR_SILICON_OK);
    weir_riscv_run();
    weir_riscv_start(line);
    weir_riscv_start(overload);
    weir_riscv_interrupts_on();
    formula();
    refusals();
    limits();
    CHECK(BUS_ERRORS == 0);
    return 0;
}
