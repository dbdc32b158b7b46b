/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * predict: predicts the urgency of a device's bottom half while the receiver of its packets is
 * unknown (zhang2006 §3.2).
 *
 * Classes are urgencies here: a process registers its class with the device, and announces when it
 * waits for the device. There are three predictions:
 *
 * - the class of the most urgent process that waits: zhang2006's;
 * - the class of the most urgent one that is registered: never too low, however the process waits;
 * - from history, which zhang2006 leaves to future work: the most urgent class such that at least
 *   `share` of the recent packets was for receivers of this or a higher urgency; never above the
 *   first prediction. The predictor keeps the share of recent packets of each class, exponentially
 *   weighted, and the share of unseen packets, which count as most urgent: without history it is
 *   zhang2006's prediction.
 *
 * A deferred packet adds nothing to the history, because its receiver becomes known only when it is
 * handled. Suppose that the first packet of an urgent process after a long silence were taken for
 * one of the many before it. Then it could wait behind a process that runs for ever. So after
 * `patience` deferrals in a row the prediction is that of zhang2006, until a packet has been
 * handled.
 *
 * The caller's memory holds one weir_predict_t for each device, of about 6 bytes per class. Its
 * functions must not interrupt each other. They use no division, and take constant time, bounded by
 * WEIR_CLASSES.
 */
#ifndef WEIR_PREDICT_H
#define WEIR_PREDICT_H

#include "weir/classes.h"

/* The name of the function of src/defer.c contains the number of classes, unless the user has
 * already defined the name. */
#ifndef weir_predict_start
#define weir_predict_start WEIR_CLASSES_JOIN(weir_predict_start, WEIR_CLASSES)
#endif

/** The share that means all packets. */
#define WEIR_PREDICT_ALL 0x8000u

/** The largest `shift`. The rounding errors of the shares grow with `shift`. */
#define WEIR_PREDICT_LONGEST 8u

/** The kinds of prediction. */
enum {
    WEIR_PREDICT_WAITING = 0,    /**< the most urgent process that waits for the device (zhang2006 §3.2) */
    WEIR_PREDICT_REGISTERED = 1, /**< the most urgent process that is registered with it */
    WEIR_PREDICT_HISTORY = 2     /**< from whom recent packets were for */
};

/** The configuration of the prediction from history. */
typedef struct {
    uint16_t
        share; /**< 1 to WEIR_PREDICT_ALL: a class is predicted if at least this share of recent packets was for it or a more urgent one */
    uint8_t shift;    /**< 0 to WEIR_PREDICT_LONGEST: the newest packet weighs 2^-shift; history spans some 2^shift packets */
    uint8_t patience; /**< deferrals in a row after which history is not believed; 0: it never is, 255: always */
} weir_predict_config_t;

/** The state of a device's predictor. weir_predict_start() initialises it. */
typedef struct {
    weir_classes_t waiting;    /**< classes of which a process waits */
    weir_classes_t registered; /**< classes of which a process is registered */
    weir_classes_t known;      /**< classes whose share is not 0 */
    uint16_t unseen;           /**< the share of packets before the first that was handled */
    uint8_t deferrals;         /**< since a packet was handled; saturates at `patience` */
    uint16_t waits[WEIR_CLASSES];
    uint16_t registers[WEIR_CLASSES];
    uint16_t shares[WEIR_CLASSES];
} weir_predict_t;

/* Counts one more process of a class. Returns false if there is no such class, or if 65535
 * processes are counted already. */
WEIR_INLINE bool weir_predict_count(weir_classes_t *set, uint16_t *counts, uint8_t which)
{
    if (which >= WEIR_CLASSES || counts[WEIR_CLASS_INDEX(which)] == UINT16_MAX) {
        return false;
    }
    counts[WEIR_CLASS_INDEX(which)]++;
    *set = (weir_classes_t) (*set | weir_classes_of(which));
    return true;
}

/* Counts one process less of a class. Returns false if no process of the class is counted. */
WEIR_INLINE bool weir_predict_discount(weir_classes_t *set, uint16_t *counts, uint8_t which)
{
    if (which >= WEIR_CLASSES || counts[WEIR_CLASS_INDEX(which)] == 0) {
        return false;
    }
    counts[WEIR_CLASS_INDEX(which)]--;
    if (counts[WEIR_CLASS_INDEX(which)] == 0) {
        *set = weir_classes_without(*set, which);
    }
    return true;
}

/**
 * Call this when a process of a class begins to wait for the device. Returns false if there is no
 * such class, or if 65535 processes wait already.
 */
WEIR_INLINE bool weir_predict_wait(weir_predict_t *p, uint8_t which)
{
    return weir_predict_count(&p->waiting, p->waits, which);
}

/** Call this when a process of a class no longer waits. Returns false if no process of the class
 * waited. */
WEIR_INLINE bool weir_predict_stop_waiting(weir_predict_t *p, uint8_t which)
{
    return weir_predict_discount(&p->waiting, p->waits, which);
}

