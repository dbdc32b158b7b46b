/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * demux, defer and predict, driven by bytes: for the sanitizers and the fuzzer. Stops the program
 * where the parser reads beyond a frame's end or misplaces it, where a table disagrees with a
 * matrix, or where a value cached for speed differs from what a search finds.
 */
#ifndef WEIR_TESTS_CLASSES_BOARD_H
#define WEIR_TESTS_CLASSES_BOARD_H

#include <stddef.h>
#include <string.h>

#include "weir/defer.h"
#include "weir/demux.h"
#include "weir/predict.h"

#include "check.h"

#define CHECK(what) CHECK_IN(WEIR_CLASSES, "classes", what)

/* -------------------------------------------------------------------------------------- frames */

static bool same_packet(const weir_demux_packet_t *a, const weir_demux_packet_t *b)
{
    return a->outcome == b->outcome && a->protocol == b->protocol && a->port == b->port && a->ethertype == b->ethertype &&
           a->pcp == b->pcp && a->vlan == b->vlan;
}

/* Copies the bytes into memory of exactly their length, so that the sanitizer sees a read beyond
 * it. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t length)
{
    uint8_t *exact = malloc(length == 0 ? 1 : length);
    CHECK(exact != NULL);
    memcpy(exact, bytes, length);
    return exact;
}

/* Parses a frame and checks DEMUX-PARSE-1 and -5. */
static weir_demux_packet_t parse_exactly(const uint8_t *frame, size_t length)
{
    uint8_t *exact = exact_copy(frame, length);
    weir_demux_packet_t packet = weir_demux_parse(exact, (uint16_t) length);
    free(exact);
    if (length >= WEIR_DEMUX_PLAIN) {
        weir_demux_packet_t plain;
        exact = exact_copy(frame, WEIR_DEMUX_PLAIN);
        CHECK(!weir_demux_parse_plain(exact, (uint16_t) length, &plain) || same_packet(&plain, &packet));
        free(exact);
    }
    return packet;
}

static void frame_run(const uint8_t *frame, size_t length)
{
    weir_demux_packet_t whole = parse_exactly(frame, length);
    CHECK(whole.outcome <= WEIR_DEMUX_TOO_DEEP && (whole.pcp < 8 || whole.pcp == WEIR_DEMUX_UNTAGGED) && whole.vlan < 4096);
    /* DEMUX-PARSE-3: a truncated frame gives the same result, or TRUNCATED. */
    for (size_t part = 0; part < length; part++) {
        weir_demux_packet_t packet = parse_exactly(frame, part);
        CHECK(packet.outcome == WEIR_DEMUX_TRUNCATED || same_packet(&packet, &whole));
    }
}

/* ------------------------------------------------------------------ the table against a matrix */

#define TABLE_KEYS 32u
#define TABLE_READERS 4u
#define TABLE_SLOTS 16u
#define TABLE_LINKS 24u

typedef struct {
    weir_demux_t demux;
    weir_demux_slot_t slots[TABLE_SLOTS];
    weir_demux_link_t links[TABLE_LINKS];
    uint32_t capacity;
    bool reads[TABLE_KEYS][TABLE_READERS];
    uint8_t of_reader[TABLE_READERS];
} table_t;

static weir_demux_key_t table_key(unsigned number)
{
    if (number < 4) {
        return weir_demux_by_pcp((uint8_t) number);
    }
    return weir_demux_by_port(number % 2 == 0 ? 17 : 6, (uint16_t) (number * 1024u));
}

static unsigned table_most_urgent(const table_t *t, unsigned key)
{
    unsigned most = WEIR_CLASS_NONE;
    for (unsigned reader = 0; reader < TABLE_READERS; reader++) {
        if (t->reads[key][reader] && (most == WEIR_CLASS_NONE || t->of_reader[reader] > most)) {
            most = t->of_reader[reader];
        }
    }
    return most;
}

