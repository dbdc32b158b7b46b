/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The `fast` flavour: it has the same API, but its interrupt entries are written in assembler.
 *
 * A firmware can have one such line, on an 8-bit timer of its own (TIMER0 or TIMER2). The entries
 * own the registers r2 to r10 in every file of the firmware (-ffixed-r2 to -ffixed-r10), and no
 * library function that uses these registers may run while interrupts are on. The enable bits of
 * the other external lines must be changed through weir_avr_line_on() and weir_avr_line_off(). A
 * bucket on TIMER0 clears ACME and PUD of SFIOR. The flavour has its own vector table (link
 * ports/avr/start/start.S with -nostartfiles).
 *
 *   r2  SREG while an entry runs
 *   r3  scratch
 *   r4  strict, eager: the clock select; strict, lazy: the compare value one interval less the lag
 *       after a restart; bursty: requests left; bucket: the interval
 *   r5  EIMSK while the limiter lets pass: the user's bits
 *   r6  strict, bursty: EIMSK while the limiter masks; bucket: the compare value one interval after
 *       a restart
 *   r7  the timer's enable and flag bit, also the value from which it restarts (strict, eager: 0)
 *   r8  the line's pending bit
 *   r9  strict, eager: the timer's flag bit; lazy: HELD, SUSTAINED and AGED; bucket: HELD,
 *       SUSTAINED and STAY; bursty: the line's pending bit, 0 while a request is held
 *   r10 strict, lazy: the compare value one interval after a restart; bursty: SUSTAINED; bucket:
 *       the next token's instant while the limiter masks, else scratch
 *
 * The entry stands in the vector's own slot. It runs into the handler, an ordinary C interrupt
 * function, with every register and SREG unchanged.
 */
#ifndef WEIR_AVR_FAST_H
#define WEIR_AVR_FAST_H

#include <avr/interrupt.h>
#include <util/atomic.h>

#include "weir/avr/check.h"
#include "weir/avr/lean.h"
#include "weir/avr/registers.h"
#include "weir/limit.h"

register uint8_t weir_fast_r2 __asm__("r2");
register uint8_t weir_fast_r3 __asm__("r3");
register uint8_t weir_fast_r4 __asm__("r4");
register uint8_t weir_fast_r5 __asm__("r5");
register uint8_t weir_fast_r6 __asm__("r6");
register uint8_t weir_fast_r7 __asm__("r7");
register uint8_t weir_fast_r8 __asm__("r8");
register uint8_t weir_fast_r9 __asm__("r9");
register uint8_t weir_fast_r10 __asm__("r10");

/*
 * Reads or writes a register that interrupts change, too, exactly where the program says so. The
 * compiler assumes that it alone changes the variables in these registers, and would reuse an old
 * value.
 */
#define WEIR_FAST_GET(number)                                                                                                              \
    __extension__({                                                                                                                        \
        uint8_t weir_got_;                                                                                                                 \
        __asm__ volatile("mov %0, " number : "=r"(weir_got_));                                                                             \
        weir_got_;                                                                                                                         \
    })
#define WEIR_FAST_SET(number, value) __asm__ volatile("mov " number ", %0" ::"r"((uint8_t) (value)))

/*
 * Bits of r9, or of r10 if the policy is bursty. None of them is a flag bit of timer 0 (1) or timer
 * 2 (7), so that a `mov` from r7 clears them without touching SREG.
 */
#define WEIR_FAST_HELD 3
#define WEIR_FAST_SUSTAINED 4
#define WEIR_FAST_STAY 5
#define WEIR_FAST_AGED 5

/*
 * The kind of the entry, as a number for the assembler. A bursty entry counts down to below 0 in a
 * byte, so its burst is at most 128.
 */
#define WEIR_FAST_STRICT_EAGER 1
#define WEIR_FAST_STRICT_LAZY 2
#define WEIR_FAST_BURSTY 3
#define WEIR_FAST_BUCKET 4
#define WEIR_FAST_KIND(config)                                                                                                             \
    ((config).policy == WEIR_LIMIT_STRICT && (config).timing == WEIR_LIMIT_EAGER  ? WEIR_FAST_STRICT_EAGER                                 \
     : (config).policy == WEIR_LIMIT_STRICT && (config).timing == WEIR_LIMIT_LAZY ? WEIR_FAST_STRICT_LAZY                                  \
     : (config).policy == WEIR_LIMIT_BURSTY && (config).timing == WEIR_LIMIT_LAZY && (config).burst > 1 && (config).burst <= 128           \
         ? WEIR_FAST_BURSTY                                                                                                                \
     : (config).policy == WEIR_LIMIT_BUCKET && (config).timing == WEIR_LIMIT_LAZY && (config).burst > 1 ? WEIR_FAST_BUCKET                 \
                                                                                                        : 0)
