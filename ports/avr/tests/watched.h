/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Marks that a test finds in the board's trace: values written to a compare register which nobody
 * else uses (TEST_MARK), a cycle each.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include <avr/interrupt.h>
#include <avr/io.h>
#include <stdint.h>

#ifndef TEST_MARK
#define TEST_MARK OCR2
#endif

/* Twins in crates/board/tests/port/mod.rs. */
#define WATCHED_END 0x00
#define WATCHED_START 0x10
#define WATCHED_DISABLE 0x11
#define WATCHED_ENABLE 0x12
#define WATCHED_OVERLOAD_BEGINS 0x13
#define WATCHED_OVERLOAD_ENDS 0x14
#define WATCHED_FAILURE 0x1f
#define WATCHED_HANDLER 0x20
#define WATCHED_CHANGE 0x30

/* After the marks: the limiter's own hooks may leave them. */
#include <weir/avr.h>

/** Turns of the background loop. */
static volatile uint32_t progress;

/** The handler of a source, 0 to 3, runs. */
static inline __attribute__((always_inline)) void watched_handler(uint8_t source)
{
    TEST_MARK = (uint8_t) (WATCHED_HANDLER + source);
}

/** A call of Weir begins; interrupts are off until it ends. */
static inline __attribute__((always_inline)) void watched_begin(uint8_t what)
{
    TEST_MARK = what;
}

/** It has ended. */
static inline __attribute__((always_inline)) void watched_end(void)
{
    TEST_MARK = WATCHED_END;
}

#endif
