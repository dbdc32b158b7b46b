/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Starts timers at a prescaler, and converts intervals to their ticks.
 */
#ifndef WEIR_AVR_TIMERS_H
#define WEIR_AVR_TIMERS_H

#include <stdint.h>

#include "weir/avr/registers.h"

/*
 * Stores the clock for which the firmware was compiled in a section of the ELF file that is not
 * loaded. `weir run` reads it. The `;` starts a comment for the assembler, which hides the section
 * flags that the compiler appends.
 */
#ifdef F_CPU
static const uint32_t weir_clock_hz __attribute__((used, section(".weir.clock,\"\",@progbits;"))) = (uint32_t) (F_CPU);
#endif

/*
 * The clock-select bits for a prescaler; 0 if the timer does not have it (ATmega128 data sheet,
 * tables 56 and 62). The 8-bit timers serve the fast flavour, whose entries need a few cycles
 * between two ticks: prescaler 1 is not allowed.
 */
#define WEIR_AVR_SELECT_16BIT(prescaler)                                                                                                   \
    ((prescaler) == 1 ? 1u : (prescaler) == 8 ? 2u : (prescaler) == 64 ? 3u : (prescaler) == 256 ? 4u : (prescaler) == 1024 ? 5u : 0u)
#define WEIR_AVR_SELECT_TIMER2(prescaler) ((prescaler) == 1 ? 0u : WEIR_AVR_SELECT_16BIT(prescaler))
#define WEIR_AVR_SELECT_TIMER0(prescaler)                                                                                                  \
    ((prescaler) == 8      ? 2u                                                                                                            \
     : (prescaler) == 32   ? 3u                                                                                                            \
     : (prescaler) == 64   ? 4u                                                                                                            \
     : (prescaler) == 128  ? 5u                                                                                                            \
     : (prescaler) == 256  ? 6u                                                                                                            \
     : (prescaler) == 1024 ? 7u                                                                                                            \
                           : 0u)

/**
 * Runs the timer of a channel in free-running mode: weir_avr_run_timer(TIMER1A, 8) counts once in 8
 * cycles. A prescaler that the timer lacks does not compile.
 */
#define weir_avr_run_timer(channel, prescaler) WEIR_AVR_RUN_TIMER_(WEIR_AVR_##channel, prescaler)
#define WEIR_AVR_RUN_TIMER_(channel, prescaler)                                                                                            \
    do {                                                                                                                                   \
        _Static_assert(WEIR_AVR_OF(channel, SELECT)(prescaler) != 0, "this timer has no such prescaler");                                  \
        WEIR_AVR_OF(channel, CONTROL) = WEIR_AVR_OF(channel, SELECT)(prescaler);                                                           \
    } while (0)

/**
 * The ticks of an interval that admits at most `hertz`: rounded up, so that the limit is never
 * above this rate. For a rate of 0, or one beyond the timer's own, the result is 0, which no
 * limiter accepts.
 */
#define WEIR_AVR_TICKS(hertz, prescaler)                                                                                                   \
    ((hertz) > 0 && (hertz) <= (F_CPU) / (prescaler)                                                                                       \
         ? ((F_CPU) + 1uLL * (prescaler) * (hertz) - 1u) / (1uLL * (prescaler) * ((hertz) > 0 ? (hertz) : 1))                              \
         : 0)

#endif