/*
 * The longest interval in ticks: the timer has 8 bits, and a bucket looks `burst` intervals ahead.
 */
#define WEIR_FAST_FITS(config)                                                                                                             \
    ((config).interval >= 4 && (config).lag < (config).interval &&                                                                         \
     ((config).policy == WEIR_LIMIT_BUCKET ? (uint32_t) (config).interval * (config).burst <= 240u : (config).interval <= 250u))

void weir_avr_fast_lacks_this_policy(void)
    __attribute__((error("fast has strict (eager or lazy), bursty (lazy, burst 2 to 128) and bucket (lazy, burst 2 or more)")));
void weir_avr_fast_interval_does_not_fit(void) __attribute__((error("the interval must be 4 to 250 ticks of the 8-bit timer, for a bucket "
                                                                    "burst intervals together at most 240: choose another prescaler")));

/* --------------------------------------------------------------------------------- the entries */

/* clang-format off */
#define WEIR_FAST_TABLE                                                                                                                    \
    ".pushsection .vectors, \"ax\", @progbits\n"                                                                                           \
    ".global __vectors\n"                                                                                                                  \
    "__vectors: jmp __init\n"                                                                                                              \
    ".irp v, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34\n"                               \
    ".if \\v == %[line_vector]\n"                                                                                                          \
    "  .if %[kind] == 1\n  out %[eimsk], r6\n  .elseif %[kind] == 3\n  in r2, %[sreg]\n  .else\n  in r3, %[tifr]\n  .endif\n"              \
    "  rjmp weir_fast_request\n"                                                                                                           \
    ".elseif \\v == %[timer_vector]\n"                                                                                                     \
    "  .if %[kind] == 1\n  out %[tccr], r7\n  out %[tifr], r9\n"                                                                           \
    "  .elseif %[kind] == 4\n  in r3, %[eifr]\n  sbrc r3, %[bit]\n"                                                                        \
    "  .else\n  in r2, %[sreg]\n  rjmp weir_fast_expired\n  .endif\n"                                                                      \
    ".elseif \\v == %[timer_vector] + 1 && %[kind] == 1\n"                                                                                 \
    "  out %[eimsk], r5\n  reti\n"                                                                                                         \
    ".elseif \\v == %[timer_vector] + 1 && %[kind] == 4\n"                                                                                 \
    "  rjmp weir_fast_expired\n  rjmp weir_fast_expired_idle\n"                                                                            \
    ".else\n"                                                                                                                              \
    "  .weak __vector_\\v\n  jmp __vector_\\v\n"                                                                                           \
    ".endif\n"                                                                                                                             \
    ".endr\n"                                                                                                                              \
    ".popsection\n"

/*
 * strict, eager (regehr2005 §3.2). The timer stands still until a request starts it. The timer's
 * interrupt also stands in its vector's slot. A request masks the line and starts the timer; the
 * expiry stops the timer and unmasks the line. The expiry clears the timer's flag in between: an
 * interrupt that is taken a whole wrap late may find a second match before it has stopped the
 * timer.
 */
#define WEIR_FAST_STRICT_EAGER_CODE                                                                                                        \
    ".if %[kind] == 1\n"                                                                                                                   \
    "weir_fast_request:\n"                                                                                                                 \
    "  out %[tcnt], r7\n"                                                                                                                  \
    "  out %[tccr], r4\n"                                                                                                                  \
    ".endif\n"

/*
 * strict, lazy. The compare flag says that the interval has passed, and a request that finds the
 * flag set starts the next interval. The lag applies only to intervals that an expiry will end, not
 * to those that a request may end.
 */
