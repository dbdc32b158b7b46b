/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A card, a stack and workers around ports/freertos, for the sanitizers and the fuzzer. What
 * becomes of every frame is known from core's parser and a list of the bindings; the test stops
 * where the port says something else, where a buffer is lost, or where a counter does not add up.
 */
#ifndef WEIR_FREERTOS_TESTS_HOUSE_H
#define WEIR_FREERTOS_TESTS_HOUSE_H

#include <string.h>

#include "../src/freertos.c"
#include "../../../core/src/demux.c"
#include "../../../core/src/moderate.c"

#include "../../../core/tests/check.h"

#define CHECK(what) CHECK_IN(WEIR_CLASSES, "classes", what)

enum { HOUSE_OVERHEAD = 7 };
enum { HOUSE_CLASSES = 4, HOUSE_FRAMES = 3, HOUSE_RECEIVERS = 5, HOUSE_SLOTS = 16, HOUSE_BINDINGS = 8, HOUSE_HELD = 12 };
enum { ORPHANS, PIECES, COMMON, URGENT };
static const UBaseType_t urgencies[HOUSE_CLASSES] = {1, 2, 3, 20};

/* A port that a receiver has. */
struct binding {
    bool is_there;
    uint8_t protocol;
    uint16_t port, receiver;
};

static struct {
    weir_freertos_net_t net;
    weir_freertos_frame_t frames[HOUSE_CLASSES][HOUSE_FRAMES];
    weir_freertos_class_t classes[HOUSE_CLASSES];
    struct binding bindings[HOUSE_BINDINGS];
    uint8_t class_of[HOUSE_RECEIVERS]; /* the class of a receiver, by its urgency told last */
    uint32_t left[HOUSE_RECEIVERS];
    uint16_t quota[HOUSE_RECEIVERS];         /* 0: none */
    weir_freertos_frame_t *held[HOUSE_HELD]; /* by the stack */
    bool stack_holds;                        /* does it hold what it gets? */
    uint32_t offered, given, lost;           /* frames, those that the stack got, and the dropped ones */
    uint32_t dropped[WEIR_FREERTOS_REASONS]; /* by reason */
    uint32_t packets;                        /* that were counted before the first */
} house;

/* The stack takes a frame, for a while: it is as it came, at its class's urgency. */
static void house_input(void *context, weir_freertos_frame_t *frame)
{
    CHECK(context == &house && fake.critical == 0);
    CHECK(fake.running->urgency == urgencies[frame->which]);
    const uint8_t *bytes = (const uint8_t *) frame->words;
    for (uint16_t at = WEIR_FREERTOS_HEAD; at < frame->length; at++) {
        CHECK(bytes[at] == (uint8_t) at);
    }
    house.given++;
    fake.clock += 900;
    for (uint32_t at = 0; house.stack_holds && at < HOUSE_HELD; at++) {
        if (house.held[at] == NULL) {
            house.held[at] = frame;
            return;
        }
    }
    weir_freertos_release(frame);
}

static weir_freertos_config_t house_config(void)
{
    for (uint8_t which = 0; which < HOUSE_CLASSES; which++) {
        house.classes[which] = (weir_freertos_class_t) {urgencies[which], house.frames[which], HOUSE_FRAMES};
    }
    return (weir_freertos_config_t) {
        .classes = house.classes,
        .count = HOUSE_CLASSES,
        .common = COMMON,
        .orphans = ORPHANS,
        .fragments = PIECES,
        .slots = HOUSE_SLOTS,
        .bindings = HOUSE_BINDINGS,
        .receivers = HOUSE_RECEIVERS,
        .stack_words = 100,
        .overhead = HOUSE_OVERHEAD,
        .input = house_input,
        .context = &house,
    };
}

/* Begins with an empty table. The counters are about to wrap if `is_late`. */
static void house_start(uint8_t orphans, uint8_t fragments, bool is_late)
{
    memset(&house, 0, sizeof house);
    memset(&fake, 0, sizeof fake);
    weir_freertos_config_t config = house_config();
    config.orphans = orphans;
    config.fragments = fragments;
    CHECK(weir_freertos_start(&house.net, &config) == WEIR_FREERTOS_OK);
    if (is_late) {
        fake.clock = UINT32_MAX - 5000;
        house.net.since = fake.clock;
        house.net.all.packets = house.net.nobody.packets = house.packets = UINT32_MAX - 5;
        house.net.all.cycles = house.net.nobody.cycles = UINT64_MAX - 5;
        for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
            house.net.dropped[reason] = house.dropped[reason] = UINT32_MAX - 2;
        }
    }
}

