/* SPDX-License-Identifier: MIT */
#include "redis/reply.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes of a server, in pieces of a size that the first byte draws: each reply is within its bounds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reply_reader reader;
    size_t step = size > 0 ? (size_t)data[0] + 1 : 1;
    enum reply_next next = REPLY_NONE;
    if (!reply_open(&reader, 0)) {
        return 0;
    }
    for (size_t i = 1; i < size && next != REPLY_BROKEN; i += step) {
        if (!reply_feed(&reader, (const char *)data + i, size - i < step ? size - i : step)) {
            break;
        }
        while ((next = reply_next(&reader)) == REPLY_THERE) {
            if (reader.reply.count > REPLY_ITEMS) {
                abort();
            }
            for (uint32_t n = 0; n < reader.reply.count; n++) { /* a sanitizer watches the bytes */
                (void)reply_says(&reader.reply.item[n], "text");
            }
        }
    }
    reply_close(&reader);
    return 0;
}
