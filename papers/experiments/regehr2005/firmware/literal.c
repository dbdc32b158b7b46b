/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The algorithms of regehr2005 §3.2 and §3.3 to the letter, as TinyOS runs them: the interrupt
 * reaches its handler through a call that is opaque to the compiler, so every caller-saved register
 * is saved. Weir is compared with these algorithms.
 *
 * NODE_ALGORITHM  LITERAL_NONE, LITERAL_STRICT, LITERAL_BURSTY, LITERAL_BURSTY_OPTIMISED (the
 *                 timer's interrupt is off below the threshold)
 * NODE_INTERVAL   cycles of the one-shot, or of the clearing timer's period
 * NODE_BURST      the burst size
 *
 * Labels named weir_mark_* cost nothing: Table 2's constants are the cycles from each _begin to its
 * _end.
 */
#include "node.h"

#define LITERAL_NONE 0
#define LITERAL_STRICT 1
#define LITERAL_BURSTY 2
#define LITERAL_BURSTY_OPTIMISED 3

/**
 * A place in the code with a name. The clobber keeps the compiler from moving a store across it.
 */
#define MARK(name) __asm__ volatile(".global weir_mark_" #name "\nweir_mark_" #name ":" ::: "memory")

/** nesC's generated call from the vector to the component: opaque to the optimiser. */
#define TINYOS_SIGNAL static __attribute__((noinline, noclone, used)) void

TINYOS_SIGNAL device_event(void);

ISR(INT0_vect)
{
    device_event();
}

#if NODE_ALGORITHM == LITERAL_NONE

TINYOS_SIGNAL device_event(void)
{
    node_handle();
}

void node_start(void)
{
    EIMSK = 1u << INT0;
}

#else

TINYOS_SIGNAL timer_event(void);

ISR(TIMER1_COMPA_vect)
{
    timer_event();
}

#if NODE_ALGORITHM == LITERAL_STRICT

/*
 * §3.2: clear the enable bit and set a one-shot timer to expire one interarrival time in the
 * future.
 */
TINYOS_SIGNAL device_event(void)
{
    MARK(flip_begin);
    EIMSK &= (uint8_t) ~(1u << INT0);
    MARK(flip_end);
    MARK(setup_begin);
    TCNT1 = 0;
    TCCR1B = (1u << WGM12) | (1u << CS10);
    MARK(setup_end);
    node_handle();
}

/* "When the timer expires, its handler re-enables the interrupt." */
TINYOS_SIGNAL timer_event(void)
{
    TCCR1B = 1u << WGM12; /* a one-shot: stopped until it is set again */
    EIMSK |= 1u << INT0;
}

void node_start(void)
{
    OCR1A = NODE_INTERVAL - 1u;
    TCCR1B = 1u << WGM12;
    TIMSK = 1u << OCIE1A;
    EIMSK = 1u << INT0;
}

#else

static uint8_t count;

/*
 * §3.3: increment a counter and, if it is greater than or equal to the burst size, clear the enable
 * bit.
 */
TINYOS_SIGNAL device_event(void)
{
    MARK(count_begin);
    uint8_t seen = (uint8_t) (count + 1u);
    count = seen;
    if (seen >= NODE_BURST) {
        EIMSK &= (uint8_t) ~(1u << INT0);
#if NODE_ALGORITHM == LITERAL_BURSTY_OPTIMISED
        /*
         * "It is also necessary to clear the timer interrupt's pending bit just before enabling the
         * timer interrupt."
         */
        TIFR = 1u << OCF1A;
        TIMSK |= 1u << OCIE1A;
#endif
    }
    MARK(count_end);
    node_handle();
}

/*
 * "The interrupt counter is cleared by a periodic timer ... This timer also sets the interrupt
 * enable bit if it was previously cleared."
 */
TINYOS_SIGNAL timer_event(void)
{
    MARK(clear_begin);
    count = 0;
    MARK(clear_end);
#if NODE_ALGORITHM == LITERAL_BURSTY_OPTIMISED
    TIMSK &= (uint8_t) ~(1u << OCIE1A);
#endif
    EIMSK |= 1u << INT0;
}

void node_start(void)
{
    OCR1A = NODE_INTERVAL - 1u;
    TCCR1B = (1u << WGM12) | (1u << CS10);
#if NODE_ALGORITHM == LITERAL_BURSTY
    TIMSK = 1u << OCIE1A;
#endif
    EIMSK = 1u << INT0;
}

#endif
#endif
