/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The network card LAN9118 (data sheet, section 5.3). The functions here leave out the checksum of
 * frames. */
#ifndef NODE_CARD_H
#define NODE_CARD_H

#include <stdbool.h>
#include <stdint.h>

struct pbuf;

enum {
    CARD_LONGEST = 1536,
    CARD_CHECKSUM = 4,
    CARD_RECEIVED = 1 << 3, /* RSFL: a status waits */
    CARD_STATUS_ERROR = 1 << 15,
    CARD_STATUS_LENGTH = 0x3fff
};

#define CARD_REGISTER(offset) (*(volatile uint32_t *) (0x40200000u + (offset)))
#define CARD_RX_DATA CARD_REGISTER(0x00)
#define CARD_RX_STATUS CARD_REGISTER(0x40)
#define CARD_INT_STS CARD_REGISTER(0x58)
#define CARD_INT_EN CARD_REGISTER(0x5c)
#define CARD_RX_FIFO_INF CARD_REGISTER(0x7c)

/* Returns the number of waiting statuses, each of a whole frame. */
static inline uint32_t card_count(void)
{
    return CARD_RX_FIFO_INF >> 16 & 0xff;
}

static inline bool card_waits(void)
{
    return card_count() != 0;
}

/* Takes a status. Its frame is then the next one to be read or skipped. */
static inline uint32_t card_status(void)
{
    return CARD_RX_STATUS;
}

/*
 * Clears the request of received frames. Call it only if no frame waits, and check again
 * afterwards: a frame that arrived in between would wait for the next one. Until the request is
 * cleared, the interrupt comes again.
 */
static inline void card_acknowledge(void)
{
    CARD_INT_STS = CARD_RECEIVED;
}

/* Enables or disables the interrupt for received frames at the card. */
static inline void card_interrupt(bool on)
{
    CARD_INT_EN = on ? CARD_RECEIVED : 0;
}

/* Enables the card, without interrupts, and reads its hardware address. */
void card_start(uint8_t address[6]);

/* Returns the number of bytes in the card of the frame that a status describes, including the
 * checksum. */
static inline uint32_t card_whole_length(uint32_t status)
{
    return status >> 16 & CARD_STATUS_LENGTH;
}

/* Returns the number of bytes of that frame without the checksum, or 0 if the frame is broken or
 * longer than CARD_LONGEST. */
static inline uint32_t card_length(uint32_t status)
{
    uint32_t length = card_whole_length(status);
    if (status & CARD_STATUS_ERROR || length <= CARD_CHECKSUM || length - CARD_CHECKSUM > CARD_LONGEST) {
        return 0;
    }
    return length - CARD_CHECKSUM;
}

/* Reads the next frame, which has `pbuf->tot_len` bytes, into `pbuf`, or discards it. */
void card_read(struct pbuf *pbuf);
void card_skip(uint32_t status);

/* Reads, or discards, this number of words of the next frame. A LAN9118 can skip the rest of a
 * frame (RX_FFWD), but QEMU's model then loses room for as many words as it skipped. */
static inline void card_read_words(uint32_t *to, uint32_t words)
{
    for (; words > 0; words--) {
        *to++ = CARD_RX_DATA;
    }
}

static inline void card_skip_words(uint32_t words)
{
    for (; words > 0; words--) {
        (void) CARD_RX_DATA;
    }
}

/* Sends a frame. Returns false if it is too long. Only one frame can be sent at a time, so the
 * caller must hold lwIP's core lock. */
bool card_send(struct pbuf *pbuf);

#endif
