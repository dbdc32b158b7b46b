/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The frames of mps2-an385's LAN9118 (IRQ13), limited and masked at the controller's own enable
 * bit. Macros: LIMIT0, DIVISOR, LAST as in limited.c; USER (turns for which the thread switches the
 * frames off and on); SHARED (the controller's own timer asks by the same line, and has no limit).
 */
#include <stdbool.h>
#include <stdint.h>

/* A register of the LAN9118 (data sheet, 5.3). */
#define CARD(offset) (*(volatile uint32_t *) (0x40200000u + (offset)))
#define RX_DATA CARD(0x00)
#define RX_STATUS CARD(0x40)
#define IRQ_CFG CARD(0x54)
#define INT_STS CARD(0x58)
#define INT_EN CARD(0x5c)
#define FIFO_INT CARD(0x68)
#define RX_FIFO_INF CARD(0x7c)
#define GPT_CFG CARD(0x8c)
#define MAC_CSR_CMD CARD(0xa4)
#define MAC_CSR_DATA CARD(0xa8)
enum {
    PUSH_PULL_HIGH = 0x111,
    RECEIVED = 1 << 3, /* RSFL: a status waits */
    TIMER = 1 << 19,
    TIMER_ON = 1 << 29,
    MAC_CR = 1,
    MAC_RXEN_PRMS = 1 << 2 | 1 << 18,
    OTHER_PERIOD = 3 /* of 100 us */
};
#define MAC_BUSY (1u << 31)

static bool waits(void)
{
    return RX_FIFO_INF >> 16 & 0xff;
}

#define TOLD_IS_ENABLED(source) ((INT_EN & RECEIVED) != 0)
#define TOLD_IS_PENDING(source) waits()
#include "told.h"

volatile uint32_t served, others, frames, waiting, progress;

static void take_frame(void)
{
    uint32_t bytes = RX_STATUS >> 16 & 0x3fff;
    for (uint32_t words = (bytes + 3) / 4; words > 0; words--) {
        (void) RX_DATA;
    }
    frames++;
}

WEIR_CMSDK_DUAL_TIMER(ticks, 0x40002000, 10, DIVISOR);

#ifdef SHARED
/* The line's own interrupt function calls this one if the controller has frames. */
#define FRAMES_VECTOR frames_asked
#else
#define FRAMES_VECTOR irq13
#endif
WEIR_CORTEX_M_LIMIT_AT(source, ticks, 13, FRAMES_VECTOR, INT_EN &= ~(uint32_t) RECEIVED, INT_EN |= RECEIVED, LIMIT0)
{
    served++;
    if (waits()) {
        take_frame();
    }
    /* The status bit stays set until it is cleared. If a frame came between the check and the
     * clearing, it would wait for the next frame. */
    while (!waits()) {
        INT_STS = RECEIVED;
        if (!waits()) {
            break;
        }
        take_frame();
    }
}

#ifdef SHARED
static void restart_timer(void)
{
    GPT_CFG = 0xffff;
    GPT_CFG = TIMER_ON | OTHER_PERIOD;
}

static void irq13(void)
{
    uint32_t asks = INT_STS & INT_EN;
    if (asks & TIMER) {
        restart_timer();
        INT_STS = TIMER;
        others++;
    }
    if (asks & RECEIVED) {
        frames_asked();
    }
}
#endif

WEIR_CORTEX_M_GROUP(group, ticks, 0x80, dual_timer, source);

static uint32_t told_source(const weir_limit_state_t *state)
{
    return state == source_state_of() ? 0 : TOLD_NONE;
}

void start(void)
{
    IRQ_CFG = PUSH_PULL_HIGH;
    FIFO_INT = 0;
    MAC_CSR_DATA = MAC_RXEN_PRMS;
    MAC_CSR_CMD = MAC_BUSY | MAC_CR;
    group_run();
    source_start();
#ifdef SHARED
    INT_EN |= TIMER;
    restart_timer();
#endif
    weir_ticks_t begin = ticks_now();
    while (weir_ticks_between(begin, ticks_now()) < LAST) {
        progress++;
#ifdef USER
        source_disable();
        wait_at_random(USER);
        source_enable();
        wait_at_random(USER);
#endif
    }
    __asm volatile("cpsid i");
    MAC_CSR_DATA = 0; /* no frame comes any more */
    MAC_CSR_CMD = MAC_BUSY | MAC_CR;
    waiting = RX_FIFO_INF >> 16 & 0xff;
    tell_events();
    leave(0);
}

extern const vector vectors[];
__attribute__((section(".vectors"))) const vector vectors[16 + 14] = {
    TOLD_FIRST_VECTORS,
    [16 + 10] = dual_timer,
    [16 + 13] = irq13,
};
