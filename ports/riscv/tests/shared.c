/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Three limited lines, 0 to 2, and an unlimited line, 3, share the timer. TEST_USER: the user
 * switches line 1 off and on at random.
 */
#include "watched.h"
#include "weir/riscv.h"

WEIR_RISCV_LIMIT(strict, 0, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_EAGER, .interval = 3000, .burst = 1)
{
    WATCHED(WATCHED_HANDLER + 0);
}

WEIR_RISCV_LIMIT(bursty, 1, .policy = WEIR_LIMIT_BURSTY, .timing = WEIR_LIMIT_LAZY, .interval = 20000, .burst = 5)
{
    WATCHED(WATCHED_HANDLER + 1);
}

WEIR_RISCV_LIMIT(bucket, 2, .policy = WEIR_LIMIT_BUCKET, .timing = WEIR_LIMIT_LAZY, .interval = 7000, .burst = 3)
{
    WATCHED(WATCHED_HANDLER + 2);
}

WEIR_RISCV_UNLIMITED(free_line, 3)
{
    WATCHED(WATCHED_HANDLER + 3);
}

WEIR_RISCV_TRAP(strict, bursty, bucket, free_line);

int main(void)
{
    weir_riscv_run();
    weir_riscv_start(strict);
    weir_riscv_start(bursty);
    weir_riscv_start(bucket);
    weir_riscv_start(free_line);
    WATCHED(WATCHED_START);
    weir_riscv_interrupts_on();
    for (;;) {
#ifdef TEST_USER
        weir_riscv_disable(bursty);
        WATCHED(WATCHED_DISABLED);
        watched_wait();
        WATCHED(WATCHED_ENABLING);
        weir_riscv_enable(bursty);
        watched_wait();
#endif
    }
}
