/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How an interrupt ends that may have woken a task. */
#ifndef NODE_YIELD_H
#define NODE_YIELD_H

#include "FreeRTOS.h"
#include "task.h"

/* A cooperative system (build.sh -DconfigUSE_PREEMPTION=0) goes on with the task that it has
 * interrupted, until that blocks. */
static inline void yield_from_interrupt(BaseType_t woken)
{
    if (configUSE_PREEMPTION) {
        portYIELD_FROM_ISR(woken);
    }
}

#endif
