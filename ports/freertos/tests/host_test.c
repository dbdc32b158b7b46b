/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ports/freertos on the host, under the sanitizers: frames that are cut off or changed at every
 * byte, a table that is full, receivers that go, lanes that nobody empties, counters that wrap,
 * memory that runs out, and many long random sequences of all of it.
 */
#include "house.h"

/* Everybody has a buffer again. */
static void settle(void)
{
    for (uint8_t which = 0; which < HOUSE_CLASSES; which++) {
        house_work(which);
    }
    house_release();
    house_check();
    for (uint8_t which = 0; which < HOUSE_CLASSES; which++) {
        CHECK(house_free(which) == HOUSE_FRAMES);
    }
}

static void frames_cut_off_or_changed_at_every_byte(void)
{
    house_start(ORPHANS, PIECES, false);
    house_bind(17, 7, 0, URGENT);
    house_bind(6, 80, 1, COMMON);
    for (uint32_t at = 0; at < HOUSE_KINDS; at++) {
        const struct house_kind *kind = &house_kinds[at];
        for (uint16_t length = 0; length <= kind->length; length++) {
            house_frame(kind->bytes, length);
            settle();
        }
        for (uint16_t place = 12; place < kind->length; place++) {
            uint8_t bytes[HOUSE_LONGEST];
            memcpy(bytes, kind->bytes, HOUSE_LONGEST);
            for (uint32_t value = 0; value < 256; value++) {
                bytes[place] = (uint8_t) value;
                house_frame(bytes, kind->length);
                settle();
            }
        }
    }
    for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
        bool is_seen = reason == WEIR_FREERTOS_MALFORMED;
        CHECK((house.dropped[reason] != 0) == is_seen);
    }
    house_end();
}

/* A frame of a kind, as it is. */
static void frame(uint32_t kind)
{
    house_frame(house_kinds[kind].bytes, house_kinds[kind].length);
}

enum { TO_UDP_7 = 0, TO_TCP_80 = 1, BEHIND_TAG = 3, OPTIONS = 9 };

