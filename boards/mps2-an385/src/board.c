/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "board.h"

/* The registers of a CMSDK timer, and their bits. */
enum { CONTROL = 0x00, VALUE = 0x04, RELOAD = 0x08, INTERRUPT = 0x0c, ENABLE = 1, INTERRUPTS = 8 };
/* The registers of the dual timer, and the value of its control register. */
enum { DUAL_LOAD = 0x00, DUAL_CONTROL = 0x08, DUAL_CLEAR = 0x0c, DUAL_ONCE = 0xa3 };

void board_start(void)
{
    BOARD_TIMER1(RELOAD) = UINT32_MAX;
    BOARD_TIMER1(VALUE) = UINT32_MAX;
    BOARD_TIMER1(CONTROL) = ENABLE;
}

void board_release_every(uint32_t ticks)
{
    BOARD_TIMER0(RELOAD) = ticks - 1;
    BOARD_TIMER0(VALUE) = ticks - 1;
    board_enable(BOARD_RELEASE_LINE, BOARD_URGENCY_RELEASE);
    BOARD_TIMER0(CONTROL) = ENABLE | INTERRUPTS;
}

void board_release_acknowledge(void)
{
    BOARD_TIMER0(INTERRUPT) = 1;
}

void board_window_in(uint32_t ticks)
{
    BOARD_DUAL(DUAL_CONTROL) = 0;
    BOARD_DUAL(DUAL_LOAD) = ticks;
    board_enable(BOARD_WINDOW_LINE, BOARD_URGENCY_WINDOW);
    BOARD_DUAL(DUAL_CONTROL) = DUAL_ONCE;
}

void board_window_acknowledge(void)
{
    BOARD_DUAL(DUAL_CLEAR) = 1;
}

void board_enable(uint32_t line, uint32_t urgency)
{
    ((volatile uint8_t *) 0xe000e400u)[line] = (uint8_t) urgency;
    BOARD_REGISTER(0xe000e100u) = 1u << line;
}

void board_pend(uint32_t line)
{
    BOARD_REGISTER(0xe000e200u) = 1u << line;
}

void board_disable(uint32_t line)
{
    BOARD_REGISTER(0xe000e180u) = 1u << line;
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}
