/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls the per-packet functions of demux, defer and predict, with a table of constant size: to be
 * compiled for every target, not to be run.
 */
#define WEIR_DEMUX_MASK(table) ((uint16_t) 255)

#include "weir/defer.h"
#include "weir/demux.h"
#include "weir/predict.h"

/* Defined elsewhere, so that no compiler knows their contents. */
extern weir_demux_t demux;
extern weir_demux_slot_t slots[256];
extern weir_defer_t bottom_halves;
extern weir_predict_t predictor;

static const weir_predict_config_t history = {WEIR_PREDICT_ALL / 8, 5, 16};

bool top_half(const uint8_t *frame, uint16_t length);
bool top_half(const uint8_t *frame, uint16_t length)
{
    weir_demux_packet_t packet = weir_demux_parse(frame, length);
    return weir_defer_push(&bottom_halves, weir_demux_classify(&demux, slots, &packet).which);
}

uint8_t scheduling_point(uint8_t done, uint8_t device, uint8_t running);
uint8_t scheduling_point(uint8_t done, uint8_t device, uint8_t running)
{
    weir_defer_done(&bottom_halves, done);
    weir_predict_handled(&predictor, &history, done);
    weir_defer_set_urgency(&bottom_halves, device, weir_predict(&predictor, &history, WEIR_PREDICT_HISTORY));
    uint8_t next = weir_defer_next(&bottom_halves, running, WEIR_DEFER_TIES_WAIT);
    if (next == WEIR_CLASS_NONE) {
        weir_predict_deferred(&predictor, &history);
    }
    return next;
}

void waits(uint8_t which, bool begins);
void waits(uint8_t which, bool begins)
{
    if (begins) {
        weir_predict_wait(&predictor, which);
        weir_predict_register(&predictor, which);
    } else {
        weir_predict_stop_waiting(&predictor, which);
        weir_predict_unregister(&predictor, which);
    }
}
