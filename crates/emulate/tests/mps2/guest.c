/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A firmware for mps2-an385 without libraries. It counts in the background and in the handlers of
 * IRQ20 and IRQ21; macros make it do something else: SLEEP (in place of counting), NESTED (IRQ20
 * may be interrupted by IRQ21), EXIT (with 7, after some counting), EXIT_EARLY, CRASH, RESET.
 */
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *) (address))
#define NVIC_ISER REGISTER(0xe000e100)
#define NVIC_IPR5 REGISTER(0xe000e414)
#define AIRCR REGISTER(0xe000ed0c)
#define UART_DATA REGISTER(0x40004000)
#define UART_CONTROL REGISTER(0x40004008)
#define UART_DIVISOR REGISTER(0x40004010)

volatile uint32_t progress, handled, handled_too;

static void leave(uint32_t code)
{
    /* Semihosting, SYS_EXIT_EXTENDED: ADP_Stopped_ApplicationExit and the code. */
    uint32_t block[2] = {0x20026, code};
    register uint32_t operation __asm("r0") = 0x20;
    register uint32_t *argument __asm("r1") = block;
    __asm volatile("bkpt 0xab" : : "r"(operation), "r"(argument) : "memory");
}

static void say(const char *text)
{
    UART_DIVISOR = 16;
    UART_CONTROL = 1;
    for (; *text != 0; text++) {
        UART_DATA = (uint32_t) *text;
    }
}

void start(void)
{
    say("hello\n");
#ifdef NESTED
    NVIC_IPR5 = 0x80; /* IRQ20 is less urgent than IRQ21 */
#endif
#ifdef CRASH
    REGISTER(0x60000000) = 1; /* no memory, and no handler of a fault */
#endif
#ifdef RESET
    AIRCR = 0x05fa0004;
#endif
#ifdef EXIT_EARLY
    leave(7);
#endif
    NVIC_ISER = 3u << 20;
    for (;;) {
#ifdef SLEEP
        __asm volatile("wfi");
#endif
        progress++;
#ifdef EXIT
        if (progress == 4000000) {
            leave(7);
        }
#endif
    }
}

static void irq20(void)
{
    handled++;
}

static void irq21(void)
{
    handled_too++;
}

#ifdef CRASH
/* Two words that are no code: a fault within a fault. */
#define FAULT ((vector) 0x60000001)
#else
static void stop(void)
{
    for (;;) {
    }
}
#define FAULT stop
#endif

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16 + 22] = {
    [0] = (vector) 0x20400000, /* the stack's end */
    [1] = start,
    [2] = FAULT,
    [3] = FAULT,
    [16 + 20] = irq20,
    [16 + 21] = irq21,
};
