/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests ports/freertos on the host, under the sanitizers: frames that are truncated or changed at
 * every byte, a full table, receivers that unbind, lanes that no worker empties, counters that
 * wrap, memory that runs out, and many long random sequences of all of these.
 */
#include "node.h"

/* Lets the workers and the stack finish, so that all buffers are free again. */
static void settle(void)
{
    for (uint8_t which = 0; which < NODE_CLASSES; which++) {
        node_work(which);
    }
    node_release();
    node_check();
    for (uint8_t which = 0; which < NODE_CLASSES; which++) {
        CHECK(node_free(which) == NODE_FRAMES);
    }
}

static void frames_cut_off_or_changed_at_every_byte(void)
{
    node_start(ORPHANS, PIECES, false);
    node_bind(17, 7, 0, URGENT);
    node_bind(6, 80, 1, COMMON);
    for (uint32_t at = 0; at < NODE_KINDS; at++) {
        const struct node_kind *kind = &node_kinds[at];
        for (uint16_t length = 0; length <= kind->length; length++) {
            node_frame(kind->bytes, length);
            settle();
        }
        for (uint16_t place = 12; place < kind->length; place++) {
            uint8_t bytes[NODE_LONGEST];
            memcpy(bytes, kind->bytes, NODE_LONGEST);
            for (uint32_t value = 0; value < 256; value++) {
                bytes[place] = (uint8_t) value;
                node_frame(bytes, kind->length);
                settle();
            }
        }
    }
    for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
        bool is_seen = reason == WEIR_FREERTOS_MALFORMED;
        CHECK((node.dropped[reason] != 0) == is_seen);
    }
    node_end();
}

/* The card interrupts with an unchanged frame of this kind. */
static void frame(uint32_t kind)
{
    node_frame(node_kinds[kind].bytes, node_kinds[kind].length);
}

enum { TO_UDP_7 = 0, TO_TCP_80 = 1, BEHIND_TAG = 3, OPTIONS = 9 };

static void ports_beyond_the_head_are_orphans_and_no_malformed_frames(void)
{
    node_start(ORPHANS, PIECES, false);
    node_bind(17, 7, 0, URGENT);
    frame(BEHIND_TAG);
    frame(OPTIONS);
    CHECK(node_free(ORPHANS) == NODE_FRAMES - 2);
    settle();
    node_end();
    node_start(WEIR_DEMUX_DROP, PIECES, false);
    frame(BEHIND_TAG);
    frame(OPTIONS);
    frame(TO_UDP_7);
    CHECK(node.net.dropped[WEIR_FREERTOS_TOO_DEEP] == 2 && node.net.dropped[WEIR_FREERTOS_NO_RECEIVER] == 1);
    /* All bytes of the frame's head are there, but the frame ends too early for its headers. */
    node_frame(node_kinds[BEHIND_TAG].bytes, 58);
    CHECK(node.net.dropped[WEIR_FREERTOS_MALFORMED] == 1);
    node_check();
    node_end();
}

static void a_frame_is_as_much_work_as_what_is_copied_of_it(void)
{
    CHECK(weir_freertos_further_work(14) == 0 && weir_freertos_further_work(WEIR_FREERTOS_HEAD) == 0);
    CHECK(weir_freertos_further_work(WEIR_FREERTOS_HEAD + WEIR_FREERTOS_UNIT - 1) == 0);
    uint32_t before = 0;
    for (uint16_t length = 0; length <= WEIR_FREERTOS_LONGEST; length++) {
        uint32_t further = weir_freertos_further_work(length);
        uint32_t behind = length > WEIR_FREERTOS_HEAD ? length - WEIR_FREERTOS_HEAD : 0;
        CHECK(further >= before && behind / WEIR_FREERTOS_UNIT == further);
        before = further;
    }
    CHECK(before > 0);
}

/* Three frames and a broken one wait. */
static void an_interrupt_does_the_work_that_it_may_and_the_rest_requests_again(void)
{
    for (uint16_t most = 0; most <= 6; most++) {
        node_start(ORPHANS, PIECES, false);
        for (uint32_t at = 0; at < 4; at++) {
            node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, at == 1);
        }
        node_interrupt(most);
        CHECK(node_card.count == (most < 4 ? 4u - most : 0u));
        CHECK(node_card.is_requesting == (most < 4));
        node_check();
        node_interrupt(NODE_WORK);
        CHECK(node_card.count == 0 && !node_card.is_requesting);
        settle();
        node_end();
    }
}

