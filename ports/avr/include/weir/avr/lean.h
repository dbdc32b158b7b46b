/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The policies that most sources need, in as few instructions as C allows. This is the limit
 * machine of core/, specialised to a constant configuration. The timer's compare register holds
 * `due`, and its compare flag holds "`due` has passed".
 *
 * Same states, same steps: the tests hold these against core/ event by event. What is special here
 * is only where the state lives:
 *   weir_limit_state_t.due    in the compare register, while masked; else the register holds due +
 *                             slack, when the past stops to matter
 *   "elapsed"                 in the compare flag, which cannot wrap: an idle source needs no
 *                             ageing
 *   weir_limit_state_t.flags  in RAM, without the record's bits
 */
#ifndef WEIR_AVR_LEAN_H
#define WEIR_AVR_LEAN_H

#include "weir/avr/registers.h"
#include "weir/limit.h"

/**
 * True iff lean.h implements the policy. It is a constant if the configuration is one. Records and
 * changes at run time need the general machine.
 */
#define WEIR_AVR_IS_LEAN(config)                                                                                                           \
    (!WEIR_LIMIT_RECORD && __builtin_constant_p((config).policy) && (config).trigger == WEIR_LIMIT_EDGE &&                                 \
     (((config).policy == WEIR_LIMIT_STRICT && (config).timing != WEIR_LIMIT_ONE_SHOT) ||                                                  \
      ((config).policy != WEIR_LIMIT_OFF && (config).timing == WEIR_LIMIT_LAZY)))

/*
 * From GCC 8 on, the assembler saves r0 and r1 only in interrupts that use them. To test a bit, the
 * compiler would read a register into r0, and it would store zeros from r1. This macro reads into a
 * register that is saved anyway, which makes an interrupt 9 cycles shorter.
 */
#if __GNUC__ >= 8
#define WEIR_AVR_READ(from)                                                                                                                \
    __extension__({                                                                                                                        \
        uint8_t weir_read_ = (from);                                                                                                       \
        __asm__("" : "+d"(weir_read_));                                                                                                    \
        weir_read_;                                                                                                                        \
    })
#define WEIR_AVR_ZERO                                                                                                                      \
    __extension__({                                                                                                                        \
        uint8_t weir_zero_;                                                                                                                \
        __asm__("ldi %0, 0" : "=d"(weir_zero_));                                                                                           \
        weir_zero_;                                                                                                                        \
    })
#else
#define WEIR_AVR_READ(from) (from)
#define WEIR_AVR_ZERO 0
#endif

#define WEIR_AVR_MASK(line) WEIR_AVR_CLEAR(WEIR_AVR_OF(line, ENABLES), WEIR_AVR_OF(line, BIT))
#define WEIR_AVR_UNMASK(line) WEIR_AVR_SET(WEIR_AVR_OF(line, ENABLES), WEIR_AVR_OF(line, BIT))
#define WEIR_AVR_PENDING(line) ((WEIR_AVR_READ(WEIR_AVR_OF(line, FLAGS)) & WEIR_AVR_OF(line, BIT)) != 0)
#define WEIR_AVR_ACK(line) (WEIR_AVR_OF(line, FLAGS) = WEIR_AVR_OF(line, BIT))
#define WEIR_AVR_PASSED(channel) ((WEIR_AVR_READ(WEIR_AVR_OF(channel, FLAGS)) & WEIR_AVR_OF(channel, BIT)) != 0)
#define WEIR_AVR_FORGET(channel) (WEIR_AVR_OF(channel, FLAGS) = WEIR_AVR_OF(channel, BIT))
#define WEIR_AVR_ARM(channel) WEIR_AVR_SET(WEIR_AVR_OF(channel, ENABLES), WEIR_AVR_OF(channel, BIT))
#define WEIR_AVR_DISARM(channel) WEIR_AVR_CLEAR(WEIR_AVR_OF(channel, ENABLES), WEIR_AVR_OF(channel, BIT))
#define WEIR_AVR_NOW(channel) WEIR_AVR_OF(channel, COUNT)
#define WEIR_AVR_AT(channel) WEIR_AVR_OF(channel, COMPARE)

/**
 * True iff all instants of a limiter lie within 240 ticks. One byte of the timer then suffices to
 * compare them.
 */
