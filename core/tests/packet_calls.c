/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls the per-packet and per-tick functions of moderate, account and work: to be compiled for
 * every target, not to be run.
 */
#include "weir/account.h"
#include "weir/moderate.h"
#include "weir/work.h"

/* Defined elsewhere, so that no compiler knows their contents. */
extern weir_moderate_t queues[4];
extern weir_account_t account;
extern weir_account_device_t device;
extern weir_account_total_t total;
extern weir_work_t work;

/* Returns bit 0: accepted, bit 1: interrupt. */
uint8_t arrives(uint16_t queue, weir_ticks_t now);
uint8_t arrives(uint16_t queue, weir_ticks_t now)
{
    weir_moderate_step_t step = weir_moderate_arrive(&queues[queue], now);
    return (uint8_t) ((step.accepted ? 1u : 0u) | (step.interrupt ? 2u : 0u));
}

bool expires(uint16_t queue, weir_ticks_t now, weir_ticks_t *at);
bool expires(uint16_t queue, weir_ticks_t now, weir_ticks_t *at)
{
    *at = weir_moderate_due_at(&queues[queue].state, &queues[queue].config);
    return weir_moderate_expired_with(&queues[queue].state, &queues[queue].config, now);
}

bool takes(uint16_t queue, uint16_t count, weir_ticks_t now);
bool takes(uint16_t queue, uint16_t count, weir_ticks_t now)
{
    return weir_moderate_take(&queues[queue], count, now);
}

void handled(weir_account_process_t *process, weir_balance_t *x, weir_cycles_t cost);
void handled(weir_account_process_t *process, weir_balance_t *x, weir_cycles_t cost)
{
    if (x == NULL) {
        weir_account_handled(&account, &device, process, cost);
    } else {
        weir_account_handled_counted(&account, &device, process, x, cost);
    }
}

int32_t ticks(weir_account_process_t *process);
int32_t ticks(weir_account_process_t *process)
{
    return weir_account_tick(&account, process);
}

void counts(weir_account_total_t *receiver, weir_cycles_t cost);
void counts(weir_account_total_t *receiver, weir_cycles_t cost)
{
    weir_account_count(&total, receiver, cost);
}

void begins(uint16_t most);
void begins(uint16_t most)
{
    weir_work_begin(&work, most);
}

uint16_t works(uint16_t wanted);
uint16_t works(uint16_t wanted)
{
    return wanted == 1 ? (weir_work_take(&work) ? 1 : 0) : weir_work_take_some(&work, wanted);
}
