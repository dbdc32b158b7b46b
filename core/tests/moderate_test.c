/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The moderated queues under the sanitizers: long random sequences of events, constant against
 * changeable parameters, refused parameters.
 */
#include "../src/moderate.c"
#include "moderate_board.h"

/* Random parameters that weir_moderate_check() accepts. */
static void roll_config(uint8_t *data)
{
    weir_moderate_config_t c;
    do {
        for (unsigned i = 0; i < 4; i++) {
            data[i] = roll();
        }
        c = nic_config(data);
    } while (weir_moderate_check(&c) != WEIR_MODERATE_OK);
}

static void long_random_sequences(void)
{
    uint8_t data[400];
    for (unsigned run = 0; run < rounds(4000, 20000); run++) {
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = roll();
        }
        for (unsigned i = 0; i < NIC_QUEUES; i++) {
            roll_config(data + 2 + 4 * i);
        }
        nic_run(data, sizeof data);
    }
}

/*
 * A queue whose parameters the compiler knows takes the same steps as one whose parameters can
 * change.
 */
#define CONSTANT_AGAINST_CHANGEABLE(...)                                                                                                   \
    do {                                                                                                                                   \
        static const weir_moderate_config_t constant = {__VA_ARGS__};                                                                      \
        weir_moderate_state_t state = {.phase = WEIR_MODERATE_IDLE};                                                                       \
        weir_moderate_t queue;                                                                                                             \
        weir_moderate_start(&queue, &constant);                                                                                            \
        weir_moderate_config_t *volatile unknown = &queue.config;                                                                          \
        weir_ticks_t now = (weir_ticks_t) - 20;                                                                                            \
        CHECK(weir_moderate_check(&constant) == WEIR_MODERATE_OK);                                                                         \
        for (unsigned i = 0; i < 20000; i++) {                                                                                             \
            now = (weir_ticks_t) (now + roll() % 16u);                                                                                     \
            if (weir_moderate_expired_with(&state, &constant, now)) {                                                                      \
                CHECK(weir_moderate_expired_with(&queue.state, unknown, now));                                                             \
            } else if (roll() % 4u != 0) {                                                                                                 \
                weir_moderate_step_t a = weir_moderate_arrive_with(&state, &constant, now);                                                \
                weir_moderate_step_t b = weir_moderate_arrive_with(&queue.state, unknown, now);                                            \
                CHECK(a.accepted == b.accepted && a.interrupt == b.interrupt);                                                             \
            } else {                                                                                                                       \
                uint16_t taken = roll() % 8u;                                                                                              \
                CHECK(weir_moderate_take_with(&state, &constant, taken, now) == weir_moderate_take(&queue, taken, now));                   \
            }                                                                                                                              \
            CHECK(state.phase == queue.state.phase && state.waiting == queue.state.waiting);                                               \
            CHECK(state.phase != WEIR_MODERATE_OPEN ||                                                                                     \
                  weir_moderate_due_at(&state, &constant) == weir_moderate_due_at(&queue.state, unknown));                                 \
        }                                                                                                                                  \
        CHECK(state.interrupts == queue.state.interrupts && state.dropped == queue.state.dropped && state.interrupts > 100);               \
    } while (0)

static void constant_configurations(void)
{
    CONSTANT_AGAINST_CHANGEABLE(.size = 4);
    CONSTANT_AGAINST_CHANGEABLE(.absolute = 40, .size = 16);
    CONSTANT_AGAINST_CHANGEABLE(.absolute = 40, .packet = 12, .size = 16);
    CONSTANT_AGAINST_CHANGEABLE(.absolute = 40, .count = 3, .size = 16);
    CONSTANT_AGAINST_CHANGEABLE(.absolute = 40, .packet = 12, .count = 3, .size = 5);
}

/* The parameters that weir_moderate_check() refuses, and the largest that it accepts. */
static void limits_of_the_configuration(void)
{
    weir_moderate_config_t c = {.absolute = WEIR_TICKS_HALF - 1, .packet = WEIR_TICKS_HALF - 1, .count = UINT16_MAX, .size = UINT16_MAX};
    CHECK(weir_moderate_check(&c) == WEIR_MODERATE_OK);
    c.count = 0;
    c.absolute = WEIR_TICKS_HALF;
    CHECK(weir_moderate_check(&c) == WEIR_MODERATE_BAD_ABSOLUTE);
    c.absolute = 100;
    CHECK(weir_moderate_check(&c) == WEIR_MODERATE_BAD_PACKET);
    c.packet = 100;
    CHECK(weir_moderate_check(&c) == WEIR_MODERATE_OK);
    c.size = 0;
    CHECK(weir_moderate_check(&c) == WEIR_MODERATE_BAD_SIZE);
    c.size = 7;
    c.count = 8;
    CHECK(weir_moderate_check(&c) == WEIR_MODERATE_BAD_COUNT);
    weir_moderate_config_t starving = {.packet = 1, .size = 8};
    CHECK(weir_moderate_check(&starving) == WEIR_MODERATE_BAD_ABSOLUTE);
    starving.packet = 0;
    starving.count = 2;
    CHECK(weir_moderate_check(&starving) == WEIR_MODERATE_BAD_ABSOLUTE);
    starving.count = 1;
    CHECK(weir_moderate_check(&starving) == WEIR_MODERATE_OK);
}

/*
 * MODERATE-TIME-1: the longest window, from just before a wrap, with a port that is almost half a
 * wrap late.
 */
static void the_longest_window(void)
{
    weir_moderate_config_t c = {.absolute = WEIR_TICKS_HALF - 1, .packet = WEIR_TICKS_HALF - 2, .size = 2};
    weir_moderate_t queue;
    weir_ticks_t start = (weir_ticks_t) -1;
    weir_ticks_t at = 0;
    weir_moderate_start(&queue, &c);
    CHECK(weir_moderate_arrive(&queue, start).accepted);
    CHECK(weir_moderate_next(&queue, 1, start, &at) && at == (weir_ticks_t) (start + c.packet));
    CHECK(weir_moderate_arrive(&queue, (weir_ticks_t) (at - 1u)).accepted);
    CHECK(weir_moderate_next(&queue, 1, start, &at) && at == (weir_ticks_t) (start + c.absolute));
    CHECK(weir_moderate_expired(&queue, 1, 0, (weir_ticks_t) (at - 1u)) == 1);
    weir_ticks_t late = (weir_ticks_t) (at + (WEIR_TICKS_HALF - 1u));
    CHECK(weir_moderate_next(&queue, 1, late, &at) && at == late);
    CHECK(weir_moderate_expired(&queue, 1, 0, late) == 0);
}

int main(void)
{
    limits_of_the_configuration();
    the_longest_window();
    constant_configurations();
    long_random_sequences();
    printf("moderate: %d-bit ticks: 4 passed\n", WEIR_TICK_BITS);
    return 0;
}
