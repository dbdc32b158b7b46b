/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * defer: decides which bottom half runs now (zhang2006 §3.2, lee2010 §4).
 *
 * Packets that the top halves leave behind wait in classes, first in, first out within each class.
 * A class has an urgency, which may change. A bottom half runs at once if its class is more urgent
 * than the running process. Otherwise it runs when the processor falls to that urgency. The packets
 * themselves are in the port's queues, one for each class; this machine keeps their number and
 * order. Call weir_defer_next():
 *
 * - after a top half;
 * - after a bottom half, once weir_defer_done() was called;
 * - at a context switch, before it takes place, with the urgency of the process that would run next
 *   (zhang2006 §3.2).
 *
 * The caller's memory holds one weir_defer_t for each processor. Its functions must not interrupt
 * each other, so call them with interrupts off. Every function takes constant time, bounded by
 * WEIR_CLASSES.
 */
#ifndef WEIR_DEFER_H
#define WEIR_DEFER_H

#include "weir/classes.h"

/* The names of the functions of src/defer.c contain the number of classes, unless the user has
 * already defined the names. */
#ifndef weir_defer_start
#define weir_defer_start WEIR_CLASSES_JOIN(weir_defer_start, WEIR_CLASSES)
#define weir_defer_set_class WEIR_CLASSES_JOIN(weir_defer_set_class, WEIR_CLASSES)
#endif

/** Decides between a bottom half and a running process of the same urgency. */
enum {
    WEIR_DEFER_TIES_WAIT = 0, /**< it waits (zhang2006 §3.2: "if deemed more important") */
    WEIR_DEFER_TIES_RUN = 1   /**< it runs (lee2010 §4: "no lower than") */
};

/** A class of bottom halves. */
typedef struct {
    uint16_t waiting;  /**< packets that wait */
    uint16_t capacity; /**< so many may wait: the length of the port's queue */
    uint8_t urgency;   /**< higher is more urgent */
    uint8_t outer;     /**< while it runs: the class whose bottom half it preempted, or WEIR_CLASS_NONE */
} weir_defer_class_t;

/** All bottom halves of a processor. weir_defer_start() initialises it. */
typedef struct {
    weir_classes_t pending; /**< classes in which something waits */
    weir_classes_t active;  /**< classes whose bottom half has begun and is not done */
    uint8_t best;           /**< the most urgent of the pending classes that are not active, or WEIR_CLASS_NONE */
    uint8_t inner;          /**< the active class that began last, or WEIR_CLASS_NONE */
    weir_defer_class_t classes[WEIR_CLASSES];
} weir_defer_t;

/* Chooses the most urgent class that has a waiting packet and no bottom half that runs. Among
 * classes of the same urgency the highest index comes first. */
WEIR_INLINE void weir_defer_choose(weir_defer_t *d)
{
    weir_classes_t rest = (weir_classes_t) (d->pending & (weir_classes_t) ~d->active);
    uint8_t best = WEIR_CLASS_NONE;
    uint8_t urgency = 0;
    for (uint8_t i = 0; i < WEIR_CLASSES && rest != 0; i++) {
        uint8_t at = weir_classes_highest(rest);
        rest = weir_classes_without(rest, at);
        if (best == WEIR_CLASS_NONE || d->classes[WEIR_CLASS_INDEX(at)].urgency > urgency) {
            best = at;
            urgency = d->classes[WEIR_CLASS_INDEX(at)].urgency;
        }
    }
    d->best = best;
}

/**
 * Sets the urgency of a class, and so of the packets that wait in it. For the class of a device,
 * set the urgency that the predictor returns at each scheduling point (zhang2006 §4). Returns false
 * if the class does not exist.
 */
WEIR_INLINE bool weir_defer_set_urgency(weir_defer_t *d, uint8_t which, uint8_t urgency)
{
    if (which >= WEIR_CLASSES) {
        return false;
    }
    weir_defer_class_t *c = &d->classes[WEIR_CLASS_INDEX(which)];
    if (c->urgency != urgency) {
        c->urgency = urgency;
        weir_defer_choose(d);
    }
    return true;
}

/**
 * Call this when a top half leaves a packet for the bottom half of a class. Returns false if the
 * class is full or does not exist; the packet is then dropped.
 */
