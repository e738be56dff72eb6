/* SPDX-License-Identifier: MIT */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 512u  /* the size of a buffer with little in it */
#define ROUND 4096u /* sizes of large buffers */

void bytes_make_room(struct bytes *bytes, size_t length)
{
    uint32_t left = bytes->length - bytes->from;
    bool full = bytes->size - bytes->length < length;
    if (left == 0) {
        bytes->from = bytes->length = 0;
    } else if (full && bytes->from >= left) { /* less is moved than was used before that */
        memmove(bytes->at, bytes->at + bytes->from, left);
        bytes->from = 0;
        bytes->length = left;
    }
}

bool bytes_add(struct bytes *bytes, const char *at, size_t length)
{
    if (length == 0) {
        return true;
    }
    bytes_make_room(bytes, length);
    if (bytes->size - bytes->length < length) {
        size_t need = bytes->length + length;
        size_t size = bytes->size == 0 ? FIRST : (size_t)bytes->size * 2;
        if (size < need) { /* the first of it is often all of it */
            size = (need + ROUND - 1) / ROUND * ROUND;
        }
        char *larger = realloc(bytes->at, size);
        if (larger == NULL) {
            return false;
        }
        bytes->at = larger;
        bytes->size = (uint32_t)size; /* the largest that is kept is replay.perRequest and one read: 2 GiB */
    }
    memcpy(bytes->at + bytes->length, at, length);
    bytes->length += (uint32_t)length;
    return true;
}

bool bytes_add_from(struct bytes *bytes, struct blocks *blocks, const char *at, size_t length)
{
    if (bytes->at == NULL && length > 0 && length <= FIRST) {
        bytes->at = blocks_take(blocks, FIRST);
        bytes->size = bytes->at == NULL ? 0 : FIRST;
    }
    return bytes_add(bytes, at, length);
}

void bytes_give(struct bytes *bytes, struct blocks *blocks)
{
    if (bytes->at != NULL) {
        blocks_give(blocks, bytes->at, bytes->size);
        *bytes = (struct bytes){0};
    }
}

void bytes_free(struct bytes *bytes)
{
    if (bytes->at != NULL) { /* most have nothing */
        free(bytes->at);
        *bytes = (struct bytes){0};
    }
}
