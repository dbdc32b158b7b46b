/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A card, a stack and workers around ports/freertos, for the sanitizers and the fuzzer. The
 * expected fate of every frame comes from core's parser and a list of the bindings. The test aborts
 * if the port does otherwise, if a buffer is lost, or if the counters are inconsistent.
 */
#ifndef WEIR_FREERTOS_TESTS_NODE_H
#define WEIR_FREERTOS_TESTS_NODE_H

#include <string.h>

#include <sanitizer/asan_interface.h>

#include "../src/freertos.c"
#include "../../../core/src/demux.c"
#include "../../../core/src/moderate.c"

#include "../../../core/tests/check.h"

#define CHECK(what) CHECK_IN(WEIR_CLASSES, "classes", what)

enum { NODE_OVERHEAD = 7 };
enum { NODE_CLASSES = 4, NODE_FRAMES = 3, NODE_RECEIVERS = 5, NODE_SLOTS = 16, NODE_BINDINGS = 8, NODE_HELD = 12 };
enum { ORPHANS, PIECES, COMMON, URGENT };
static const UBaseType_t urgencies[NODE_CLASSES] = {1, 2, 3, 20};

/* A binding of a port to a receiver. */
struct binding {
    bool is_there;
    uint8_t protocol;
    uint16_t port, receiver;
};

static struct {
    weir_freertos_net_t net;
    weir_freertos_frame_t frames[NODE_CLASSES][NODE_FRAMES];
    weir_freertos_class_t classes[NODE_CLASSES];
    struct binding bindings[NODE_BINDINGS];
    uint8_t class_of[NODE_RECEIVERS]; /* the class of a receiver, by its urgency told last */
    uint32_t left[NODE_RECEIVERS];
    uint16_t quota[NODE_RECEIVERS];           /* 0: none */
    weir_freertos_frame_t *held[NODE_HELD];   /* by the stack */
    bool stack_holds;                         /* does it hold what it gets? */
    bool is_interrupted;                      /* does the card interrupt the stack next time? */
    const weir_freertos_frame_t *interrupted; /* and what the stack has then */
    uint32_t offered, given, lost;            /* frames, those that the stack got, and the dropped ones */
    uint32_t dropped[WEIR_FREERTOS_REASONS];  /* by reason */
    uint32_t packets;                         /* that were counted before the first */
} node;

/* The card: the frames that wait in it, and the calls of its driver. */
enum { NODE_WAITING = 8, NODE_WORK = 1000 };
static struct {
    struct waiting {
        const uint8_t *bytes;
        uint16_t length;
        bool is_broken;
    } frames[NODE_WAITING];
    uint32_t count;
    uint32_t meanwhile; /* of `count`: those that come while a frame is read */
    uint32_t late;      /* of `count`: those that come when the card is acknowledged */
    bool is_requesting; /* it asks for its interrupt */
    bool is_begun;      /* a frame was begun, and its rest is to be read or thrown away */
    bool is_on;
    bool is_kept_out; /* by a limiter */
    /* The expected fate of the frame that was begun. */
    int fate;
    uint8_t which;
    uint16_t receiver;
    uint16_t work;                    /* the units that are left, at least 0 */
    bool is_refusing;                 /* no further frame may be begun */
    const weir_account_total_t *pays; /* for a frame that was thrown away; NULL: its worker does */
    weir_cycles_t paid;
    uint32_t spent, since; /* for the present frame, up to `since` */
    uint32_t *lost, lost_before;
    uint32_t *poisoned; /* behind the bytes that were read */
} node_card;

static void node_unpoison(void)
{
    ASAN_UNPOISON_MEMORY_REGION(node_card.poisoned, node_card.poisoned == NULL ? 0 : WEIR_FREERTOS_HEAD);
    node_card.poisoned = NULL;
}

/* Frames of every kind. Events and tests modify copies of them. */
#define ADDRESSES 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2
#define V4(length, fragment, protocol) 0x45, 0, 0, length, 0, 0, fragment, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define V6(length, next)                                                                                                                   \
    0x60, 0, 0, 0, 0, length, next, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP(port) 0x30, 0x39, 0, port, 0, 8, 0, 0
