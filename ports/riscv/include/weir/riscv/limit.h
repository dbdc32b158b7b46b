/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Sources: the limiter of core/, inlined into the machine's only trap.
 *
 *     WEIR_RISCV_LIMIT(button, 0, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_LAZY, .interval = 12500, .burst = 1)
 *     {
 *         presses++;
 *     }
 *
 *     WEIR_RISCV_TRAP(button)
 *
 * The trap (weir/riscv/trap.h) calls four functions of each source in its list. The other functions
 * are for threads.
 */
#ifndef WEIR_RISCV_LIMIT_H
#define WEIR_RISCV_LIMIT_H

#include "weir/limit.h"
#include "weir/riscv/check.h"
#include "weir/riscv/timer.h"

/* True iff the limiter sets the timer at every request. */
#define WEIR_RISCV_ALWAYS_ARMS(config)                                                                                                     \
    ((config).timing == WEIR_LIMIT_EAGER && ((config).policy == WEIR_LIMIT_STRICT || (config).policy == WEIR_LIMIT_PACED))

/*
 * True iff an expiry is due and the user has not switched the source off. This common case is
 * recognised by a single test of the flags.
 */
#define WEIR_RISCV_IS_PLAINLY_DUE(config, state, now)                                                                                      \
    (((config).policy == WEIR_LIMIT_BURSTY && (config).timing != WEIR_LIMIT_LAZY                                                           \
          ? ((state).flags & (WEIR_LIMIT_IS_WAITING | WEIR_LIMIT_IS_USER_OFF)) == 0 && weir_limit_is_armed(&(state), &(config))            \
          : ((state).flags & (WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_WAITING | WEIR_LIMIT_IS_USER_OFF)) == WEIR_LIMIT_IS_MASKED) &&          \
     weir_ticks_reached(now, (state).due))

/*
 * Tells the compiler the values of the flags that the machine will read, so that it leaves out
 * impossible branches. The compiler also omits the store itself, because every step writes the
 * flags. Eager limiters hold no request in software, because no line of this port requests while it
 * is masked.
 */
#define WEIR_RISCV_KNOW_PLAIN(config, state)                                                                                               \
    do {                                                                                                                                   \
        uint8_t weir_not_ = WEIR_LIMIT_IS_USER_OFF | WEIR_LIMIT_IS_WAITING | (WEIR_LIMIT_RECORD ? 0 : WEIR_LIMIT_IS_OVERLOAD) |            \
                            ((config).policy != WEIR_LIMIT_BUCKET && (config).timing != WEIR_LIMIT_LAZY ? WEIR_LIMIT_IS_HELD : 0);         \
        uint8_t weir_set_ = (config).policy == WEIR_LIMIT_BURSTY && (config).timing != WEIR_LIMIT_LAZY ? 0 : WEIR_LIMIT_IS_MASKED;         \
        (state).flags = (uint8_t) (((state).flags & ~weir_not_) | weir_set_);                                                              \
    } while (0)

#define WEIR_RISCV_PERFORM_LINE(line, step)                                                                                                \
    do {                                                                                                                                   \
        if ((step).mask) {                                                                                                                 \
            WEIR_CHIP_MASK(line);                                                                                                          \
        }                                                                                                                                  \
        if ((step).unmask) {                                                                                                               \
            WEIR_CHIP_UNMASK(line);                                                                                                        \
        }                                                                                                                                  \
        if ((step).ack) {                                                                                                                  \
            WEIR_CHIP_ACK(line);                                                                                                           \
        }                                                                                                                                  \
    } while (0)

