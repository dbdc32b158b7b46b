/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Set-up of the demultiplexing table. This code runs when a socket is bound or a priority changes,
 * not for each packet.
 */
#include "weir/demux.h"

/*
 * The largest number of slots to search when making room for one socket. A longer search would fill
 * a table only a little further.
 */
#define SEARCHED 64u
#define NOWHERE 0xffffu

static bool is_class_or_drop(uint8_t which)
{
    return which < WEIR_CLASSES || which == WEIR_DEMUX_DROP;
}

weir_demux_error_t weir_demux_start(weir_demux_t *d, weir_demux_slot_t *slots, uint32_t capacity, weir_demux_link_t *links,
                                    uint32_t readers, uint8_t orphans, uint8_t fragments)
{
    if (capacity == 0 || capacity > 32768u || (capacity & (capacity - 1u)) != 0 || readers == 0 || readers > WEIR_DEMUX_NO_LINK) {
        return WEIR_DEMUX_BAD_CAPACITY;
    }
    if (!is_class_or_drop(orphans) || !is_class_or_drop(fragments)) {
        return WEIR_DEMUX_BAD_CLASS;
    }
    for (uint32_t at = 0; at < capacity; at++) {
        slots[at].key = WEIR_DEMUX_NO_KEY;
        slots[at].first = WEIR_DEMUX_NO_LINK;
        slots[at].which = 0;
    }
    for (uint32_t at = 0; at < readers; at++) {
        links[at].next = at + 1u < readers ? (uint16_t) (at + 1u) : WEIR_DEMUX_NO_LINK;
        links[at].reader = 0;
        links[at].which = 0;
    }
    d->mask = (uint16_t) (capacity - 1u);
    d->free = 0;
    for (uint8_t kind = 0; kind < WEIR_DEMUX_KINDS; kind++) {
        d->bound[kind] = 0;
    }
    d->orphans = orphans;
    d->fragments = fragments;
    return WEIR_DEMUX_OK;
}

static uint8_t kind_of(weir_demux_key_t key)
{
    return (uint8_t) ((key >> 24) - 1u);
}

static bool is_key(weir_demux_key_t key)
{
    uint8_t protocol = (uint8_t) (key >> 16);
    uint16_t value = (uint16_t) key;
    switch (kind_of(key)) {
    case WEIR_DEMUX_BY_PORT:
        return protocol == 17u || protocol == 6u;
    case WEIR_DEMUX_BY_PROTOCOL:
        return value == 0;
    case WEIR_DEMUX_BY_ETHERTYPE:
        return protocol == 0 && value >= 0x0600u;
    case WEIR_DEMUX_BY_PCP:
        return protocol == 0 && value < 8u;
    default:
        return false;
    }
}

static bool is_among(const uint16_t *seen, uint8_t count, uint16_t at)
{
    for (uint8_t i = 0; i < count; i++) {
        if (seen[i] == at) {
            return true;
        }
    }
    return false;
}

/*
 * Makes room for a socket in one of its two buckets (cuckoo hashing). Finds, breadth first, the
 * shortest chain of sockets that can each move to its other bucket, up to a free slot. Then moves
 * the sockets, from the end of the chain. Nothing moves before the whole chain is found.
 */
static uint16_t make_room(weir_demux_slot_t *slots, uint16_t mask, weir_demux_key_t key)
{
    uint16_t seen[SEARCHED];
    uint8_t from[SEARCHED];
    uint8_t count = 0;
    uint8_t next = 0;
    weir_demux_key_t moving = key;
    uint8_t mover = SEARCHED;
    for (;;) {
        for (uint8_t probe = 0; probe < WEIR_DEMUX_PROBES; probe++) {
            uint16_t at = weir_demux_probe(moving, mask, probe);
            /* Only the first `count` elements are read, and these were written. */
            /* cppcheck-suppress uninitvar */
            if (count == SEARCHED || is_among(seen, count, at)) {
                continue;
            }
            seen[count] = at;
            from[count] = mover;
            if (slots[at].key == WEIR_DEMUX_NO_KEY) {
                uint8_t to = count;
                while (from[to] < SEARCHED) {
                    slots[seen[to]] = slots[seen[from[to]]];
                    to = from[to];
                }
                return seen[to];
            }
            count++;
        }
        if (next == count) {
            return NOWHERE;
        }
        mover = next;
        moving = slots[seen[next]].key;
        next++;
    }
}

