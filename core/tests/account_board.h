/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two processors' accounts of the same processes, and a third that counts, driven by bytes: for the
 * sanitizers and the fuzzer. The test keeps every balance in 128 bits, runs the paper's own loop,
 * and stops the program where an account disagrees or a cycle is lost.
 */
#ifndef WEIR_TESTS_ACCOUNT_BOARD_H
#define WEIR_TESTS_ACCOUNT_BOARD_H

#include "weir/account.h"

#include "check.h"

#define CHECK(what) CHECK_IN(WEIR_CYCLE_BITS, "bit cycles", what)

#define HOUSE_PROCESSES 3u
#define HOUSE_DEVICES 2u
#define HOUSE_CPUS 2u

typedef __int128 wide_t;

typedef struct {
    weir_account_t account;
    weir_account_device_t devices[HOUSE_DEVICES];
    weir_account_process_t processes[HOUSE_PROCESSES];
    weir_account_total_t device;                          /* of both */
    weir_account_total_t receivers[HOUSE_PROCESSES + 1u]; /* and nobody */
    wide_t owed[HOUSE_PROCESSES];
    wide_t received[HOUSE_PROCESSES];
    wide_t hosted[HOUSE_PROCESSES];
    wide_t own[HOUSE_PROCESSES];
    wide_t adjusted[HOUSE_PROCESSES];
    wide_t recent[HOUSE_PROCESSES];
    wide_t handled;
    wide_t all;
    wide_t orphans;
    wide_t idle;
} cpu_t;

typedef struct {
    weir_account_t account;
    weir_account_device_t devices[HOUSE_DEVICES];
    weir_account_process_t processes[HOUSE_PROCESSES];
    weir_balance_t x[HOUSE_PROCESSES][HOUSE_DEVICES];
    wide_t model[HOUSE_PROCESSES][HOUSE_DEVICES];
    wide_t m[HOUSE_DEVICES];
    wide_t cost[HOUSE_DEVICES];
} counted_t;

static wide_t board_saturated(wide_t balance)
{
    wide_t most = WEIR_BALANCE_MOST;
    return balance > most ? most : balance < -most ? -most : balance;
}

static void cpu_handled(cpu_t *c, unsigned d, unsigned p, weir_cycles_t cost)
{
    bool orphan = p >= HOUSE_PROCESSES;
    weir_account_handled(&c->account, &c->devices[d], orphan ? NULL : &c->processes[p], cost);
    weir_account_count(&c->device, &c->receivers[orphan ? HOUSE_PROCESSES : p], cost);
    wide_t bounded = board_saturated(cost);
    c->all += bounded;
    c->handled = board_saturated(c->handled + bounded);
    if (orphan) {
        c->orphans += bounded;
    } else {
        c->received[p] += bounded;
        c->recent[p] += bounded;
        c->owed[p] = board_saturated(c->owed[p] + bounded);
    }
}

static void cpu_tick(cpu_t *c, unsigned p)
{
    wide_t unit = c->account.config.tick;
    if (p >= HOUSE_PROCESSES) {
        CHECK(weir_account_tick(&c->account, NULL) == 0);
        c->idle += c->handled;
    } else {
        int32_t ticks = weir_account_tick(&c->account, &c->processes[p]);
        wide_t x = board_saturated(c->owed[p] - c->handled);
        /* The result of the paper's loop, by division; beyond 31 bits the rest stays. */
        wide_t whole = x / unit;
        whole = whole > INT32_MAX ? INT32_MAX : whole < -INT32_MAX ? -INT32_MAX : whole;
        CHECK(ticks == whole); /* ACCOUNT-TICK-1 */
        c->owed[p] = x - whole * unit;
        c->adjusted[p] += whole;
        c->hosted[p] += c->handled;
        c->own[p] += c->recent[p];
    }
    for (unsigned i = 0; i < HOUSE_PROCESSES; i++) {
        c->recent[i] = 0;
    }
    c->handled = 0;
}

static void cpu_exit(cpu_t *c, unsigned p)
{
    weir_cycles_t unpaid = c->account.unpaid;
    weir_cycles_t unreturned = c->account.unreturned;
    weir_account_exit(&c->account, &c->processes[p]);
    wide_t owed = c->owed[p];
    CHECK((weir_cycles_t) (c->account.unpaid - unpaid) == (weir_cycles_t) (owed > 0 ? owed : 0)); /* ACCOUNT-EXIT-1 */
    CHECK((weir_cycles_t) (c->account.unreturned - unreturned) == (weir_cycles_t) (owed < 0 ? -owed : 0));
    c->owed[p] = c->received[p] = c->hosted[p] = c->own[p] = c->adjusted[p] = c->recent[p] = 0;
}

