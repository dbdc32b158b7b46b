/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The `c` flavour: the limiter of core/ inlined into ordinary interrupt handlers. It reserves no
 * register of the processor and changes only the bits of its own line and channel, so it lives
 * beside user code in the same I/O registers.
 *
 *     WEIR_AVR_LIMIT(button, INT0, TIMER1A, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_LAZY, .interval = 1000, .burst = 1)
 *     {
 *         presses++;
 *     }
 *
 * The timer counts freely (normal mode) and any code may read it; the channel's compare register
 * and flag belong to Weir.
 */
#ifndef WEIR_AVR_C_H
#define WEIR_AVR_C_H

#include <avr/interrupt.h>
#include <util/atomic.h>

#include "weir/avr/check.h"
#include "weir/avr/lean.h"
#include "weir/avr/registers.h"
#include "weir/limit.h"

#if WEIR_TICK_BITS != 16
#error "ports/avr counts in ticks of a 16-bit timer: compile with -DWEIR_TICK_BITS=16"
#endif

/* --------------------------------------------------------------------------- performing a step */

/*
 * True iff the channel already watches the instant for which this limiter arms it. Only a bucket of
 * several tokens watches a different instant.
 */
#define WEIR_AVR_WATCHES_DUE(config) ((config).timing == WEIR_LIMIT_LAZY && ((config).policy != WEIR_LIMIT_BUCKET || (config).burst == 1))

#define WEIR_AVR_PERFORM_LINE(line, step)                                                                                                  \
    do {                                                                                                                                   \
        if ((step).mask) {                                                                                                                 \
            WEIR_AVR_MASK(line);                                                                                                           \
        }                                                                                                                                  \
        if ((step).unmask) {                                                                                                               \
            WEIR_AVR_UNMASK(line);                                                                                                         \
        }                                                                                                                                  \
        if ((step).ack) {                                                                                                                  \
            WEIR_AVR_ACK(line);                                                                                                            \
        }                                                                                                                                  \
    } while (0)

