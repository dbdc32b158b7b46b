/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * "Pure interrupts" (regehr2005 §5.2): an ordinary handler. The firmware behind the limiter in
 * silicon (§3.4) is the same to the instruction: only the set-up before the first request differs.
 *
 * NODE_SILICON  the limiter is used, with NODE_POLICY, NODE_INTERVAL (clocks) and NODE_BURST
 */
#include "node.h"
#include "weir/riscv.h"

#ifdef NODE_SILICON
#include "weir/silicon.h"

#define LIMITER 0x11000000u

/*
 * A limiter with other parameters than expected would falsify the measurement: the run ends at
 * once, with exit code 1.
 */
static void limit_in_silicon(void)
{
    static weir_silicon_t limiter;
    weir_silicon_error_t error = weir_silicon_open(&limiter, LIMITER);
    if (error == WEIR_SILICON_OK) {
        error = weir_silicon_limit(&limiter, 0, NODE_POLICY, weir_silicon_rate(&limiter, NODE_INTERVAL), NODE_BURST);
    }
    if (error != WEIR_SILICON_OK) {
        *(volatile uint32_t *) 0x1fff0000u = 1;
    }
}
#endif

WEIR_RISCV_UNLIMITED(line, 0)
{
    node_handle();
}

WEIR_RISCV_TRAP(line);

void node_start(void)
{
#ifdef NODE_SILICON
    limit_in_silicon();
#endif
    weir_riscv_run();
    weir_riscv_start(line);
}
