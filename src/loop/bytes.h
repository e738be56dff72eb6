/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_BYTES_H
#define BECALM_LOOP_BYTES_H

/* Bytes that wait: a buffer that grows at its end and is used up from its beginning. All zeroes is an empty one. */

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
/* The same with memory that `blocks` keeps. What was added in one way may be freed in the other. */
bool bytes_add_from(struct bytes *, struct blocks *, const char *, size_t);
void bytes_give(struct bytes *, struct blocks *);

/* Before so many are added: where bytes that have been used stand is room again, or who never uses up all of them would
 * keep all that there ever were. */
void bytes_make_room(struct bytes *, size_t);

static inline size_t bytes_left(const struct bytes *bytes)
{
    return bytes->length - bytes->from;
}

/* Where they begin; never NULL, so that nothing at all is a text, too. */
static inline const char *bytes_at(const struct bytes *bytes)
{
    return bytes->at == NULL ? "" : bytes->at + bytes->from;
}

#endif
