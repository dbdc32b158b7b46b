/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Early demultiplexing: determines the receiver of an Ethernet frame from its headers (lee2010 §4).
 * Included by weir/demux.h.
 *
 * The bytes may be only the beginning of a frame (from a card that splits headers off). Bytes that
 * are not needed are not read.
 */
#ifndef WEIR_DEMUX_FRAME_H
#define WEIR_DEMUX_FRAME_H

#include "weir/ticks.h"

/**
 * Reads one byte of a frame. A port whose frames are not in memory that C can read, such as BPF,
 * defines this before it includes the header.
 */
#ifndef WEIR_DEMUX_BYTE
#define WEIR_DEMUX_BYTE(frame, at) ((frame)[at])
#endif

/**
 * Reads two bytes of a frame, the upper one first. A port that can read both at once defines this.
 */
#ifndef WEIR_DEMUX_BE16
#define WEIR_DEMUX_BE16(frame, at)                                                                                                         \
    ((uint16_t) ((uint16_t) (WEIR_DEMUX_BYTE(frame, at) << 8) | WEIR_DEMUX_BYTE(frame, (uint16_t) ((at) + 1u))))
#endif

/** The largest number of VLAN tags (802.1ad has two), and of extension headers, that the parser
 * skips. */
#define WEIR_DEMUX_TAGS 2u
#define WEIR_DEMUX_EXTENSIONS 6u

/** The outcome of parsing a frame. */
enum {
    /** UDP or TCP: `protocol` and `port` are valid. */
    WEIR_DEMUX_PORT = 0,
    /** IP with a protocol whose ports the parser does not know: `protocol` is valid. */
    WEIR_DEMUX_OTHER_PROTOCOL = 1,
    /** Not IP: `ethertype` is valid. */
    WEIR_DEMUX_NOT_IP = 2,
    /**
     * The first of several fragments. `protocol` is valid. The port is ignored, because the
     * receiver gets nothing before the other fragments have arrived.
     */
    WEIR_DEMUX_FIRST_FRAGMENT = 3,
    /** A later fragment, which has no port. `protocol` is valid. */
    WEIR_DEMUX_LATER_FRAGMENT = 4,
    /** The frame ends before its headers do. */
    WEIR_DEMUX_TRUNCATED = 5,
    /**
     * The headers are inconsistent: a wrong version, or a length that is too small for the
     * contents. According to the RFCs of the protocol no stack delivers such a frame.
     */
    WEIR_DEMUX_MALFORMED = 6,
    /** The frame has more than WEIR_DEMUX_EXTENSIONS extension headers. */
    WEIR_DEMUX_TOO_DEEP = 7
};

/** The value of `pcp` for a frame without a VLAN tag. */
#define WEIR_DEMUX_UNTAGGED 0xffu

/** The contents of a frame's headers. Only the fields that `outcome` calls valid have a meaning. */
typedef struct {
    uint16_t ethertype; /**< valid unless truncated: behind the tags; 0: an 802.3 length, no EtherType */
    uint16_t vlan;      /**< VLAN identifier of the outermost tag, 0 to 4095 */
    uint16_t port;      /**< destination */
    uint8_t pcp;        /**< priority of the outermost tag, 0 to 7, or WEIR_DEMUX_UNTAGGED */
    uint8_t protocol;   /**< IP protocol number, behind the extension headers */
    uint8_t outcome;    /**< WEIR_DEMUX_PORT .. _TOO_DEEP */
} weir_demux_packet_t;

/** The payload of the IP header. */
typedef struct {
    uint16_t at;       /* offset in the frame, at most its length */
    uint16_t declared; /* bytes, as the IP header says */
    bool is_v6;
} weir_demux_payload_t;

WEIR_INLINE uint16_t weir_demux_be16(const uint8_t *frame, uint16_t at)
{
    return WEIR_DEMUX_BE16(frame, at);
}

/*
 * Returns the outcome for a fragment, from its offset and its flag "more fragments", or
 * WEIR_DEMUX_PORT if the packet is not fragmented.
 */
WEIR_INLINE uint8_t weir_demux_fragment(bool has_offset, bool more)
{
    if (has_offset) {
        return WEIR_DEMUX_LATER_FRAGMENT;
    }
    return more ? WEIR_DEMUX_FIRST_FRAGMENT : WEIR_DEMUX_PORT;
}

/* After each of the following functions, parsing continues iff `outcome` is WEIR_DEMUX_PORT. */

