/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Definitions for lwIP that depend on the compiler and the board. */
#ifndef LWIP_ARCH_CC_H
#define LWIP_ARCH_CC_H

void stop(void);
#define LWIP_PLATFORM_DIAG(message)
#define LWIP_PLATFORM_ASSERT(message) stop()

#endif
