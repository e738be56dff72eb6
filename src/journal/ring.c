/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <string.h>

void ring_init(struct ring *ring)
{
    atomic_init(&ring->put, 0);
    atomic_init(&ring->taken, 0);
    ring->taken_seen = 0;
}

bool ring_put(struct ring *ring, const void *bytes, size_t length)
{
    uint64_t put = atomic_load_explicit(&ring->put, memory_order_relaxed); /* relaxed: only this thread writes it */
    if (length > RING_BYTES - (put - ring->taken_seen)) {
        /* acquire: the taker has read those bytes before it said so, and only then may they be written over */
        ring->taken_seen = atomic_load_explicit(&ring->taken, memory_order_acquire);
        if (length > RING_BYTES - (put - ring->taken_seen)) {
            return false;
        }
    }
    size_t at = (size_t)(put % RING_BYTES);
    size_t first = length < RING_BYTES - at ? length : RING_BYTES - at;
    memcpy(ring->bytes + at, bytes, first);
    memcpy(ring->bytes, (const char *)bytes + first, length - first);
    /* release publishes the bytes; the stronger order is for the putter's look at the sleeper, see the header */
    atomic_store_explicit(&ring->put, put + length, memory_order_seq_cst);
    return true;
}

size_t ring_peek(const struct ring *ring, struct iovec piece[2])
{
    uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed); /* the taker's own */
    uint64_t put = atomic_load_explicit(&ring->put, memory_order_acquire);     /* pairs with ring_put() */
    size_t length = (size_t)(put - taken);
    size_t at = (size_t)(taken % RING_BYTES);
    size_t first = length < RING_BYTES - at ? length : RING_BYTES - at;
    piece[0] = (struct iovec){.iov_base = (char *)ring->bytes + at, .iov_len = first};
    piece[1] = (struct iovec){.iov_base = (char *)ring->bytes, .iov_len = length - first};
    return length;
}

void ring_take(struct ring *ring, size_t length)
{
    uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    atomic_store_explicit(&ring->taken, taken + length, memory_order_release); /* pairs with ring_put()'s acquire */
}

size_t ring_waiting(const struct ring *ring)
{
    uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    return (size_t)(atomic_load_explicit(&ring->put, memory_order_seq_cst) - taken);
}
