/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A port in memory, driven by bytes: for the sanitizers and the fuzzer. It performs the steps of
 * one limiter and stops the program where the limiter lets through more than its curve, overrides
 * the user or forgets a request. The Rust tests compare the machine with the contracts more
 * closely; this one is small, so that a fuzzer is fast, and is in C, so that the sanitizers see
 * inside.
 */
#ifndef WEIR_TESTS_LIMIT_BOARD_H
#define WEIR_TESTS_LIMIT_BOARD_H

#include <stddef.h>

#include "weir/limit.h"

#include "check.h"

#define CHECK(what) CHECK_IN(WEIR_TICK_BITS, "bit ticks", what)

#define BOARD_REMEMBERS 128u
#define BOARD_LATENCY 7u

typedef struct {
    weir_limit_t limit;
    uint64_t now; /* never wraps; the limiter sees it modulo its width */
    uint64_t fires;
    uint64_t watched;
    uint64_t aged;
    uint64_t latency;
    uint64_t shortest; /* of the intervals since the start, in ticks */
    uint8_t largest;   /* of the bursts */
    bool is_armed;
    bool is_watched;
    bool watches; /* keeps a note of watched instants; else ages */
    bool enabled;
    bool user_on;
    bool pending;
    unsigned held;
    uint64_t served[BOARD_REMEMBERS];
    size_t served_count;
    uint64_t edges;
    uint64_t lost;
} board_t;

static uint64_t board_most(const board_t *b, uint64_t window)
{
    const weir_limit_config_t *c = &b->limit.config;
    /* The user delays a paced service by less than one interval. */
    uint64_t jitter = c->policy == WEIR_LIMIT_PACED || BOARD_LATENCY >= b->shortest ? b->shortest - 1 : BOARD_LATENCY;
    switch (c->policy) {
    case WEIR_LIMIT_STRICT:
        return 1 + window / b->shortest;
    case WEIR_LIMIT_PACED:
        return 1 + (window + jitter) / b->shortest;
    case WEIR_LIMIT_BURSTY:
        return b->largest * ((window + jitter) / b->shortest + 2);
    case WEIR_LIMIT_BUCKET:
        return b->largest + window / b->shortest;
    default:
        return UINT64_MAX;
    }
}

static void board_serve(board_t *b)
{
    CHECK(b->user_on);
    b->served[b->served_count % BOARD_REMEMBERS] = b->now;
    b->served_count++;
    size_t remembered = b->served_count < BOARD_REMEMBERS ? b->served_count : BOARD_REMEMBERS;
    for (size_t back = 1; back <= remembered; back++) {
        CHECK(back <= board_most(b, b->now - b->served[(b->served_count - back) % BOARD_REMEMBERS]));
    }
}

static uint64_t board_absolute(const board_t *b, weir_ticks_t at)
{
    weir_ticks_t now = (weir_ticks_t) b->now;
    return weir_ticks_reached(now, at) ? b->now - weir_ticks_between(at, now) : b->now + weir_ticks_between(now, at);
}

static void board_perform(board_t *b, weir_limit_step_t step, bool expiry)
{
    CHECK(!(step.mask && step.unmask) && !(step.arm && (step.watch || step.disarm)));
    if (step.mask) {
        b->enabled = false;
    }
    if (step.unmask) {
        CHECK(b->user_on);
        b->enabled = true;
    }
    if (step.arm || step.watch || step.disarm) {
        uint64_t at = board_absolute(b, step.at);
        b->is_armed = step.arm;
        b->fires = (at > b->now ? at : b->now) + b->latency;
        if (step.arm || step.watch) {
            b->is_watched = step.watch;
            b->watched = at;
        }
    }
    if (step.ack) {
        CHECK(step.serve && b->pending);
        b->pending = false;
    }
    if (step.serve) {
        if (expiry && !step.ack) {
            CHECK(b->held > 0);
            b->held--;
        }
        board_serve(b);
        weir_limit_done(&b->limit.state, (weir_ticks_t) b->now, (weir_ticks_t) (b->now + 3));
    }
    CHECK(b->enabled == weir_limit_is_on(&b->limit.state));
    CHECK(!b->user_on || b->enabled || b->is_armed);
}

static bool board_elapsed(const board_t *b)
{
    return b->watches && b->is_watched && b->watched <= b->now;
}

static void board_tell_elapsed(board_t *b)
{
    if (board_elapsed(b)) {
        weir_limit_elapsed(&b->limit.state, &b->limit.config);
    }
}

static void board_deliver(board_t *b)
{
    while (b->enabled && b->pending) {
        b->pending = false;
        weir_limit_step_t step = weir_limit_request_with(&b->limit.state, &b->limit.config, (weir_ticks_t) b->now, board_elapsed(b));
        if (!step.serve) {
            CHECK(step.mask);
            b->held++;
        }
        board_perform(b, step, false);
    }
}

static void board_edge(board_t *b)
{
    b->edges++;
    if (b->pending) {
        b->lost++;
    }
    b->pending = true;
    board_deliver(b);
}

static void board_expire(board_t *b)
{
    for (unsigned times = 0; b->is_armed && b->fires <= b->now; times++) {
        CHECK(times < 4);
        b->is_armed = false;
        b->is_watched = false;
        board_perform(b, weir_limit_expired(&b->limit, (weir_ticks_t) b->now, b->pending), true);
        board_deliver(b);
    }
}

