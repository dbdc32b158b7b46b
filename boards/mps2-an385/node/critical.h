/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The critical task (behnke2021 §III-A). */
#ifndef NODE_CRITICAL_H
#define NODE_CRITICAL_H

/* Makes the task that options.task names. */
void critical_start(void);

/* The interrupt that calls it. */
void critical_interrupt(void);

#endif
