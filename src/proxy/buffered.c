/* SPDX-License-Identifier: MIT */
#include "buffered.h"

#include "exchange.h"
#include "gateway_shared.h"
#include "tunnel.h"

#include "container.h"

#include <string.h>

#define VICTIMS 64u             /* of one search */
#define TOLD    (10 * BECALM_S) /* between two lines in the log */
#define SLACK   32u             /* one part of so many is freed beyond the bound, so that not every buffer searches */

static uint64_t max_of(const struct worker *worker)
{
    return atomic_load_explicit(&worker->gateway->max_buffered, memory_order_relaxed);
}

static uint64_t now_of(const struct worker *worker)
{
    return atomic_load_explicit(&worker->gateway->buffered, memory_order_relaxed);
}

bool buffered_over(const struct worker *worker)
{
    return now_of(worker) > max_of(worker);
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
    uint64_t max = max_of(worker);
    bool tight = atomic_load_explicit(&gateway->tight, memory_order_relaxed);
    if (tight != (total > max / 2)) {
        atomic_store_explicit(&gateway->tight, !tight, memory_order_relaxed);
    }
    if (total > max && after > before) {
        loop_later(&worker->loop, &worker->shrink); /* whoever it is may be in the middle of something */
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
    bool added = bytes_add(bytes, at, length);
    if (bytes->size != before) {
        buffered__resized(worker, before, bytes);
    }
    return added;
}

void buffered__free(struct worker *worker, struct bytes *bytes)
{
    buffered_changed(worker, bytes->size, 0);
    bytes_free(bytes);
}

/* Cutting. */

struct holder {
    struct client *client;
    uint64_t bytes;
};

/* A heap would be faster and longer: most clients hold nothing, and end at the first comparison. */
static void note(struct holder *holder, uint32_t *count, struct client *client)
{
    uint64_t bytes = client_held(client);
    if (bytes == 0 || (*count == VICTIMS && bytes <= holder[VICTIMS - 1].bytes)) {
        return;
    }
    uint32_t at = *count < VICTIMS ? (*count)++ : VICTIMS - 1;
    while (at > 0 && holder[at - 1].bytes < bytes) {
        holder[at] = holder[at - 1];
        at--;
    }
    holder[at] = (struct holder){client, bytes};
}

static void tell(struct worker *worker, const struct holder *holder)
{
    char peer[ADDRESS_TEXT_MAX];
    struct log_pair pairs[] = {
        {.key = "peer", .type = LOG_TEXT, .text = client_peer(holder->client, peer, sizeof peer)},
        {.key = "bytes", .type = LOG_NUMBER, .number = holder->bytes},
        {.key = "maxBuffered", .type = LOG_NUMBER, .number = max_of(worker)},
    };
    if (worker->shrink_told_at == 0 || becalm_ns_since(worker->loop.now, worker->shrink_told_at) >= TOLD) {
        worker->shrink_told_at = worker->loop.now;
        log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall,
                 "more than maxBuffered is waiting: connections with the largest buffers are cut", pairs,
                 sizeof pairs / sizeof pairs[0]);
    }
}

/* The worker, but this one, whose largest buffer is the largest, if it is larger than ours. NULL: it is ours. */
static struct worker *larger_elsewhere(const struct worker *worker, uint64_t ours)
{
    struct worker *found = NULL;
    for (uint32_t i = 0; i < worker->gateway->worker_count; i++) {
        struct worker *other = &worker->gateway->worker[i];
        uint64_t its = atomic_load_explicit(&other->largest, memory_order_relaxed);
        if (other != worker && its > ours) {
            ours = its;
            found = other;
        }
    }
    return found;
}

void buffered_shrink(struct worker *worker)
{
    struct holder holder[VICTIMS];
    uint32_t count = 0;
    uint64_t goal = max_of(worker) - max_of(worker) / SLACK;
    if (!buffered_over(worker)) {
        return;
    }
    for (struct client *client = worker->clients; client != NULL; client = client->next) {
        note(holder, &count, client);
    }
    /* Exact from here on: a worker that is asked in vain says so by it, and the next one looks at home. */
    atomic_store_explicit(&worker->largest, count == 0 ? 0 : holder[0].bytes, memory_order_relaxed);
    struct worker *other = larger_elsewhere(worker, count == 0 ? 0 : holder[0].bytes);
    if (other != NULL) {
        worker_order(other, WORKER_SHRINK);
        return;
    }
    for (uint32_t i = 0; i < count && now_of(worker) > goal; i++) {
        struct client *client = holder[i].client;
        if (client->wire.source.fd >= 0 && client_held(client) > 0) { /* the end of one may be the end of others */
            tell(worker, &holder[i]);
            gateway_count_bound(worker->gateway, METRICS_BUFFERED_CUT);
            client_displace(client, "buffered", "more is waiting in this gateway than maxBuffered allows");
        }
    }
    if (count == VICTIMS && buffered_over(worker)) {
        loop_later(&worker->loop, &worker->shrink);
    }
}

void buffered_task(struct task *task)
{
    buffered_shrink(CONTAINER_OF(task, struct worker, shrink));
}