#define WEIR_FAST_STRICT_LAZY_CODE                                                                                                         \
    ".if %[kind] == 2\n"                                                                                                                   \
    "9: sbrc r9, %[aged]\n  rjmp 7f\n"                                                                                                     \
    "  out %[eimsk], r6\n" /* too early: mask, hold, have the timer interrupt */                                                           \
    "  in r2, %[sreg]\n"                                                                                                                   \
    "  in r3, %[timsk]\n  or r3, r7\n  out %[timsk], r3\n"                                                                                 \
    "  set\n  bld r9, %[held]\n"                                                                                                           \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  reti\n"                                                                                                                             \
    "weir_fast_expired:\n"                                                                                                                 \
    "  in r3, %[eifr]\n"                                                                                                                   \
    "  sbrs r3, %[bit]\n"                                                                                                                  \
    "  rjmp 3f\n"                                                                                                                          \
    "  sbrs r9, %[held]\n"                                                                                                                 \
    "  out %[eifr], r8\n"                                                                                                                  \
    "2: mov r9, r7\n  set\n  bld r9, %[sustained]\n" /* serve, and stay masked */                                                          \
    ".if %[lag]\n  out %[ocr], r4\n.endif\n" /* the next service is an expiry's, too: due sooner by the lag */                             \
    "  rjmp 5f\n"                                                                                                                          \
    "3: sbrs r9, %[held]\n"                                                                                                                \
    "  rjmp 4f\n"                                                                                                                          \
    "  sbrc r9, %[sustained]\n"                                                                                                            \
    "  rjmp 2b\n"                                                                                                                          \
    "  set\n  bld r9, %[sustained]\n  clt\n  bld r9, %[held]\n" /* serve, and unmask */                                                    \
    "  in r3, %[timsk]\n  eor r3, r7\n  out %[timsk], r3\n"                                                                                \
    "  out %[eimsk], r5\n"                                                                                                                 \
    ".if %[lag]\n  out %[ocr], r10\n.endif\n"                                                                                              \
    "5: out %[tcnt], r7\n"                                                                                                                 \
    "  out %[tifr], r7\n" /* of a second match, if this comes a whole wrap late */                                                         \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "4: mov r9, r7\n  set\n  bld r9, %[aged]\n" /* nothing to serve: unmask; the next request is in time */                                \
    "  in r3, %[timsk]\n  eor r3, r7\n  out %[timsk], r3\n"                                                                                \
    "  out %[eimsk], r5\n"                                                                                                                 \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  reti\n"                                                                                                                             \
    "weir_fast_request:\n"                                                                                                                 \
    "  sbrs r3, %[flag]\n"                                                                                                                 \
    "  rjmp 9b\n"                                                                                                                          \
    "7:\n.if %[lag]\n  out %[ocr], r10\n.endif\n"                                                                                          \
    "  out %[tcnt], r7\n"                                                                                                                  \
    "  out %[tifr], r7\n"                                                                                                                  \
    "  mov r9, r7\n"                                                                                                                       \
    ".endif\n"

/*
 * bursty: the optimisation of regehr2005 §3.3, without the requests that it loses. The timer
 * restarts itself at each match, and its flag says that the period is over. r4 counts the requests
 * left, and falls below zero at the first request too many. While requests keep waiting
 * (SUSTAINED), it falls below zero one request earlier.
 */
#define WEIR_FAST_BURSTY_CODE                                                                                                              \
    ".if %[kind] == 3\n"                                                                                                                   \
    "8: sbrs r10, %[sustained]\n"                                                                                                          \
    "  rjmp 6f\n"                                                                                                                          \
    "  in r3, %[tifr]\n  sbrc r3, %[flag]\n  rjmp 9f\n"                                                                                    \
    "  out %[eimsk], r6\n" /* the last of the burst: mask, and serve it */                                                                 \
    "  in r3, %[timsk]\n  or r3, r7\n  out %[timsk], r3\n"                                                                                 \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "6: in r3, %[tifr]\n"                                                                                                                  \
    "  sbrs r3, %[flag]\n"                                                                                                                 \
    "  rjmp 5f\n"                                                                                                                          \
    "  clr r3\n  out %[tcnt], r3\n" /* the period is over: fill up, and count the next one from here */                                    \
    "  out %[tifr], r7\n"                                                                                                                  \
    "  lds r4, weir_fast_burst\n  dec r4\n"                                                                                                \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "5: clr r9\n  com r10\n" /* one too many: hold (and SUSTAINED), mask, have the timer interrupt; r10 had it not */                      \
    "  out %[eimsk], r6\n"                                                                                                                 \
    "  in r3, %[timsk]\n  or r3, r7\n  out %[timsk], r3\n"                                                                                 \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  reti\n"                                                                                                                             \
    "9: mov r10, r7\n  out %[sreg], r2\n  rjmp weir_fast_serve\n" /* the last, but the period is over */                                   \
    "4: tst r9\n"                                                                                                                          \
    "  brne 7f\n"                                                                                                                          \
    "  mov r9, r8\n" /* what was held is served */                                                                                         \
    "  lds r4, weir_fast_rest\n"                                                                                                           \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "weir_fast_expired:\n"                                                                                                                 \
    "  out %[eimsk], r5\n"                                                                                                                 \
    "  in r3, %[timsk]\n  eor r3, r7\n  out %[timsk], r3\n"                                                                                \
    "  in r3, %[eifr]\n"                                                                                                                   \
    "  and r3, r9\n"                                                                                                                       \
    "  breq 4b\n"                                                                                                                          \
    "  out %[eifr], r8\n"                                                                                                                  \
    "  lds r4, weir_fast_rest\n"                                                                                                           \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "7: mov r10, r7\n"                                                                                                                     \
    "  lds r4, weir_fast_burst\n"                                                                                                          \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  reti\n"                                                                                                                             \
    "weir_fast_request:\n"                                                                                                                 \
    "  dec r4\n"                                                                                                                           \
    "  brmi 8b\n"                                                                                                                          \
    "  out %[sreg], r2\n"                                                                                                                  \
    ".endif\n"

