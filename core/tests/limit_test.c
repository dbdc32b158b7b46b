/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limit machine under the sanitizers: every short sequence of events, many long random ones.
 */
#include "weir/ticks.h"

/* Calls of the hooks, counted (LIMIT-RECORD-3). */
static unsigned long begun;
static unsigned long ended;
#define WEIR_ON_OVERLOAD_BEGIN(state) ((void) (state), (void) begun++)
#define WEIR_ON_OVERLOAD_END(state) ((void) (state), (void) ended++)

#include "../src/limit.c"
#include "limit_board.h"

#include <string.h>

/* All short sequences of one event of each kind. */
static void every_short_sequence(void)
{
    static const uint8_t events[] = {0x00, 0x08, 0x02, 0x0a, 0x04, 0x05, 0x07};
    enum { LENGTH = 4, KINDS = sizeof events };
    uint8_t data[5 + LENGTH];
    for (unsigned policy = 0; policy < 32; policy++) {
        for (unsigned shape = 0; shape < 9; shape++) {
            data[0] = (uint8_t) (1 + shape % 3);
            data[1] = 0;
            data[2] = (uint8_t) (1 + shape / 3);
            data[3] = (uint8_t) policy;
            data[4] = (uint8_t) (2 + shape % 2);
            unsigned sequences = 1;
            for (unsigned i = 0; i < LENGTH; i++) {
                sequences *= KINDS;
            }
            for (unsigned sequence = 0; sequence < sequences; sequence++) {
                unsigned rest = sequence;
                for (unsigned i = 0; i < LENGTH; i++) {
                    data[5 + i] = events[rest % KINDS];
                    rest /= KINDS;
                }
                board_run(data, sizeof data);
            }
        }
    }
}

static void long_random_sequences(void)
{
    uint8_t data[200];
    for (unsigned run = 0; run < rounds(4000, 30000); run++) {
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = roll();
        }
        data[1] &= 1;
        data[2] = (uint8_t) (1 + data[2] % 9);
        if ((data[3] & 7) == WEIR_LIMIT_STRICT || (data[3] & 7) == WEIR_LIMIT_PACED) {
            data[2] = 1;
        }
        board_run(data, sizeof data);
    }
}

/*
 * LIMIT-RECORD-3: each overload begins once and ends once; LIMIT-RECORD-1: the record counts them.
 */
static void overloads_begin_and_end(void)
{
    weir_limit_t limit = {.config = {.policy = WEIR_LIMIT_STRICT, .interval = 100, .burst = 1}};
    begun = ended = 0;
    weir_limit_start(&limit, 0);
    for (weir_ticks_t overload = 0; overload < 5; overload++) {
        weir_ticks_t at = (weir_ticks_t) (overload * 1000u);
        CHECK(weir_limit_request(&limit, at).serve);
        CHECK(weir_limit_expired(&limit, (weir_ticks_t) (at + 100u), true).serve);
        CHECK(weir_limit_expired(&limit, (weir_ticks_t) (at + 200u), true).serve);
        CHECK(weir_limit_expired(&limit, (weir_ticks_t) (at + 300u), false).unmask);
    }
#if WEIR_LIMIT_RECORD
    CHECK(begun == 5 && ended == 5);
    const weir_limit_record_t *record = &limit.state.record;
    CHECK(record->overloads == 5 && record->taken == 15 && record->served == 15 && record->masked_intervals == 5);
    CHECK(record->longest_masked == 300 && record->first_overload == 100 && record->last_overload == 4100);
    weir_limit_done(&limit.state, 7, 19);
    CHECK(record->longest_handler == 12);
#else
    CHECK(begun == 0 && ended == 0);
#endif
}

/* The configurations that weir_limit_check() refuses, and the largest that it accepts. */
static void limits_of_the_configuration(void)
{
    const weir_ticks_t half = WEIR_TICKS_HALF;
    weir_limit_config_t c = {.policy = WEIR_LIMIT_BUCKET, .interval = (weir_ticks_t) ((half - 1u) / 256u), .burst = 255};
    CHECK(weir_limit_check(&c) == WEIR_LIMIT_OK);
    c.interval++;
    CHECK(weir_limit_check(&c) == WEIR_LIMIT_BAD_INTERVAL);
    c.burst = 0;
    CHECK(weir_limit_check(&c) == WEIR_LIMIT_BAD_BURST);
    c.policy = WEIR_LIMIT_BUCKET + 1;
    CHECK(weir_limit_check(&c) == WEIR_LIMIT_BAD_POLICY);
    weir_limit_config_t strict = {.policy = WEIR_LIMIT_STRICT, .interval = 100, .lag = 99, .burst = 1};
    CHECK(weir_limit_check(&strict) == WEIR_LIMIT_OK);
    strict.lag = 100;
    CHECK(weir_limit_check(&strict) == WEIR_LIMIT_BAD_LAG);
    strict.lag = 0;
    strict.burst = 2;
    CHECK(weir_limit_check(&strict) == WEIR_LIMIT_BAD_BURST);
    strict.burst = 1;
    strict.interval = 0;
    CHECK(weir_limit_check(&strict) == WEIR_LIMIT_BAD_INTERVAL);
}

int main(void)
{
    limits_of_the_configuration();
    overloads_begin_and_end();
    every_short_sequence();
    long_random_sequences();
    printf("core: %d-bit ticks, record %d: 4 passed\n", WEIR_TICK_BITS, WEIR_LIMIT_RECORD);
    return 0;
}
