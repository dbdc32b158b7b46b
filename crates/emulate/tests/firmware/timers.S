; SPDX-License-Identifier: GPL-3.0-or-later
; Small programs around the timers; one of them is chosen by CASE_… . They leave what they saw in out0 to out7.
; The comments count cycles: "@n" is the cycle of an instruction, relative to the first after `start`.
#include <avr/io.h>

#define REG(name) _SFR_IO_ADDR(name)

.section .vectors
    jmp main
    .org 35 * 4

.text
.global main, start
main:
    ldi r16, 0
    ldi r17, 1 << CS00
    ldi r18, 0xff
    ldi r19, 10

#if defined(CASE_COUNT)         /* clk/1: the value a read finds, restarts, and the read after a write */
start:
    out REG(TCCR0), r17         ; @0: counts from cycle 1 on
    in r20, REG(TCNT0)          ; @1: 0
    in r21, REG(TCNT0)          ; @2: 1
    lds r22, TCNT0              ; @3, reads in @4: 3
    out REG(TCCR0), r16         ; @5: the edge at cycle 6 is the last
    nop
    nop
    in r23, REG(TCNT0)          ; 5
    out REG(TCCR0), r17         ; goes on, does not begin again
    nop
    in r24, REG(TCNT0)          ; 6
    out REG(TCNT0), r19
    in r25, REG(TCNT0)          ; 10
    in r26, REG(TCNT0)          ; 11
    sts out0, r20
    sts out1, r21
    sts out2, r22
    sts out3, r23
    sts out4, r24
    sts out5, r25
    sts out6, r26

#elif defined(CASE_PRESCALER)   /* clk/8 has its edges at multiples of 8 from the prescaler's reset, whenever it starts */
    ldi r17, 1 << CS01
    ldi r20, 1 << PSR0
    out REG(SFIOR), r20         ; @0: prescaler 0 from cycle 1 on
    .rept DELAY
    nop
    .endr
start:
    out REG(TCCR0), r17         ; @1 + DELAY
    .rept 20 - DELAY
    nop
    .endr
    in r20, REG(TCNT0)          ; @22: the edges at 9 and 17, if it was started before
    in r21, REG(SFIOR)
    sts out0, r20
    sts out1, r21               ; the bit has cleared itself

#elif defined(CASE_HOLD)        /* TSM holds the prescaler in reset */
    ldi r17, 1 << CS01
    out REG(TCCR0), r17
    ldi r20, (1 << TSM) | (1 << PSR0)
    out REG(SFIOR), r20
    in r21, REG(TCNT0)
    .rept 40
    nop
    .endr
start:
    in r22, REG(TCNT0)
    sub r22, r21
    in r23, REG(SFIOR)
    out REG(SFIOR), r16         ; @0: goes on from 0 at cycle 1
    in r21, REG(TCNT0)          ; @1
    .rept 6
    nop
    .endr
    in r24, REG(TCNT0)          ; @8: not yet
    in r25, REG(TCNT0)          ; @9
    sub r24, r21
    sub r25, r21
    sts out0, r22
    sts out1, r23
    sts out2, r24
    sts out3, r25

#elif defined(CASE_COMPARE_FLAG)    /* OCF0 is set at the edge after the match, TOV0 not at all in CTC */
    out REG(OCR0), r19
    ldi r17, (1 << WGM01) | (1 << CS00)
start:
    out REG(TCCR0), r17         ; @0: the counter is 10 in cycle 11, and 0 again in cycle 12
    .rept 9
    nop
    .endr
    in r20, REG(TIFR)           ; @10
    in r21, REG(TIFR)           ; @11
    in r22, REG(TIFR)           ; @12
    in r23, REG(TCNT0)          ; @13: 1
    sts out0, r20
    sts out1, r21
    sts out2, r22
    sts out3, r23
    ldi r24, 250
1:  dec r24
    brne 1b
    in r20, REG(TIFR)
    sts out4, r20

#elif defined(CASE_FLAGS)       /* ones clear, zeros keep, others are not touched; in ETIFR as well */
start:
    out REG(TCCR0), r17         ; all compare registers are 0: every timer matches at once
    out REG(TCCR2), r17
    sts TCCR3B, r17
    out REG(TCCR1B), r17
    nop
    nop
    out REG(TCCR0), r16
    out REG(TCCR2), r16
    sts TCCR3B, r16
    out REG(TCCR1B), r16
    in r20, REG(TIFR)
    out REG(TIFR), r16
    in r21, REG(TIFR)
    ldi r22, 1 << OCF0
    out REG(TIFR), r22
    in r22, REG(TIFR)
    sts out0, r20
    sts out1, r21
    sts out2, r22
    lds r20, ETIFR
    ldi r21, 1 << OCF3C
    sts ETIFR, r21
    lds r21, ETIFR
    sts out3, r20
    sts out4, r21

