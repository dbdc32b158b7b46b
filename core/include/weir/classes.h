/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Classes are indices. demux sorts packets by class, defer queues them by class, and a predictor
 * identifies receivers by class.
 *
 * A class is an index, 0 to WEIR_CLASSES - 1. Where classes are compared with each other (the most
 * urgent reader of a socket, the most urgent process that waits), the higher index is the more
 * urgent one. Only weir_defer_t knows the urgency of a class for the scheduler.
 */
#ifndef WEIR_CLASSES_H
#define WEIR_CLASSES_H

#include "weir/ticks.h"

/**
 * The number of classes: 8, 16, 32 or 64. Every file of a program, including src/demux.c and
 * src/defer.c, must be compiled with the same value; a mixture does not link. Use 8 on the smallest
 * processors, where a set of classes is then one byte.
 */
#ifndef WEIR_CLASSES
#define WEIR_CLASSES 32
#endif

/* The names of functions in src/ that depend on the number of classes contain this number. */
#define WEIR_CLASSES_JOIN_(name, classes) name##_with_##classes##_classes
#define WEIR_CLASSES_JOIN(name, classes) WEIR_CLASSES_JOIN_(name, classes)

/** A set of classes: bit c is class c. */
#if WEIR_CLASSES == 8
typedef uint8_t weir_classes_t;
#elif WEIR_CLASSES == 16
typedef uint16_t weir_classes_t;
#elif WEIR_CLASSES == 32
typedef uint32_t weir_classes_t;
#elif WEIR_CLASSES == 64
typedef uint64_t weir_classes_t;
#else
#error "WEIR_CLASSES must be 8, 16, 32 or 64"
#endif

/** The value that stands for no class. */
#define WEIR_CLASS_NONE 0xffu

/* A class, masked to below WEIR_CLASSES for a compiler or a verifier that does not know its
 * range. */
#define WEIR_CLASS_INDEX(which) ((uint8_t) ((which) & (WEIR_CLASSES - 1u)))

/** Returns the set of one class. The class must be below WEIR_CLASSES. */
WEIR_INLINE weir_classes_t weir_classes_of(uint8_t which)
{
    return (weir_classes_t) ((weir_classes_t) 1 << WEIR_CLASS_INDEX(which));
}

/** Returns `set` without one class. */
WEIR_INLINE weir_classes_t weir_classes_without(weir_classes_t set, uint8_t which)
{
    return (weir_classes_t) (set & (weir_classes_t) ~weir_classes_of(which));
}

/** Returns the highest class of a set, or 0 if the set is empty. Constant time. */
WEIR_INLINE uint8_t weir_classes_highest(weir_classes_t set)
{
    uint8_t highest = 0;
#if WEIR_CLASSES > 32
    if ((set >> 32) != 0) {
        set = (weir_classes_t) (set >> 32);
        highest = 32;
    }
#endif
#if WEIR_CLASSES > 16
    if ((set >> 16) != 0) {
        set = (weir_classes_t) (set >> 16);
        highest = (uint8_t) (highest + 16u);
    }
#endif
#if WEIR_CLASSES > 8
    if ((set >> 8) != 0) {
        set = (weir_classes_t) (set >> 8);
        highest = (uint8_t) (highest + 8u);
    }
#endif
    uint8_t rest = (uint8_t) set;
    if ((rest & 0xf0u) != 0) {
        rest = (uint8_t) (rest >> 4);
        highest = (uint8_t) (highest + 4u);
    }
    if ((rest & 0x0cu) != 0) {
        rest = (uint8_t) (rest >> 2);
        highest = (uint8_t) (highest + 2u);
    }
    if ((rest & 0x02u) != 0) {
        highest = (uint8_t) (highest + 1u);
    }
    return highest;
}

#endif
