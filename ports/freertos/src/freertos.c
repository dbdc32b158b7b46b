/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "weir/freertos.h"

#include <string.h>

/* ------------------------------------------------------------------------- account: who pays */

/* The card whose workers run; a program has one. */
static weir_freertos_net_t *the_net;

void weir_freertos_switched(void *of)
{
    weir_freertos_lane_t *lane = of;
    if (the_net != NULL) {
        weir_freertos_charge(the_net, lane != NULL && lane->is_busy ? &lane->spent : NULL);
    }
}

/* Charges what the interrupt has taken since the last frame to the one that it has decided on. */
static uint32_t take_spent(weir_freertos_net_t *net)
{
    uint32_t now = WEIR_FREERTOS_CLOCK;
    uint32_t spent = net->in_interrupt + (now - net->since);
    net->since = now;
    net->in_interrupt = 0;
    return spent;
}

/* ---------------------------------------------------------------- demux: in the interrupt */

static weir_freertos_receiver_t *receiver_of(weir_freertos_net_t *net, uint16_t receiver)
{
    return receiver == WEIR_DEMUX_NO_LINK ? NULL : &net->receivers[receiver];
}

static void drop(weir_freertos_net_t *net, weir_freertos_receiver_t *receiver, weir_freertos_reason_t reason)
{
    net->dropped[reason]++;
    if (receiver != NULL) {
        receiver->dropped[reason]++;
    }
    weir_account_handled(&net->account, &net->device, receiver == NULL ? NULL : &receiver->account, take_spent(net));
}

weir_freertos_frame_t *weir_freertos_admit(weir_freertos_net_t *net, const uint8_t *head, uint16_t length)
{
    weir_demux_packet_t packet;
    uint16_t present = length < WEIR_FREERTOS_HEAD ? length : (uint16_t) WEIR_FREERTOS_HEAD;
    if (length < WEIR_DEMUX_PLAIN || !weir_demux_parse_plain(head, present, &packet)) {
        packet = weir_demux_parse(head, present);
    }
    weir_demux_found_t found = weir_demux_classify(&net->demux, net->slots, &packet);
    if (packet.outcome == WEIR_DEMUX_NOT_IP || packet.outcome == WEIR_DEMUX_OTHER_PROTOCOL) {
        found.which = net->config.common;
    }
    uint16_t index = found.link == WEIR_DEMUX_NO_LINK ? WEIR_DEMUX_NO_LINK : net->links[found.link].reader;
    weir_freertos_receiver_t *receiver = receiver_of(net, index);
    if (packet.outcome >= WEIR_DEMUX_TRUNCATED || length + 4u > WEIR_FREERTOS_LONGEST) {
        drop(net, receiver, WEIR_FREERTOS_MALFORMED);
        return NULL;
    }
    if (found.which == WEIR_DEMUX_DROP) {
        drop(net, receiver, WEIR_FREERTOS_NO_RECEIVER);
        return NULL;
    }
    if (receiver != NULL && receiver->budget != 0) {
        if (receiver->left == 0) {
            drop(net, receiver, WEIR_FREERTOS_OVER_BUDGET);
            return NULL;
        }
        receiver->left--;
    }
    weir_freertos_lane_t *lane = &net->lanes[found.which];
    weir_freertos_frame_t *frame = lane->free;
    if (frame == NULL) {
        drop(net, receiver, WEIR_FREERTOS_LANE_FULL);
        return NULL;
    }
    lane->free = frame->next;
    frame->length = length;
    frame->receiver = index;
    return frame;
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
    frame->spent = take_spent(net);
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

static void end_frame(weir_freertos_lane_t *lane, weir_freertos_receiver_t *receiver)
{
    weir_freertos_net_t *net = lane->net;
    taskENTER_CRITICAL();
    weir_freertos_charge(net, NULL);
    lane->is_busy = false;
    if (receiver != NULL) {
        receiver->frames++;
    }
    weir_account_handled(&net->account, &net->device, receiver == NULL ? NULL : &receiver->account, lane->spent);
    taskEXIT_CRITICAL();
}

static void run(void *of)
{
    weir_freertos_lane_t *lane = of;
    weir_freertos_net_t *net = lane->net;
    vTaskSetThreadLocalStoragePointer(NULL, 0, lane);
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        for (weir_freertos_frame_t *frame = begin_frame(lane); frame != NULL; frame = begin_frame(lane)) {
            /* Once the stack has the frame, its buffer may come to hold another one. */
            weir_freertos_receiver_t *receiver = receiver_of(net, frame->receiver);
            net->config.input(net->config.context, frame);
            end_frame(lane, receiver);
            /* At equal urgency the receiver goes first: otherwise its socket would be full before
             * it has taken anything out. */
            taskYIELD();
        }
    }
}

void weir_freertos_release(weir_freertos_frame_t *frame)
{
    weir_freertos_lane_t *lane = &frame->net->lanes[frame->which];
    taskENTER_CRITICAL();
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

static void start_lane(weir_freertos_net_t *net, uint8_t which)
{
    weir_freertos_lane_t *lane = &net->lanes[which];
    const weir_freertos_class_t *class = &net->config.classes[which];
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

static void free_memory(weir_freertos_net_t *net)
{
    for (uint8_t which = 0; net->lanes != NULL && which < net->config.count; which++) {
        if (net->lanes[which].worker != NULL) {
            vTaskDelete(net->lanes[which].worker);
        }
    }
    vPortFree(net->slots);
    vPortFree(net->links);
    vPortFree(net->receivers);
    vPortFree(net->lanes);
}

weir_freertos_error_t weir_freertos_start(weir_freertos_net_t *net, const weir_freertos_config_t *config)
{
    if (!are_classes(config)) {
        return WEIR_FREERTOS_BAD_CLASSES;
    }
    memset(net, 0, sizeof *net);
    net->config = *config;
    weir_freertos_error_t error = take_memory(net, config) ? WEIR_FREERTOS_OK : WEIR_FREERTOS_NO_MEMORY;
    if (error == WEIR_FREERTOS_OK && weir_demux_start(&net->demux, net->slots, config->slots, net->links, config->bindings, config->orphans,
                                                      config->fragments) != WEIR_DEMUX_OK) {
        error = WEIR_FREERTOS_BAD_TABLE;
    }
    weir_moderate_config_t moderation = {.absolute = config->gather, .size = 1};
    if (error == WEIR_FREERTOS_OK && weir_moderate_check(&moderation) != WEIR_MODERATE_OK) {
        error = WEIR_FREERTOS_BAD_GATHER;
    }
    weir_moderate_start(&net->card, &moderation);
    for (uint8_t which = 0; error == WEIR_FREERTOS_OK && which < config->count; which++) {
        start_lane(net, which);
        if (xTaskCreate(run, "weir", config->stack_words, &net->lanes[which], config->classes[which].urgency, &net->lanes[which].worker) !=
            pdPASS) {
            error = WEIR_FREERTOS_NO_MEMORY;
        }
    }
    if (error != WEIR_FREERTOS_OK) {
        free_memory(net);
        return error;
    }
    the_net = net;
    return error;
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

void weir_freertos_refill(weir_freertos_net_t *net)
{
    for (uint16_t at = 0; at < net->config.receivers; at++) {
        net->receivers[at].left = net->receivers[at].budget;
    }
}
