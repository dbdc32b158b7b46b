/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The work of the critical task: a controller that filters its measurements. */
#ifndef NODE_WORK_H
#define NODE_WORK_H

#include <stdint.h>

/* Performs one step of the control loop, which always takes the same number of instructions. It
 * filters the next sample, runs a PI controller, and advances the model of the controlled
 * system. */
void work_step(void);

/* Returns the controller's last output, which shows that the steps were performed, and how many. */
int32_t work_result(void);

#endif
