/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_WEBSOCKET_H
#define BECALM_PROXY_WEBSOCKET_H

/* The frames of a websocket (RFC 6455, 5.2), as far as a tunnel must know them: where one ends, so that a close frame
 * of our own never lands in the middle of another. Payloads are skipped and never examined. Extensions change the
 * content of a frame, not where it ends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEBSOCKET_GOING_AWAY 1001u
#define WEBSOCKET_CLOSE_MAX  8u

/* One direction. All zero: nothing has come yet. */
struct websocket_frames {
    uint64_t left;    /* of the payload */
    uint8_t head[10]; /* of the frame that has begun, without its mask */
    uint8_t have;     /* bytes of it */
    bool closed;      /* a close frame has come: no frame follows */
    bool unclear;     /* an impossible length has come: the beginning of the next frame is unknown */
};

/* These bytes have passed. */
void websocket_follow(struct websocket_frames *, const char *at, size_t length);

/* May a frame of ours come next? */
bool websocket_between(const struct websocket_frames *);

/* Writes a close frame with this code and returns its length. A frame to a server is masked with these bits, which must
 * be unpredictable; NULL: the frame goes to a client. */
size_t websocket_write_close(char frame[WEBSOCKET_CLOSE_MAX], uint16_t code, const uint32_t *mask);

#endif