static void cpu_move(cpu_t *from, cpu_t *to, unsigned p)
{
    weir_account_move(&from->processes[p], &to->processes[p]); /* ACCOUNT-MOVE-1 */
    to->owed[p] = board_saturated(to->owed[p] + from->owed[p]);
    from->owed[p] = 0;
}

static void cpu_check(const cpu_t *c)
{
    wide_t devices = 0;
    for (unsigned p = 0; p < HOUSE_PROCESSES; p++) {
        const weir_account_process_t *is = &c->processes[p];
        CHECK(is->owed == c->owed[p]);
        CHECK(is->received == (weir_cycles_t) c->received[p] && is->hosted == (weir_cycles_t) c->hosted[p]);
        CHECK(is->own == (weir_cycles_t) c->own[p] && is->adjusted == (int32_t) (uint32_t) c->adjusted[p]);
    }
    for (unsigned d = 0; d < HOUSE_DEVICES; d++) {
        devices += c->devices[d].cycles;
    }
    weir_account_total_t sum = {0, 0};
    for (unsigned p = 0; p <= HOUSE_PROCESSES; p++) {
        sum.cycles = (weir_cycles_t) (sum.cycles + c->receivers[p].cycles);
        sum.packets += c->receivers[p].packets;
    }
    CHECK(sum.cycles == c->device.cycles && sum.packets == c->device.packets); /* ACCOUNT-TOTAL-1 */
    CHECK(sum.packets == c->devices[0].handled + c->devices[1].handled);
    CHECK((weir_cycles_t) devices == (weir_cycles_t) c->all);
    CHECK(c->account.handled == (weir_cycles_t) c->handled && c->account.orphans == (weir_cycles_t) c->orphans);
    CHECK(c->account.idle == (weir_cycles_t) c->idle);
}

static void counted_handled(counted_t *c, unsigned d, unsigned p, weir_cycles_t cost)
{
    bool orphan = p >= HOUSE_PROCESSES;
    weir_account_handled_counted(&c->account, &c->devices[d], orphan ? NULL : &c->processes[p], orphan ? NULL : &c->x[p][d], cost);
    c->m[d]++;
    c->cost[d] += board_saturated(cost);
    if (!orphan) {
        c->model[p][d]++;
    }
}

/*
 * Checks N(t) and its average: exact, except for the fraction that the machine leaves out, below
 * m(t) 65,536ths, and one 65,536th that keeps it above 0.
 */
static void counted_average(const counted_t *c, unsigned d, wide_t before)
{
    wide_t most = (wide_t) 0x40000000 << 16;
    wide_t is = (wide_t) c->devices[d].per_tick;
    weir_cycles_t cost = (weir_cycles_t) c->cost[d];
    if (c->m[d] == 0 || cost == 0) {
        CHECK(is == before); /* ACCOUNT-COUNTED-3 */
        return;
    }
    wide_t gamma = c->account.config.gamma;
    wide_t now = ((wide_t) c->account.config.tick << 16) * c->m[d] / cost;
    now = now > most ? most : now;
    wide_t expected = before == 0 ? now : (before * (0x10000 - gamma) + now * gamma) >> 16;
    CHECK(is >= 1 && is >= expected - c->m[d] - 1 && is <= expected + 1);
}

static void counted_tick(counted_t *c, unsigned p)
{
    bool idle = p >= HOUSE_PROCESSES;
    wide_t before[HOUSE_DEVICES];
    for (unsigned d = 0; d < HOUSE_DEVICES; d++) {
        before[d] = (wide_t) c->devices[d].per_tick;
    }
    int32_t ticks =
        weir_account_tick_counted(&c->account, c->devices, HOUSE_DEVICES, idle ? NULL : &c->processes[p], idle ? NULL : c->x[p]);
    wide_t system_time = 0;
    for (unsigned d = 0; d < HOUSE_DEVICES; d++) {
        counted_average(c, d, before[d]);
        wide_t n = ((wide_t) c->devices[d].per_tick + 0x8000) >> 16;
        n = n == 0 && c->devices[d].per_tick != 0 ? 1 : n;
        if (!idle) {
            /* zhang2006 §3.1, line by line, except for the slip in its last line */
            wide_t *x = &c->model[p][d];
            *x -= c->m[d];
            wide_t sign = *x < 0 ? -1 : 1;
            while (n != 0 && sign * *x >= n) {
                system_time += sign;
                *x -= sign * n;
            }
            CHECK(c->x[p][d] == *x);
        }
        c->m[d] = 0;
        c->cost[d] = 0;
    }
    CHECK(ticks == system_time); /* ACCOUNT-COUNTED-1 */
}

