/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libFuzzer's entry point: each input is a sequence of events of a card, receivers and workers. */
#include "house.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    house_run(data, size);
    return 0;
}
