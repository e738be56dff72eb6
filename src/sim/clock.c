/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>
#include <string.h>

/* The event queue. Events with a constant delay, such as timeouts and messages on a link, are due in the order in which
 * they were planned: each of these delays has a ring of its own, where planning and taking cost next to nothing. All
 * other events are in a wheel of two levels. Events of the next 66 us are in a heap, which is small and stays in the
 * cache; later events lie unsorted in their slot, or in the slot of their second, until they are due. So planning costs
 * the same however many events wait, and an event is moved twice at most. The order is exact all the same: by instant,
 * and at the same instant by when it was planned. */

#define SLOT_BITS 16u                 /* ns: 66 us */
#define FINE      (UINT64_C(1) << 14) /* slots of the first level: about a second */
#define COARSE    (UINT64_C(1) << 12) /* of the second: more than an hour */
#define NO_BLOCK  UINT32_MAX
#define BLOCK     7u

/* Events lie in blocks, so that a slot grows without moving and its room is used again. */
struct block {
    struct event event[BLOCK];
    uint32_t count;
    uint32_t next;
};

static bool sooner(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

/* Rings. */

static struct event *ring_at(const struct clock_ring *ring, uint64_t number)
{
    return &ring->event[number & (ring->size - 1)];
}

/* NULL: events so far ahead have none. */
static struct clock_ring *ring_of(struct clock *c, becalm_ns ahead)
{
    for (uint32_t i = 0; i < c->rings; i++) {
        if (c->ring[i].ahead == ahead) {
            return &c->ring[i];
        }
    }
    return NULL;
}

static bool ring_grow(struct clock_ring *ring)
{
    uint64_t larger = ring->size == 0 ? 64 : 2 * ring->size;
    struct event *moved = malloc(larger * sizeof *moved);
    if (moved == NULL) {
        return false;
    }
    for (uint64_t i = ring->first; i < ring->end; i++) {
        moved[i & (larger - 1)] = *ring_at(ring, i);
    }
    free(ring->event);
    ring->event = moved;
    ring->size = larger;
    return true;
}

static void ring_push(struct clock *c, struct clock_ring *ring, const struct event *event)
{
    if (ring->end - ring->first == ring->size && !ring_grow(ring)) {
        c->no_memory = true;
        return;
    }
    *ring_at(ring, ring->end++) = *event;
}

/* The ring with the earliest first event; NULL: all rings are empty. */
static struct clock_ring *ring_next(struct clock *c)
{
    struct clock_ring *next = NULL;
    const struct event *first = NULL;
    for (uint32_t i = 0; i < c->rings; i++) {
        struct clock_ring *ring = &c->ring[i];
        if (ring->first < ring->end && (next == NULL || sooner(ring_at(ring, ring->first), first))) {
            next = ring;
            first = ring_at(ring, ring->first);
        }
    }
    return next;
}

void clock_expect(struct clock *c, becalm_ns ahead)
{
    if (c->rings < CLOCK_RINGS_MAX && ring_of(c, ahead) == NULL) {
        c->ring[c->rings++] = (struct clock_ring){.ahead = ahead};
    }
}

/* The heap, with four children to a node: shallower and kinder to caches than two. */

static bool heap_reserve(struct clock *c, size_t count)
{
    if (count <= c->size) {
        return true;
    }
    size_t larger = c->size == 0 ? 4096 : c->size * 2;
    larger = larger < count ? count : larger;
    struct event *moved = realloc(c->heap, larger * sizeof *moved);
    if (moved == NULL) {
        c->no_memory = true;
        return false;
    }
    c->heap = moved;
    c->size = larger;
    return true;
}

static void heap_push(struct clock *c, const struct event *event)
{
    if (!heap_reserve(c, c->count + 1)) {
        return;
    }
    size_t i = c->count++;
    for (; i > 0 && sooner(event, &c->heap[(i - 1) / 4]); i = (i - 1) / 4) {
        c->heap[i] = c->heap[(i - 1) / 4];
    }
    c->heap[i] = *event;
}

static void heap_pop(struct clock *c, struct event *event)
{
    *event = c->heap[0];
    struct event last = c->heap[--c->count];
    size_t i = 0;
    for (size_t child; (child = 4 * i + 1) < c->count; i = child) {
        size_t end = child + 4 < c->count ? child + 4 : c->count;
        for (size_t k = child + 1; k < end; k++) {
            child = sooner(&c->heap[k], &c->heap[child]) ? k : child;
        }
        if (!sooner(&c->heap[child], &last)) {
            break;
        }
        c->heap[i] = c->heap[child];
    }
    c->heap[i] = last;
}

/* Slots. */

static uint32_t block_take(struct clock *c)
{
    uint32_t block = c->free;
    if (block != NO_BLOCK) {
        c->free = c->block[block].next;
        return block;
    }
    if (c->blocks == c->block_size) {
        uint32_t larger = c->block_size == 0 ? 64 : c->block_size * 2;
        struct block *moved = realloc(c->block, larger * sizeof *moved);
        if (moved == NULL) {
            c->no_memory = true;
            return NO_BLOCK;
        }
        c->block = moved;
        c->block_size = larger;
    }
    return c->blocks++;
}

static void slot_add(struct clock *c, uint32_t *slot, const struct event *event)
{
    if (*slot == NO_BLOCK || c->block[*slot].count == BLOCK) {
        uint32_t block = block_take(c);
        if (block == NO_BLOCK) {
            return;
        }
        c->block[block].count = 0;
        c->block[block].next = *slot;
        *slot = block;
    }
    struct block *block = &c->block[*slot];
    block->event[block->count++] = *event;
}

static void bit_set(uint64_t *bits, uint64_t at)
{
    bits[at / 64] |= UINT64_C(1) << at % 64;
}

static void bit_clear(uint64_t *bits, uint64_t at)
{
    bits[at / 64] &= ~(UINT64_C(1) << at % 64);
}

/* The first bit that is set from `at` on; `end`: none before that. */
static uint64_t bit_find(const uint64_t *bits, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint64_t rest = bits[at / 64] >> at % 64;
        if (rest != 0) {
            at += (uint64_t)__builtin_ctzll(rest);
            return at < end ? at : end;
        }
        at = (at / 64 + 1) * 64;
    }
    return end;
}

