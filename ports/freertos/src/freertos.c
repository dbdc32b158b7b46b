/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All tables have whole buckets here, so the lowest bits of the mask are always set. Setting them
 * again lets the compiler know this, so that no way of a bucket needs a mask. */
#define WEIR_DEMUX_MASK(table) ((uint16_t) ((table)->mask | (WEIR_DEMUX_WAYS - 1u)))

#include "weir/freertos.h"

#include <string.h>

/* The number of bytes that a card delivers after a frame. */
#define CHECKSUM 4u

/* ------------------------------------------------------------------------- account: who pays */

/* The card whose workers run. A program has only one. */
static weir_freertos_net_t *the_net;

void weir_freertos_switched(void *of)
{
    if (the_net != NULL) {
        /* Check the pointer: other code may have set it to something that is not a lane. */
        uintptr_t place = (uintptr_t) of - (uintptr_t) the_net->lanes;
        weir_freertos_lane_t *lane = place < the_net->config.count * sizeof *lane ? of : NULL;
        weir_freertos_charge(the_net, lane != NULL && lane->is_busy ? &lane->spent : NULL);
    }
}

/* Charges the cost of a finished frame to its receiver, or to nobody. */
static void count(weir_freertos_net_t *net, uint16_t receiver, uint32_t spent)
{
    weir_account_total_t *whose = receiver == WEIR_DEMUX_NO_LINK ? &net->nobody : &net->receivers[receiver].account;
    weir_account_count(&net->all, whose, spent);
}

/* ---------------------------------------------------------------- demux: in the interrupt */

static weir_freertos_frame_t *drop(weir_freertos_net_t *net, weir_account_total_t *whose, weir_freertos_reason_t reason)
{
    net->dropped[reason]++;
    net->refused = whose;
    return NULL;
}

/* Takes a buffer for a frame. Returns NULL if the class has no free buffer. */
static weir_freertos_frame_t *take_frame(weir_freertos_net_t *net, uint8_t which, uint16_t receiver, uint16_t length)
{
    weir_freertos_lane_t *lane = &net->lanes[which];
    weir_freertos_frame_t *frame = lane->free;
    if (frame != NULL) {
        lane->free = frame->next;
        frame->length = length;
        frame->receiver = receiver;
    }
    return frame;
}

/* Admits a frame for a port that a receiver has bound. */
static weir_freertos_frame_t *admit_to(weir_freertos_net_t *net, const weir_demux_found_t *found, uint16_t length)
{
    uint16_t index = net->links[found->link].reader;
    weir_freertos_receiver_t *receiver = &net->receivers[index];
    if (receiver->budget != 0 && receiver->left == 0) {
        receiver->over_budget++;
        return drop(net, &receiver->account, WEIR_FREERTOS_OVER_BUDGET);
    }
    receiver->left--; /* without a budget nobody asks what is left */
    weir_freertos_frame_t *frame = receiver->held < receiver->quota ? take_frame(net, found->which, index, length) : NULL;
    if (frame == NULL) {
        receiver->lane_full++;
        return drop(net, &receiver->account, WEIR_FREERTOS_LANE_FULL);
    }
    receiver->held++;
    return frame;
}

/* Admits a frame that has no port, or whose port nobody has bound. */
static weir_freertos_frame_t *admit_other(weir_freertos_net_t *net, const weir_demux_packet_t *packet, bool is_whole, uint16_t length)
{
    uint8_t which = net->demux.orphans;
    weir_freertos_reason_t reason = WEIR_FREERTOS_NO_RECEIVER;
    switch (packet->outcome) {
    case WEIR_DEMUX_PORT:
        break;
    case WEIR_DEMUX_NOT_IP:
    case WEIR_DEMUX_OTHER_PROTOCOL:
        which = net->config.common;
        break;
    case WEIR_DEMUX_FIRST_FRAGMENT:
    case WEIR_DEMUX_LATER_FRAGMENT:
        which = net->demux.fragments;
        break;
    case WEIR_DEMUX_TOO_DEEP:
        reason = WEIR_FREERTOS_TOO_DEEP;
        break;
    case WEIR_DEMUX_TRUNCATED:
        reason = WEIR_FREERTOS_TOO_DEEP;
        if (!is_whole) { /* there is more of it */
            break;
        }
        return drop(net, &net->nobody, WEIR_FREERTOS_MALFORMED);
    default:
        return drop(net, &net->nobody, WEIR_FREERTOS_MALFORMED);
    }
    if (which == WEIR_DEMUX_DROP) {
        return drop(net, &net->nobody, reason);
    }
    weir_freertos_frame_t *frame = take_frame(net, which, WEIR_DEMUX_NO_LINK, length);
    return frame != NULL ? frame : drop(net, &net->nobody, WEIR_FREERTOS_LANE_FULL);
}

