/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * account: charges interrupt time to the process for which the interrupt came (zhang2006 §3.1, §4).
 *
 * A system that accounts by the clock tick charges each tick to the process that runs when the tick
 * comes. This includes all interrupts during the tick, whichever process they were for. This
 * machine notes the cost and the receiver of each packet, and corrects the accounts at the tick. It
 * returns the number of ticks by which the running process's system time grows and its time-slice
 * shrinks (a negative number gives ticks back). A process that does not run is charged at its own
 * next tick. The guarantees are numbered in core/CONTRACTS.md (ACCOUNT-*).
 *
 * The account has two modes, each with its pair of functions:
 *
 * - *measured*: x, the balance of a process, is kept in cycles: the measured cost itself. One
 *   subtraction per tick, whatever the number of devices.
 * - *counted*: the paper's algorithm to the letter. x is a number of interrupts per device, and a
 *   tick is worth N(t) of them, from an average. Rounding N(t) and averaging T/cost instead of cost
 *   make systematic errors (ACCOUNT-COUNTED-2); this mode serves for comparison. It divides and
 *   multiplies in 64 bits once per tick and device: for hosts, not for 8-bit processors.
 *
 * The state is one weir_account_t per processor and the caller's arrays of devices and processes;
 * in counted mode also an array weir_balance_t [processes][devices]. No state holds a pointer. If
 * one processor handles the packets of a process that runs on another, weir_account_move() brings
 * the balance to the processor that runs the process.
 *
 * Every function of this header is inline, and uses no division, heap, libc or function pointer.
 * Loops end after at most 61 rounds.
 *
 * Context: calls for the same processor must not interrupt each other.
 */
#ifndef WEIR_ACCOUNT_H
#define WEIR_ACCOUNT_H

#include <stddef.h>

#include "weir/ticks.h"

/**
 * The width in bits of a cost in cycles: 32 or 64. With 32 bits a balance saturates at 2^31 cycles
 * (134 s at 16 MHz), and totals wrap at 2^32.
 */
#ifndef WEIR_CYCLE_BITS
#if WEIR_TICK_BITS == 16
#define WEIR_CYCLE_BITS 32
#else
#define WEIR_CYCLE_BITS 64
#endif
#endif

#if WEIR_CYCLE_BITS == 32
typedef uint32_t weir_cycles_t;
typedef int32_t weir_balance_t;
#define WEIR_BALANCE_MOST INT32_MAX
#elif WEIR_CYCLE_BITS == 64
typedef uint64_t weir_cycles_t;
typedef int64_t weir_balance_t;
#define WEIR_BALANCE_MOST INT64_MAX
#else
#error "WEIR_CYCLE_BITS must be 32 or 64"
#endif

/* The names of the functions of src/account.c contain the width of a cost, so that files compiled
 * with different widths do not link. */
#define WEIR_ACCOUNT_JOIN_(name, bits) name##_with_cycles_##bits
#define WEIR_ACCOUNT_JOIN(name, bits) WEIR_ACCOUNT_JOIN_(name, bits)
#define weir_account_check WEIR_ACCOUNT_JOIN(weir_account_check, WEIR_CYCLE_BITS)
#define weir_account_start WEIR_ACCOUNT_JOIN(weir_account_start, WEIR_CYCLE_BITS)
#define weir_account_exit WEIR_ACCOUNT_JOIN(weir_account_exit, WEIR_CYCLE_BITS)
#define weir_account_move WEIR_ACCOUNT_JOIN(weir_account_move, WEIR_CYCLE_BITS)
#define weir_account_tick_counted WEIR_ACCOUNT_JOIN(weir_account_tick_counted, WEIR_CYCLE_BITS)
#define weir_account_worth_counted WEIR_ACCOUNT_JOIN(weir_account_worth_counted, WEIR_CYCLE_BITS)
#define weir_account_exit_counted WEIR_ACCOUNT_JOIN(weir_account_exit_counted, WEIR_CYCLE_BITS)

