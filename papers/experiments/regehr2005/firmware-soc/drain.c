/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A handler that drains its device: the event device of line 0 keeps events, and requests as long
 * as some wait. A limit on the interrupts alone does not bound the time of such a handler
 * (regehr2005 §5.2's t_work); NODE_MAX_WORK does.
 *
 * NODE_MAX_WORK  units per interrupt; if not defined, the handler runs until no event is left
 * `exceeded`     the number of interrupts that left some events
 */
#include "node.h"
#include "weir/riscv.h"

#ifdef NODE_MAX_WORK
volatile uint32_t exceeded;
#define WEIR_ON_WORK_EXCEEDED(work) ((void) (work), exceeded++)
#include "weir/work.h"

static weir_work_t work;
#define BEGIN() weir_work_begin(&work, NODE_MAX_WORK)
#define TAKE() weir_work_take(&work)
#else
#define BEGIN() ((void) 0)
#define TAKE() true
#endif

/* The event device of line 0. */
#define EVENTS ((volatile uint32_t *) 0x10030000u)
#define COUNT EVENTS[0]
#define POP EVENTS[1]
#define CONTROL EVENTS[2]
#define CONTROL_QUEUE 1u

WEIR_RISCV_LIMIT(line, 0, .policy = NODE_POLICY, .timing = NODE_TIMING, .interval = NODE_INTERVAL, .burst = NODE_BURST)
{
    BEGIN();
    while (COUNT != 0 && TAKE()) {
        POP = 0;
        node_handle();
    }
}

WEIR_RISCV_TRAP(line);

void node_start(void)
{
    CONTROL = CONTROL_QUEUE;
    weir_riscv_run();
    weir_riscv_start(line);
}
