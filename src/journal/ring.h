/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_RING_H
#define BECALM_JOURNAL_RING_H

/* A ring of bytes between one thread that puts and one that takes. What is put is there whole or not at all, so that
 * the taker finds whole lines if the putter puts whole lines. */

#include <becalm/base.h>

#include <stdalign.h>
#include <sys/uio.h>

#define RING_BYTES 65536u

struct ring {
    alignas(64) BECALM_ATOMIC(uint64_t) put; /* bytes ever put; only the putter writes it */
    uint64_t taken_seen;                     /* the putter's latest look at `taken` */
    alignas(64) BECALM_ATOMIC(uint64_t) taken;
    alignas(64) char bytes[RING_BYTES];
};

void ring_init(struct ring *); /* its bytes are not touched */

/* The putter's. False: there is no room. What is put before a put that the taker sees, it sees too; and the putter's
 * next sequentially consistent load comes after it, so that "I put, is he asleep?" misses nobody. */
bool ring_put(struct ring *, const void *bytes, size_t length);

/* The taker's: what is there, in one piece or two, and how long it is; then take the front of it away. */
size_t ring_peek(const struct ring *, struct iovec piece[2]);
void ring_take(struct ring *, size_t length);

/* Any thread: how many bytes wait, at some moment. */
size_t ring_waiting(const struct ring *);

#endif
