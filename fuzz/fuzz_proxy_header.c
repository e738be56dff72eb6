/* SPDX-License-Identifier: MIT */
/* The first bytes of a connection. Whether a header is complete depends only on its own bytes: any part of it needs
 * more bytes, bytes behind it change nothing, and a bad header stays bad. */
#include "origin/proxy_header.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    static const union address_socket before;
    union address_socket peer = before;
    size_t length = 0;
    enum proxy_header_result result = proxy_header_read(bytes, size, &length, &peer);
    BECALM_ASSERT(size == 0 || size > PROXY_HEADER_MAX ? result != PROXY_HEADER_DONE || length <= PROXY_HEADER_MAX
                                                       : true);
    BECALM_ASSERT(result == PROXY_HEADER_DONE || memcmp(&peer, &before, sizeof peer) == 0);
    BECALM_ASSERT(result != PROXY_HEADER_MORE || size < PROXY_HEADER_MAX);
    size_t whole = result == PROXY_HEADER_DONE ? length : size;
    BECALM_ASSERT(whole <= size);
    for (size_t i = 0; i < whole; i++) {
        union address_socket part_peer = before;
        size_t part_length = 0;
        enum proxy_header_result part = proxy_header_read(bytes, i, &part_length, &part_peer);
        BECALM_ASSERT(part == PROXY_HEADER_MORE || (part == PROXY_HEADER_BAD && result == PROXY_HEADER_BAD));
    }
    return 0;
}
