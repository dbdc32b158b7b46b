/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Constant against changeable configurations of the limit machine, under the sanitizers: a program
 * of its own, because the compiler needs its time to work out each constant one.
 */
#include "weir/ticks.h"

#include "../src/limit.c"
#include "check.h"

#define CHECK(what) CHECK_IN(WEIR_TICK_BITS, "bits", what)

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

int main(void)
{
    constant_configurations();
    printf("core: %d-bit ticks, record %d: 1 passed\n", WEIR_TICK_BITS, WEIR_LIMIT_RECORD);
    return 0;
}
