/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "demuxed.h"

#include "lwip/netif.h"

#include "weir/freertos_lwip.h"

#include "board.h"
#include "card.h"
#include "host.h"
#include "options.h"
#include "stages.h"
#include "tally.h"

/* The words of a frame that demux sees. */
enum { HEAD = WEIR_FREERTOS_HEAD / 4 };

/* A class for ports that nobody has, one for what has no port, and one for each server. */
enum { CLASSES = 6, FRAMES = 8, SLOTS = 32, BINDINGS = 24, STACK_WORDS = 768 };

static weir_freertos_frame_t frames[CLASSES][FRAMES];
static weir_freertos_net_t net;

/* Takes one frame: the limit has let the interrupt in for it. */
static void take_frame(BaseType_t *woken)
{
    uint32_t status = card_status(), length = card_length(status);
    tally.frames++;
    if (length == 0) {
        card_skip(status);
        tally.broken++;
        return;
    }
    uint32_t head[HEAD], words = (length + CARD_CHECKSUM + 3) / 4, seen = words < HEAD ? words : HEAD;
    if (seen == HEAD) {
        card_read_words(head, HEAD); /* a constant, for the compiler */
    } else {
        card_read_words(head, seen);
    }
    weir_freertos_frame_t *frame = weir_freertos_admit(&net, (const uint8_t *) head, (uint16_t) length);
    if (frame == NULL) {
        tally.no_room++;
        card_skip_words(words - seen);
        return;
    }
    for (uint32_t at = 0; at < seen; at++) {
        frame->words[at] = head[at];
    }
    card_read_words(frame->words + seen, words - seen);
    weir_freertos_defer(&net, frame, woken);
}

void stages_take(BaseType_t *woken)
{
    weir_freertos_interrupt_begins(&net);
    if (card_waits()) {
        take_frame(woken);
    }
    if (!card_waits()) {
        card_acknowledge();
        if (card_waits()) { /* it came since the look, and was forgotten with the others */
            board_pend(BOARD_CARD_LINE);
        }
    }
    weir_freertos_interrupt_ends(&net);
}

void demuxed_start(struct netif *netif)
{
    static weir_freertos_class_t classes[CLASSES];
    uint8_t count = 0;
    classes[count++] = (weir_freertos_class_t) {STAGES_ORPHAN_URGENCY, frames[0], FRAMES};
    classes[count] = (weir_freertos_class_t) {STAGES_COMMON_URGENCY, frames[count], FRAMES};
    count++;
    for (uint32_t server = OPTIONS_MODBUS_SERVERS; server-- > 0; count++) {
        classes[count] = (weir_freertos_class_t) {options.layout->modbus[server], frames[count], FRAMES};
    }
    weir_freertos_config_t config = {
        .classes = classes,
        .count = count,
        .common = 1,
        .orphans = 0,
        .fragments = 1,
        .slots = SLOTS,
        .bindings = BINDINGS,
        .receivers = STAGES_RECEIVERS,
        .stack_words = STACK_WORDS,
        .input = weir_freertos_lwip_input,
        .context = netif,
    };
    weir_freertos_error_t error = weir_freertos_start(&net, &config);
    configASSERT(error == WEIR_FREERTOS_OK);
}

void stages_bind(uint8_t protocol, uint16_t port, uint16_t receiver, uint32_t urgency)
{
    if (options.driver == DRIVER_DEMUX) {
        weir_freertos_error_t error = weir_freertos_bind(&net, protocol, port, receiver, urgency);
        configASSERT(error == WEIR_FREERTOS_OK);
        if (options.budget != 0 && receiver < OPTIONS_MODBUS_SERVERS) {
            weir_freertos_set_budget(&net, receiver, options.budget);
        }
    }
}

void demuxed_refill(void)
{
    weir_freertos_refill(&net);
}

void stages_print(void)
{
    static const char *const names[STAGES_RECEIVERS] = {"modbus0", "modbus1", "modbus2", "modbus3", "udp", "http", "echo"};
    static const char *const reasons[WEIR_FREERTOS_REASONS] = {"no_receiver", "malformed", "lane_full", "over_budget"};
    if (options.driver != DRIVER_DEMUX) {
        return;
    }
    uint32_t buffers = 0;
    for (uint8_t which = 0; which < net.config.count; which++) {
        for (const weir_freertos_frame_t *frame = net.lanes[which].free; frame != NULL; frame = frame->next) {
            buffers++;
        }
    }
    host_print(",\n  \"weir\": {\"handled\": ");
    host_print_number(net.device.handled);
    host_print_field("ticks", net.device.cycles);
    host_print_field("for_nobody", net.account.orphans);
    host_print_field("buffers", buffers);
    for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
        host_print_field(reasons[reason], net.dropped[reason]);
    }
    for (uint32_t at = 0; at < STAGES_RECEIVERS; at++) {
        const weir_freertos_receiver_t *receiver = &net.receivers[at];
        host_print(",\n    \"");
        host_print(names[at]);
        host_print("\": {\"frames\": ");
        host_print_number(receiver->frames);
        host_print_field("ticks", receiver->account.received);
        for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
            host_print_field(reasons[reason], receiver->dropped[reason]);
        }
        host_print("}");
    }
    host_print("}");
}
