/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The node's configuration of lwIP. papers/experiments/behnke2021/README.md gives the reasons. */
#ifndef NODE_LWIPOPTS_H
#define NODE_LWIPOPTS_H

#include "options.h"
#include "sizes.h"

#define NO_SYS 0
#define SYS_LIGHTWEIGHT_PROT 1
#define LWIP_TCPIP_CORE_LOCKING 1
#ifdef NODE_WEIR
#define LWIP_SUPPORT_CUSTOM_PBUF 1
#ifndef TCP_QUEUE_OOSEQ
#define TCP_QUEUE_OOSEQ 0
#endif
#endif
#define LWIP_NETCONN 1
#define LWIP_SOCKET 0
#define LWIP_SO_SNDTIMEO 1

#define LWIP_IPV4 1
#define LWIP_IPV6 0
#define LWIP_ARP 1
#define LWIP_ICMP 1
#define LWIP_UDP 1
#define LWIP_TCP 1
#define LWIP_DHCP 1
#define LWIP_NETIF_HOSTNAME 1
#define ETH_PAD_SIZE 0
#define LWIP_ERRNO_STDINCLUDE 1

/* The layout sets the priority of lwIP's thread. The size of its stack is in bytes. */
#define TCPIP_THREAD_NAME "tcpip"
#define TCPIP_THREAD_PRIO ((int) options.layout->network)
#define TCPIP_THREAD_STACKSIZE SIZES_THREAD_STACK
#define DEFAULT_ACCEPTMBOX_SIZE 6
#define DEFAULT_THREAD_STACKSIZE SIZES_TASK_STACK

#define MEM_ALIGNMENT 4
#define PBUF_POOL_BUFSIZE 1524
#define MEMP_NUM_PBUF 64
#define MEMP_NUM_NETBUF 16
#define MEMP_NUM_NETCONN 16
#define MEMP_NUM_UDP_PCB 8
#define MEMP_NUM_TCP_PCB 16
#define MEMP_NUM_TCP_PCB_LISTEN 8
#define MEMP_NUM_TCP_SEG 64
#define TCP_MSS 1460
#define TCP_WND (4 * TCP_MSS)
#define TCP_SND_BUF (4 * TCP_MSS)
#define TCP_SND_QUEUELEN 16

/* lwIP's options against floods from hosts that do not exist: a listener may have three half-open
 * connections instead of all that lwIP can have; the hosts that use the node have fixed ARP
 * entries; and silent clients are probed by keep-alive. */
#ifdef NODE_HARDENED
#define TCP_LISTEN_BACKLOG 1
#define TCP_DEFAULT_LISTEN_BACKLOG 3
#define ETHARP_SUPPORT_STATIC_ENTRIES 1
#define LWIP_TCP_KEEPALIVE 1
#endif

/* Send the page that is part of lwIP piece by piece. */
#define HTTPD_USE_MEM_POOL 0
#define LWIP_HTTPD_CGI 0
#define LWIP_HTTPD_SSI 0

#define LWIP_STATS 1
#define LWIP_STATS_LARGE 1
#define LWIP_STATS_DISPLAY 0

#endif
