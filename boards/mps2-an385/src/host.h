/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Semihosting: the node's command line, its output, and the end of the run. */
#ifndef NODE_HOST_H
#define NODE_HOST_H

#include <stdint.h>

/* Copies the command line. Returns its length, or -1 if there is none or it is longer than
 * `size`. */
int32_t host_command_line(char *text, uint32_t size);

/* Print a text, and a number in decimal. Both functions may be called in interrupts. */
void host_print(const char *text);
void host_print_number(uint64_t number);
void host_print_signed(int64_t number);

/* Prints a further field of a JSON object. */
void host_print_field(const char *name, uint64_t number);

/* Ends QEMU with an exit code. */
_Noreturn void host_exit(uint32_t code);

#endif
