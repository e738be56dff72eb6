/* SPDX-License-Identifier: MIT */
#include "websocket.h"

#include <string.h>

enum { OPCODE = 0x0f, CLOSE = 8, WHOLE = 0x80, MASKED = 0x80, SHORT = 0x7f, SIZED_16 = 126, SIZED_64 = 127, MASK = 4 };

/* How long a head is, as far as its first bytes tell. */
static size_t head_length(const struct websocket_frames *frames)
{
    if (frames->have < 2) {
        return 2;
    }
    uint32_t size = frames->head[1] & SHORT;
    return size == SIZED_64 ? 10 : size == SIZED_16 ? 4 : 2;
}

/* The head is whole: its payload, with the mask before it, comes next. */
static void head_end(struct websocket_frames *frames)
{
    const uint8_t *head = frames->head;
    uint64_t size = head[1] & SHORT;
    if (size >= SIZED_16) {
        size_t bytes = head_length(frames) - 2;
        size = 0;
        for (size_t i = 0; i < bytes; i++) {
            size = size << 8 | head[2 + i];
        }
    }
    frames->unclear = size >> 63 != 0;
    frames->closed = (head[0] & OPCODE) == CLOSE;
    frames->left = size + ((head[1] & MASKED) != 0 ? MASK : 0);
    frames->have = 0;
}

void websocket_follow(struct websocket_frames *frames, const char *at, size_t length)
{
    while (length > 0 && !frames->unclear && !frames->closed) {
        if (frames->left > 0) {
            size_t skip = frames->left < length ? (size_t)frames->left : length;
            frames->left -= skip;
            at += skip;
            length -= skip;
            continue;
        }
        frames->head[frames->have++] = (uint8_t)*at++;
        length -= 1;
        if (frames->have >= 2 && frames->have == head_length(frames)) {
            head_end(frames);
        }
    }
}

bool websocket_between(const struct websocket_frames *frames)
{
    return frames->left == 0 && frames->have == 0 && !frames->closed && !frames->unclear;
}

size_t websocket_write_close(char frame[WEBSOCKET_CLOSE_MAX], uint16_t code, const uint32_t *mask)
{
    uint8_t payload[2] = {(uint8_t)(code >> 8), (uint8_t)code};
    size_t at = 2;
    frame[0] = (char)(WHOLE | CLOSE);
    frame[1] = (char)(sizeof payload | (mask != NULL ? MASKED : 0u));
    if (mask != NULL) {
        uint8_t key[MASK];
        memcpy(key, mask, sizeof key);
        memcpy(frame + at, key, sizeof key);
        at += sizeof key;
        payload[0] ^= key[0];
        payload[1] ^= key[1];
    }
    memcpy(frame + at, payload, sizeof payload);
    return at + sizeof payload;
}
