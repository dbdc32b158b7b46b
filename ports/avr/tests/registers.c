/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A background loop that fills every register and SREG's flags with known values, and checks that
 * interrupts do not change them. `intact` counts the checks, and `spoilt` those that found another
 * value. The handler (a vendor's function or a body) uses every register itself.
 *
 * TEST_WRAP   the limit is put around the interrupt function vendor_handler; otherwise the body of
 *             the handler is after WEIR_AVR_LIMIT
 * WEIR_AVR_FAST  r2 to r10 belong to the limiter, and are not checked
 */
#include "watched.h"

volatile uint16_t intact;
volatile uint8_t spoilt;

#define LIMIT(channel)                                                                                                                     \
    WEIR_AVR_LIMIT(line, INT0, channel, .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .burst = TEST_BURST)
#define WRAP(channel)                                                                                                                      \
    WEIR_AVR_WRAP(line, INT0, channel, vendor_handler, .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL,            \
                  .burst = TEST_BURST)
#define RUN(channel) weir_avr_run_timer(channel, TEST_PRESCALER)

/* Overwrites every register that the compiler saves for a handler, which are all that a handler may
 * use. */
#ifdef WEIR_AVR_FAST
#define SPOIL()                                                                                                                            \
    __asm__ volatile("clr r11\n clr r12\n clr r13\n clr r14\n clr r15\n clr r16\n clr r17\n clr r18\n clr r19\n clr r20\n clr r21\n"       \
                     "clr r22\n clr r23\n clr r24\n clr r25\n clr r26\n clr r27\n clr r30\n clr r31\n"                                     \
                     :                                                                                                                     \
                     :                                                                                                                     \
                     : "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26",     \
                       "r27", "r30", "r31")
#else
#define SPOIL()                                                                                                                            \
    __asm__ volatile("clr r2\n clr r9\n clr r10\n clr r11\n clr r12\n clr r13\n clr r14\n clr r15\n clr r16\n clr r17\n clr r18\n"         \
                     "clr r19\n clr r20\n clr r21\n clr r22\n clr r23\n clr r24\n clr r25\n clr r26\n clr r27\n clr r30\n clr r31\n"       \
                     :                                                                                                                     \
                     :                                                                                                                     \
                     : "r2", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23",       \
                       "r24", "r25", "r26", "r27", "r30", "r31")
#endif

#ifdef TEST_WRAP
void vendor_handler(void) __attribute__((signal, used));
void vendor_handler(void)
{
    watched_handler(0);
    SPOIL();
}
WRAP(TEST_CHANNEL);
#else
LIMIT(TEST_CHANNEL)
{
    watched_handler(0);
    SPOIL();
}
#endif

/* clang-format off */
__attribute__((naked, noreturn, used)) static void look(void)
{
    __asm__ volatile(
        ".macro each what\n"
#ifdef WEIR_AVR_FAST
        ".irp r, 0,1,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n \\what \\r\n .endr\n"
#else
        ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n \\what \\r\n .endr\n"
#endif
        ".endm\n"
        ".macro fill r\n ldi r31, 0x40 + \\r\n mov r\\r, r31\n .endm\n"
        /* A wrong value in a register ends the program. */
        ".macro check r\n mov r31, r\\r\n subi r31, 0x40 + \\r\n breq 1f\n rjmp 9f\n1:\n .endm\n"
        "each fill\n"
        "8:\n"
        /*
         * A time in which interrupts come, first with all of SREG's flags T, H, S, V, N, Z and C
         * set, then with all clear.
         */
        "ldi r31, 0xff\n out %[sreg], r31\n"
        ".rept 40\n nop\n .endr\n"
        "in r31, %[sreg]\n inc r31\n breq 2f\n rjmp 9f\n"
        "2: ldi r31, 0x80\n out %[sreg], r31\n"
        ".rept 40\n nop\n .endr\n"
        "in r31, %[sreg]\n subi r31, 0x80\n breq 3f\n rjmp 9f\n"
        "3: ldi r31, 0xa5\n"
        ".rept 40\n nop\n .endr\n"
        "subi r31, 0xa5\n breq 4f\n rjmp 9f\n"
        "4: each check\n"
        "push r24\n push r25\n in r31, %[sreg]\n push r31\n"
        "lds r24, intact\n lds r25, intact + 1\n adiw r24, 1\n sts intact + 1, r25\n sts intact, r24\n"
        "pop r31\n out %[sreg], r31\n pop r25\n pop r24\n"
        "rjmp 8b\n"
        "9: ldi r31, 1\n sts spoilt, r31\n"
        "7: rjmp 7b\n" ::[sreg] "I"(_SFR_IO_ADDR(SREG)));
}
/* clang-format on */

int main(void)
{
    EICRA = 0x03;
    RUN(TEST_CHANNEL);
    weir_avr_start(line);
    sei();
    look();
}
