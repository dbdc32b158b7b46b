/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "host.h"

/* Operation numbers from ARM's semihosting specification. */
enum { WRITE0 = 0x04, GET_COMMAND_LINE = 0x15, EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static int32_t call(uint32_t operation, const volatile void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register uint32_t r1 __asm__("r1") = (uint32_t) argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t) r0;
}

int32_t host_command_line(char *text, uint32_t size)
{
    volatile uint32_t block[2] = {(uint32_t) text, size};
    return call(GET_COMMAND_LINE, block) == 0 ? (int32_t) block[1] : -1;
}

void host_print(const char *text)
{
    call(WRITE0, text);
}

void host_print_number(uint64_t number)
{
    char digits[21];
    char *at = digits + sizeof digits - 1;
    *at = 0;
    do {
        *--at = (char) ('0' + number % 10);
        number /= 10;
    } while (number > 0);
    host_print(at);
}

void host_print_signed(int64_t number)
{
    if (number < 0) {
        host_print("-");
    }
    host_print_number(number < 0 ? -(uint64_t) number : (uint64_t) number);
}

void host_print_field(const char *name, uint64_t number)
{
    host_print(", \"");
    host_print(name);
    host_print("\": ");
    host_print_number(number);
}

void host_exit(uint32_t code)
{
    volatile uint32_t block[2] = {APPLICATION_EXIT, code};
    for (;;) {
        call(EXIT_EXTENDED, block);
    }
}