#define TCP(port) 0x30, 0x39, 0, port, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0
#define PADDING 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
enum { NODE_KINDS = 10, NODE_LONGEST = 96 };
static const struct node_kind {
    uint16_t length;
    uint8_t bytes[NODE_LONGEST];
} node_kinds[NODE_KINDS] = {
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

static void node_frame(const uint8_t *bytes, uint16_t length);

/* Takes a frame into the stack, for a while. Checks that the frame is unchanged and that its worker
 * has the urgency of the class. */
static void node_input(void *context, weir_freertos_frame_t *frame)
{
    CHECK(context == &node && fake.critical == 0);
    CHECK(fake.running->urgency == urgencies[frame->which]);
    const uint8_t *bytes = (const uint8_t *) frame->words;
    for (uint16_t at = WEIR_FREERTOS_HEAD; at < frame->length; at++) {
        CHECK(bytes[at] == (uint8_t) at);
    }
    node.given++;
    fake.clock += 900;
    if (node.is_interrupted) {
        node.is_interrupted = false;
        node.interrupted = frame;
        node_frame(node_kinds[0].bytes, node_kinds[0].length);
        node.interrupted = NULL;
    }
    for (uint32_t at = 0; node.stack_holds && at < NODE_HELD; at++) {
        if (node.held[at] == NULL) {
            node.held[at] = frame;
            return;
        }
    }
    weir_freertos_release(frame);
}

static weir_freertos_config_t node_config(void)
{
    for (uint8_t which = 0; which < NODE_CLASSES; which++) {
        node.classes[which] = (weir_freertos_class_t) {urgencies[which], node.frames[which], NODE_FRAMES};
    }
    return (weir_freertos_config_t) {
        .classes = node.classes,
        .count = NODE_CLASSES,
        .common = COMMON,
        .orphans = ORPHANS,
        .fragments = PIECES,
        .slots = NODE_SLOTS,
        .bindings = NODE_BINDINGS,
        .receivers = NODE_RECEIVERS,
        .stack_words = 100,
        .overhead = NODE_OVERHEAD,
        .input = node_input,
        .context = &node,
    };
}

/* Starts with an empty table. If `is_late`, the counters are about to wrap. */
static void node_start(uint8_t orphans, uint8_t fragments, bool is_late)
{
    memset(&node, 0, sizeof node);
    memset(&fake, 0, sizeof fake);
    memset(&node_card, 0, sizeof node_card);
    node_card.is_on = true;
    weir_freertos_config_t config = node_config();
    config.orphans = orphans;
    config.fragments = fragments;
    CHECK(weir_freertos_start(&node.net, &config) == WEIR_FREERTOS_OK);
    if (is_late) {
        fake.clock = UINT32_MAX - 5000;
        node.net.since = fake.clock;
        node.net.all.packets = node.net.nobody.packets = node.packets = UINT32_MAX - 5;
        node.net.all.cycles = node.net.nobody.cycles = UINT64_MAX - 5;
        for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
            node.net.dropped[reason] = node.dropped[reason] = UINT32_MAX - 2;
        }
    }
}

static void node_end(void)
{
    free_memory(&node.net, node.net.config.count);
    CHECK(fake.blocks == 0);
}

static uint32_t node_free(uint8_t which)
{
    uint32_t count = 0;
    for (const weir_freertos_frame_t *frame = node.net.lanes[which].free; frame != NULL; frame = frame->next) {
        count++;
    }
    return count;
}

/* Returns whether any receiver has bound this port. `*which` is then the class of the most urgent
 * one. */
static bool node_has(uint8_t protocol, uint16_t port, uint8_t *which)
{
    int most = -1;
    for (uint32_t at = 0; at < NODE_BINDINGS; at++) {
        const struct binding *of = &node.bindings[at];
        if (of->is_there && of->protocol == protocol && of->port == port && node.class_of[of->receiver] > most) {
            most = node.class_of[of->receiver];
            *which = node.class_of[of->receiver];
        }
    }
    return most >= 0;
}

/* The number of buffers that hold frames of a receiver. */
static uint32_t node_held(uint16_t receiver)
{
    uint32_t count = node.interrupted != NULL && node.interrupted->receiver == receiver;
    for (uint8_t which = 0; which < NODE_CLASSES; which++) {
        for (const weir_freertos_frame_t *frame = node.net.lanes[which].first; frame != NULL; frame = frame->next) {
            count += frame->receiver == receiver;
        }
    }
    for (uint32_t at = 0; at < NODE_HELD; at++) {
        count += node.held[at] != NULL && node.held[at]->receiver == receiver;
    }
    return count;
}

/* The expected fate of a frame: the reason why it is dropped, or -1 if it waits in the class
 * `*which`. */
