/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Compile-time checks: a limit that cannot be enforced does not compile. The checks need an
 * optimising compiler (-Os, -O1 and up). Without optimisation nothing is checked.
 */
#ifndef WEIR_RISCV_CHECK_H
#define WEIR_RISCV_CHECK_H

#include "weir/limit.h"

#define WEIR_RISCV_REFUSES(name, message) void weir_riscv_bad_##name(void) __attribute__((error(message)))
WEIR_RISCV_REFUSES(policy,
                   "policy, timing and trigger must be WEIR_LIMIT_ names, and WEIR_LIMIT_ONE_SHOT goes with WEIR_LIMIT_BURSTY only");
WEIR_RISCV_REFUSES(burst, "the burst must be 1 to 255, and 1 with WEIR_LIMIT_STRICT and WEIR_LIMIT_PACED");
WEIR_RISCV_REFUSES(interval, "the interval must be 1 to 2^29 ticks, for a bucket at most 2^30 / (burst + 1)");
WEIR_RISCV_REFUSES(lag, "the lag must be below the interval, and 0 with any policy but WEIR_LIMIT_STRICT");

/**
 * The largest number of ticks that a limiter may look ahead and back together. These ticks and
 * WEIR_RISCV_REST leave a quarter of a wrap for latencies.
 */
#define WEIR_RISCV_SPAN_MOST 0x40000000u

/**
 * True iff ageing every WEIR_RISCV_REST ticks is often enough for this configuration. Its interval
 * must be at most 2^29 ticks, and that of a bucket at most 2^30 / (N + 1).
 */
WEIR_INLINE bool weir_riscv_can_keep_young(const weir_limit_config_t *c)
{
    uint32_t span = c->policy == WEIR_LIMIT_BUCKET ? (uint32_t) c->burst + 1u : 2u;
    return c->policy == WEIR_LIMIT_OFF || c->interval <= WEIR_RISCV_SPAN_MOST / span;
}

/* The fields of weir_limit_config_t with their values as written, before they are cut to the
 * fields' widths. */
typedef struct {
    int64_t interval;
    int64_t lag;
    int64_t burst;
    int64_t policy;
    int64_t timing;
    int64_t trigger;
} weir_riscv_written_t;

/* Checks a configuration. `w` and `c` have the same initialiser. */
WEIR_INLINE void weir_riscv_check(const weir_riscv_written_t *w, const weir_limit_config_t *c)
{
    weir_limit_error_t error = weir_limit_checked(c);
    if (w->policy != c->policy || w->timing != c->timing || w->trigger != c->trigger || error == WEIR_LIMIT_BAD_POLICY) {
        weir_riscv_bad_policy();
    }
    if (w->burst != c->burst || error == WEIR_LIMIT_BAD_BURST) {
        weir_riscv_bad_burst();
    }
    if (w->interval != (int64_t) c->interval || error == WEIR_LIMIT_BAD_INTERVAL || !weir_riscv_can_keep_young(c)) {
        weir_riscv_bad_interval();
    }
    if (w->lag != (int64_t) c->lag || error == WEIR_LIMIT_BAD_LAG) {
        weir_riscv_bad_lag();
    }
}

/** Defines NAME_check(), which does not compile if the initialiser after `name` is rejected. */
#ifdef __OPTIMIZE__
#define WEIR_RISCV_DEFINE_CHECK_(name, ...)                                                                                                \
    WEIR_INLINE void name##_check(void)                                                                                                    \
    {                                                                                                                                      \
        static const weir_riscv_written_t written = {__VA_ARGS__};                                                                         \
        static const weir_limit_config_t kept = {__VA_ARGS__};                                                                             \
        weir_riscv_check(&written, &kept);                                                                                                 \
    }
#else
#define WEIR_RISCV_DEFINE_CHECK_(name, ...)                                                                                                \
    WEIR_INLINE void name##_check(void)                                                                                                    \
    {                                                                                                                                      \
    }
#endif

#endif