/*
 * bucket. The compare register holds the instant at which the bucket is full, and the flag says
 * that it is full. While the line is masked, the register and r10 hold the instant of the next
 * token. If that instant has passed when it is written, the line is unmasked.
 * While a request is held, r10 is one interval smaller. So an expiry that adds an interval to r10
 * finds an instant that has passed, as it does when it is late. Late expiries and held requests
 * share a branch, and all other expiries pay for a single comparison.
 * An expiry that comes a wrap late may find a second match before it has changed the register. The
 * second match interrupts at once, an interval early. Its flag is cleared where the interrupt could
 * be mistaken for a late one. Elsewhere it does no harm: the bucket is full by then, and both
 * interrupts have their tokens.
 * An expiry that is later than the comparison can tell recognises neither case. It serves the
 * pending request in place of the held one, and leaves r10 equal to the compare register. The code
 * that then serves the held request finds r10 an interval too large, and corrects it.
 * The flag is set one tick after the match. Timer 0 restarts its prescaler with the count, and so
 * matches one tick earlier: its flag is set after exactly one interval. A whole bucket is at most
 * 240 ticks, and an interval at most 120. If the limiter satisfies L <= (N-1)T (core/CONTRACTS.md),
 * a token counts as late up to 127 ticks after its instant, which saves a cycle. Otherwise it
 * counts as late up to 255 ticks minus an interval.
 */