static int node_fate(const uint8_t *head, uint16_t length, uint16_t receiver, uint8_t *which)
{
    uint16_t present = length < WEIR_FREERTOS_HEAD ? length : WEIR_FREERTOS_HEAD;
    weir_demux_packet_t packet = weir_demux_parse(head, present);
    int without = WEIR_FREERTOS_NO_RECEIVER;
    *which = node.net.config.orphans;
    if (length + 4u > WEIR_FREERTOS_LONGEST || packet.outcome == WEIR_DEMUX_MALFORMED) {
        return WEIR_FREERTOS_MALFORMED;
    }
    if (packet.outcome == WEIR_DEMUX_TRUNCATED && present == length) {
        return WEIR_FREERTOS_MALFORMED;
    }
    if (packet.outcome == WEIR_DEMUX_PORT && node_has(packet.protocol, packet.port, which)) {
        CHECK(receiver < NODE_RECEIVERS && node.class_of[receiver] == *which);
        if (node.net.receivers[receiver].budget != 0 && node.left[receiver]-- == 0) {
            node.left[receiver] = 0;
            return WEIR_FREERTOS_OVER_BUDGET;
        }
        if (node.quota[receiver] != 0 && node_held(receiver) >= node.quota[receiver]) {
            return WEIR_FREERTOS_LANE_FULL;
        }
    } else if (packet.outcome == WEIR_DEMUX_NOT_IP || packet.outcome == WEIR_DEMUX_OTHER_PROTOCOL) {
        *which = COMMON;
    } else if (packet.outcome == WEIR_DEMUX_FIRST_FRAGMENT || packet.outcome == WEIR_DEMUX_LATER_FRAGMENT) {
        *which = node.net.config.fragments;
    } else if (packet.outcome != WEIR_DEMUX_PORT) {
        without = WEIR_FREERTOS_TOO_DEEP;
    }
    if (*which == WEIR_DEMUX_DROP) {
        return without;
    }
    return node_free(*which) == 0 ? WEIR_FREERTOS_LANE_FULL : -1;
}

/* The receiver that the port chose for a frame. Checks that this receiver has bound the frame's
 * port. */
static uint16_t node_named(const uint8_t *head, uint16_t length)
{
    uint16_t present = length < WEIR_FREERTOS_HEAD ? length : WEIR_FREERTOS_HEAD;
    weir_demux_packet_t packet = weir_demux_parse(head, present);
    weir_demux_found_t found = weir_demux_classify(&node.net.demux, node.net.slots, &packet);
    return found.link == WEIR_DEMUX_NO_LINK ? WEIR_DEMUX_NO_LINK : node.net.links[found.link].reader;
}

static void node_arrive(const uint8_t *bytes, uint16_t length, bool is_broken)
{
    node_card.frames[node_card.count] = (struct waiting) {bytes, length, is_broken};
    node_card.count++;
    node_card.is_requesting = true;
}

static uint32_t node_count(void)
{
    CHECK(!node_card.is_begun);
    return node_card.count - node_card.late - node_card.meanwhile;
}

/* Checks that the time of the last frame, and no other time, was charged to the frame's
 * receiver. */
static void node_was_charged(void)
{
    if (node_card.pays != NULL) {
        CHECK(node_card.pays->cycles == node_card.paid);
    } else if (node_card.paid != 0) {
        CHECK(node.net.lanes[node_card.which].last->spent == node_card.paid);
    }
    node_card.pays = NULL;
    node_card.paid = 0;
}

