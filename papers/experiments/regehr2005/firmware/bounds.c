/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tasks and handlers of exactly known length behind limits that `weir generate` has written: the
 * program that runs is the one that was analysed. weir_system.h is the header of the case; its
 * sources are called `a`, `b`, `c` and `watched`, and their shared timer `shared`.
 *
 * BOUNDS_CYCLES_a (b, c, watched)  cycles of that handler's body
 * BOUNDS_TASK                      cycles of a job of the main loop; jobs follow each other without
 *                                  a pause
 * BOUNDS_CRITICAL                  in place of jobs: cycles for which the main loop keeps
 *                                  interrupts off, again and again
 * BOUNDS_OFF                       before a job the user switches `a` off, for up to this many
 *                                  cycles at random
 * BOUNDS_CHANGES                   before a job the user changes the limit of `a` to one of these
 *                                  at random: {interval in ticks, burst}, ...
 * BOUNDS_MARK                      a compare register that nobody uses: a job writes 1 to it with
 *                                  its first instruction and 0 with its last
 */
#include "weir_system.h"

#include <avr/io.h>

#ifdef BOUNDS_CHANGES
#undef WEIR_AVR_LIMIT
#define WEIR_AVR_LIMIT WEIR_AVR_LIMIT_TUNABLE
#endif

/*
 * A body of exactly `cycles` cycles, 14 to 778, without a register that the compiler would have to
 * save: such registers would be saved also in the interrupts that do not run the body. `nop`
 * instructions fill what a loop of 3 cycles leaves over. The comparison uses r0 and r1, so that the
 * interrupt saves what the board's costs assume.
 */
#define BODY(cycles)                                                                                                                       \
    {                                                                                                                                      \
        _Static_assert((cycles) >= 14 && (cycles) <= 778, "a body takes 14 to 778 cycles");                                                \
        __asm__ volatile("cp __tmp_reg__, __zero_reg__\n"                                                                                  \
                         "push r24\n"                                                                                                      \
                         "in r24, __SREG__\n"                                                                                              \
                         "push r24\n"                                                                                                      \
                         "ldi r24, %0\n"                                                                                                   \
                         "1: dec r24\n"                                                                                                    \
                         "brne 1b\n"                                                                                                       \
                         ".rept %1\n"                                                                                                      \
                         "nop\n"                                                                                                           \
                         ".endr\n"                                                                                                         \
                         "pop r24\n"                                                                                                       \
                         "out __SREG__, r24\n"                                                                                             \
                         "pop r24\n" ::"M"(((cycles) - 11) / 3),                                                                           \
                         "n"(((cycles) - 11) % 3));                                                                                        \
    }

#ifdef WEIR_SOURCE_a
WEIR_SOURCE_a BODY(BOUNDS_CYCLES_a)
#endif
#ifdef WEIR_SOURCE_b
WEIR_SOURCE_b BODY(BOUNDS_CYCLES_b)
#endif
#ifdef WEIR_SOURCE_c
WEIR_SOURCE_c BODY(BOUNDS_CYCLES_c)
#endif
#ifdef WEIR_SOURCE_watched
WEIR_SOURCE_watched BODY(BOUNDS_CYCLES_watched)
#endif
#ifdef WEIR_TIMER_shared
    WEIR_TIMER_shared;
#endif

#ifdef BOUNDS_CRITICAL
/*
 * The longest instructions of the processor are calls and returns: an interrupt during one waits
 * for its end.
 */
static __attribute__((noinline)) void call(void)
{
    __asm__ volatile("");
}
#endif

#if defined(BOUNDS_OFF) || defined(BOUNDS_CHANGES)
static uint8_t dice(void)
{
    static uint16_t state = 1;
    state = (uint16_t) (state >> 1) ^ ((state & 1u) != 0 ? 0xb400u : 0u);
    return (uint8_t) state;
}
#endif

static inline __attribute__((always_inline)) void user(void)
{
#ifdef BOUNDS_CHANGES
    static const struct {
        weir_ticks_t interval;
        uint8_t burst;
    } changes[] = {BOUNDS_CHANGES};
    uint8_t to = dice() % (sizeof changes / sizeof changes[0]);
    (void) weir_avr_change(a, changes[to].interval, changes[to].burst);
#endif
#ifdef BOUNDS_OFF
    if ((dice() & 1u) != 0) {
        weir_avr_disable(a);
        for (uint8_t turns = dice(); turns != 0; turns--) {
            __builtin_avr_delay_cycles(BOUNDS_OFF / 256);
        }
        weir_avr_enable(a);
    }
#endif
}

int main(void)
{
    EICRA = 0xff; /* rising edges everywhere */
    EICRB = 0xff;
    weir_system_start();
    sei();
    while (!(EIFR & (1u << INTF7))) {
        /*
         * The adversary starts the main loop by an edge on INT7, whose interrupt is never enabled.
         */
    }
    for (;;) {
#ifdef BOUNDS_CRITICAL
        call();
        cli();
        __builtin_avr_delay_cycles(BOUNDS_CRITICAL - 2);
        sei();
        call();
        call();
#else
        user();
        __asm__ volatile("out %0, %1" ::"I"(_SFR_IO_ADDR(BOUNDS_MARK)), "r"((uint8_t) 1));
        __builtin_avr_delay_cycles(BOUNDS_TASK - 2);
        __asm__ volatile("out %0, __zero_reg__" ::"I"(_SFR_IO_ADDR(BOUNDS_MARK)));
#endif
    }
}
