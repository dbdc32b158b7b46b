/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "demuxed.h"

#include "lwip/netif.h"
#include "lwip/prot/ip.h"

#include "weir/freertos_lwip.h"
#include "weir/work.h"

#include "board.h"
#include "card.h"
#include "host.h"
#include "options.h"
#include "servers.h"
#include "stages.h"
#include "tally.h"

/* The number of words of a frame that demux reads. */
enum { HEAD = WEIR_FREERTOS_HEAD / 4 };

/* The classes: ports that nobody has bound, fragments, frames without a port, and one class for
 * each priority of a server. Fragments have a class of their own because lwIP keeps them until all
 * fragments have arrived: they must not use up the buffers of ARP. */
enum { ORPHANS, PIECES, COMMON, SERVERS, CLASSES = SERVERS + OPTIONS_SERVER_URGENCIES };
enum { SLOTS = 32, BINDINGS = 24, STACK_WORDS = 768 };

/* The buffers. Each receiver has its own share of the buffers of its class. */
static weir_freertos_frame_t frames[(SERVERS + STAGES_RECEIVERS) * SIZES_LANE];
weir_freertos_net_t stages_net;

/* The time that the interrupt takes before its accounting begins and after it has ended, in ticks
 * of the board's clock. A tick is five instructions. */
enum { OVERHEAD = 6 };

static bool is_let_in(void)
{
    tally.interrupts++;
    return stages_let_in();
}

static weir_freertos_head_t head_of(uint32_t *words)
{
    uint32_t status = card_status(), length = card_length(status);
    tally.frames++;
    if (length == 0) {
        tally.broken++;
        return (weir_freertos_head_t) {(uint16_t) card_whole_length(status), true};
    }
    uint32_t all = (length + CARD_CHECKSUM + 3) / 4;
    if (all >= HEAD) {
        card_read_words(words, HEAD); /* a constant, for the compiler */
    } else {
        card_read_words(words, all);
    }
    return (weir_freertos_head_t) {(uint16_t) length, false};
}

/* The card delivers the checksum after a frame. The length of a broken frame includes the
 * checksum. */
static void rest_of(weir_freertos_head_t frame, uint32_t *words)
{
    uint32_t all = (frame.length + 3u) / 4u;
    if (!frame.is_broken) {
        all = (frame.length + CARD_CHECKSUM + 3u) / 4u;
        all -= all < HEAD ? all : HEAD;
    }
    if (words != NULL) {
        card_read_words(words, all);
        return;
    }
    tally.no_room += !frame.is_broken;
    card_skip_words(all);
}

static void request(void)
{
    board_pend(BOARD_CARD_LINE);
}

static const weir_freertos_driver_t card = {
    .is_let_in = is_let_in,
    .count = card_count,
    .head = head_of,
    .rest = rest_of,
    .acknowledge = card_acknowledge,
    .request = request,
    .enable = stages_enable,
};

/* Frames that are left must not wait for the next tick. At wire speed the card has room for hardly
 * more frames than arrive in a millisecond, and would lose those that arrive in the meantime. */
void stages_take(BaseType_t *woken)
{
    weir_work_t work = {0};
    weir_freertos_take(&stages_net, &card, &work, (uint16_t) options.work, woken);
}

bool demuxed_wait_ends(void)
{
    return weir_freertos_wait_ends(&stages_net);
}

bool demuxed_is_due(void)
{
    return stages_net.card.state.phase == WEIR_MODERATE_RAISED;
}

/* Returns the number of receivers of this priority: Modbus servers, the UDP server, and the servers
 * of pages and echoes. */
static uint32_t receivers_at(UBaseType_t urgency)
{
    uint32_t count = options.layout->servers == urgency ? 2 : 0;
    for (uint32_t server = 0; server < OPTIONS_MODBUS_SERVERS; server++) {
        uint32_t its = options.modbus == MODBUS_TOGETHER ? options.layout->servers : options.layout->modbus[server];
        count += its == urgency;
    }
    return count + (servers_udp_urgency() == urgency);
}