static weir_freertos_head_t node_head(uint32_t *words)
{
    struct waiting next = node_card.frames[0];
    CHECK(!node_card.is_begun && node_count() > 0 && !node_card.is_refusing);
    node_was_charged();
    uint16_t further = next.length > WEIR_FREERTOS_HEAD ? (uint16_t) ((next.length - WEIR_FREERTOS_HEAD) / WEIR_FREERTOS_UNIT) : 0;
    node_card.is_refusing = node_card.work < 2u + further;
    node_card.work = node_card.is_refusing ? 0 : (uint16_t) (node_card.work - 1u - further);
    node_card.is_begun = true;
    node_card.fate = WEIR_FREERTOS_MALFORMED;
    node_card.pays = &node.net.nobody;
    node_card.lost = NULL;
    fake.clock += 100;
    if (!next.is_broken) {
        uint16_t present = next.length < WEIR_FREERTOS_HEAD ? next.length : WEIR_FREERTOS_HEAD;
        uint8_t *head = malloc(present == 0 ? 1 : present); /* the sanitizer sees who reads beyond it */
        memcpy(head, next.bytes, present);
        node_card.receiver = node_named(head, next.length);
        node_card.fate = node_fate(head, next.length, node_card.receiver, &node_card.which);
        /* Fill the buffer with a byte that differs from frame to frame. So a read beyond the frame
         * finds wrong bytes, or the sanitizer reports it. */
        memset(words, (int) fake.clock, WEIR_FREERTOS_HEAD);
        memcpy(words, head, present);
        node_card.poisoned = words + (present + 3u) / 4u;
        ASAN_POISON_MEMORY_REGION(node_card.poisoned, WEIR_FREERTOS_HEAD - (present + 3u) / 4u * 4u);
        free(head);
        bool is_its = node_card.fate == WEIR_FREERTOS_LANE_FULL || node_card.fate == WEIR_FREERTOS_OVER_BUDGET;
        if (is_its && node_card.receiver != WEIR_DEMUX_NO_LINK) {
            weir_freertos_receiver_t *of = &node.net.receivers[node_card.receiver];
            node_card.pays = &of->account;
            node_card.lost = node_card.fate == WEIR_FREERTOS_LANE_FULL ? &of->lane_full : &of->over_budget;
            node_card.lost_before = *node_card.lost;
        }
    }
    return (weir_freertos_head_t) {next.length, next.is_broken};
}

static void node_rest(weir_freertos_head_t frame, uint32_t *words)
{
    struct waiting next = node_card.frames[0];
    node_unpoison();
    CHECK(node_card.is_begun && frame.length == next.length && frame.is_broken == next.is_broken);
    CHECK((words == NULL) == (node_card.fate >= 0));
    if (words != NULL) {
        const uint8_t *begin = (const uint8_t *) words - WEIR_FREERTOS_HEAD;
        for (uint16_t at = 0; at < next.length && at < WEIR_FREERTOS_HEAD; at++) {
            CHECK(begin[at] == next.bytes[at]);
        }
        for (uint16_t at = WEIR_FREERTOS_HEAD; at < next.length; at++) {
            ((uint8_t *) words)[at - WEIR_FREERTOS_HEAD] = (uint8_t) at;
        }
        fake.clock += 50;
        node_card.pays = NULL;
        node_card.paid = node_card.spent + (fake.clock - node_card.since);
    } else {
        fake.clock += 30; /* the rest is skipped, at its own cost */
        node.dropped[node_card.fate]++;
        node.lost++;
        CHECK(node_card.lost == NULL || *node_card.lost == node_card.lost_before + 1);
        node_card.paid = node_card.pays->cycles + node_card.spent + (fake.clock - node_card.since);
    }
    node_card.spent = 0;
    node_card.since = fake.clock;
    node.offered++;
    node_card.is_begun = false;
    node_card.count--;
    node_card.meanwhile = 0;
    memmove(node_card.frames, node_card.frames + 1, node_card.count * sizeof node_card.frames[0]);
}

/* A frame that arrives at this moment loses its request together with the others. */
static void node_acknowledge(void)
{
    CHECK(node_count() == 0);
    node_card.late = 0;
    node_card.is_requesting = false;
}

static void node_request(void)
{
    CHECK(node_count() > 0);
    node_card.is_requesting = true;
}

static void node_enable(bool is_on)
{
    node_card.is_on = is_on;
}

static bool node_is_let_in(void)
{
    fake.clock += 10;
    return !node_card.is_kept_out;
}

static const weir_freertos_driver_t node_driver = {
    .is_let_in = node_is_let_in,
    .count = node_count,
    .head = node_head,
    .rest = node_rest,
    .acknowledge = node_acknowledge,
    .request = node_request,
    .enable = node_enable,
};

/* The card interrupts. Checks that no frame is left without a request. */
static void node_interrupt(uint16_t most)
{
    weir_work_t work = {0};
    BaseType_t woken = 0;
    node_card.work = most;
    node_card.is_refusing = most == 0;
    node_card.spent = node.net.in_interrupt + NODE_OVERHEAD;
    node_card.since = fake.clock;
    uint32_t *charged = node.net.charged;
    weir_freertos_take(&node.net, &node_driver, &work, most, &woken);
    node_was_charged();
    CHECK(node.net.charged == charged && !node_card.is_begun);
    CHECK(node_card.count == 0 || node_card.is_requesting || !node_card.is_on);
    CHECK(work.exceeded == 0 || node_count() > 0);
    fake.clock += 20;
}

