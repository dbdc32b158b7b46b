/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef URGENT_H
#define URGENT_H

#include <stdint.h>

/* The number of runs of the urgent source's handler. */
extern volatile uint32_t served_urgent;

void urgent_begin(void);
/* Prints the events of the urgent source. */
void urgent_tell(void);
/* The interrupt functions of the urgent source's line and of its timer. */
void irq28(void);
void timer1(void);

#endif
