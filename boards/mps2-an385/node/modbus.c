/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "modbus.h"

#include <string.h>

#include "tally.h"

enum {
    READ_HOLDING = 3,
    READ_INPUT = 4,
    WRITE_ONE = 6,
    WRITE_SEVERAL = 16,
    ILLEGAL_FUNCTION = 1,
    ILLEGAL_ADDRESS = 2,
    ILLEGAL_VALUE = 3,
    HOLDING = 64,
    INPUTS = 12,
    MOST_READ = 125,
    MOST_WRITTEN = 123
};

static uint16_t holding[HOLDING];

static uint32_t get(const uint8_t *at)
{
    return (uint32_t) at[0] << 8 | at[1];
}

static void put(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t) (value >> 8);
    at[1] = (uint8_t) value;
}

static uint32_t input(uint32_t place)
{
    const uint32_t counts[INPUTS / 2] = {tally.frames, tally.interrupts, tally.no_room, tally.served, tally.steps, tally.jobs};
    uint32_t count = counts[place / 2];
    return place % 2 == 0 ? count >> 16 : count & 0xffff;
}

/* Executes function 3 or 4, with the answer in `data`. Returns the answer's length, or the negated
 * exception code. */
static int32_t read_registers(uint32_t function, const uint8_t *request, uint32_t length, uint8_t *data)
{
    if (length != 4) {
        return -ILLEGAL_VALUE;
    }
    uint32_t first = get(request), count = get(request + 2);
    if (count < 1 || count > MOST_READ) {
        return -ILLEGAL_VALUE;
    }
    if (first + count > (function == READ_INPUT ? INPUTS : HOLDING)) {
        return -ILLEGAL_ADDRESS;
    }
    data[0] = (uint8_t) (2 * count);
    for (uint32_t at = 0; at < count; at++) {
        put(data + 1 + 2 * at, function == READ_INPUT ? input(first + at) : holding[first + at]);
    }
    return (int32_t) (1 + 2 * count);
}

/* Executes function 6 or 16. The answer is the first four bytes of the request. */
static int32_t write_registers(uint32_t function, const uint8_t *request, uint32_t length, uint8_t *data)
{
    uint32_t count = function == WRITE_ONE || length < 4 ? 1 : get(request + 2);
    const uint8_t *values = request + (function == WRITE_ONE ? 2 : 5);
    if (function == WRITE_ONE ? length != 4 : length < 5 || count > MOST_WRITTEN || request[4] != 2 * count || length != 5 + 2 * count) {
        return -ILLEGAL_VALUE;
    }
    uint32_t first = get(request);
    if (count < 1) {
        return -ILLEGAL_VALUE;
    }
    if (first + count > HOLDING) {
        return -ILLEGAL_ADDRESS;
    }
    for (uint32_t at = 0; at < count; at++) {
        holding[first + at] = (uint16_t) get(values + 2 * at);
    }
    memcpy(data, request, 4);
    return 4;
}

int32_t modbus_take(struct modbus_stream *stream, uint8_t byte, uint8_t answer[MODBUS_LONGEST])
{
    uint8_t *bytes = stream->bytes;
    bytes[stream->length++] = byte;
    if (stream->length < MODBUS_HEADER) {
        return 0;
    }
    /* The header consists of the transaction, the protocol (0), and the length of the rest: the
     * unit, the function and its data. */
    uint32_t length = get(bytes + 4);
    if (get(bytes + 2) != 0 || length < 2 || length > MODBUS_LONGEST - 6) {
        return -1;
    }
    if (stream->length < 6 + length) {
        return 0;
    }
    stream->length = 0;
    uint32_t function = bytes[7];
    const uint8_t *request = bytes + 8;
    int32_t count = -ILLEGAL_FUNCTION;
    if (function == READ_HOLDING || function == READ_INPUT) {
        count = read_registers(function, request, length - 2, answer + 8);
    } else if (function == WRITE_ONE || function == WRITE_SEVERAL) {
        count = write_registers(function, request, length - 2, answer + 8);
    }
    memcpy(answer, bytes, 8);
    if (count < 0) {
        answer[7] = (uint8_t) (function | 0x80);
        answer[8] = (uint8_t) -count;
        count = 1;
    }
    put(answer + 4, (uint32_t) (2 + count));
    return 8 + count;
}