static void house_end(void)
{
    free_memory(&house.net, house.net.config.count);
    CHECK(fake.blocks == 0);
}

static uint32_t house_free(uint8_t which)
{
    uint32_t count = 0;
    for (const weir_freertos_frame_t *frame = house.net.lanes[which].free; frame != NULL; frame = frame->next) {
        count++;
    }
    return count;
}

/* Has a receiver this port? Then its class is that of the most urgent one. */
static bool house_has(uint8_t protocol, uint16_t port, uint8_t *which)
{
    int most = -1;
    for (uint32_t at = 0; at < HOUSE_BINDINGS; at++) {
        const struct binding *of = &house.bindings[at];
        if (of->is_there && of->protocol == protocol && of->port == port && house.class_of[of->receiver] > most) {
            most = house.class_of[of->receiver];
            *which = house.class_of[of->receiver];
        }
    }
    return most >= 0;
}

/* The buffers that hold frames of a receiver. */
static uint32_t house_held(uint16_t receiver)
{
    uint32_t count = 0;
    for (uint8_t which = 0; which < HOUSE_CLASSES; which++) {
        for (const weir_freertos_frame_t *frame = house.net.lanes[which].first; frame != NULL; frame = frame->next) {
            count += frame->receiver == receiver;
        }
    }
    for (uint32_t at = 0; at < HOUSE_HELD; at++) {
        count += house.held[at] != NULL && house.held[at]->receiver == receiver;
    }
    return count;
}

/* What is to become of a frame; -1: it waits in the class `which`. */
static int house_fate(const uint8_t *head, uint16_t length, uint16_t receiver, uint8_t *which)
{
    uint16_t present = length < WEIR_FREERTOS_HEAD ? length : WEIR_FREERTOS_HEAD;
    weir_demux_packet_t packet = weir_demux_parse(head, present);
    int without = WEIR_FREERTOS_NO_RECEIVER;
    *which = house.net.config.orphans;
    if (length + 4u > WEIR_FREERTOS_LONGEST || packet.outcome == WEIR_DEMUX_MALFORMED) {
        return WEIR_FREERTOS_MALFORMED;
    }
    if (packet.outcome == WEIR_DEMUX_TRUNCATED && present == length) {
        return WEIR_FREERTOS_MALFORMED;
    }
    if (packet.outcome == WEIR_DEMUX_PORT && house_has(packet.protocol, packet.port, which)) {
        CHECK(receiver < HOUSE_RECEIVERS && house.class_of[receiver] == *which);
        if (house.net.receivers[receiver].budget != 0 && house.left[receiver]-- == 0) {
            house.left[receiver] = 0;
            return WEIR_FREERTOS_OVER_BUDGET;
        }
        if (house.quota[receiver] != 0 && house_held(receiver) >= house.quota[receiver]) {
            return WEIR_FREERTOS_LANE_FULL;
        }
    } else if (packet.outcome == WEIR_DEMUX_NOT_IP || packet.outcome == WEIR_DEMUX_OTHER_PROTOCOL) {
        *which = COMMON;
    } else if (packet.outcome == WEIR_DEMUX_FIRST_FRAGMENT || packet.outcome == WEIR_DEMUX_LATER_FRAGMENT) {
        *which = house.net.config.fragments;
    } else if (packet.outcome != WEIR_DEMUX_PORT) {
        without = WEIR_FREERTOS_TOO_DEEP;
    }
    if (*which == WEIR_DEMUX_DROP) {
        return without;
    }
    return house_free(*which) == 0 ? WEIR_FREERTOS_LANE_FULL : -1;
}

/* The receiver that the port names for a frame; it is one that has the port. */
static uint16_t house_named(const uint8_t *head, uint16_t length)
{
    uint16_t present = length < WEIR_FREERTOS_HEAD ? length : WEIR_FREERTOS_HEAD;
    weir_demux_packet_t packet = weir_demux_parse(head, present);
    weir_demux_found_t found = weir_demux_classify(&house.net.demux, house.net.slots, &packet);
    return found.link == WEIR_DEMUX_NO_LINK ? WEIR_DEMUX_NO_LINK : house.net.links[found.link].reader;
}

