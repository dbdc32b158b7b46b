; SPDX-License-Identifier: MIT OR Apache-2.0
; Start-up for firmware with a `fast` limiter, which brings its own vector table (link with -nostartfiles). What avr-libc's crt does, without its table.
#include <avr/io.h>

    .weak __stack
    .set __stack, RAMEND

    .section .init0, "ax", @progbits
    .global __init
__init:

    .section .init2, "ax", @progbits
    clr r1
    out _SFR_IO_ADDR(SREG), r1
    ldi r28, lo8(__stack)
    ldi r29, hi8(__stack)
    out _SFR_IO_ADDR(SPH), r29
    out _SFR_IO_ADDR(SPL), r28

    .section .init9, "ax", @progbits
    call main
    jmp exit

; An interrupt without a handler restarts the program, as with avr-libc's crt.
    .text
    .weak __vector_default
__vector_default:
    jmp 0
