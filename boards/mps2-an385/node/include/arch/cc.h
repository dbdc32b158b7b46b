/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Definitions for lwIP that depend on the compiler and the board. */
#ifndef NODE_ARCH_CC_H
#define NODE_ARCH_CC_H

#include <stdint.h>

#include "failure.h"

/* Returns a pseudo-random number. The sequence is the same in every run. */
uint32_t node_random(void);

#define LWIP_RAND() node_random()
#define LWIP_PLATFORM_DIAG(message)
#define LWIP_PLATFORM_ASSERT(message) failure("lwIP asserts", __FILE__, __LINE__)

#endif
