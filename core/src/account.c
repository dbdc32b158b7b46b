/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Set-up of accounts, the end of processes, and the tick of the counted mode. This code does not
 * run for each packet, and may therefore divide.
 */
#include "weir/account.h"

/*
 * The upper bound of N(t), however little a packet costs. It keeps the products below within 64
 * bits, with a tick of at most 2^36 cycles.
 */
#define PER_TICK_MOST 0x40000000u

weir_account_error_t weir_account_check(const weir_account_config_t *c)
{
    if (c->tick == 0 || c->tick > WEIR_ACCOUNT_TICK_MOST) {
        return WEIR_ACCOUNT_BAD_TICK;
    }
    return c->gamma == 0 ? WEIR_ACCOUNT_BAD_GAMMA : WEIR_ACCOUNT_OK;
}

void weir_account_start(weir_account_t *account, const weir_account_config_t *config)
{
    static const weir_account_t zero;
    *account = zero;
    account->config = *config;
}

static weir_balance_t joined(weir_balance_t a, weir_balance_t b)
{
    return b < 0 ? weir_account_minus(a, (weir_cycles_t) -b) : weir_account_plus(a, (weir_cycles_t) b);
}

void weir_account_exit(weir_account_t *account, weir_account_process_t *process)
{
    static const weir_account_process_t zero;
    if (process->owed < 0) {
        account->unreturned = (weir_cycles_t) (account->unreturned + (weir_cycles_t) -process->owed);
    } else {
        account->unpaid = (weir_cycles_t) (account->unpaid + (weir_cycles_t) process->owed);
    }
    *process = zero;
}

void weir_account_move(weir_account_process_t *from, weir_account_process_t *to)
{
    to->owed = joined(to->owed, from->owed);
    from->owed = 0;
}

/*
 * N as the paper uses it, "rounded off to the nearest integer". It is 0 until something was
 * measured, and at least 1 afterwards, because with 0 the paper's loop would not end.
 */
static weir_cycles_t rounded(const weir_account_device_t *d)
{
    weir_cycles_t n = (weir_cycles_t) ((d->per_tick + 0x8000u) >> 16);
    return n == 0 && d->per_tick != 0 ? 1 : n;
}

/*
 * The exponentially weighted average of zhang2006 §3.1 (1) and §4: N(t) = m(t) * tick / cost. The
 * average keeps its fraction, and is rounded where it is used.
 */
static void measure(weir_account_device_t *d, const weir_account_config_t *c, uint32_t m)
{
    weir_cycles_t cost = (weir_cycles_t) (d->cycles - d->cycles_before);
    if (m == 0 || cost == 0) {
        return;
    }
    const uint64_t most = (uint64_t) PER_TICK_MOST << 16;
    uint64_t share = ((uint64_t) c->tick << 16) / cost;
    uint64_t now = share == 0 ? 1 : share > most / m ? most : share * m;
    /* Neither `now` nor the old average is 0, so no average of the two is 0. */
    d->per_tick = d->per_tick == 0 ? now : (d->per_tick * (0x10000u - c->gamma) + now * c->gamma) >> 16;
}

int32_t weir_account_tick_counted(weir_account_t *account, weir_account_device_t *devices, uint16_t count, weir_account_process_t *process,
                                  weir_balance_t *x)
{
    int32_t ticks = 0;
    for (uint16_t i = 0; i < count; i++) {
        weir_account_device_t *d = &devices[i];
        uint32_t m = d->handled - d->handled_before;
        measure(d, &account->config, m);
        d->handled_before = d->handled;
        d->cycles_before = d->cycles;
        if (process != NULL) {
            x[i] = weir_account_minus(x[i], m);
            weir_cycles_t n = rounded(d);
            if (n != 0) {
                ticks = (int32_t) ((uint32_t) ticks + (uint32_t) weir_account_whole(&x[i], n));
            }
        }
    }
    weir_account_close(account, process, ticks);
    return ticks;
}

weir_balance_t weir_account_worth_counted(const weir_account_t *account, const weir_account_device_t *devices, uint16_t count,
                                          const weir_balance_t *x)
{
    const weir_cycles_t most = (weir_cycles_t) WEIR_BALANCE_MOST;
    weir_balance_t worth = 0;
    for (uint16_t i = 0; i < count; i++) {
        weir_cycles_t n = rounded(&devices[i]);
        if (n == 0 || x[i] == 0) {
            continue;
        }
        /* packets * tick / n, as whole ticks and a remainder */
        weir_cycles_t packets = (weir_cycles_t) (x[i] < 0 ? -x[i] : x[i]);
        weir_cycles_t tick = account->config.tick;
        weir_cycles_t whole = packets / n;
        weir_cycles_t part = (weir_cycles_t) ((uint64_t) (packets % n) * tick / n);
        weir_cycles_t cycles = whole > (most - part) / tick ? most : whole * tick + part;
        worth = x[i] < 0 ? weir_account_minus(worth, cycles) : weir_account_plus(worth, cycles);
    }
    return worth;
}

void weir_account_exit_counted(weir_account_t *account, const weir_account_device_t *devices, uint16_t count,
                               weir_account_process_t *process, weir_balance_t *x)
{
    process->owed = weir_account_worth_counted(account, devices, count, x);
    for (uint16_t i = 0; i < count; i++) {
        x[i] = 0;
    }
    weir_account_exit(account, process);
}