static void ports_beyond_the_head_are_orphans_and_no_malformed_frames(void)
{
    house_start(ORPHANS, PIECES, false);
    house_bind(17, 7, 0, URGENT);
    frame(BEHIND_TAG);
    frame(OPTIONS);
    CHECK(house_free(ORPHANS) == HOUSE_FRAMES - 2);
    settle();
    house_end();
    house_start(WEIR_DEMUX_DROP, PIECES, false);
    frame(BEHIND_TAG);
    frame(OPTIONS);
    frame(TO_UDP_7);
    CHECK(house.net.dropped[WEIR_FREERTOS_TOO_DEEP] == 2 && house.net.dropped[WEIR_FREERTOS_NO_RECEIVER] == 1);
    /* The whole of it is there, and ends too soon. */
    house_frame(house_kinds[BEHIND_TAG].bytes, 58);
    CHECK(house.net.dropped[WEIR_FREERTOS_MALFORMED] == 1);
    house_check();
    house_end();
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

static void a_broken_frame_is_nobodys_and_not_the_next_ones(void)
{
    house_start(ORPHANS, PIECES, false);
    house_bind(17, 7, 0, URGENT);
    weir_cycles_t taken[2];
    for (uint32_t after = 0; after < 2; after++) {
        weir_cycles_t before = house.net.receivers[0].account.cycles;
        if (after == 1) {
            house_broken();
        }
        frame(TO_UDP_7);
        settle();
        taken[after] = house.net.receivers[0].account.cycles - before;
    }
    CHECK(taken[1] <= taken[0]);
    house_end();
}

static void what_the_table_does_not_hold_is_refused(void)
{
    house_start(ORPHANS, PIECES, false);
    CHECK(house_bind(17, 0, 0, URGENT) == WEIR_FREERTOS_BAD_KEY);
    CHECK(house_bind(1, 7, 0, URGENT) == WEIR_FREERTOS_BAD_KEY);
    CHECK(house_bind(17, 7, HOUSE_RECEIVERS, URGENT) == WEIR_FREERTOS_BAD_RECEIVER);
    CHECK(house_bind(17, 7, 0, HOUSE_CLASSES) == WEIR_FREERTOS_BAD_URGENCY);
    for (uint16_t port = 1; port <= HOUSE_BINDINGS; port++) {
        CHECK(house_bind(17, port, 0, URGENT) == WEIR_FREERTOS_OK);
    }
    CHECK(house_bind(17, 99, 0, URGENT) == WEIR_FREERTOS_FULL);
    /* Those that were taken still are, and a place that is given up can be taken. */
    frame(TO_UDP_7);
    CHECK(house_free(URGENT) == HOUSE_FRAMES - 1);
    CHECK(house_unbind(17, 99, 0) == WEIR_FREERTOS_NOT_BOUND);
    CHECK(house_unbind(17, 8, 0) == WEIR_FREERTOS_OK);
    CHECK(house_bind(17, 99, 0, URGENT) == WEIR_FREERTOS_OK);
    house_budget(HOUSE_RECEIVERS, 1);
    settle();
    house_end();
}

static void a_receiver_goes_while_its_frames_wait(void)
{
    house_start(WEIR_DEMUX_DROP, PIECES, false);
    house_bind(17, 7, 2, URGENT);
    frame(TO_UDP_7);
    frame(TO_UDP_7);
    house_unbind(17, 7, 2);
    frame(TO_UDP_7);
    CHECK(house.net.dropped[WEIR_FREERTOS_NO_RECEIVER] == 1);
    settle();
    CHECK(house.net.receivers[2].account.packets == 2 && house.net.nobody.packets == 1);
    /* Another one has the port, at another urgency. */
    house_bind(17, 7, 3, COMMON);
    frame(TO_UDP_7);
    settle();
    CHECK(house.net.receivers[3].account.packets == 1);
    house_end();
}

/* The stack keeps all that comes for one receiver: another one of the class has its buffer. */
static void a_receiver_keeps_to_its_quota(void)
{
    house_start(ORPHANS, PIECES, false);
    house_bind(17, 7, 0, URGENT);
    house_bind(6, 80, 1, URGENT);
    house_quota(HOUSE_RECEIVERS, 1);
    house_quota(0, HOUSE_FRAMES - 1);
    house.stack_holds = true;
    for (uint32_t count = 0; count < 10; count++) {
        frame(TO_UDP_7);
        house_work(URGENT);
    }
    CHECK(house.net.receivers[0].lane_full == 10 - (HOUSE_FRAMES - 1) && house_free(URGENT) == 1);
    frame(TO_TCP_80);
    CHECK(house.net.receivers[1].lane_full == 0 && house_free(URGENT) == 0);
    settle();
    frame(TO_UDP_7);
    CHECK(house_free(URGENT) == HOUSE_FRAMES - 1);
    /* Without one it may have all. */
    house_quota(0, 0);
    frame(TO_UDP_7);
    frame(TO_UDP_7);
    CHECK(house_free(URGENT) == 0);
    settle();
    house_end();
}

/* Somebody else's pointer where a lane's is expected is nobody's, and is not looked into. */
static void a_pointer_that_is_no_lanes_is_left_alone(void)
{
    house_start(ORPHANS, PIECES, false);
    uint8_t other[1] = {0};
    weir_freertos_switched(other);
    CHECK(house.net.charged == NULL);
    weir_freertos_switched(&house.net.lanes[HOUSE_CLASSES]);
    CHECK(house.net.charged == NULL);
    house_end();
}

static void a_lane_that_nobody_empties_is_full_and_the_others_are_not(void)
{
    house_start(ORPHANS, PIECES, false);
    house_bind(17, 7, 0, URGENT);
    house_bind(6, 80, 1, COMMON);
    for (uint32_t count = 0; count < 100000; count++) {
        frame(TO_UDP_7);
    }
    CHECK(house.net.receivers[0].lane_full == 100000 - HOUSE_FRAMES);
    CHECK(house.net.receivers[0].account.packets == 100000 - HOUSE_FRAMES);
    frame(TO_TCP_80);
    CHECK(house_free(COMMON) == HOUSE_FRAMES - 1);
    /* The stack keeps what it gets: the same. */
    house.stack_holds = true;
    house_work(URGENT);
    frame(TO_UDP_7);
    CHECK(house.net.receivers[0].lane_full == 100001 - HOUSE_FRAMES);
    settle();
    frame(TO_UDP_7);
    CHECK(house_free(URGENT) == HOUSE_FRAMES - 1);
    settle();
    house_end();
}

static void budgets_change_in_the_midst_of_a_flood(void)
{
    house_start(ORPHANS, PIECES, false);
    house_bind(17, 7, 0, URGENT);
    static const struct {
        uint32_t budget, given;
    } turns[] = {{2, 2}, {1, 1}, {0, 3}, {3, 3}, {UINT32_MAX, 3}};
    for (uint32_t turn = 0; turn < sizeof turns / sizeof turns[0]; turn++) {
        house_budget(0, turns[turn].budget);
        uint32_t given = house.given;
        for (uint32_t count = 0; count < 50; count++) {
            frame(TO_UDP_7);
        }
        settle();
        CHECK(house.given - given == turns[turn].given);
    }
    /* What is left of a budget is no more than the new one, and nothing is saved up. */
    house_budget(0, 1);
    house_refill();
    house_refill();
    frame(TO_UDP_7);
    frame(TO_UDP_7);
    CHECK(house_free(URGENT) == HOUSE_FRAMES - 1);
    settle();
    house_end();
}

static void a_task_keeps_its_pace_and_saves_nothing_up(void)
{
    for (uint32_t most = 1; most <= 3; most++) {
        weir_freertos_pace_t pace = {0};
        uint32_t answered[128] = {0}; /* by tick */
        fake.ticks = 0;
        for (uint32_t request = 0; request < 60; request++) {
            /* Some come at once, some after several ticks. */
            TickType_t came = fake.ticks += request % 20 == 19 ? 5 : 0;
            bool is_early = answered[came] >= most;
            weir_freertos_keep_pace(&pace, most);
            CHECK(fake.ticks == came + is_early);
            CHECK(++answered[fake.ticks] <= most);
        }
        CHECK(fake.ticks >= 60 / most);
    }
    /* It waits for a tick where the count wraps, too. */
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
    house_start(WEIR_DEMUX_DROP, WEIR_DEMUX_DROP, true);
    house_bind(17, 7, 0, URGENT);
    house.net.receivers[0].lane_full = UINT32_MAX - 1;
    for (uint32_t count = 0; count < 12; count++) {
        frame(TO_UDP_7);
        frame(TO_TCP_80);
        house_check();
    }
    CHECK(house.net.dropped[WEIR_FREERTOS_NO_RECEIVER] == 12u - 3u && house.net.receivers[0].lane_full == 9u - 2u);
    settle();
    /* Each frame was charged what it took: an interrupt of 150 or 100, the end of the one before
     * it, and 900 of the stack. */
    CHECK(house.net.receivers[0].account.cycles < 12u * 1200u);
    house_end();
}

/* What FreeRTOS's tick does for a card, whether it has started or not. */
static void tick(void)
{
    weir_freertos_refill(&house.net);
    CHECK(!weir_freertos_wait_ends(&house.net));
}

static void what_cannot_be_started_leaves_nothing_behind(void)
{
    memset(&house, 0, sizeof house);
    memset(&fake, 0, sizeof fake);
    fake.tick = tick;
    weir_freertos_config_t good = house_config();
    for (uint32_t denied = 1; denied <= 4 + HOUSE_CLASSES; denied++) {
        fake.denied = denied;
        CHECK(weir_freertos_start(&house.net, &good) == WEIR_FREERTOS_NO_MEMORY);
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
    bad[2].common = HOUSE_CLASSES;
    bad[3].orphans = HOUSE_CLASSES;
    bad[4].fragments = HOUSE_CLASSES;
    bad[5].slots = 0;
    bad[6].slots = 2;
    bad[7].slots = 12;
    bad[8].bindings = 0;
    bad[9].gather = 0x80000000u;
    for (uint32_t at = 0; at < 10; at++) {
        weir_freertos_error_t wanted = at < 5 ? WEIR_FREERTOS_BAD_CLASSES : at < 9 ? WEIR_FREERTOS_BAD_TABLE : WEIR_FREERTOS_BAD_GATHER;
        CHECK(weir_freertos_start(&house.net, &bad[at]) == wanted);
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
        weir_freertos_config_t config = house_config();
        house.classes[changes[at].which] =
            (weir_freertos_class_t) {changes[at].urgency, changes[at].has_frames ? house.frames[0] : NULL, changes[at].count};
        CHECK(weir_freertos_start(&house.net, &config) == WEIR_FREERTOS_BAD_CLASSES);
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
        house_run(data, sizeof data);
    }
}

int main(void)
{
    frames_cut_off_or_changed_at_every_byte();
    ports_beyond_the_head_are_orphans_and_no_malformed_frames();
    a_frame_is_as_much_work_as_what_is_copied_of_it();
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
    printf("ports/freertos: on the host: 14 passed\n");
    return 0;
}
