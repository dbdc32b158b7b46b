/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * demux: which receiver a packet is for, and so how urgent it is (lee2010 §4).
 *
 * A table from what a frame's headers say (weir_demux_parse()) to the class of its socket. A socket
 * may have several readers; its class is that of the most urgent one. Packets without a socket, and
 * fragments, have classes of their own.
 *
 * The memory is the caller's: a weir_demux_t, a power of two of slots, some links. No pointer is
 * kept, every index is masked, and a lookup visits at most WEIR_DEMUX_PROBES slots; so the table
 * may lie in a BPF map. Set-up (src/demux.c) takes time proportional to the table; no lookup may
 * run meanwhile: switch interrupts off, or hold a lock.
 */
#ifndef WEIR_DEMUX_H
#define WEIR_DEMUX_H

#include "weir/classes.h"
#include "weir/demux_frame.h"

/* The functions of src/demux.c are named after the number of classes, unless the user has defined
 * their names already. */
#ifndef weir_demux_start
#define weir_demux_start WEIR_CLASSES_JOIN(weir_demux_start, WEIR_CLASSES)
#define weir_demux_bind WEIR_CLASSES_JOIN(weir_demux_bind, WEIR_CLASSES)
#define weir_demux_unbind WEIR_CLASSES_JOIN(weir_demux_unbind, WEIR_CLASSES)
#define weir_demux_set_class WEIR_CLASSES_JOIN(weir_demux_set_class, WEIR_CLASSES)
#endif

/** The most slots that a lookup visits: two buckets of WEIR_DEMUX_WAYS. */
#define WEIR_DEMUX_WAYS 4u
#define WEIR_DEMUX_PROBES (2u * WEIR_DEMUX_WAYS)

/**
 * The number of slots of a table minus 1. A port whose tables all have one size defines it as that
 * constant: BPF's verifier must see it, others save a read.
 */
#ifndef WEIR_DEMUX_MASK
#define WEIR_DEMUX_MASK(table) ((table)->mask)
#endif

/** The class of packets that are dropped instead of queued: for orphans and fragments only. */
#define WEIR_DEMUX_DROP WEIR_CLASS_NONE

/** The index that stands for no link: the end of a list. */
#define WEIR_DEMUX_NO_LINK 0xffffu

/**
 * The kinds of sockets' bindings, the most specific first: a frame is for the first of these that
 * is bound.
 */
enum {
    WEIR_DEMUX_BY_PORT = 0,      /**< IP protocol and destination port */
    WEIR_DEMUX_BY_PROTOCOL = 1,  /**< IP protocol */
    WEIR_DEMUX_BY_ETHERTYPE = 2, /**< EtherType */
    WEIR_DEMUX_BY_PCP = 3,       /**< priority in the VLAN tag */
    WEIR_DEMUX_KINDS = 4
};

/**
 * The key of a socket: the kind of binding and its value, made by the functions below. 0 is no key.
 * IPv4 and IPv6 are not told apart.
 */
typedef uint32_t weir_demux_key_t;

#define WEIR_DEMUX_NO_KEY ((weir_demux_key_t) 0)

WEIR_INLINE weir_demux_key_t weir_demux_key(uint8_t kind, uint8_t protocol, uint16_t value)
{
    return ((weir_demux_key_t) (kind + 1u) << 24) | ((weir_demux_key_t) protocol << 16) | value;
}

/** A destination port; the protocol is 17 (UDP) or 6 (TCP). */
WEIR_INLINE weir_demux_key_t weir_demux_by_port(uint8_t protocol, uint16_t port)
{
    return weir_demux_key(WEIR_DEMUX_BY_PORT, protocol, port);
}

/** All packets of an IP protocol that no port takes. */
WEIR_INLINE weir_demux_key_t weir_demux_by_protocol(uint8_t protocol)
{
    return weir_demux_key(WEIR_DEMUX_BY_PROTOCOL, protocol, 0);
}

/** All packets of an EtherType that nothing above takes. */
WEIR_INLINE weir_demux_key_t weir_demux_by_ethertype(uint16_t ethertype)
{
    return weir_demux_key(WEIR_DEMUX_BY_ETHERTYPE, 0, ethertype);
}

/** All packets with a VLAN priority, 0 to 7, that nothing above takes. */
WEIR_INLINE weir_demux_key_t weir_demux_by_pcp(uint8_t pcp)
{
    return weir_demux_key(WEIR_DEMUX_BY_PCP, 0, pcp);
}

/** A socket's place in the table. */
typedef struct {
    weir_demux_key_t key; /**< WEIR_DEMUX_NO_KEY: free */
    uint16_t first;       /**< the link of its most urgent reader */
    uint8_t which;        /**< its class: that reader's */
} weir_demux_slot_t;

