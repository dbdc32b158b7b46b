/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limiter for a host program that needs every tick width at once. This file is compiled once
 * per width, with the prefix WEIR_FFI_PREFIX. The functions take and return 64-bit instants at
 * every width. The caller provides the memory of a limiter, WEIR_FFI(size)() bytes.
 */
#ifndef WEIR_FFI_PREFIX
#define WEIR_FFI_PREFIX weir_ffi_limit_
#endif
#define WEIR_FFI_JOIN_(prefix, name) prefix##name
#define WEIR_FFI_JOIN(prefix, name) WEIR_FFI_JOIN_(prefix, name)
#define WEIR_FFI(name) WEIR_FFI_JOIN(WEIR_FFI_PREFIX, name)

#define weir_limit_check WEIR_FFI(core_check)
#define weir_limit_start_with WEIR_FFI(core_start_with)
#define weir_limit_reconfigure WEIR_FFI(core_reconfigure)
#define weir_limits_next WEIR_FFI(core_next)

#include <stddef.h>

#include "../../../core/src/limit.c"

/* These layouts are the same at every width. limit_ffi.rs declares the same structures. */
typedef struct {
    uint64_t interval;
    uint64_t lag;
    uint8_t burst;
    uint8_t policy;
    uint8_t timing;
    uint8_t trigger;
} weir_ffi_limit_config_t;

typedef struct {
    uint64_t at;
    uint32_t actions; /* bit 0 serve, 1 ack, 2 mask, 3 unmask, 4 arm, 5 watch, 6 disarm */
} weir_ffi_limit_step_t;

typedef struct {
    uint64_t longest_masked;
    uint64_t longest_handler;
    uint64_t first_overload;
    uint64_t last_overload;
    uint32_t taken;
    uint32_t served;
    uint32_t masked_intervals;
    uint32_t overloads;
} weir_ffi_limit_record_t;

_Static_assert(offsetof(weir_ffi_limit_config_t, burst) == 16 && sizeof(weir_ffi_limit_config_t) == 24, "as in limit_ffi.rs");
_Static_assert(offsetof(weir_ffi_limit_step_t, actions) == 8 && sizeof(weir_ffi_limit_step_t) == 16, "as in limit_ffi.rs");
_Static_assert(offsetof(weir_ffi_limit_record_t, taken) == 32 && sizeof(weir_ffi_limit_record_t) == 48, "as in limit_ffi.rs");

static weir_limit_config_t narrow(const weir_ffi_limit_config_t *wide)
{
    weir_limit_config_t c = {
        .interval = (weir_ticks_t) wide->interval,
        .lag = (weir_ticks_t) wide->lag,
        .burst = wide->burst,
        .policy = wide->policy,
        .timing = wide->timing,
        .trigger = wide->trigger,
    };
    return c;
}

static void widen(weir_limit_step_t s, weir_ffi_limit_step_t *wide)
{
    wide->at = s.at;
    wide->actions = (s.serve ? 0x01u : 0u) | (s.ack ? 0x02u : 0u) | (s.mask ? 0x04u : 0u) | (s.unmask ? 0x08u : 0u) | (s.arm ? 0x10u : 0u) |
                    (s.watch ? 0x20u : 0u) | (s.disarm ? 0x40u : 0u);
}

/* The parameters are those of the functions of limit.h that are called here. */
size_t WEIR_FFI(size)(void)
{
    return sizeof(weir_limit_t);
}

size_t WEIR_FFI(alignment)(void)
{
    return _Alignof(weir_limit_t);
}

uint32_t WEIR_FFI(check)(const weir_ffi_limit_config_t *config)
{
    weir_limit_config_t c = narrow(config);
    return (uint32_t) weir_limit_check(&c);
}

void WEIR_FFI(start)(weir_limit_t *limit, const weir_ffi_limit_config_t *config, uint64_t now, weir_ffi_limit_step_t *step)
{
    limit->config = narrow(config);
    widen(weir_limit_start(limit, (weir_ticks_t) now), step);
}

void WEIR_FFI(request)(weir_limit_t *limit, uint64_t now, bool elapsed, weir_ffi_limit_step_t *step)
{
    widen(weir_limit_request_with(&limit->state, &limit->config, (weir_ticks_t) now, elapsed), step);
}

void WEIR_FFI(refused)(weir_limit_t *limit, uint64_t now, weir_ffi_limit_step_t *step)
{
    widen(weir_limit_refused(limit, (weir_ticks_t) now), step);
}

void WEIR_FFI(expired)(weir_limit_t *limit, uint64_t now, bool pending, weir_ffi_limit_step_t *step)
{
    widen(weir_limit_expired(limit, (weir_ticks_t) now, pending), step);
}

void WEIR_FFI(tick)(weir_limit_t *limit, uint64_t now, bool pending, weir_ffi_limit_step_t *step)
{
    widen(weir_limit_tick(limit, (weir_ticks_t) now, pending), step);
}

void WEIR_FFI(user_enable)(weir_limit_t *limit, uint64_t now, weir_ffi_limit_step_t *step)
{
    widen(weir_limit_user_enable(&limit->state, (weir_ticks_t) now), step);
}

void WEIR_FFI(user_disable)(weir_limit_t *limit, weir_ffi_limit_step_t *step)
{
    widen(weir_limit_user_disable(&limit->state), step);
}

uint32_t WEIR_FFI(reconfigure)(weir_limit_t *limit, const weir_ffi_limit_config_t *config, uint64_t now, weir_ffi_limit_step_t *step)
{
    weir_limit_config_t to = narrow(config);
    weir_limit_step_t s;
    weir_limit_error_t error = weir_limit_reconfigure(limit, &to, (weir_ticks_t) now, &s);
    widen(s, step);
    return (uint32_t) error;
}

void WEIR_FFI(age)(weir_limit_t *limit, uint64_t now)
{
    weir_limit_age(&limit->state, &limit->config, (weir_ticks_t) now);
}

void WEIR_FFI(elapsed)(weir_limit_t *limit)
{
    weir_limit_elapsed(&limit->state, &limit->config);
}

void WEIR_FFI(done)(weir_limit_t *limit, uint64_t begin, uint64_t now)
{
    weir_limit_done(&limit->state, (weir_ticks_t) begin, (weir_ticks_t) now);
}

bool WEIR_FFI(is_on)(const weir_limit_t *limit)
{
    return weir_limit_is_on(&limit->state);
}

bool WEIR_FFI(next)(const weir_limit_t *const *limits, uint8_t count, uint64_t now, uint64_t *at)
{
    weir_ticks_t instant = 0;
    bool any = weir_limits_next(limits, count, (weir_ticks_t) now, &instant);
    *at = instant;
    return any;
}

/* Returns false if the limiter keeps no record. */
bool WEIR_FFI(record)(const weir_limit_t *limit, weir_ffi_limit_record_t *record)
{
#if WEIR_LIMIT_RECORD
    const weir_limit_record_t *r = &limit->state.record;
    *record = (weir_ffi_limit_record_t) {
        .longest_masked = r->longest_masked,
        .longest_handler = r->longest_handler,
        .first_overload = r->first_overload,
        .last_overload = r->last_overload,
        .taken = r->taken,
        .served = r->served,
        .masked_intervals = r->masked_intervals,
        .overloads = r->overloads,
    };
#else
    (void) limit;
    (void) record;
#endif
    return WEIR_LIMIT_RECORD != 0;
}
