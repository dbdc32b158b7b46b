/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The end of an interrupt that may have woken a task. */
#ifndef NODE_YIELD_H
#define NODE_YIELD_H

#include "FreeRTOS.h"
#include "task.h"

/* In a cooperative system (build.sh -DconfigUSE_PREEMPTION=0), the interrupted task continues until
 * it blocks. */
static inline void yield_from_interrupt(BaseType_t woken)
{
    if (configUSE_PREEMPTION) {
        portYIELD_FROM_ISR(woken);
    }
}

#endif