/* A long frame is read to its end. Its length counts as work, so that another frame has to wait. */
static void a_long_frame_leaves_less_work_for_others(void)
{
    static uint8_t bytes[1516];
    memcpy(bytes, node_kinds[TO_UDP_7].bytes, NODE_LONGEST);
    for (uint16_t most = 1; most <= 25; most++) {
        node_start(ORPHANS, PIECES, false);
        node_arrive(bytes, 1514, false); /* 23 units */
        node_arrive(bytes, 60, false);
        node_interrupt(most);
        CHECK(node_card.count == (most < 24 ? 1u : 0u));
        node_interrupt(NODE_WORK);
        settle();
        node_end();
    }
}

static void a_frame_that_was_forgotten_with_the_others_requests_again(void)
{
    node_start(ORPHANS, PIECES, false);
    node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, false);
    node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, false);
    node_card.late = 1;
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 1 && node_card.is_requesting);
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 0);
    settle();
    node_end();
}

static void frames_that_come_meanwhile_share_the_interrupt(void)
{
    node_start(ORPHANS, PIECES, false);
    for (uint32_t at = 0; at < 3; at++) {
        node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, false);
    }
    node_card.meanwhile = 2;
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 0);
    settle();
    node_end();
}

/* The time of the refused interrupt is charged to the next frame. */
static void an_interrupt_that_a_limiter_refuses_takes_no_frame(void)
{
    node_start(ORPHANS, PIECES, false);
    node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, false);
    node_card.is_kept_out = true;
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 1 && node_card.is_requesting && node.offered == 0);
    CHECK(node.net.in_interrupt == NODE_OVERHEAD + 10u);
    node_card.is_kept_out = false;
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 0);
    settle();
    node_end();
}

static void an_interrupted_worker_pays_for_its_own_time_alone(void)
{
    node_start(ORPHANS, PIECES, false);
    node_bind(17, 7, 0, URGENT);
    frame(TO_UDP_7);
    uint32_t spent = node.net.lanes[URGENT].first->spent;
    node.is_interrupted = true;
    node_work(URGENT);
    settle();
    /* There were two frames. Each took its interrupt and 900 units in the stack. */
    CHECK(node.net.receivers[0].account.packets == 2);
    CHECK(node.net.receivers[0].account.cycles <= 2u * (spent + 20u + 900u));
    node_end();
}

/* The first frame waits for others while the card's interrupt is off. The tick then makes the
 * interrupt come. */
static void gathered_frames_share_an_interrupt(void)
{
    node_start(ORPHANS, PIECES, false);
    weir_moderate_config_t moderation = {.absolute = 10000, .size = 1};
    weir_moderate_start(&node.net.card, &moderation);
    node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, false);
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 1 && !node_card.is_on && !weir_freertos_wait_ends(&node.net));
    node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, false);
    fake.clock += 10000;
    CHECK(weir_freertos_wait_ends(&node.net));
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 0 && node_card.is_on);
    /* The frames that are left wait for further frames, too. */
    for (uint32_t at = 0; at < 3; at++) {
        node_arrive(node_kinds[TO_UDP_7].bytes, node_kinds[TO_UDP_7].length, false);
    }
    node_interrupt(NODE_WORK);
    fake.clock += 10000;
    CHECK(weir_freertos_wait_ends(&node.net));
    node_interrupt(1);
    CHECK(node_card.count == 2 && !node_card.is_on);
    fake.clock += 10000;
    CHECK(weir_freertos_wait_ends(&node.net));
    node_interrupt(NODE_WORK);
    CHECK(node_card.count == 0 && node_card.is_on);
    settle();
    node_end();
}

