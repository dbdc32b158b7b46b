/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libFuzzer's entry point. Each input is a limiter and a sequence of events. */
#include "../src/limit.c"
#include "../tests/limit_board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    board_run(data, size);
    return 0;
}
