/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Marks for the board's trace. A mark is a value that is written to an otherwise unused compare
 * register (TEST_MARK), at a cost of one cycle.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include <avr/interrupt.h>
#include <avr/io.h>
#include <stdint.h>

#ifndef TEST_MARK
#define TEST_MARK OCR2
#endif

/* crates/emulate/tests/port/mod.rs has the same values. */
#define WATCHED_END 0x00
#define WATCHED_START 0x10
#define WATCHED_DISABLE 0x11
#define WATCHED_ENABLE 0x12
#define WATCHED_OVERLOAD_BEGINS 0x13
#define WATCHED_OVERLOAD_ENDS 0x14
#define WATCHED_FAILURE 0x1f
#define WATCHED_HANDLER 0x20
#define WATCHED_CHANGE 0x30

/* Include this after the marks, because the limiter's own hooks may leave marks. */
#include <weir/avr.h>

/** The number of turns of the background loop. */
static volatile uint32_t progress;

/** Marks that the handler of a source (0 to 3) runs. */
static inline __attribute__((always_inline)) void watched_handler(uint8_t source)
{
    TEST_MARK = (uint8_t) (WATCHED_HANDLER + source);
}

/** Marks the beginning of a call of Weir. Interrupts are off until the matching watched_end(). */
static inline __attribute__((always_inline)) void watched_begin(uint8_t what)
{
    TEST_MARK = what;
}

/** Marks the end of the call that watched_begin() marked. */
static inline __attribute__((always_inline)) void watched_end(void)
{
    TEST_MARK = WATCHED_END;
}

#endif
