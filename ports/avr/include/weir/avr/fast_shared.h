/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The `fast` flavour for several sources on one timer (regehr2005 §3.5). The lines are INT0 to
 * INT3. The timer is channel A of a 16-bit timer, which restarts at each match.
 *
 *   r2  SREG while an entry runs        r4, r6, r7, r8  requests left of INT0, INT1, INT2, INT3
 *   r3  scratch                         r5              EIMSK while nothing is masked: the user's bits
 *
 * The interrupt that clears the counts touches no other register and not SREG. It takes two
 * instructions per source, and one that unmasks all sources.
 */
#ifndef WEIR_AVR_FAST_SHARED_H
#define WEIR_AVR_FAST_SHARED_H

#include "weir/avr/fast.h"

#define WEIR_FAST_LEFT_WEIR_AVR_INT0 "r4"
#define WEIR_FAST_LEFT_WEIR_AVR_INT1 "r6"
#define WEIR_FAST_LEFT_WEIR_AVR_INT2 "r7"
#define WEIR_FAST_LEFT_WEIR_AVR_INT3 "r8"

#define WEIR_FAST_TEXT_(x) #x
#define WEIR_FAST_TEXT(x) WEIR_FAST_TEXT_(x)

/**
 * Defines a bursty source whose count the shared timer clears, as in weir/avr/c.h. The body of the
 * handler follows.
 */
#define WEIR_AVR_LIMIT_SHARED(name, line, channel, ...)                                                                                    \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check_shared, .policy = WEIR_LIMIT_BURSTY, .timing = WEIR_LIMIT_EAGER, __VA_ARGS__)              \
    static const weir_limit_config_t name##_config = {.policy = WEIR_LIMIT_BURSTY, .timing = WEIR_LIMIT_EAGER, __VA_ARGS__};               \
    static uint8_t name##_burst;                                                                                                           \
    WEIR_AVR_DEFINE_FAST_SHARED_(name, WEIR_AVR_##line, WEIR_FAST_LEFT_WEIR_AVR_##line)

#define WEIR_AVR_DEFINE_FAST_SHARED_(name, line, left)                                                                                     \
    __attribute__((naked, used)) static void name##_entry(void)                                                                            \
    {                                                                                                                                      \
        __asm__ volatile(                                                                                                                  \
            ".pushsection .text.weir_" #name ", \"ax\", @progbits\n.subsection 0\n"                                                        \
            "1: push r24\n  in r24, %[eimsk]\n  andi r24, %[others]\n  out %[eimsk], r24\n  pop r24\n"                                     \
            "  rjmp 2f\n"                                                                                                                  \
            ".global " WEIR_FAST_TEXT(WEIR_AVR_OF(line, VECTOR)) "\n" WEIR_FAST_TEXT(WEIR_AVR_OF(line, VECTOR)) ":\n"                      \
                                                                                                                "  in r2, %[sreg]\n"       \
                                                                                                                "  dec " left "\n"         \
                                                                                                                "  breq 1b\n"              \
                                                                                                                "2: out %[sreg], r2\n"     \
                                                                                                                ".popsection\n"            \
            :                                                                                                                              \
            : [sreg] "I"(_SFR_IO_ADDR(SREG)), [eimsk] "I"(_SFR_IO_ADDR(EIMSK)), [others] "n"(0xff ^ WEIR_AVR_OF(line, BIT)));              \
    }                                                                                                                                      \
    WEIR_INLINE void name##_start(void)                                                                                                    \
    {                                                                                                                                      \
        name##_check();                                                                                                                    \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            name##_burst = name##_config.burst;                                                                                            \
            WEIR_FAST_SET(left, name##_burst);                                                                                             \
            WEIR_FAST_SET("r5", WEIR_FAST_GET("r5") | EIMSK | WEIR_AVR_OF(line, BIT));                                                     \
            WEIR_AVR_UNMASK(line);                                                                                                         \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_disable(void)                                                                                                  \
    {                                                                                                                                      \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            WEIR_FAST_SET("r5", WEIR_FAST_GET("r5") & ~WEIR_AVR_OF(line, BIT));                                                            \
            WEIR_AVR_MASK(line);                                                                                                           \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_enable(void)                                                                                                   \
    {                                                                                                                                      \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            WEIR_FAST_SET("r5", WEIR_FAST_GET("r5") | WEIR_AVR_OF(line, BIT));                                                             \
            if (WEIR_FAST_GET(left) != 0) {                                                                                                \
                WEIR_AVR_UNMASK(line);                                                                                                     \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    WEIR_INLINE void name##_clear(void)                                                                                                    \
    {                                                                                                                                      \
        __asm__ volatile("lds " left ", %[burst]" ::[burst] "i"(&name##_burst));                                                           \
    }                                                                                                                                      \
    __attribute__((signal, used, noinline,                                                                                                 \
                   section(".text.weir_" #name ",\"ax\",@progbits\n\t.subsection 1 ;"))) void __vector_weir_fast_##name(void)

/**
 * Defines the shared timer, whose body clears the counts of its sources, as in weir/avr/c.h. The
 * body may do nothing else.
 */
#define WEIR_AVR_SHARED_TIMER(channel, period) WEIR_AVR_FAST_SHARED_TIMER_(WEIR_AVR_##channel, period)
#define WEIR_AVR_FAST_SHARED_TIMER_(channel, period)                                                                                       \
    uint8_t weir_fast_off;                                                                                                                 \
    uint8_t weir_fast_off_in_r6;                                                                                                           \
    /* Registers have no defined value at reset. This code makes sure that no source is enabled before the first start. */                 \
    __attribute__((naked, used, section(".init3"))) static void weir_avr_shared_reset(void)                                                \
    {                                                                                                                                      \
        __asm__ volatile("clr r5");                                                                                                        \
    }                                                                                                                                      \
    WEIR_INLINE void weir_avr_shared_body(void);                                                                                           \
    WEIR_INLINE void weir_avr_shared_start(void)                                                                                           \
    {                                                                                                                                      \
        WEIR_AVR_CHECK_PERIOD(period);                                                                                                     \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                  \
        {                                                                                                                                  \
            WEIR_AVR_AT(channel) = (uint16_t) ((period) - 1u);                                                                             \
            WEIR_AVR_NOW(channel) = 0xffffu; /* what is written cannot match: not even a period of one tick is missed */                   \
            WEIR_AVR_OF(channel, CONTROL) |= WEIR_AVR_OF(channel, CLEAR_ON_MATCH);                                                         \
            WEIR_AVR_FORGET(channel);                                                                                                      \
            WEIR_AVR_ARM(channel);                                                                                                         \
        }                                                                                                                                  \
    }                                                                                                                                      \
    ISR(WEIR_AVR_OF(channel, VECTOR), ISR_NAKED)                                                                                           \
    {                                                                                                                                      \
        weir_avr_shared_body();                                                                                                            \
        __asm__ volatile("out %[eimsk], r5\n\treti" ::[eimsk] "I"(_SFR_IO_ADDR(EIMSK)));                                                   \
    }                                                                                                                                      \
    WEIR_INLINE void weir_avr_shared_body(void)

/** Clears the count of one source. Call it in the body of the shared timer. */
#define weir_avr_clear(name) name##_clear()
/** Starts the shared timer's interrupts; call it once, after the sources. */
#define weir_avr_start_shared() weir_avr_shared_start()

#endif
