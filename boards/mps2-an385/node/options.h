/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options on the node's command line. Every variant of the node is a combination of options, so
 * that all variants share one ELF file. */
#ifndef NODE_OPTIONS_H
#define NODE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    OPTIONS_WINDOWS = 128,
    OPTIONS_PSEUDO_LONGEST = 1514,
    OPTIONS_MODBUS_SERVERS = 4,
    OPTIONS_SERVER_URGENCIES = OPTIONS_MODBUS_SERVERS + 1 /* that servers have at most, with driver=demux */
};

/* The FreeRTOS priorities of a layout, as in Table I of behnke2021. */
struct layout {
    uint32_t above; /* 0: nothing is above the driver */
    uint32_t driver;
    uint32_t network;
    uint32_t below;
    uint32_t servers;
    uint32_t modbus[OPTIONS_MODBUS_SERVERS]; /* of each server, if each has a port of its own */
};

enum driver { DRIVER_MASKED, DRIVER_PACKET, DRIVER_DEMUX };
enum task { TASK_NONE, TASK_LATENESS, TASK_UTILISATION, TASK_TONE };
enum urgency { URGENCY_ABOVE, URGENCY_EQUAL, URGENCY_BELOW };
enum packets { PACKETS_REAL, PACKETS_SIMULATED };
enum modbus { MODBUS_TOGETHER, MODBUS_APART };
enum limit { LIMIT_BUCKET, LIMIT_BURSTY };

struct options {
    uint32_t driver, layout_name, task, urgency, packets, modbus, limit;
    uint32_t period_us, deadline_us, steps;
    uint32_t busy_ms, interval_ms;
    uint32_t quiet;                 /* is the card's line off while a job runs? */
    uint32_t server;                /* is there a UDP server? */
    uint32_t server_urgency;        /* 0: as the layout says */
    uint32_t limit_hz, limit_burst; /* interrupts that are let in; 0: no limit */
    uint32_t work;                  /* units of work of one of them, with driver=demux: a frame is one, and more if it is long */
    uint32_t gather_us;             /* how long frames wait to share one; it ends with a tick; 0: not at all */
    uint32_t budget;                /* frames per ms for each receiver; 0: as many as come */
    uint32_t pace;                  /* answers in a tick of 1 ms of each task of Modbus; 0: as many as are asked */
    uint32_t change_ms;             /* how often limit, budget and receiver change; 0: never */
    uint32_t descriptors, pseudo_descriptors, pseudo_length;
    uint32_t begin_ms, window_ms, windows; /* no windows: the node runs for ever */
    uint32_t address;                      /* 0: asked for by DHCP */
    uint32_t neighbour;                    /* the address of a host whose entry of ARP is fixed; 0: none */
    uint8_t neighbour_ethernet[6];
    const struct layout *layout;
};

extern struct options options;

/* Reads the command line. On an error, prints it and ends the run with exit code 2. */
void options_read(void);

/* Returns the FreeRTOS priority of the critical task. */
uint32_t options_task_urgency(void);

#endif