/* The card interrupts with a frame, of which no byte beyond `length` may be read. */
static void house_frame(const uint8_t *bytes, uint16_t length)
{
    uint16_t present = length < WEIR_FREERTOS_HEAD ? length : WEIR_FREERTOS_HEAD;
    uint8_t *head = malloc(present == 0 ? 1 : present);
    memcpy(head, bytes, present);
    uint16_t receiver = house_named(head, length);
    uint8_t which;
    int fate = house_fate(head, length, receiver, &which);
    uint32_t *lost = NULL, lost_before = 0;
    if (fate == WEIR_FREERTOS_LANE_FULL || fate == WEIR_FREERTOS_OVER_BUDGET) {
        weir_freertos_receiver_t *of = receiver == WEIR_DEMUX_NO_LINK ? NULL : &house.net.receivers[receiver];
        lost = of == NULL ? NULL : fate == WEIR_FREERTOS_LANE_FULL ? &of->lane_full : &of->over_budget;
        lost_before = lost == NULL ? 0 : *lost;
    }
    bool is_its = fate == WEIR_FREERTOS_LANE_FULL || fate == WEIR_FREERTOS_OVER_BUDGET;
    const weir_account_total_t *pays =
        is_its && receiver != WEIR_DEMUX_NO_LINK ? &house.net.receivers[receiver].account : &house.net.nobody;
    weir_cycles_t paid = pays->cycles + house.net.in_interrupt + HOUSE_OVERHEAD;
    BaseType_t woken = 0;
    weir_freertos_interrupt_begins(&house.net);
    fake.clock += 100;
    weir_freertos_frame_t *frame = weir_freertos_admit(&house.net, head, length);
    free(head);
    CHECK((frame == NULL) == (fate >= 0));
    if (frame != NULL) {
        CHECK(frame->which == which && frame->length == length && frame->receiver == receiver);
        for (uint16_t at = 0; at < length; at++) {
            ((uint8_t *) frame->words)[at] = at < present ? bytes[at] : (uint8_t) at;
        }
        fake.clock += 50;
        weir_freertos_defer(&house.net, frame, &woken);
    } else {
        house.dropped[fate]++;
        house.lost++;
        CHECK(lost == NULL || *lost == lost_before + 1);
        fake.clock += 30; /* the rest of it is skipped, at its own cost */
        weir_freertos_discard(&house.net);
        CHECK(pays->cycles == paid + 130);
    }
    fake.clock += 20;
    weir_freertos_interrupt_ends(&house.net);
    house.offered++;
}

/* The card interrupts with a frame that it calls broken, which nobody looks at. */
static void house_broken(void)
{
    weir_cycles_t paid = house.net.nobody.cycles + house.net.in_interrupt + HOUSE_OVERHEAD;
    weir_freertos_interrupt_begins(&house.net);
    fake.clock += 500;
    weir_freertos_discard_broken(&house.net);
    CHECK(house.net.nobody.cycles == paid + 500 && house.net.in_interrupt == 0);
    weir_freertos_interrupt_ends(&house.net);
    house.dropped[WEIR_FREERTOS_MALFORMED]++;
    house.lost++;
    house.offered++;
}

/* A class's worker does what waits. */
static void house_work(uint8_t which)
{
    struct fake_task *task = house.net.lanes[which].worker;
    fake.running = task;
    if (setjmp(fake.waits) == 0) {
        task->run(task->argument);
    }
    weir_freertos_switched(NULL);
    fake.running = NULL;
    CHECK(house.net.lanes[which].first == NULL && !house.net.lanes[which].is_busy);
}

/* The stack gives back what it holds. */
static void house_release(void)
{
    for (uint32_t at = 0; at < HOUSE_HELD; at++) {
        if (house.held[at] != NULL) {
            weir_freertos_release(house.held[at]);
            house.held[at] = NULL;
        }
    }
}