#define WEIR_AVR_SERVE(step, run_handler, state, begin, end)                                                                               \
    do {                                                                                                                                   \
        if ((step).serve) {                                                                                                                \
            run_handler;                                                                                                                   \
            if (WEIR_LIMIT_RECORD) {                                                                                                       \
                weir_limit_done(&(state), begin, end);                                                                                     \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

/* Performs the step at the channel's instant, which may have passed since the machine computed it.
 * */
#define WEIR_AVR_PERFORM_AT(channel, is_short, step) WEIR_AVR_AT_SOON(channel, is_short, (step).at)

/* Performs a step after a request. */
#define WEIR_AVR_PERFORM_CHANNEL(channel, is_short, step, watched)                                                                         \
    do {                                                                                                                                   \
        if (((step).arm && !(watched)) || (step).watch) {                                                                                  \
            WEIR_AVR_PERFORM_AT(channel, is_short, step);                                                                                  \
        }                                                                                                                                  \
        if ((step).arm) {                                                                                                                  \
            WEIR_AVR_ARM(channel);                                                                                                         \
        }                                                                                                                                  \
    } while (0)

/*
 * True iff `at` has passed and the channel will interrupt within 16 ticks anyway (a match sets the
 * flag one tick later). The channel is then left alone, because repeated calls would postpone the
 * interrupt again and again.
 */
#define WEIR_AVR_IS_COMING(channel, at)                                                                                                    \
    ((WEIR_AVR_OF(channel, ENABLES) & WEIR_AVR_OF(channel, BIT)) != 0 &&                                                                   \
     (weir_ticks_t) (WEIR_AVR_NOW(channel) - (at)) < WEIR_TICKS_HALF &&                                                                    \
     (WEIR_AVR_PASSED(channel) || (weir_ticks_t) (WEIR_AVR_AT(channel) - WEIR_AVR_NOW(channel)) <= 16u))
/* Performs a step that the user's call has caused, in a thread or in any interrupt. */
#define WEIR_AVR_PERFORM_USER(channel, step)                                                                                               \
    do {                                                                                                                                   \
        if (((step).arm || (step).watch) && !WEIR_AVR_IS_COMING(channel, (step).at)) {                                                     \
            WEIR_AVR_PERFORM_AT(channel, true, step);                                                                                      \
        }                                                                                                                                  \
        if ((step).arm) {                                                                                                                  \
            WEIR_AVR_ARM(channel);                                                                                                         \
        }                                                                                                                                  \
    } while (0)

/* Performs a step in the channel's own interrupt, whose enable bit is set. */
#define WEIR_AVR_PERFORM_EXPIRED(channel, is_short, step)                                                                                  \
    do {                                                                                                                                   \
        if ((step).arm || (step).watch) {                                                                                                  \
            WEIR_AVR_PERFORM_AT(channel, is_short, step);                                                                                  \
        }                                                                                                                                  \
        if ((step).disarm) {                                                                                                               \
            WEIR_AVR_DISARM(channel);                                                                                                      \
        }                                                                                                                                  \
    } while (0)

/* --------------------------------------------------------------------- one source, one channel */

/**
 * Limits `line` (INT0 to INT7) with the compare channel `channel` (TIMER1A to TIMER3C); the other
 * arguments initialise a weir_limit_config_t, in ticks of that timer. The body of the handler
 * follows. The configuration is a constant: the compiler keeps only what its policy needs.
 */
#define WEIR_AVR_LIMIT(name, line, channel, ...)                                                                                           \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check, __VA_ARGS__)                                                                              \
    static const weir_limit_config_t name##_config = {__VA_ARGS__};                                                                        \
    static weir_limit_state_t name##_state;                                                                                                \
    WEIR_AVR_DEFINE_(name, name##_config, name##_state, WEIR_AVR_##line, WEIR_AVR_##channel)

/**
 * WEIR_AVR_LIMIT with a configuration in RAM, whose rate and burst weir_avr_change(name, interval,
 * burst) changes at run time.
 */
#define WEIR_AVR_LIMIT_TUNABLE(name, line, channel, ...)                                                                                   \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check, __VA_ARGS__)                                                                              \
    static weir_limit_t name##_limit = {.config = {__VA_ARGS__}};                                                                          \
    WEIR_AVR_DEFINE_CHANGE_(name, WEIR_AVR_##line, WEIR_AVR_##channel)                                                                     \
    WEIR_AVR_DEFINE_(name, name##_limit.config, name##_limit.state, WEIR_AVR_##line, WEIR_AVR_##channel)

#define WEIR_AVR_DEFINE_CHANGE_(name, line, channel)                                                                                       \
    WEIR_INLINE weir_limit_error_t name##_change(weir_ticks_t interval, uint8_t burst)                                                     \
    {                                                                                                                                      \
        weir_limit_error_t error;                                                                                                          \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            weir_limit_step_t step;                                                                                                        \
            weir_limit_config_t to = name##_limit.config;                                                                                  \
            if (WEIR_AVR_PASSED(channel)) {                                                                                                \
                weir_limit_elapsed(&name##_limit.state, &name##_limit.config);                                                             \
            }                                                                                                                              \
            to.interval = interval;                                                                                                        \
            to.burst = burst;                                                                                                              \
            error = weir_limit_reconfigure(&name##_limit, &to, WEIR_AVR_NOW(channel), &step);                                              \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
            WEIR_AVR_PERFORM_USER(channel, step);                                                                                          \
        }                                                                                                                                  \
        return error;                                                                                                                      \
    }

#define WEIR_AVR_DEFINE_(name, config, state, line, channel)                                                                               \
    WEIR_INLINE void name##_handler(void);                                                                                                 \
    WEIR_AVR_DEFINE_USER_(name, config, state, line, channel, true)                                                                        \
    ISR(WEIR_AVR_OF(line, VECTOR))                                                                                                         \
    {                                                                                                                                      \
        if (WEIR_AVR_IS_LEAN(config)) {                                                                                                    \
            WEIR_AVR_LEAN_REQUEST(line, channel, config, state, name##_handler());                                                         \
        } else {                                                                                                                           \
            bool elapsed = WEIR_AVR_PASSED(channel);                                                                                       \
            weir_ticks_t now = WEIR_AVR_NOW(channel);                                                                                      \
            weir_limit_step_t step = weir_limit_request_with(&(state), &(config), now, elapsed);                                           \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
            WEIR_AVR_PERFORM_CHANNEL(channel, WEIR_AVR_IS_SHORT(config), step, WEIR_AVR_WATCHES_DUE(config));                              \
            WEIR_AVR_SERVE(step, name##_handler(), state, now, WEIR_AVR_NOW(channel));                                                     \
        }                                                                                                                                  \
    }                                                                                                                                      \
    ISR(WEIR_AVR_OF(channel, VECTOR))                                                                                                      \
    {                                                                                                                                      \
        if (WEIR_AVR_IS_LEAN(config)) {                                                                                                    \
            WEIR_AVR_LEAN_EXPIRED(line, channel, config, state, name##_handler());                                                         \
        } else {                                                                                                                           \
            weir_ticks_t now = WEIR_AVR_NOW(channel);                                                                                      \
            weir_limit_step_t step = weir_limit_expired_with(&(state), &(config), now, WEIR_AVR_PENDING(line));                            \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
            WEIR_AVR_PERFORM_EXPIRED(channel, WEIR_AVR_IS_SHORT(config), step);                                                            \
            WEIR_AVR_SERVE(step, name##_handler(), state, now, WEIR_AVR_NOW(channel));                                                     \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_handler(void)

/*
 * Defines the functions that a thread may call, by name: weir_avr_start(name),
 * weir_avr_enable(name), weir_avr_disable(name), weir_avr_record(name). `own` is false if the
 * source shares the channel. The channel's instants are then not those of this source, and no
 * request of this source waits for them.
 */
#define WEIR_AVR_DEFINE_USER_(name, config, state, line, channel, own)                                                                     \
    WEIR_INLINE void name##_perform(weir_limit_step_t step)                                                                                \
    {                                                                                                                                      \
        if (own) {                                                                                                                         \
            WEIR_AVR_PERFORM_USER(channel, step);                                                                                          \
        }                                                                                                                                  \
        WEIR_AVR_PERFORM_LINE(line, step);                                                                                                 \
    }                                                                                                                                      \
    WEIR_INLINE void name##_start(void)                                                                                                    \
    {                                                                                                                                      \
        name##_check();                                                                                                                    \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            if (own) {                                                                                                                     \
                WEIR_AVR_DISARM(channel);                                                                                                  \
                WEIR_AVR_AT_ONCE(channel, true); /* a full bucket */                                                                       \
            }                                                                                                                              \
            name##_perform(weir_limit_start_with(&(state), &(config), WEIR_AVR_NOW(channel)));                                             \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_disable(void)                                                                                                  \
    {                                                                                                                                      \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            name##_perform(weir_limit_user_disable(&(state)));                                                                             \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_enable(void)                                                                                                   \
    {                                                                                                                                      \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            if (WEIR_AVR_IS_LEAN(config)) {                                                                                                \
                WEIR_AVR_LEAN_ENABLE(line, channel, config, state);                                                                        \
            } else {                                                                                                                       \
                if (own && WEIR_AVR_PASSED(channel)) {                                                                                     \
                    weir_limit_elapsed(&(state), &(config));                                                                               \
                }                                                                                                                          \
                name##_perform(weir_limit_user_enable(&(state), WEIR_AVR_NOW(channel)));                                                   \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE weir_limit_state_t *name##_state_of(void)                                                                                  \
    {                                                                                                                                      \
        return &(state);                                                                                                                   \
    }

/**
 * Starts limiting and enables the line. Start the timer and set up the line's trigger first. Call
 * it from a thread, or before interrupts are on.
 */
#define weir_avr_start(name) name##_start()
/**
 * Switches the line on or off on behalf of the user, until the next such call (regehr2005 §4). Use
 * these instead of the line's own enable bit. Any context.
 */
#define weir_avr_enable(name) name##_enable()
#define weir_avr_disable(name) name##_disable()
/**
 * Changes the interval (in ticks) and the burst of a WEIR_AVR_LIMIT_TUNABLE; returns a
 * weir_limit_error_t. Any context.
 */
#define weir_avr_change(name, interval, burst) name##_change(interval, burst)
/** Copies the record of a source to `*copy` (WEIR_LIMIT_RECORD 1). Any context. */
#define weir_avr_record(name, copy)                                                                                                        \
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                      \
    {                                                                                                                                      \
        *(copy) = name##_state_of()->record;                                                                                               \
    }

/* ------------------------------------------------------------------ several sources, one timer */

/**
 * Defines a source whose count is cleared by a timer that it shares with other sources (regehr2005
 * §3.5). The source is bursty and eager. The body of the handler follows. The body of the shared
 * timer clears the count:
 * WEIR_AVR_SHARED_TIMER(TIMER1A, period) { weir_avr_clear(a); weir_avr_clear(b); }
 */
#define WEIR_AVR_LIMIT_SHARED(name, line, channel, ...)                                                                                    \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check_shared, .policy = WEIR_LIMIT_BURSTY, .timing = WEIR_LIMIT_EAGER, __VA_ARGS__)              \
    static const weir_limit_config_t name##_config = {.policy = WEIR_LIMIT_BURSTY, .timing = WEIR_LIMIT_EAGER, __VA_ARGS__};               \
    static weir_limit_state_t name##_state;                                                                                                \
    WEIR_AVR_DEFINE_SHARED_(name, name##_config, name##_state, WEIR_AVR_##line, WEIR_AVR_##channel)

#define WEIR_AVR_DEFINE_SHARED_(name, config, state, line, channel)                                                                        \
    WEIR_INLINE void name##_handler(void);                                                                                                 \
    WEIR_AVR_DEFINE_USER_(name, config, state, line, channel, false)                                                                       \
    ISR(WEIR_AVR_OF(line, VECTOR))                                                                                                         \
    {                                                                                                                                      \
        if (WEIR_AVR_SHARED_IS_LEAN(config)) {                                                                                             \
            WEIR_AVR_SHARED_REQUEST(line, config, state, name##_handler());                                                                \
        } else {                                                                                                                           \
            weir_ticks_t now = WEIR_AVR_NOW(channel);                                                                                      \
            weir_limit_step_t step = weir_limit_request_with(&(state), &(config), now, false);                                             \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
            WEIR_AVR_SERVE(step, name##_handler(), state, now, WEIR_AVR_NOW(channel));                                                     \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_clear(void)                                                                                                    \
    {                                                                                                                                      \
        if (WEIR_AVR_SHARED_IS_LEAN(config)) {                                                                                             \
            WEIR_AVR_SHARED_CLEAR(line, state);                                                                                            \
        } else {                                                                                                                           \
            weir_ticks_t now = WEIR_AVR_NOW(channel);                                                                                      \
            weir_limit_step_t step = weir_limit_expired_with(&(state), &(config), now, WEIR_AVR_PENDING(line));                            \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
            WEIR_AVR_SERVE(step, name##_handler(), state, now, WEIR_AVR_NOW(channel));                                                     \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_handler(void)

/* Sets the shared timer's next match one period from now. */
#define WEIR_AVR_AT_PERIOD(channel, period)                                                                                                \
    do {                                                                                                                                   \
        if ((period) >= 32) {                                                                                                              \
            WEIR_AVR_AT(channel) = (weir_ticks_t) (WEIR_AVR_NOW(channel) + (period));                                                      \
            WEIR_AVR_FORGET(channel);                                                                                                      \
        } else {                                                                                                                           \
            WEIR_AVR_AT_SOON(channel, true, WEIR_AVR_NOW(channel) + (period));                                                             \
        }                                                                                                                                  \
    } while (0)
/*
 * True iff the match at `next` has been missed, because the timer's interrupt is a whole period
 * late. A period may be longer than half the timer's range.
 */
#define WEIR_AVR_IS_PERIOD_OVER(channel, next, period)                                                                                     \
    ((period) < 32768 ? WEIR_AVR_IS_REACHED(channel, next) : (weir_ticks_t) ((next) - WEIR_AVR_NOW(channel) - 1u) >= (period))

/**
 * Defines the shared timer, which executes the body that follows once every `period` ticks. The
 * body clears the counts of the timer's sources.
 */
#define WEIR_AVR_SHARED_TIMER(channel, period) WEIR_AVR_SHARED_TIMER_(WEIR_AVR_##channel, period)
#define WEIR_AVR_SHARED_TIMER_(channel, period)                                                                                            \
    WEIR_INLINE void weir_avr_shared_body(void);                                                                                           \
    WEIR_INLINE void weir_avr_shared_start(void)                                                                                           \
    {                                                                                                                                      \
        WEIR_AVR_CHECK_PERIOD(period);                                                                                                     \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            WEIR_AVR_AT_PERIOD(channel, period);                                                                                           \
            WEIR_AVR_ARM(channel);                                                                                                         \
        }                                                                                                                                  \
    }                                                                                                                                      \
    ISR(WEIR_AVR_OF(channel, VECTOR))                                                                                                      \
    {                                                                                                                                      \
        weir_ticks_t weir_next_ = (weir_ticks_t) (WEIR_AVR_AT(channel) + (period));                                                        \
        WEIR_AVR_AT(channel) = weir_next_;                                                                                                 \
        if (WEIR_UNLIKELY(WEIR_AVR_IS_PERIOD_OVER(channel, weir_next_, period))) {                                                         \
            /* The interrupt is a whole period late, so the next period begins now. */                                                     \
            WEIR_AVR_AT_PERIOD(channel, period);                                                                                           \
        }                                                                                                                                  \
        weir_avr_shared_body();                                                                                                            \
    }                                                                                                                                      \
    WEIR_INLINE void weir_avr_shared_body(void)

/** Clears the count of one source. Call it in the body of the shared timer. */
#define weir_avr_clear(name) name##_clear()
/** Starts the shared timer's interrupts; call it once, after the sources. */
#define weir_avr_start_shared() weir_avr_shared_start()

/* ------------------------------------------------------------------------- no timer of its own */

/**
 * Defines a source that is unmasked from a tick that exists already. `clock` is an expression for
 * the current instant; the tick must count it. The body of the handler follows. The tick's
 * interrupt must call weir_avr_tick(name).
 */
#define WEIR_AVR_LIMIT_TICK(name, line, clock, ...)                                                                                        \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check, __VA_ARGS__)                                                                              \
    static const weir_limit_config_t name##_config = {__VA_ARGS__};                                                                        \
    static weir_limit_state_t name##_state;                                                                                                \
    WEIR_AVR_DEFINE_TICK_(name, WEIR_AVR_##line, clock)

#define WEIR_AVR_DEFINE_TICK_(name, line, clock)                                                                                           \
    WEIR_INLINE void name##_handler(void);                                                                                                 \
    WEIR_INLINE void name##_start(void)                                                                                                    \
    {                                                                                                                                      \
        name##_check();                                                                                                                    \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            weir_limit_step_t step = weir_limit_start_with(&name##_state, &name##_config, (clock));                                        \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_disable(void)                                                                                                  \
    {                                                                                                                                      \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            weir_limit_step_t step = weir_limit_user_disable(&name##_state);                                                               \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_enable(void)                                                                                                   \
    {                                                                                                                                      \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            weir_limit_step_t step = weir_limit_user_enable(&name##_state, (clock));                                                       \
            WEIR_AVR_PERFORM_LINE(line, step);                                                                                             \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE weir_limit_state_t *name##_state_of(void)                                                                                  \
    {                                                                                                                                      \
        return &name##_state;                                                                                                              \
    }                                                                                                                                      \
    ISR(WEIR_AVR_OF(line, VECTOR))                                                                                                         \
    {                                                                                                                                      \
        weir_ticks_t now = (clock);                                                                                                        \
        weir_limit_step_t step = weir_limit_request_with(&name##_state, &name##_config, now, false);                                       \
        WEIR_AVR_PERFORM_LINE(line, step);                                                                                                 \
        WEIR_AVR_SERVE(step, name##_handler(), name##_state, now, (clock));                                                                \
    }                                                                                                                                      \
    WEIR_INLINE void name##_on_tick(void)                                                                                                  \
    {                                                                                                                                      \
        weir_ticks_t now = (clock);                                                                                                        \
        weir_limit_step_t step = weir_limit_tick_with(&name##_state, &name##_config, now, WEIR_AVR_PENDING(line));                         \
        WEIR_AVR_PERFORM_LINE(line, step);                                                                                                 \
        WEIR_AVR_SERVE(step, name##_handler(), name##_state, now, (clock));                                                                \
    }                                                                                                                                      \
    WEIR_INLINE void name##_handler(void)

/** Call this in the interrupt of the existing tick. */
#define weir_avr_tick(name) name##_on_tick()

#endif
