/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * demux, defer and predict under the sanitizers: frames cut off anywhere, every small set of
 * classes, many long random sequences.
 */
#include "../src/defer.c"
#include "../src/demux.c"
#include "classes_board.h"

/* The highest class of every set of up to three classes. */
static void highest_of_every_set(void)
{
    for (uint8_t a = 0; a < WEIR_CLASSES; a++) {
        for (uint8_t b = 0; b <= a; b++) {
            for (uint8_t c = 0; c <= b; c++) {
                weir_classes_t set = (weir_classes_t) (weir_classes_of(a) | weir_classes_of(b) | weir_classes_of(c));
                CHECK(weir_classes_highest(set) == a);
                CHECK(a == b || weir_classes_highest(weir_classes_without(set, a)) == b);
            }
        }
    }
    CHECK(weir_classes_highest(0) == 0);
}

/* A valid frame, which random bytes then replace in part. */
static const uint8_t v4[] = {
    2,    0,    0,    0,    0, 1, 2, 0, 0,  0,  0, 2,                                       /* addresses */
    0x81, 0x00, 0,    12,                                                                   /* tag */
    0x08, 0x00,                                                                             /* IPv4 */
    0x46, 0,    0,    36,   0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1, /* one option */
    0x30, 0x39, 0x13, 0x88, 0, 8, 0, 0, 9,  9,  9, 9,                                       /* UDP from 12345 to 5000, padding */
};
static const uint8_t v6[] = {
    2,    0,    0,    0,    0, 1,  2, 0,  0, 0, 0, 2,                            /* addresses */
    0x86, 0xdd,                                                                  /* IPv6 */
    0x60, 0,    0,    0,    0, 36, 0, 64,                                        /* 36 bytes, hop by hop */
    0xfe, 0x80, 0,    0,    0, 0,  0, 0,  0, 0, 0, 0, 0,    0, 0, 1,             /* source */
    0xfe, 0x80, 0,    0,    0, 0,  0, 0,  0, 0, 0, 0, 0,    0, 0, 2,             /* destination */
    44,   0,    1,    4,    0, 0,  0, 0,                                         /* padding option */
    6,    0,    0,    0,    0, 0,  0, 1,                                         /* a fragment that is all */
    0x30, 0x39, 0x13, 0x88, 0, 0,  0, 1,  0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0, /* TCP from 12345 to 5000 */
};

static void frames(void)
{
    weir_demux_packet_t packet = parse_exactly(v4, sizeof v4);
    CHECK(packet.outcome == WEIR_DEMUX_PORT && packet.protocol == 17 && packet.port == 5000 && packet.pcp == 0 && packet.vlan == 12);
    packet = parse_exactly(v6, sizeof v6);
    CHECK(packet.outcome == WEIR_DEMUX_PORT && packet.protocol == 6 && packet.port == 5000 && packet.pcp == WEIR_DEMUX_UNTAGGED);
    frame_run(v4, sizeof v4);
    frame_run(v6, sizeof v6);
    uint8_t frame[sizeof v6];
    for (unsigned run = 0; run < rounds(1000, 3000); run++) {
        size_t size = run % 2 == 0 ? sizeof v4 : sizeof v6;
        memcpy(frame, run % 2 == 0 ? v4 : v6, size);
        for (unsigned i = roll() % 4u; i > 0; i--) {
            frame[12 + roll() % (size - 12)] = roll();
        }
        frame_run(frame, size);
    }
}

static void long_random_sequences(void)
{
    uint8_t data[400];
    for (unsigned run = 0; run < rounds(2000, 6000); run++) {
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = roll();
        }
        data[0] = (uint8_t) (1 + run % 3);
        classes_run(data, sizeof data);
    }
}

int main(void)
{
    highest_of_every_set();
    frames();
    long_random_sequences();
    printf("demux, defer, predict: %d classes: 3 passed\n", WEIR_CLASSES);
    return 0;
}
