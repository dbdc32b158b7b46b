/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include <stdint.h>

/* These values are those of system.toml. The generated header compares them. */
#define configMAX_PRIORITIES 25
#define configTICK_RATE_HZ 1000u
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x40

/* ports/freertos needs a pointer in each worker, and a call at each task switch, because it charges
 * time to the running task. */
void weir_freertos_switched(void *lane);
#define configNUM_THREAD_LOCAL_STORAGE_POINTERS 1
#define traceTASK_SWITCHED_IN() weir_freertos_switched(pxCurrentTCB->pvThreadLocalStoragePointers[0])
/* The tick hook starts the next period of the receivers' budgets. */
#define configUSE_TICK_HOOK 1

#define configCPU_CLOCK_HZ 25000000u
#define configKERNEL_INTERRUPT_PRIORITY 0xff
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TIMERS 0
#define configUSE_MUTEXES 1
#define configUSE_RECURSIVE_MUTEXES 1
#define configUSE_COUNTING_SEMAPHORES 1
#define configMINIMAL_STACK_SIZE 256
#define configTOTAL_HEAP_SIZE (64u * 1024u)
#define configENABLE_BACKWARD_COMPATIBILITY 1 /* lwIP's port writes portTICK_RATE_MS */

void stop(void);
#define configASSERT(condition) ((condition) ? (void) 0 : stop())

#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_xTaskDelayUntil 1
#define INCLUDE_xTaskGetSchedulerState 1

#endif
