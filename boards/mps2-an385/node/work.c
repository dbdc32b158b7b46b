/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "work.h"

enum { TAPS = 64, TARGET = 12000 };

/* The latest samples. Each is stored twice, so that a range of TAPS samples never wraps. */
static int16_t samples[2 * TAPS];
static uint32_t newest;
static int32_t plant, integral;
static volatile int32_t setting;

/* Returns the weight of a tap of a low-pass filter. The weights form a triangle, and their sum is
 * 2^12. */
static int32_t weight(uint32_t tap)
{
    return (int32_t) (tap < TAPS / 2 ? 2 * tap + 1 : 2 * (TAPS - tap) - 1) * 2;
}

void work_step(void)
{
    newest = (newest + 1) % TAPS;
    samples[newest] = samples[newest + TAPS] = (int16_t) (plant >> 8);
    const int16_t *window = &samples[newest + 1];
    int32_t sum = 0;
    for (uint32_t tap = 0; tap < TAPS; tap++) {
        sum += window[tap] * weight(tap);
    }
    int32_t error = TARGET - (sum >> 12);
    integral += error - (integral >> 6);
    setting = error * 3 + (integral >> 3);
    plant += setting - (plant >> 8);
}

int32_t work_result(void)
{
    return setting;
}