#define WEIR_FAST_BUCKET_CODE                                                                                                              \
    ".if %[kind] == 4\n"                                                                                                                   \
    "weir_fast_request:\n"                                                                                                                 \
    "  sbrs r3, %[flag]\n"                                                                                                                 \
    "  rjmp 1f\n"                                                                                                                          \
    "0: out %[tcnt], r7\n" /* full: count from here */                                                                                     \
    ".if %[timer_vector] == 15\n  out %[sfior], r7\n.endif\n" /* and from a whole tick: PSR0 is the same bit */                            \
    "  out %[ocr], r6\n"                                                                                                                   \
    "  out %[tifr], r7\n"                                                                                                                  \
    "  mov r9, r7\n"                                                                                                                       \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "1: in r2, %[sreg]\n"                                                                                                                  \
    "  in r10, %[ocr]\n"                                                                                                                   \
    "  in r3, %[tcnt]\n"                                                                                                                   \
    "  sub r10, r3\n" /* until it is full */                                                                                               \
    "  lds r3, weir_fast_slack\n"                                                                                                          \
    "  cp r3, r10\n"                                                                                                                       \
    "  brlo 2f\n"                                                                                                                          \
    "  in r3, %[ocr]\n  add r3, r4\n  out %[ocr], r3\n"                                                                                    \
    "  out %[tifr], r7\n"                                                                                                                  \
    "  mov r9, r7\n"                                                                                                                       \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "2: in r3, %[tifr]\n  sbrc r3, %[flag]\n"                                                                                              \
    "  rjmp 4f\n" /* it became full since the flag was read */                                                                             \
    "  push r24\n" /* empty: hold, mask until the next token, which is due in r24 + 1 ticks */                                             \
    "  mov r24, r10\n"                                                                                                                     \
    "  subi r24, %[slack] + 1\n"                                                                                                           \
    "  cpi r24, 3\n"                                                                                                                       \
    "  in r10, %[ocr]\n"                                                                                                                   \
    "  ldi r24, %[slack]\n"                                                                                                                \
    "  brlo 3f\n"                                                                                                                          \
    "  sub r10, r24\n"                                                                                                                     \
    "  out %[ocr], r10\n"                                                                                                                  \
    "5: out %[tifr], r7\n"                                                                                                                 \
    "  sub r10, r4\n"                                                                                                                      \
    "  bst r9, %[sustained]\n  bld r9, %[stay]\n"                                                                                          \
    "  set\n  bld r9, %[sustained]\n  bld r9, %[held]\n"                                                                                   \
    "  lds r3, weir_fast_off\n  out %[eimsk], r3\n"                                                                                        \
    "  in r3, %[timsk]\n  or r3, r7\n  out %[timsk], r3\n"                                                                                 \
    "  pop r24\n"                                                                                                                          \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  reti\n"                                                                                                                             \
    "3: sub r10, r24\n" /* too near to be sure of: three ticks from now */                                                                 \
    "  in r24, %[tcnt]\n  subi r24, -3\n  out %[ocr], r24\n"                                                                               \
    "  rjmp 5b\n"                                                                                                                          \
    "4: out %[sreg], r2\n  rjmp 0b\n"                                                                                                      \
    "weir_fast_expired_idle:\n"                                                                                                            \
    "  in r2, %[sreg]\n"                                                                                                                   \
    "  push r24\n"                                                                                                                         \
    "  sbrs r9, %[held]\n"                                                                                                                 \
    "  rjmp 6f\n"                                                                                                                          \
    "  add r10, r4\n"                                                                                                                      \
    "  sbrc r9, %[stay]\n"                                                                                                                 \
    "  rjmp 7f\n"                                                                                                                          \
    "  in r3, %[tcnt]\n  sub r3, r10\n  add r10, r4\n" /* serve what is held, and unmask */                                                \
    "8: clt\n  bld r9, %[held]\n" /* r10: the next token; r3: by how much the one that is used now was late */                             \
    "  ldi r24, %[slack]\n"                                                                                                                \
    "  cp r24, r3\n  brsh 1f\n"                                                                                                            \
    "  mov r24, r3\n  add r3, r4\n  brcc 1f\n" /* it has been full: one interval from now */                                               \
    "  sub r10, r4\n  ldi r24, %[slack]\n" /* r10 was an interval ahead (or the expiry nearly a wrap late: as if it were) */               \
    "1: add r24, r10\n  out %[ocr], r24\n"                                                                                                 \
    "  out %[tifr], r7\n"                                                                                                                  \
    "  in r3, %[timsk]\n  eor r3, r7\n  out %[timsk], r3\n"                                                                                \
    "  out %[eimsk], r5\n"                                                                                                                 \
    "  pop r24\n"                                                                                                                          \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "7: add r10, r4\n  out %[ocr], r10\n  out %[tifr], r7\n" /* serve what is held, and stay masked */                                     \
    "  in r3, %[tcnt]\n  sub r3, r10\n  add r3, r4\n"                                                                                      \
    "  brcc 8b\n"                                                                                                                          \
    "  clt\n  bld r9, %[held]\n"                                                                                                           \
    "  pop r24\n"                                                                                                                          \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  rjmp weir_fast_serve\n"                                                                                                             \
    "6: in r24, %[ocr]\n  subi r24, lo8(-(%[slack]))\n" /* nothing to serve: unmask */                                                     \
    "  out %[ocr], r24\n"                                                                                                                  \
    "  in r3, %[tcnt]\n  sub r24, r3\n  dec r24\n"                                                                                         \
    "  cpi r24, %[whole]\n  brlo 1f\n" /* within an interval more: a second match, of a wrap ago */                                        \
    "  mov r24, r3\n  subi r24, -2\n  out %[ocr], r24\n" /* full already: the flag is to say so */                                         \
    "1: mov r9, r7\n"                                                                                                                      \
    "  in r3, %[timsk]\n  eor r3, r7\n  out %[timsk], r3\n"                                                                                \
    "  out %[eimsk], r5\n"                                                                                                                 \
    "  pop r24\n"                                                                                                                          \
    "  out %[sreg], r2\n"                                                                                                                  \
    "  reti\n"                                                                                                                             \
    "9: push r24\n" /* a request is pending: what is held is served first, or the expiry is late */                                        \
    "  sbrc r9, %[held]\n"                                                                                                                 \
    "  rjmp 7b\n"                                                                                                                          \
    "  out %[eifr], r8\n"                                                                                                                  \
    ".if %[slack] < 128\n  add r3, r4\n.endif\n"                                                                                           \
    "  rjmp 8b\n"                                                                                                                          \
    "weir_fast_expired:\n"                                                                                                                 \
    "  in r2, %[sreg]\n"                                                                                                                   \
    "  add r10, r4\n  out %[ocr], r10\n" /* serve what is pending, and stay masked */                                                      \
    "  in r3, %[tcnt]\n  sub r3, r10\n"                                                                                                    \
    ".if %[slack] < 128\n  brpl 9b\n.else\n  add r3, r4\n  brcc 9b\n.endif\n"                                                              \
    ".if (%[slack] >= 128) || (2 * (%[whole] - %[slack]) > 128)\n  out %[tifr], r7\n.endif\n" /* a second match would look late */         \
    "  out %[eifr], r8\n"                                                                                                                  \
    "  out %[sreg], r2\n"                                                                                                                  \
    ".endif\n"