static void table_check(const table_t *t)
{
    unsigned links = 0;
    unsigned sockets = 0;
    for (unsigned key = 0; key < TABLE_KEYS; key++) {
        unsigned most = table_most_urgent(t, key);
        weir_demux_found_t found = weir_demux_lookup(&t->demux, t->slots, table_key(key));
        CHECK(found.kind == (most == WEIR_CLASS_NONE ? WEIR_DEMUX_ORPHAN : WEIR_DEMUX_BOUND)); /* DEMUX-LOOKUP-1 */
        CHECK(found.which == (most == WEIR_CLASS_NONE ? 0 : most));                            /* DEMUX-TABLE-2 */
        if (found.kind == WEIR_DEMUX_BOUND) {
            CHECK(found.link < TABLE_LINKS && t->reads[key][t->links[found.link].reader] && t->links[found.link].which == most);
            sockets++;
        }
        for (unsigned reader = 0; reader < TABLE_READERS; reader++) {
            links += t->reads[key][reader];
        }
    }
    /* DEMUX-TABLE-3: no link is lost. */
    unsigned used = 0;
    for (unsigned at = 0; at < t->capacity; at++) {
        used += t->slots[at].key != WEIR_DEMUX_NO_KEY;
    }
    unsigned bound = 0;
    for (unsigned kind = 0; kind < WEIR_DEMUX_KINDS; kind++) {
        bound += t->demux.bound[kind];
    }
    unsigned unused = 0;
    for (uint16_t link = t->demux.free; link != WEIR_DEMUX_NO_LINK; link = t->links[link].next) {
        CHECK(++unused <= TABLE_LINKS);
    }
    CHECK(used == sockets && bound == sockets && links + unused == TABLE_LINKS);
}

static void table_event(table_t *t, uint8_t what, uint8_t whom)
{
    unsigned key = what % TABLE_KEYS;
    uint16_t reader = whom % TABLE_READERS;
    uint8_t which = (uint8_t) ((whom / TABLE_READERS) % (WEIR_CLASSES + 1u));
    bool is_class = which < WEIR_CLASSES;
    table_t before = *t;
    weir_demux_error_t error;
    if (what < 128) {
        error = weir_demux_bind(&t->demux, t->slots, t->links, table_key(key), reader, which);
        CHECK((error == WEIR_DEMUX_BAD_CLASS) == !is_class);
        if (error == WEIR_DEMUX_OK) {
            t->reads[key][reader] = true;
            t->of_reader[reader] = which;
        }
    } else if (what < 224) {
        error = weir_demux_unbind(&t->demux, t->slots, t->links, table_key(key), reader);
        CHECK((error == WEIR_DEMUX_OK) == t->reads[key][reader]);
        t->reads[key][reader] = false;
    } else {
        error = weir_demux_set_class(&t->demux, t->slots, t->links, reader, which);
        CHECK((error == WEIR_DEMUX_BAD_CLASS) == !is_class);
        if (error == WEIR_DEMUX_OK) {
            t->of_reader[reader] = which;
        }
    }
    CHECK(error == WEIR_DEMUX_OK || memcmp(&before, t, sizeof before) == 0); /* DEMUX-TABLE-4 */
}

static void table_run(const uint8_t *data, size_t size)
{
    table_t t;
    memset(&t, 0, sizeof t);
    if (size == 0) {
        return;
    }
    t.capacity = (uint32_t) 1 << (data[0] % 5);
    CHECK(weir_demux_start(&t.demux, t.slots, t.capacity, t.links, TABLE_LINKS, 0, WEIR_DEMUX_DROP) == WEIR_DEMUX_OK);
    for (size_t i = 1; i + 1 < size; i += 2) {
        table_event(&t, data[i], data[i + 1]);
        table_check(&t);
    }
}

/* ------------------------------------------------------------------------------- bottom halves */

/* DEFER-ORDER-1, -NEST-1: compares the remembered choice with what a search finds. */
static void defer_check(const weir_defer_t *d)
{
    unsigned best = WEIR_CLASS_NONE;
    for (unsigned i = 0; i < WEIR_CLASSES; i++) {
        const weir_defer_class_t *c = &d->classes[i];
        CHECK(((d->pending & weir_classes_of((uint8_t) i)) != 0) == (c->waiting != 0));
        bool is_active = (d->active & weir_classes_of((uint8_t) i)) != 0;
        if (c->waiting != 0 && !is_active && (best == WEIR_CLASS_NONE || c->urgency >= d->classes[best].urgency)) {
            best = i;
        }
    }
    CHECK(weir_defer_best(d) == best);
    weir_classes_t active = 0;
    for (uint8_t at = d->inner; at != WEIR_CLASS_NONE; at = d->classes[at].outer) {
        CHECK(at < WEIR_CLASSES && (active & weir_classes_of(at)) == 0);
        active = (weir_classes_t) (active | weir_classes_of(at));
    }
    CHECK(active == d->active);
}

