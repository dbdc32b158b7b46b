/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A NIC of up to three moderated queues, driven by bytes: for the sanitizers and the fuzzer. The
 * test keeps the windows in time that never wraps, and stops the program where a queue disagrees:
 * it interrupts early, late or for nothing, forgets a packet, or drops one although there is room.
 */
#ifndef WEIR_TESTS_MODERATE_BOARD_H
#define WEIR_TESTS_MODERATE_BOARD_H

#include <stddef.h>

#include "weir/moderate.h"

#include "check.h"

#define CHECK(what) CHECK_IN(WEIR_TICK_BITS, "bit ticks", what)

#define NIC_QUEUES 3u
#define NIC_NEVER UINT64_MAX

/* The expected state of a queue. `began` and `quiet` are instants that never wrap. */
typedef struct {
    uint64_t began;
    uint64_t quiet;
    uint64_t waiting;
    uint64_t accepted;
    uint64_t dropped;
    uint64_t interrupts;
    uint64_t removed;
    bool raised;
} nic_model_t;

typedef struct {
    weir_moderate_t queues[NIC_QUEUES];
    nic_model_t models[NIC_QUEUES];
    uint16_t count;
    uint64_t now;
    uint64_t latency; /* from the instant that weir_moderate_next() told to the call of weir_moderate_expired() */
} nic_t;

static uint64_t nic_due(const nic_t *n, uint16_t i)
{
    const weir_moderate_config_t *c = &n->queues[i].config;
    const nic_model_t *m = &n->models[i];
    if (m->raised || m->waiting == 0) {
        return NIC_NEVER;
    }
    uint64_t absolute = m->began + c->absolute;
    uint64_t packet = c->packet == 0 ? NIC_NEVER : m->quiet + c->packet;
    return absolute < packet ? absolute : packet;
}

/* True iff, by the model, queue `i` must interrupt at this instant. */
static bool nic_wants(const nic_t *n, uint16_t i)
{
    const weir_moderate_config_t *c = &n->queues[i].config;
    const nic_model_t *m = &n->models[i];
    return !m->raised && m->waiting != 0 && (c->absolute == 0 || (c->count != 0 && m->waiting >= c->count) || nic_due(n, i) <= n->now);
}

/* Checks whether the queue was right to raise its interrupt, or not to. */
static void nic_raised(nic_t *n, uint16_t i, bool raised)
{
    nic_model_t *m = &n->models[i];
    CHECK(raised == nic_wants(n, i)); /* MODERATE-WAIT-1, -PACKET-1, -COUNT-1, -OFF-1, -EARLY-1 */
    if (raised) {
        CHECK(m->waiting != 0); /* MODERATE-EMPTY-1 */
        m->raised = true;
        m->interrupts++;
    }
}

static void nic_check(const nic_t *n)
{
    uint64_t earliest = NIC_NEVER;
    for (uint16_t i = 0; i < n->count; i++) {
        const weir_moderate_state_t *s = &n->queues[i].state;
        const nic_model_t *m = &n->models[i];
        uint64_t due = nic_due(n, i);
        earliest = due < earliest ? due : earliest;
        CHECK(s->waiting == m->waiting && m->accepted == m->removed + m->waiting); /* MODERATE-FULL-1 */
        CHECK(s->accepted == (uint32_t) m->accepted && s->dropped == (uint32_t) m->dropped && s->interrupts == (uint32_t) m->interrupts);
        CHECK((s->phase == WEIR_MODERATE_RAISED) == m->raised);
        CHECK(m->raised || (s->phase == WEIR_MODERATE_OPEN) == (m->waiting != 0)); /* MODERATE-LIVE-1 */
    }
    weir_ticks_t at = 0;
    bool any = weir_moderate_next(n->queues, n->count, (weir_ticks_t) n->now, &at);
    CHECK(any == (earliest != NIC_NEVER)); /* MODERATE-NEXT-1 */
    CHECK(!any || at == (weir_ticks_t) (earliest < n->now ? n->now : earliest));
}

/* The port's timer fires: each queue that is due raises its interrupt, in order. */
static void nic_fire(nic_t *n)
{
    uint16_t from = 0;
    while (from < n->count) {
        uint16_t found = weir_moderate_expired(n->queues, n->count, from, (weir_ticks_t) n->now);
        CHECK(found >= from);
        for (uint16_t i = from; i < found; i++) {
            nic_raised(n, i, false);
        }
        if (found < n->count) {
            nic_raised(n, found, true);
        }
        from = (uint16_t) (found + 1u);
    }
}

/* Advances time; the port handles due timers with its latency. */
static void nic_advance(nic_t *n, uint64_t to)
{
    for (;;) {
        uint64_t due = NIC_NEVER;
        for (uint16_t i = 0; i < n->count; i++) {
            due = nic_due(n, i) < due ? nic_due(n, i) : due;
        }
        if (due == NIC_NEVER || due + n->latency > to) {
            break;
        }
        n->now = due + n->latency > n->now ? due + n->latency : n->now;
        nic_fire(n);
        nic_check(n);
    }
    n->now = to;
    nic_check(n);
}

