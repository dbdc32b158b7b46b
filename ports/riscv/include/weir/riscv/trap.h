/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The trap of a machine in direct mode, and its interrupt functions. There is one for each source
 * in the trap's list, and one for the timer.
 *
 * The entry finds the requesting line with a single register, which it saves below the stack (the
 * ABI keeps nothing there, and interrupts are off). It then jumps to a function that saves the
 * registers that it needs, so that no source pays for the registers of another source's limiter.
 * The first source in the list is tested first, and the timer last, in the machine's own order of
 * causes. A trap serves one request and returns, so that the background is interrupted as often as
 * with one vector per line.
 *
 * If the trap has a single source, its timer function handles the common case only. Rare cases
 * would make it save more registers: an expiry that is not due (because the timer was set too
 * early, or for the ageing), a source that the user has switched off, or an exception. In these
 * cases it points mtvec at the general function and returns. The pending request traps again at
 * once, and the general function resets mtvec and handles the request.
 */
#ifndef WEIR_RISCV_TRAP_H
#define WEIR_RISCV_TRAP_H

#include "weir/riscv/limit.h"

/**
 * Called for a trap that is an exception, which is an error of the program. Without this function
 * the trap loops forever, where a debugger finds it.
 */
#ifndef WEIR_RISCV_ON_EXCEPTION
#define WEIR_RISCV_ON_EXCEPTION()                                                                                                          \
    for (;;) {                                                                                                                             \
    }
#endif

/** Sets the address of the trap's entry, from the next trap on. */
WEIR_INLINE void weir_riscv_trap_at(void (*entry)(void))
{
    __asm__ volatile("csrw mtvec, %0" ::"r"(entry) : "memory");
}

/* Applies do_(name) to each of up to eight names. */
#define WEIR_RISCV_EACH_1(do_, a) do_(a)
#define WEIR_RISCV_EACH_2(do_, a, ...) do_(a) WEIR_RISCV_EACH_1(do_, __VA_ARGS__)
#define WEIR_RISCV_EACH_3(do_, a, ...) do_(a) WEIR_RISCV_EACH_2(do_, __VA_ARGS__)
#define WEIR_RISCV_EACH_4(do_, a, ...) do_(a) WEIR_RISCV_EACH_3(do_, __VA_ARGS__)
#define WEIR_RISCV_EACH_5(do_, a, ...) do_(a) WEIR_RISCV_EACH_4(do_, __VA_ARGS__)
#define WEIR_RISCV_EACH_6(do_, a, ...) do_(a) WEIR_RISCV_EACH_5(do_, __VA_ARGS__)
#define WEIR_RISCV_EACH_7(do_, a, ...) do_(a) WEIR_RISCV_EACH_6(do_, __VA_ARGS__)
#define WEIR_RISCV_EACH_8(do_, a, ...) do_(a) WEIR_RISCV_EACH_7(do_, __VA_ARGS__)
#define WEIR_RISCV_PICK_(a, b, c, d, e, f, g, h, pick, ...) pick
#define WEIR_RISCV_EACH(do_, ...)                                                                                                          \
    WEIR_RISCV_PICK_(__VA_ARGS__, WEIR_RISCV_EACH_8, WEIR_RISCV_EACH_7, WEIR_RISCV_EACH_6, WEIR_RISCV_EACH_5, WEIR_RISCV_EACH_4,           \
                     WEIR_RISCV_EACH_3, WEIR_RISCV_EACH_2, WEIR_RISCV_EACH_1, 0)                                                           \
    (do_, __VA_ARGS__)

#define WEIR_RISCV_IS_ALONE(...) WEIR_RISCV_PICK_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 1, 0)

