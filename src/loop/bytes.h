/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_BYTES_H
#define BECALM_LOOP_BYTES_H

/* A byte queue: a buffer that grows at its end and is consumed from its beginning. All zeroes is an empty one. */

#include "blocks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    char *at;
    uint32_t from; /* bytes before it have been used */
    uint32_t length;
    uint32_t size;
};

bool bytes_add(struct bytes *, const char *, size_t); /* false: no memory */
void bytes_free(struct bytes *);
/* The same with memory from `blocks`. Bytes that were added with one function may be freed with either. */
bool bytes_add_from(struct bytes *, struct blocks *, const char *, size_t);
void bytes_give(struct bytes *, struct blocks *);

/* Call it before adding so many bytes: it reuses the room of consumed bytes. Without it, a buffer that is never
 * completely consumed would grow for ever. */
void bytes_make_room(struct bytes *, size_t);

static inline size_t bytes_left(const struct bytes *bytes)
{
    return bytes->length - bytes->from;
}

/* The first byte; never NULL, so that an empty buffer is a valid text, too. */
static inline const char *bytes_at(const struct bytes *bytes)
{
    return bytes->at == NULL ? "" : bytes->at + bytes->from;
}

#endif