#elif defined(CASE_BLOCK)       /* a write of the counter blocks the match at the next edge, and only that */
    out REG(OCR0), r19
    out REG(TCNT0), r19         ; stopped, equal: no match when it starts
start:
    out REG(TCCR0), r17
    nop
    nop
    in r20, REG(TIFR)
    ldi r21, 9
    out REG(TCNT0), r21         ; 9, then 10: the match is seen
    nop
    nop
    in r22, REG(TIFR)
    sts out0, r20
    sts out1, r22

#elif defined(CASE_JUMP)        /* a counter that is written past the match does not see it */
    ldi r20, 100
    out REG(OCR0), r20
start:
    out REG(TCCR0), r17
    ldi r21, 120
    out REG(TCNT0), r21
    nop
    nop
    in r22, REG(TIFR)
    sts out0, r22
    ldi r23, 50
    out REG(OCR0), r23          ; and the match may be moved behind it
    nop
    nop
    in r22, REG(TIFR)
    sts out1, r22

#elif defined(CASE_OVERFLOW)    /* TOV0 is set at the edge from 0xff to 0 */
    ldi r20, 0xfe
    out REG(TCNT0), r20
    out REG(OCR0), r19
start:
    out REG(TCCR0), r17         ; @0: 0xfe in cycle 1, 0xff in 2, 0 in 3
    nop
    in r20, REG(TIFR)           ; @2
    in r21, REG(TIFR)           ; @3
    in r22, REG(TCNT0)          ; @4: 1
    sts out0, r20
    sts out1, r21
    sts out2, r22

#elif defined(CASE_TEMP)        /* 16 bits at once through TEMP */
    ldi r20, 0x12
    ldi r21, 0x34
    out REG(TCNT1H), r20        ; only TEMP
    in r22, REG(TCNT1L)         ; reads 0, and TEMP becomes 0
    out REG(TCNT1H), r20
    out REG(TCNT1L), r21
    in r23, REG(TCNT1L)
    in r24, REG(TCNT1H)
    out REG(OCR1AH), r21
    in r25, REG(OCR1AH)         ; not written yet; OCRs are read without TEMP
    out REG(OCR1AL), r20
    in r26, REG(OCR1AH)
    in r27, REG(OCR1AL)
    sts out0, r22
    sts out1, r23
    sts out2, r24
    sts out3, r25
    sts out4, r26
    sts out5, r27
    ; the high byte belongs to the low one although the counter wraps between the two reads
    out REG(TCNT1H), r16
    ldi r20, 0xfe
    out REG(TCNT1L), r20
start:
    out REG(TCCR1B), r17        ; @0: 0xfe in cycle 1, 0xff in 2
    nop
    in r20, REG(TCNT1L)         ; @2: 0xff
    in r21, REG(TCNT1H)         ; 0, though the counter is 0x0100 by now
    sts out6, r20
    sts out7, r21

#elif defined(CASE_CAPTURE_TOP) /* CTC with ICR1 as top sets ICF1 */
    out REG(ICR1H), r16
    out REG(ICR1L), r19
    ldi r17, (1 << WGM13) | (1 << WGM12) | (1 << CS10)
start:
    out REG(TCCR1B), r17        ; @0: 10 in cycle 11, 0 in 12
    .rept 10
    nop
    .endr
    in r20, REG(TIFR)           ; @11, with the matches at 0
    in r21, REG(TIFR)           ; @12
    in r22, REG(TCNT1L)         ; @13: 1
    sts out0, r20
    sts out1, r21
    sts out2, r22

#elif defined(CASE_PWM)
    ldi r17, (1 << WGM00) | (1 << CS00)
start:
    out REG(TCCR0), r17

#elif defined(CASE_EXTERNAL_CLOCK)
    ldi r17, 6
start:
    out REG(TCCR1B), r17

#elif defined(CASE_ILLEGAL)
start:
    .word 0x0001

#elif defined(CASE_OVERFLOWING_STACK)
    ldi r20, 0x01
    out REG(SPH), r20
    ldi r20, 0x01
    out REG(SPL), r20
    ldi r20, 1 << OCIE0
    out REG(TIMSK), r20
    sei
start:
    out REG(TCCR0), r17

#elif defined(CASE_POWER_DOWN)
    ldi r20, (1 << SE) | (1 << SM1)
    out REG(MCUCR), r20
start:
    sleep
#endif
done:
    rjmp done

.comm out0, 1
.comm out1, 1
.comm out2, 1
.comm out3, 1
.comm out4, 1
.comm out5, 1
.comm out6, 1
.comm out7, 1