/** The longest clock tick, in cycles: 33 s at 16 MHz; 17 s at 4 GHz. */
#if WEIR_CYCLE_BITS == 32
#define WEIR_ACCOUNT_TICK_MOST ((weir_cycles_t) 0x20000000u)
#else
#define WEIR_ACCOUNT_TICK_MOST ((weir_cycles_t) 0x1000000000u)
#endif

/** zhang2006 §4: gamma is 0.3. The unit is 1/65,536. */
#define WEIR_ACCOUNT_GAMMA 19661u

/** The configuration of a processor's account. weir_account_check() checks it. */
typedef struct {
    weir_cycles_t tick; /**< cycles of a clock tick, 1 to WEIR_ACCOUNT_TICK_MOST */
    uint16_t gamma;     /**< counted: the weight of the newest N(t) in its average, in 65,536ths, 1 to 65,535; measured: not used */
} weir_account_config_t;

/** The account of one processor. Totals are in cycles and wrap. */
typedef struct {
    weir_account_config_t config;
    weir_cycles_t handled;    /**< handled since the last tick, for whomever; saturates */
    weir_cycles_t orphans;    /**< handled for nobody: given back to who ran, and charged to nobody */
    weir_cycles_t idle;       /**< handled in ticks that were charged to nobody */
    weir_cycles_t unpaid;     /**< what processes owed when they exited */
    weir_cycles_t unreturned; /**< what they had still to be given back */
    uint32_t ticks;           /**< ticks so far */
} weir_account_t;

/** The account of one process on one processor; starts with all zero. Totals are in cycles and
 * wrap. */
typedef struct {
    weir_balance_t owed; /**< measured: x, handled for it and not charged yet; below 0: taken from it and not given back yet. Saturates */
    weir_cycles_t received; /**< handled for it */
    weir_cycles_t hosted;   /**< handled in ticks that were charged to it, for whomever */
    weir_cycles_t own;      /**< of both: handled for it in its own ticks */
    weir_cycles_t recent;   /**< handled for it in tick `recent_tick` */
    uint32_t recent_tick;
    int32_t adjusted; /**< ticks that it was charged, less those that it was given back; wraps */
} weir_account_process_t;

/** The account of one device on one processor; starts with all zero. Totals wrap. */
typedef struct {
    weir_cycles_t cycles;        /**< what its packets cost */
    weir_cycles_t cycles_before; /**< counted: `cycles` at the last tick */
    uint64_t per_tick;           /**< counted: the average of N(t), in 65,536ths; 0 until something was measured */
    uint32_t handled;            /**< packets */
    uint32_t handled_before;     /**< counted: `handled` at the last tick; the difference is m(t) */
} weir_account_device_t;

/**
 * The total cost of what was handled for one receiver, or by one device. A port uses it if nobody
 * is charged ticks, because its clock tells at once who pays, so that nothing must be corrected
 * later. It starts with all zero, and wraps.
 */
typedef struct {
    weir_cycles_t cycles;
    uint32_t packets;
} weir_account_total_t;

/**
 * Counts a packet of a device and its cost. The packet was handled for a receiver, or for nobody,
 * whose total is kept like a receiver's. The totals of all receivers and of nobody add up to the
 * device's (ACCOUNT-TOTAL-1).
 */
WEIR_INLINE void weir_account_count(weir_account_total_t *device, weir_account_total_t *receiver, weir_cycles_t cost)
{
    device->cycles = (weir_cycles_t) (device->cycles + cost);
    device->packets++;
    receiver->cycles = (weir_cycles_t) (receiver->cycles + cost);
    receiver->packets++;
}

/* ------------------------------------------------------------------------------------ balances */

