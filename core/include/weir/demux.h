/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * demux: determines the receiver of a packet, and so the packet's urgency (lee2010 §4).
 *
 * The table maps the headers of a frame (weir_demux_parse()) to the class of a socket. A socket may
 * have several readers; its class is that of the most urgent reader. Packets without a socket, and
 * fragments, have classes of their own.
 *
 * The caller provides the memory: a weir_demux_t, a power of two of slots, and some links. No
 * pointer is stored, every index is masked, and a lookup visits at most WEIR_DEMUX_PROBES slots, so
 * the table may be stored in a BPF map. Set-up (src/demux.c) takes time proportional to the table.
 * No lookup may run meanwhile: switch interrupts off, or hold a lock.
 */
#ifndef WEIR_DEMUX_H
#define WEIR_DEMUX_H

#include "weir/classes.h"
#include "weir/demux_frame.h"

/* The names of the functions of src/demux.c contain the number of classes, unless the user has
 * already defined the names. */
#ifndef weir_demux_start
#define weir_demux_start WEIR_CLASSES_JOIN(weir_demux_start, WEIR_CLASSES)
#define weir_demux_bind WEIR_CLASSES_JOIN(weir_demux_bind, WEIR_CLASSES)
#define weir_demux_unbind WEIR_CLASSES_JOIN(weir_demux_unbind, WEIR_CLASSES)
#define weir_demux_set_class WEIR_CLASSES_JOIN(weir_demux_set_class, WEIR_CLASSES)
#endif

/** The largest number of slots that a lookup visits: two buckets of WEIR_DEMUX_WAYS. */
#define WEIR_DEMUX_WAYS 4u
#define WEIR_DEMUX_PROBES (2u * WEIR_DEMUX_WAYS)

/**
 * The number of slots of a table minus 1. A port whose tables all have the same size defines it as
 * a constant. BPF's verifier needs the constant, and other ports save a read.
 */
#ifndef WEIR_DEMUX_MASK
#define WEIR_DEMUX_MASK(table) ((table)->mask)
#endif

/** The class of packets that are dropped instead of queued. Only orphans and fragments may have
 * it. */
#define WEIR_DEMUX_DROP WEIR_CLASS_NONE

/** The index that marks the end of a list of links. */
#define WEIR_DEMUX_NO_LINK 0xffffu

/**
 * The kinds of bindings of sockets, from the most specific one on. The first of these kinds that is
 * bound receives the frame.
 */
enum {
    WEIR_DEMUX_BY_PORT = 0,      /**< IP protocol and destination port */
    WEIR_DEMUX_BY_PROTOCOL = 1,  /**< IP protocol */
    WEIR_DEMUX_BY_ETHERTYPE = 2, /**< EtherType */
    WEIR_DEMUX_BY_PCP = 3,       /**< priority in the VLAN tag */
    WEIR_DEMUX_KINDS = 4
};

/**
 * The key of a socket: the kind of binding and its value. The functions below make keys. 0 is not a
 * key. The same key stands for IPv4 and IPv6.
 */
typedef uint32_t weir_demux_key_t;

#define WEIR_DEMUX_NO_KEY ((weir_demux_key_t) 0)

WEIR_INLINE weir_demux_key_t weir_demux_key(uint8_t kind, uint8_t protocol, uint16_t value)
{
    return ((weir_demux_key_t) (kind + 1u) << 24) | ((weir_demux_key_t) protocol << 16) | value;
}

/** Makes the key of a destination port. The protocol is 17 (UDP) or 6 (TCP). */
WEIR_INLINE weir_demux_key_t weir_demux_by_port(uint8_t protocol, uint16_t port)
{
    return weir_demux_key(WEIR_DEMUX_BY_PORT, protocol, port);
}

/** Makes the key of all packets of an IP protocol that no port binding receives. */
WEIR_INLINE weir_demux_key_t weir_demux_by_protocol(uint8_t protocol)
{
    return weir_demux_key(WEIR_DEMUX_BY_PROTOCOL, protocol, 0);
}

/** Makes the key of all packets of an EtherType that no binding above receives. */
WEIR_INLINE weir_demux_key_t weir_demux_by_ethertype(uint16_t ethertype)
{
    return weir_demux_key(WEIR_DEMUX_BY_ETHERTYPE, 0, ethertype);
}

/** Makes the key of all packets with a VLAN priority, 0 to 7, that no binding above receives. */
WEIR_INLINE weir_demux_key_t weir_demux_by_pcp(uint8_t pcp)
{
    return weir_demux_key(WEIR_DEMUX_BY_PCP, 0, pcp);
}

/** A slot of the table, which holds one socket. */
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

