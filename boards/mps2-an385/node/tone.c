/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tone.h"

#include "FreeRTOS.h"
#include "task.h"

#include "board.h"
#include "options.h"

void tone_run(void *unused)
{
    (void) unused;
    board_release_every(options.period_us * BOARD_CLOCK_MHZ);
    for (uint32_t level = 1;; level ^= 1) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        BOARD_LEDS = level;
    }
}
