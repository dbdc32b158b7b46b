/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tally.h"

#include "lwip/memp.h"
#include "lwip/stats.h"

#include "board.h"
#include "failure.h"
#include "host.h"
#include "options.h"
#include "stages.h"
#include "work.h"

volatile struct tally tally;

static struct {
    struct tally tally;
    uint32_t at;
} samples[OPTIONS_WINDOWS + 1];
static uint32_t taken;

/* Prints the counts of a window. The lateness and the job's end are values at the window's end, not
 * differences. */
static void print_window(uint32_t window)
{
    const struct tally *from = &samples[window].tally, *to = &samples[window + 1].tally;
    host_print(window == 0 ? "\n    {" : ",\n    {");
    host_print("\"ticks\": ");
    host_print_number(samples[window + 1].at - samples[window].at);
    host_print_field("interrupts", to->interrupts - from->interrupts);
    host_print_field("frames", to->frames - from->frames);
    host_print_field("broken", to->broken - from->broken);
    host_print_field("no_buffer", to->no_buffer - from->no_buffer);
    host_print_field("no_room", to->no_room - from->no_room);
    host_print_field("served", to->served - from->served);
    host_print_field("steps", to->steps - from->steps);
    host_print_field("jobs", to->jobs - from->jobs);
    host_print_field("late_jobs", to->late_jobs - from->late_jobs);
    host_print(", \"lateness\": ");
    host_print_signed(to->lateness);
    host_print(", \"worst_lateness\": ");
    host_print_signed(to->worst_lateness);
    host_print_field("ended_at", to->ended_at - samples[0].at);
    host_print_field("lateness_sum", to->lateness_sum - from->lateness_sum);
    host_print_field("busy_interrupts", to->busy_interrupts - from->busy_interrupts);
    host_print("}");
}

/* Prints the report as JSON. `failed` is the reason why the run ended early, or NULL. */
static void print_report(const char *failed, const char *file, int line)
{
    host_print("{\"clock_hz\": ");
    host_print_number(BOARD_CLOCK_HZ);
    host_print_field("at", board_clock());
    host_print(", \"work\": ");
    host_print_signed(work_result());
    host_print_field("no_memory", tally.no_memory);
    host_print_field("heap_refused", lwip_stats.mem.err);
    host_print_field("pool_refused", lwip_stats.memp[MEMP_PBUF_POOL]->err);
    host_print_field("messages_refused", lwip_stats.memp[MEMP_TCPIP_MSG_INPKT]->err);
    host_print_field("udp_dropped", lwip_stats.udp.drop);
    host_print_field("icmp_sent", lwip_stats.icmp.xmit);
    if (failed != NULL) {
        host_print(",\n  \"failed\": \"");
        host_print(failed);
        host_print("\", \"file\": \"");
        host_print(file);
        host_print("\"");
        host_print_field("line", (uint64_t) line);
    }
    stages_print();
    host_print(",\n  \"windows\": [");
    for (uint32_t window = 0; window + 1 < taken; window++) {
        print_window(window);
    }
    host_print("\n  ]}\n");
}

void tally_start(void)
{
    if (options.windows > 0) {
        board_window_in(options.begin_ms * BOARD_CLOCK_KHZ);
    }
}

void tally_interrupt(void)
{
    board_window_acknowledge();
    board_window_in(options.window_ms * BOARD_CLOCK_KHZ);
    samples[taken].tally = tally;
    tally.worst_lateness = INT32_MIN;
    samples[taken].at = board_clock();
    taken++;
    if (taken > options.windows) {
        print_report(NULL, NULL, 0);
        host_exit(0);
    }
}

void failure(const char *what, const char *file, int line)
{
    __asm__ volatile("cpsid i");
    print_report(what, file, line);
    host_exit(3);
}