static weir_freertos_error_t house_bind(uint8_t protocol, uint16_t port, uint16_t receiver, uint8_t which)
{
    struct binding *free_one = NULL;
    bool is_bound = false;
    for (uint32_t at = 0; at < HOUSE_BINDINGS; at++) {
        struct binding *of = &house.bindings[at];
        is_bound |= of->is_there && of->protocol == protocol && of->port == port && of->receiver == receiver;
        free_one = free_one == NULL && !of->is_there ? of : free_one;
    }
    UBaseType_t urgency = which < HOUSE_CLASSES ? urgencies[which] : 24;
    weir_freertos_error_t error = weir_freertos_bind(&house.net, protocol, port, receiver, urgency);
    weir_freertos_error_t wanted = WEIR_FREERTOS_OK;
    if ((protocol != 6 && protocol != 17) || port == 0) {
        wanted = WEIR_FREERTOS_BAD_KEY;
    } else if (receiver >= HOUSE_RECEIVERS) {
        wanted = WEIR_FREERTOS_BAD_RECEIVER;
    } else if (which >= HOUSE_CLASSES) {
        wanted = WEIR_FREERTOS_BAD_URGENCY;
    } else if (!is_bound && free_one == NULL) {
        wanted = WEIR_FREERTOS_FULL;
    }
    CHECK(error == wanted);
    if (error == WEIR_FREERTOS_OK) {
        house.class_of[receiver] = which;
        if (!is_bound) {
            *free_one = (struct binding) {true, protocol, port, receiver};
        }
    }
    return error;
}

static weir_freertos_error_t house_unbind(uint8_t protocol, uint16_t port, uint16_t receiver)
{
    weir_freertos_error_t wanted = (protocol != 6 && protocol != 17) || port == 0 ? WEIR_FREERTOS_BAD_KEY : WEIR_FREERTOS_NOT_BOUND;
    for (uint32_t at = 0; at < HOUSE_BINDINGS; at++) {
        struct binding *of = &house.bindings[at];
        if (of->is_there && of->protocol == protocol && of->port == port && of->receiver == receiver) {
            of->is_there = false;
            wanted = WEIR_FREERTOS_OK;
        }
    }
    weir_freertos_error_t error = weir_freertos_unbind(&house.net, protocol, port, receiver);
    CHECK(error == wanted);
    return error;
}

static void house_budget(uint16_t receiver, uint32_t frames)
{
    weir_freertos_error_t error = weir_freertos_set_budget(&house.net, receiver, frames);
    CHECK(error == (receiver < HOUSE_RECEIVERS ? WEIR_FREERTOS_OK : WEIR_FREERTOS_BAD_RECEIVER));
    if (error == WEIR_FREERTOS_OK) {
        house.left[receiver] = frames;
    }
}

static void house_quota(uint16_t receiver, uint16_t frames)
{
    weir_freertos_error_t error = weir_freertos_set_quota(&house.net, receiver, frames);
    CHECK(error == (receiver < HOUSE_RECEIVERS ? WEIR_FREERTOS_OK : WEIR_FREERTOS_BAD_RECEIVER));
    if (error == WEIR_FREERTOS_OK) {
        house.quota[receiver] = frames;
    }
}

static void house_refill(void)
{
    weir_freertos_refill(&house.net);
    for (uint16_t at = 0; at < HOUSE_RECEIVERS; at++) {
        house.left[at] = house.net.receivers[at].budget;
    }
}

/* No buffer is lost, and everything is counted once. */
static void house_check(void)
{
    uint32_t waiting = 0;
    for (uint8_t which = 0; which < HOUSE_CLASSES; which++) {
        uint32_t here = 0;
        for (const weir_freertos_frame_t *frame = house.net.lanes[which].first; frame != NULL; frame = frame->next) {
            here++;
        }
        waiting += here;
        for (uint32_t at = 0; at < HOUSE_HELD; at++) {
            here += house.held[at] != NULL && house.held[at]->which == which;
        }
        CHECK(here + house_free(which) == HOUSE_FRAMES);
    }
    for (uint16_t at = 0; at < HOUSE_RECEIVERS; at++) {
        CHECK(house.net.receivers[at].held == house_held(at));
    }
    weir_account_total_t sum = house.net.nobody;
    for (uint16_t at = 0; at < HOUSE_RECEIVERS; at++) {
        sum.cycles += house.net.receivers[at].account.cycles;
        sum.packets += house.net.receivers[at].account.packets;
    }
    CHECK(sum.cycles == house.net.all.cycles && sum.packets == house.net.all.packets);
    for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
        CHECK(house.net.dropped[reason] == house.dropped[reason]);
    }
    CHECK(house.offered == house.given + house.lost + waiting);
    CHECK(house.net.all.packets == house.packets + house.given + house.lost);
    CHECK(fake.critical == 0);
}

