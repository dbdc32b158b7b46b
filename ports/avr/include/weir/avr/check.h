/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Compile-time checks: a limit that cannot be enforced does not compile. The checks need an
 * optimising compiler (-Os, -O1 and up), like avr-libc's delays. Without optimisation nothing is
 * checked.
 */
#ifndef WEIR_AVR_CHECK_H
#define WEIR_AVR_CHECK_H

#include "weir/limit.h"

/* The fields of weir_limit_config_t with their values as written, before they are cut to the
 * fields' widths. */
typedef struct {
    int64_t interval;
    int64_t lag;
    int64_t burst;
    int64_t policy;
    int64_t timing;
    int64_t trigger;
} weir_avr_written_t;

#define WEIR_AVR_REFUSES(name, message) void weir_avr_bad_##name(void) __attribute__((error(message)))
WEIR_AVR_REFUSES(policy, "policy, timing and trigger must be WEIR_LIMIT_ names, and WEIR_LIMIT_ONE_SHOT goes with WEIR_LIMIT_BURSTY only");
WEIR_AVR_REFUSES(burst, "the burst must be 1 to 255, and 1 with WEIR_LIMIT_STRICT and WEIR_LIMIT_PACED");
WEIR_AVR_REFUSES(interval,
                 "the interval must be 1 to 16383 ticks, for a bucket at most 32767 / (burst + 1): choose another prescaler, or a "
                 "rate that WEIR_AVR_TICKS can give");
WEIR_AVR_REFUSES(lag, "the lag must be below the interval, and 0 with any policy but WEIR_LIMIT_STRICT");
WEIR_AVR_REFUSES(period, "the period must be 1 to 65535 ticks of the shared timer: choose another prescaler");

/* Checks that each value fits into its field. `w` and `c` have the same initialiser. */
WEIR_INLINE void weir_avr_check_widths(const weir_avr_written_t *w, const weir_limit_config_t *c)
{
    if (w->policy != c->policy || w->timing != c->timing || w->trigger != c->trigger) {
        weir_avr_bad_policy();
    }
    if (w->burst != c->burst) {
        weir_avr_bad_burst();
    }
    if (w->interval != c->interval) {
        weir_avr_bad_interval();
    }
    if (w->lag != c->lag) {
        weir_avr_bad_lag();
    }
}

WEIR_INLINE void weir_avr_check(const weir_avr_written_t *w, const weir_limit_config_t *c)
{
    weir_avr_check_widths(w, c);
    switch (weir_limit_checked(c)) {
    case WEIR_LIMIT_BAD_POLICY:
        weir_avr_bad_policy();
        break;
    case WEIR_LIMIT_BAD_BURST:
        weir_avr_bad_burst();
        break;
    case WEIR_LIMIT_BAD_INTERVAL:
        weir_avr_bad_interval();
        break;
    case WEIR_LIMIT_BAD_LAG:
        weir_avr_bad_lag();
        break;
    default:
        break;
    }
}

/*
 * Checks a source on a shared timer. The timer's period is the source's interval, and may use the
 * whole range of the ticks.
 */
WEIR_INLINE void weir_avr_check_shared(const weir_avr_written_t *w, const weir_limit_config_t *c)
{
    weir_avr_check_widths(w, c);
    if (c->policy != WEIR_LIMIT_BURSTY || c->timing != WEIR_LIMIT_EAGER) {
        weir_avr_bad_policy();
    }
    if (c->burst == 0) {
        weir_avr_bad_burst();
    }
}

WEIR_INLINE void weir_avr_check_period(int64_t period)
{
    if (period < 1 || period > UINT16_MAX) {
        weir_avr_bad_period();
    }
}

/**
 * Defines NAME_check(), which does not compile if `check` rejects the initialiser after it. `check`
 * is one of the functions above.
 */
#ifdef __OPTIMIZE__
#define WEIR_AVR_DEFINE_CHECK_(name, check, ...)                                                                                           \
    WEIR_INLINE void name##_check(void)                                                                                                    \
    {                                                                                                                                      \
        static const weir_avr_written_t written = {__VA_ARGS__};                                                                           \
        static const weir_limit_config_t kept = {__VA_ARGS__};                                                                             \
        check(&written, &kept);                                                                                                            \
    }
#define WEIR_AVR_CHECK_PERIOD(period) weir_avr_check_period(period)
#else
#define WEIR_AVR_DEFINE_CHECK_(name, check, ...)                                                                                           \
    WEIR_INLINE void name##_check(void)                                                                                                    \
    {                                                                                                                                      \
    }
#define WEIR_AVR_CHECK_PERIOD(period) ((void) (period))
#endif

#endif
