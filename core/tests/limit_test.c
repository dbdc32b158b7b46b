/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limit machine under the sanitizers: every short sequence of events, many long random ones,
 * constant against changeable configurations.
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
    for (unsigned run = 0; run < 30000; run++) {
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

static bool same_step(weir_limit_step_t a, weir_limit_step_t b)
{
    return a.serve == b.serve && a.ack == b.ack && a.mask == b.mask && a.unmask == b.unmask && a.arm == b.arm && a.watch == b.watch &&
           a.disarm == b.disarm && (!(a.arm || a.watch) || a.at == b.at);
}

/*
 * A limiter whose configuration the compiler knows takes the same steps as one whose configuration
 * can change.
 */
#define CONSTANT_AGAINST_CHANGEABLE(...)                                                                                                   \
    do {                                                                                                                                   \
        static const weir_limit_config_t constant = {__VA_ARGS__};                                                                         \
        weir_limit_state_t state;                                                                                                          \
        weir_limit_t limit = {.config = constant};                                                                                         \
        weir_limit_config_t *volatile unknown = &limit.config;                                                                             \
        weir_ticks_t now = (weir_ticks_t) - 20;                                                                                            \
        CHECK(weir_limit_check(&constant) == WEIR_LIMIT_OK);                                                                               \
        CHECK(same_step(weir_limit_start_with(&state, &constant, now), weir_limit_start(&limit, now)));                                    \
        for (unsigned i = 0; i < 20000; i++) {                                                                                             \
            bool flag = (roll() & 1) != 0;                                                                                                 \
            now = (weir_ticks_t) (now + roll() % 16u);                                                                                     \
            unsigned event = roll() % 8u;                                                                                                  \
            if (weir_limit_is_armed(&state, &constant) && weir_ticks_reached(now, state.due)) {                                            \
                CHECK(same_step(weir_limit_expired_with(&state, &constant, now, flag),                                                     \
                                weir_limit_expired_with(&limit.state, unknown, now, flag)));                                               \
            } else if (event == 0) {                                                                                                       \
                CHECK(same_step(weir_limit_user_disable(&state), weir_limit_user_disable(&limit.state)));                                  \
            } else if (event <= 2) {                                                                                                       \
                CHECK(same_step(weir_limit_user_enable(&state, now), weir_limit_user_enable(&limit.state, now)));                          \
            } else if (weir_limit_is_on(&state)) {                                                                                         \
                CHECK(same_step(weir_limit_request_with(&state, &constant, now, flag &&event == 7),                                        \
                                weir_limit_request_with(&limit.state, unknown, now, flag &&event == 7)));                                  \
            } else {                                                                                                                       \
                CHECK(same_step(weir_limit_refused_with(&state, &constant, now), weir_limit_refused_with(&limit.state, unknown, now)));    \
            }                                                                                                                              \
            CHECK(state.flags == limit.state.flags && state.count == limit.state.count && state.due == limit.state.due);                   \
        }                                                                                                                                  \
    } while (0)

static void constant_configurations(void)
{
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_OFF);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_STRICT, .interval = 20, .burst = 1);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_STRICT, .interval = 20, .lag = 3, .burst = 1, .trigger = WEIR_LIMIT_LEVEL);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_LAZY, .interval = 20, .burst = 1);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_PACED, .interval = 20, .burst = 1);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_PACED, .timing = WEIR_LIMIT_LAZY, .interval = 20, .burst = 1);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_BURSTY, .interval = 50, .burst = 4);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_BURSTY, .timing = WEIR_LIMIT_LAZY, .interval = 50, .burst = 4);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_BURSTY, .timing = WEIR_LIMIT_ONE_SHOT, .interval = 50, .burst = 4);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_BUCKET, .interval = 20, .burst = 4, .trigger = WEIR_LIMIT_EDGE_UNLATCHED);
    CONSTANT_AGAINST_CHANGEABLE(.policy = WEIR_LIMIT_BUCKET, .timing = WEIR_LIMIT_LAZY, .interval = 20, .burst = 4);
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
    constant_configurations();
    every_short_sequence();
    long_random_sequences();
    printf("core: %d-bit ticks, record %d: 5 passed\n", WEIR_TICK_BITS, WEIR_LIMIT_RECORD);
    return 0;
}
