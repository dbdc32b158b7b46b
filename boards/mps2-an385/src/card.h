/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The LAN9118 (data sheet, section 5.3). Frames have no checksum here. */
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

/* How many statuses wait, of whole frames? */
static inline uint32_t card_count(void)
{
    return CARD_RX_FIFO_INF >> 16 & 0xff;
}

static inline bool card_waits(void)
{
    return card_count() != 0;
}

/* Takes a status. Its frame is then the next to be read or skipped. */
static inline uint32_t card_status(void)
{
    return CARD_RX_STATUS;
}

/*
 * Forgets that frames came. Only to be called when none waits, and then one has to look again: as
 * long as it is not forgotten the interrupt comes again, and a frame that came in between would
 * wait for the next one.
 */
static inline void card_acknowledge(void)
{
    CARD_INT_STS = CARD_RECEIVED;
}

/* Switches the interrupt of received frames on or off at the card. */
static inline void card_interrupt(bool on)
{
    CARD_INT_EN = on ? CARD_RECEIVED : 0;
}

/* Switches the card on, without interrupts, and reads its hardware address. */
void card_start(uint8_t address[6]);

/* Bytes in the card of the frame that a status tells of, the checksum's included. */
static inline uint32_t card_whole_length(uint32_t status)
{
    return status >> 16 & CARD_STATUS_LENGTH;
}

/* Bytes of that frame without the checksum; 0 if it is broken or longer than CARD_LONGEST. */
static inline uint32_t card_length(uint32_t status)
{
    uint32_t length = card_whole_length(status);
    if (status & CARD_STATUS_ERROR || length <= CARD_CHECKSUM || length - CARD_CHECKSUM > CARD_LONGEST) {
        return 0;
    }
    return length - CARD_CHECKSUM;
}

/* Reads the next frame, which has `pbuf->tot_len` bytes, or throws it away. */
void card_read(struct pbuf *pbuf);
void card_skip(uint32_t status);

/* Reads, or throws away, so many words of the next frame. A LAN9118 can skip the rest of a frame
 * (RX_FFWD); QEMU's then has no room for as many words as it skipped. */
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

/* Sends a frame; false if it is too long. One at a time: the caller holds lwIP's core lock. */
bool card_send(struct pbuf *pbuf);

#endif
