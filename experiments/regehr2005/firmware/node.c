/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node of regehr2005 §6.1: a background task whose progress shows what interrupts take away. */
#include "node.h"

volatile uint32_t progress;
volatile uint16_t handled;

int main(void)
{
    EICRA = 0x3f; /* rising edges on INT0, INT1 and INT2 */
    node_start();
    sei();
#ifdef NODE_SLEEP
    set_sleep_mode(SLEEP_MODE_IDLE);
    sleep_enable();
    for (;;) {
        sleep_cpu();
    }
#else
    for (;;) {
        progress++;
    }
#endif
}
