/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What lwIP asks of the compiler and of the board. */
#ifndef NODE_ARCH_CC_H
#define NODE_ARCH_CC_H

#include <stdint.h>

#include "failure.h"

/* Numbers that begin with the same one in each run. */
uint32_t node_random(void);

#define LWIP_RAND() node_random()
#define LWIP_PLATFORM_DIAG(message)
#define LWIP_PLATFORM_ASSERT(message) failure("lwIP asserts", __FILE__, __LINE__)

#endif