/** The table, except for its slots and links. */
typedef struct {
    uint16_t mask;                    /**< slots less one */
    uint16_t free;                    /**< the first free link */
    uint16_t bound[WEIR_DEMUX_KINDS]; /**< sockets of each kind */
    uint8_t orphans;                  /**< the class of what has no receiver, or WEIR_DEMUX_DROP */
    uint8_t fragments;                /**< the class of fragments that have none, or WEIR_DEMUX_DROP */
} weir_demux_t;

/** The reason why set-up rejects a call. The table is then unchanged. */
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
 * Each step of the hash is reversible, so that different sockets have different hashes. Every bit
 * of the port reaches the upper bits, because ports are often a fixed distance apart. The factor is
 * 2^32 over the golden ratio.
 */
WEIR_INLINE uint32_t weir_demux_hash(weir_demux_key_t key)
{
    uint32_t mixed = (uint32_t) (key * 0x9e3779b1u);
    mixed ^= mixed >> 15;
    return (uint32_t) (mixed * 0x9e3779b1u);
}

/*
 * Returns the number of one of a socket's two buckets, before masking. The two numbers differ by an
 * odd number, so that they never mask to the same bucket.
 */
WEIR_INLINE uint16_t weir_demux_bucket(uint32_t hash, bool second)
{
    uint16_t bucket = (uint16_t) (hash >> 16);
    return second ? (uint16_t) (bucket ^ ((hash >> 24) | 1u)) : bucket;
}

/*
 * Returns the slot of a way of a bucket, at most `mask`. The way is 0 to WEIR_DEMUX_WAYS - 1.
 * Bucket and way are masked separately: if the mask is known to consist of whole buckets, the way
 * is a constant.
 */
WEIR_INLINE uint32_t weir_demux_way(uint16_t bucket, uint16_t mask, uint8_t way)
{
    return (((uint32_t) bucket * WEIR_DEMUX_WAYS) & mask) + (way & mask);
}

/**
 * Returns the slot that a search for `key` visits at a probe, at most `mask`. The probe is 0 to
 * WEIR_DEMUX_PROBES - 1.
 */
WEIR_INLINE uint16_t weir_demux_probe(weir_demux_key_t key, uint16_t mask, uint8_t probe)
{
    uint16_t bucket = weir_demux_bucket(weir_demux_hash(key), probe >= WEIR_DEMUX_WAYS);
    return (uint16_t) weir_demux_way(bucket, mask, probe & (WEIR_DEMUX_WAYS - 1u));
}

/**
 * Returns the slot of a socket, or some other slot if the socket is not bound, so that the caller
 * must compare the key. The slot is at most `mask`. The search visits WEIR_DEMUX_PROBES slots.
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

/** Returns the receiver of a packet with this key. Constant time (DEMUX-LOOKUP-1). */
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

/* Returns the key of one kind that a packet has, or 0 if the packet has no such key. */
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
 * Returns the receiver of a parsed frame, which is the socket of the most specific bound key. A
 * frame that is truncated, malformed or too deep has no receiver. Constant time: at most one lookup
 * for each kind that has sockets.
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
 * Initialises an empty table in the caller's memory. `capacity` is the number of slots, a power of
 * two from 1 to 32768. `readers` is the number of links, 1 to 65535: one for each reader of each
 * socket. `orphans` and `fragments` are classes, or WEIR_DEMUX_DROP. Use the lowest class for
 * orphans if ARP and the like need the stack; use WEIR_DEMUX_DROP if the card itself demultiplexes.
 */
weir_demux_error_t weir_demux_start(weir_demux_t *d, weir_demux_slot_t *slots, uint32_t capacity, weir_demux_link_t *links,
                                    uint32_t readers, uint8_t orphans, uint8_t fragments);

/**
 * Binds `reader`, which has the class `which`, to the socket `key`. A reader has a single class,
 * the one given last, in all its sockets. Errors: BAD_KEY, BAD_CLASS, NO_SLOT, NO_LINKS. Binding a
 * reader to the same socket again only sets the class.
 */
weir_demux_error_t weir_demux_bind(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, weir_demux_key_t key,
                                   uint16_t reader, uint8_t which);

/**
 * Unbinds `reader` from the socket `key`. A socket without readers is removed. Error: NOT_BOUND.
 */
weir_demux_error_t weir_demux_unbind(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, weir_demux_key_t key,
                                     uint16_t reader);

/**
 * Changes the class of `reader` in all its sockets. Errors: BAD_CLASS; NOT_BOUND if the reader is
 * bound to no socket.
 */
weir_demux_error_t weir_demux_set_class(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, uint16_t reader,
                                        uint8_t which);

#endif
