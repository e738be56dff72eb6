/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "key_memory.h"

#include "run/entropy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TO_TELL UINT64_MAX /* as a number: the store has forgotten it */
#define ROOM    64u        /* keys, at first */

struct key_memory {
    BECALM_ATOMIC(uint32_t) users;
    pthread_mutex_t lock; /* for all below */
    unsigned char name[STORE_ID];
    uint64_t names;   /* how many it had before */
    uint64_t counted; /* the highest number under this one */
    bool misses;      /* the store has forgotten some */
    uint32_t most;
    struct key_done *ring; /* `room` places: the key that was the n-th to come is in place n % room */
    uint32_t room;
    uint64_t first; /* the oldest */
    uint64_t next;  /* the next that comes */
};

struct key_memory *key_memory_make(uint32_t most)
{
    struct key_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL || !entropy_fill_now(memory->name, sizeof memory->name) ||
        pthread_mutex_init(&memory->lock, NULL) != 0) {
        free(memory);
        return NULL;
    }
    atomic_init(&memory->users, 1);
    memory->most = most;
    return memory;
}

struct key_memory *key_memory_use(struct key_memory *memory)
{
    if (memory != NULL) {
        atomic_fetch_add_explicit(&memory->users, 1, memory_order_relaxed);
    }
    return memory;
}

static struct key_done *at(struct key_memory *memory, uint64_t which)
{
    return &memory->ring[which % memory->room];
}

static void first_forget(struct key_memory *memory)
{
    free((char *)at(memory, memory->first++)->where);
}

void key_memory_drop(struct key_memory *memory)
{
    /* Release, so that a user's work comes before; acquire, so that the end comes after the work of all users. */
    if (memory == NULL || atomic_fetch_sub_explicit(&memory->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    while (memory->first < memory->next) {
        first_forget(memory);
    }
    free(memory->ring);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

struct key_stamp key_memory_stamp(struct key_memory *memory, unsigned char name[STORE_ID])
{
    pthread_mutex_lock(&memory->lock);
    struct key_stamp stamp = {.name = memory->names, .counted = memory->counted};
    memcpy(name, memory->name, sizeof memory->name);
    pthread_mutex_unlock(&memory->lock);
    return stamp;
}

/* The store has counted one more ended key. Returns the number under which this process remembers the key. A key that
 * was counted under an older name may be forgotten together with that name, so it must be written again. */
static uint64_t count_hear(struct key_memory *memory, const struct key_stamp *stamp, uint64_t number)
{
    if (stamp->name != memory->names) {
        return TO_TELL;
    }
    memory->misses |= number <= stamp->counted;
    memory->counted = number > memory->counted ? number : memory->counted;
    return number;
}

static void expire(struct key_memory *memory, becalm_ns now)
{
    while (memory->first < memory->next && at(memory, memory->first)->until <= now) {
        first_forget(memory);
    }
}

/* Room for one more. False: there is none. */
static bool grow(struct key_memory *memory)
{
    uint64_t held = memory->next - memory->first;
    if (held < memory->room) {
        return true;
    }
    uint32_t room = memory->room == 0 ? ROOM : memory->room * 2;
    struct key_done *ring = calloc(room, sizeof *ring);
    if (ring == NULL) {
        return false;
    }
    for (uint64_t i = memory->first; i < memory->next; i++) {
        ring[i % room] = *at(memory, i);
    }
    free(memory->ring);
    memory->ring = ring;
    memory->room = room;
    return true;
}

void key_memory_add(struct key_memory *memory, const struct key_done *done, const struct key_stamp *stamp,
                    becalm_ns now)
{
    pthread_mutex_lock(&memory->lock);
    uint64_t number = count_hear(memory, stamp, done->number);
    expire(memory, now);
    if (memory->next - memory->first >= memory->most) {
        first_forget(memory);
    }
    if (grow(memory)) {
        struct key_done *place = at(memory, memory->next++);
        *place = *done;
        place->number = number;
        place->where = done->status == 0 ? strdup(done->where) : NULL;
    }
    pthread_mutex_unlock(&memory->lock);
}

bool key_memory_misses(struct key_memory *memory, const struct key_stamp *stamp, uint64_t count)
{
    pthread_mutex_lock(&memory->lock);
    memory->misses |= stamp->name == memory->names && count < stamp->counted;
    bool misses = memory->misses;
    pthread_mutex_unlock(&memory->lock);
    return misses;
}

uint32_t key_memory_lost(struct key_memory *memory, becalm_ns now)
{
    pthread_mutex_lock(&memory->lock);
    expire(memory, now);
    for (uint64_t i = memory->first; i < memory->next; i++) {
        at(memory, i)->number = TO_TELL;
    }
    if (!entropy_fill_now(memory->name, sizeof memory->name)) {
        memory->name[0]++; /* another one, at least */
    }
    memory->names++;
    memory->counted = 0;
    memory->misses = false;
    uint32_t lost = (uint32_t)(memory->next - memory->first);
    pthread_mutex_unlock(&memory->lock);
    return lost;
}

bool key_memory_next(struct key_memory *memory, uint64_t *from, becalm_ns now, struct key_done *done, uint64_t *which,
                     char place[STORE_WHERE])
{
    bool found = false;
    pthread_mutex_lock(&memory->lock);
    for (uint64_t i = *from > memory->first ? *from : memory->first; i < memory->next && !found; i++) {
        const struct key_done *one = at(memory, i);
        *from = i + 1;
        if (one->number == TO_TELL && one->until > now) {
            *done = *one;
            snprintf(place, STORE_WHERE, "%s", one->where == NULL ? "" : one->where);
            done->where = place;
            *which = i;
            found = true;
        }
    }
    pthread_mutex_unlock(&memory->lock);
    return found;
}

void key_memory_told(struct key_memory *memory, uint64_t which, const struct key_stamp *stamp, uint64_t count)
{
    pthread_mutex_lock(&memory->lock);
    uint64_t number = count_hear(memory, stamp, count);
    if (which >= memory->first && which < memory->next) {
        at(memory, which)->number = number;
    }
    pthread_mutex_unlock(&memory->lock);
}
