/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a limit costs on mps2-an385: up to four sources with an empty body on IRQ20 to IRQ23, in one
 * group. Macros: LIMIT0 to LIMIT3 (initialisers), SOURCES (the numbers of those that are limited:
 * 0,1) and MEMBERS (their names), both undefined without a limit; PADDING (so many instructions in
 * the body, far away: no other instruction changes, and what runs the body is known by its length);
 * TUNABLE (the thread changes the limits), BEFORE_WRAP (the timer starts so many ticks before it
 * wraps).
 */
#include <stdint.h>

#include <weir/chips/cmsdk.h>
#include <weir/cortex_m.h>

#define TEXT_OF_(value) #value
#define TEXT_OF(value) TEXT_OF_(value)

volatile uint32_t progress;

WEIR_INLINE void body(void)
{
#ifdef PADDING
    __asm volatile("b.w 1f\n2:\n\t.pushsection .text.padding, \"ax\", %progbits\n1:\n\t.rept " TEXT_OF(
        PADDING) " - 2\n\tnop\n\t.endr\n\tb.w 2b\n\t.popsection");
#endif
}

#ifdef SOURCES
WEIR_CMSDK_DUAL_TIMER(ticks, 0x40002000, 10, 1);
#ifdef TUNABLE
#define LIMITED WEIR_CORTEX_M_LIMIT_TUNABLE
#else
#define LIMITED WEIR_CORTEX_M_LIMIT
#endif
#define SOURCE(n)                                                                                                                          \
    LIMITED(source##n, ticks, 20 + (n), irq2##n, LIMIT##n)                                                                                 \
    {                                                                                                                                      \
        body();                                                                                                                            \
    }
WEIR_CORTEX_M_EACH(SOURCE, SOURCES)
WEIR_CORTEX_M_GROUP(group, ticks, 0x80, irq10, MEMBERS);
#endif

#ifndef SOURCES
static void irq10(void)
{
}

static void irq20(void)
{
    body();
}
#endif

void start(void)
{
#ifdef SOURCES
    group_run();
#ifdef BEFORE_WRAP
    ticks_registers()[WEIR_CMSDK_LOAD] = BEFORE_WRAP;
    ticks_alarm_after(ticks_now(), WEIR_CORTEX_M_REST);
#endif
#define START(n) source##n##_start();
    WEIR_CORTEX_M_EACH(START, SOURCES)
#else
    weir_nvic_enable(20);
#endif
    for (;;) {
        progress++;
#ifdef TUNABLE
#define CHANGE(n) source##n##_change(progress, (uint8_t) progress);
        WEIR_CORTEX_M_EACH(CHANGE, SOURCES)
#endif
    }
}

static void stop(void)
{
    for (;;) {
    }
}

typedef void (*vector)(void);
extern const vector vectors[];
#define VECTOR(n) [36 + (n)] = irq2##n,
__attribute__((section(".vectors"))) const vector vectors[16 + 24] = {[0] = (vector) 0x20400000, /* the stack's end */
                                                                      [1] = start,
                                                                      [2] = stop,
                                                                      [3] = stop,
                                                                      [16 + 10] = irq10,
#ifdef SOURCES
                                                                      WEIR_CORTEX_M_EACH(VECTOR, SOURCES)
#else
    [16 + 20] = irq20,
#endif
};