/* Frames of every kind, from which events and tests make their own. */
#define ADDRESSES 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2
#define V4(length, fragment, protocol) 0x45, 0, 0, length, 0, 0, fragment, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define V6(length, next)                                                                                                                   \
    0x60, 0, 0, 0, 0, length, next, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP(port) 0x30, 0x39, 0, port, 0, 8, 0, 0
#define TCP(port) 0x30, 0x39, 0, port, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0
#define PADDING 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
enum { HOUSE_KINDS = 10, HOUSE_LONGEST = 96 };
static const struct house_kind {
    uint16_t length;
    uint8_t bytes[HOUSE_LONGEST];
} house_kinds[HOUSE_KINDS] = {
    {60, {ADDRESSES, 8, 0, V4(28, 0, 17), UDP(7), PADDING}},
    {60, {ADDRESSES, 8, 0, V4(40, 0, 6), TCP(80), 0, 0, 0, 0, 0, 0}},
    {62, {ADDRESSES, 0x86, 0xdd, V6(8, 17), UDP(7)}},
    {66, {ADDRESSES, 0x81, 0, 0x60, 5, 0x86, 0xdd, V6(8, 17), UDP(7)}}, /* its port is beyond the first 60 bytes */
    {74, {ADDRESSES, 0x86, 0xdd, V6(28, 0), 6, 0, 1, 4, 0, 0, 0, 0, TCP(80)}},
    {60, {ADDRESSES, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, PADDING}},      /* ARP */
    {60, {ADDRESSES, 8, 0, V4(28, 0, 1), 8, 0, 0, 0, 0, 0, 0, 0}}, /* ICMP */
    {60, {ADDRESSES, 8, 0, V4(28, 0x20, 17), UDP(7), PADDING}},    /* the first of several fragments */
    {60, {ADDRESSES, 8, 0, V4(28, 0x01, 17), UDP(7), PADDING}},    /* a later one */
    {96, {ADDRESSES, 8, 0, 0x4f, 0, 0, 82, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, PADDING, PADDING, 0, 0, 0, 0, UDP(7)}},
};

/* Does what the bytes say, one or several for each event. */
static void house_run(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return;
    }
    house_start(data[0] & 1 ? ORPHANS : WEIR_DEMUX_DROP, data[0] & 2 ? PIECES : WEIR_DEMUX_DROP, data[0] & 4);
    static const uint16_t ports[] = {7, 80, 0, 9, 502, 503, 5000, 65535};
    static const uint8_t protocols[] = {17, 6, 17, 1};
    for (size_t at = 1; at + 2 < size; at += 3) {
        uint8_t what = data[at], more = data[at + 1], last = data[at + 2];
        uint8_t bytes[1600];
        switch (what % 10) {
        case 0:
            house_bind(protocols[more % 4], ports[more / 4 % 8], last % (HOUSE_RECEIVERS + 1), last / 8 % (HOUSE_CLASSES + 1));
            break;
        case 1:
            house_unbind(protocols[more % 4], ports[more / 4 % 8], last % HOUSE_RECEIVERS);
            break;
        case 2:
            house_budget(more % (HOUSE_RECEIVERS + 1), last % 4);
            break;
        case 3:
            house_refill();
            break;
        case 4:
            house_work(more % HOUSE_CLASSES);
            break;
        case 5:
            house.stack_holds = more & 1;
            house_release();
            if (more & 2) {
                house_quota(more / 4 % (HOUSE_RECEIVERS + 1), last % 3);
            }
            break;
        case 6: /* a frame of any length, up to more than a buffer has */
            memset(bytes, last, sizeof bytes);
            memcpy(bytes, house_kinds[more % HOUSE_KINDS].bytes, HOUSE_LONGEST);
            house_frame(bytes, (uint16_t) (last * 6u + more % 16u));
            if (more % 4u == 0) {
                house_broken();
            }
            break;
        default: { /* one with another byte, for one of the ports */
            const struct house_kind *kind = &house_kinds[what / 10 % HOUSE_KINDS];
            memcpy(bytes, kind->bytes, HOUSE_LONGEST);
            bytes[12 + more % (HOUSE_LONGEST - 12)] = last;
            house_frame(bytes, kind->length);
        }
        }
        fake.clock += last * 20000000u;
        house_check();
    }
    house_end();
}

#endif