WEIR_INLINE void weir_demux_parse_v4(const uint8_t *frame, uint16_t length, weir_demux_packet_t *p, weir_demux_payload_t *payload)
{
    uint16_t at = payload->at;
    uint16_t left = (uint16_t) (length - at);
    if (left < 20u) {
        p->outcome = WEIR_DEMUX_TRUNCATED;
        return;
    }
    uint8_t first = WEIR_DEMUX_BYTE(frame, at);
    uint16_t header = (uint16_t) ((first & 0x0fu) * 4u);
    uint16_t total = weir_demux_be16(frame, (uint16_t) (at + 2u));
    if ((first >> 4) != 4u || header < 20u || total < header) {
        p->outcome = WEIR_DEMUX_MALFORMED;
        return;
    }
    if (left < header) {
        p->outcome = WEIR_DEMUX_TRUNCATED;
        return;
    }
    uint16_t fragment = weir_demux_be16(frame, (uint16_t) (at + 6u));
    p->protocol = WEIR_DEMUX_BYTE(frame, (uint16_t) (at + 9u));
    p->outcome = weir_demux_fragment((fragment & 0x1fffu) != 0, (fragment & 0x2000u) != 0);
    payload->at = (uint16_t) (at + header);
    payload->declared = (uint16_t) (total - header);
}

WEIR_INLINE void weir_demux_parse_v6(const uint8_t *frame, uint16_t length, weir_demux_packet_t *p, weir_demux_payload_t *payload)
{
    uint16_t at = payload->at;
    if ((uint16_t) (length - at) < 40u) {
        p->outcome = WEIR_DEMUX_TRUNCATED;
        return;
    }
    if ((WEIR_DEMUX_BYTE(frame, at) >> 4) != 6u) {
        p->outcome = WEIR_DEMUX_MALFORMED;
        return;
    }
    p->protocol = WEIR_DEMUX_BYTE(frame, (uint16_t) (at + 6u));
    payload->declared = weir_demux_be16(frame, (uint16_t) (at + 4u));
    payload->at = (uint16_t) (at + 40u);
}

/**
 * The protocols that the parser treats as extension headers. In IPv4 this is only the
 * authentication header. Encryption (50) hides what follows.
 */
enum {
    WEIR_DEMUX_HOP_BY_HOP = 0,
    WEIR_DEMUX_ROUTING = 43,
    WEIR_DEMUX_V6_FRAGMENT = 44,
    WEIR_DEMUX_AUTHENTICATION = 51,
    WEIR_DEMUX_DESTINATION = 60
};

WEIR_INLINE bool weir_demux_is_extension(uint8_t protocol, bool is_v6)
{
    return protocol == WEIR_DEMUX_AUTHENTICATION || (is_v6 && (protocol == WEIR_DEMUX_HOP_BY_HOP || protocol == WEIR_DEMUX_ROUTING ||
                                                               protocol == WEIR_DEMUX_V6_FRAGMENT || protocol == WEIR_DEMUX_DESTINATION));
}

/* Skips one extension header. `first` is true for the one directly after the IP header. */
WEIR_INLINE void weir_demux_skip_extension(const uint8_t *frame, uint16_t length, bool first, weir_demux_packet_t *p,
                                           weir_demux_payload_t *payload)
{
    uint16_t at = payload->at;
    if (payload->declared < 8u || (p->protocol == WEIR_DEMUX_HOP_BY_HOP && !first)) {
        p->outcome = WEIR_DEMUX_MALFORMED;
        return;
    }
    if ((uint16_t) (length - at) < 8u) {
        p->outcome = WEIR_DEMUX_TRUNCATED;
        return;
    }
    uint8_t units = WEIR_DEMUX_BYTE(frame, (uint16_t) (at + 1u));
    uint16_t size = (uint16_t) ((units + 1u) * 8u);
    if (p->protocol == WEIR_DEMUX_V6_FRAGMENT) {
        uint16_t fragment = weir_demux_be16(frame, (uint16_t) (at + 2u));
        size = 8;
        p->outcome = weir_demux_fragment((fragment & 0xfff8u) != 0, (fragment & 1u) != 0);
    } else if (p->protocol == WEIR_DEMUX_AUTHENTICATION) {
        /* The length field counts units of 4 bytes, minus 2; the fixed part alone has 12 bytes. */
        size = (uint16_t) ((units + 2u) * 4u);
        if (units == 0) {
            p->outcome = WEIR_DEMUX_MALFORMED;
            return;
        }
    }
    if (payload->declared < size) {
        p->outcome = WEIR_DEMUX_MALFORMED;
        return;
    }
    if ((uint16_t) (length - at) < size) {
        p->outcome = WEIR_DEMUX_TRUNCATED;
        return;
    }
    p->protocol = WEIR_DEMUX_BYTE(frame, at);
    payload->at = (uint16_t) (at + size);
    payload->declared = (uint16_t) (payload->declared - size);
}

