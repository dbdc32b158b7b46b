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

/* The words of a frame that demux sees. */
enum { HEAD = WEIR_FREERTOS_HEAD / 4 };

/* A class for ports that nobody has, one for fragments, one for what has no port, and one for each
 * urgency of a server. lwIP keeps fragments until the others come: they have no buffers of
 * ARP's. */
enum { ORPHANS, PIECES, COMMON, SERVERS, CLASSES = SERVERS + OPTIONS_SERVER_URGENCIES };
enum { SLOTS = 32, BINDINGS = 24, STACK_WORDS = 768 };

/* Each receiver has buffers of its own in its class. */
static weir_freertos_frame_t frames[(SERVERS + STAGES_RECEIVERS) * SIZES_LANE];
weir_freertos_net_t stages_net;

/* Ticks of the board's clock, of five instructions each, that the interrupt takes before its
 * account begins and after it has ended. */
enum { OVERHEAD = 6 };

/* `work` has had the frame's first unit. */
static void take_frame(weir_work_t *work, BaseType_t *woken)
{
    uint32_t status = card_status(), length = card_length(status);
    tally.frames++;
    if (length == 0) {
        (void) weir_work_take_some(work, weir_freertos_further_work((uint16_t) card_whole_length(status)));
        card_skip(status);
        weir_freertos_discard_broken(&stages_net);
        tally.broken++;
        return;
    }
    uint32_t head[HEAD], words = (length + CARD_CHECKSUM + 3) / 4, seen = words < HEAD ? words : HEAD;
    (void) weir_work_take_some(work, weir_freertos_further_work((uint16_t) length));
    if (seen == HEAD) {
        card_read_words(head, HEAD); /* a constant, for the compiler */
    } else {
        card_read_words(head, seen);
    }
    weir_freertos_frame_t *frame = weir_freertos_admit(&stages_net, (const uint8_t *) head, (uint16_t) length);
    if (frame == NULL) {
        tally.no_room++;
        card_skip_words(words - seen);
        weir_freertos_discard(&stages_net);
        return;
    }
    for (uint32_t at = 0; at < seen; at++) {
        frame->words[at] = head[at];
    }
    card_read_words(frame->words + seen, words - seen);
    weir_freertos_defer(&stages_net, frame, woken);
}

/* Forgets the frames that came, unless there are further ones. */
static bool is_more(void)
{
    if (card_waits()) {
        return true;
    }
    card_acknowledge();
    if (!card_waits()) {
        return false;
    }
    board_pend(BOARD_CARD_LINE); /* it came since the look, and was forgotten with the others */
    return true;
}

/*
 * The limit has let the interrupt in: it does so much work, or takes the frames that there are,
 * with those that come meanwhile. At the rate of the wire the card has room for hardly more than
 * those of a millisecond: left for the next tick, they would be lost.
 */
static void take_frames(BaseType_t *woken)
{
    weir_work_t work = {0};
    weir_work_begin(&work, (uint16_t) options.work);
    uint32_t waiting = card_count();
    while (waiting > 0 && weir_work_take(&work)) {
        take_frame(&work, woken);
        waiting--;
        if (waiting == 0) {
            waiting = card_count();
        }
    }
}

void stages_take(BaseType_t *woken)
{
    if (weir_freertos_frames_wait(&stages_net)) {
        stages_enable(false);
    } else {
        take_frames(woken);
        bool is_left = is_more();
        if (weir_freertos_frames_taken(&stages_net, is_left) && options.gather_us != 0) {
            stages_enable(true);
        }
    }
}

bool demuxed_wait_ends(void)
{
    return weir_freertos_wait_ends(&stages_net);
}

bool demuxed_is_due(void)
{
    return stages_net.card.state.phase == WEIR_MODERATE_RAISED;
}

/* The receivers of this urgency: servers of Modbus, UDP's, and those of pages and echoes. */
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
