/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a limit costs on mps2-an385: a source with an empty body on IRQ20, and one on IRQ21. Macros:
 * LIMIT (the initialiser), LIMITED (how many of the two have it: 0, 1 or 2), BODY (the body of the
 * first, or nothing).
 */
#include <stdint.h>

#include <weir/chips/cmsdk.h>
#include <weir/cortex_m.h>

volatile uint32_t progress;

void irq20(void);
void irq21(void);

#if LIMITED > 0
WEIR_CMSDK_DUAL_TIMER(ticks, 0x40002000, 10, 1);
#ifndef BODY
#define BODY
#endif
WEIR_CORTEX_M_LIMIT(first, ticks, 20, irq20, LIMIT)
{
    BODY;
}
#if LIMITED > 1
WEIR_CORTEX_M_LIMIT(second, ticks, 21, irq21, LIMIT)
{
}
WEIR_CORTEX_M_GROUP(group, ticks, 0x80, dual_timer, first, second);
#else
WEIR_CORTEX_M_GROUP(group, ticks, 0x80, dual_timer, first);
#endif
#else
void irq20(void)
{
}
static void dual_timer(void)
{
}
#endif
#if LIMITED < 2
void irq21(void)
{
}
#endif

void start(void)
{
#if LIMITED > 0
    group_run();
    first_start();
#else
    weir_nvic_enable(20);
#endif
#if LIMITED > 1
    second_start();
#endif
    for (;;) {
        progress++;
    }
}

static void stop(void)
{
    for (;;) {
    }
}

typedef void (*vector)(void);
extern const vector vectors[];
__attribute__((section(".vectors"))) const vector vectors[16 + 22] = {
    [0] = (vector) 0x20400000, /* the stack's end */
    [1] = start,
    [2] = stop,
    [3] = stop,
    [16 + 10] = dual_timer,
    [16 + 20] = irq20,
    [16 + 21] = irq21,
};
