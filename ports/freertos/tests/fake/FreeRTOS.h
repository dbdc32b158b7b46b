/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A fake of the part of FreeRTOS that ports/freertos uses, for tests on the host. Tasks run when
 * the test lets them, memory can run out, and the clock is a variable.
 */
#ifndef FAKE_FREERTOS_H
#define FAKE_FREERTOS_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define configMAX_PRIORITIES 25
#define configNUM_THREAD_LOCAL_STORAGE_POINTERS 1
#define portMAX_DELAY UINT32_MAX
#define pdTRUE 1
#define pdPASS 1
#define pdFAIL 0

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef void (*TaskFunction_t)(void *);

#define FAKE_TASKS 8

struct fake_task {
    TaskFunction_t run;
    void *argument;
    UBaseType_t urgency;
    void *local;
    uint32_t notified;
    bool is_made;
};
typedef struct fake_task *TaskHandle_t;

static struct {
    struct fake_task tasks[FAKE_TASKS];
    struct fake_task *running; /* NULL: the test itself */
    jmp_buf waits;             /* where a task goes that has nothing to do */
    uint32_t clock;
    TickType_t ticks;
    uint32_t critical;  /* depth of critical sections */
    int32_t blocks;     /* of the heap that are in use */
    uint32_t denied;    /* the allocation or task that fails, counted from 1; 0: none */
    void (*tick)(void); /* comes whenever FreeRTOS is called for memory or a task; NULL: never */
} fake;

#define WEIR_FREERTOS_CLOCK (fake.clock)

static bool fake_is_denied(void)
{
    if (fake.tick != NULL) {
        fake.tick();
    }
    return fake.denied != 0 && --fake.denied == 0;
}

static void *pvPortMalloc(size_t bytes)
{
    if (fake_is_denied()) {
        return NULL;
    }
    fake.blocks++;
    return malloc(bytes == 0 ? 1 : bytes);
}

static void vPortFree(void *memory)
{
    fake.blocks -= memory != NULL;
    free(memory);
}

#endif
