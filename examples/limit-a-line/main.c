/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A sensor on INT0 may interrupt 100 times a second, in bursts of up to 5. Whatever its wire does,
 * the main loop continues to run.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <weir/avr.h>

volatile uint16_t readings;
volatile uint32_t progress;

WEIR_AVR_LIMIT(sensor, INT0, TIMER1A, .policy = WEIR_LIMIT_BUCKET, .timing = WEIR_LIMIT_LAZY, .interval = WEIR_AVR_TICKS(100, 64),
               .burst = 5)
{
    readings++; /* the body of your handler */
}

int main(void)
{
    EICRA = (1 << ISC01) | (1 << ISC00); /* rising edges */
    weir_avr_run_timer(TIMER1A, 64);     /* a tick is 64 cycles; the timer stays yours to read */
    weir_avr_start(sensor);
    sei();
    for (;;) {
        progress++; /* the work that matters */
    }
}