/** Returns balance + more, saturated. `more` is at most WEIR_BALANCE_MOST. */
WEIR_INLINE weir_balance_t weir_account_plus(weir_balance_t balance, weir_cycles_t more)
{
    weir_balance_t room = (weir_balance_t) (WEIR_BALANCE_MOST - (weir_balance_t) more);
    return balance > room ? WEIR_BALANCE_MOST : (weir_balance_t) (balance + (weir_balance_t) more);
}

/** Returns balance - less, saturated. `less` is at most WEIR_BALANCE_MOST. */
WEIR_INLINE weir_balance_t weir_account_minus(weir_balance_t balance, weir_cycles_t less)
{
    weir_balance_t room = (weir_balance_t) ((weir_balance_t) less - WEIR_BALANCE_MOST);
    return balance < room ? -WEIR_BALANCE_MOST : (weir_balance_t) (balance - (weir_balance_t) less);
}

/**
 * Takes all whole units out of a balance, towards 0, and returns their number; a negative balance
 * gives a negative number. The result is that of the paper's loop (with x -= sign * N, without
 * which the loop does not end for x < 0), in at most 61 rounds instead of one for each unit. Beyond
 * 2^31 - 1 units the rest stays in the balance.
 */
WEIR_INLINE int32_t weir_account_whole(weir_balance_t *balance, weir_cycles_t unit)
{
    bool negative = *balance < 0;
    weir_cycles_t rest = (weir_cycles_t) (negative ? -*balance : *balance);
    if (rest < unit) {
        return 0;
    }
    uint32_t bit = 1;
    while (bit < 0x40000000u && unit <= rest >> 1) {
        unit = (weir_cycles_t) (unit << 1);
        bit <<= 1;
    }
    uint32_t whole = 0;
    while (bit != 0) {
        if (unit <= rest) {
            rest = (weir_cycles_t) (rest - unit);
            whole |= bit;
        }
        unit >>= 1;
        bit >>= 1;
    }
    *balance = negative ? -(weir_balance_t) rest : (weir_balance_t) rest;
    return negative ? -(int32_t) whole : (int32_t) whole;
}

/* ---------------------------------------------------------------------------------- both modes */

/** Returns the cost, limited to what a balance can hold. */
WEIR_INLINE weir_cycles_t weir_account_bounded(weir_cycles_t cost)
{
    return cost > (weir_cycles_t) WEIR_BALANCE_MOST ? (weir_cycles_t) WEIR_BALANCE_MOST : cost;
}

/** Adds a packet to the totals. */
WEIR_INLINE void weir_account_note(weir_account_t *a, weir_account_device_t *d, weir_account_process_t *p, weir_cycles_t cost)
{
    d->handled++;
    d->cycles = (weir_cycles_t) (d->cycles + cost);
    a->handled = (weir_cycles_t) weir_account_plus((weir_balance_t) a->handled, cost);
    if (p == NULL) {
        a->orphans = (weir_cycles_t) (a->orphans + cost);
        return;
    }
    p->received = (weir_cycles_t) (p->received + cost);
    if (p->recent_tick != a->ticks) {
        p->recent_tick = a->ticks;
        p->recent = 0;
    }
    p->recent = (weir_cycles_t) (p->recent + cost);
}

/**
 * Adds the end of a clock tick to the totals. The tick was charged to `p`, or to no process, and
 * the account of `p` was adjusted by `ticks`.
 */
WEIR_INLINE void weir_account_close(weir_account_t *a, weir_account_process_t *p, int32_t ticks)
{
    if (p == NULL) {
        a->idle = (weir_cycles_t) (a->idle + a->handled);
    } else {
        p->hosted = (weir_cycles_t) (p->hosted + a->handled);
        if (p->recent_tick == a->ticks) {
            p->own = (weir_cycles_t) (p->own + p->recent);
        }
        p->adjusted = (int32_t) ((uint32_t) p->adjusted + (uint32_t) ticks);
    }
    a->handled = 0;
    a->ticks++;
}

/* ------------------------------------------------------------------------------------ measured */

