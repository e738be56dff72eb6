/* SPDX-License-Identifier: MIT */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define ROUND 4096u /* sizes of large buffers */

bool bytes_add(struct bytes *bytes, const char *at, size_t length)
{
    if (length == 0) {
        return true;
    }
    if (bytes->from == bytes->length) {
        bytes->from = bytes->length = 0;
    }
    if (bytes->size - bytes->length < length) {
        size_t need = bytes->length + length;
        size_t size = bytes->size == 0 ? 512 : (size_t)bytes->size * 2;
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

void bytes_free(struct bytes *bytes)
{
    if (bytes->at != NULL) { /* most have nothing */
        free(bytes->at);
        *bytes = (struct bytes){0};
    }
}
