/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * demux, defer and predict for a host program, with 64 classes: wraps the headers' inline functions
 * in functions that can be linked. The parameters are those of the wrapped functions; the caller
 * provides the memory of each state.
 */
#define WEIR_CLASSES 64

#define weir_demux_start weir_ffi_demux_start
#define weir_demux_bind weir_ffi_demux_bind
#define weir_demux_unbind weir_ffi_demux_unbind
#define weir_demux_set_class weir_ffi_demux_set_class
#define weir_defer_start weir_ffi_defer_start
#define weir_defer_set_class weir_ffi_defer_set_class
#define weir_predict_start weir_ffi_predict_start

#include <stddef.h>

#include "../../../core/src/defer.c"
#include "../../../core/src/demux.c"

/* classes_ffi.rs declares structures with the same layouts. */
_Static_assert(sizeof(weir_demux_t) == 14 && offsetof(weir_demux_t, orphans) == 12, "as in classes_ffi.rs");
_Static_assert(sizeof(weir_demux_slot_t) == 8 && offsetof(weir_demux_slot_t, which) == 6, "as in classes_ffi.rs");
_Static_assert(sizeof(weir_demux_link_t) == 6 && offsetof(weir_demux_link_t, reader) == 2, "as in classes_ffi.rs");
_Static_assert(sizeof(weir_demux_packet_t) == 10 && offsetof(weir_demux_packet_t, outcome) == 8, "as in classes_ffi.rs");
_Static_assert(sizeof(weir_demux_found_t) == 4 && offsetof(weir_demux_found_t, kind) == 3, "as in classes_ffi.rs");
_Static_assert(sizeof(weir_predict_config_t) == 4 && offsetof(weir_predict_config_t, patience) == 3, "as in classes_ffi.rs");

void weir_ffi_demux_parse(const uint8_t *frame, uint16_t length, weir_demux_packet_t *packet)
{
    *packet = weir_demux_parse(frame, length);
}

bool weir_ffi_demux_parse_plain(const uint8_t *frame, uint16_t length, weir_demux_packet_t *packet)
{
    return weir_demux_parse_plain(frame, length, packet);
}

weir_demux_found_t weir_ffi_demux_lookup(const weir_demux_t *d, const weir_demux_slot_t *slots, weir_demux_key_t key)
{
    return weir_demux_lookup(d, slots, key);
}

weir_demux_found_t weir_ffi_demux_classify(const weir_demux_t *d, const weir_demux_slot_t *slots, const weir_demux_packet_t *packet)
{
    return weir_demux_classify(d, slots, packet);
}

size_t weir_ffi_defer_size(void)
{
    return sizeof(weir_defer_t);
}

bool weir_ffi_defer_set_urgency(weir_defer_t *d, uint8_t which, uint8_t urgency)
{
    return weir_defer_set_urgency(d, which, urgency);
}

bool weir_ffi_defer_push(weir_defer_t *d, uint8_t which)
{
    return weir_defer_push(d, which);
}

uint8_t weir_ffi_defer_best(const weir_defer_t *d)
{
    return weir_defer_best(d);
}

bool weir_ffi_defer_would_run(const weir_defer_t *d, uint8_t running, uint8_t ties)
{
    return weir_defer_would_run(d, running, ties);
}

uint8_t weir_ffi_defer_next(weir_defer_t *d, uint8_t running, uint8_t ties)
{
    return weir_defer_next(d, running, ties);
}

bool weir_ffi_defer_done(weir_defer_t *d, uint8_t which)
{
    return weir_defer_done(d, which);
}

uint16_t weir_ffi_defer_waiting(const weir_defer_t *d, uint8_t which)
{
    return weir_defer_waiting(d, which);
}

size_t weir_ffi_predict_size(void)
{
    return sizeof(weir_predict_t);
}

bool weir_ffi_predict_wait(weir_predict_t *p, uint8_t which)
{
    return weir_predict_wait(p, which);
}

bool weir_ffi_predict_stop_waiting(weir_predict_t *p, uint8_t which)
{
    return weir_predict_stop_waiting(p, which);
}

bool weir_ffi_predict_register(weir_predict_t *p, uint8_t which)
{
    return weir_predict_register(p, which);
}

bool weir_ffi_predict_unregister(weir_predict_t *p, uint8_t which)
{
    return weir_predict_unregister(p, which);
}

void weir_ffi_predict_handled(weir_predict_t *p, const weir_predict_config_t *config, uint8_t which)
{
    weir_predict_handled(p, config, which);
}

void weir_ffi_predict_deferred(weir_predict_t *p, const weir_predict_config_t *config)
{
    weir_predict_deferred(p, config);
}

uint8_t weir_ffi_predict(const weir_predict_t *p, const weir_predict_config_t *config, uint8_t how)
{
    return weir_predict(p, config, how);
}
