/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node of regehr2005 §6.1: a background task whose progress shows what interrupts take away. */
#include "node.h"

volatile uint32_t progress;
volatile uint32_t handled;

int main(void)
{
    node_start();
    __asm__ volatile("csrsi mstatus, 8");
    for (;;) {
        progress++;
    }
}