/* Reads the port after the IP header and its extensions. UDP and TCP keep it in the same place. */
WEIR_INLINE void weir_demux_parse_port(const uint8_t *frame, uint16_t length, weir_demux_packet_t *p, const weir_demux_payload_t *payload)
{
    uint16_t least;
    if (p->protocol == 17u) {
        least = 8; /* UDP */
    } else if (p->protocol == 6u) {
        least = 20; /* TCP */
    } else {
        p->outcome = WEIR_DEMUX_OTHER_PROTOCOL;
        return;
    }
    if (payload->declared < least) {
        p->outcome = WEIR_DEMUX_MALFORMED;
    } else if ((uint16_t) (length - payload->at) < 4u) {
        p->outcome = WEIR_DEMUX_TRUNCATED;
    } else {
        p->port = weir_demux_be16(frame, (uint16_t) (payload->at + 2u));
    }
}

/** The number of bytes that weir_demux_parse_plain() reads. No Ethernet frame is shorter. */
#define WEIR_DEMUX_PLAIN 58u

/**
 * Gives the same result as weir_demux_parse() for nearly all frames, in a fraction of the time. It
 * handles frames without a tag, with IPv4 without options or with IPv6, followed directly by UDP or
 * TCP, whose headers are all in the first WEIR_DEMUX_PLAIN bytes. These bytes must be present.
 * Returns false for any other frame; `p` then has no meaning (DEMUX-PARSE-5).
 */
WEIR_INLINE bool weir_demux_parse_plain(const uint8_t *frame, uint16_t length, weir_demux_packet_t *p)
{
    uint16_t type = weir_demux_be16(frame, 12);
    uint8_t first = WEIR_DEMUX_BYTE(frame, 14);
    *p = (weir_demux_packet_t) {type, 0, 0, WEIR_DEMUX_UNTAGGED, 0, WEIR_DEMUX_PORT};
    weir_demux_payload_t payload = {14, 0, type == 0x86ddu};
    if (type == 0x0800u && first == 0x45u) {
        weir_demux_parse_v4(frame, length, p, &payload);
        payload.at = 34; /* as it is; so each place in the frame is a constant for the compiler */
    } else if (payload.is_v6) {
        weir_demux_parse_v6(frame, length, p, &payload);
    } else {
        return false;
    }
    if (p->outcome != WEIR_DEMUX_PORT) {
        return true;
    }
    if (weir_demux_is_extension(p->protocol, payload.is_v6)) {
        return false;
    }
    weir_demux_parse_port(frame, length, p, &payload);
    return true;
}

/**
 * Parses the headers of an Ethernet frame of `length` bytes, without preamble and checksum. No byte
 * beyond the last is read (DEMUX-PARSE-1). Constant time: at most WEIR_DEMUX_TAGS tags and
 * WEIR_DEMUX_EXTENSIONS extension headers.
 */
WEIR_INLINE weir_demux_packet_t weir_demux_parse(const uint8_t *frame, uint16_t length)
{
    weir_demux_packet_t p = {0, 0, 0, WEIR_DEMUX_UNTAGGED, 0, WEIR_DEMUX_TRUNCATED};
    if (length < 14u) {
        return p;
    }
    uint16_t type = weir_demux_be16(frame, 12);
    weir_demux_payload_t payload = {14, 0, false};
    for (uint8_t tag = 0; tag < WEIR_DEMUX_TAGS && (type == 0x8100u || type == 0x88a8u || type == 0x9100u); tag++) {
        if ((uint16_t) (length - payload.at) < 4u) {
            return p;
        }
        if (tag == 0) {
            uint16_t control = weir_demux_be16(frame, payload.at);
            p.pcp = (uint8_t) (control >> 13);
            p.vlan = (uint16_t) (control & 0x0fffu);
        }
        type = weir_demux_be16(frame, (uint16_t) (payload.at + 2u));
        payload.at = (uint16_t) (payload.at + 4u);
    }
    /* A value below 0x600 is the length of an 802.3 frame. */
    p.ethertype = type < 0x0600u ? 0 : type;
    p.outcome = WEIR_DEMUX_PORT;
    if (type == 0x0800u) {
        weir_demux_parse_v4(frame, length, &p, &payload);
    } else if (type == 0x86ddu) {
        payload.is_v6 = true;
        weir_demux_parse_v6(frame, length, &p, &payload);
    } else {
        p.outcome = WEIR_DEMUX_NOT_IP;
    }
    for (uint8_t i = 0; i < WEIR_DEMUX_EXTENSIONS; i++) {
        if (p.outcome != WEIR_DEMUX_PORT || !weir_demux_is_extension(p.protocol, payload.is_v6)) {
            break;
        }
        weir_demux_skip_extension(frame, length, i == 0, &p, &payload);
    }
    if (p.outcome == WEIR_DEMUX_PORT) {
        if (weir_demux_is_extension(p.protocol, payload.is_v6)) {
            p.outcome = WEIR_DEMUX_TOO_DEEP;
        } else {
            weir_demux_parse_port(frame, length, &p, &payload);
        }
    }
    return p;
}

#endif
