/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>
#include <string.h>

/* The event queue: a wheel of two levels. What comes within a millisecond is in a heap, which is small and stays in the
 * cache; what comes later lies unsorted in the slot of its millisecond, or of its second, until it is due. So planning
 * costs the same however many events wait, and an event is moved twice at most. The order is exact all the same: by
 * instant, and at the same instant by when it was planned. */

#define SLOT_BITS 20u                 /* ns: about a millisecond */
#define FINE      (UINT64_C(1) << 10) /* slots of the first level: about a second */
#define COARSE    (UINT64_C(1) << 12) /* of the second: more than an hour */
#define NO_BLOCK  UINT32_MAX
#define BLOCK     31u

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

/* The first bit from `at` on, which is cleared; `end` if there is none. */
static uint64_t bit_take(uint64_t *bits, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint64_t rest = bits[at / 64] >> at % 64;
        if (rest != 0) {
            at += (uint64_t)__builtin_ctzll(rest);
            bits[at / 64] &= ~(UINT64_C(1) << at % 64);
            return at;
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

/* Fills the heap with the next slot that has something. False: there is none. */
static bool clock_turn(struct clock *c)
{
    for (;;) {
        uint64_t from = c->next_slot - c->second * FINE;
        uint64_t fine = bit_take(c->fine_bits, from, FINE);
        if (fine < FINE) {
            c->next_slot = c->second * FINE + fine + 1;
            slot_spread(c, &c->fine[fine]);
            return !c->no_memory;
        }
        uint64_t coarse = bit_take(c->coarse_bits, c->second + 1, COARSE);
        if (coarse == COARSE) {
            return false;
        }
        c->second = coarse;
        c->next_slot = coarse * FINE;
        slot_spread(c, &c->coarse[coarse]);
    }
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
        place(c, &event);
    }
}

bool clock_next(struct clock *c, struct event *event)
{
    if (c->count == 0 && !clock_turn(c)) {
        return false;
    }
    heap_pop(c, event);
    c->now = event->at;
    return true;
}

const struct event *clock_peek(const struct clock *c, size_t at)
{
    return at < c->count ? &c->heap[at] : NULL;
}

void clock_free(struct clock *c)
{
    free(c->heap);
    free(c->block);
    free(c->fine);
    free(c->coarse);
    free(c->fine_bits);
    free(c->coarse_bits);
}