WEIR_INLINE bool weir_defer_push(weir_defer_t *d, uint8_t which)
{
    if (which >= WEIR_CLASSES) {
        return false;
    }
    weir_defer_class_t *c = &d->classes[WEIR_CLASS_INDEX(which)];
    if (c->waiting >= c->capacity) {
        return false;
    }
    c->waiting++;
    weir_classes_t bit = weir_classes_of(which);
    if ((d->pending & bit) == 0) {
        d->pending = (weir_classes_t) (d->pending | bit);
        if ((d->active & bit) == 0) {
            uint8_t urgency = d->best == WEIR_CLASS_NONE ? 0 : d->classes[WEIR_CLASS_INDEX(d->best)].urgency;
            if (d->best == WEIR_CLASS_NONE || c->urgency > urgency || (c->urgency == urgency && which > d->best)) {
                d->best = which;
            }
        }
    }
    return true;
}

/**
 * Returns the class whose bottom half weir_defer_next() considers, or WEIR_CLASS_NONE if no bottom
 * half waits that could begin.
 */
WEIR_INLINE uint8_t weir_defer_best(const weir_defer_t *d)
{
    return d->best;
}

/**
 * Returns true iff weir_defer_best() would begin now. Its class must be more urgent than the
 * process with the urgency `running` (or equally urgent, with WEIR_DEFER_TIES_RUN). If another
 * bottom half runs, the class must be more urgent than that one, too: ties between bottom halves
 * always wait. If no process runs, pass 0 and WEIR_DEFER_TIES_RUN.
 */
WEIR_INLINE bool weir_defer_would_run(const weir_defer_t *d, uint8_t running, uint8_t ties)
{
    if (d->best == WEIR_CLASS_NONE) {
        return false;
    }
    uint8_t urgency = d->classes[WEIR_CLASS_INDEX(d->best)].urgency;
    if (d->inner != WEIR_CLASS_NONE && urgency <= d->classes[WEIR_CLASS_INDEX(d->inner)].urgency) {
        return false;
    }
    return urgency > running || (urgency == running && ties == WEIR_DEFER_TIES_RUN);
}

/**
 * Begins the bottom half that is due now, if there is one (weir_defer_would_run()). Takes the
 * oldest packet off the queue of the returned class; the packet is being handled until
 * weir_defer_done(). Returns WEIR_CLASS_NONE if the running work must continue, or the context
 * switch take place.
 */
WEIR_INLINE uint8_t weir_defer_next(weir_defer_t *d, uint8_t running, uint8_t ties)
{
    if (!weir_defer_would_run(d, running, ties)) {
        return WEIR_CLASS_NONE;
    }
    uint8_t which = d->best;
    weir_defer_class_t *c = &d->classes[WEIR_CLASS_INDEX(which)];
    c->waiting--;
    c->outer = d->inner;
    if (c->waiting == 0) {
        d->pending = weir_classes_without(d->pending, which);
    }
    d->active = (weir_classes_t) (d->active | weir_classes_of(which));
    d->inner = which;
    weir_defer_choose(d);
    return which;
}

/**
 * Call this when the bottom half of a class has handled its packet. Returns false, and changes
 * nothing, if the class is not that of the bottom half that began last.
 */
WEIR_INLINE bool weir_defer_done(weir_defer_t *d, uint8_t which)
{
    if (which != d->inner || which >= WEIR_CLASSES) {
        return false;
    }
    d->inner = d->classes[WEIR_CLASS_INDEX(which)].outer;
    d->active = weir_classes_without(d->active, which);
    weir_defer_choose(d);
    return true;
}

/** Returns the number of packets that wait in a class, without the one that is being handled. */
WEIR_INLINE uint16_t weir_defer_waiting(const weir_defer_t *d, uint8_t which)
{
    return which < WEIR_CLASSES ? d->classes[WEIR_CLASS_INDEX(which)].waiting : 0;
}

/* ------------------------------------------------------------------------- set-up: src/defer.c */

/** Initialises without waiting packets and running bottom halves. No class accepts packets before
 * weir_defer_set_class(). */
void weir_defer_start(weir_defer_t *d);

/**
 * Sets the capacity and the urgency of a class. Packets that wait there already stay, even above
 * the capacity. Returns false if the class does not exist.
 */
bool weir_defer_set_class(weir_defer_t *d, uint8_t which, uint16_t capacity, uint8_t urgency);

#endif
