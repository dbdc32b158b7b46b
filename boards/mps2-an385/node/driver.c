/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "driver.h"

#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#include "lwip/netif.h"
#include "lwip/pbuf.h"

#include "board.h"
#include "card.h"
#include "options.h"
#include "stages.h"
#include "sizes.h"
#include "tally.h"
#include "yield.h"

static struct netif *netif;
static TaskHandle_t task;
static QueueHandle_t statuses;

/* Takes the frame that a status describes from the card, and hands it to the stack or drops it. */
static void deliver(uint32_t status)
{
    tally.frames++;
    uint32_t length = card_length(status);
    struct pbuf *pbuf = length == 0 ? NULL : pbuf_alloc(PBUF_RAW, (u16_t) length, PBUF_POOL);
    /* Drop a frame that is longer than a buffer of the pool: its pbuf would be a chain. */
    if (pbuf == NULL || pbuf->next != NULL) {
        card_skip(status);
        if (length == 0 || pbuf != NULL) {
            tally.broken++;
        } else {
            tally.no_buffer++;
        }
        if (pbuf != NULL) {
            pbuf_free(pbuf);
        }
        return;
    }
    card_read(pbuf);
    if (netif->input(pbuf, netif) != ERR_OK) {
        tally.no_room++;
        pbuf_free(pbuf);
    }
}

static void run_masked(void *unused)
{
    (void) unused;
    card_interrupt(true);
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        do {
            while (card_waits()) {
                deliver(card_status());
            }
            card_acknowledge();
        } while (card_waits());
        stages_enable(true);
    }
}

static void run_packet(void *unused)
{
    (void) unused;
    card_interrupt(true);
    for (;;) {
        uint32_t status;
        xQueueReceive(statuses, &status, portMAX_DELAY);
        deliver(status);
        if (!stages_is_on()) { /* the queue was full, and now has room */
            stages_enable(true);
            if (card_waits()) { /* what came meanwhile may be forgotten */
                board_pend(BOARD_CARD_LINE);
            }
        }
    }
}

static void take_masked(BaseType_t *woken)
{
    stages_enable(false);
    vTaskNotifyGiveFromISR(task, woken);
}

static void take_packet(BaseType_t *woken)
{
    if (xQueueIsQueueFullFromISR(statuses)) {
        stages_enable(false);
        return;
    }
    if (card_waits()) {
        uint32_t status = card_status();
        xQueueSendFromISR(statuses, &status, woken);
    }
    if (!card_waits()) {
        card_acknowledge();
        /* A frame that arrived since the last check may have lost its request. Make a new interrupt
         * for it instead of looping here, because a loop would not end in a fast flood. */
        if (card_waits()) {
            board_pend(BOARD_CARD_LINE);
        }
    }
}

void driver_interrupt(void)
{
    BaseType_t woken = pdFALSE;
    if (stages_demux()) {
        stages_take(&woken);
    } else {
        tally.interrupts++;
        if (stages_let_in()) {
            if (options.driver == DRIVER_MASKED) {
                take_masked(&woken);
            } else {
                take_packet(&woken);
            }
        }
    }
    yield_from_interrupt(woken);
}

void driver_start(struct netif *of)
{
    netif = of;
    card_start(netif->hwaddr);
    stages_start(netif);
    if (options.driver == DRIVER_DEMUX) {
        board_enable(BOARD_CARD_LINE, BOARD_URGENCY_PACKET);
        card_interrupt(true);
        return;
    }
    statuses = xQueueCreate(options.descriptors, sizeof(uint32_t));
    configASSERT(statuses != NULL);
    TaskFunction_t run = options.driver == DRIVER_MASKED ? run_masked : run_packet;
    BaseType_t made = xTaskCreate(run, "driver", SIZES_TASK_STACK / sizeof(StackType_t), NULL, options.layout->driver, &task);
    configASSERT(made == pdPASS);
    board_enable(BOARD_CARD_LINE, BOARD_URGENCY_PACKET);
}
