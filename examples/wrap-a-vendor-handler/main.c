/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Limits a handler that cannot be changed. Its object file only loses the vector's name:
 *     avr-objcopy --redefine-sym __vector_1=vendor_int0 vendor.o
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <weir/avr.h>

volatile uint32_t progress;

WEIR_AVR_WRAP(device, INT0, TIMER1A, vendor_int0, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_LAZY,
              .interval = WEIR_AVR_TICKS(500, 8), .burst = 1);

int main(void)
{
    EICRA = (1 << ISC01) | (1 << ISC00);
    weir_avr_run_timer(TIMER1A, 8);
    weir_avr_start(device);
    sei();
    for (;;) {
        progress++;
    }
}
