/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Three sources behind the limiter in silicon, on the board soc. Whatever their wires do, the main
 * loop continues to run, and the limits cost it no time.
 */
#include <weir/riscv.h>
#include <weir/silicon.h>
#include <weir/work.h>

#include "limit_in_silicon_limits.h" /* weir generate system.toml --rtl */

volatile uint32_t bytes, teeth, parts;
volatile uint32_t overloads; /* sources that were in overload, bit by bit */
volatile uint32_t progress;

static weir_silicon_t limiter;
static weir_work_t uart_work, radio_work; /* .exceeded: interrupts that left something to do */

/* The registers COUNT, POP and CONTROL of the board's event devices. Each line has 8 words. */
static volatile uint32_t *const events = (volatile uint32_t *) 0x10030000;
enum { COUNT, POP, CONTROL };

static uint32_t waits(uint32_t source)
{
    return events[8 * source + COUNT];
}

WEIR_RISCV_UNLIMITED(uart, 0)
{
    weir_work_begin(&uart_work, WEIR_SOURCE_uart_MAX_WORK);
    while (waits(WEIR_SOURCE_uart) != 0 && weir_work_take(&uart_work)) {
        events[8 * WEIR_SOURCE_uart + POP] = 0;
        bytes++;
    }
}

WEIR_RISCV_UNLIMITED(encoder, 1)
{
    teeth++;
}

WEIR_RISCV_UNLIMITED(radio, 2)
{
    weir_work_begin(&radio_work, WEIR_SOURCE_radio_MAX_WORK);
    while (waits(WEIR_SOURCE_radio) != 0 && weir_work_take(&radio_work)) {
        events[8 * WEIR_SOURCE_radio + POP] = 0;
        parts++;
    }
}

/* The handler of the limiter's own interrupt, which comes when an overload begins. */
WEIR_RISCV_UNLIMITED(overload, 8)
{
    overloads |= weir_silicon_take_began(&limiter, 0);
}

WEIR_RISCV_TRAP(uart, encoder, radio, overload);

/* Sets up a source and locks it, so that faulty code cannot lift the limit later.
 * */
static void limit(uint16_t source, bool bursty, uint32_t rate, uint8_t burst)
{
    weir_silicon_error_t error = weir_silicon_limit(&limiter, source, bursty ? WEIR_LIMIT_BURSTY : WEIR_LIMIT_BUCKET, rate, burst);
    if (error == WEIR_SILICON_OK) {
        error = weir_silicon_set_notify(&limiter, source, true);
    }
    if (error == WEIR_SILICON_OK) {
        error = weir_silicon_lock(&limiter, source);
    }
    while (error != WEIR_SILICON_OK) {
        /* The limiter is not the one that system.toml describes, so no line is enabled. */
    }
}

int main(void)
{
    while (weir_silicon_open(&limiter, WEIR_LIMITS_BASE) != WEIR_SILICON_OK) {
    }
    limit(WEIR_SOURCE_uart, WEIR_SOURCE_uart_BURSTY, WEIR_SOURCE_uart_RATE, WEIR_SOURCE_uart_BURST);
    limit(WEIR_SOURCE_encoder, WEIR_SOURCE_encoder_BURSTY, WEIR_SOURCE_encoder_RATE, WEIR_SOURCE_encoder_BURST);
    limit(WEIR_SOURCE_radio, WEIR_SOURCE_radio_BURSTY, WEIR_SOURCE_radio_RATE, WEIR_SOURCE_radio_BURST);
    events[8 * WEIR_SOURCE_uart + CONTROL] = 1; /* the uart and the radio keep what comes until it is taken */
    events[8 * WEIR_SOURCE_radio + CONTROL] = 1;
    weir_riscv_run();
    weir_riscv_start(uart);
    weir_riscv_start(encoder);
    weir_riscv_start(radio);
    weir_riscv_start(overload);
    weir_riscv_interrupts_on();
    for (;;) {
        progress++; /* the work that matters */
    }
}
