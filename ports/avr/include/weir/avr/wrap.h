/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The `c` flavour around an existing interrupt function that ends in reti, such as a vendor's in a
 * library. All call-used registers are saved around the limiter's decision. Then the function is
 * entered as if the interrupt had called it directly.
 *
 * The library's handler keeps its code; only its name changes:
 *     avr-objcopy --redefine-sym __vector_1=vendor_int0 vendor.o
 */
#ifndef WEIR_AVR_WRAP_H
#define WEIR_AVR_WRAP_H

#include "weir/avr/c.h"

#define WEIR_AVR_TEXT_(x) #x
#define WEIR_AVR_TEXT(x) WEIR_AVR_TEXT_(x)

/* Saves the call-used registers of avr-gcc's ABI, and SREG. */
#define WEIR_AVR_SAVE                                                                                                                      \
    "push r0\n in r0, __SREG__\n push r0\n push r1\n clr r1\n push r18\n push r19\n push r20\n push r21\n push r22\n push r23\n push "     \
    "r24\n"                                                                                                                                \
    " push r25\n push r26\n push r27\n push r30\n push r31\n"
#define WEIR_AVR_RESTORE                                                                                                                   \
    "pop r31\n pop r30\n pop r27\n pop r26\n pop r25\n pop r24\n pop r23\n pop r22\n pop r21\n pop r20\n pop r19\n pop r18\n pop r1\n"     \
    " pop r0\n out __SREG__, r0\n pop r0\n"

/*
 * Runs `decide` and, iff it returns true, the handler. Both find the registers as they were when
 * the interrupt was taken.
 */
#define WEIR_AVR_ENTER(vector, decide, handler)                                                                                            \
    ISR(vector, ISR_NAKED)                                                                                                                 \
    {                                                                                                                                      \
        __asm__ volatile(WEIR_AVR_SAVE "call " #decide "\n tst r24\n breq 1f\n" WEIR_AVR_RESTORE "jmp " #handler "\n"                      \
                                       "1: " WEIR_AVR_RESTORE "reti");                                                                     \
    }

/**
 * Limits the interrupt function `handler` on `line` with the compare channel `channel`, like
 * WEIR_AVR_LIMIT. No body follows.
 */
#define WEIR_AVR_WRAP(name, line, channel, handler, ...)                                                                                   \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check, __VA_ARGS__)                                                                              \
    static const weir_limit_config_t name##_config = {__VA_ARGS__};                                                                        \
    static weir_limit_state_t name##_state;                                                                                                \
    WEIR_AVR_DEFINE_WRAP_(name, name##_config, name##_state, WEIR_AVR_##line, WEIR_AVR_##channel, handler)

#define WEIR_AVR_DEFINE_WRAP_(name, config, state, line, channel, handler)                                                                 \
    WEIR_AVR_DEFINE_USER_(name, config, state, line, channel, true)                                                                        \
    __attribute__((noinline, used)) bool name##_request(void)                                                                              \
    {                                                                                                                                      \
        weir_limit_step_t step = weir_limit_request_with(&(state), &(config), WEIR_AVR_NOW(channel), WEIR_AVR_PASSED(channel));            \
        WEIR_AVR_PERFORM_LINE(line, step);                                                                                                 \
        WEIR_AVR_PERFORM_CHANNEL(channel, WEIR_AVR_IS_SHORT(config), step, WEIR_AVR_WATCHES_DUE(config));                                  \
        return step.serve;                                                                                                                 \
    }                                                                                                                                      \
    __attribute__((noinline, used)) bool name##_expired(void)                                                                              \
    {                                                                                                                                      \
        weir_limit_step_t step = weir_limit_expired_with(&(state), &(config), WEIR_AVR_NOW(channel), WEIR_AVR_PENDING(line));              \
        WEIR_AVR_PERFORM_LINE(line, step);                                                                                                 \
        WEIR_AVR_PERFORM_EXPIRED(channel, WEIR_AVR_IS_SHORT(config), step);                                                                \
        return step.serve;                                                                                                                 \
    }                                                                                                                                      \
    WEIR_AVR_ENTER(WEIR_AVR_OF(line, VECTOR), name##_request, handler)                                                                     \
    WEIR_AVR_ENTER(WEIR_AVR_OF(channel, VECTOR), name##_expired, handler)                                                                  \
    struct weir_avr_semicolon

#endif
