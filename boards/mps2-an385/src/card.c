/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "card.h"

#include <string.h>

#include "lwip/pbuf.h"

#define TX_DATA CARD_REGISTER(0x20)
#define TX_STATUS CARD_REGISTER(0x48)
#define IRQ_CFG CARD_REGISTER(0x54)
#define FIFO_INT CARD_REGISTER(0x68)
#define TX_CFG CARD_REGISTER(0x70)
#define TX_FIFO_INF CARD_REGISTER(0x80)
#define MAC_CSR_CMD CARD_REGISTER(0xa4)
#define MAC_CSR_DATA CARD_REGISTER(0xa8)

enum {
    INTERRUPTS_PUSH_PULL_HIGH = 0x111,
    TX_ON = 1 << 1,
    TX_FIRST_AND_LAST = 3 << 12,
    MAC_BUSY = 1u << 31,
    MAC_READ = 1 << 30,
    MAC_CR = 1,
    MAC_ADDRH = 2,
    MAC_ADDRL = 3,
    MAC_RXEN = 1 << 2,
    MAC_TXEN = 1 << 3,
    MAC_FDPX = 1 << 20
};

static void wait_for_mac(void)
{
    while (MAC_CSR_CMD & MAC_BUSY) {
    }
}

static uint32_t read_mac(uint32_t index)
{
    MAC_CSR_CMD = MAC_BUSY | MAC_READ | index;
    wait_for_mac();
    return MAC_CSR_DATA;
}

void card_start(uint8_t address[6])
{
    uint32_t high = read_mac(MAC_ADDRH), low = read_mac(MAC_ADDRL);
    memcpy(address, &low, 4);
    memcpy(address + 4, &high, 2);
    card_interrupt(false);
    IRQ_CFG = INTERRUPTS_PUSH_PULL_HIGH;
    FIFO_INT = 0;
    TX_CFG = TX_ON;
    MAC_CSR_DATA = MAC_RXEN | MAC_TXEN | MAC_FDPX;
    MAC_CSR_CMD = MAC_BUSY | MAC_CR;
    wait_for_mac();
}

void card_skip(uint32_t status)
{
    card_skip_words((card_whole_length(status) + 3) / 4);
}

void card_read(struct pbuf *pbuf)
{
    /* Only the last buffer of a chain may end with a partial word, because the rest of the word
     * would belong into the next buffer. This holds: the pool's buffers consist of whole words, and
     * are longer than any frame. */
    uint32_t words = (pbuf->tot_len + CARD_CHECKSUM + 3) / 4;
    uint32_t *to = pbuf->payload;
    for (uint32_t at = 0; at < pbuf->len / 4; at++, words--) {
        *to++ = CARD_RX_DATA;
    }
    if (pbuf->len % 4 != 0) {
        uint32_t last = CARD_RX_DATA;
        memcpy(to, &last, pbuf->len % 4);
        words--;
    }
    for (; words > 0; words--) {
        (void) CARD_RX_DATA;
    }
}

bool card_send(struct pbuf *pbuf)
{
    static uint32_t frame[CARD_LONGEST / 4];
    uint32_t length = pbuf->tot_len;
    if (length > sizeof frame) {
        return false;
    }
    pbuf_copy_partial(pbuf, frame, pbuf->tot_len, 0);
    TX_DATA = TX_FIRST_AND_LAST | length;
    TX_DATA = length;
    for (uint32_t at = 0; at < (length + 3) / 4; at++) {
        TX_DATA = frame[at];
    }
    while (TX_FIFO_INF >> 16 & 0xff) {
        (void) TX_STATUS;
    }
    return true;
}