static void board_wait(board_t *b, uint64_t ticks)
{
    uint64_t to = b->now + ticks;
    const uint64_t ageing = WEIR_TICKS_HALF - (uint64_t) b->limit.config.interval * (b->limit.config.burst + 1u);
    while (b->now < to) {
        uint64_t next = to;
        if (b->is_armed && b->fires < next) {
            next = b->fires > b->now ? b->fires : b->now + 1;
        }
        if (!b->watches && b->aged + ageing < next) {
            next = b->aged + ageing > b->now ? b->aged + ageing : b->now + 1;
        }
        b->now = next;
        if (!b->watches && b->now >= b->aged + ageing) {
            b->aged = b->now;
            weir_limit_age(&b->limit.state, &b->limit.config, (weir_ticks_t) b->now);
        }
        board_expire(b);
    }
}

static void board_user(board_t *b, bool on)
{
    b->user_on = on;
    board_tell_elapsed(b);
    board_perform(b, on ? weir_limit_user_enable(&b->limit.state, (weir_ticks_t) b->now) : weir_limit_user_disable(&b->limit.state), false);
    board_deliver(b);
}

static void board_race(board_t *b)
{
    board_user(b, false);
    board_tell_elapsed(b);
    b->edges++;
    if (b->held > 0) {
        b->lost++;
    } else {
        b->held++;
    }
    board_perform(b, weir_limit_refused(&b->limit, (weir_ticks_t) b->now), false);
}

static void board_change(board_t *b, weir_ticks_t interval, uint8_t burst)
{
    weir_limit_config_t to = b->limit.config;
    to.interval = interval;
    to.burst = burst;
    weir_limit_step_t step;
    board_tell_elapsed(b);
    if (weir_limit_reconfigure(&b->limit, &to, (weir_ticks_t) b->now, &step) == WEIR_LIMIT_OK) {
        b->shortest = interval < b->shortest ? interval : b->shortest;
        b->largest = burst > b->largest ? burst : b->largest;
    }
    board_perform(b, step, false);
    board_deliver(b);
}

/* Idles for up to two wraps; for less with a periodic timer, whose many expiries would make the
 * test slow. */
static void board_idle(board_t *b, uint64_t amount)
{
    bool periodic = b->limit.config.policy == WEIR_LIMIT_BURSTY && b->limit.config.timing == WEIR_LIMIT_EAGER;
    if (periodic) {
        board_wait(b, amount * 100);
    } else {
        board_wait(b, WEIR_TICK_BITS == 64 ? amount << 40 : amount << ((WEIR_TICK_BITS - 4) & 63));
    }
}

/* Sets up a limiter from the first bytes; false if they describe none. */
static bool board_start(board_t *b, const uint8_t *data, size_t size)
{
    if (size < 5) {
        return false;
    }
    weir_limit_config_t config = {
        .interval = (weir_ticks_t) (data[0] | (data[1] & 0x3u) << 8),
        .burst = data[2],
        .policy = data[3] & 0x7u,
        .timing = data[3] >> 3 & 0x3u,
        .trigger = WEIR_LIMIT_EDGE,
    };
    if (weir_limit_check(&config) != WEIR_LIMIT_OK) {
        return false;
    }
    static const board_t zero;
    *b = zero;
    b->limit.config = config;
    b->shortest = config.interval;
    b->largest = config.burst;
    b->user_on = true;
    b->watches = (data[4] & 1) != 0;
    /* Starts shortly before the wrap, for the widths at which a test can reach it. */
    b->now = WEIR_TICK_BITS == 64 ? data[4] : ((uint64_t) 1 << (WEIR_TICK_BITS & 63)) - data[4];
    b->aged = b->now;
    board_perform(b, weir_limit_start(&b->limit, (weir_ticks_t) b->now), false);
    return true;
}

/* Plays the events in the bytes, then checks that no request waits for ever. */
static void board_run(const uint8_t *data, size_t size)
{
    board_t b;
    if (!board_start(&b, data, size)) {
        return;
    }
    for (size_t i = 5; i < size; i++) {
        uint64_t amount = (data[i] >> 3) + 1u;
        switch (data[i] & 7) {
        case 0:
            board_wait(&b, amount);
            break;
        case 1:
            board_wait(&b, amount * 37);
            break;
        case 2:
        case 3:
            for (uint64_t k = 0; k < amount; k++) {
                board_edge(&b);
            }
            break;
        case 4:
            board_user(&b, !b.user_on);
            break;
        case 5:
            if (b.enabled && (amount & 1) != 0) {
                board_race(&b);
            } else {
                b.latency = amount % (BOARD_LATENCY + 1);
            }
            break;
        case 6:
            if (i + 2 < size) {
                board_change(&b, (weir_ticks_t) (data[i + 1] * amount), data[i + 2]);
                i += 2;
            }
            break;
        default:
            board_idle(&b, amount);
            break;
        }
    }
    b.latency = 0;
    if (!b.user_on) {
        board_user(&b, true);
    }
    const uint64_t pause = b.limit.config.interval + 1u;
    for (uint64_t waited = 0; (!b.enabled || b.held > 0) && waited <= WEIR_TICKS_HALF; waited += pause) {
        board_wait(&b, pause);
    }
    CHECK(b.enabled && !b.pending && b.held == 0);
    CHECK(b.edges - b.lost == b.served_count);
}

#endif