void demuxed_start(struct netif *netif)
{
    static weir_freertos_class_t classes[CLASSES];
    static const UBaseType_t without_server[SERVERS] = {
        [ORPHANS] = STAGES_ORPHAN_URGENCY, [PIECES] = STAGES_FRAGMENT_URGENCY, [COMMON] = STAGES_COMMON_URGENCY};
    uint8_t count = 0;
    weir_freertos_frame_t *next = frames;
    for (; count < SERVERS; count++) {
        classes[count] = (weir_freertos_class_t) {without_server[count], next, SIZES_LANE};
        next += SIZES_LANE;
    }
    for (UBaseType_t urgency = STAGES_COMMON_URGENCY + 1; urgency < configMAX_PRIORITIES; urgency++) {
        uint16_t its = (uint16_t) (receivers_at(urgency) * SIZES_LANE);
        if (its != 0) {
            configASSERT(count < CLASSES); /* a server-urgency that no other server has is one too many */
            classes[count] = (weir_freertos_class_t) {urgency, next, its};
            next += its;
            count++;
        }
    }
    weir_freertos_config_t config = {
        .classes = classes,
        .count = count,
        .common = COMMON,
        .orphans = ORPHANS,
        .fragments = PIECES,
        .slots = SLOTS,
        .bindings = BINDINGS,
        .receivers = STAGES_RECEIVERS,
        .stack_words = STACK_WORDS,
        .gather = options.gather_us * BOARD_CLOCK_MHZ,
        .overhead = OVERHEAD,
        .input = weir_freertos_lwip_input,
        .context = netif,
    };
    weir_freertos_error_t error = weir_freertos_start(&stages_net, &config);
    configASSERT(error == WEIR_FREERTOS_OK);
}

void stages_bind(uint8_t protocol, uint16_t port, uint16_t receiver, uint32_t urgency)
{
    if (options.driver == DRIVER_DEMUX) {
        weir_freertos_error_t error = weir_freertos_bind(&stages_net, protocol, port, receiver, urgency);
        configASSERT(error == WEIR_FREERTOS_OK);
        weir_freertos_set_quota(&stages_net, receiver, SIZES_LANE);
        if (options.budget != 0) {
            weir_freertos_set_budget(&stages_net, receiver, options.budget);
        }
    }
}

void demuxed_change(bool is_other)
{
    weir_freertos_set_budget(&stages_net, STAGES_MODBUS, is_other ? 1 : options.budget);
    weir_freertos_error_t error = is_other
                                      ? weir_freertos_unbind(&stages_net, IP_PROTO_UDP, SERVERS_UDP_PORT, STAGES_UDP)
                                      : weir_freertos_bind(&stages_net, IP_PROTO_UDP, SERVERS_UDP_PORT, STAGES_UDP, servers_udp_urgency());
    configASSERT(error == WEIR_FREERTOS_OK);
}

void demuxed_refill(void)
{
    weir_freertos_refill(&stages_net);
}

void stages_print(void)
{
    static const char *const names[STAGES_RECEIVERS] = {"modbus0", "modbus1", "modbus2", "modbus3", "udp", "http", "echo"};
    static const char *const reasons[WEIR_FREERTOS_REASONS] = {"no_receiver", "malformed", "lane_full", "over_budget", "too_deep"};
    if (options.driver != DRIVER_DEMUX || stages_net.receivers == NULL) {
        return;
    }
    uint32_t buffers = 0;
    for (uint8_t which = 0; which < stages_net.config.count; which++) {
        for (const weir_freertos_frame_t *frame = stages_net.lanes[which].free; frame != NULL; frame = frame->next) {
            buffers++;
        }
    }
    host_print(",\n  \"weir\": {\"handled\": ");
    host_print_number(stages_net.all.packets);
    host_print_field("ticks", stages_net.all.cycles);
    host_print_field("for_nobody", stages_net.nobody.cycles);
    host_print_field("buffers", buffers);
    for (uint32_t reason = 0; reason < WEIR_FREERTOS_REASONS; reason++) {
        host_print_field(reasons[reason], stages_net.dropped[reason]);
    }
    for (uint32_t at = 0; at < STAGES_RECEIVERS; at++) {
        const weir_freertos_receiver_t *receiver = &stages_net.receivers[at];
        host_print(",\n    \"");
        host_print(names[at]);
        host_print("\": {\"frames\": ");
        host_print_number(receiver->account.packets - receiver->lane_full - receiver->over_budget);
        host_print_field("ticks", receiver->account.cycles);
        host_print_field("lane_full", receiver->lane_full);
        host_print_field("over_budget", receiver->over_budget);
        host_print("}");
    }
    host_print("}");
}