weir_freertos_frame_t *weir_freertos_admit(weir_freertos_net_t *net, const uint8_t *head, uint16_t length)
{
    if (length > WEIR_FREERTOS_LONGEST - CHECKSUM) {
        return drop(net, &net->nobody, WEIR_FREERTOS_MALFORMED);
    }
    weir_demux_packet_t packet;
    uint16_t present = length < WEIR_FREERTOS_HEAD ? length : (uint16_t) WEIR_FREERTOS_HEAD;
    if (length < WEIR_DEMUX_PLAIN || !weir_demux_parse_plain(head, present, &packet)) {
        packet = weir_demux_parse(head, present);
    }
    if (packet.outcome == WEIR_DEMUX_PORT) {
        /* Only ports can be bound, so this is the only lookup. */
        weir_demux_found_t found = weir_demux_lookup(&net->demux, net->slots, weir_demux_by_port(packet.protocol, packet.port));
        if (found.kind == WEIR_DEMUX_BOUND) {
            return admit_to(net, &found, length);
        }
    }
    return admit_other(net, &packet, present == length, length);
}

void weir_freertos_defer(weir_freertos_net_t *net, weir_freertos_frame_t *frame, BaseType_t *woken)
{
    weir_freertos_lane_t *lane = &net->lanes[frame->which];
    frame->next = NULL;
    if (lane->first == NULL) {
        lane->first = frame;
        vTaskNotifyGiveFromISR(lane->worker, woken);
    } else {
        lane->last->next = frame;
    }
    lane->last = frame;
    frame->spent = weir_freertos_take_spent(net);
}

/* -------------------------------------------------------------------------- defer: the workers */

static weir_freertos_frame_t *begin_frame(weir_freertos_lane_t *lane)
{
    taskENTER_CRITICAL();
    weir_freertos_frame_t *frame = lane->first;
    if (frame != NULL) {
        lane->first = frame->next;
        lane->spent = frame->spent;
        lane->is_busy = true;
        weir_freertos_charge(lane->net, &lane->spent);
    }
    taskEXIT_CRITICAL();
    return frame;
}

static void end_frame(weir_freertos_lane_t *lane, uint16_t receiver)
{
    taskENTER_CRITICAL();
    weir_freertos_charge(lane->net, NULL);
    lane->is_busy = false;
    count(lane->net, receiver, lane->spent);
    taskEXIT_CRITICAL();
}

static void run(void *of)
{
    weir_freertos_lane_t *lane = of;
    weir_freertos_net_t *net = lane->net;
    vTaskSetThreadLocalStoragePointer(NULL, WEIR_FREERTOS_POINTER, lane);
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        for (weir_freertos_frame_t *frame = begin_frame(lane); frame != NULL; frame = begin_frame(lane)) {
            /* Read the receiver now: once the stack has the frame, its buffer may be reused. */
            uint16_t receiver = frame->receiver;
            net->config.input(net->config.context, frame);
            end_frame(lane, receiver);
            /* Let a receiver of equal urgency run first. Otherwise its socket could fill up before
             * it reads a packet. */
            taskYIELD();
        }
    }
}

