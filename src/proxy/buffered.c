/* SPDX-License-Identifier: MIT */
#include "buffered.h"

#include "gateway_shared.h"

uint64_t buffered_max(const struct worker *worker)
{
    return atomic_load_explicit(&worker->gateway->max_buffered, memory_order_relaxed);
}

uint64_t buffered_now(const struct worker *worker)
{
    return atomic_load_explicit(&worker->gateway->buffered, memory_order_relaxed);
}

bool buffered_over(const struct worker *worker)
{
    return buffered_now(worker) > buffered_max(worker);
}

size_t buffered_piece(const struct worker *worker)
{
    /* relaxed: a piece that is read a moment too large does no harm */
    return atomic_load_explicit(&worker->gateway->tight, memory_order_relaxed) ? BUFFERED_PIECE : WORKER_IN;
}

void buffered__changed(struct worker *worker, size_t before, size_t after)
{
    struct gateway *gateway = worker->gateway;
    uint64_t more = (uint64_t)after - before; /* modulo 2^64: less is more, too */
    uint64_t total = atomic_fetch_add_explicit(&gateway->buffered, more, memory_order_relaxed) + more;
    uint64_t max = buffered_max(worker);
    bool tight = atomic_load_explicit(&gateway->tight, memory_order_relaxed);
    if (tight != (total > max / 2)) {
        atomic_store_explicit(&gateway->tight, !tight, memory_order_relaxed);
    }
    if (total > max && after > before) {
        loop_later(&worker->loop, &worker->shrink); /* the caller may be in the middle of something */
    }
}

void buffered__resized(struct worker *worker, size_t before, const struct bytes *bytes)
{
    if (bytes->size > atomic_load_explicit(&worker->largest, memory_order_relaxed)) {
        atomic_store_explicit(&worker->largest, bytes->size, memory_order_relaxed);
    }
    buffered_changed(worker, before, bytes->size);
}

bool buffered_add(struct worker *worker, struct bytes *bytes, const char *at, size_t length)
{
    size_t before = bytes->size;
    bool added = bytes_add_from(bytes, &worker->loop.blocks, at, length);
    if (bytes->size != before) {
        buffered__resized(worker, before, bytes);
    }
    return added;
}

void buffered__free(struct worker *worker, struct bytes *bytes)
{
    buffered_changed(worker, bytes->size, 0);
    bytes_give(bytes, &worker->loop.blocks);
}
