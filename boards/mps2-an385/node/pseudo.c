/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pseudo.h"

#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#include "lwip/inet_chksum.h"
#include "lwip/pbuf.h"

#include "board.h"
#include "options.h"
#include "sizes.h"
#include "tally.h"
#include "yield.h"

/* The descriptor of a packet that is already in memory, as a card with DMA leaves it. */
struct descriptor {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t number;
};

static uint8_t frame[OPTIONS_PSEUDO_LONGEST];
static QueueHandle_t descriptors;
static volatile u16_t checksum;

/* Does what any driver and stack must do with a packet: allocates a buffer, copies the packet, and
 * computes its checksum. */
static void run(void *unused)
{
    (void) unused;
    for (;;) {
        struct descriptor descriptor;
        xQueueReceive(descriptors, &descriptor, portMAX_DELAY);
        tally.frames++;
        struct pbuf *pbuf = pbuf_alloc(PBUF_RAW, (u16_t) descriptor.length, PBUF_POOL);
        if (pbuf == NULL) {
            tally.no_buffer++;
            continue;
        }
        pbuf_take(pbuf, descriptor.bytes, (u16_t) descriptor.length);
        checksum = inet_chksum_pbuf(pbuf);
        pbuf_free(pbuf);
    }
}

void pseudo_interrupt(void)
{
    BaseType_t woken = pdFALSE;
    struct descriptor descriptor = {frame, options.pseudo_length, tally.interrupts++};
    if (xQueueSendFromISR(descriptors, &descriptor, &woken) != pdTRUE) {
        tally.no_room++;
    }
    yield_from_interrupt(woken);
}

void pseudo_start(void)
{
    for (uint32_t at = 0; at < sizeof frame; at++) {
        frame[at] = (uint8_t) at;
    }
    descriptors = xQueueCreate(options.pseudo_descriptors, sizeof(struct descriptor));
    configASSERT(descriptors != NULL);
    BaseType_t made = xTaskCreate(run, "pseudo", SIZES_TASK_STACK / sizeof(StackType_t), NULL, options.layout->driver, NULL);
    configASSERT(made == pdPASS);
    board_enable(BOARD_PIN_LINE, BOARD_URGENCY_PACKET);
}