#define WEIR_AVR_IS_SHORT(config) ((uint32_t) (config).burst * (config).interval <= 240u)
/**
 * True iff an instant one interval from now is still ahead after it has been written and the flag
 * has been cleared, at any prescaler: see WEIR_AVR_AT_IN. With a shorter interval the code checks
 * whether the instant has passed. `weir generate` accepts no shorter interval, because such
 * interrupts take longer than the board's costs state.
 */
#define WEIR_AVR_IS_LONG(config) ((config).interval - (config).lag >= 16u)

/*
 * Sets the channel's match `ahead` ticks from now, and clears the flag of an earlier match. With
 * any compiler, at most 13 cycles pass from reading the counter to clearing the flag. If `ahead`
 * ticks are longer than that, the match is still ahead then: it is neither missed for a whole wrap
 * nor cleared. The registers of TIMER1C and timer 3 are beyond the reach of `in` and `out`.
 */
#define WEIR_AVR_AT_IN(channel, ahead)                                                                                                     \
    do {                                                                                                                                   \
        weir_ticks_t weir_in_;                                                                                                             \
        if (_SFR_IO_REG_P(WEIR_AVR_NOW(channel)) && _SFR_IO_REG_P(WEIR_AVR_AT(channel)) && _SFR_IO_REG_P(WEIR_AVR_OF(channel, FLAGS))) {   \
            WEIR_AVR_AT_IN_(channel, ahead, "in %A0, %i1\n in %B0, %i1+1", "out %i2+1, %B0\n out %i2, %A0",                                \
                            "\n ldi %A0, %4\n out %i5, %A0");                                                                              \
        } else {                                                                                                                           \
            WEIR_AVR_AT_IN_(channel, ahead, "lds %A0, %1\n lds %B0, %1+1", "sts %2+1, %B0\n sts %2, %A0", "\n ldi %A0, %4\n sts %5, %A0"); \
        }                                                                                                                                  \
    } while (0)
#define WEIR_AVR_AT_IN_(channel, ahead, read, write, forget)                                                                               \
    __asm__ volatile(read "\n subi %A0, lo8(-(%3))\n sbci %B0, hi8(-(%3))\n" write forget                                                  \
                     : "=&d"(weir_in_)                                                                                                     \
                     : "n"(_SFR_MEM_ADDR(WEIR_AVR_NOW(channel))), "n"(_SFR_MEM_ADDR(WEIR_AVR_AT(channel))), "n"(ahead),                    \
                       "n"(WEIR_AVR_OF(channel, BIT)), "n"(_SFR_MEM_ADDR(WEIR_AVR_OF(channel, FLAGS)))                                     \
                     : "memory")

/*
 * True iff the channel's instant `at` has passed or is reached right now, so that the timer may
 * have missed the match. Instants lie less than half the timer's range away. Before GCC 8 every
 * interrupt saves the temporary register, so it costs nothing here. Later compilers save it only if
 * it is used; then two registers that the handler saves anyway are cheaper, and the instant is read
 * back.
 */
#define WEIR_AVR_IS_REACHED(channel, at)                                                                                                   \
    __extension__({                                                                                                                        \
        __label__ weir_reached_;                                                                                                           \
        bool weir_is_reached_ = true;                                                                                                      \
        (void) (at);                                                                                                                       \
        if (_SFR_IO_REG_P(WEIR_AVR_NOW(channel)) && _SFR_IO_REG_P(WEIR_AVR_AT(channel))) {                                                 \
            WEIR_AVR_IS_REACHED_(channel, at, "in", "%i");                                                                                 \
        } else {                                                                                                                           \
            WEIR_AVR_IS_REACHED_(channel, at, "lds", "%");                                                                                 \
        }                                                                                                                                  \
        weir_is_reached_ = false;                                                                                                          \
    weir_reached_:                                                                                                                         \
        weir_is_reached_;                                                                                                                  \
    })
#if __GNUC__ >= 8
#define WEIR_AVR_IS_REACHED_(channel, at, read, of)                                                                                        \
    __asm__ goto(read " r24, " of "0\n" read " r25, " of "1\n cp r24, r25\n" read " r24, " of "0+1\n" read " r25, " of "1+1\n"             \
                      " cpc r24, r25\n brmi .+2\n rjmp %l[weir_reached_]"                                                                  \
                 :                                                                                                                         \
                 : "n"(_SFR_MEM_ADDR(WEIR_AVR_NOW(channel))), "n"(_SFR_MEM_ADDR(WEIR_AVR_AT(channel)))                                     \
                 : "r24", "r25"                                                                                                            \
                 : weir_reached_)