static void a_broken_frame_is_nobodys_and_not_the_next_ones(void)
{
    node_start(ORPHANS, PIECES, false);
    node_bind(17, 7, 0, URGENT);
    weir_cycles_t taken[2];
    for (uint32_t after = 0; after < 2; after++) {
        weir_cycles_t before = node.net.receivers[0].account.cycles;
        if (after == 1) {
            node_broken();
        }
        frame(TO_UDP_7);
        settle();
        taken[after] = node.net.receivers[0].account.cycles - before;
    }
    CHECK(taken[1] <= taken[0]);
    node_end();
}

static void what_the_table_does_not_hold_is_refused(void)
{
    node_start(ORPHANS, PIECES, false);
    CHECK(node_bind(17, 0, 0, URGENT) == WEIR_FREERTOS_BAD_KEY);
    CHECK(node_bind(1, 7, 0, URGENT) == WEIR_FREERTOS_BAD_KEY);
    CHECK(node_bind(17, 7, NODE_RECEIVERS, URGENT) == WEIR_FREERTOS_BAD_RECEIVER);
    CHECK(node_bind(17, 7, 0, NODE_CLASSES) == WEIR_FREERTOS_BAD_URGENCY);
    for (uint16_t port = 1; port <= NODE_BINDINGS; port++) {
        CHECK(node_bind(17, port, 0, URGENT) == WEIR_FREERTOS_OK);
    }
    CHECK(node_bind(17, 99, 0, URGENT) == WEIR_FREERTOS_FULL);
    /* The old bindings still hold, and a place in the table that was given up can be used again. */
    frame(TO_UDP_7);
    CHECK(node_free(URGENT) == NODE_FRAMES - 1);
    CHECK(node_unbind(17, 99, 0) == WEIR_FREERTOS_NOT_BOUND);
    CHECK(node_unbind(17, 8, 0) == WEIR_FREERTOS_OK);
    CHECK(node_bind(17, 99, 0, URGENT) == WEIR_FREERTOS_OK);
    node_budget(NODE_RECEIVERS, 1);
    settle();
    node_end();
}

static void a_receiver_goes_while_its_frames_wait(void)
{
    node_start(WEIR_DEMUX_DROP, PIECES, false);
    node_bind(17, 7, 2, URGENT);
    frame(TO_UDP_7);
    frame(TO_UDP_7);
    node_unbind(17, 7, 2);
    frame(TO_UDP_7);
    CHECK(node.net.dropped[WEIR_FREERTOS_NO_RECEIVER] == 1);
    settle();
    CHECK(node.net.receivers[2].account.packets == 2 && node.net.nobody.packets == 1);
    /* Another receiver has the port, at another urgency. */
    node_bind(17, 7, 3, COMMON);
    frame(TO_UDP_7);
    settle();
    CHECK(node.net.receivers[3].account.packets == 1);
    node_end();
}

/* The stack keeps all frames of one receiver, and another receiver of the class still gets a
 * buffer. */
static void a_receiver_keeps_to_its_quota(void)
{
    node_start(ORPHANS, PIECES, false);
    node_bind(17, 7, 0, URGENT);
    node_bind(6, 80, 1, URGENT);
    node_quota(NODE_RECEIVERS, 1);
    node_quota(0, NODE_FRAMES - 1);
    node.stack_holds = true;
    for (uint32_t count = 0; count < 10; count++) {
        frame(TO_UDP_7);
        node_work(URGENT);
    }
    CHECK(node.net.receivers[0].lane_full == 10 - (NODE_FRAMES - 1) && node_free(URGENT) == 1);
    frame(TO_TCP_80);
    CHECK(node.net.receivers[1].lane_full == 0 && node_free(URGENT) == 0);
    settle();
    frame(TO_UDP_7);
    CHECK(node_free(URGENT) == NODE_FRAMES - 1);
    /* Without a quota the receiver may use all buffers. */
    node_quota(0, 0);
    frame(TO_UDP_7);
    frame(TO_UDP_7);
    CHECK(node_free(URGENT) == 0);
    settle();
    node_end();
}

/* The thread-local pointer was set by other code. The port must neither follow it nor charge
 * anybody. */
static void a_pointer_that_is_no_lanes_is_left_alone(void)
{
    node_start(ORPHANS, PIECES, false);
    uint8_t other[1] = {0};
    weir_freertos_switched(other);
    CHECK(node.net.charged == NULL);
    weir_freertos_switched(&node.net.lanes[NODE_CLASSES]);
    CHECK(node.net.charged == NULL);
    node_end();
}