/* The card interrupts with a frame. No byte beyond `length` may be read. */
static void node_frame(const uint8_t *bytes, uint16_t length)
{
    node_arrive(bytes, length, false);
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 0);
}

/* The card interrupts with a frame that it reports as broken. No byte of it may be read. */
static void node_broken(void)
{
    node_arrive(NULL, 300, true);
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 0);
}

/* Lets the worker of a class handle the waiting frames. */
static void node_work(uint8_t which)
{
    struct fake_task *task = node.net.lanes[which].worker;
    fake.running = task;
    if (setjmp(fake.waits) == 0) {
        task->run(task->argument);
    }
    weir_freertos_switched(NULL);
    fake.running = NULL;
    CHECK(node.net.lanes[which].first == NULL && !node.net.lanes[which].is_busy);
}

/* The stack returns all frames that it holds. */
static void node_release(void)
{
    for (uint32_t at = 0; at < NODE_HELD; at++) {
        if (node.held[at] != NULL) {
            weir_freertos_release(node.held[at]);
            node.held[at] = NULL;
        }
    }
}

static weir_freertos_error_t node_bind(uint8_t protocol, uint16_t port, uint16_t receiver, uint8_t which)
{
    struct binding *free_one = NULL;
    bool is_bound = false;
    for (uint32_t at = 0; at < NODE_BINDINGS; at++) {
        struct binding *of = &node.bindings[at];
        is_bound |= of->is_there && of->protocol == protocol && of->port == port && of->receiver == receiver;
        free_one = free_one == NULL && !of->is_there ? of : free_one;
    }
    UBaseType_t urgency = which < NODE_CLASSES ? urgencies[which] : 24;
    weir_freertos_error_t error = weir_freertos_bind(&node.net, protocol, port, receiver, urgency);
    weir_freertos_error_t wanted = WEIR_FREERTOS_OK;
    if ((protocol != 6 && protocol != 17) || port == 0) {
        wanted = WEIR_FREERTOS_BAD_KEY;
    } else if (receiver >= NODE_RECEIVERS) {
        wanted = WEIR_FREERTOS_BAD_RECEIVER;
    } else if (which >= NODE_CLASSES) {
        wanted = WEIR_FREERTOS_BAD_URGENCY;
    } else if (!is_bound && free_one == NULL) {
        wanted = WEIR_FREERTOS_FULL;
    }
    CHECK(error == wanted);
    if (error == WEIR_FREERTOS_OK) {
        node.class_of[receiver] = which;
        if (!is_bound) {
            *free_one = (struct binding) {true, protocol, port, receiver};
        }
    }
    return error;
}

static weir_freertos_error_t node_unbind(uint8_t protocol, uint16_t port, uint16_t receiver)
{
    weir_freertos_error_t wanted = (protocol != 6 && protocol != 17) || port == 0 ? WEIR_FREERTOS_BAD_KEY : WEIR_FREERTOS_NOT_BOUND;
    for (uint32_t at = 0; at < NODE_BINDINGS; at++) {
        struct binding *of = &node.bindings[at];
        if (of->is_there && of->protocol == protocol && of->port == port && of->receiver == receiver) {
            of->is_there = false;
            wanted = WEIR_FREERTOS_OK;
        }
    }
    weir_freertos_error_t error = weir_freertos_unbind(&node.net, protocol, port, receiver);
    CHECK(error == wanted);
    return error;
}

static void node_budget(uint16_t receiver, uint32_t frames)
{
    weir_freertos_error_t error = weir_freertos_set_budget(&node.net, receiver, frames);
    CHECK(error == (receiver < NODE_RECEIVERS ? WEIR_FREERTOS_OK : WEIR_FREERTOS_BAD_RECEIVER));
    if (error == WEIR_FREERTOS_OK) {
        node.left[receiver] = frames;
    }
}

static void node_quota(uint16_t receiver, uint16_t frames)
{
    weir_freertos_error_t error = weir_freertos_set_quota(&node.net, receiver, frames);
    CHECK(error == (receiver < NODE_RECEIVERS ? WEIR_FREERTOS_OK : WEIR_FREERTOS_BAD_RECEIVER));
    if (error == WEIR_FREERTOS_OK) {
        node.quota[receiver] = frames;
    }
}

