/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A limited line (IRQ20) whose handler wakes a task of FreeRTOS, beside a group that is so urgent
 * that FreeRTOS never masks it (urgent.c). The tick hook, which runs in a less urgent interrupt,
 * switches the line off and on. A task does the same in critical sections. Macros: LIMIT0, LAST
 * (the tick at which the run ends), PRIORITY (the group's).
 */
#include "FreeRTOS.h"
#include "task.h"

#include "../told.h"

#include "urgent.h"

#ifndef PRIORITY
#define PRIORITY configMAX_SYSCALL_INTERRUPT_PRIORITY
#endif

enum { STACK_WORDS = 256, FAILED = 3 };

volatile uint32_t served, woken;
/* Counts in critical sections: runs of the two handlers, and calls of the port that ended the
 * critical section. */
volatile uint32_t held, held_urgent, opened;
static TaskHandle_t waiter;

WEIR_CMSDK_DUAL_TIMER(ticks, 0x40002000, 10, 1);

WEIR_CORTEX_M_LIMIT(source, ticks, 20, irq20, LIMIT0)
{
    BaseType_t is_urgent = pdFALSE;
    served++;
    vTaskNotifyGiveFromISR(waiter, &is_urgent);
    portYIELD_FROM_ISR(is_urgent);
}

WEIR_CORTEX_M_GROUP(group, ticks, PRIORITY, dual_timer, source);

static uint32_t told_source(const weir_limit_state_t *state)
{
    return state == source_state_of() ? 0 : TOLD_NONE;
}

static uint32_t basepri(void)
{
    uint32_t now;
    __asm volatile("mrs %0, basepri" : "=r"(now));
    return now;
}

/* This task wakes as often as the handler runs. */
static void wait_for_line(void *unused)
{
    (void) unused;
    for (;;) {
        ulTaskNotifyTake(pdFALSE, portMAX_DELAY);
        woken++;
    }
}

static void critical_section(void)
{
    taskENTER_CRITICAL();
    uint32_t others = served, urgent_ones = served_urgent;
    wait(dice(1000));
    source_disable();
    opened += basepri() != configMAX_SYSCALL_INTERRUPT_PRIORITY;
    source_enable();
    opened += basepri() != configMAX_SYSCALL_INTERRUPT_PRIORITY;
    held += served - others;
    held_urgent += served_urgent - urgent_ones;
    taskEXIT_CRITICAL();
}

static void work(void *unused)
{
    (void) unused;
    weir_ticks_t begin = ticks_now();
    while (weir_ticks_between(begin, ticks_now()) < LAST) {
        critical_section();
        wait(dice(1000));
    }
    source_disable();
    vTaskDelay(2); /* the task that is woken runs meanwhile */
    __asm volatile("cpsid i");
    tell_events();
    urgent_tell();
    leave(0);
}

/* The hook runs in an interrupt that is less urgent than the group. */
void vApplicationTickHook(void)
{
    source_disable();
    wait(20);
    source_enable();
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void) task;
    (void) name;
    leave(FAILED);
}

void assertion_failed(void)
{
    leave(FAILED);
}

/* The kernel calls these functions, and there is no C library here. */
void *memset(void *to, int byte, size_t count)
{
    for (volatile uint8_t *at = to; count > 0; count--) {
        *at++ = (uint8_t) byte;
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t count)
{
    const uint8_t *source = from;
    for (volatile uint8_t *at = to; count > 0; count--) {
        *at++ = *source++;
    }
    return to;
}

void start(void)
{
    xTaskCreate(wait_for_line, "waiter", STACK_WORDS, NULL, 2, &waiter);
    xTaskCreate(work, "work", STACK_WORDS, NULL, 1, NULL);
    group_run();
    source_start();
    urgent_begin();
    vTaskStartScheduler();
}

void sv_call(void);
void pend_sv(void);
void sys_tick(void);

extern const vector vectors[];
__attribute__((section(".vectors"))) const vector vectors[16 + 29] = {
    TOLD_FIRST_VECTORS, [11] = sv_call,         [14] = pend_sv,    [15] = sys_tick,
    [16 + 9] = timer1,  [16 + 10] = dual_timer, [16 + 20] = irq20, [16 + 28] = irq28,
};