static void a_lane_that_nobody_empties_is_full_and_the_others_are_not(void)
{
    node_start(ORPHANS, PIECES, false);
    node_bind(17, 7, 0, URGENT);
    node_bind(6, 80, 1, COMMON);
    for (uint32_t count = 0; count < 100000; count++) {
        frame(TO_UDP_7);
    }
    CHECK(node.net.receivers[0].lane_full == 100000 - NODE_FRAMES);
    CHECK(node.net.receivers[0].account.packets == 100000 - NODE_FRAMES);
    frame(TO_TCP_80);
    CHECK(node_free(COMMON) == NODE_FRAMES - 1);
    /* The same holds if the stack keeps the frames. */
    node.stack_holds = true;
    node_work(URGENT);
    frame(TO_UDP_7);
    CHECK(node.net.receivers[0].lane_full == 100001 - NODE_FRAMES);
    settle();
    frame(TO_UDP_7);
    CHECK(node_free(URGENT) == NODE_FRAMES - 1);
    settle();
    node_end();
}

static void budgets_change_in_the_midst_of_a_flood(void)
{
    node_start(ORPHANS, PIECES, false);
    node_bind(17, 7, 0, URGENT);
    static const struct {
        uint32_t budget, given;
    } turns[] = {{2, 2}, {1, 1}, {0, 3}, {3, 3}, {UINT32_MAX, 3}};
    for (uint32_t turn = 0; turn < sizeof turns / sizeof turns[0]; turn++) {
        node_budget(0, turns[turn].budget);
        uint32_t given = node.given;
        for (uint32_t count = 0; count < 50; count++) {
            frame(TO_UDP_7);
        }
        settle();
        CHECK(node.given - given == turns[turn].given);
    }
    /* The rest of the old budget is cut to the new budget, and unused budget is not saved. */
    node_budget(0, 1);
    node_refill();
    node_refill();
    frame(TO_UDP_7);
    frame(TO_UDP_7);
    CHECK(node_free(URGENT) == NODE_FRAMES - 1);
    settle();
    node_end();
}

static void a_task_keeps_its_pace_and_saves_nothing_up(void)
{
    for (uint32_t most = 1; most <= 3; most++) {
        weir_freertos_pace_t pace = {0};
        uint32_t answered[128] = {0}; /* by tick */
        fake.ticks = 0;
        for (uint32_t request = 0; request < 60; request++) {
            /* Some requests come at once, and some after several ticks. */
            TickType_t came = fake.ticks += request % 20 == 19 ? 5 : 0;
            bool is_early = answered[came] >= most;
            weir_freertos_keep_pace(&pace, most);
            CHECK(fake.ticks == came + is_early);
            CHECK(++answered[fake.ticks] <= most);
        }
        CHECK(fake.ticks >= 60 / most);
    }
    /* The task also waits for a tick where the tick count wraps. */
    weir_freertos_pace_t pace = {0};
    fake.ticks = UINT32_MAX;
    weir_freertos_keep_pace(&pace, 1);
    CHECK(fake.ticks == UINT32_MAX);
    weir_freertos_keep_pace(&pace, 1);
    CHECK(fake.ticks == 0);
    weir_freertos_keep_pace(&pace, 1);
    CHECK(fake.ticks == 1);
}

static void counters_and_the_clock_wrap(void)
{
    node_start(WEIR_DEMUX_DROP, WEIR_DEMUX_DROP, true);
    node_bind(17, 7, 0, URGENT);
    node.net.receivers[0].lane_full = UINT32_MAX - 1;
    for (uint32_t count = 0; count < 12; count++) {
        frame(TO_UDP_7);
        frame(TO_TCP_80);
        node_check();
    }
    CHECK(node.net.dropped[WEIR_FREERTOS_NO_RECEIVER] == 12u - 3u && node.net.receivers[0].lane_full == 9u - 2u);
    settle();
    /* Each frame was charged its cost: at most 180 units in the interrupt, and 900 in the stack. */
    CHECK(node.net.receivers[0].account.cycles < 12u * 1200u);
    node_end();
}

