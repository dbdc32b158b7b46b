/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node of regehr2005 §6.1: the progress of its background task shows how much time interrupts
 * take. */
#include "node.h"

volatile uint32_t progress;
volatile uint16_t handled;

#ifdef NODE_BLOCK
ISR(INT0_vect)
{
    __builtin_avr_delay_cycles(NODE_BLOCK);
}
#endif

int main(void)
{
    EICRA = 0x3f; /* rising edges on INT0, INT1 and INT2 */
#ifdef NODE_BLOCK
    EICRA = 0xff; /* and on all others */
    EICRB = 0xff;
    EIMSK = 1u << INT0;
#endif
    node_start();
    sei();
#ifdef NODE_SLEEP
    set_sleep_mode(SLEEP_MODE_IDLE);
    sleep_enable();
    (void) progress; /* stays 0; without a use the linker drops it, and the board has nothing to observe */
    for (;;) {
        sleep_cpu();
    }
#else
    for (;;) {
        progress++;
    }
#endif
}