static void node_refill(void)
{
    weir_freertos_refill(&node.net);
    for (uint16_t at = 0; at < NODE_RECEIVERS; at++) {
        node.left[at] = node.net.receivers[at].budget;
    }
}

/* Checks that no buffer is lost and that every frame is counted once. */
static void node_check(void)
{
    uint32_t waiting = 0;
    for (uint8_t which = 0; which < NODE_CLASSES; which++) {
        uint32_t here = 0;
        for (const weir_freertos_frame_t *frame = node.net.lanes[which].first; frame != NULL; frame = frame->next) {
            here++;
        }
        waiting += here;
        for (uint32_t at = 0; at < NODE_HELD; at++) {
            here += node.held[at] != NULL && node.held[at]->which == which;
        }
        CHECK(here + node_free(which) == NODE_FRAMES);
    }
    for (uint16_t at = 0; at < NODE_RECEIVERS; at++) {
        CHECK(node.net.receivers[at].held == node_held(at));
    }
    weir_account_total_t sum = node.net.nobody;
    for (uint16_t at = 0; at < NODE_RECEIVERS; at++) {
        sum.cycles += node.net.receivers[at].account.cycles;
        sum.packets += node.net.receivers[at].account.packets;
    }
    CHECK(sum.cycles == node.net.all.cycles && sum.packets == node.net.all.packets);
    for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
        CHECK(node.net.dropped[reason] == node.dropped[reason]);
    }
    CHECK(node.offered == node.given + node.lost + waiting);
    CHECK(node.net.all.packets == node.packets + node.given + node.lost);
    CHECK(fake.critical == 0);
}

/* Carries out the events that the bytes describe. An event takes one or several bytes. */
static void node_run(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return;
    }
    node_start(data[0] & 1 ? ORPHANS : WEIR_DEMUX_DROP, data[0] & 2 ? PIECES : WEIR_DEMUX_DROP, data[0] & 4);
    static const uint16_t ports[] = {7, 80, 0, 9, 502, 503, 5000, 65535};
    static const uint8_t protocols[] = {17, 6, 17, 1};
    for (size_t at = 1; at + 2 < size; at += 3) {
        uint8_t what = data[at], more = data[at + 1], last = data[at + 2];
        uint8_t bytes[1600];
        switch (what % 11) {
        case 0:
            node_bind(protocols[more % 4], ports[more / 4 % 8], last % (NODE_RECEIVERS + 1), last / 8 % (NODE_CLASSES + 1));
            break;
        case 1:
            node_unbind(protocols[more % 4], ports[more / 4 % 8], last % NODE_RECEIVERS);
            break;
        case 2:
            node_budget(more % (NODE_RECEIVERS + 1), last % 4);
            break;
        case 3:
            node_refill();
            break;
        case 4:
            node_work(more % NODE_CLASSES);
            break;
        case 5:
            node.stack_holds = more & 1;
            node_release();
            if (more & 2) {
                node_quota(more / 4 % (NODE_RECEIVERS + 1), last % 3);
            }
            break;
        case 6: /* a frame of any length, up to more than a buffer has */
            memset(bytes, last, sizeof bytes);
            memcpy(bytes, node_kinds[more % NODE_KINDS].bytes, NODE_LONGEST);
            node_frame(bytes, (uint16_t) (last * 6u + more % 16u));
            if (more % 4u == 0) {
                node_broken();
            }
            break;
        case 7: /* several at once, some broken, some while the others are taken, for as much work as it may be */
            for (uint32_t count = 0; count < 1u + more % NODE_WAITING; count++) {
                const struct node_kind *kind = &node_kinds[(what / 11 + count) % NODE_KINDS];
                node_arrive(kind->bytes, kind->length, (last >> count & 1) != 0);
            }
            node_card.late = more / 8 % 2;
            node_card.meanwhile = node_card.count > 1 ? more / 16 % (node_card.count - node_card.late) : 0;
            node.is_interrupted = more / 64 == 3;
            node_interrupt(last % 12);
            while (node_card.count != 0) {
                node_card.late = 0;
                node_interrupt(NODE_WORK);
            }
            break;
        default: { /* one with another byte, for one of the ports */
            const struct node_kind *kind = &node_kinds[what / 11 % NODE_KINDS];
            memcpy(bytes, kind->bytes, NODE_LONGEST);
            bytes[12 + more % (NODE_LONGEST - 12)] = last;
            node_frame(bytes, kind->length);
        }
        }
        fake.clock += last * 20000000u;
        node_check();
    }
    node_end();
}

#endif
