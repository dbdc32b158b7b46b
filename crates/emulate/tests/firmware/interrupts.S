; SPDX-License-Identifier: GPL-3.0-or-later
; Small programs around interrupts; one of them is chosen by CASE_… .
#include <avr/io.h>

.section .vectors
    jmp main
.global vector_int0, vector_int1
vector_int0:
    jmp handle_int0
vector_int1:
    jmp handle_int1
    .org 15 * 4         ; TIMER0_COMP
    jmp handle_compare

.text
.global main, handle_int0, handle_int1, body, enabled
main:
    ldi r16, 0xff
    ldi r17, 0x0f       ; INT0 and INT1: rising edges
    sts EICRA, r17
    ldi r20, 3

#if defined(CASE_FREE)      /* interrupts on, a background of one-cycle instructions */
    out _SFR_IO_ADDR(EIMSK), r20
    sei
body:
    .rept 200
    nop
    .endr
    rjmp body

#elif defined(CASE_LEVEL)   /* INT0 and INT1 at low level; the body is one-cycle instructions */
    ldi r17, 0
    sts EICRA, r17
    out _SFR_IO_ADDR(EIMSK), r20
    sei
enabled:
body:
    .rept 200
    nop
    .endr
    rjmp body

#elif defined(CASE_LEVEL_LATE)  /* as above, but enabled only after 1000 cycles */
    ldi r17, 0
    sts EICRA, r17
    sei
    ldi r24, 250
1:  dec r24
    nop
    brne 1b
    out _SFR_IO_ADDR(EIMSK), r20
enabled:
body:
    rjmp body

#elif defined(CASE_SLEEP)
    ldi r18, 1 << SE
    out _SFR_IO_ADDR(MCUCR), r18
    out _SFR_IO_ADDR(EIMSK), r20
    sei
body:
    sleep
    rjmp body

#elif defined(CASE_MASKED)  /* enabled only after 1000 cycles; CLEAR is written to EIFR before */
    sei
    ldi r24, 250
1:  dec r24
    nop
    brne 1b
#ifdef CLEAR
    ldi r18, CLEAR
    out _SFR_IO_ADDR(EIFR), r18
#endif
    in r18, _SFR_IO_ADDR(EIFR)
    sts flags, r18
    out _SFR_IO_ADDR(EIMSK), r20
enabled:
body:
    rjmp body

#elif defined(CASE_CLI)     /* both requests are pending when interrupts are enabled */
    out _SFR_IO_ADDR(EIMSK), r20
    ldi r24, 250
1:  dec r24
    nop
    brne 1b
    sei
enabled:
    nop
body:
    rjmp body

#elif defined(CASE_BATCH)   /* interrupts off and on again while a request is pending: one instruction runs between */
    out _SFR_IO_ADDR(EIMSK), r20
    sei
body:
    cli
    .rept 50
    nop
    .endr
    sei
    cli
    rjmp body

#elif defined(CASE_NESTED)  /* INT0's handler lets INT1 in */
    out _SFR_IO_ADDR(EIMSK), r20
    sei
body:
    nop
    rjmp body

#elif defined(CASE_COMPARE) /* timer 0 requests an interrupt every 100 cycles, from a known cycle on */
    ldi r18, 99
    out _SFR_IO_ADDR(OCR0), r18
    ldi r18, 1 << OCIE0
    out _SFR_IO_ADDR(TIMSK), r18
    ldi r18, (1 << WGM01) | (1 << CS00)
    sei
.global start
start:
    out _SFR_IO_ADDR(TCCR0), r18
body:
    .rept 250
    nop
    .endr
    rjmp body
#endif

handle_int0:
#ifdef CASE_NESTED
    sei
    .rept 40
    nop
    .endr
#endif
    reti
handle_int1:
    reti
handle_compare:
    reti

.comm flags, 1
