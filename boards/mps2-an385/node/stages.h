/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Weir's stages in front of the stack, for a node that is built with -DNODE_WEIR. limit (limit-hz)
 * works with any driver. driver=demux adds demultiplexing in the card's interrupt, workers that are
 * as urgent as the receivers, and an account per receiver (ports/freertos).
 */
#ifndef NODE_STAGES_H
#define NODE_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "FreeRTOS.h"

#include "card.h"
#include "options.h"

struct netif;

enum {
    /* The receivers that frames are charged to. The Modbus servers come first, in the order of
     * their indices. */
    STAGES_MODBUS = 0,
    STAGES_UDP = 4,
    STAGES_HTTP = 5,
    STAGES_ECHO = 6,
    STAGES_RECEIVERS = 7,

    STAGES_ORPHAN_URGENCY = 1,   /* ports that nobody has */
    STAGES_FRAGMENT_URGENCY = 2, /* fragments of datagrams */
    STAGES_COMMON_URGENCY = 3    /* ARP, ICMP */
};

#ifdef NODE_WEIR

#include "weir/freertos.h"

/* Starts the limit and, with driver=demux, the workers, which hand frames to `netif`. */
void stages_start(struct netif *netif);

/* The first function sets whether the driver wants the card's interrupt enabled, and the second
 * returns the last setting. The interrupt is enabled only if the limit agrees. Both may be called
 * from an interrupt or a task. */
void stages_enable(bool on);
bool stages_is_on(void);

/* Returns whether the driver may serve the card's interrupt now. */
bool stages_let_in(void);

/* Returns whether the driver is driver=demux. This driver serves the card's interrupt by
 * stages_take(), which asks the limit itself. */
static inline bool stages_demux(void)
{
    return options.driver == DRIVER_DEMUX;
}

void stages_take(BaseType_t *woken);

/* The receivers of driver=demux and their accounts. */
extern weir_freertos_net_t stages_net;

/* Binds a port to a receiver (protocol 6 is TCP, 17 is UDP). Does nothing with the other
 * drivers. */
void stages_bind(uint8_t protocol, uint16_t port, uint16_t receiver, uint32_t urgency);

/* Call this when a Modbus task is about to answer. It waits for the next tick if the task has
 * already answered its share of requests in this tick. */
typedef weir_freertos_pace_t stages_pace_t;

static inline void stages_keep_pace(stages_pace_t *pace)
{
    if (options.pace != 0) {
        weir_freertos_keep_pace(pace, options.pace);
    }
}

/* Prints the counts of each receiver as a field of the node's report. */
void stages_print(void);

#else

static inline void stages_start(struct netif *netif)
{
    (void) netif;
}

static inline void stages_enable(bool on)
{
    card_interrupt(on);
}

static inline bool stages_is_on(void)
{
    return CARD_INT_EN != 0;
}

static inline bool stages_let_in(void)
{
    return true;
}

static inline bool stages_demux(void)
{
    return false;
}

static inline void stages_take(BaseType_t *woken)
{
    (void) woken;
}

static inline void stages_bind(uint8_t protocol, uint16_t port, uint16_t receiver, uint32_t urgency)
{
    (void) protocol;
    (void) port;
    (void) receiver;
    (void) urgency;
}

typedef struct {
    uint32_t unused;
} stages_pace_t;

static inline void stages_keep_pace(stages_pace_t *pace)
{
    (void) pace;
}

static inline void stages_print(void)
{
}

#endif

#endif
