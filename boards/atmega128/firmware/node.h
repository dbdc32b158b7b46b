/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The common part of the firmware of regehr2005 §6: external lines with rising edges, a handler
 * that counts and works, and a background loop that counts.
 *
 * NODE_WORK     cycles of work in the handler (§6.2: 0, §6.3: 250)
 * NODE_SOURCES  lines in use, INT0 upwards (1 to 3)
 * NODE_SLEEP    the background sleeps instead of counting
 * NODE_MARK     a compare register that nobody uses: the handler does not count, but writes it,
 *               which a trace of the board shows, and takes 102 cycles
 *               without any register of the processor
 * NODE_BLOCK    cycles for which the handler of INT0, which is not limited, makes everybody wait;
 *               NODE_LINE is another line then
 */
#ifndef NODE_H
#define NODE_H

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>

#ifndef NODE_WORK
#define NODE_WORK 0
#endif
#ifndef NODE_SOURCES
#define NODE_SOURCES 1
#endif

/** The number of turns of the background loop, whose rate of progress §6.1 observes. */
extern volatile uint32_t progress;
/** The number of runs of the handler, which is the number of requests served, modulo 2^16. */
extern volatile uint16_t handled;

#ifdef NODE_MARK
/*
 * The instructions are unrolled instead of being in a loop, so that the compiler knows their
 * length: branches across a handler of more than 63 instructions are longer.
 */
#define NODE_TEN(text) text text text text text text text text text text

/*
 * A handler of 102 cycles that needs only registers that are saved for any handler. So the rest of
 * its interrupt's time is the cost of the limiter or of the interrupt itself. From GCC 8 on, the
 * assembler saves SREG, r0 and r1 only if they are used. The comparison uses all three, so that the
 * costs of an interrupt hold for every handler.
 */
static inline __attribute__((always_inline)) void node_handle(void)
{
    __asm__ volatile("out %0, __zero_reg__\n cp __tmp_reg__, __zero_reg__\n" NODE_TEN(NODE_TEN("nop\n"))::"I"(_SFR_IO_ADDR(NODE_MARK)));
}
#else
/**
 * The work of the handler for one request: the minimum that lets an observer see that the request
 * was served, and NODE_WORK cycles.
 */
static inline __attribute__((always_inline)) void node_handle(void)
{
    handled++;
    __builtin_avr_delay_cycles(NODE_WORK);
}
#endif

/**
 * Enables the lines, or starts their limiters; each policy has its own function. Before this call,
 * timer 1 is stopped and every line is masked.
 */
void node_start(void);

#endif