/*
 * Removes the link of a reader from the socket's list. Returns WEIR_DEMUX_NO_LINK if the reader
 * does not read this socket.
 */
static uint16_t take_link(weir_demux_slot_t *slot, weir_demux_link_t *links, uint16_t reader)
{
    uint16_t *to = &slot->first;
    while (*to != WEIR_DEMUX_NO_LINK) {
        uint16_t at = *to;
        if (links[at].reader == reader) {
            *to = links[at].next;
            return at;
        }
        to = &links[at].next;
    }
    return WEIR_DEMUX_NO_LINK;
}

/* Inserts the link after those that are equally urgent. Of these, the one that was bound first
 * counts as the socket's reader. */
static void put_link(weir_demux_slot_t *slot, weir_demux_link_t *links, uint16_t link)
{
    uint16_t *to = &slot->first;
    while (*to != WEIR_DEMUX_NO_LINK && links[*to].which >= links[link].which) {
        to = &links[*to].next;
    }
    links[link].next = *to;
    *to = link;
    slot->which = links[slot->first].which;
}

static bool reads(const weir_demux_slot_t *slot, const weir_demux_link_t *links, uint16_t reader)
{
    for (uint16_t at = slot->first; at != WEIR_DEMUX_NO_LINK; at = links[at].next) {
        if (links[at].reader == reader) {
            return true;
        }
    }
    return false;
}

weir_demux_error_t weir_demux_set_class(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, uint16_t reader, uint8_t which)
{
    if (which >= WEIR_CLASSES) {
        return WEIR_DEMUX_BAD_CLASS;
    }
    weir_demux_error_t result = WEIR_DEMUX_NOT_BOUND;
    for (uint32_t at = 0; at <= d->mask; at++) {
        weir_demux_slot_t *slot = &slots[at];
        if (slot->key == WEIR_DEMUX_NO_KEY || !reads(slot, links, reader)) {
            continue;
        }
        result = WEIR_DEMUX_OK;
        uint16_t link = take_link(slot, links, reader);
        links[link].which = which;
        put_link(slot, links, link);
    }
    return result;
}

weir_demux_error_t weir_demux_bind(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, weir_demux_key_t key,
                                   uint16_t reader, uint8_t which)
{
    if (!is_key(key)) {
        return WEIR_DEMUX_BAD_KEY;
    }
    if (which >= WEIR_CLASSES) {
        return WEIR_DEMUX_BAD_CLASS;
    }
    uint16_t at = weir_demux_find(slots, d->mask, key);
    bool is_bound = slots[at].key == key;
    if (!is_bound || !reads(&slots[at], links, reader)) {
        uint16_t link = d->free;
        if (link == WEIR_DEMUX_NO_LINK) {
            return WEIR_DEMUX_NO_LINKS;
        }
        if (!is_bound) {
            at = make_room(slots, d->mask, key);
            if (at == NOWHERE) {
                return WEIR_DEMUX_NO_SLOT;
            }
            slots[at].key = key;
            slots[at].first = WEIR_DEMUX_NO_LINK;
            d->bound[kind_of(key)]++;
        }
        d->free = links[link].next;
        links[link].reader = reader;
        links[link].which = which;
        put_link(&slots[at], links, link);
    }
    return weir_demux_set_class(d, slots, links, reader, which);
}

weir_demux_error_t weir_demux_unbind(weir_demux_t *d, weir_demux_slot_t *slots, weir_demux_link_t *links, weir_demux_key_t key,
                                     uint16_t reader)
{
    weir_demux_slot_t *slot = &slots[weir_demux_find(slots, d->mask, key)];
    if (key == WEIR_DEMUX_NO_KEY || slot->key != key) {
        return WEIR_DEMUX_NOT_BOUND;
    }
    uint16_t link = take_link(slot, links, reader);
    if (link == WEIR_DEMUX_NO_LINK) {
        return WEIR_DEMUX_NOT_BOUND;
    }
    links[link].next = d->free;
    d->free = link;
    if (slot->first == WEIR_DEMUX_NO_LINK) {
        slot->key = WEIR_DEMUX_NO_KEY;
        d->bound[kind_of(key)]--;
    } else {
        slot->which = links[slot->first].which;
    }
    return WEIR_DEMUX_OK;
}
