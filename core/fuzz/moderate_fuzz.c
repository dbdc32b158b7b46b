/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libFuzzer's way in: each input is a NIC and what happens to it. */
#include "../src/moderate.c"
#include "../tests/moderate_board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    nic_run(data, size);
    return 0;
}
