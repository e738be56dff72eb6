/* SPDX-License-Identifier: MIT */
#include "shrink.h"

#include "buffered.h"
#include "client/client.h"
#include "gateway_shared.h"

#include "container.h"

#define VICTIMS 64u             /* of one search */
#define TOLD    (10 * BECALM_S) /* between two lines in the log */
#define SLACK   32u             /* one part of so many is freed beyond the bound, so that not every buffer searches */

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
        {.key = "maxBuffered", .type = LOG_NUMBER, .number = buffered_max(worker)},
    };
    if (worker->shrink_told_at == 0 || becalm_ns_since(worker->loop.now, worker->shrink_told_at) >= TOLD) {
        worker->shrink_told_at = worker->loop.now;
        log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall,
                 "more than maxBuffered is waiting: connections with the largest buffers are cut", pairs,
                 sizeof pairs / sizeof pairs[0]);
    }
}

/* The other worker with the largest buffer, if that is larger than this worker's. NULL: this worker has the largest. */
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

void shrink(struct worker *worker)
{
    struct holder holder[VICTIMS];
    uint32_t count = 0;
    uint64_t goal = buffered_max(worker) - buffered_max(worker) / SLACK;
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
    for (uint32_t i = 0; i < count && buffered_now(worker) > goal; i++) {
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

void shrink_task(struct task *task)
{
    shrink(CONTAINER_OF(task, struct worker, shrink));
}
