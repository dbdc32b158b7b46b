/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Weir on AVR. One API has two implementations, called flavours.
 *
 *     #include <weir/avr.h>
 *
 *     WEIR_AVR_LIMIT(button, INT0, TIMER1A, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_LAZY, .interval = 1000, .burst = 1)
 *     {
 *         presses++;                       // the body of the handler
 *     }
 *
 *     int main(void)
 *     {
 *         EICRA = 0x03;                    // the line's trigger is yours
 *         weir_avr_run_timer(TIMER1A, 1);  // 1000 ticks of the processor's clock: at most 4 kHz at 4 MHz
 *         weir_avr_start(button);
 *         sei();
 *         ...
 *
 * `c` is the default. -DWEIR_AVR_FAST selects `fast`, whose interrupt entries are written by hand
 * and which reserves the registers r2 to r10 (weir/avr/fast.h). Compile with -DWEIR_TICK_BITS=16
 * for either.
 */
#ifndef WEIR_AVR_H
#define WEIR_AVR_H

#include "weir/avr/timers.h"

#ifdef WEIR_AVR_FAST
#include "weir/avr/fast.h"
#include "weir/avr/fast_shared.h"
#else
#include "weir/avr/c.h"
#include "weir/avr/wrap.h"
#endif

#endif