static void defer_run(const uint8_t *data, size_t size)
{
    weir_defer_t d;
    weir_defer_start(&d);
    unsigned long pushed = 0;
    unsigned long begun = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        uint8_t which = (uint8_t) (data[i] % (WEIR_CLASSES + 1u));
        uint8_t value = data[i + 1] / 8;
        switch (data[i + 1] % 8) {
        case 0:
            CHECK(weir_defer_set_class(&d, which, value, value / 4) == (which < WEIR_CLASSES));
            break;
        case 1:
            CHECK(weir_defer_set_urgency(&d, which, value) == (which < WEIR_CLASSES));
            break;
        case 2:
        case 3:
        case 4: {
            bool fits = which < WEIR_CLASSES && d.classes[which].waiting < d.classes[which].capacity; /* DEFER-BOUND-1 */
            CHECK(weir_defer_push(&d, which) == fits);
            pushed += fits;
            break;
        }
        case 5:
        case 6: {
            uint8_t inner = d.inner;
            uint8_t next = weir_defer_next(&d, value, data[i + 1] % 2);
            if (next != WEIR_CLASS_NONE) {
                begun++;
                uint8_t urgency = d.classes[next].urgency;
                CHECK(urgency > value || (urgency == value && data[i + 1] % 2 == WEIR_DEFER_TIES_RUN));
                CHECK(inner == WEIR_CLASS_NONE || urgency > d.classes[inner].urgency);
            }
            break;
        }
        default:
            CHECK(weir_defer_done(&d, which) == false || which < WEIR_CLASSES);
            if (d.inner != WEIR_CLASS_NONE) {
                CHECK(weir_defer_done(&d, d.inner));
            }
            break;
        }
        defer_check(&d);
    }
    unsigned long waiting = 0;
    for (uint8_t i = 0; i < WEIR_CLASSES; i++) {
        waiting += weir_defer_waiting(&d, i);
    }
    CHECK(pushed == begun + waiting); /* DEFER-LOSS-1 */
}

/* ---------------------------------------------------------------------------------- predictors */

static void predict_run(const uint8_t *data, size_t size)
{
    weir_predict_t p;
    if (size < 4) {
        return;
    }
    weir_predict_config_t c = {.share = (uint16_t) (data[0] * 256u + data[1]), .shift = data[2] % 10, .patience = data[3]};
    if (!weir_predict_start(&p, &c)) {
        CHECK(c.share == 0 || c.share > WEIR_PREDICT_ALL || c.shift > WEIR_PREDICT_LONGEST);
        return;
    }
    for (size_t i = 4; i < size; i++) {
        uint8_t which = (uint8_t) (data[i] / 6 % (WEIR_CLASSES + 1u));
        switch (data[i] % 6) {
        case 0:
            weir_predict_wait(&p, which);
            weir_predict_register(&p, which);
            break;
        case 1:
            weir_predict_stop_waiting(&p, which);
            break;
        case 2:
            weir_predict_unregister(&p, which);
            break;
        case 3:
            weir_predict_deferred(&p, &c);
            break;
        default:
            weir_predict_handled(&p, &c, which);
            break;
        }
        uint32_t sum = p.unseen;
        for (uint8_t at = 0; at < WEIR_CLASSES; at++) {
            sum += p.shares[at];
            CHECK(((p.known & weir_classes_of(at)) != 0) == (p.shares[at] != 0));
            CHECK(((p.waiting & weir_classes_of(at)) != 0) == (p.waits[at] != 0));
        }
        CHECK(sum <= WEIR_PREDICT_ALL); /* PREDICT-HISTORY-6 */
        uint8_t waiting = weir_predict(&p, &c, WEIR_PREDICT_WAITING);
        uint8_t history = weir_predict(&p, &c, WEIR_PREDICT_HISTORY);
        CHECK(history == WEIR_CLASS_NONE || (waiting != WEIR_CLASS_NONE && history <= waiting)); /* PREDICT-HISTORY-1 */
    }
}

/* Runs one of the four tests: the first byte chooses it, the others drive it. */
static void classes_run(const uint8_t *data, size_t size)
{
    static void (*const runs[])(const uint8_t *, size_t) = {frame_run, table_run, defer_run, predict_run};
    if (size != 0) {
        runs[data[0] % 4](data + 1, size - 1);
    }
}

#endif
