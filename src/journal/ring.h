/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_RING_H
#define BECALM_JOURNAL_RING_H

/* A ring buffer of bytes between one writing and one reading thread. A put is there completely or not at all, so that
 * the reader finds whole lines if the writer puts whole lines. */

#include <becalm/base.h>

#include <stdalign.h>
#include <sys/uio.h>

#define RING_BYTES 65536u

struct ring {
    alignas(64) BECALM_ATOMIC(uint64_t) put; /* bytes ever put; only the putter writes it */
    uint64_t taken_seen;                     /* the value of `taken` that the writer last read */
    alignas(64) BECALM_ATOMIC(uint64_t) taken;
    alignas(64) char bytes[RING_BYTES];
};

void ring_init(struct ring *); /* its bytes are not touched */

/* For the writer. False: there is no room. A reader that sees a put also sees all puts before it. The writer's next
 * sequentially consistent load comes after the put, so that a check "is the reader asleep?" after it misses no sleeper.
 */
bool ring_put(struct ring *, const void *bytes, size_t length);

/* For the reader: the bytes that are there, in one or two pieces, and their length; then removes bytes from the front.
 */
size_t ring_peek(const struct ring *, struct iovec piece[2]);
void ring_take(struct ring *, size_t length);

/* Any thread: how many bytes wait, at some moment. */
size_t ring_waiting(const struct ring *);

#endif
