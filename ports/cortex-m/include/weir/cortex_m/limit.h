/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Sources: the limiter of core/, inlined into the interrupt function of a line.
 */
#ifndef WEIR_CORTEX_M_LIMIT_H
#define WEIR_CORTEX_M_LIMIT_H

#include "weir/cortex_m/nvic.h"
#include "weir/limit.h"

#if WEIR_TICK_BITS != 32
#error "ports/cortex-m counts in 32 bits: compile with -DWEIR_TICK_BITS=32, or without it"
#endif

/** Ticks between two ageings, an eighth of a wrap (CONTRACTS.md, Ageing). */
#define WEIR_CORTEX_M_REST ((weir_ticks_t) 0x20000000u)
/**
 * The largest number of ticks that a limiter may look ahead and back together. These ticks and
 * WEIR_CORTEX_M_REST leave a quarter of a wrap for latencies.
 */
#define WEIR_CORTEX_M_SPAN_MOST 0x40000000u

/**
 * A hook for tests. It is called after each event of a source with the step that was performed.
 * `kind` is one of WEIR_CORTEX_M_EVENT_*.
 */
#ifndef WEIR_CORTEX_M_ON_EVENT
#define WEIR_CORTEX_M_ON_EVENT(state, kind, now, pending, step) ((void) 0)
#endif
enum {
    WEIR_CORTEX_M_EVENT_START = 0,
    WEIR_CORTEX_M_EVENT_REQUEST = 1,
    WEIR_CORTEX_M_EVENT_REFUSED = 2,
    WEIR_CORTEX_M_EVENT_TICK = 3,
    WEIR_CORTEX_M_EVENT_ENABLE = 4,
    WEIR_CORTEX_M_EVENT_DISABLE = 5,
    WEIR_CORTEX_M_EVENT_CHANGE = 6
};

void weir_cortex_m_bad_limit(void) __attribute__((
    error("this limit cannot be kept: the interval must be 1 to 2^29 ticks (bucket: at most 2^30 / (burst + 1)), the burst 1 to "
          "255 (strict, paced: 1), the lag below the interval (0 with other policies than strict), ONE_SHOT goes with BURSTY")));

/** True iff ageing every WEIR_CORTEX_M_REST ticks is often enough for this configuration. */
WEIR_INLINE bool weir_cortex_m_can_keep_young(const weir_limit_config_t *c)
{
    uint32_t span = c->policy == WEIR_LIMIT_BUCKET ? (uint32_t) c->burst + 1u : 2u;
    return c->policy == WEIR_LIMIT_OFF || c->interval <= WEIR_CORTEX_M_SPAN_MOST / span;
}

/** Does not compile (with optimisation) if the limit cannot be enforced. */
WEIR_INLINE void weir_cortex_m_check(const weir_limit_config_t *c)
{
#ifdef __OPTIMIZE__
    if (weir_limit_checked(c) != WEIR_LIMIT_OK || !weir_cortex_m_can_keep_young(c)) {
        weir_cortex_m_bad_limit();
    }
#else
    (void) c;
#endif
}

/**
 * Limits line `irq` of the NVIC. `timer` is the timer of its group, and `vector` is the name of the
 * line's interrupt function in the vector table. The other arguments initialise a
 * weir_limit_config_t, in ticks of the timer. The body of the handler follows. The configuration is
 * a constant, so the compiler keeps only what its policy needs. The limiter masks the line in the
 * NVIC, whose pending bit keeps one request (WEIR_LIMIT_EDGE).
 */
#define WEIR_CORTEX_M_LIMIT(name, timer, irq, vector, ...)                                                                                 \
    WEIR_CORTEX_M_LIMIT_AT(name, timer, irq, vector, weir_nvic_disable(irq), weir_nvic_enable(irq), __VA_ARGS__)

/**
 * Does the same as WEIR_CORTEX_M_LIMIT, but masks by the statements `mask_it` and `unmask_it`, for
 * example by the enable bit of the device. Use it where several devices share the line, or where
 * the line's level would stay active. The line itself stays enabled. If devices share the line,
 * `vector` is not in the vector table: the line's own interrupt function calls it if this device
 * requests.
 */
