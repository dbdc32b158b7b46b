/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Groups of sources that share a timer and a priority.
 */
#ifndef WEIR_CORTEX_M_GROUP_H
#define WEIR_CORTEX_M_GROUP_H

#include "weir/cortex_m/limit.h"

/*
 * The most urgent priority of a group. BASEPRI must be able to mask it. If FreeRTOS's configuration
 * is known, interrupts of this priority may call FreeRTOS, whose critical sections mask interrupts
 * that are as urgent as configMAX_SYSCALL_INTERRUPT_PRIORITY or less.
 */
#ifdef configMAX_SYSCALL_INTERRUPT_PRIORITY
#define WEIR_CORTEX_M_MOST_URGENT (configMAX_SYSCALL_INTERRUPT_PRIORITY)
#else
#define WEIR_CORTEX_M_MOST_URGENT 1
#endif

#define WEIR_CORTEX_M_EACH_1(do_it, a) do_it(a)
#define WEIR_CORTEX_M_EACH_2(do_it, a, ...) do_it(a) WEIR_CORTEX_M_EACH_1(do_it, __VA_ARGS__)
#define WEIR_CORTEX_M_EACH_3(do_it, a, ...) do_it(a) WEIR_CORTEX_M_EACH_2(do_it, __VA_ARGS__)
#define WEIR_CORTEX_M_EACH_4(do_it, a, ...) do_it(a) WEIR_CORTEX_M_EACH_3(do_it, __VA_ARGS__)
#define WEIR_CORTEX_M_EACH_5(do_it, a, ...) do_it(a) WEIR_CORTEX_M_EACH_4(do_it, __VA_ARGS__)
#define WEIR_CORTEX_M_EACH_6(do_it, a, ...) do_it(a) WEIR_CORTEX_M_EACH_5(do_it, __VA_ARGS__)
#define WEIR_CORTEX_M_EACH_7(do_it, a, ...) do_it(a) WEIR_CORTEX_M_EACH_6(do_it, __VA_ARGS__)
#define WEIR_CORTEX_M_EACH_8(do_it, a, ...) do_it(a) WEIR_CORTEX_M_EACH_7(do_it, __VA_ARGS__)
#define WEIR_CORTEX_M_PICK(a, b, c, d, e, f, g, h, count, ...) WEIR_CORTEX_M_EACH_##count
#define WEIR_CORTEX_M_EACH(do_it, ...) WEIR_CORTEX_M_PICK(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)(do_it, __VA_ARGS__)

#define WEIR_CORTEX_M_TICK_ONE(name) name##_tick(now);
#define WEIR_CORTEX_M_LEFT_ONE(name) left = name##_left(now, left);

