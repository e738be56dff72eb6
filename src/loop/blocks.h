/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_BLOCKS_H
#define BECALM_LOOP_BLOCKS_H

/* Memory of one thread for what comes and goes with every request. What is given back is kept for the next who asks
 * for as much, so that a crowd of requests does not cost malloc() a search each. All zeroes is an empty one. With the
 * address sanitizer it keeps nothing, so that whatever is used too late is found. */

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

/* NULL: no memory. Aligned as malloc() does it, which it comes from: it may be given to free() or realloc() instead.
 * Without one (NULL) all is malloc()'s. */
void *blocks_take(struct blocks *, size_t size);
/* Takes it back; `size` is what was asked for, or what was asked of malloc() if that is a multiple of BLOCKS_STEP.
 * NULL: nothing. */
void blocks_give(struct blocks *, void *, size_t size);
/* Gives all that is kept to free(). What is given back later is kept again. */
void blocks_empty(struct blocks *);

#endif
