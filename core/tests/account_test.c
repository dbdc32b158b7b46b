/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The accounts under the sanitizers: long random sequences of events, saturated balances, refused
 * configurations.
 */
#include "../src/account.c"
#include "account_board.h"

static void long_random_sequences(void)
{
    uint8_t data[604];
    for (unsigned run = 0; run < rounds(4000, 20000); run++) {
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = roll();
        }
        if (run % 2 == 0) {
            data[0] = (uint8_t) (data[0] & ~3u); /* a short tick, and costs to match */
            for (size_t i = 5; i < sizeof data; i += 3) {
                data[i] = (uint8_t) (data[i] & ~3u);
            }
        }
        board_run(data, sizeof data);
    }
}

/* ACCOUNT-SATURATE-1: a balance stops at its limits and comes back; it does not change its sign. */
static void balances_saturate(void)
{
    const weir_cycles_t most = (weir_cycles_t) WEIR_BALANCE_MOST;
    CHECK(weir_account_plus(WEIR_BALANCE_MOST - 1, 2) == WEIR_BALANCE_MOST);
    CHECK(weir_account_plus(-WEIR_BALANCE_MOST, most) == 0);
    CHECK(weir_account_plus(0, most) == WEIR_BALANCE_MOST);
    CHECK(weir_account_minus(1 - WEIR_BALANCE_MOST, 2) == -WEIR_BALANCE_MOST);
    CHECK(weir_account_minus(WEIR_BALANCE_MOST, most) == 0);
    CHECK(weir_account_minus(0, most) == -WEIR_BALANCE_MOST);
    weir_account_t a;
    weir_account_config_t config = {.tick = 1, .gamma = WEIR_ACCOUNT_GAMMA};
    weir_account_device_t device = {0};
    weir_account_process_t process = {0};
    weir_account_start(&a, &config);
    weir_account_handled(&a, &device, &process, (weir_cycles_t) -1);
    weir_account_handled(&a, &device, &process, 1);
    CHECK(process.owed == WEIR_BALANCE_MOST && a.handled == most);
    weir_account_tick(&a, NULL);
    CHECK(weir_account_tick(&a, &process) == INT32_MAX);
    CHECK(process.owed == WEIR_BALANCE_MOST - INT32_MAX);
    weir_account_handled(&a, &device, NULL, most);
    weir_balance_t left = process.owed - WEIR_BALANCE_MOST;
    CHECK(weir_account_tick(&a, &process) == (left < -INT32_MAX ? -INT32_MAX : (int32_t) left));
}

/* Compares weir_account_whole() with a division, around every multiple of a power of two. */
static void whole_units(void)
{
    for (unsigned shift = 0; shift < WEIR_CYCLE_BITS - 1; shift++) {
        for (unsigned unit = 1; unit < 40; unit++) {
            for (int around = -2; around <= 2; around++) {
                wide_t value = ((wide_t) 1 << shift) * (unit % 7 + 1) + around;
                if (value > WEIR_BALANCE_MOST || value < 0) {
                    continue;
                }
                wide_t whole = value / unit > INT32_MAX ? INT32_MAX : value / unit;
                weir_balance_t owed = (weir_balance_t) value;
                weir_balance_t owing = (weir_balance_t) -value;
                CHECK(weir_account_whole(&owed, unit) == whole && owed == value - whole * unit);
                CHECK(weir_account_whole(&owing, unit) == -whole && owing == -(value - whole * unit));
            }
        }
    }
}

/* The configurations that weir_account_check() refuses, and the longest tick that it accepts. */
static void limits_of_the_configuration(void)
{
    weir_account_config_t c = {.tick = WEIR_ACCOUNT_TICK_MOST, .gamma = 1};
    CHECK(weir_account_check(&c) == WEIR_ACCOUNT_OK);
    c.tick++;
    CHECK(weir_account_check(&c) == WEIR_ACCOUNT_BAD_TICK);
    c.tick = 0;
    CHECK(weir_account_check(&c) == WEIR_ACCOUNT_BAD_TICK);
    c.tick = 1;
    c.gamma = 0;
    CHECK(weir_account_check(&c) == WEIR_ACCOUNT_BAD_GAMMA);
}

int main(void)
{
    limits_of_the_configuration();
    whole_units();
    balances_saturate();
    long_random_sequences();
    printf("account: %d-bit cycles: 4 passed\n", WEIR_CYCLE_BITS);
    return 0;
}
