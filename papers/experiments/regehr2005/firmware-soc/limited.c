/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One line behind Weir in software. NODE_POLICY, NODE_TIMING, NODE_INTERVAL, NODE_LAG (clocks) and
 * NODE_BURST are the limit. The handler is that of unprotected.c.
 */
#include "node.h"
#include "weir/riscv.h"

#ifndef NODE_LAG
#define NODE_LAG 0
#endif

WEIR_RISCV_LIMIT(line, 0, .policy = NODE_POLICY, .timing = NODE_TIMING, .interval = NODE_INTERVAL, .lag = NODE_LAG, .burst = NODE_BURST)
{
    node_handle();
}

WEIR_RISCV_TRAP(line);

void node_start(void)
{
    weir_riscv_run();
    weir_riscv_start(line);
}