#else
#define WEIR_AVR_IS_REACHED_(channel, at, read, of)                                                                                        \
    __asm__ goto(read " __tmp_reg__, " of "0\n cp __tmp_reg__, %A1\n" read " __tmp_reg__, " of "0+1\n cpc __tmp_reg__, %B1\n"              \
                      " brmi .+2\n rjmp %l[weir_reached_]"                                                                                 \
                 :                                                                                                                         \
                 : "n"(_SFR_MEM_ADDR(WEIR_AVR_NOW(channel))), "r"(at)                                                                      \
                 :                                                                                                                         \
                 : weir_reached_)
#endif

/**
 * Sets the match so that it comes at once, and only once. Three ticks are longer than 13 cycles
 * except at prescaler 1, where the match may be missed; 16 ticks are longer at any prescaler. If
 * `is_short`, three ticks are tried first.
 */
#define WEIR_AVR_AT_ONCE(channel, is_short)                                                                                                \
    do {                                                                                                                                   \
        if (is_short) {                                                                                                                    \
            WEIR_AVR_AT_IN(channel, 3);                                                                                                    \
            weir_ticks_t weir_three_ = WEIR_AVR_AT(channel);                                                                               \
            if (!WEIR_AVR_IS_REACHED(channel, weir_three_) || WEIR_AVR_PASSED(channel)) {                                                  \
                break;                                                                                                                     \
            }                                                                                                                              \
        }                                                                                                                                  \
        WEIR_AVR_AT_IN(channel, 16);                                                                                                       \
    } while (0)

/**
 * Sets the channel's match to an instant that may have passed, or may be reached while the register
 * is being written. In these cases the match comes a little later instead of a whole wrap later,
 * and only once. (The flag is cleared before the check, so that a match after the check is never
 * cleared.)
 */
#define WEIR_AVR_AT_SOON(channel, is_short, instant)                                                                                       \
    do {                                                                                                                                   \
        WEIR_AVR_AT(channel) = (weir_ticks_t) (instant);                                                                                   \
        WEIR_AVR_FORGET(channel);                                                                                                          \
        weir_ticks_t weir_at_ = WEIR_AVR_AT(channel);                                                                                      \
        if (WEIR_UNLIKELY(WEIR_AVR_IS_REACHED(channel, weir_at_))) {                                                                       \
            WEIR_AVR_AT_ONCE(channel, is_short);                                                                                           \
        }                                                                                                                                  \
    } while (0)
/**
 * Sets the match one interval from now, and clears the flag even in the channel's own interrupt: an
 * interrupt that is taken a whole wrap late may find a second match before the register has
 * changed.
 */
#define WEIR_AVR_AT_INTERVAL(channel, config, lag)                                                                                         \
    do {                                                                                                                                   \
        if (WEIR_AVR_IS_LONG(config)) {                                                                                                    \
            WEIR_AVR_AT_IN(channel, (config).interval - (lag));                                                                            \
        } else {                                                                                                                           \
            WEIR_AVR_AT_SOON(channel, WEIR_AVR_IS_SHORT(config), WEIR_AVR_NOW(channel) + (config).interval - (lag));                       \
        }                                                                                                                                  \
    } while (0)

/**
 * The interval has ended while the user has the source off. A held request then waits for the user;
 * without a held request the limiter no longer masks the source.
 */
#define WEIR_AVR_LEAN_USER_OFF(channel, state, aged)                                                                                       \
    do {                                                                                                                                   \
        if (((state).flags & WEIR_LIMIT_IS_HELD) != 0) {                                                                                   \
            (state).flags |= WEIR_LIMIT_IS_WAITING;                                                                                        \
        } else {                                                                                                                           \
            (state).flags = WEIR_LIMIT_IS_USER_OFF | (aged);                                                                               \
        }                                                                                                                                  \
        WEIR_AVR_DISARM(channel);                                                                                                          \
    } while (0)

/**
 * The user switches the source on. The limiter has the source masked iff the channel's interrupt is
 * enabled or a request waits. A waiting request is served at once from the channel's interrupt.
 */
#define WEIR_AVR_LEAN_ENABLE(line, channel, config, state)                                                                                 \
    do {                                                                                                                                   \
        (state).flags &= (uint8_t) ~WEIR_LIMIT_IS_USER_OFF;                                                                                \
        if (((state).flags & WEIR_LIMIT_IS_WAITING) != 0) {                                                                                \
            (state).flags &= (uint8_t) ~WEIR_LIMIT_IS_WAITING;                                                                             \
            WEIR_AVR_AT_ONCE(channel, true);                                                                                               \
            WEIR_AVR_ARM(channel);                                                                                                         \
        } else if ((WEIR_AVR_OF(channel, ENABLES) & WEIR_AVR_OF(channel, BIT)) == 0) {                                                     \
            WEIR_AVR_UNMASK(line);                                                                                                         \
        }                                                                                                                                  \
    } while (0)

