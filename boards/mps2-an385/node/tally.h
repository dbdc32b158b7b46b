/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node's counts, and the report of them at the end of the run. */
#ifndef NODE_TALLY_H
#define NODE_TALLY_H

#include <stdint.h>

/* Counts since the start. Each count has a single writer, or is written with interrupts masked. */
struct tally {
    uint32_t interrupts; /* of the card, or of the pin */
    uint32_t frames;     /* that the driver's task took from the card, or descriptors from the queue */
    uint32_t broken;     /* frames that the card or their length says are none */
    uint32_t no_buffer;  /* frames for which the pool had no buffer */
    uint32_t no_room;    /* frames, or descriptors, that a full mailbox or queue turned away */
    uint32_t served;     /* datagrams that the UDP server received */
    uint32_t steps;      /* of the critical task's work */
    uint32_t jobs;       /* that have ended */
    uint32_t late_jobs;
    int32_t lateness;         /* of the job that ended last, in ticks of the clock */
    int32_t worst_lateness;   /* the largest of the window's jobs */
    uint32_t ended_at;        /* when it ended */
    uint64_t lateness_sum;    /* of all late jobs */
    uint32_t busy_interrupts; /* those that came while the closed loop ran */
    uint32_t no_memory;       /* allocations that FreeRTOS' heap refused */
};
extern volatile struct tally tally;

/* Takes the first sample after options.begin_ms, and then a sample every options.window_ms. Ends
 * the run with the report after options.windows windows. Does nothing if there are no windows. */
void tally_start(void);

/* Handles the interrupt at a window's end. */
void tally_interrupt(void);

#endif