#define WEIR_RISCV_ENTER_(name)                                                                                                            \
    __asm__ volatile(WEIR_CHIP_DISPATCH "\n beqz t0, 1f\n lw t0, -4(sp)\n j " #name "_interrupt\n1:" ::"i"(name##_line));
#define WEIR_RISCV_INTERRUPT_(name)                                                                                                        \
    __attribute__((interrupt("machine"), used)) static void name##_interrupt(void)                                                         \
    {                                                                                                                                      \
        name##_request(weir_riscv_alone);                                                                                                  \
    }
#define WEIR_RISCV_EXPIRED_ALONE_(name)                                                                                                    \
    if (weir_riscv_alone && name##_expired_alone()) {                                                                                      \
        return;                                                                                                                            \
    }
#define WEIR_RISCV_TICK_(name) name##_tick(now);
#define WEIR_RISCV_LEFT_(name)                                                                                                             \
    if (name##_is_armed()) {                                                                                                               \
        weir_ticks_t left_of_this = name##_left(now.low);                                                                                  \
        if (left_of_this < left) {                                                                                                         \
            left = left_of_this;                                                                                                           \
        }                                                                                                                                  \
    }

/**
 * Defines the trap for one to eight sources of this file. The compiler knows the list, so the
 * choice of the next source, which weir_limits_next() makes at run time, is compiled into the trap.
 */
#define WEIR_RISCV_TRAP(...)                                                                                                               \
    __attribute__((naked, aligned(4))) void weir_riscv_trap(void);                                                                         \
    enum { weir_riscv_alone = WEIR_RISCV_IS_ALONE(__VA_ARGS__) };                                                                          \
    WEIR_INLINE void weir_riscv_alarm_now(void)                                                                                            \
    {                                                                                                                                      \
        weir_riscv_instant_t now = weir_riscv_instant();                                                                                   \
        weir_ticks_t left = weir_riscv_rest();                                                                                             \
        WEIR_RISCV_EACH(WEIR_RISCV_LEFT_, __VA_ARGS__)                                                                                     \
        weir_riscv_alarm_after(now, left);                                                                                                 \
    }                                                                                                                                      \
    void weir_riscv_alarm(void)                                                                                                            \
    {                                                                                                                                      \
        weir_riscv_alarm_now();                                                                                                            \
    }                                                                                                                                      \
    WEIR_RISCV_EACH(WEIR_RISCV_INTERRUPT_, __VA_ARGS__)                                                                                    \
    __attribute__((interrupt("machine"), used, aligned(4))) static void weir_riscv_any_interrupt(void)                                     \
    {                                                                                                                                      \
        weir_riscv_trap_at(weir_riscv_trap);                                                                                               \
        if (!weir_riscv_is_interrupt()) {                                                                                                  \
            WEIR_RISCV_ON_EXCEPTION();                                                                                                     \
        }                                                                                                                                  \
        weir_ticks_t now = weir_riscv_now();                                                                                               \
        WEIR_RISCV_EACH(WEIR_RISCV_TICK_, __VA_ARGS__)                                                                                     \
        WEIR_RISCV_BARRIER(); /* read again what was known: it would take registers */                                                     \
        weir_riscv_alarm_now();                                                                                                            \
    }                                                                                                                                      \
    __attribute__((interrupt("machine"), used)) static void weir_riscv_timer_interrupt(void)                                               \
    {                                                                                                                                      \
        WEIR_RISCV_EACH(WEIR_RISCV_EXPIRED_ALONE_, __VA_ARGS__)                                                                            \
        weir_riscv_trap_at(weir_riscv_any_interrupt);                                                                                      \
    }                                                                                                                                      \
    void weir_riscv_trap(void)                                                                                                             \
    {                                                                                                                                      \
        __asm__ volatile("sw t0, -4(sp)");                                                                                                 \
        WEIR_RISCV_EACH(WEIR_RISCV_ENTER_, __VA_ARGS__)                                                                                    \
        __asm__ volatile("lw t0, -4(sp)\n .if %0\n j weir_riscv_timer_interrupt\n .else\n j weir_riscv_any_interrupt\n .endif" ::"i"(      \
            weir_riscv_alone));                                                                                                            \
    }                                                                                                                                      \
    struct weir_riscv_semicolon

/**
 * Enables the interrupts of the timer and of the lines. The program must still call
 * weir_riscv_interrupts_on(). Call it before the first weir_riscv_start().
 */
WEIR_INLINE void weir_riscv_run(void)
{
    uint32_t before = weir_riscv_lock();
    weir_riscv_instant_t now = weir_riscv_instant();
    weir_riscv_alarm_after(now, WEIR_RISCV_REST);
    __asm__ volatile("csrs mie, %0" ::"r"(WEIR_RISCV_MIE_TIMER | WEIR_RISCV_MIE_EXTERNAL) : "memory");
    weir_riscv_restore(before);
}

#endif
