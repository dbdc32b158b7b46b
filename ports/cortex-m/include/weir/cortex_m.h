/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Weir on a Cortex-M: limits on interrupt lines of the NVIC.
 *
 *     #include <weir/cortex_m.h>
 *     #include <weir/chips/cmsdk.h>
 *
 *     WEIR_CMSDK_DUAL_TIMER(clock, 0x40002000, 10, 1)            // a timer: its registers, IRQ, prescaler
 *
 *     WEIR_CORTEX_M_LIMIT(button, clock, 20, IRQ20_Handler, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_LAZY, .interval = 25000, .burst = 1)
 *     {
 *         presses++;                                             // the body of the handler
 *     }
 *
 *     WEIR_CORTEX_M_GROUP(inputs, clock, 0x80, DUALTIMER_Handler, button)
 *
 *     int main(void)
 *     {
 *         inputs_run();                                          // the timer counts
 *         button_start();
 *         ...
 *
 * A group is a timer, a priority of the NVIC, and one to eight sources that share both. Groups of
 * different priorities interrupt each other. The members of one group never do, so no interrupt
 * needs a lock. The port consists of headers only, except for core/src/limit.c (set-up, changes).
 */
#ifndef WEIR_CORTEX_M_H
#define WEIR_CORTEX_M_H

#include "weir/cortex_m/group.h"
#include "weir/cortex_m/limit.h"

#endif
