/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Set-up of the queues of bottom halves, and of predictors. */
#include "weir/defer.h"
#include "weir/predict.h"

void weir_defer_start(weir_defer_t *d)
{
    static const weir_defer_class_t none = {0, 0, 0, WEIR_CLASS_NONE};
    d->pending = 0;
    d->active = 0;
    d->best = WEIR_CLASS_NONE;
    d->inner = WEIR_CLASS_NONE;
    for (uint8_t i = 0; i < WEIR_CLASSES; i++) {
        d->classes[i] = none;
    }
}

bool weir_defer_set_class(weir_defer_t *d, uint8_t which, uint16_t capacity, uint8_t urgency)
{
    if (which >= WEIR_CLASSES) {
        return false;
    }
    d->classes[which].capacity = capacity;
    return weir_defer_set_urgency(d, which, urgency);
}

bool weir_predict_start(weir_predict_t *p, const weir_predict_config_t *config)
{
    if (config->share == 0 || config->share > WEIR_PREDICT_ALL || config->shift > WEIR_PREDICT_LONGEST) {
        return false;
    }
    p->waiting = 0;
    p->registered = 0;
    p->known = 0;
    p->unseen = WEIR_PREDICT_ALL;
    p->deferrals = 0;
    for (uint8_t i = 0; i < WEIR_CLASSES; i++) {
        p->waits[i] = 0;
        p->registers[i] = 0;
        p->shares[i] = 0;
    }
    return true;
}
