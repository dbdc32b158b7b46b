/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A firmware for the board soc: a background that counts, at address 0, and a variable that never
 * changes. */
#include <stdint.h>

volatile uint32_t progress;
volatile uint16_t handled;
volatile uint8_t buffer[3];

__attribute__((section(".start"), naked)) void start(void)
{
    __asm__ volatile("li sp, 0x10000\n j main");
}

int main(void)
{
    for (;;) {
        progress++;
        buffer[0]++;
    }
}
