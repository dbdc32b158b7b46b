; SPDX-License-Identifier: GPL-3.0-or-later
; One instruction of each form between two marks: begin_NAME and end_NAME.
#include <avr/io.h>

.macro begin name:req
.global begin_\name
begin_\name:
.endm
.macro end name:req
.global end_\name
end_\name:
    nop
.endm
.macro form name:req, instruction:vararg
    begin \name
    \instruction
    end \name
.endm

.section .vectors
    jmp main

.text
.global main
main:
    ldi r30, lo8(buffer)
    ldi r31, hi8(buffer)
    ldi r16, 0
    ldi r17, 0xff
    form nop, nop
    form add, add r16, r16
    form adiw, adiw r24, 1
    form mul, mul r16, r16
    form ldi, ldi r18, 7
    form in, in r18, _SFR_IO_ADDR(PINB)
    form out, out _SFR_IO_ADDR(PORTB), r16
    form sbi, sbi _SFR_IO_ADDR(PORTB), 0
    form cbi, cbi _SFR_IO_ADDR(PORTB), 0
    form lds, lds r18, buffer
    form sts, sts buffer, r18
    form ld, ld r18, Z
    form ldd, ldd r18, Z+1
    form st, st Z, r18
    form push, push r18
    form pop, pop r18
    form lpm, lpm r18, Z
    form elpm, elpm r18, Z
    begin rjmp
    rjmp 1f
1:  end rjmp
    begin jmp
    jmp 1f
1:  end jmp
    begin brne_not_taken
    cp r16, r16
    brne 1f
1:  end brne_not_taken
    begin brne_taken
    cp r16, r17
    brne 1f
1:  end brne_taken
    begin sbrc_no_skip
    sbrc r17, 0
    nop
    end sbrc_no_skip
    begin sbrc_skip_one
    sbrc r16, 0
    nop
    end sbrc_skip_one
    begin sbrc_skip_two
    sbrc r16, 0
    lds r18, buffer
    end sbrc_skip_two
    begin sbic_skip_two
    sbic _SFR_IO_ADDR(DDRB), 0
    jmp main
    end sbic_skip_two
    begin cpse_skip_one
    cpse r16, r16
    nop
    end cpse_skip_one
    begin rcall_and_ret
    rcall subroutine
    end rcall_and_ret
    begin call_and_ret
    call subroutine
    end call_and_ret
    ldi r30, pm_lo8(subroutine)
    ldi r31, pm_hi8(subroutine)
    begin icall_and_ret
    icall
    end icall_and_ret
    ldi r18, pm_lo8(end_reti)
    push r18
    ldi r18, pm_hi8(end_reti)
    push r18
    form reti, reti
done:
    rjmp done

subroutine:
    ret

.comm buffer, 2
