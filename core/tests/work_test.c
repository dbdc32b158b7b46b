/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limit on the work of an interrupt, against a handler that counts for itself and a device that
 * never runs dry.
 */
static unsigned long told;
#define WEIR_ON_WORK_EXCEEDED(work) ((void) (work), told++)
#include "weir/work.h"

#include "check.h"

#define CHECK(what) CHECK_IN(16, "bit units", what)

/*
 * LIMIT-WORK-2: one interrupt does as many units as wait, but at most `most`; it counts, and
 * reports, iff more waited.
 */
static void one_interrupt(weir_work_t *work, uint16_t most, uint32_t waiting, uint16_t at_once)
{
    uint16_t exceeded_before = work->exceeded;
    unsigned long told_before = told;
    uint32_t left = waiting;
    uint32_t done = 0;
    weir_work_begin(work, most);
    while (left != 0) {
        uint16_t wanted = left < at_once ? (uint16_t) left : at_once;
        uint16_t granted = wanted;
        if (at_once == 1) {
            granted = weir_work_take(work) ? 1 : 0;
        } else {
            granted = weir_work_take_some(work, wanted);
        }
        CHECK(granted <= wanted);
        done += granted;
        left -= granted;
        if (granted < wanted) {
            break;
        }
    }
    CHECK(done == (waiting < most ? waiting : most));
    bool is_over = waiting > most;
    CHECK(told == told_before + (is_over ? 1u : 0u));
    CHECK(work->exceeded == (is_over && exceeded_before != UINT16_MAX ? exceeded_before + 1 : exceeded_before));
    if (is_over) {
        CHECK(!weir_work_take(work) && weir_work_take_some(work, 7) == 0); /* a handler that goes on asking is counted once */
        CHECK(told == told_before + 1);
    }
}

static void every_small_interrupt(void)
{
    weir_work_t work = {0};
    for (uint16_t most = 0; most < 9; most++) {
        for (uint32_t waiting = 0; waiting < 20; waiting++) {
            for (uint16_t at_once = 1; at_once < 5; at_once++) {
                one_interrupt(&work, most, waiting, at_once);
            }
        }
    }
}

static void ends_of_the_range(void)
{
    weir_work_t work = {0};
    CHECK(!weir_work_take(&work)); /* nothing before weir_work_begin() */
    work = (weir_work_t) {0};
    one_interrupt(&work, UINT16_MAX, UINT16_MAX, 1);
    one_interrupt(&work, UINT16_MAX, UINT16_MAX, UINT16_MAX);
    one_interrupt(&work, UINT16_MAX, 1u << 17, 1000);
    for (uint32_t interrupt = 0; interrupt < 70000; interrupt++) {
        one_interrupt(&work, 1, 2, 1);
    }
    CHECK(work.exceeded == UINT16_MAX);
}

int main(void)
{
    every_small_interrupt();
    ends_of_the_range();
    puts("work: LIMIT-WORK-2 holds");
    return 0;
}
