/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The configuration of FreeRTOS for rtos.c. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configCPU_CLOCK_HZ 25000000u
#define configTICK_RATE_HZ 1000u
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configMAX_PRIORITIES 4
#define configUSE_PREEMPTION 1
#define configMINIMAL_STACK_SIZE 128
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 1
#define configUSE_TASK_NOTIFICATIONS 1
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configTOTAL_HEAP_SIZE (32u * 1024u)
#define configCHECK_FOR_STACK_OVERFLOW 2
#define configKERNEL_INTERRUPT_PRIORITY 0xff
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x40

/* Ends the run. The FreeRTOS port also asserts that only interrupts of an allowed priority call
 * it. */
void assertion_failed(void);
#define configASSERT(condition)                                                                                                            \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            assertion_failed();                                                                                                            \
        }                                                                                                                                  \
    } while (0)

#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_xTaskGetSchedulerState 1

#define vPortSVCHandler sv_call
#define xPortPendSVHandler pend_sv
#define xPortSysTickHandler sys_tick

#endif
