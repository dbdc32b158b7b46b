/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "critical.h"

#include "FreeRTOS.h"
#include "task.h"

#include "board.h"
#include "options.h"
#include "sizes.h"
#include "tally.h"
#include "tone.h"
#include "work.h"
#include "yield.h"

static TaskHandle_t task;

static void step(void)
{
    work_step();
    tally.steps++;
}

/* Records the end of a job with interrupts masked, so that the report of a window contains all of
 * the record or nothing. */
static void note_end(uint32_t ended_at, int32_t lateness)
{
    __asm__ volatile("cpsid i" ::: "memory");
    tally.jobs++;
    tally.ended_at = ended_at;
    tally.lateness = lateness;
    if (lateness > tally.worst_lateness) {
        tally.worst_lateness = lateness;
    }
    if (lateness > 0) {
        tally.late_jobs++;
        tally.lateness_sum += (uint32_t) lateness;
    }
    __asm__ volatile("cpsie i" ::: "memory");
}

/*
 * behnke2021 §III-A.1: a timer releases the task once per period p. A release that comes while a
 * job runs waits. The lateness of a job is the time from its deadline to its end; it is negative if
 * the job ends before its deadline.
 */
static void run_lateness(void *unused)
{
    (void) unused;
    uint32_t period = options.period_us * BOARD_CLOCK_MHZ;
    uint32_t due = board_clock() + period + options.deadline_us * BOARD_CLOCK_MHZ;
    board_release_every(period);
    for (;;) {
        ulTaskNotifyTake(pdFALSE, portMAX_DELAY);
        if (options.quiet) {
            board_disable(BOARD_CARD_LINE);
        }
        for (uint32_t left = options.steps; left > 0; left--) {
            step();
        }
        if (options.quiet) {
            board_enable(BOARD_CARD_LINE, BOARD_URGENCY_PACKET);
        }
        uint32_t now = board_clock();
        note_end(now, (int32_t) (now - due));
        due += period;
    }
}

/* behnke2021 §III-A.2: a closed loop for Δt in each interval i. */
static void run_utilisation(void *unused)
{
    (void) unused;
    TickType_t last = xTaskGetTickCount();
    for (;;) {
        uint32_t begin = board_clock(), before = tally.interrupts;
        while (board_clock() - begin < options.busy_ms * BOARD_CLOCK_KHZ) {
            step();
        }
        tally.busy_interrupts += tally.interrupts - before;
        xTaskDelayUntil(&last, pdMS_TO_TICKS(options.interval_ms));
    }
}

void critical_interrupt(void)
{
    BaseType_t woken = pdFALSE;
    board_release_acknowledge();
    vTaskNotifyGiveFromISR(task, &woken);
    yield_from_interrupt(woken);
}

void critical_start(void)
{
    if (options.task == TASK_NONE) {
        return;
    }
    static const TaskFunction_t runs[] = {
        [TASK_LATENESS] = run_lateness,
        [TASK_UTILISATION] = run_utilisation,
        [TASK_TONE] = tone_run,
    };
    BaseType_t made =
        xTaskCreate(runs[options.task], "critical", SIZES_TASK_STACK / sizeof(StackType_t), NULL, options_task_urgency(), &task);
    configASSERT(made == pdPASS);
}
