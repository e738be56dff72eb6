/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_FRAME_H
#define BECALM_H2_H2_FRAME_H

/* The layout of HTTP/2 frames (RFC 9113, 4.1 and 6); nothing here needs a session. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_FRAME_HEAD   9u     /* bytes before a frame's payload */
#define H2_FRAME_MAX    16384u /* of a payload: ours to take, since we announce no more, and ours to send */
#define H2_ID_MAX       INT32_MAX
#define H2_WINDOW_MAX   INT32_MAX
#define H2_WINDOW_FIRST 65535 /* the initial window of a stream and of a connection */

enum h2_frame_type {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE,
    H2_CONTINUATION /* a type is any byte: larger types are unknown */
};

enum {
    H2_FLAG_ACK = 0x1,
    H2_FLAG_END_STREAM = 0x1,
    H2_FLAG_END_HEADERS = 0x4,
    H2_FLAG_PADDED = 0x8,
    H2_FLAG_PRIORITY = 0x20
};

enum h2_setting {
    H2_SET_HEADER_TABLE_SIZE = 1,
    H2_SET_ENABLE_PUSH = 2,
    H2_SET_MAX_CONCURRENT_STREAMS = 3,
    H2_SET_INITIAL_WINDOW_SIZE = 4,
    H2_SET_MAX_FRAME_SIZE = 5,
    H2_SET_MAX_HEADER_LIST_SIZE = 6,
    H2_SET_ENABLE_CONNECT_PROTOCOL = 8,
    H2_SET_NO_RFC7540_PRIORITIES = 9
};

struct h2_frame {
    uint32_t length;
    uint8_t type;
    uint8_t flags;
    int32_t id; /* of its stream; 0: the connection's */
};

static inline uint32_t h2_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A number of 31 bits: the highest means nothing. */
static inline uint32_t h2_number31(const uint8_t *at)
{
    return h2_number(at) & INT32_MAX;
}

static inline void h2_put_number(char *to, uint32_t number)
{
    to[0] = (char)(number >> 24);
    to[1] = (char)(number >> 16);
    to[2] = (char)(number >> 8);
    to[3] = (char)number;
}

static inline struct h2_frame h2_frame_read(const uint8_t *at)
{
    return (struct h2_frame){.length = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2],
                             .type = at[3],
                             .flags = at[4],
                             .id = (int32_t)h2_number31(at + 5)};
}

static inline void h2_frame_put(char *to, struct h2_frame frame)
{
    to[0] = (char)(frame.length >> 16);
    to[1] = (char)(frame.length >> 8);
    to[2] = (char)frame.length;
    to[3] = (char)frame.type;
    to[4] = (char)frame.flags;
    h2_put_number(to + 5, (uint32_t)frame.id);
}

#endif