/* Everything before `next_slot` belongs into the heap; the rest of its second into the first level. */
static void place(struct clock *c, const struct event *event)
{
    uint64_t slot = event->at >> SLOT_BITS;
    if (slot < c->next_slot) {
        heap_push(c, event);
    } else if (slot / FINE == c->second) {
        slot_add(c, &c->fine[slot % FINE], event);
        bit_set(c->fine_bits, slot % FINE);
    } else {
        slot_add(c, &c->coarse[slot / FINE], event);
        bit_set(c->coarse_bits, slot / FINE);
    }
}

/* Empties a slot into where its events belong by now. */
static void slot_spread(struct clock *c, uint32_t *slot)
{
    uint32_t block = *slot;
    *slot = NO_BLOCK;
    while (block != NO_BLOCK && !c->no_memory) {
        for (uint32_t i = 0; i < c->block[block].count; i++) {
            struct event event = c->block[block].event[i]; /* the blocks may move */
            place(c, &event);
        }
        uint32_t next = c->block[block].next;
        c->block[block].next = c->free;
        c->free = block;
        block = next;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Moves on to the second of the next slot that has something, but not beyond that of `last`. False: it is there. */
static bool second_turn(struct clock *c, uint64_t last)
{
    uint64_t end = least(last / FINE + 1, COARSE);
    if (c->second + 1 >= end) {
        return false;
    }
    uint64_t coarse = bit_find(c->coarse_bits, c->second + 1, end);
    c->second = least(coarse, end - 1);
    c->next_slot = c->second * FINE;
    if (coarse < end) {
        bit_clear(c->coarse_bits, coarse);
        slot_spread(c, &c->coarse[coarse]);
    }
    return true;
}

/* Fills the heap with the next slot that has something, up to slot `last`. False: there is none. */
static bool clock_turn(struct clock *c, uint64_t last)
{
    do {
        uint64_t first = c->second * FINE;
        uint64_t end = last - first < FINE ? last - first + 1 : FINE; /* last is never before this second */
        uint64_t fine = bit_find(c->fine_bits, c->next_slot - first, end);
        if (fine < end) {
            bit_clear(c->fine_bits, fine);
            c->next_slot = first + fine + 1;
            slot_spread(c, &c->fine[fine]);
            return !c->no_memory;
        }
    } while (second_turn(c, last));
    return false;
}

bool clock_make(struct clock *c, becalm_ns end_at)
{
    BECALM_ASSERT(end_at >> SLOT_BITS < FINE * COARSE);
    memset(c, 0, sizeof *c);
    c->end_at = end_at;
    c->free = NO_BLOCK;
    c->fine = malloc(FINE * sizeof *c->fine);
    c->coarse = malloc(COARSE * sizeof *c->coarse);
    c->fine_bits = calloc(FINE / 64, sizeof *c->fine_bits);
    c->coarse_bits = calloc(COARSE / 64, sizeof *c->coarse_bits);
    if (c->fine == NULL || c->coarse == NULL || c->fine_bits == NULL || c->coarse_bits == NULL) {
        return false;
    }
    memset(c->fine, 0xff, FINE * sizeof *c->fine); /* NO_BLOCK */
    memset(c->coarse, 0xff, COARSE * sizeof *c->coarse);
    return true;
}

void clock_plan(struct clock *c, struct event event)
{
    if (event.at < c->end_at) { /* long timeouts would only fill the slots */
        event.order = c->order++;
        struct clock_ring *ring = ring_of(c, event.at - c->now);
        if (ring != NULL) {
            ring_push(c, ring, &event);
        } else {
            place(c, &event);
        }
    }
}

bool clock_next(struct clock *c, struct event *event)
{
    struct clock_ring *ring = ring_next(c);
    const struct event *first = ring == NULL ? NULL : ring_at(ring, ring->first);
    bool wheel = c->count > 0 || clock_turn(c, ring == NULL ? UINT64_MAX : first->at >> SLOT_BITS);
    if (ring == NULL && !wheel) {
        return false;
    }
    c->latest = ring;
    if (ring == NULL || (wheel && sooner(&c->heap[0], first))) {
        heap_pop(c, event);
        c->latest = NULL;
    } else {
        *event = *first;
        ring->first++;
    }
    c->now = event->at;
    return true;
}

const struct event *clock_peek(const struct clock *c, size_t at)
{
    const struct clock_ring *ring = c->latest;
    if (ring != NULL) {
        return at < ring->end - ring->first ? ring_at(ring, ring->first + at) : NULL;
    }
    return at < c->count ? &c->heap[at] : NULL;
}

void clock_free(struct clock *c)
{
    for (uint32_t i = 0; i < c->rings; i++) {
        free(c->ring[i].event);
    }
    free(c->heap);
    free(c->block);
    free(c->fine);
    free(c->coarse);
    free(c->fine_bits);
    free(c->coarse_bits);
}
