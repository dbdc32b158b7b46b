/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limit in front of the card. It admits limit-hz interrupts per second, and limit-burst at once
 * (a bucket) or in each interval (bursty). It masks at the card's own enable bit. FreeRTOS's tick
 * takes the place of the limiter's timer.
 */
#include "stages.h"

#include "task.h"

#include "weir/limit.h"

#include "board.h"
#include "card.h"
#include "demuxed.h"
#include "options.h"
#include "sizes.h"

static weir_limit_t limit;
static bool is_started;

void vApplicationTickHook(void);

static void perform(weir_limit_step_t step)
{
    if (step.mask) {
        card_interrupt(false);
    }
    if (step.unmask) {
        card_interrupt(true);
    }
}

void stages_enable(bool on)
{
    UBaseType_t before = portSET_INTERRUPT_MASK_FROM_ISR();
    if (options.limit_hz == 0) {
        card_interrupt(on);
    } else {
        perform(on ? weir_limit_user_enable(&limit.state, board_clock()) : weir_limit_user_disable(&limit.state));
    }
    portCLEAR_INTERRUPT_MASK_FROM_ISR(before);
}

bool stages_is_on(void)
{
    return options.limit_hz == 0 ? CARD_INT_EN != 0 : (limit.state.flags & WEIR_LIMIT_IS_USER_OFF) == 0;
}

bool stages_let_in(void)
{
    /* Gathered frames need no further limit, because they are taken once per tick. */
    if (options.limit_hz == 0 || (options.gather_us != 0 && demuxed_is_due())) {
        return true;
    }
    uint32_t now = board_clock();
    weir_limit_step_t step = weir_limit_is_on(&limit.state) ? weir_limit_request(&limit, now) : weir_limit_refused(&limit, now);
    perform(step);
    return step.serve;
}

/* FreeRTOS calls this hook with the card's interrupt masked (LIMIT-TIMERLESS-1). */
void vApplicationTickHook(void)
{
    if (!is_started) {
        return;
    }
    if (options.driver == DRIVER_DEMUX) {
        demuxed_refill();
        if (demuxed_wait_ends()) {
            board_pend(BOARD_CARD_LINE);
        }
    }
    if (options.limit_hz != 0) {
        perform(weir_limit_tick(&limit, board_clock(), false));
    }
}

/* Returns a limit with `hz` interrupts per second in the long run. In each interval a bucket gets
 * one token, and bursty gets its whole burst. */
static weir_limit_config_t limit_of(uint32_t hz)
{
    bool is_bursty = options.limit == LIMIT_BURSTY;
    uint64_t ticks = (uint64_t) BOARD_CLOCK_HZ * (is_bursty ? options.limit_burst : 1);
    uint64_t interval = (ticks + hz - 1) / hz;
    configASSERT(interval <= UINT32_MAX);
    return (weir_limit_config_t) {
        .interval = (weir_ticks_t) interval,
        .burst = (uint8_t) options.limit_burst,
        .policy = is_bursty ? WEIR_LIMIT_BURSTY : WEIR_LIMIT_BUCKET,
        .timing = WEIR_LIMIT_LAZY,
        .trigger = WEIR_LIMIT_LEVEL,
    };
}

/* Implements change-ms. Alternates between two states, whatever arrives in the meantime: in the
 * first, the limit is halved, a budget is set and a receiver is unbound; in the second, all
 * settings are as at the start. */
static void change(void *unused)
{
    (void) unused;
    for (bool is_other = true;; is_other = !is_other) {
        vTaskDelay(pdMS_TO_TICKS(options.change_ms));
        demuxed_change(is_other);
        if (options.limit_hz != 0) {
            weir_limit_config_t to = limit_of(is_other ? (options.limit_hz + 1) / 2 : options.limit_hz);
            weir_limit_step_t step;
            taskENTER_CRITICAL();
            weir_limit_error_t error = weir_limit_reconfigure(&limit, &to, board_clock(), &step);
            perform(step);
            taskEXIT_CRITICAL();
            configASSERT(error == WEIR_LIMIT_OK);
        }
    }
}

void stages_start(struct netif *netif)
{
    if (options.driver == DRIVER_DEMUX) {
        demuxed_start(netif);
    }
    if (options.limit_hz != 0) {
        limit.config = limit_of(options.limit_hz);
        configASSERT(weir_limit_check(&limit.config) == WEIR_LIMIT_OK);
        weir_limit_start(&limit, board_clock());
    }
    if (options.change_ms != 0) {
        BaseType_t made = xTaskCreate(change, "change", SIZES_TASK_STACK / sizeof(StackType_t), NULL, options.layout->above, NULL);
        configASSERT(made == pdPASS);
    }
    is_started = true;
}