/* ------------------------------------------------------------- strict, eager (regehr2005 §3.2) */

#define WEIR_AVR_STRICT_EAGER_REQUEST(line, channel, config, state, serve)                                                                 \
    do {                                                                                                                                   \
        WEIR_AVR_MASK(line);                                                                                                               \
        WEIR_AVR_AT_INTERVAL(channel, config, (config).lag);                                                                               \
        WEIR_AVR_ARM(channel);                                                                                                             \
        serve;                                                                                                                             \
    } while (0)

#define WEIR_AVR_STRICT_EAGER_EXPIRED(line, channel, config, state, serve)                                                                 \
    do {                                                                                                                                   \
        if (WEIR_AVR_PENDING(line) && ((state).flags & WEIR_LIMIT_IS_USER_OFF) == 0) {                                                     \
            WEIR_AVR_AT_INTERVAL(channel, config, (config).lag);                                                                           \
            WEIR_AVR_ACK(line);                                                                                                            \
            serve;                                                                                                                         \
        } else {                                                                                                                           \
            WEIR_AVR_DISARM(channel);                                                                                                      \
            if (((state).flags & WEIR_LIMIT_IS_USER_OFF) == 0) {                                                                           \
                WEIR_AVR_UNMASK(line);                                                                                                     \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

/* -------------------------------------------------------------------------------- strict, lazy */

#define WEIR_AVR_STRICT_LAZY_REQUEST(line, channel, config, state, serve)                                                                  \
    do {                                                                                                                                   \
        if (WEIR_AVR_PASSED(channel) || ((state).flags & WEIR_LIMIT_IS_AGED) != 0) {                                                       \
            WEIR_AVR_AT_INTERVAL(channel, config, 0u);                                                                                     \
            (state).flags = WEIR_AVR_ZERO;                                                                                                 \
            serve;                                                                                                                         \
        } else {                                                                                                                           \
            (state).flags |= WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_HELD;                                                                    \
            WEIR_AVR_MASK(line);                                                                                                           \
            WEIR_AVR_ARM(channel);                                                                                                         \
        }                                                                                                                                  \
    } while (0)

/*
 * Sets the next instant one interval after the nominal one, or one interval from now if that
 * instant has passed. The flag is not cleared: after a whole wrap a second match serves one request
 * more. That is within J, and a bucket is full by then.
 */
#define WEIR_AVR_AT_NEXT(channel, config)                                                                                                  \
    do {                                                                                                                                   \
        weir_ticks_t weir_next_ = (weir_ticks_t) (WEIR_AVR_AT(channel) + (config).interval);                                               \
        WEIR_AVR_AT(channel) = weir_next_;                                                                                                 \
        if (WEIR_UNLIKELY(WEIR_AVR_IS_REACHED(channel, weir_next_))) {                                                                     \
            WEIR_AVR_AT_INTERVAL(channel, config, 0u);                                                                                     \
        }                                                                                                                                  \
    } while (0)

/* strict and paced differ only in where the next interval ends. */
#define WEIR_AVR_SPACED_LAZY_EXPIRED(line, channel, config, state, serve, next_unmasked, next_masked)                                      \
    do {                                                                                                                                   \
        uint8_t weir_flags_ = (state).flags;                                                                                               \
        if (WEIR_UNLIKELY((weir_flags_ & WEIR_LIMIT_IS_USER_OFF) != 0)) {                                                                  \
            WEIR_AVR_LEAN_USER_OFF(channel, state, WEIR_LIMIT_IS_AGED);                                                                    \
            break;                                                                                                                         \
        }                                                                                                                                  \
        if ((WEIR_AVR_READ(weir_flags_) & WEIR_LIMIT_IS_HELD) == 0) {                                                                      \
            if (!WEIR_AVR_PENDING(line)) {                                                                                                 \
                WEIR_AVR_DISARM(channel);                                                                                                  \
                WEIR_AVR_UNMASK(line);                                                                                                     \
                (state).flags = WEIR_LIMIT_IS_AGED;                                                                                        \
                break;                                                                                                                     \
            }                                                                                                                              \
            /* The source stays masked and its flags are unchanged, because requests keep waiting. */                                      \
            WEIR_AVR_ACK(line);                                                                                                            \
        } else if (weir_flags_ == (WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_HELD | WEIR_LIMIT_IS_SUSTAINED) || WEIR_AVR_PENDING(line)) {       \
            (state).flags = WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_SUSTAINED;                                                                \
        } else {                                                                                                                           \
            WEIR_AVR_DISARM(channel);                                                                                                      \
            WEIR_AVR_UNMASK(line);                                                                                                         \
            (state).flags = WEIR_LIMIT_IS_SUSTAINED;                                                                                       \
            next_unmasked;                                                                                                                 \
            serve;                                                                                                                         \
            break;                                                                                                                         \
        }                                                                                                                                  \
        next_masked;                                                                                                                       \
        serve;                                                                                                                             \
    } while (0)

/*
 * strict: the interval begins at the service. It is shortened by the least latency if an expiry
 * makes the next service, too.
 */
#define WEIR_AVR_STRICT_LAZY_EXPIRED(line, channel, config, state, serve)                                                                  \
    WEIR_AVR_SPACED_LAZY_EXPIRED(line, channel, config, state, serve, WEIR_AVR_AT_INTERVAL(channel, config, 0u),                           \
                                 WEIR_AVR_AT_INTERVAL(channel, config, (config).lag))

/* paced: the interval begins at the nominal instant. */
#define WEIR_AVR_PACED_LAZY_REQUEST(line, channel, config, state, serve) WEIR_AVR_STRICT_LAZY_REQUEST(line, channel, config, state, serve)
#define WEIR_AVR_PACED_LAZY_EXPIRED(line, channel, config, state, serve)                                                                   \
    WEIR_AVR_SPACED_LAZY_EXPIRED(line, channel, config, state, serve, WEIR_AVR_AT_NEXT(channel, config), WEIR_AVR_AT_NEXT(channel, config))

/* -------------------------------------------------------------- bursty, lazy (regehr2005 §3.3) */

/* True iff the count has wrapped: with a burst of 255, the first request too many takes the count
 * to 0. */
#define WEIR_AVR_BURSTY_WRAPPED(config, state) ((config).burst == UINT8_MAX && (state).count == 0)

#define WEIR_AVR_BURSTY_LAZY_REQUEST(line, channel, config, state, serve)                                                                  \
    do {                                                                                                                                   \
        if (++(state).count >= (config).burst || WEIR_AVR_BURSTY_WRAPPED(config, state)) {                                                 \
            if ((state).count > (config).burst || WEIR_AVR_BURSTY_WRAPPED(config, state)) {                                                \
                if (!WEIR_AVR_PASSED(channel)) {                                                                                           \
                    (state).flags = WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_HELD;                                                             \
                    WEIR_AVR_MASK(line);                                                                                                   \
                    WEIR_AVR_ARM(channel);                                                                                                 \
                    break;                                                                                                                 \
                }                                                                                                                          \
                WEIR_AVR_AT_INTERVAL(channel, config, 0u);                                                                                 \
                (state).count = 1;                                                                                                         \
            } else if ((state).flags != WEIR_AVR_ZERO) {                                                                                   \
                /* The last request of a burst after a request that had to wait: mask the source, unless the period is over. */            \
                if (WEIR_AVR_PASSED(channel)) {                                                                                            \
                    (state).flags = WEIR_AVR_ZERO;                                                                                         \
                } else {                                                                                                                   \
                    (state).flags = WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_SUSTAINED;                                                        \
                    WEIR_AVR_MASK(line);                                                                                                   \
                    WEIR_AVR_ARM(channel);                                                                                                 \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
        serve;                                                                                                                             \
    } while (0)

#define WEIR_AVR_BURSTY_LAZY_EXPIRED(line, channel, config, state, serve)                                                                  \
    do {                                                                                                                                   \
        WEIR_AVR_AT_NEXT(channel, config);                                                                                                 \
        uint8_t weir_flags_ = (state).flags;                                                                                               \
        if (WEIR_UNLIKELY((weir_flags_ & WEIR_LIMIT_IS_USER_OFF) != 0)) {                                                                  \
            (state).count = WEIR_AVR_ZERO;                                                                                                 \
            WEIR_AVR_LEAN_USER_OFF(channel, state, 0);                                                                                     \
            break;                                                                                                                         \
        }                                                                                                                                  \
        if ((WEIR_AVR_READ(weir_flags_) & WEIR_LIMIT_IS_HELD) == 0) {                                                                      \
            if (!WEIR_AVR_PENDING(line)) {                                                                                                 \
                (state).count = WEIR_AVR_ZERO;                                                                                             \
                (state).flags = WEIR_AVR_ZERO;                                                                                             \
                WEIR_AVR_DISARM(channel);                                                                                                  \
                WEIR_AVR_UNMASK(line);                                                                                                     \
                break;                                                                                                                     \
            }                                                                                                                              \
            WEIR_AVR_ACK(line);                                                                                                            \
        }                                                                                                                                  \
        (state).count = 1;                                                                                                                 \
        (state).flags = WEIR_LIMIT_IS_SUSTAINED;                                                                                           \
        if ((config).burst > 1) {                                                                                                          \
            WEIR_AVR_DISARM(channel);                                                                                                      \
            WEIR_AVR_UNMASK(line);                                                                                                         \
        }                                                                                                                                  \
        serve;                                                                                                                             \
    } while (0)

/* ----------------------------------------------------- bursty, eager, on a shared timer (§3.5) */

/**
 * True iff a source on a shared timer does not need the general machine. A request in the pending
 * bit interrupts by itself once the source is unmasked.
 */
#define WEIR_AVR_SHARED_IS_LEAN(config) (!WEIR_LIMIT_RECORD && (config).trigger == WEIR_LIMIT_EDGE)

#define WEIR_AVR_SHARED_REQUEST(line, config, state, serve)                                                                                \
    do {                                                                                                                                   \
        if (++(state).count >= (config).burst) {                                                                                           \
            (state).flags = WEIR_LIMIT_IS_MASKED;                                                                                          \
            WEIR_AVR_MASK(line);                                                                                                           \
        }                                                                                                                                  \
        serve;                                                                                                                             \
    } while (0)

#define WEIR_AVR_SHARED_CLEAR(line, state)                                                                                                 \
    do {                                                                                                                                   \
        uint8_t weir_user_ = (state).flags & WEIR_LIMIT_IS_USER_OFF;                                                                       \
        (state).count = WEIR_AVR_ZERO;                                                                                                     \
        (state).flags = weir_user_;                                                                                                        \
        if (weir_user_ == 0) {                                                                                                             \
            WEIR_AVR_UNMASK(line);                                                                                                         \
        }                                                                                                                                  \
    } while (0)

/* -------------------------------------------------------------------------------- bucket, lazy */

#define WEIR_AVR_BUCKET_SLACK(config) ((weir_ticks_t) ((weir_ticks_t) ((config).burst - 1u) * (config).interval))

/*
 * True iff the bucket is empty, that is, it will be full too far ahead for a token to be there. One
 * byte suffices for this if a whole bucket fits into it. A bucket whose instant has just passed
 * counts as full.
 */
#define WEIR_AVR_BUCKET_EMPTY(channel, config)                                                                                             \
    (WEIR_AVR_IS_SHORT(config)                                                                                                             \
         ? (uint8_t) ((uint8_t) (WEIR_AVR_OF(channel, COMPARE_LOW) - WEIR_AVR_OF(channel, COUNT_LOW)) -                                    \
                      (uint8_t) (WEIR_AVR_BUCKET_SLACK(config) + 1u)) < (uint8_t) (240u - WEIR_AVR_BUCKET_SLACK(config))                   \
         : (weir_ticks_t) ((weir_ticks_t) (WEIR_AVR_AT(channel) - WEIR_AVR_NOW(channel)) -                                                 \
                           (weir_ticks_t) (WEIR_AVR_BUCKET_SLACK(config) + 1u)) <                                                          \
               (weir_ticks_t) (WEIR_TICKS_HALF - WEIR_AVR_BUCKET_SLACK(config)))

/*
 * True iff an instant one interval after one that was ahead just now is still ahead once it has
 * been written. At most 40 cycles pass in between. Intervals whose instants are compared in one
 * byte have a prescaler of 8 or more.
 */
#define WEIR_AVR_BUCKET_IS_LONG(config) (WEIR_AVR_IS_LONG(config) && ((config).interval >= 40u || WEIR_AVR_IS_SHORT(config)))
/*
 * The register moves to the instant at which the bucket will be full, about an interval ahead or
 * more.
 */
#define WEIR_AVR_BUCKET_FULL_AT(channel, config, instant)                                                                                  \
    do {                                                                                                                                   \
        if (WEIR_AVR_BUCKET_IS_LONG(config)) {                                                                                             \
            /* The flag may have been set since it was read, so it is cleared only after the register has moved. */                        \
            WEIR_AVR_AT(channel) = (weir_ticks_t) (instant);                                                                               \
            WEIR_AVR_FORGET(channel);                                                                                                      \
        } else {                                                                                                                           \
            WEIR_AVR_AT_SOON(channel, WEIR_AVR_IS_SHORT(config), instant);                                                                 \
        }                                                                                                                                  \
    } while (0)
/* In the channel's own interrupt: no token is taken from the bucket, because the next token has
 * come. */
#define WEIR_AVR_BUCKET_REFILL(channel, config)                                                                                            \
    do {                                                                                                                                   \
        weir_ticks_t weir_full_ = (weir_ticks_t) (WEIR_AVR_AT(channel) + WEIR_AVR_BUCKET_SLACK(config));                                   \
        WEIR_AVR_AT(channel) = weir_full_;                                                                                                 \
        if (WEIR_UNLIKELY(WEIR_AVR_IS_REACHED(channel, weir_full_))) {                                                                     \
            WEIR_AVR_AT_ONCE(channel, WEIR_AVR_IS_SHORT(config));                                                                          \
        }                                                                                                                                  \
    } while (0)
/*
 * The register holds the instant of the next token, which has passed. If the bucket has been full
 * for a while, it lacks only one token.
 */
#define WEIR_AVR_BUCKET_LATE(channel, config)                                                                                              \
    do {                                                                                                                                   \
        weir_ticks_t weir_last_ = (weir_ticks_t) (WEIR_AVR_AT(channel) + WEIR_AVR_BUCKET_SLACK(config) - (config).interval);               \
        WEIR_AVR_AT(channel) = weir_last_;                                                                                                 \
        if (WEIR_AVR_IS_REACHED(channel, weir_last_)) {                                                                                    \
            WEIR_AVR_AT_INTERVAL(channel, config, 0u);                                                                                     \
        } else {                                                                                                                           \
            WEIR_AVR_BUCKET_FULL_AT(channel, config, WEIR_AVR_AT(channel) + (config).interval);                                            \
        }                                                                                                                                  \
    } while (0)

#define WEIR_AVR_BUCKET_LAZY_REQUEST(line, channel, config, state, serve)                                                                  \
    do {                                                                                                                                   \
        if (WEIR_AVR_PASSED(channel)) {                                                                                                    \
            WEIR_AVR_AT_INTERVAL(channel, config, 0u);                                                                                     \
        } else {                                                                                                                           \
            if (WEIR_AVR_BUCKET_EMPTY(channel, config)) {                                                                                  \
                weir_ticks_t weir_due_ = (weir_ticks_t) (WEIR_AVR_AT(channel) - WEIR_AVR_BUCKET_SLACK(config));                            \
                WEIR_AVR_AT(channel) = weir_due_;                                                                                          \
                if (!WEIR_AVR_IS_REACHED(channel, weir_due_)) {                                                                            \
                    (state).flags |= WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_HELD;                                                            \
                    WEIR_AVR_MASK(line);                                                                                                   \
                    WEIR_AVR_ARM(channel);                                                                                                 \
                    break;                                                                                                                 \
                }                                                                                                                          \
                /* The token has come in the meantime. */                                                                                  \
                WEIR_AVR_AT(channel) = (weir_ticks_t) (WEIR_AVR_AT(channel) + WEIR_AVR_BUCKET_SLACK(config));                              \
            }                                                                                                                              \
            WEIR_AVR_BUCKET_FULL_AT(channel, config, WEIR_AVR_AT(channel) + (config).interval);                                            \
        }                                                                                                                                  \
        (state).flags = WEIR_AVR_ZERO;                                                                                                     \
        serve;                                                                                                                             \
    } while (0)

#define WEIR_AVR_BUCKET_LAZY_EXPIRED(line, channel, config, state, serve)                                                                  \
    do {                                                                                                                                   \
        uint8_t weir_flags_ = (state).flags;                                                                                               \
        weir_ticks_t weir_next_;                                                                                                           \
        if (WEIR_UNLIKELY((weir_flags_ & WEIR_LIMIT_IS_USER_OFF) != 0)) {                                                                  \
            WEIR_AVR_LEAN_USER_OFF(channel, state, 0);                                                                                     \
            WEIR_AVR_BUCKET_REFILL(channel, config);                                                                                       \
            break;                                                                                                                         \
        }                                                                                                                                  \
        if ((WEIR_AVR_READ(weir_flags_) & WEIR_LIMIT_IS_HELD) == 0) {                                                                      \
            if (!WEIR_AVR_PENDING(line)) {                                                                                                 \
                WEIR_AVR_DISARM(channel);                                                                                                  \
                WEIR_AVR_UNMASK(line);                                                                                                     \
                (state).flags = WEIR_AVR_ZERO;                                                                                             \
                WEIR_AVR_BUCKET_REFILL(channel, config);                                                                                   \
                break;                                                                                                                     \
            }                                                                                                                              \
            /* The source stays masked and its flags are unchanged, because requests keep waiting. */                                      \
            WEIR_AVR_ACK(line);                                                                                                            \
        } else if (weir_flags_ == (WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_HELD | WEIR_LIMIT_IS_SUSTAINED) || WEIR_AVR_PENDING(line)) {       \
            (state).flags = WEIR_LIMIT_IS_MASKED | WEIR_LIMIT_IS_SUSTAINED;                                                                \
        } else {                                                                                                                           \
            WEIR_AVR_DISARM(channel);                                                                                                      \
            WEIR_AVR_UNMASK(line);                                                                                                         \
            (state).flags = WEIR_LIMIT_IS_SUSTAINED;                                                                                       \
            weir_next_ = (weir_ticks_t) (WEIR_AVR_AT(channel) + (config).interval);                                                        \
            WEIR_AVR_AT(channel) = weir_next_;                                                                                             \
            if (WEIR_UNLIKELY(WEIR_AVR_IS_REACHED(channel, weir_next_))) {                                                                 \
                WEIR_AVR_BUCKET_LATE(channel, config);                                                                                     \
            } else {                                                                                                                       \
                WEIR_AVR_BUCKET_FULL_AT(channel, config, WEIR_AVR_AT(channel) + WEIR_AVR_BUCKET_SLACK(config));                            \
            }                                                                                                                              \
            serve;                                                                                                                         \
            break;                                                                                                                         \
        }                                                                                                                                  \
        weir_next_ = (weir_ticks_t) (WEIR_AVR_AT(channel) + (config).interval);                                                            \
        WEIR_AVR_AT(channel) = weir_next_;                                                                                                 \
        if (WEIR_UNLIKELY(WEIR_AVR_IS_REACHED(channel, weir_next_))) {                                                                     \
            /* The interrupt is so late that the next token has come as well: unmask, with all tokens that have come since. */             \
            (state).flags = WEIR_LIMIT_IS_SUSTAINED;                                                                                       \
            WEIR_AVR_DISARM(channel);                                                                                                      \
            WEIR_AVR_UNMASK(line);                                                                                                         \
            WEIR_AVR_BUCKET_LATE(channel, config);                                                                                         \
        }                                                                                                                                  \
        serve;                                                                                                                             \
    } while (0)

/* ------------------------------------------------------------ dispatch to the configured policy */

#define WEIR_AVR_LEAN(event, line, channel, config, state, serve)                                                                          \
    do {                                                                                                                                   \
        if ((config).policy == WEIR_LIMIT_BURSTY) {                                                                                        \
            WEIR_AVR_BURSTY_LAZY_##event(line, channel, config, state, serve);                                                             \
        } else if ((config).policy == WEIR_LIMIT_BUCKET && (config).burst > 1) {                                                           \
            WEIR_AVR_BUCKET_LAZY_##event(line, channel, config, state, serve);                                                             \
        } else if ((config).policy == WEIR_LIMIT_PACED) {                                                                                  \
            WEIR_AVR_PACED_LAZY_##event(line, channel, config, state, serve);                                                              \
        } else if ((config).timing == WEIR_LIMIT_LAZY) {                                                                                   \
            WEIR_AVR_STRICT_LAZY_##event(line, channel, config, state, serve);                                                             \
        } else {                                                                                                                           \
            WEIR_AVR_STRICT_EAGER_##event(line, channel, config, state, serve);                                                            \
        }                                                                                                                                  \
    } while (0)

/** Handles the line's interrupt. `serve` is the statement that runs the handler. */
#define WEIR_AVR_LEAN_REQUEST(line, channel, config, state, serve) WEIR_AVR_LEAN(REQUEST, line, channel, config, state, serve)
/** Handles the channel's interrupt. */
#define WEIR_AVR_LEAN_EXPIRED(line, channel, config, state, serve) WEIR_AVR_LEAN(EXPIRED, line, channel, config, state, serve)

#endif
