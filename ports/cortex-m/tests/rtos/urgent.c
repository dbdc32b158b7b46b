/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A group that is more urgent than configMAX_SYSCALL_INTERRUPT_PRIORITY. FreeRTOS never masks it,
 * and it must never call FreeRTOS. So this file does not include FreeRTOSConfig.h. Macros: LIMIT0;
 * WRONG (the group does call FreeRTOS).
 */
#define TOLD_EVENTS ((volatile uint32_t *) 0x21400000)
#define TOLD_TEXT ((volatile char *) 0x21c00000)
#include "../told.h"

#include "urgent.h"

WEIR_CMSDK_TWO_TIMERS(fine, 0x40000000, 0x40001000, 9);

volatile uint32_t served_urgent;

#ifdef WRONG
uint32_t xTaskGetTickCountFromISR(void);
#endif

WEIR_CORTEX_M_LIMIT(urgent, fine, 28, irq28, LIMIT0)
{
    served_urgent++;
#ifdef WRONG
    (void) xTaskGetTickCountFromISR();
#endif
}

WEIR_CORTEX_M_GROUP(urgent_group, fine, 0x20, timer1, urgent);

static uint32_t told_source(const weir_limit_state_t *state)
{
    return state == urgent_state_of() ? 8 : TOLD_NONE;
}

void urgent_begin(void)
{
    urgent_group_run();
    urgent_start();
}

void urgent_tell(void)
{
    tell_events();
}
