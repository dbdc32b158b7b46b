/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The dual timer of Arm's Cortex-M System Design Kit (DDI 0479, 4.5) as a timer of the port. Its
 * first half counts freely, and its second half is the alarm.
 *
 * To support another chip's timer, write a header like this one. It defines NAME_irq, NAME_begin(),
 * NAME_now() (32 bits that count up and wrap), NAME_set(left) and NAME_acknowledge(), and then uses
 * WEIR_CORTEX_M_TIMER(NAME). NAME_set(left) interrupts once, `left` ticks from now, where `left` is
 * at least 1. It never interrupts earlier than the alarm that was set before. A timer that cannot
 * count as far as `left` interrupts as late as it can.
 */
#ifndef WEIR_CHIPS_CMSDK_H
#define WEIR_CHIPS_CMSDK_H

#include "weir/cortex_m/group.h"

/** The registers of a half, as offsets in words from its first register. WEIR_CMSDK_SECOND is the
 * offset of the second half. */
enum { WEIR_CMSDK_LOAD = 0, WEIR_CMSDK_VALUE = 1, WEIR_CMSDK_CONTROL = 2, WEIR_CMSDK_CLEAR = 3, WEIR_CMSDK_SECOND = 8 };
/** The bits of the control register. */
enum { WEIR_CMSDK_ONE_SHOT = 1, WEIR_CMSDK_32_BITS = 2, WEIR_CMSDK_INTERRUPTS = 0x20, WEIR_CMSDK_ENABLED = 0x80 };
/** The control register's bits for a prescaler. */
#define WEIR_CMSDK_PRESCALER(divisor) ((divisor) == 1 ? 0u : (divisor) == 16 ? 1u << 2 : 2u << 2)

/**
 * The dual timer whose registers begin at `base`, which interrupts by line `irq` and counts every
 * `divisor` clocks: 1, 16 or 256.
 */
#define WEIR_CMSDK_DUAL_TIMER(name, base, irq, divisor)                                                                                    \
    _Static_assert((divisor) == 1 || (divisor) == 16 || (divisor) == 256, "the dual timer divides by 1, 16 or 256");                       \
    enum { name##_irq = (irq) };                                                                                                           \
    WEIR_INLINE volatile uint32_t *name##_registers(void)                                                                                  \
    {                                                                                                                                      \
        return (volatile uint32_t *) (base);                                                                                               \
    }                                                                                                                                      \
    WEIR_INLINE weir_ticks_t name##_now(void)                                                                                              \
    {                                                                                                                                      \
        return ~name##_registers()[WEIR_CMSDK_VALUE]; /* it counts down */                                                                 \
    }                                                                                                                                      \
    WEIR_INLINE void name##_set(weir_ticks_t left)                                                                                         \
    {                                                                                                                                      \
        volatile uint32_t *alarm = name##_registers() + WEIR_CMSDK_SECOND;                                                                 \
        uint32_t control = WEIR_CMSDK_ONE_SHOT | WEIR_CMSDK_32_BITS | WEIR_CMSDK_INTERRUPTS | WEIR_CMSDK_PRESCALER(divisor);               \
        alarm[WEIR_CMSDK_CONTROL] = control;                                                                                               \
        alarm[WEIR_CMSDK_LOAD] = left;                                                                                                     \
        alarm[WEIR_CMSDK_CONTROL] = control | WEIR_CMSDK_ENABLED;                                                                          \
    }                                                                                                                                      \
    WEIR_INLINE void name##_acknowledge(void)                                                                                              \
    {                                                                                                                                      \
        name##_registers()[WEIR_CMSDK_SECOND + WEIR_CMSDK_CLEAR] = 0;                                                                      \
    }                                                                                                                                      \
    WEIR_INLINE void name##_begin(void)                                                                                                    \
    {                                                                                                                                      \
        name##_registers()[WEIR_CMSDK_CONTROL] = 0;                                                                                        \
        name##_registers()[WEIR_CMSDK_LOAD] = 0xffffffffu;                                                                                 \
        name##_registers()[WEIR_CMSDK_CONTROL] = WEIR_CMSDK_ENABLED | WEIR_CMSDK_32_BITS | WEIR_CMSDK_PRESCALER(divisor);                  \
        name##_acknowledge();                                                                                                              \
    }                                                                                                                                      \
    WEIR_CORTEX_M_TIMER(name)

/** The registers of a single timer, as offsets in words from its first register. */
enum { WEIR_CMSDK_TIMER_CONTROL = 0, WEIR_CMSDK_TIMER_VALUE = 1, WEIR_CMSDK_TIMER_RELOAD = 2, WEIR_CMSDK_TIMER_CLEAR = 3 };

/**
 * Two single timers (DDI 0479, 4.4) as one timer of the port. The timer at `base` counts freely.
 * The timer at `alarm_base`, which interrupts by line `irq`, is the alarm. Both count every clock.
 */
#define WEIR_CMSDK_TWO_TIMERS(name, base, alarm_base, irq)                                                                                 \
    enum { name##_irq = (irq) };                                                                                                           \
    WEIR_INLINE volatile uint32_t *name##_counter(void)                                                                                    \
    {                                                                                                                                      \
        return (volatile uint32_t *) (base);                                                                                               \
    }                                                                                                                                      \
    WEIR_INLINE volatile uint32_t *name##_alarm(void)                                                                                      \
    {                                                                                                                                      \
        return (volatile uint32_t *) (alarm_base);                                                                                         \
    }                                                                                                                                      \
    WEIR_INLINE weir_ticks_t name##_now(void)                                                                                              \
    {                                                                                                                                      \
        return ~name##_counter()[WEIR_CMSDK_TIMER_VALUE]; /* it counts down */                                                             \
    }                                                                                                                                      \
    /* The timer counts from `left` to 0 and would then begin again. The code that acknowledges the interrupt stops it. */                 \
    WEIR_INLINE void name##_set(weir_ticks_t left)                                                                                         \
    {                                                                                                                                      \
        name##_alarm()[WEIR_CMSDK_TIMER_CONTROL] = 0;                                                                                      \
        name##_alarm()[WEIR_CMSDK_TIMER_RELOAD] = left;                                                                                    \
        name##_alarm()[WEIR_CMSDK_TIMER_VALUE] = left;                                                                                     \
        name##_alarm()[WEIR_CMSDK_TIMER_CONTROL] = 9; /* enabled, with its interrupt */                                                    \
    }                                                                                                                                      \
    WEIR_INLINE void name##_acknowledge(void)                                                                                              \
    {                                                                                                                                      \
        name##_alarm()[WEIR_CMSDK_TIMER_CONTROL] = 0;                                                                                      \
        name##_alarm()[WEIR_CMSDK_TIMER_CLEAR] = 1;                                                                                        \
    }                                                                                                                                      \
    WEIR_INLINE void name##_begin(void)                                                                                                    \
    {                                                                                                                                      \
        name##_counter()[WEIR_CMSDK_TIMER_CONTROL] = 0;                                                                                    \
        name##_counter()[WEIR_CMSDK_TIMER_RELOAD] = 0xffffffffu;                                                                           \
        name##_counter()[WEIR_CMSDK_TIMER_VALUE] = 0xffffffffu;                                                                            \
        name##_counter()[WEIR_CMSDK_TIMER_CONTROL] = 1;                                                                                    \
        name##_acknowledge();                                                                                                              \
    }                                                                                                                                      \
    WEIR_CORTEX_M_TIMER(name)

#endif