/**
 * Call this when a process of a class opens a socket on the device. Returns false if there is no
 * such class, or if 65535 processes are registered already.
 */
WEIR_INLINE bool weir_predict_register(weir_predict_t *p, uint8_t which)
{
    return weir_predict_count(&p->registered, p->registers, which);
}

/**
 * Call this when a process of a class closes its socket. When the last process of a class does so,
 * the history of the class is forgotten, and later packets for the class have no receiver. Returns
 * false if no socket was open.
 */
WEIR_INLINE bool weir_predict_unregister(weir_predict_t *p, uint8_t which)
{
    if (!weir_predict_discount(&p->registered, p->registers, which)) {
        return false;
    }
    if (p->registers[WEIR_CLASS_INDEX(which)] == 0) {
        p->shares[WEIR_CLASS_INDEX(which)] = 0;
        p->known = weir_classes_without(p->known, which);
    }
    return true;
}

/*
 * Reduces a share by 2^-shift of itself, rounded up. So a share does reach 0, and all shares
 * together never exceed WEIR_PREDICT_ALL.
 */
WEIR_INLINE uint16_t weir_predict_decayed(uint16_t share, uint8_t shift)
{
    uint16_t lost = (uint16_t) (share >> shift);
    if ((uint16_t) (lost << shift) != share) {
        lost++;
    }
    return (uint16_t) (share - lost);
}

/**
 * Call this when a packet of the device was handled. Its receiver has the class `which`, or the
 * packet has no receiver (WEIR_CLASS_NONE, or any class that does not exist).
 */
WEIR_INLINE void weir_predict_handled(weir_predict_t *p, const weir_predict_config_t *config, uint8_t which)
{
    p->deferrals = 0;
    p->unseen = weir_predict_decayed(p->unseen, config->shift);
    weir_classes_t rest = p->known;
    for (uint8_t i = 0; i < WEIR_CLASSES && rest != 0; i++) {
        uint8_t at = weir_classes_highest(rest);
        rest = weir_classes_without(rest, at);
        uint16_t share = weir_predict_decayed(p->shares[WEIR_CLASS_INDEX(at)], config->shift);
        p->shares[WEIR_CLASS_INDEX(at)] = share;
        if (share == 0) {
            p->known = weir_classes_without(p->known, at);
        }
    }
    if (which < WEIR_CLASSES) {
        uint16_t *share = &p->shares[WEIR_CLASS_INDEX(which)];
        *share = (uint16_t) (*share + (WEIR_PREDICT_ALL >> config->shift));
        p->known = (weir_classes_t) (p->known | weir_classes_of(which));
    }
}

/**
 * Call this when a bottom half of the device was deferred, and the most urgent waiting process
 * might be waiting for it. Call it after a top half that ends without a bottom half. So that the
 * wait is bounded in time, call it also at each clock tick while a bottom half is deferred.
 */
WEIR_INLINE void weir_predict_deferred(weir_predict_t *p, const weir_predict_config_t *config)
{
    if (p->deferrals < config->patience) {
        p->deferrals++;
    }
}

/* Returns the most urgent class of a set. */
WEIR_INLINE uint8_t weir_predict_most_urgent(weir_classes_t set)
{
    return set == 0 ? WEIR_CLASS_NONE : weir_classes_highest(set);
}

/* Returns the prediction from history, as described above. */
WEIR_INLINE uint8_t weir_predict_from_history(const weir_predict_t *p, const weir_predict_config_t *config)
{
    uint8_t most = weir_predict_most_urgent(p->waiting);
    if (most == WEIR_CLASS_NONE || (p->deferrals >= config->patience && config->patience != UINT8_MAX) || p->unseen >= config->share) {
        return most;
    }
    uint16_t sum = p->unseen;
    weir_classes_t rest = p->known;
    for (uint8_t i = 0; i < WEIR_CLASSES && rest != 0; i++) {
        uint8_t at = weir_classes_highest(rest);
        rest = weir_classes_without(rest, at);
        sum = (uint16_t) (sum + p->shares[WEIR_CLASS_INDEX(at)]);
        if (sum >= config->share) {
            return at < most ? at : most;
        }
    }
    return WEIR_CLASS_NONE;
}

/**
 * Returns the probable urgency of the device's next packet: a class, or WEIR_CLASS_NONE if the
 * packet is probably for no urgent receiver. That is so if no process waits, or (history) if hardly
 * any recent packet had a receiver.
 */
WEIR_INLINE uint8_t weir_predict(const weir_predict_t *p, const weir_predict_config_t *config, uint8_t how)
{
    if (how == WEIR_PREDICT_HISTORY) {
        return weir_predict_from_history(p, config);
    }
    return weir_predict_most_urgent(how == WEIR_PREDICT_REGISTERED ? p->registered : p->waiting);
}

/**
 * Initialises a predictor with no process waiting or registered, and no packet seen. Returns false,
 * and changes nothing, if `config` is not valid. In src/defer.c.
 */
bool weir_predict_start(weir_predict_t *p, const weir_predict_config_t *config);

#endif
