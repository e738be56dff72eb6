/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_BLOCKS_H
#define BECALM_LOOP_BLOCKS_H

/* A free list of one thread, for memory that every request takes and gives back. A block that is given back is kept for
 * the next request of the same size, so that each request does not cost a search in malloc(). All zeroes is an empty
 * list. With the address sanitizer it keeps nothing, so that a use after free is found. */

#include <stddef.h>
#include <stdint.h>

#if defined __SANITIZE_ADDRESS__
#define BLOCKS_KEEPS 0
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define BLOCKS_KEEPS 0
#endif
#endif
#ifndef BLOCKS_KEEPS
#define BLOCKS_KEEPS 1
#endif

#define BLOCKS_STEP    32u           /* sizes are multiples of it ... */
#define BLOCKS_LARGEST 2048u         /* ... up to this; larger ones are malloc()'s */
#define BLOCKS_KEPT    (256u * 1024) /* bytes of one size, at most */

struct blocks {
    void *free[BLOCKS_LARGEST / BLOCKS_STEP]; /* each begins with a pointer to the next */
    uint32_t count[BLOCKS_LARGEST / BLOCKS_STEP];
};

/* NULL: no memory. The block comes from malloc(), with its alignment, and may also be given to free() or realloc(). If
 * the list is NULL, this is malloc(). */
void *blocks_take(struct blocks *, size_t size);
/* Takes a block back. `size` is the size that was asked for; of a block from malloc() it must be a multiple of
 * BLOCKS_STEP. NULL is ignored. */
void blocks_give(struct blocks *, void *, size_t size);
/* Frees all kept blocks. Blocks that are given back later are kept again. */
void blocks_empty(struct blocks *);

#endif
