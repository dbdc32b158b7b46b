/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node: a critical task beside a network (behnke2021 §III). */
#include "FreeRTOS.h"
#include "task.h"

#include "board.h"
#include "critical.h"
#include "driver.h"
#include "failure.h"
#include "network.h"
#include "options.h"
#include "pseudo.h"
#include "tally.h"

void vApplicationMallocFailedHook(void);
void vApplicationStackOverflowHook(TaskHandle_t task, char *name);
void vPortSVCHandler(void);
void xPortPendSVHandler(void);
void xPortSysTickHandler(void);

void vApplicationMallocFailedHook(void)
{
    tally.no_memory++;
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void) task;
    failure("a stack is full", name, 0);
}

static void fault(void)
{
    failure("the processor faults", "", 0);
}

static _Noreturn void start(void)
{
    extern uint32_t bss_begin[], bss_end[];
    for (uint32_t *at = bss_begin; at < bss_end; at++) {
        *at = 0;
    }
    board_start();
    options_read();
    tally_start();
    network_start();
    if (options.packets == PACKETS_SIMULATED) {
        pseudo_start();
    }
    critical_start();
    vTaskStartScheduler();
    failure("FreeRTOS does not start", __FILE__, __LINE__);
}

extern uint32_t stack_end[];
typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16 + BOARD_LINES] = {
    [0] = (vector) stack_end,
    [1] = start,
    [2] = fault,
    [3] = fault,
    [4] = fault,
    [5] = fault,
    [6] = fault,
    [11] = vPortSVCHandler,
    [14] = xPortPendSVHandler,
    [15] = xPortSysTickHandler,
    [16 + BOARD_RELEASE_LINE] = critical_interrupt,
    [16 + BOARD_WINDOW_LINE] = tally_interrupt,
    [16 + BOARD_CARD_LINE] = driver_interrupt,
    [16 + BOARD_PIN_LINE] = pseudo_interrupt,
};
