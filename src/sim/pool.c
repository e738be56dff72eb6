/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* madvise */

#include "world_internal.h"

#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK 1024u

void *pool_at(const struct pool *pool, uint32_t id)
{
    return (unsigned char *)pool->chunk[id / CHUNK] + (size_t)(id % CHUNK) * pool->item;
}

static bool pool_grow(struct pool *pool)
{
    void **chunks = realloc(pool->chunk, (pool->chunks + 1) * sizeof *chunks);
    if (chunks == NULL) {
        return false;
    }
    pool->chunk = chunks;
    chunks[pool->chunks] = calloc(CHUNK, pool->item);
    if (chunks[pool->chunks] == NULL) {
        return false;
    }
    pool->chunks++;
    return true;
}

uint32_t pool_take(struct pool *pool)
{
    if (pool->free_count > 0) {
        return pool->free[--pool->free_count];
    }
    if (pool->used == pool->chunks * CHUNK) {
        uint32_t *free_ids = realloc(pool->free, (size_t)(pool->chunks + 1) * CHUNK * sizeof *free_ids);
        pool->free = free_ids == NULL ? pool->free : free_ids;
        if (free_ids == NULL || !pool_grow(pool)) {
            return NOTHING;
        }
    }
    return pool->used++;
}

void pool_give(struct pool *pool, uint32_t id)
{
    pool->free[pool->free_count++] = id;
}

#define LINE      64u
#define HUGE_PAGE (UINT64_C(1) << 21)

void *slab_take(struct slab *slab, size_t bytes)
{
    BECALM_ASSERT(bytes <= SLAB_MAX - LINE);
    if (slab->chunk == NULL || SLAB_MAX - slab->used < bytes) {
        void *chunk = aligned_alloc(HUGE_PAGE, SLAB_MAX);
        if (chunk == NULL) {
            return NULL;
        }
        (void)madvise(chunk, SLAB_MAX, MADV_HUGEPAGE); /* only faster: callers are found at random */
        *(void **)chunk = slab->chunk;
        slab->chunk = chunk;
        slab->used = LINE;
    }
    void *taken = (unsigned char *)slab->chunk + slab->used;
    size_t lines = (bytes + LINE - 1) / LINE * LINE;
    slab->used += lines;
    slab->given += lines;
    return taken;
}

void slab_free(struct slab *slab)
{
    for (void *chunk = slab->chunk, *before; chunk != NULL; chunk = before) {
        before = *(void **)chunk;
        free(chunk);
    }
}

void pool_free(struct pool *pool)
{
    for (uint32_t i = 0; i < pool->chunks; i++) {
        free(pool->chunk[i]);
    }
    free(pool->chunk);
    free(pool->free);
}
