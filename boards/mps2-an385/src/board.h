/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The devices of mps2-an385 that the node uses (ARM application note AN385), except for its network
 * card. */
#ifndef NODE_BOARD_H
#define NODE_BOARD_H

#include <stdint.h>

#define BOARD_REGISTER(address) (*(volatile uint32_t *) (address))

enum {
    BOARD_CLOCK_HZ = 25000000,
    BOARD_CLOCK_KHZ = BOARD_CLOCK_HZ / 1000,
    BOARD_CLOCK_MHZ = BOARD_CLOCK_HZ / 1000000,

    /* The interrupt lines. */
    BOARD_RELEASE_LINE = 8, /* timer 0 */
    BOARD_WINDOW_LINE = 10, /* dual timer */
    BOARD_CARD_LINE = 13,
    BOARD_PIN_LINE = 16, /* GPIO 0, pin 0 */
    BOARD_LINES = 32,

    /* The priorities of interrupts. A smaller number is more urgent. FreeRTOS never masks the
     * first. */
    BOARD_URGENCY_WINDOW = 0x20,
    BOARD_URGENCY_RELEASE = 0x50,
    BOARD_URGENCY_PACKET = 0x60
};

/* Timer 0 releases the critical task. Timer 1 is the clock. The dual timer ends the windows. */
#define BOARD_TIMER0(offset) BOARD_REGISTER(0x40000000u + (offset))
#define BOARD_TIMER1(offset) BOARD_REGISTER(0x40001000u + (offset))
#define BOARD_DUAL(offset) BOARD_REGISTER(0x40002000u + (offset))

/* The FPGA's outputs for LEDs. Bit 0 is LED 0, a pin whose edges the peer records. */
#define BOARD_LEDS BOARD_REGISTER(0x40028000u)

/* Starts the clock, timer 1. */
void board_start(void);

/* Returns the ticks of BOARD_CLOCK_HZ since the start, modulo 2^32 (171 s). */
static inline uint32_t board_clock(void)
{
    return ~BOARD_TIMER1(0x04);
}

/* Calls the handler of BOARD_RELEASE_LINE every `ticks` ticks, for the first time after `ticks`
 * ticks. */
void board_release_every(uint32_t ticks);
void board_release_acknowledge(void);

/* Calls the handler of BOARD_WINDOW_LINE once, after `ticks` ticks. */
void board_window_in(uint32_t ticks);
void board_window_acknowledge(void);

/* Makes a line pending, as its device does. */
void board_pend(uint32_t line);

/* Enables or disables a line's interrupt. */
void board_enable(uint32_t line, uint32_t urgency);
void board_disable(uint32_t line);

#endif