/* clang-format on */

/*
 * Bytes that the entries read: the burst; the part of the burst that is left once an expiry has
 * served one request and the last one will mask; the largest number of ticks for which a bucket
 * with a token is not full; the value of EIMSK while masked; and whether an expiry waits.
 */
extern uint8_t weir_fast_burst, weir_fast_rest, weir_fast_slack, weir_fast_off, weir_fast_parked;
/* Whether r6 also holds the value of EIMSK while masked. */
extern uint8_t weir_fast_off_in_r6;

WEIR_INLINE void weir_fast_other_line(uint8_t bit, bool on)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        weir_fast_off = on ? (uint8_t) (weir_fast_off | bit) : (uint8_t) (weir_fast_off & ~bit);
        WEIR_FAST_SET("r5", on ? WEIR_FAST_GET("r5") | bit : WEIR_FAST_GET("r5") & ~bit);
        if (weir_fast_off_in_r6 != 0) {
            WEIR_FAST_SET("r6", weir_fast_off);
        }
        EIMSK = on ? (uint8_t) (EIMSK | bit) : (uint8_t) (EIMSK & ~bit);
    }
}

/*
 * Puts the entries in front of the handler: both are in the same section, the entries in subsection
 * 0 and the handler in subsection 1, in whichever order the compiler emits them. (The semicolon
 * turns the rest of the compiler's .section line into a comment.)
 */
#define WEIR_FAST_SECTION ".lowtext.weir"
#define WEIR_FAST_HANDLER __attribute__((signal, used, noinline, section(WEIR_FAST_SECTION ",\"ax\",@progbits\n\t.subsection 1 ;")))

