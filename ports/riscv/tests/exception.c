/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checks that an exception in the background, while a limited line interrupts, reaches the
 * program's hook. The hook ends the run with exit code 7.
 */
#include "watched.h"

#define WEIR_RISCV_ON_EXCEPTION() watched_exit(7)
#include "weir/riscv.h"

WEIR_RISCV_LIMIT(line, 0, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_EAGER, .interval = 2000, .burst = 1)
{
    WATCHED(WATCHED_HANDLER);
}

#ifdef TEST_SHARED
WEIR_RISCV_UNLIMITED(other, 1)
{
}
WEIR_RISCV_TRAP(line, other);
#else
WEIR_RISCV_TRAP(line);
#endif

int main(void)
{
    weir_riscv_run();
    weir_riscv_start(line);
    WATCHED(WATCHED_START);
    weir_riscv_interrupts_on();
    for (uint32_t turns = 3000; turns != 0; turns--) {
        __asm__ volatile("nop");
    }
    __asm__ volatile(".word 0");
    return 1;
}
