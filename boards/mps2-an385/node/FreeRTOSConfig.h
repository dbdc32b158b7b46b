/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node's configuration of FreeRTOS. papers/experiments/behnke2021/README.md gives the
 * reasons. */
#ifndef NODE_FREERTOS_CONFIG_H
#define NODE_FREERTOS_CONFIG_H

#include "failure.h"

#define configCPU_CLOCK_HZ 25000000u
#define configTICK_RATE_HZ 1000u
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configMAX_PRIORITIES 25
#ifndef configUSE_PREEMPTION /* build.sh -DconfigUSE_PREEMPTION=0: the running task goes on until it blocks */
#define configUSE_PREEMPTION 1
#endif
#define configUSE_TIME_SLICING 1
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 1
#define configIDLE_SHOULD_YIELD 1
#define configMINIMAL_STACK_SIZE 256
#define configMAX_TASK_NAME_LEN 16
#define configUSE_IDLE_HOOK 0
#ifdef NODE_WEIR
#define configUSE_TICK_HOOK 1
#else
#define configUSE_TICK_HOOK 0
#endif
#define configUSE_TIMERS 0
#define configUSE_MUTEXES 1
#define configUSE_RECURSIVE_MUTEXES 1
#define configUSE_COUNTING_SEMAPHORES 1
#define configUSE_TASK_NOTIFICATIONS 1
#define configUSE_TRACE_FACILITY 0
#define configENABLE_BACKWARD_COMPATIBILITY 1 /* lwIP's port writes portTICK_RATE_MS */
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 0
#define configTOTAL_HEAP_SIZE (256u * 1024u)
#define configUSE_MALLOC_FAILED_HOOK 1
#define configCHECK_FOR_STACK_OVERFLOW 2

/* Interrupts of priority 0x40 and less urgent ones may call FreeRTOS. FreeRTOS never masks more
 * urgent ones. */
#define configKERNEL_INTERRUPT_PRIORITY 0xff
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x40

#define configASSERT(condition)                                                                                                            \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            failure("FreeRTOS asserts", __FILE__, __LINE__);                                                                               \
        }                                                                                                                                  \
    } while (0)

#ifdef NODE_WEIR
/* ports/freertos must be told of every task switch, because it charges time to the running task. */
void weir_freertos_switched(void *lane);
#define configNUM_THREAD_LOCAL_STORAGE_POINTERS 1
#define traceTASK_SWITCHED_IN() weir_freertos_switched(pxCurrentTCB->pvThreadLocalStoragePointers[0])
#endif

#define INCLUDE_vTaskDelay 1
#define INCLUDE_xTaskDelayUntil 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_uxTaskGetStackHighWaterMark 1
#define INCLUDE_xTaskGetSchedulerState 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1

#endif