#define WEIR_AVR_LIMIT(name, line, timer, ...)                                                                                             \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check, __VA_ARGS__)                                                                              \
    static const weir_limit_config_t name##_config = {__VA_ARGS__};                                                                        \
    WEIR_AVR_DEFINE_FAST_(name, name##_config, WEIR_AVR_##line, WEIR_AVR_##timer, "")

/**
 * Limits an interrupt function that exists already and ends in reti, such as a vendor's. No body
 * follows.
 */
#define WEIR_AVR_WRAP(name, line, timer, handler, ...)                                                                                     \
    WEIR_AVR_DEFINE_CHECK_(name, weir_avr_check, __VA_ARGS__)                                                                              \
    static const weir_limit_config_t name##_config = {__VA_ARGS__};                                                                        \
    WEIR_AVR_DEFINE_ENTRY_(name, name##_config, WEIR_AVR_##line, WEIR_AVR_##timer, "jmp " #handler "\n")

#define WEIR_AVR_DEFINE_FAST_(name, config, line, timer, serve)                                                                            \
    WEIR_AVR_DEFINE_ENTRY_(name, config, line, timer, serve)                                                                               \
    WEIR_FAST_HANDLER void __vector_weir_fast_handler(void)

#define WEIR_AVR_DEFINE_ENTRY_(name, config, line, timer, serve)                                                                                                                   \
    uint8_t weir_fast_burst;                                                                                                                                                       \
    uint8_t weir_fast_rest;                                                                                                                                                        \
    uint8_t weir_fast_slack;                                                                                                                                                       \
    uint8_t weir_fast_off;                                                                                                                                                         \
    uint8_t weir_fast_parked;                                                                                                                                                      \
    uint8_t weir_fast_off_in_r6;                                                                                                                                                   \
    __attribute__((naked, used)) static void name##_entry(void)                                                                                                                    \
    {                                                                                                                                                                              \
        __asm__ volatile(                                                                                                                                                          \
            WEIR_FAST_TABLE ".pushsection " WEIR_FAST_SECTION                                                                                                                      \
                            ", \"ax\", @progbits\n.subsection 0\n" WEIR_FAST_STRICT_EAGER_CODE WEIR_FAST_STRICT_LAZY_CODE                                                          \
                                WEIR_FAST_BURSTY_CODE WEIR_FAST_BUCKET_CODE "weir_fast_serve:\n" serve ".popsection\n"                                                             \
            :                                                                                                                                                                      \
            : [kind] "n"(WEIR_FAST_KIND(config)), [line_vector] "n"(WEIR_AVR_OF(line, NUMBER)),                                                                                    \
              [timer_vector] "n"(WEIR_AVR_OF(timer, NUMBER)), [bit] "n"(WEIR_AVR_OF(line, POSITION)),                                                                              \
              [flag] "n"(WEIR_AVR_OF(timer, POSITION)), [held] "n"(WEIR_FAST_HELD), [sustained] "n"(WEIR_FAST_SUSTAINED),                                                          \
              [aged] "n"(WEIR_FAST_AGED), [stay] "n"(WEIR_FAST_STAY), [slack] "n"((((config).burst - 1u) * (config).interval) & 255u),                                             \
              [lag] "n"((config).lag), [whole] "n"(((config).burst * (config).interval) & 255u), [sreg] "I"(_SFR_IO_ADDR(SREG)),                                                   \
              [sfior] "I"(_SFR_IO_ADDR(SFIOR)), [eimsk] "I"(_SFR_IO_ADDR(EIMSK)), [eifr] "I"(_SFR_IO_ADDR(EIFR)),                                                                  \
              [timsk] "I"(_SFR_IO_ADDR(TIMSK)), [tifr] "I"(_SFR_IO_ADDR(TIFR)), [tcnt] "I"(_SFR_IO_ADDR(WEIR_AVR_OF(timer, COUNT))),                                               \
              [ocr] "I"(_SFR_IO_ADDR(WEIR_AVR_OF(timer, COMPARE))), [tccr] "I"(_SFR_IO_ADDR(WEIR_AVR_OF(timer, CONTROL))));                                                        \
    }                                                                                                                                                                              \
    WEIR_INLINE void name##_start(void)                                                                                                                                            \
    {                                                                                                                                                                              \
        name##_check();                                                                                                                                                            \
        if (WEIR_FAST_KIND(config) == 0) {                                                                                                                                         \
            weir_avr_fast_lacks_this_policy();                                                                                                                                     \
        }                                                                                                                                                                          \
        if (!WEIR_FAST_FITS(config)) {                                                                                                                                             \
            weir_avr_fast_interval_does_not_fit();                                                                                                                                 \
        }                                                                                                                                                                          \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                                                          \
        {                                                                                                                                                                          \
            bool eager = WEIR_FAST_KIND(config) == WEIR_FAST_STRICT_EAGER;                                                                                                         \
            weir_fast_r7 = eager ? 0 : (uint8_t) WEIR_AVR_OF(timer, BIT);                                                                                                          \
            weir_fast_r8 = WEIR_AVR_OF(line, BIT);                                                                                                                                 \
            weir_fast_r9 = WEIR_FAST_KIND(config) == WEIR_FAST_BURSTY ? WEIR_AVR_OF(line, BIT)                                                                                     \
                           : eager                                    ? WEIR_AVR_OF(timer, BIT)                                                                                    \
                                                                      : 1u << WEIR_FAST_AGED;                                                                                                                         \
            weir_fast_r10 = 0;                                                                                                                                                     \
            WEIR_FAST_SET("r5", EIMSK | WEIR_AVR_OF(line, BIT));                                                                                                                   \
            weir_fast_off = EIMSK & (uint8_t) ~WEIR_AVR_OF(line, BIT);                                                                                                             \
            weir_fast_burst = (config).burst;                                                                                                                                      \
            weir_fast_rest = (uint8_t) ((config).burst - 2u);                                                                                                                      \
            weir_fast_slack = (uint8_t) (((config).burst - 1u) * (config).interval);                                                                                               \
            weir_fast_off_in_r6 = WEIR_FAST_KIND(config) != WEIR_FAST_BUCKET;                                                                                                      \
            weir_fast_r6 = WEIR_FAST_KIND(config) == WEIR_FAST_BUCKET                                                                                                              \
                               ? (uint8_t) (weir_fast_r7 + (config).interval - (WEIR_AVR_OF(timer, NUMBER) == WEIR_AVR_TIMER0_NUMBER))                                             \
                               : weir_fast_off;                                                                                                                                    \
            weir_fast_r4 = (uint8_t) (WEIR_FAST_KIND(config) == WEIR_FAST_BURSTY ? (config).burst : (config).interval);                                                            \
            WEIR_AVR_DISARM(timer);                                                                                                                                                \
            WEIR_AVR_AT(timer) = (uint8_t) (weir_fast_r7 + (config).interval - (eager ? (config).lag : 0u));                                                                       \
            if (eager) {                                                                                                                                                           \
                weir_fast_r4 = WEIR_AVR_OF(timer, CONTROL);                                                                                                                        \
                WEIR_AVR_OF(timer, CONTROL) = 0;                                                                                                                                   \
                WEIR_AVR_FORGET(timer);                                                                                                                                            \
                WEIR_AVR_ARM(timer);                                                                                                                                               \
            } else if (WEIR_FAST_KIND(config) == WEIR_FAST_BURSTY) {                                                                                                               \
                WEIR_AVR_OF(timer, CONTROL) |= WEIR_AVR_OF(timer, CLEAR_ON_MATCH);                                                                                                 \
                WEIR_AVR_AT(timer) = (uint8_t) ((config).interval - 1u);                                                                                                           \
                WEIR_AVR_NOW(timer) = 0;                                                                                                                                           \
                WEIR_AVR_FORGET(timer);                                                                                                                                            \
            } else {                                                                                                                                                               \
                if (WEIR_FAST_KIND(config) == WEIR_FAST_STRICT_LAZY) {                                                                                                             \
                    weir_fast_r4 = (uint8_t) (WEIR_AVR_AT(timer) - (config).lag);                                                                                                  \
                    weir_fast_r10 = WEIR_AVR_AT(timer);                                                                                                                            \
                }                                                                                                                                                                  \
                if (WEIR_FAST_KIND(config) == WEIR_FAST_BUCKET) {                                                                                                                  \
                    WEIR_AVR_AT(timer) = weir_fast_r6;                                                                                                                             \
                }                                                                                                                                                                  \
                /* Sets the counter just before the match, so that the bucket is full at once. */                                                                                  \
                WEIR_AVR_NOW(timer) = (uint8_t) (WEIR_AVR_AT(timer) - 2u);                                                                                                         \
            }                                                                                                                                                                      \
            EIMSK = WEIR_FAST_GET("r5");                                                                                                                                           \
        }                                                                                                                                                                          \
    }                                                                                                                                                                              \
    WEIR_INLINE void name##_disable(void)                                                                                                                                          \
    {                                                                                                                                                                              \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                                                          \
        {                                                                                                                                                                          \
            WEIR_FAST_SET("r5", WEIR_FAST_GET("r5") & ~WEIR_AVR_OF(line, BIT));                                                                                                    \
            EIMSK = weir_fast_off;                                                                                                                                                 \
            if (WEIR_FAST_KIND(config) != WEIR_FAST_STRICT_EAGER && (TIMSK & WEIR_AVR_OF(timer, BIT)) != 0) {                                                                      \
                /* The line is masked, so the expiry waits for the user. This flag remembers that the expiry is due. */                                                            \
                weir_fast_parked = 1;                                                                                                                                              \
                WEIR_AVR_DISARM(timer);                                                                                                                                            \
            }                                                                                                                                                                      \
        }                                                                                                                                                                          \
    }                                                                                                                                                                              \
    WEIR_INLINE void name##_enable(void)                                                                                                                                           \
    {                                                                                                                                                                              \
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)                                                                                                                                          \
        {                                                                                                                                                                          \
            WEIR_FAST_SET("r5", WEIR_FAST_GET("r5") | WEIR_AVR_OF(line, BIT));                                                                                                     \
            if (weir_fast_parked != 0) {                                                                                                                                           \
                weir_fast_parked = 0;                                                                                                                                              \
                if (WEIR_AVR_PASSED(timer)) {                                                                                                                                      \
                    /* Have the expiry come at once. The counter is set back, because it has gone on counting and may be so near the match that the expiry would come too soon. */ \
                    WEIR_AVR_NOW(timer) = (uint8_t) (WEIR_AVR_AT(timer) - 3u);                                                                                                     \
                    WEIR_AVR_FORGET(timer);                                                                                                                                        \
                }                                                                                                                                                                  \
                WEIR_AVR_ARM(timer);                                                                                                                                               \
            } else if (WEIR_FAST_KIND(config) == WEIR_FAST_STRICT_EAGER ? WEIR_AVR_OF(timer, CONTROL) == 0                                                                         \
                                                                        : (TIMSK & WEIR_AVR_OF(timer, BIT)) == 0) {                                                                \
                EIMSK = WEIR_FAST_GET("r5");                                                                                                                                       \
            }                                                                                                                                                                      \
        }                                                                                                                                                                          \
    }

/**
 * Starts limiting and enables the line. Start the timer (weir_avr_run_timer) and set up the line's
 * trigger first. Call it from a thread, or before interrupts are on.
 */
#define weir_avr_start(name) name##_start()
/** Switches the line on or off on behalf of the user, until the next such call (regehr2005 §4). Any
 * context. */
#define weir_avr_enable(name) name##_enable()
#define weir_avr_disable(name) name##_disable()

/**
 * Switches an external line other than the limited one on or off. Use these instead of EIMSK,
 * because the entries keep the next value of EIMSK in registers. Any context.
 */
#define weir_avr_line_on(line) weir_fast_other_line((uint8_t) (1u << (line)), true)
#define weir_avr_line_off(line) weir_fast_other_line((uint8_t) (1u << (line)), false)

#endif