static void nic_begin(nic_t *n, uint16_t i)
{
    n->models[i].began = n->now;
    n->models[i].quiet = n->now;
}

static void nic_arrive(nic_t *n, uint16_t i)
{
    nic_model_t *m = &n->models[i];
    weir_moderate_step_t step = weir_moderate_arrive(&n->queues[i], (weir_ticks_t) n->now);
    CHECK(step.accepted == (m->waiting < n->queues[i].config.size));
    if (!step.accepted) {
        CHECK(!step.interrupt);
        m->dropped++;
        return;
    }
    m->accepted++;
    if (m->waiting++ == 0 && !m->raised) {
        nic_begin(n, i);
    }
    nic_raised(n, i, step.interrupt);
    m->quiet = n->now;
}

static void nic_remove(nic_t *n, uint16_t i, uint16_t count)
{
    nic_model_t *m = &n->models[i];
    uint64_t taken = count < m->waiting ? count : m->waiting;
    CHECK(weir_moderate_remove(&n->queues[i].state, count) == taken);
    m->waiting -= taken;
    m->removed += taken;
}

static void nic_done(nic_t *n, uint16_t i)
{
    nic_model_t *m = &n->models[i];
    bool again = weir_moderate_done_with(&n->queues[i].state, &n->queues[i].config, (weir_ticks_t) n->now);
    if (!m->raised) {
        CHECK(!again);
        return;
    }
    m->raised = false;
    nic_begin(n, i);
    nic_raised(n, i, again);
}

static void nic_reconfigure(nic_t *n, uint16_t i, const weir_moderate_config_t *to)
{
    weir_moderate_config_t from = n->queues[i].config;
    bool interrupt = true;
    if (weir_moderate_reconfigure(&n->queues[i], to, (weir_ticks_t) n->now, &interrupt) == WEIR_MODERATE_OK) {
        nic_raised(n, i, interrupt); /* MODERATE-CHANGE-1 */
    } else {
        weir_moderate_config_t is = n->queues[i].config; /* MODERATE-CHANGE-2 */
        CHECK(!interrupt && weir_moderate_check(to) != WEIR_MODERATE_OK);
        CHECK(is.absolute == from.absolute && is.packet == from.packet && is.count == from.count && is.size == from.size);
    }
}

/* A configuration from four bytes; a quarter of the absolute timers is long. */
static weir_moderate_config_t nic_config(const uint8_t *data)
{
    weir_ticks_t absolute = (data[0] & 3) == 3 ? (weir_ticks_t) ((data[0] >> 2) * 500u) : (weir_ticks_t) (data[0] >> 2);
    weir_moderate_config_t c = {.absolute = absolute, .packet = data[1] & 63u, .count = data[2] & 15u, .size = data[3] & 31u};
    return c;
}

/*
 * Runs a NIC: byte 0 is the number of queues, byte 1 the distance of the start from a wrap, then 4
 * bytes per queue, then events of a kind and a value.
 */
static void nic_run(const uint8_t *data, size_t size)
{
    nic_t n = {.count = 1};
    if (size < 2) {
        return;
    }
    n.count = (uint16_t) (1 + data[0] % NIC_QUEUES);
    n.now = ((uint64_t) 1 << (WEIR_TICK_BITS == 64 ? 40 : WEIR_TICK_BITS)) - data[1];
    size_t next = 2;
    for (uint16_t i = 0; i < n.count; i++, next += 4) {
        if (size - next < 4) {
            return;
        }
        weir_moderate_config_t c = nic_config(data + next);
        if (weir_moderate_check(&c) != WEIR_MODERATE_OK) {
            return;
        }
        weir_moderate_start(&n.queues[i], &c);
    }
    for (; size - next >= 2; next += 2) {
        uint16_t i = (uint16_t) ((data[next] >> 4) % n.count);
        uint8_t value = data[next + 1];
        switch (data[next] & 15) {
        case 0:
        case 1:
        case 2:
        case 3:
            nic_arrive(&n, i);
            break;
        case 4:
        case 5:
            for (uint8_t burst = value & 31; burst != 0; burst--) {
                nic_arrive(&n, i);
            }
            break;
        case 6:
            nic_remove(&n, i, value);
            break;
        case 7:
        case 8:
            nic_remove(&n, i, value & 7);
            nic_done(&n, i);
            break;
        case 9:
            nic_remove(&n, i, value);
            nic_done(&n, i);
            break;
        case 10:
            n.latency = value & 7;
            break;
        case 11:
            /*
             * Idles for longer than a wrap of 16-bit ticks. Raised interrupts wait; open windows
             * come due on the way.
             */
            nic_advance(&n, n.now + value * 1000u);
            break;
        case 12:
            if (size - next >= 6) {
                weir_moderate_config_t to = nic_config(data + next + 2);
                next += 4;
                nic_reconfigure(&n, i, &to);
            }
            break;
        default:
            nic_advance(&n, n.now + (value & 63));
            break;
        }
        nic_check(&n);
    }
}

#endif
