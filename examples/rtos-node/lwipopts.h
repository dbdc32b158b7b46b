/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

/* ports/freertos requires these settings. */
#define LWIP_TCPIP_CORE_LOCKING 1
#define LWIP_SUPPORT_CUSTOM_PBUF 1

#define NO_SYS 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_TCP 0
#define LWIP_ERRNO_STDINCLUDE 1
#define MEM_ALIGNMENT 4

/* lwIP's thread only handles timeouts, because the workers handle the frames. */
#define TCPIP_THREAD_PRIO 3
#define TCPIP_THREAD_STACKSIZE 3072
#define TCPIP_MBOX_SIZE 8

#endif