void weir_freertos_release(weir_freertos_frame_t *frame)
{
    weir_freertos_lane_t *lane = &frame->net->lanes[frame->which];
    taskENTER_CRITICAL();
    if (frame->receiver != WEIR_DEMUX_NO_LINK) {
        frame->net->receivers[frame->receiver].held--;
    }
    frame->next = lane->free;
    lane->free = frame;
    taskEXIT_CRITICAL();
}

/* ------------------------------------------------------------------------- set-up and receivers */

static bool are_classes(const weir_freertos_config_t *config)
{
    if (config->count == 0 || config->count > WEIR_CLASSES) {
        return false;
    }
    for (uint8_t which = 0; which < config->count; which++) {
        const weir_freertos_class_t *class = &config->classes[which];
        bool rises = which == 0 || class->urgency > config->classes[which - 1].urgency;
        if (class->frames == NULL || class->count == 0 || class->urgency >= configMAX_PRIORITIES || !rises) {
            return false;
        }
    }
    return config->common < config->count && (config->orphans < config->count || config->orphans == WEIR_DEMUX_DROP) &&
           (config->fragments < config->count || config->fragments == WEIR_DEMUX_DROP);
}

static void *new_zeroed(size_t bytes)
{
    void *memory = pvPortMalloc(bytes);
    if (memory != NULL) {
        memset(memory, 0, bytes);
    }
    return memory;
}

static void start_lane(weir_freertos_net_t *net, const weir_freertos_class_t *class, uint8_t which)
{
    weir_freertos_lane_t *lane = &net->lanes[which];
    lane->net = net;
    for (uint16_t at = 0; at < class->count; at++) {
        weir_freertos_frame_t *frame = &class->frames[at];
        frame->net = net;
        frame->which = which;
        frame->next = lane->free;
        lane->free = frame;
    }
}

static bool take_memory(weir_freertos_net_t *net, const weir_freertos_config_t *config)
{
    net->slots = new_zeroed(config->slots * sizeof *net->slots);
    net->links = new_zeroed(config->bindings * sizeof *net->links);
    net->receivers = new_zeroed(config->receivers * sizeof *net->receivers);
    net->lanes = new_zeroed(config->count * sizeof *net->lanes);
    return net->slots != NULL && net->links != NULL && net->receivers != NULL && net->lanes != NULL;
}

static void free_memory(weir_freertos_net_t *net, uint8_t lanes)
{
    for (uint8_t which = 0; net->lanes != NULL && which < lanes; which++) {
        if (net->lanes[which].worker != NULL) {
            vTaskDelete(net->lanes[which].worker);
        }
    }
    vPortFree(net->slots);
    vPortFree(net->links);
    vPortFree(net->receivers);
    vPortFree(net->lanes);
}

/* Sets up everything except the configuration. */
static weir_freertos_error_t make(weir_freertos_net_t *net, const weir_freertos_config_t *config)
{
    if (!take_memory(net, config)) {
        return WEIR_FREERTOS_NO_MEMORY;
    }
    if (weir_demux_start(&net->demux, net->slots, config->slots, net->links, config->bindings, config->orphans, config->fragments) !=
        WEIR_DEMUX_OK) {
        return WEIR_FREERTOS_BAD_TABLE;
    }
    weir_moderate_config_t moderation = {.absolute = config->gather, .size = 1};
    if (weir_moderate_check(&moderation) != WEIR_MODERATE_OK) {
        return WEIR_FREERTOS_BAD_GATHER;
    }
    weir_moderate_start(&net->card, &moderation);
    for (uint16_t at = 0; at < config->receivers; at++) {
        net->receivers[at].quota = UINT16_MAX;
    }
    for (uint8_t which = 0; which < config->count; which++) {
        const weir_freertos_class_t *class = &config->classes[which];
        start_lane(net, class, which);
        if (xTaskCreate(run, "weir", config->stack_words, &net->lanes[which], class->urgency, &net->lanes[which].worker) != pdPASS) {
            return WEIR_FREERTOS_NO_MEMORY;
        }
    }
    return WEIR_FREERTOS_OK;
}

