/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A small Modbus/TCP server (Modbus Application Protocol 1.1b3). It has 64 holding registers
 * (functions 3, 6 and 16). Its input registers (function 4) are the node's counts frames,
 * interrupts, no_room, served, steps and jobs. A count takes two registers, the upper half first.
 */
#ifndef NODE_MODBUS_H
#define NODE_MODBUS_H

#include <stdint.h>

enum { MODBUS_HEADER = 7, MODBUS_LONGEST = 260 };

/* The part of a request that has arrived. */
struct modbus_stream {
    uint8_t bytes[MODBUS_LONGEST];
    uint32_t length;
};

/*
 * Processes the next byte of a connection. Returns the length of the answer in `answer`, 0 if the
 * request is not complete, or -1 if the bytes are not Modbus/TCP.
 */
int32_t modbus_take(struct modbus_stream *stream, uint8_t byte, uint8_t answer[MODBUS_LONGEST]);

#endif
