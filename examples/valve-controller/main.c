/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The handlers of a valve controller on a Cortex-M3. Their limits come from system.toml: weir
 * generate system.toml --chip cortex-m3
 */
#include "weir_system.h"

volatile uint32_t pulses;
volatile uint32_t ends;
volatile uint32_t alarms;
volatile uint32_t progress;

WEIR_SOURCE_pressure
{
    alarms++;
}

WEIR_SOURCE_flow_meter
{
    pulses++;
}

WEIR_SOURCE_limit_switch
{
    ends++;
}

WEIR_TIMER_DUALTIMER;

int main(void)
{
    weir_system_start();
    for (;;) {
        progress++; /* the work that matters */
    }
}

/* A vector table for this board. In your program it is part of the chip's start-up code. */
static void stop(void)
{
    for (;;) {
    }
}

__attribute__((section(".vectors"))) void (*const vectors[16 + 23])(void) = {
    (void (*)(void)) 0x20400000, /* the stack's end */
    (void (*)(void)) main,       stop, stop, [16 + 10] = IRQ10_Handler, [16 + 20] = IRQ20_Handler, [16 + 21] = IRQ21_Handler,
    [16 + 22] = IRQ22_Handler,
};