weir_freertos_error_t weir_freertos_start(weir_freertos_net_t *net, const weir_freertos_config_t *config)
{
    if (!are_classes(config)) {
        return WEIR_FREERTOS_BAD_CLASSES;
    }
    if (config->slots < WEIR_DEMUX_WAYS) {
        return WEIR_FREERTOS_BAD_TABLE;
    }
    memset(net, 0, sizeof *net);
    weir_freertos_error_t error = make(net, config);
    if (error != WEIR_FREERTOS_OK) {
        free_memory(net, config->count);
        memset(net, 0, sizeof *net);
        return error;
    }
    /* Set the configuration last: the tick may come at any time, and must not see receivers that do
     * not exist yet. */
    net->config = *config;
    the_net = net;
    return WEIR_FREERTOS_OK;
}

static weir_freertos_error_t error_of(weir_demux_error_t error)
{
    switch (error) {
    case WEIR_DEMUX_OK:
        return WEIR_FREERTOS_OK;
    case WEIR_DEMUX_NOT_BOUND:
        return WEIR_FREERTOS_NOT_BOUND;
    case WEIR_DEMUX_NO_SLOT:
    case WEIR_DEMUX_NO_LINKS:
        return WEIR_FREERTOS_FULL;
    default:
        return WEIR_FREERTOS_BAD_KEY;
    }
}

static weir_freertos_error_t bind(weir_freertos_net_t *net, weir_demux_key_t key, uint16_t receiver, UBaseType_t urgency)
{
    if (receiver >= net->config.receivers) {
        return WEIR_FREERTOS_BAD_RECEIVER;
    }
    for (uint8_t which = 0; which < net->config.count; which++) {
        if (net->config.classes[which].urgency == urgency) {
            taskENTER_CRITICAL();
            weir_demux_error_t error = weir_demux_bind(&net->demux, net->slots, net->links, key, receiver, which);
            taskEXIT_CRITICAL();
            return error_of(error);
        }
    }
    return WEIR_FREERTOS_BAD_URGENCY;
}

static bool is_port(uint8_t protocol, uint16_t port)
{
    return (protocol == 6 || protocol == 17) && port != 0;
}

weir_freertos_error_t weir_freertos_bind(weir_freertos_net_t *net, uint8_t protocol, uint16_t port, uint16_t receiver, UBaseType_t urgency)
{
    return is_port(protocol, port) ? bind(net, weir_demux_by_port(protocol, port), receiver, urgency) : WEIR_FREERTOS_BAD_KEY;
}

weir_freertos_error_t weir_freertos_unbind(weir_freertos_net_t *net, uint8_t protocol, uint16_t port, uint16_t receiver)
{
    if (!is_port(protocol, port)) {
        return WEIR_FREERTOS_BAD_KEY;
    }
    taskENTER_CRITICAL();
    weir_demux_error_t error = weir_demux_unbind(&net->demux, net->slots, net->links, weir_demux_by_port(protocol, port), receiver);
    taskEXIT_CRITICAL();
    return error_of(error);
}

weir_freertos_error_t weir_freertos_set_budget(weir_freertos_net_t *net, uint16_t receiver, uint32_t frames)
{
    if (receiver >= net->config.receivers) {
        return WEIR_FREERTOS_BAD_RECEIVER;
    }
    taskENTER_CRITICAL();
    net->receivers[receiver].budget = frames;
    net->receivers[receiver].left = frames;
    taskEXIT_CRITICAL();
    return WEIR_FREERTOS_OK;
}

weir_freertos_error_t weir_freertos_set_quota(weir_freertos_net_t *net, uint16_t receiver, uint16_t frames)
{
    if (receiver >= net->config.receivers) {
        return WEIR_FREERTOS_BAD_RECEIVER;
    }
    taskENTER_CRITICAL();
    net->receivers[receiver].quota = frames == 0 ? UINT16_MAX : frames;
    taskEXIT_CRITICAL();
    return WEIR_FREERTOS_OK;
}

void weir_freertos_refill(weir_freertos_net_t *net)
{
    for (uint16_t at = 0; at < net->config.receivers; at++) {
        net->receivers[at].left = net->receivers[at].budget;
    }
}