/**
 * Charges a packet of device `d` to process `p`, or to an unknown receiver (NULL: an orphan), at
 * this cost in cycles. Call it at the end of the bottom half, when the receiver is certain. The
 * cost covers all work for the packet: top half, demultiplexing, bottom half.
 */
WEIR_INLINE void weir_account_handled(weir_account_t *a, weir_account_device_t *d, weir_account_process_t *p, weir_cycles_t cost)
{
    cost = weir_account_bounded(cost);
    weir_account_note(a, d, p, cost);
    if (p != NULL) {
        p->owed = weir_account_plus(p->owed, cost);
    }
}

/**
 * Handles a clock tick, which is charged to process `p`, or to no process (NULL: idle). Returns the
 * number of ticks by which the port raises the system time of `p` and lowers its time-slice, in
 * addition to the tick itself.
 */
WEIR_INLINE int32_t weir_account_tick(weir_account_t *a, weir_account_process_t *p)
{
    int32_t ticks = 0;
    if (p != NULL) {
        p->owed = weir_account_minus(p->owed, a->handled);
        ticks = weir_account_whole(&p->owed, a->config.tick);
    }
    weir_account_close(a, p, ticks);
    return ticks;
}

/* ------------------------------------------------------ counted (zhang2006 §3.1 to the letter) */

/**
 * The counted mode's weir_account_handled(). `x` is the element of this device in the row of `p`,
 * and is not used for an orphan.
 */
WEIR_INLINE void weir_account_handled_counted(weir_account_t *a, weir_account_device_t *d, weir_account_process_t *p, weir_balance_t *x,
                                              weir_cycles_t cost)
{
    weir_account_note(a, d, p, weir_account_bounded(cost));
    if (p != NULL) {
        *x = weir_account_plus(*x, 1);
    }
}

/**
 * The counted mode's weir_account_tick(), for all devices. `x` is the row of `p`. First N(t) is
 * measured for each device whose packets were handled in the tick and had a cost. The averages of
 * the other devices do not change. Until something was measured, balances only grow.
 */
int32_t weir_account_tick_counted(weir_account_t *account, weir_account_device_t *devices, uint16_t count, weir_account_process_t *process,
                                  weir_balance_t *x);

/** The value of a process's row in cycles, computed from the current averages. It saturates. */
weir_balance_t weir_account_worth_counted(const weir_account_t *account, const weir_account_device_t *devices, uint16_t count,
                                          const weir_balance_t *x);

/** The counted mode's weir_account_exit(). `x` is the row of the process. */
void weir_account_exit_counted(weir_account_t *account, const weir_account_device_t *devices, uint16_t count,
                               weir_account_process_t *process, weir_balance_t *x);

/* ------------------------------------------------------ set-up and processes, in src/account.c */

/** The result of weir_account_check(). */
typedef enum {
    WEIR_ACCOUNT_OK = 0,
    WEIR_ACCOUNT_BAD_TICK, /**< tick is 0 or above WEIR_ACCOUNT_TICK_MOST */
    WEIR_ACCOUNT_BAD_GAMMA /**< gamma is 0 */
} weir_account_error_t;

/** Checks whether an account can work with this configuration. */
weir_account_error_t weir_account_check(const weir_account_config_t *config);

/**
 * Starts a processor's account with no packets handled, at tick 0. The configuration must have
 * passed weir_account_check().
 */
void weir_account_start(weir_account_t *account, const weir_account_config_t *config);

/**
 * Call this when a process ends. The balance is written off into the account's totals, and the
 * element is free for another process.
 */
void weir_account_exit(weir_account_t *account, weir_account_process_t *process);

/**
 * Moves the balance of a process from its element on one processor to its element on another, which
 * runs the process. Call it when the process migrates, or at any tick, under the port's lock.
 */
void weir_account_move(weir_account_process_t *from, weir_account_process_t *to);

#endif
