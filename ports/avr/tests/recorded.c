/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One limited line whose overloads leave marks. The background loop copies the line's record, byte
 * by byte, to an otherwise unused compare register, so that the trace shows the record. Compile
 * with -DWEIR_LIMIT_RECORD=1.
 *
 * TEST_POLICY, TEST_TIMING, TEST_INTERVAL, TEST_BURST,
 * TEST_CHANNEL, TEST_PRESCALER   the limit and its timer
 * TEST_WORK   cycles of work in every seventh run of the handler
 */
#define WEIR_ON_OVERLOAD_BEGIN(state) ((void) (state), TEST_MARK = WATCHED_OVERLOAD_BEGINS)
#define WEIR_ON_OVERLOAD_END(state) ((void) (state), TEST_MARK = WATCHED_OVERLOAD_ENDS)
#include "watched.h"

#define LIMIT(channel)                                                                                                                     \
    WEIR_AVR_LIMIT(line, INT0, channel, .policy = TEST_POLICY, .timing = TEST_TIMING, .interval = TEST_INTERVAL, .burst = TEST_BURST)
#define RUN(channel) weir_avr_run_timer(channel, TEST_PRESCALER)

LIMIT(TEST_CHANNEL)
{
    static uint8_t runs;
    watched_handler(0);
    if (++runs == 7) {
        runs = 0;
        __builtin_avr_delay_cycles(TEST_WORK);
    }
}

int main(void)
{
    EICRA = 0x03; /* rising edges */
    RUN(TEST_CHANNEL);
    watched_begin(WATCHED_START);
    weir_avr_start(line);
    watched_end();
    sei();
    for (;;) {
        weir_limit_record_t copy;
        weir_avr_record(line, &copy);
        for (uint8_t i = 0; i < sizeof copy; i++) {
            OCR0 = ((const uint8_t *) &copy)[i];
        }
    }
}