/** A reader in the list of a socket's readers. */
typedef struct {
    uint16_t next;   /**< the next less urgent reader of the socket, or the next free link */
    uint16_t reader; /**< the caller's name for it: a task's index */
    uint8_t which;   /**< its class */
} weir_demux_link_t;

/** The table without its slots and links. */
typedef struct {
    uint16_t mask;                    /**< slots less one */
    uint16_t free;                    /**< the first free link */
    uint16_t bound[WEIR_DEMUX_KINDS]; /**< sockets of each kind */
    uint8_t orphans;                  /**< the class of what has no receiver, or WEIR_DEMUX_DROP */
    uint8_t fragments;                /**< the class of fragments that have none, or WEIR_DEMUX_DROP */
} weir_demux_t;

/** Why the set-up refuses; the table is unchanged then. */
typedef enum {
    WEIR_DEMUX_OK = 0,
    WEIR_DEMUX_BAD_CAPACITY = 1, /**< slots are not a power of two up to 32768, or links not 1 to 65535 */
    WEIR_DEMUX_BAD_KEY = 2,      /**< no kind that is known, or a value that the kind does not have */
    WEIR_DEMUX_BAD_CLASS = 3,    /**< not below WEIR_CLASSES */
    WEIR_DEMUX_NO_SLOT = 4,      /**< no room for another socket */
    WEIR_DEMUX_NO_LINKS = 5,     /**< no room for another reader of a socket */
    WEIR_DEMUX_NOT_BOUND = 6     /**< that reader does not read that socket */
} weir_demux_error_t;

/** The receiver of a packet. */
enum {
    WEIR_DEMUX_BOUND = 0,   /**< a socket */
    WEIR_DEMUX_ORPHAN = 1,  /**< nobody */
    WEIR_DEMUX_FRAGMENT = 2 /**< nobody who could be told from a fragment */
};

typedef struct {
    uint16_t link; /**< of the most urgent reader, or WEIR_DEMUX_NO_LINK */
    uint8_t which; /**< class, or WEIR_DEMUX_DROP */
    uint8_t kind;  /**< WEIR_DEMUX_BOUND, _ORPHAN or _FRAGMENT */
} weir_demux_found_t;

/* ----------------------------------------------------------------------- lookup: constant time */

/*
 * Each step is reversible, so that different sockets have different hashes; every bit of the port
 * reaches the upper bits, since ports are often a fixed distance apart. The factor is 2^32 over the
 * golden ratio.
 */
WEIR_INLINE uint32_t weir_demux_hash(weir_demux_key_t key)
{
    uint32_t mixed = (uint32_t) (key * 0x9e3779b1u);
    mixed ^= mixed >> 15;
    return (uint32_t) (mixed * 0x9e3779b1u);
}

/*
 * The number of one of a socket's two buckets before it is masked. The two differ in an odd number,
 * so that they are never of the same bucket.
 */
WEIR_INLINE uint16_t weir_demux_bucket(uint32_t hash, bool second)
{
    uint16_t bucket = (uint16_t) (hash >> 16);
    return second ? (uint16_t) (bucket ^ ((hash >> 24) | 1u)) : bucket;
}

/*
 * The slot of a bucket's way, 0 to WEIR_DEMUX_WAYS - 1; at most `mask`. The two are masked apart:
 * where the mask is known to be of whole buckets, the way is a constant.
 */
WEIR_INLINE uint32_t weir_demux_way(uint16_t bucket, uint16_t mask, uint8_t way)
{
    return (((uint32_t) bucket * WEIR_DEMUX_WAYS) & mask) + (way & mask);
}

/**
 * The slot that a search for `key` visits at a probe, 0 to WEIR_DEMUX_PROBES - 1; at most `mask`.
 */
WEIR_INLINE uint16_t weir_demux_probe(weir_demux_key_t key, uint16_t mask, uint8_t probe)
{
    uint16_t bucket = weir_demux_bucket(weir_demux_hash(key), probe >= WEIR_DEMUX_WAYS);
    return (uint16_t) weir_demux_way(bucket, mask, probe & (WEIR_DEMUX_WAYS - 1u));
}

/**
 * The slot of a socket, or some other slot if the socket is not bound: compare the key. At most
 * `mask`; WEIR_DEMUX_PROBES slots are visited.
 */
WEIR_INLINE uint16_t weir_demux_find(const weir_demux_slot_t *slots, uint16_t mask, weir_demux_key_t key)
{
    uint32_t hash = weir_demux_hash(key);
    uint32_t at = 0;
    for (uint8_t probe = 0; probe < WEIR_DEMUX_PROBES; probe++) {
        uint16_t bucket = weir_demux_bucket(hash, probe >= WEIR_DEMUX_WAYS);
        at = weir_demux_way(bucket, mask, probe & (WEIR_DEMUX_WAYS - 1u));
        if (slots[at].key == key) {
            break;
        }
    }
    return (uint16_t) at;
}