/* Checks that a row's value differs from x * tick / N by less than a cycle per device. */
static void counted_worth(const counted_t *c)
{
    for (unsigned p = 0; p < HOUSE_PROCESSES; p++) {
        wide_t exact = 0;
        bool saturates = false;
        for (unsigned d = 0; d < HOUSE_DEVICES; d++) {
            wide_t n = ((wide_t) c->devices[d].per_tick + 0x8000) >> 16;
            n = n == 0 ? 1 : n;
            wide_t cycles = c->devices[d].per_tick == 0 ? 0 : c->model[p][d] * (wide_t) c->account.config.tick / n;
            exact += cycles;
            saturates = saturates || board_saturated(cycles) != cycles || board_saturated(exact) != exact;
        }
        weir_balance_t worth = weir_account_worth_counted(&c->account, c->devices, HOUSE_DEVICES, c->x[p]);
        CHECK(worth >= -WEIR_BALANCE_MOST);
        CHECK(saturates || worth == exact);
    }
}

static void counted_exit(counted_t *c, unsigned p)
{
    weir_balance_t worth = weir_account_worth_counted(&c->account, c->devices, HOUSE_DEVICES, c->x[p]);
    weir_cycles_t before = (weir_cycles_t) (c->account.unpaid - c->account.unreturned);
    weir_account_exit_counted(&c->account, c->devices, HOUSE_DEVICES, &c->processes[p], c->x[p]);
    CHECK((weir_cycles_t) (c->account.unpaid - c->account.unreturned - before) == (weir_cycles_t) worth);
    for (unsigned d = 0; d < HOUSE_DEVICES; d++) {
        CHECK(c->x[p][d] == 0);
        c->model[p][d] = 0;
    }
}

/* A cost from two bytes: from one cycle to more than a balance holds. */
static weir_cycles_t board_cost(const uint8_t *data)
{
    unsigned shift = (data[0] & 3) == 3 ? data[1] % WEIR_CYCLE_BITS : 0;
    return (weir_cycles_t) ((weir_cycles_t) (data[0] >> 2) << shift) + data[1];
}

/*
 * Runs the accounts: bytes 0 and 1 are the clock tick, 2 and 3 gamma; then follow events of three
 * bytes: kind and process, and a cost.
 */
static void board_run(const uint8_t *data, size_t size)
{
    static const cpu_t no_cpu;
    static const counted_t no_count;
    if (size < 4) {
        return;
    }
    weir_account_config_t config = {.tick = board_cost(data), .gamma = (uint16_t) (data[2] << 8 | data[3])};
    if (weir_account_check(&config) != WEIR_ACCOUNT_OK) {
        return;
    }
    cpu_t cpus[HOUSE_CPUS] = {no_cpu, no_cpu};
    counted_t counted = no_count;
    for (unsigned i = 0; i < HOUSE_CPUS; i++) {
        weir_account_start(&cpus[i].account, &config);
    }
    weir_account_start(&counted.account, &config);
    for (size_t next = 4; size - next >= 3; next += 3) {
        unsigned p = (data[next] >> 4) & 3; /* 3: an orphan, or idle */
        unsigned at = data[next] >> 7;
        unsigned d = data[next + 1] & 1;
        weir_cycles_t cost = board_cost(data + next + 1);
        switch (data[next] & 15) {
        case 0:
        case 1:
        case 2:
            cpu_tick(&cpus[at], p);
            counted_tick(&counted, p);
            break;
        case 3:
            if (p < HOUSE_PROCESSES) {
                cpu_exit(&cpus[at], p);
                counted_exit(&counted, p);
            }
            break;
        case 4:
            if (p < HOUSE_PROCESSES) {
                cpu_move(&cpus[at], &cpus[1 - at], p);
            }
            break;
        default:
            cpu_handled(&cpus[at], d, p, cost);
            counted_handled(&counted, d, p, cost);
            break;
        }
        cpu_check(&cpus[at]);
        counted_worth(&counted);
    }
}

#endif
