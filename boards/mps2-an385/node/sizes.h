/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sizes of memory. The compiler's command line may set others (build.sh -DPBUF_POOL_SIZE=128),
 * which gives an ELF of its own; papers/experiments/behnke2021/README.md has the reasons for those
 * here.
 */
#ifndef NODE_SIZES_H
#define NODE_SIZES_H

/* Packets that wait for lwIP's thread, and its messages for them. */
#ifndef TCPIP_MBOX_SIZE
#define TCPIP_MBOX_SIZE 32
#endif
#define MEMP_NUM_TCPIP_MSG_INPKT TCPIP_MBOX_SIZE

/* Packets that wait for a socket. */
#ifndef DEFAULT_UDP_RECVMBOX_SIZE
#define DEFAULT_UDP_RECVMBOX_SIZE 6
#endif
#define DEFAULT_TCP_RECVMBOX_SIZE DEFAULT_UDP_RECVMBOX_SIZE

#ifndef PBUF_POOL_SIZE
#define PBUF_POOL_SIZE 64
#endif

/* With Weir's stages: the frames of a receiver, or of a lane without one, that are in the node at
 * once. */
#ifndef SIZES_LANE
#define SIZES_LANE 8
#endif

/* lwIP's heap, in bytes. */
#ifndef MEM_SIZE
#define MEM_SIZE (64 * 1024)
#endif

/* The bytes of the stacks of lwIP's thread, and of each other task. */
#ifndef SIZES_THREAD_STACK
#define SIZES_THREAD_STACK 3072
#endif
#ifndef SIZES_TASK_STACK
#define SIZES_TASK_STACK 4096
#endif

#endif