/* Defines the priority of a group's timer, and NAME_tick(). */
#define WEIR_CORTEX_M_MEMBERS_(name, timer, urgency, ...)                                                                                  \
    _Static_assert((urgency) >= WEIR_CORTEX_M_MOST_URGENT && (urgency) <= 255,                                                             \
                   "the priority of a group is 1 to 255, and with FreeRTOS at least configMAX_SYSCALL_INTERRUPT_PRIORITY");                \
    uint8_t timer##_priority(void)                                                                                                         \
    {                                                                                                                                      \
        return (urgency);                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_tick(void)                                                                                                     \
    {                                                                                                                                      \
        weir_ticks_t now = timer##_now();                                                                                                  \
        WEIR_CORTEX_M_EACH(WEIR_CORTEX_M_TICK_ONE, __VA_ARGS__)                                                                            \
    }

/**
 * Defines a group without a timer of its own (LIMIT-TIMERLESS-1). NAME_tick() must be called from
 * an existing tick, in an interrupt that has the priority `urgency`. `timer` is a
 * WEIR_CORTEX_M_CLOCK. The tick's period adds to the latency, and is at most 2^29 ticks of the
 * clock.
 */
#define WEIR_CORTEX_M_TICKED_GROUP(name, timer, urgency, ...)                                                                              \
    WEIR_CORTEX_M_MEMBERS_(name, timer, urgency, __VA_ARGS__) _Static_assert(true, "a semicolon may follow")

/** Defines the clock of a group without a timer. `instant` is its value: 32 bits that count up and
 * wrap. */
#define WEIR_CORTEX_M_CLOCK(name, instant)                                                                                                 \
    uint8_t name##_priority(void);                                                                                                         \
    WEIR_INLINE weir_ticks_t name##_now(void)                                                                                              \
    {                                                                                                                                      \
        return (instant);                                                                                                                  \
    }                                                                                                                                      \
    /* Nothing needs to be set, because the next tick comes anyway. */                                                                     \
    WEIR_INLINE void name##_alarm_by(weir_ticks_t now, weir_ticks_t at)                                                                    \
    {                                                                                                                                      \
        (void) now;                                                                                                                        \
        (void) at;                                                                                                                         \
    }                                                                                                                                      \
    _Static_assert(true, "a semicolon may follow")

/**
 * Defines a group of the timer `timer` and its sources. All have the priority `urgency` in the
 * NVIC, 1 to 255; BASEPRI cannot mask the priority 0. The macro defines NAME_run(), which starts
 * the timer, and the timer's interrupt function `vector`.
 */
#define WEIR_CORTEX_M_GROUP(name, timer, urgency, vector, ...)                                                                             \
    WEIR_CORTEX_M_MEMBERS_(name, timer, urgency, __VA_ARGS__)                                                                              \
    void vector(void);                                                                                                                     \
    void vector(void)                                                                                                                      \
    {                                                                                                                                      \
        timer##_acknowledge();                                                                                                             \
        name##_tick();                                                                                                                     \
        weir_ticks_t now = timer##_now(), left = WEIR_CORTEX_M_REST;                                                                       \
        WEIR_CORTEX_M_EACH(WEIR_CORTEX_M_LEFT_ONE, __VA_ARGS__)                                                                            \
        timer##_alarm_after(now, left);                                                                                                    \
    }                                                                                                                                      \
    WEIR_INLINE void name##_run(void)                                                                                                      \
    {                                                                                                                                      \
        timer##_begin();                                                                                                                   \
        weir_nvic_set_priority(timer##_irq, (urgency));                                                                                    \
        timer##_alarm_after(timer##_now(), WEIR_CORTEX_M_REST);                                                                            \
        weir_nvic_enable(timer##_irq);                                                                                                     \
    }                                                                                                                                      \
    _Static_assert(true, "a semicolon may follow")

/**
 * Defines what every timer needs in addition to its registers: NAME_alarm_by(), which only ever
 * moves the alarm to an earlier instant. A chip's header first defines NAME_now(), NAME_set(left)
 * and NAME_irq, and then uses this macro.
 */
#define WEIR_CORTEX_M_TIMER(name)                                                                                                          \
    uint8_t name##_priority(void);                                                                                                         \
    static weir_ticks_t name##_alarm_at;                                                                                                   \
    /* Sets the alarm to `left` ticks after `now`, a very recent instant. */                                                               \
    WEIR_INLINE void name##_alarm_after(weir_ticks_t now, weir_ticks_t left)                                                               \
    {                                                                                                                                      \
        name##_alarm_at = (weir_ticks_t) (now + left);                                                                                     \
        if (left == 0) {                                                                                                                   \
            weir_nvic_pend(name##_irq);                                                                                                    \
        } else {                                                                                                                           \
            name##_set(left);                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* Sets the alarm to `at` unless it is set for an earlier instant. If `at` has been reached, the alarm comes at once. */               \
    WEIR_INLINE void name##_alarm_by(weir_ticks_t now, weir_ticks_t at)                                                                    \
    {                                                                                                                                      \
        if (!weir_ticks_reached(at, name##_alarm_at)) {                                                                                    \
            name##_alarm_after(now, weir_ticks_reached(now, at) ? 0 : weir_ticks_between(now, at));                                        \
        }                                                                                                                                  \
    }                                                                                                                                      \
    _Static_assert(true, "a semicolon may follow")

#endif