#define WEIR_CORTEX_M_LIMIT_AT(name, timer, irq, vector, mask_it, unmask_it, ...)                                                          \
    WEIR_CORTEX_M_DEFINE_CHECK_(name, __VA_ARGS__)                                                                                         \
    WEIR_INLINE weir_limit_config_t name##_config(void)                                                                                    \
    {                                                                                                                                      \
        weir_limit_config_t config = {__VA_ARGS__};                                                                                        \
        return config;                                                                                                                     \
    }                                                                                                                                      \
    static weir_limit_state_t name##_state;                                                                                                \
    WEIR_CORTEX_M_DEFINE_(name, name##_state, timer, irq, vector, mask_it, unmask_it)

/**
 * Does the same as WEIR_CORTEX_M_LIMIT with the configuration in RAM. NAME_change() changes its
 * interval and burst at run time.
 */
#define WEIR_CORTEX_M_LIMIT_TUNABLE(name, timer, irq, vector, ...)                                                                         \
    WEIR_CORTEX_M_LIMIT_TUNABLE_AT(name, timer, irq, vector, weir_nvic_disable(irq), weir_nvic_enable(irq), __VA_ARGS__)

/** Does the same as WEIR_CORTEX_M_LIMIT_AT with the configuration in RAM. */
#define WEIR_CORTEX_M_LIMIT_TUNABLE_AT(name, timer, irq, vector, mask_it, unmask_it, ...)                                                  \
    WEIR_CORTEX_M_DEFINE_CHECK_(name, __VA_ARGS__)                                                                                         \
    static weir_limit_t name##_limit = {.config = {__VA_ARGS__}};                                                                          \
    /* Policy, timing and trigger never change, so they are constants for the compiler. */                                                 \
    WEIR_INLINE weir_limit_config_t name##_config(void)                                                                                    \
    {                                                                                                                                      \
        weir_limit_config_t config = {__VA_ARGS__};                                                                                        \
        config.interval = name##_limit.config.interval;                                                                                    \
        config.burst = name##_limit.config.burst;                                                                                          \
        return config;                                                                                                                     \
    }                                                                                                                                      \
    WEIR_CORTEX_M_DEFINE_CHANGE_(name, name##_limit, timer)                                                                                \
    WEIR_CORTEX_M_DEFINE_(name, name##_limit.state, timer, irq, vector, mask_it, unmask_it)

/* Defines NAME_check(), which does not compile if the limit cannot be enforced. */
#define WEIR_CORTEX_M_DEFINE_CHECK_(name, ...)                                                                                             \
    WEIR_INLINE void name##_check(void)                                                                                                    \
    {                                                                                                                                      \
        static const weir_limit_config_t written = {__VA_ARGS__};                                                                          \
        weir_cortex_m_check(&written);                                                                                                     \
    }

/*
 * Defines NAME_change(), which changes the interval (in ticks of the timer) and the burst
 * (LIMIT-CHANGE-1 to -4). A limit that cannot be enforced is rejected, and then nothing changes.
 * Call it from a thread, or from an interrupt that is no more urgent than the group.
 */
#define WEIR_CORTEX_M_DEFINE_CHANGE_(name, limit, timer)                                                                                   \
    WEIR_INLINE void name##_perform_line(weir_limit_step_t step);                                                                          \
    WEIR_INLINE weir_limit_error_t name##_change(weir_ticks_t interval, uint8_t burst)                                                     \
    {                                                                                                                                      \
        uint32_t before = weir_cortex_m_hold(timer##_priority());                                                                          \
        weir_ticks_t now = timer##_now();                                                                                                  \
        weir_limit_config_t to = (limit).config;                                                                                           \
        weir_limit_step_t step;                                                                                                            \
        to.interval = interval;                                                                                                            \
        to.burst = burst;                                                                                                                  \
        weir_limit_error_t error =                                                                                                         \
            weir_cortex_m_can_keep_young(&to) ? weir_limit_reconfigure(&(limit), &to, now, &step) : WEIR_LIMIT_BAD_INTERVAL;               \
        if (error == WEIR_LIMIT_OK) {                                                                                                      \
            name##_perform_line(step);                                                                                                     \
            WEIR_CORTEX_M_ON_EVENT(&(limit).state, WEIR_CORTEX_M_EVENT_CHANGE, now, false, step);                                          \
            if (step.arm) {                                                                                                                \
                timer##_alarm_by(now, step.at);                                                                                            \
            }                                                                                                                              \
        }                                                                                                                                  \
        weir_cortex_m_restore(before);                                                                                                     \
        return error;                                                                                                                      \
    }

/*
 * Defines NAME_record(), which copies the record of the source since its start. Call it from a
 * thread, or from an interrupt that is no more urgent than the group.
 */
#if WEIR_LIMIT_RECORD
#define WEIR_CORTEX_M_DEFINE_RECORD_(name, timer, state)                                                                                   \
    WEIR_INLINE void name##_record(weir_limit_record_t *copy)                                                                              \
    {                                                                                                                                      \
        uint32_t before = weir_cortex_m_hold(timer##_priority());                                                                          \
        *copy = (state).record;                                                                                                            \
        weir_cortex_m_restore(before);                                                                                                     \
    }
#else
#define WEIR_CORTEX_M_DEFINE_RECORD_(name, timer, state)
#endif

/* Defines a source. NAME_config() is its current limit, and the variable `state` its state. */
#define WEIR_CORTEX_M_DEFINE_(name, state, timer, irq, vector, mask_it, unmask_it)                                                         \
    enum { name##_irq = (irq) };                                                                                                           \
    WEIR_INLINE void name##_handler(void);                                                                                                 \
    WEIR_INLINE void name##_perform_line(weir_limit_step_t step)                                                                           \
    {                                                                                                                                      \
        if (step.mask) {                                                                                                                   \
            mask_it;                                                                                                                       \
        }                                                                                                                                  \
        if (step.unmask) {                                                                                                                 \
            unmask_it;                                                                                                                     \
        }                                                                                                                                  \
        if (step.ack) {                                                                                                                    \
            weir_nvic_clear(name##_irq);                                                                                                   \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_perform_body(weir_limit_step_t step, weir_ticks_t now)                                                         \
    {                                                                                                                                      \
        if (step.serve) {                                                                                                                  \
            name##_handler();                                                                                                              \
            if (WEIR_LIMIT_RECORD) {                                                                                                       \
                weir_limit_done(&(state), now, timer##_now());                                                                             \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    void vector(void);                                                                                                                     \
    void vector(void)                                                                                                                      \
    {                                                                                                                                      \
        weir_ticks_t now = timer##_now();                                                                                                  \
        const weir_limit_config_t config = name##_config();                                                                                \
        weir_limit_step_t step;                                                                                                            \
        if (weir_limit_is_on(&(state))) {                                                                                                  \
            step = weir_limit_request_with(&(state), &config, now, false);                                                                 \
            name##_perform_line(step);                                                                                                     \
            WEIR_CORTEX_M_ON_EVENT(&(state), WEIR_CORTEX_M_EVENT_REQUEST, now, false, step);                                               \
        } else {                                                                                                                           \
            step = weir_limit_refused_with(&(state), &config, now);                                                                        \
            name##_perform_line(step);                                                                                                     \
            WEIR_CORTEX_M_ON_EVENT(&(state), WEIR_CORTEX_M_EVENT_REFUSED, now, false, step);                                               \
        }                                                                                                                                  \
        if (step.arm) {                                                                                                                    \
            timer##_alarm_by(now, step.at);                                                                                                \
        }                                                                                                                                  \
        name##_perform_body(step, now);                                                                                                    \
    }                                                                                                                                      \
    /* In the timer's interrupt: handles the expiry if it is due, or ages the source. */                                                   \
    WEIR_INLINE void name##_tick(weir_ticks_t now)                                                                                         \
    {                                                                                                                                      \
        const weir_limit_config_t config = name##_config();                                                                                \
        bool pending = config.trigger != WEIR_LIMIT_LEVEL && weir_nvic_is_pending(name##_irq);                                             \
        weir_limit_step_t step = weir_limit_tick_with(&(state), &config, now, pending);                                                    \
        name##_perform_line(step);                                                                                                         \
        WEIR_CORTEX_M_ON_EVENT(&(state), WEIR_CORTEX_M_EVENT_TICK, now, pending, step);                                                    \
        name##_perform_body(step, now);                                                                                                    \
    }                                                                                                                                      \
    /* The ticks from `now` to the source's next expiry, but at most `most`. */                                                            \
    WEIR_INLINE weir_ticks_t name##_left(weir_ticks_t now, weir_ticks_t most)                                                              \
    {                                                                                                                                      \
        const weir_limit_config_t config = name##_config();                                                                                \
        if (!weir_limit_is_armed(&(state), &config)) {                                                                                     \
            return most;                                                                                                                   \
        }                                                                                                                                  \
        if (weir_limit_is_released(&(state)) || weir_ticks_reached(now, (state).due)) {                                                    \
            return 0;                                                                                                                      \
        }                                                                                                                                  \
        weir_ticks_t left = weir_ticks_between(now, (state).due);                                                                          \
        return left < most ? left : most;                                                                                                  \
    }                                                                                                                                      \
    /* Starts limiting and enables the line. Call it from a thread, after the group's run function. */                                     \
    WEIR_INLINE void name##_start(void)                                                                                                    \
    {                                                                                                                                      \
        name##_check();                                                                                                                    \
        uint32_t before = weir_cortex_m_hold(timer##_priority());                                                                          \
        weir_ticks_t now = timer##_now();                                                                                                  \
        weir_nvic_set_priority(name##_irq, timer##_priority());                                                                            \
        const weir_limit_config_t config = name##_config();                                                                                \
        weir_limit_step_t step = weir_limit_start_with(&(state), &config, now);                                                            \
        name##_perform_line(step);                                                                                                         \
        WEIR_CORTEX_M_ON_EVENT(&(state), WEIR_CORTEX_M_EVENT_START, now, false, step);                                                     \
        weir_nvic_enable(name##_irq);                                                                                                      \
        if (step.arm) {                                                                                                                    \
            timer##_alarm_by(now, step.at);                                                                                                \
        }                                                                                                                                  \
        weir_cortex_m_restore(before);                                                                                                     \
    }                                                                                                                                      \
    /* The user wants the line on, or off, until the next such call (regehr2005 §4): in place of the line's own enable bit. From a \
     * thread, or an interrupt that is no more urgent than the group. */      \
    WEIR_INLINE void name##_disable(void)                                                                                                  \
    {                                                                                                                                      \
        uint32_t before = weir_cortex_m_hold(timer##_priority());                                                                          \
        weir_limit_step_t step = weir_limit_user_disable(&(state));                                                                        \
        name##_perform_line(step);                                                                                                         \
        WEIR_CORTEX_M_ON_EVENT(&(state), WEIR_CORTEX_M_EVENT_DISABLE, timer##_now(), false, step);                                         \
        weir_cortex_m_restore(before);                                                                                                     \
    }                                                                                                                                      \
    WEIR_INLINE void name##_enable(void)                                                                                                   \
    {                                                                                                                                      \
        uint32_t before = weir_cortex_m_hold(timer##_priority());                                                                          \
        weir_ticks_t now = timer##_now();                                                                                                  \
        weir_limit_step_t step = weir_limit_user_enable(&(state), now);                                                                    \
        name##_perform_line(step);                                                                                                         \
        WEIR_CORTEX_M_ON_EVENT(&(state), WEIR_CORTEX_M_EVENT_ENABLE, now, false, step);                                                    \
        if (step.arm) {                                                                                                                    \
            timer##_alarm_by(now, step.at);                                                                                                \
        }                                                                                                                                  \
        weir_cortex_m_restore(before);                                                                                                     \
    }                                                                                                                                      \
    /* Returns the state of the source, for tests and hooks. */                                                                            \
    WEIR_INLINE weir_limit_state_t *name##_state_of(void)                                                                                  \
    {                                                                                                                                      \
        return &(state);                                                                                                                   \
    }                                                                                                                                      \
    WEIR_CORTEX_M_DEFINE_RECORD_(name, timer, state)                                                                                       \
    WEIR_INLINE void name##_handler(void)

/**
 * The ticks of an interval that admits at most `hertz` if the timer counts `clock` ticks a second:
 * rounded up, so that the limit is never above this rate. For a rate of 0, or one beyond the
 * clock's, the result is 0, which does not compile. For constants: the macro divides in 64 bits.
 */
#define WEIR_CORTEX_M_TICKS(hertz, clock)                                                                                                  \
    ((hertz) > 0 && (hertz) <= (clock) ? (weir_ticks_t) (((clock) + 0uLL + (hertz) - 1u) / ((hertz) > 0 ? (hertz) : 1)) : 0)

#endif
