/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The critical task (behnke2021 §III-A). */
#ifndef NODE_CRITICAL_H
#define NODE_CRITICAL_H

/* Creates the critical task that options.task selects. */
void critical_start(void);

/* Handles the interrupt that releases the critical task. */
void critical_interrupt(void);

#endif
