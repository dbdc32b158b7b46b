/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FAKE_TASK_H
#define FAKE_TASK_H

#include "FreeRTOS.h"

#define taskYIELD() ((void) 0) /* to a task of the same urgency: the test decides who runs */
#define taskENTER_CRITICAL() (fake.critical++)
#define taskEXIT_CRITICAL() (fake.critical--)

static BaseType_t xTaskCreate(TaskFunction_t run, const char *name, uint32_t stack, void *argument, UBaseType_t urgency, TaskHandle_t *made)
{
    (void) name;
    (void) stack;
    struct fake_task *task = fake.tasks;
    while (task->is_made) {
        task++;
    }
    if (fake_is_denied()) {
        return pdFAIL;
    }
    *task = (struct fake_task) {.run = run, .argument = argument, .urgency = urgency, .is_made = true};
    *made = task;
    return pdPASS;
}

static void vTaskDelete(TaskHandle_t task)
{
    task->is_made = false;
}

static void vTaskSetThreadLocalStoragePointer(TaskHandle_t task, BaseType_t index, void *value)
{
    (void) task;
    (void) index;
    fake.running->local = value;
}

static void vTaskNotifyGiveFromISR(TaskHandle_t task, BaseType_t *woken)
{
    task->notified++;
    *woken = pdTRUE;
}

static TickType_t xTaskGetTickCount(void)
{
    return fake.ticks;
}

static void vTaskDelay(TickType_t ticks)
{
    fake.ticks += ticks;
}

static uint32_t ulTaskNotifyTake(BaseType_t clear, uint32_t wait)
{
    (void) clear;
    (void) wait;
    uint32_t notified = fake.running->notified;
    if (notified == 0) {
        longjmp(fake.waits, 1);
    }
    fake.running->notified = 0;
    return notified;
}

#endif
