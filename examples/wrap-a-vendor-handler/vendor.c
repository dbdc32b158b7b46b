/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Takes the place of a vendor's driver, which comes as an object file and cannot be changed. */
#include <avr/interrupt.h>

volatile uint16_t vendor_events;

ISR(INT0_vect)
{
    vendor_events++;
}
