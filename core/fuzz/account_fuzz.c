/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libFuzzer's entry point. Each input describes accounts and the packets that are charged to them.
 * */
#include "../src/account.c"
#include "../tests/account_board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    board_run(data, size);
    return 0;
}
