/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a group costs on mps2-an385: up to eight sources with empty bodies on IRQ20 to IRQ27, which
 * share the dual timer. Macros: FIRST and OTHERS (the limits of s0 and of the others), GROUP (the
 * sources in the group), STARTS (what starts them).
 */
#include <stdint.h>

#include <weir/chips/cmsdk.h>
#include <weir/cortex_m.h>

WEIR_CMSDK_DUAL_TIMER(ticks, 0x40002000, 10, 1);

#define SOURCE(name, number, ...)                                                                                                          \
    WEIR_CORTEX_M_LIMIT(name, ticks, number, irq##number, __VA_ARGS__)                                                                     \
    {                                                                                                                                      \
    }

SOURCE(s0, 20, FIRST)
SOURCE(s1, 21, OTHERS)
SOURCE(s2, 22, OTHERS)
SOURCE(s3, 23, OTHERS)
SOURCE(s4, 24, OTHERS)
SOURCE(s5, 25, OTHERS)
SOURCE(s6, 26, OTHERS)
SOURCE(s7, 27, OTHERS)
WEIR_CORTEX_M_GROUP(group, ticks, 0x80, dual_timer, GROUP);

void start(void)
{
    group_run();
    STARTS
    for (;;) {
    }
}

static void stop(void)
{
    for (;;) {
    }
}

typedef void (*vector)(void);
extern const vector vectors[];
__attribute__((section(".vectors"))) const vector vectors[16 + 28] = {
    [0] = (vector) 0x20400000, /* the stack's end */
    [1] = start,
    [2] = stop,
    [3] = stop,
    [16 + 10] = dual_timer,
    [16 + 20] = irq20,
    [16 + 21] = irq21,
    [16 + 22] = irq22,
    [16 + 23] = irq23,
    [16 + 24] = irq24,
    [16 + 25] = irq25,
    [16 + 26] = irq26,
    [16 + 27] = irq27,
};