/** The receiver of a packet for `key`. Constant time (DEMUX-LOOKUP-1). */
WEIR_INLINE weir_demux_found_t weir_demux_lookup(const weir_demux_t *d, const weir_demux_slot_t *slots, weir_demux_key_t key)
{
    weir_demux_found_t found = {WEIR_DEMUX_NO_LINK, d->orphans, WEIR_DEMUX_ORPHAN};
    const weir_demux_slot_t *slot = &slots[weir_demux_find(slots, WEIR_DEMUX_MASK(d), key)];
    if (slot->key == key && key != WEIR_DEMUX_NO_KEY) {
        found.link = slot->first;
        found.which = slot->which;
        found.kind = WEIR_DEMUX_BOUND;
    }
    return found;
}

/* The key of one kind that a packet has, or 0 if it has none. */
WEIR_INLINE weir_demux_key_t weir_demux_key_of(const weir_demux_packet_t *p, uint8_t kind)
{
    bool is_ip = p->outcome != WEIR_DEMUX_NOT_IP;
    if (kind == WEIR_DEMUX_BY_PORT) {
        return p->outcome == WEIR_DEMUX_PORT ? weir_demux_by_port(p->protocol, p->port) : WEIR_DEMUX_NO_KEY;
    }
    if (kind == WEIR_DEMUX_BY_PROTOCOL) {
        return is_ip ? weir_demux_by_protocol(p->protocol) : WEIR_DEMUX_NO_KEY;
    }
    if (kind == WEIR_DEMUX_BY_ETHERTYPE) {
        return p->ethertype != 0 ? weir_demux_by_ethertype(p->ethertype) : WEIR_DEMUX_NO_KEY;
    }
    return p->pcp != WEIR_DEMUX_UNTAGGED ? weir_demux_by_pcp(p->pcp) : WEIR_DEMUX_NO_KEY;
}

/**
 * The receiver of a parsed frame: the most specific of its keys that is bound. A frame that is
 * truncated, malformed or too deep has no receiver. Constant time: at most one lookup for each kind
 * that has sockets.
 */
WEIR_INLINE weir_demux_found_t weir_demux_classify(const weir_demux_t *d, const weir_demux_slot_t *slots, const weir_demux_packet_t *p)
{
    weir_demux_found_t found = {WEIR_DEMUX_NO_LINK, d->orphans, WEIR_DEMUX_ORPHAN};
    if (p->outcome >= WEIR_DEMUX_TRUNCATED) {
        return found;
    }
    for (uint8_t kind = 0; kind < WEIR_DEMUX_KINDS; kind++) {
        if (d->bound[kind] != 0) {
            found = weir_demux_lookup(d, slots, weir_demux_key_of(p, kind));
            if (found.kind == WEIR_DEMUX_BOUND) {
                return found;
            }
        }
    }
    if (p->outcome == WEIR_DEMUX_FIRST_FRAGMENT || p->outcome == WEIR_DEMUX_LATER_FRAGMENT) {
        found.which = d->fragments;
        found.kind = WEIR_DEMUX_FRAGMENT;
    }
    return found;
}

/* ------------------------------------------------------------------------- set-up: src/demux.c */

/**
 * Starts an empty table in the caller's memory: `capacity` slots, a power of two from 1 to 32768,
 * and `readers` links, 1 to 65535, one for each reader of each socket. `orphans` and `fragments`
 * are classes, or WEIR_DEMUX_DROP: the lowest class keeps ARP and the like alive; a card that
 * demultiplexes drops them.
 */
weir_demux_error_t weir_demux_start(weir_demux_t *d, weir_demux_slot_t *slots, uint32_t capacity, weir_demux_link_t *links,
                                    uint32_t readers, uint8_t orphans, uint8_t fragments);

/**
 * `reader`, of class `which`, reads the socket `key` from now on. A reader has one class, the
 * latest one given: it changes in all its sockets. Refused: BAD_KEY, BAD_CLASS, NO_SLOT, NO_LINKS.
 * Binding a socket again only sets the class.
 */
weir_demux_error_t weir_demux_bind(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, weir_demux_key_t key,
                                   uint16_t reader, uint8_t which);

/**
 * `reader` no longer reads the socket `key`; a socket without readers is removed. Refused:
 * NOT_BOUND.
 */
weir_demux_error_t weir_demux_unbind(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, weir_demux_key_t key,
                                     uint16_t reader);

/**
 * Changes the class of `reader` in all its sockets. Refused: BAD_CLASS; NOT_BOUND if it reads none.
 */
weir_demux_error_t weir_demux_set_class(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, uint16_t reader,
                                        uint8_t which);

#endif
