/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef NODE_FAILURE_H
#define NODE_FAILURE_H

/* Prints what has failed and where, then the report so far, and ends the run with code 3. */
_Noreturn void failure(const char *what, const char *file, int line);

#endif
