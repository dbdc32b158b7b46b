/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The critical task's work: a controller that filters what it measured. */
#ifndef NODE_WORK_H
#define NODE_WORK_H

#include <stdint.h>

/* Does one step of the control loop, which always takes the same number of instructions: the next
 * sample is filtered, a PI controller answers, and the model of what is controlled moves on. */
void work_step(void);

/* Returns what the controller set last: the proof that steps were done, and which. */
int32_t work_result(void);

#endif
