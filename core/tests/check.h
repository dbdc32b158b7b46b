/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Helpers of the tests in C: a condition that stops the program, and random numbers that are the
 * same in every run.
 */
#ifndef WEIR_TESTS_CHECK_H
#define WEIR_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One file is compiled several times: `number` and `unit` tell which of its programs stopped. */
#define CHECK_IN(number, unit, what)                                                                                                       \
    do {                                                                                                                                   \
        if (!(what)) {                                                                                                                     \
            fprintf(stderr, "%s:%d: %d " unit ": not so: %s\n", __FILE__, __LINE__, number, #what);                                        \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

/*
 * How often a test tries at random: a few times, or often in the long form (CONTRIBUTING.md).
 */
static inline unsigned rounds(unsigned few, unsigned often)
{
    const char *is_long = getenv("WEIR_LONG");
    return is_long != NULL && strcmp(is_long, "1") == 0 ? often : few;
}

static uint64_t dice = 88172645463325252u;

static inline uint8_t roll(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (uint8_t) (dice >> 32);
}

#endif
