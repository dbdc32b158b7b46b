/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Weir's stages in front of the stack, for a node that was built with -DNODE_WEIR: limit before any
 * driver (limit-hz), and driver=demux: demux in the card's interrupt, workers as urgent as the
 * receivers, and each receiver's account (ports/freertos).
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
    /* Who is charged: the servers of Modbus first, by their places. */
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

/* Starts the limit and, with driver=demux, the workers: `netif` gets their frames. */
void stages_start(struct netif *netif);

/* The driver wants the card's interrupt, or does not: what was its last word? It is on while the
 * limit wants it, too. From an interrupt or a task. */
void stages_enable(bool on);
bool stages_is_on(void);

/* May its driver serve it? */
bool stages_let_in(void);

/* Is it driver=demux? It serves the card's interrupt by stages_take(), which asks the limit. */
static inline bool stages_demux(void)
{
    return options.driver == DRIVER_DEMUX;
}

void stages_take(BaseType_t *woken);

/* The receivers of driver=demux, with their accounts. */
extern weir_freertos_net_t stages_net;

/* A server has a port: 6 is TCP, 17 UDP. Does nothing with the other drivers. */
void stages_bind(uint8_t protocol, uint16_t port, uint16_t receiver, uint32_t urgency);

/* A task of Modbus is about to answer: it waits for the next tick where so many were answered. */
typedef weir_freertos_pace_t stages_pace_t;

static inline void stages_keep_pace(stages_pace_t *pace)
{
    if (options.pace != 0) {
        weir_freertos_keep_pace(pace, options.pace);
    }
}

/* Prints what was done for each receiver, as a field of the node's report. */
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
