/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A guest for mps2-an385 that answers ARP and ICMP echo requests in the interrupt of its LAN9118,
 * and idles otherwise. It has no library, and its address is 10.0.0.2. For each frame it goes round
 * a loop as often as the word at 0x20100000 says, which QEMU writes there:
 * -device loader,addr=0x20100000,data=N,data-len=4
 */
#include <stdbool.h>
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *) (address))
#define CARD(offset) REGISTER(0x40200000 + (offset))

/* The LAN9118's registers, and the bits that are used here (data sheet, sections 5.3 and 5.4). */
#define RX_DATA CARD(0x00)
#define TX_DATA CARD(0x20)
#define RX_STATUS CARD(0x40)
#define TX_STATUS CARD(0x48)
#define IRQ_CFG CARD(0x54)
#define INT_STS CARD(0x58)
#define INT_EN CARD(0x5c)
#define FIFO_INT CARD(0x68)
#define TX_CFG CARD(0x70)
#define RX_FIFO_INF CARD(0x7c)
#define TX_FIFO_INF CARD(0x80)
#define MAC_CSR_CMD CARD(0xa4)
#define MAC_CSR_DATA CARD(0xa8)
#define WORK REGISTER(0x20100000)
#define NVIC_ISER REGISTER(0xe000e100)

enum {
    INTERRUPT = 13,
    RSFL = 1 << 3,
    MAC_CR = 1,
    MAC_ADDRH = 2,
    MAC_ADDRL = 3,
    MAC_RXEN = 1 << 2,
    MAC_TXEN = 1 << 3,
    MAC_FDPX = 1 << 20,
    MAC_READ = 1 << 30,
    FIRST_AND_LAST = 3 << 12,
    LONGEST = 1536,
    PER_INTERRUPT = 16
};

static union {
    uint32_t words[LONGEST / 4];
    uint8_t bytes[LONGEST];
} frame;
static uint8_t ethernet[6];
static const uint8_t address[4] = {10, 0, 0, 2};
static volatile uint32_t idle; /* written so that the compiler keeps the loops */

static uint32_t read_mac(uint32_t index)
{
    MAC_CSR_CMD = 1u << 31 | MAC_READ | index;
    while (MAC_CSR_CMD >> 31) {
    }
    return MAC_CSR_DATA;
}

static void write_mac(uint32_t index, uint32_t value)
{
    MAC_CSR_DATA = value;
    MAC_CSR_CMD = 1u << 31 | index;
    while (MAC_CSR_CMD >> 31) {
    }
}

static void copy(uint8_t *to, const uint8_t *from, unsigned count)
{
    while (count-- > 0) {
        *to++ = *from++;
    }
}

static bool is_here(const uint8_t *at)
{
    return at[0] == address[0] && at[1] == address[1] && at[2] == address[2] && at[3] == address[3];
}

static void send(unsigned length)
{
    TX_DATA = FIRST_AND_LAST | length;
    TX_DATA = length;
    for (unsigned at = 0; at < (length + 3) / 4; at++) {
        TX_DATA = frame.words[at];
    }
    while (TX_FIFO_INF >> 16 & 0xff) {
        (void) TX_STATUS;
    }
}

static void answer(unsigned length)
{
    uint8_t *bytes = frame.bytes;
    if (length >= 42 && bytes[12] == 8 && bytes[13] == 6 && bytes[21] == 1 && is_here(bytes + 38)) {
        copy(bytes + 32, bytes + 22, 10); /* the sender becomes the target */
        copy(bytes + 22, ethernet, 6);
        copy(bytes + 28, address, 4);
        bytes[21] = 2;
    } else if (length >= 42 && bytes[12] == 8 && bytes[13] == 0 && bytes[14] == 0x45 && bytes[23] == 1 && bytes[34] == 8 &&
               is_here(bytes + 30)) {
        copy(bytes + 30, bytes + 26, 4);
        copy(bytes + 26, address, 4);
        bytes[34] = 0;
        /* One's complement: 8 less in the sum is 8 more in its complement. */
        uint32_t sum = ((uint32_t) bytes[36] << 8 | bytes[37]) + 0x800;
        sum = (sum & 0xffff) + (sum >> 16);
        bytes[36] = (uint8_t) (sum >> 8);
        bytes[37] = (uint8_t) sum;
    } else {
        return;
    }
    copy(bytes, bytes + 6, 6);
    copy(bytes + 6, ethernet, 6);
    send(length);
}

static bool is_waiting(void)
{
    return RX_FIFO_INF >> 16 & 0xff;
}

static void receive(void)
{
    uint32_t length = RX_STATUS >> 16 & 0x3fff; /* with the checksum's four bytes */
    for (unsigned at = 0; at < (length + 3) / 4; at++) {
        uint32_t word = RX_DATA;
        if (at < LONGEST / 4) {
            frame.words[at] = word;
        }
    }
    for (uint32_t left = WORK; left > 0; left--) {
        idle = left;
    }
    if (length >= 4 && length <= LONGEST) {
        answer(length - 4);
    }
}

/*
 * Takes some frames. RSFL is acknowledged only when none is left: as long as it stands, the
 * interrupt comes again. A frame that arrives after the look and before the acknowledgement would
 * be forgotten, so there is another look.
 */
static void handle_card(void)
{
    for (unsigned left = PER_INTERRUPT; left > 0; left--) {
        if (!is_waiting()) {
            INT_STS = RSFL;
            if (!is_waiting()) {
                return;
            }
        }
        receive();
    }
}

static void start(void)
{
    uint32_t high = read_mac(MAC_ADDRH), low = read_mac(MAC_ADDRL);
    for (unsigned at = 0; at < 4; at++) {
        ethernet[at] = (uint8_t) (low >> 8 * at);
    }
    ethernet[4] = (uint8_t) high;
    ethernet[5] = (uint8_t) (high >> 8);
    IRQ_CFG = 0x111;
    FIFO_INT = 0;
    TX_CFG = 2;
    write_mac(MAC_CR, MAC_RXEN | MAC_TXEN | MAC_FDPX);
    INT_EN = RSFL;
    NVIC_ISER = 1 << INTERRUPT;
    for (;;) {
        idle++;
    }
}

static void stop(void)
{
    for (;;) {
    }
}

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16 + INTERRUPT + 1] = {
    [0] = (vector) 0x20400000, /* the stack's end */
    [1] = start,
    [2] = stop,
    [3] = stop,
    [16 + INTERRUPT] = handle_card,
};
