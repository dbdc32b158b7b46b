/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libFuzzer's way in: each input is a limiter and what happens to it. */
#include "../src/limit.c"
#include "../tests/limit_board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    board_run(data, size);
    return 0;
}