/* Does the part of FreeRTOS's tick that concerns a card, whether the card has started or not. */
static void tick(void)
{
    weir_freertos_refill(&node.net);
    CHECK(!weir_freertos_wait_ends(&node.net));
}

static void what_cannot_be_started_leaves_nothing_behind(void)
{
    memset(&node, 0, sizeof node);
    memset(&fake, 0, sizeof fake);
    fake.tick = tick;
    weir_freertos_config_t good = node_config();
    for (uint32_t denied = 1; denied <= 4 + NODE_CLASSES; denied++) {
        fake.denied = denied;
        CHECK(weir_freertos_start(&node.net, &good) == WEIR_FREERTOS_NO_MEMORY);
        tick();
        CHECK(fake.blocks == 0);
        for (uint32_t task = 0; task < FAKE_TASKS; task++) {
            CHECK(!fake.tasks[task].is_made);
        }
    }
    weir_freertos_config_t bad[10];
    for (uint32_t at = 0; at < 10; at++) {
        bad[at] = good;
    }
    bad[0].count = 0;
    bad[1].count = WEIR_CLASSES + 1;
    bad[2].common = NODE_CLASSES;
    bad[3].orphans = NODE_CLASSES;
    bad[4].fragments = NODE_CLASSES;
    bad[5].slots = 0;
    bad[6].slots = 2;
    bad[7].slots = 12;
    bad[8].bindings = 0;
    bad[9].gather = 0x80000000u;
    for (uint32_t at = 0; at < 10; at++) {
        weir_freertos_error_t wanted = at < 5 ? WEIR_FREERTOS_BAD_CLASSES : at < 9 ? WEIR_FREERTOS_BAD_TABLE : WEIR_FREERTOS_BAD_GATHER;
        CHECK(weir_freertos_start(&node.net, &bad[at]) == wanted);
        tick();
        CHECK(fake.blocks == 0);
    }
    static const struct {
        uint8_t which;
        UBaseType_t urgency;
        bool has_frames;
        uint16_t count;
    } changes[] = {{1, 1, true, 1}, {3, configMAX_PRIORITIES, true, 1}, {2, 3, false, 1}, {2, 3, true, 0}};
    for (uint32_t at = 0; at < sizeof changes / sizeof changes[0]; at++) {
        weir_freertos_config_t config = node_config();
        node.classes[changes[at].which] =
            (weir_freertos_class_t) {changes[at].urgency, changes[at].has_frames ? node.frames[0] : NULL, changes[at].count};
        CHECK(weir_freertos_start(&node.net, &config) == WEIR_FREERTOS_BAD_CLASSES);
        CHECK(fake.blocks == 0);
    }
}

static void long_random_sequences(void)
{
    uint8_t data[900];
    for (uint32_t run = 0; run < 4000; run++) {
        for (size_t at = 0; at < sizeof data; at++) {
            data[at] = roll();
        }
        node_run(data, sizeof data);
    }
}

int main(void)
{
    frames_cut_off_or_changed_at_every_byte();
    ports_beyond_the_head_are_orphans_and_no_malformed_frames();
    a_frame_is_as_much_work_as_what_is_copied_of_it();
    an_interrupt_does_the_work_that_it_may_and_the_rest_requests_again();
    a_long_frame_leaves_less_work_for_others();
    a_frame_that_was_forgotten_with_the_others_requests_again();
    frames_that_come_meanwhile_share_the_interrupt();
    an_interrupt_that_a_limiter_refuses_takes_no_frame();
    an_interrupted_worker_pays_for_its_own_time_alone();
    gathered_frames_share_an_interrupt();
    a_broken_frame_is_nobodys_and_not_the_next_ones();
    what_the_table_does_not_hold_is_refused();
    a_receiver_goes_while_its_frames_wait();
    a_receiver_keeps_to_its_quota();
    a_pointer_that_is_no_lanes_is_left_alone();
    a_lane_that_nobody_empties_is_full_and_the_others_are_not();
    budgets_change_in_the_midst_of_a_flood();
    a_task_keeps_its_pace_and_saves_nothing_up();
    counters_and_the_clock_wrap();
    what_cannot_be_started_leaves_nothing_behind();
    long_random_sequences();
    printf("ports/freertos: on the host: 21 passed\n");
    return 0;
}
