/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef NODE_FAILURE_H
#define NODE_FAILURE_H

/* Prints the failed condition and its place, then the report of the counts so far, and ends the run
 * with exit code 3. */
_Noreturn void failure(const char *what, const char *file, int line);

#endif
