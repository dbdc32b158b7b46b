/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libFuzzer's entry point. Each input is a frame, or a sequence of events for a table, for bottom
 * halves or for a predictor.
 */
#include "../src/defer.c"
#include "../src/demux.c"
#include "../tests/classes_board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    classes_run(data, size);
    return 0;
}
