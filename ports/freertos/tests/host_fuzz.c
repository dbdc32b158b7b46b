/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libFuzzer's entry point: each input is a sequence of events of a card, receivers and workers. */
#include "node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    node_run(data, size);
    return 0;
}