#define WEIR_RISCV_SERVE(step, run_handler, state, begin)                                                                                  \
    do {                                                                                                                                   \
        if ((step).serve) {                                                                                                                \
            run_handler;                                                                                                                   \
            if (WEIR_LIMIT_RECORD) {                                                                                                       \
                weir_limit_done(&(state), begin, weir_riscv_now());                                                                        \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

/**
 * Sets the timer anew for all sources of the trap, after one of them has changed. Call it with
 * interrupts off. WEIR_RISCV_TRAP defines this function.
 */
void weir_riscv_alarm(void);

/**
 * Limits the line `line` of the chip. The other arguments initialise a weir_limit_config_t, in
 * ticks of mtime. The body of the handler follows. The configuration is a constant, so the compiler
 * keeps only what its policy needs.
 */
#define WEIR_RISCV_LIMIT(name, line, ...)                                                                                                  \
    WEIR_RISCV_DEFINE_CHECK_(name, __VA_ARGS__)                                                                                            \
    static const weir_limit_config_t name##_config = {__VA_ARGS__};                                                                        \
    static weir_limit_state_t name##_state;                                                                                                \
    WEIR_RISCV_DEFINE_(name, name##_config, name##_state, line)

/**
 * Does the same as WEIR_RISCV_LIMIT with the configuration in RAM. weir_riscv_change(name,
 * interval, burst) changes its rate and burst at run time.
 */
#define WEIR_RISCV_LIMIT_TUNABLE(name, line, ...)                                                                                          \
    WEIR_RISCV_DEFINE_CHECK_(name, __VA_ARGS__)                                                                                            \
    static weir_limit_t name##_limit = {.config = {__VA_ARGS__}};                                                                          \
    WEIR_RISCV_DEFINE_CHANGE_(name, line)                                                                                                  \
    WEIR_RISCV_DEFINE_(name, name##_limit.config, name##_limit.state, line)

/**
 * Defines a line without a limit in the same trap. The body of the handler follows. Use it also for
 * lines behind the limiter in silicon.
 */
#define WEIR_RISCV_UNLIMITED(name, line)                                                                                                   \
    WEIR_INLINE void name##_handler(void);                                                                                                 \
    enum { name##_line = (line) };                                                                                                         \
    WEIR_INLINE void name##_request(bool alone)                                                                                            \
    {                                                                                                                                      \
        (void) alone;                                                                                                                      \
        WEIR_CHIP_BEGIN(line);                                                                                                             \
        name##_handler();                                                                                                                  \
        WEIR_CHIP_END(line);                                                                                                               \
    }                                                                                                                                      \
    WEIR_INLINE bool name##_expired_alone(void)                                                                                            \
    {                                                                                                                                      \
        return false;                                                                                                                      \
    }                                                                                                                                      \
    WEIR_INLINE void name##_tick(weir_ticks_t now)                                                                                         \
    {                                                                                                                                      \
        (void) now;                                                                                                                        \
    }                                                                                                                                      \
    WEIR_INLINE bool name##_is_armed(void)                                                                                                 \
    {                                                                                                                                      \
        return false;                                                                                                                      \
    }                                                                                                                                      \
    WEIR_INLINE weir_ticks_t name##_left(weir_ticks_t now)                                                                                 \
    {                                                                                                                                      \
        (void) now;                                                                                                                        \
        return WEIR_RISCV_REST;                                                                                                            \
    }                                                                                                                                      \
    WEIR_INLINE void name##_start(void)                                                                                                    \
    {                                                                                                                                      \
        uint32_t before = weir_riscv_lock();                                                                                               \
        WEIR_CHIP_UNMASK(line);                                                                                                            \
        WEIR_CHIP_CONNECT(line);                                                                                                           \
        weir_riscv_restore(before);                                                                                                        \
    }                                                                                                                                      \
    WEIR_INLINE void name##_handler(void)

/*
 * Defines the functions that the trap calls: for a request; for an expiry, if this source is due;
 * and to ask whether, and in how many ticks, the source wants an expiry. Also defines the line's
 * number.
 */
#define WEIR_RISCV_DEFINE_(name, config, state, line)                                                                                      \
    WEIR_INLINE void name##_handler(void);                                                                                                 \
    enum { name##_line = (line) };                                                                                                         \
    WEIR_INLINE void name##_request(bool alone)                                                                                            \
    {                                                                                                                                      \
        /* Only eager strict and paced limiters set the timer at every request. */                                                         \
        weir_riscv_instant_t now = {0, 0};                                                                                                 \
        if (WEIR_RISCV_ALWAYS_ARMS(config)) {                                                                                              \
            now = weir_riscv_instant();                                                                                                    \
        } else {                                                                                                                           \
            now.low = weir_riscv_now();                                                                                                    \
        }                                                                                                                                  \
        WEIR_CHIP_BEGIN(line);                                                                                                             \
        weir_limit_step_t step = weir_limit_request_with(&(state), &(config), now.low, false);                                             \
        WEIR_RISCV_PERFORM_LINE(line, step);                                                                                               \
        if (step.arm) {                                                                                                                    \
            weir_riscv_instant_t from = WEIR_RISCV_ALWAYS_ARMS(config) ? now : weir_riscv_instant();                                       \
            if (alone) {                                                                                                                   \
                weir_riscv_alarm_at(from, step.at);                                                                                        \
            } else {                                                                                                                       \
                weir_riscv_alarm_by(from, step.at);                                                                                        \
            }                                                                                                                              \
        }                                                                                                                                  \
        WEIR_RISCV_SERVE(step, name##_handler(), state, now.low);                                                                          \
        WEIR_CHIP_END(line);                                                                                                               \
    }                                                                                                                                      \
    WEIR_INLINE bool name##_expired_alone(void)                                                                                            \
    {                                                                                                                                      \
        weir_riscv_instant_t now = weir_riscv_instant();                                                                                   \
        if (WEIR_UNLIKELY(!WEIR_RISCV_IS_PLAINLY_DUE(config, state, now.low))) {                                                           \
            return false;                                                                                                                  \
        }                                                                                                                                  \
        WEIR_RISCV_KNOW_PLAIN(config, state);                                                                                              \
        weir_limit_step_t step = weir_limit_expired_with(&(state), &(config), now.low, WEIR_CHIP_PENDING(line));                           \
        WEIR_RISCV_PERFORM_LINE(line, step);                                                                                               \
        if (step.arm) {                                                                                                                    \
            weir_riscv_alarm_at(now, step.at);                                                                                             \
        } else {                                                                                                                           \
            weir_riscv_alarm_after(now, WEIR_RISCV_REST);                                                                                  \
        }                                                                                                                                  \
        WEIR_RISCV_SERVE(step, name##_handler(), state, now.low);                                                                          \
        return true;                                                                                                                       \
    }                                                                                                                                      \
    WEIR_INLINE void name##_tick(weir_ticks_t now)                                                                                         \
    {                                                                                                                                      \
        weir_limit_step_t step = weir_limit_tick_with(&(state), &(config), now, WEIR_CHIP_PENDING(line));                                  \
        WEIR_RISCV_PERFORM_LINE(line, step);                                                                                               \
        WEIR_RISCV_SERVE(step, name##_handler(), state, now);                                                                              \
    }                                                                                                                                      \
    WEIR_INLINE bool name##_is_armed(void)                                                                                                 \
    {                                                                                                                                      \
        return weir_limit_is_armed(&(state), &(config));                                                                                   \
    }                                                                                                                                      \
    WEIR_INLINE weir_ticks_t name##_left(weir_ticks_t now)                                                                                 \
    {                                                                                                                                      \
        weir_ticks_t due = (state).due;                                                                                                    \
        if (weir_limit_is_released(&(state)) || weir_ticks_reached(now, due)) {                                                            \
            return 0;                                                                                                                      \
        }                                                                                                                                  \
        return weir_ticks_between(now, due);                                                                                               \
    }                                                                                                                                      \
    WEIR_RISCV_DEFINE_USER_(name, config, state, line)                                                                                     \
    WEIR_INLINE void name##_handler(void)

/*
 * Defines the functions that a thread may call, by name: weir_riscv_start(name),
 * weir_riscv_enable(name), weir_riscv_disable(name), weir_riscv_record(name).
 */
#define WEIR_RISCV_DEFINE_USER_(name, config, state, line)                                                                                 \
    WEIR_INLINE void name##_start(void)                                                                                                    \
    {                                                                                                                                      \
        name##_check();                                                                                                                    \
        uint32_t before = weir_riscv_lock();                                                                                               \
        weir_limit_step_t step = weir_limit_start_with(&(state), &(config), weir_riscv_now());                                             \
        WEIR_RISCV_PERFORM_LINE(line, step);                                                                                               \
        WEIR_CHIP_CONNECT(line);                                                                                                           \
        weir_riscv_alarm();                                                                                                                \
        weir_riscv_restore(before);                                                                                                        \
    }                                                                                                                                      \
    WEIR_INLINE void name##_disable(void)                                                                                                  \
    {                                                                                                                                      \
        uint32_t before = weir_riscv_lock();                                                                                               \
        weir_limit_step_t step = weir_limit_user_disable(&(state));                                                                        \
        WEIR_RISCV_PERFORM_LINE(line, step);                                                                                               \
        weir_riscv_restore(before);                                                                                                        \
    }                                                                                                                                      \
    WEIR_INLINE void name##_enable(void)                                                                                                   \
    {                                                                                                                                      \
        uint32_t before = weir_riscv_lock();                                                                                               \
        weir_limit_step_t step = weir_limit_user_enable(&(state), weir_riscv_now());                                                       \
        WEIR_RISCV_PERFORM_LINE(line, step);                                                                                               \
        if (step.arm) {                                                                                                                    \
            weir_riscv_alarm();                                                                                                            \
        }                                                                                                                                  \
        weir_riscv_restore(before);                                                                                                        \
    }                                                                                                                                      \
    WEIR_INLINE weir_limit_state_t *name##_state_of(void)                                                                                  \
    {                                                                                                                                      \
        return &(state);                                                                                                                   \
    }

#define WEIR_RISCV_DEFINE_CHANGE_(name, line)                                                                                              \
    WEIR_INLINE weir_limit_error_t name##_change(weir_ticks_t interval, uint8_t burst)                                                     \
    {                                                                                                                                      \
        weir_limit_config_t to = name##_limit.config;                                                                                      \
        to.interval = interval;                                                                                                            \
        to.burst = burst;                                                                                                                  \
        if (!weir_riscv_can_keep_young(&to)) {                                                                                             \
            return WEIR_LIMIT_BAD_INTERVAL;                                                                                                \
        }                                                                                                                                  \
        weir_limit_step_t step;                                                                                                            \
        uint32_t before = weir_riscv_lock();                                                                                               \
        weir_limit_error_t error = weir_limit_reconfigure(&name##_limit, &to, weir_riscv_now(), &step);                                    \
        WEIR_RISCV_PERFORM_LINE(line, step);                                                                                               \
        weir_riscv_alarm();                                                                                                                \
        weir_riscv_restore(before);                                                                                                        \
        return error;                                                                                                                      \
    }

/**
 * Starts limiting and enables the line's interrupts. Call it after weir_riscv_run(), from a thread
 * or before interrupts are on.
 */
#define weir_riscv_start(name) name##_start()
/**
 * Switches the line on or off on behalf of the user, until the next such call (regehr2005 §4). Use
 * these instead of the line's own enable bit. Any context.
 */
#define weir_riscv_enable(name) name##_enable()
#define weir_riscv_disable(name) name##_disable()
/**
 * Changes the interval (in ticks) and the burst of a WEIR_RISCV_LIMIT_TUNABLE; returns a
 * weir_limit_error_t. Any context.
 */
#define weir_riscv_change(name, interval, burst) name##_change(interval, burst)
/** Copies the record of a source to `*copy` (WEIR_LIMIT_RECORD 1). Any context. */
#define weir_riscv_record(name, copy)                                                                                                      \
    do {                                                                                                                                   \
        uint32_t weir_before_ = weir_riscv_lock();                                                                                         \
        *(copy) = name##_state_of()->record;                                                                                               \
        weir_riscv_restore(weir_before_);                                                                                                  \
    } while (0)

/**
 * The ticks of an interval that admits at most `hertz` if mtime counts `clock` ticks a second:
 * rounded up, so that the limit is never above this rate. For a rate of 0, or one beyond the
 * clock's, the result is 0, which no limiter accepts. For constants: the macro divides in 64 bits.
 */
#define WEIR_RISCV_TICKS(hertz, clock)                                                                                                     \
    ((hertz) > 0 && (hertz) <= (clock) ? ((clock) + 0uLL + (hertz) - 1u) / ((hertz) > 0 ? (hertz) : 1) : 0)

#endif
