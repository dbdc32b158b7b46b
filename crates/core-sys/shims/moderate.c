/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Moderated queues for a host program that needs every tick width at once. This file is compiled
 * once per width, with the prefix WEIR_FFI_PREFIX. The functions take and return 64-bit instants at
 * every width. The caller provides the memory of the queues, an array with WEIR_FFI(size)() bytes
 * per queue.
 */
#ifndef WEIR_FFI_PREFIX
#define WEIR_FFI_PREFIX weir_ffi_moderate_
#endif
#define WEIR_FFI_JOIN_(prefix, name) prefix##name
#define WEIR_FFI_JOIN(prefix, name) WEIR_FFI_JOIN_(prefix, name)
#define WEIR_FFI(name) WEIR_FFI_JOIN(WEIR_FFI_PREFIX, name)

#define weir_moderate_check WEIR_FFI(core_check)
#define weir_moderate_start WEIR_FFI(core_start)
#define weir_moderate_reconfigure WEIR_FFI(core_reconfigure)
#define weir_moderate_next WEIR_FFI(core_next)
#define weir_moderate_expired WEIR_FFI(core_expired)

#include <stddef.h>

#include "../../../core/src/moderate.c"

/* These layouts are the same at every width. moderate_ffi.rs declares the same structures. */
typedef struct {
    uint64_t absolute;
    uint64_t packet;
    uint16_t count;
    uint16_t size;
} weir_ffi_moderate_config_t;

typedef struct {
    uint32_t accepted;
    uint32_t dropped;
    uint32_t interrupts;
    uint16_t waiting;
    uint8_t phase;
} weir_ffi_moderate_queue_t;

_Static_assert(offsetof(weir_ffi_moderate_config_t, size) == 18 && sizeof(weir_ffi_moderate_config_t) == 24, "as in moderate_ffi.rs");
_Static_assert(offsetof(weir_ffi_moderate_queue_t, phase) == 14 && sizeof(weir_ffi_moderate_queue_t) == 16, "as in moderate_ffi.rs");

static weir_moderate_config_t narrow(const weir_ffi_moderate_config_t *wide)
{
    weir_moderate_config_t c = {
        .absolute = (weir_ticks_t) wide->absolute,
        .packet = (weir_ticks_t) wide->packet,
        .count = wide->count,
        .size = wide->size,
    };
    return c;
}

/* The parameters are those of the functions of moderate.h that are called here. */
size_t WEIR_FFI(size)(void)
{
    return sizeof(weir_moderate_t);
}

size_t WEIR_FFI(alignment)(void)
{
    return _Alignof(weir_moderate_t);
}

uint32_t WEIR_FFI(check)(const weir_ffi_moderate_config_t *config)
{
    weir_moderate_config_t c = narrow(config);
    return (uint32_t) weir_moderate_check(&c);
}

void WEIR_FFI(start)(weir_moderate_t *queues, uint16_t queue, const weir_ffi_moderate_config_t *config)
{
    weir_moderate_config_t c = narrow(config);
    weir_moderate_start(&queues[queue], &c);
}

/* Returns two flags: bit 0 if the packet was accepted, bit 1 if the queue interrupts. */
uint32_t WEIR_FFI(arrive)(weir_moderate_t *queues, uint16_t queue, uint64_t now)
{
    weir_moderate_step_t step = weir_moderate_arrive(&queues[queue], (weir_ticks_t) now);
    return (step.accepted ? 1u : 0u) | (step.interrupt ? 2u : 0u);
}

uint16_t WEIR_FFI(remove)(weir_moderate_t *queues, uint16_t queue, uint16_t count)
{
    return weir_moderate_remove(&queues[queue].state, count);
}

bool WEIR_FFI(done)(weir_moderate_t *queues, uint16_t queue, uint64_t now)
{
    return weir_moderate_done_with(&queues[queue].state, &queues[queue].config, (weir_ticks_t) now);
}

uint32_t WEIR_FFI(reconfigure)(weir_moderate_t *queues, uint16_t queue, const weir_ffi_moderate_config_t *to, uint64_t now, bool *interrupt)
{
    weir_moderate_config_t c = narrow(to);
    return (uint32_t) weir_moderate_reconfigure(&queues[queue], &c, (weir_ticks_t) now, interrupt);
}

/* Returns the next due instant among `count` queues, beginning at index `from`. */
bool WEIR_FFI(next)(const weir_moderate_t *queues, uint16_t from, uint16_t count, uint64_t now, uint64_t *at)
{
    weir_ticks_t instant = 0;
    bool any = weir_moderate_next(queues + from, count, (weir_ticks_t) now, &instant);
    *at = instant;
    return any;
}

uint16_t WEIR_FFI(expired)(weir_moderate_t *queues, uint16_t count, uint16_t from, uint64_t now)
{
    return weir_moderate_expired(queues, count, from, (weir_ticks_t) now);
}

void WEIR_FFI(read)(const weir_moderate_t *queues, uint16_t queue, weir_ffi_moderate_queue_t *out)
{
    const weir_moderate_state_t *s = &queues[queue].state;
    *out = (weir_ffi_moderate_queue_t) {
        .accepted = s->accepted,
        .dropped = s->dropped,
        .interrupts = s->interrupts,
        .waiting = s->waiting,
        .phase = s->phase,
    };
}
