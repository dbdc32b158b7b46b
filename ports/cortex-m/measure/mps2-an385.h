/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The board mps2-an385 in QEMU. An instruction counts as a cycle there, and DWT_CYCCNT does not
 * count. So the cycles are read from a timer that counts once every five instructions.
 */
#ifndef MEASURE_CHIP_H
#define MEASURE_CHIP_H

#include <weir/chips/cmsdk.h>

/* The timer of the limits, its line, and the line of the requests, which no device uses. */
#define CHIP_TIMER(name) WEIR_CMSDK_DUAL_TIMER(name, 0x40002000, 10, 1)
enum { CHIP_TIMER_LINE = 10, CHIP_LINE = 20 };
/* The number of cycles by which the counter grows in one step. */
enum { CHIP_GRAIN = 5 };
/* The cycles of an exception that the counter does not see (boards/mps2-an385/costs.toml). */
enum { CHIP_UNSEEN = 24 };

WEIR_INLINE void chip_begin(void)
{
    volatile uint32_t *timer = (volatile uint32_t *) 0x40000000;
    timer[WEIR_CMSDK_TIMER_RELOAD] = 0xffffffff;
    timer[WEIR_CMSDK_TIMER_VALUE] = 0xffffffff;
    timer[WEIR_CMSDK_TIMER_CONTROL] = 1;
}

WEIR_INLINE uint32_t chip_cycles(void)
{
    return CHIP_GRAIN * ~((volatile uint32_t *) 0x40000000)[WEIR_CMSDK_TIMER_VALUE];
}

/* Prints a letter by semihosting (SYS_WRITEC). */
WEIR_INLINE void chip_say(char letter)
{
    __asm volatile("mov r0, #3\n\tmov r1, %0\n\tbkpt 0xab" ::"r"(&letter) : "r0", "r1", "memory");
}

WEIR_INLINE void chip_end(void)
{
    __asm volatile("mov r0, #0x18\n\tldr r1, =0x20026\n\tbkpt 0xab" ::: "r0", "r1", "memory");
}

#endif
