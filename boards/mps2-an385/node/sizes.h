/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sizes of memory. The compiler's command line may set others (build.sh -DPBUF_POOL_SIZE=128),
 * which gives a separate ELF file. papers/experiments/behnke2021/README.md gives the reasons for
 * these sizes.
 */
#ifndef NODE_SIZES_H
#define NODE_SIZES_H

/* The number of packets that can wait for lwIP's thread, and the number of messages that announce
 * them. */
#ifndef TCPIP_MBOX_SIZE
#define TCPIP_MBOX_SIZE 32
#endif
#define MEMP_NUM_TCPIP_MSG_INPKT TCPIP_MBOX_SIZE

/* The number of packets that can wait for a socket. */
#ifndef DEFAULT_UDP_RECVMBOX_SIZE
#define DEFAULT_UDP_RECVMBOX_SIZE 6
#endif
#define DEFAULT_TCP_RECVMBOX_SIZE DEFAULT_UDP_RECVMBOX_SIZE

#ifndef PBUF_POOL_SIZE
#define PBUF_POOL_SIZE 64
#endif

/* With Weir's stages: the number of frames that a receiver, or a lane without a receiver, can have
 * in the node at once. */
#ifndef SIZES_LANE
#define SIZES_LANE 8
#endif

/* The size of lwIP's heap, in bytes. */
#ifndef MEM_SIZE
#define MEM_SIZE (64 * 1024)
#endif

/* The stack sizes of lwIP's thread and of every other task, in bytes. */
#ifndef SIZES_THREAD_STACK
#define SIZES_THREAD_STACK 3072
#endif
#ifndef SIZES_TASK_STACK
#define SIZES_TASK_STACK 4096
#endif

#endif
