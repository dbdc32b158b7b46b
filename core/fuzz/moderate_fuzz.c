/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libFuzzer's entry point. Each input is a NIC and a sequence of events. */
#include "../src/moderate.c"
#include "../tests/moderate_board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    nic_run(data, size);
    return 0;
}
