/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One limited line whose handler and user calls leave marks in the trace.
 *
 * TEST_LIMIT      WEIR_AVR_LIMIT or WEIR_AVR_LIMIT_TUNABLE
 * TEST_POLICY, TEST_TIMING, TEST_INTERVAL (ticks), TEST_BURST, TEST_LAG   the limit
 * TEST_CHANNEL, TEST_PRESCALER   its timer
 * TEST_MARK       a compare register that nobody else uses
 * TEST_WORK       cycles of work in the handler
 * TEST_OFF        the thread keeps interrupts off for so many cycles, TEST_ON cycles apart
 * TEST_OFF_SWEEP  each time for 3 cycles more than before, up to 765, then from TEST_OFF again
 * TEST_USER       the user switches the line off and on at random: 1 from the thread, 2 from an
 *                 interrupt, 3 both
 * TEST_CHANGES    the limit changes, at random instants, among {TEST_INTERVAL, TEST_BURST} and this
 *                 list of pairs
 */
#include <util/delay_basic.h>

#include "watched.h"

#ifndef TEST_LIMIT
#define TEST_LIMIT WEIR_AVR_LIMIT
#endif
#ifndef TEST_LAG
#define TEST_LAG 0
#endif
#ifndef TEST_WORK
#define TEST_WORK 0
#endif
#ifndef TEST_OFF
#define TEST_OFF 0
#endif
#ifndef TEST_USER
#define TEST_USER 0
#endif

#define LIMIT(define, channel)                                                                                                             \
    define(line, INT0, channel, .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .lag = TEST_LAG,                  \
           .burst = TEST_BURST)
#define RUN(channel) weir_avr_run_timer(channel, TEST_PRESCALER)

LIMIT(TEST_LIMIT, TEST_CHANNEL)
{
    watched_handler(0);
    __builtin_avr_delay_cycles(TEST_WORK);
}

#if TEST_USER || defined(TEST_CHANGES)
static uint16_t dice(void)
{
    static uint16_t state = 1;
    state = (uint16_t) (state >> 1) ^ ((state & 1u) != 0 ? 0xb400u : 0u);
    return state;
}

static void wait_a_while(void)
{
    for (uint8_t turns = (uint8_t) (1u + (dice() & 31u)); turns != 0; turns--) {
        __builtin_avr_delay_cycles(97);
    }
}
#endif

#if TEST_USER
static void toggle(bool on)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        watched_begin(on ? WATCHED_ENABLE : WATCHED_DISABLE);
        if (on) {
            weir_avr_enable(line);
        } else {
            weir_avr_disable(line);
        }
        watched_end();
    }
}
#endif

#if TEST_USER & 2
/* A timer that no limit of this flavour's tests uses. The time of its next interrupt is random. */
#ifdef WEIR_AVR_FAST
#define USER_VECTOR TIMER3_COMPA_vect
#define USER_LATER() (OCR3A = (uint16_t) (TCNT3 + 1009u + (dice() & 1023u)))
#define USER_RUN() (TCCR3B = 1u << CS30, ETIMSK |= 1u << OCIE3A)
#else
#define USER_VECTOR TIMER0_OVF_vect
#define USER_LATER() (TCNT0 = (uint8_t) (dice() & 127u))
#define USER_RUN() (TCCR0 = 1u << CS01, TIMSK |= 1u << TOIE0)
#endif

ISR(USER_VECTOR)
{
    toggle((dice() & 1u) != 0);
    USER_LATER();
}
#endif

#ifdef TEST_CHANGES
static const struct {
    weir_ticks_t interval;
    uint8_t burst;
} changes[] = {{TEST_INTERVAL, TEST_BURST}, TEST_CHANGES};

static void change(void)
{
    uint8_t to = (uint8_t) (dice() % (sizeof changes / sizeof changes[0]));
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        watched_begin((uint8_t) (WATCHED_CHANGE + to));
        if (weir_avr_change(line, changes[to].interval, changes[to].burst) != WEIR_LIMIT_OK) {
            watched_begin(WATCHED_FAILURE);
        }
        watched_end();
    }
}
#endif

int main(void)
{
    EICRA = 0x03; /* rising edges */
    RUN(TEST_CHANNEL);
    watched_begin(WATCHED_START);
    weir_avr_start(line);
    watched_end();
#if TEST_USER & 2
    USER_RUN();
#endif
    sei();
    for (;;) {
        progress++;
#if TEST_OFF
        cli();
        __builtin_avr_delay_cycles(TEST_OFF);
#ifdef TEST_OFF_SWEEP
        static uint8_t turn;
        if (++turn != 0) {
            _delay_loop_1(turn);
        }
#endif
        sei();
        __builtin_avr_delay_cycles(TEST_ON);
#endif
#if TEST_USER & 1
        toggle((dice() & 1u) != 0);
#endif
#ifdef TEST_CHANGES
        change();
#endif
#if TEST_USER || defined(TEST_CHANGES)
        wait_a_while();
#endif
    }
}
