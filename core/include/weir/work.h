/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * work: bounds the work of one interrupt (regehr2005 §5.2's t_work).
 *
 * A limit bounds how often a handler runs, not how long. A handler that drains its device livelocks
 * the processor in spite of any limiter. So a handler asks before each unit of work (a byte, a
 * packet), and stops when it is refused:
 *
 *     static weir_work_t uart_work;
 *
 *     void uart_handler(void)
 *     {
 *         weir_work_begin(&uart_work, 4);     // the `max_work` of the system file
 *         while (uart_has_more() && weir_work_take(&uart_work)) {
 *             receive(uart_next());
 *         }
 *     }
 *
 * The handler asks for a unit only if one waits, so that a refusal means that work was left. Such
 * interrupts are counted, and WEIR_ON_WORK_EXCEEDED is called. Work that is left must request again
 * by itself, as a level does. The limit on the interrupts and this bound together limit how much of
 * the processor a source takes: N + ⌊t/T⌋ times `most` units for a bucket (LIMIT-WORK-2).
 *
 * Every function is inline, takes constant time, and uses no division, heap or libc. The functions
 * do not depend on the limit machine or its ticks.
 *
 * Context: only the handler calls these functions. A thread may read `exceeded`; if that takes more
 * than one instruction, the source's interrupts must be off.
 */
#ifndef WEIR_WORK_H
#define WEIR_WORK_H

#include "weir/ticks.h"

/**
 * A hook that is called when an interrupt is refused a unit, once in that interrupt. `work` is the
 * weir_work_t pointer of the source. It runs in interrupt context.
 */
#ifndef WEIR_ON_WORK_EXCEEDED
#define WEIR_ON_WORK_EXCEEDED(work) ((void) (work))
#endif

/**
 * The work of one source's handler. It starts with all zero, and admits no work before
 * weir_work_begin().
 */
typedef struct {
    uint16_t left;     /**< units that this interrupt may still do */
    uint16_t exceeded; /**< interrupts that were refused a unit; saturates at 65,535, and may be set to 0 */
    bool is_refused;   /**< this interrupt was */
} weir_work_t;

/** Begins an interrupt of the handler, which may do up to `most` units of work, 0 to 65,535. */
WEIR_INLINE void weir_work_begin(weir_work_t *work, uint16_t most)
{
    work->left = most;
    work->is_refused = false;
}

/** Asks for one unit that waits. Returns true iff the unit may be done now. */
WEIR_INLINE bool weir_work_take(weir_work_t *work)
{
    if (work->left != 0) {
        work->left--;
        return true;
    }
    if (!work->is_refused) {
        work->is_refused = true;
        if (work->exceeded != UINT16_MAX) {
            work->exceeded++;
        }
        WEIR_ON_WORK_EXCEEDED(work);
    }
    return false;
}

/** Does the same as weir_work_take() for a device that delivers several units. Returns how many of
 * the `wanted` units may be done now. */
WEIR_INLINE uint16_t weir_work_take_some(weir_work_t *work, uint16_t wanted)
{
    uint16_t granted = wanted;
    if (wanted > work->left) {
        granted = work->left;
        work->left = 0;
        (void) weir_work_take(work);
    } else {
        work->left = (uint16_t) (work->left - wanted);
    }
    return granted;
}

#endif
