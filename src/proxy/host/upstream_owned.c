/* SPDX-License-Identifier: MIT */
#include "upstream_internal.h"

static uint32_t count_of(const struct upstream *upstream)
{
    return upstream->owner.count == NULL ? 0 : *upstream->owner.count;
}

struct upstream *upstream_owned_to_close(const struct upstream_host *host)
{
    struct upstream *best = host->owned.oldest;
    for (struct upstream *each = best; each != NULL; each = each->previous) {
        if (count_of(each) > count_of(best)) {
            best = each;
        }
    }
    return best;
}

struct upstream *upstream_login(const struct host_owner *owner)
{
    struct upstream *upstream = *owner->own;
    while (upstream != NULL && (upstream->personal & UPSTREAM_LOGIN) == 0) {
        upstream = upstream->own_next;
    }
    return upstream;
}

/* Whether there is a place for it; a login takes that of the one before it, others that of the longest idle one. */
static bool make_place(const struct upstream *upstream, const struct host_owner *owner)
{
    const struct upstream_host *host = upstream->host;
    bool login = (upstream->personal & UPSTREAM_LOGIN) != 0;
    if (owner->own == NULL || (login && owner->count == NULL)) {
        return false;
    }
    struct upstream *other = login                                      ? upstream_login(owner)
                             : host->owned_count >= host->pool.max_idle ? host->owned.oldest
                                                                        : NULL;
    if (other != NULL) {
        upstream_close(other);
    }
    return true;
}

void upstream_own(struct upstream *upstream, struct host_owner owner)
{
    struct upstream_host *host = upstream->host;
    upstream->stream = NULL;
    if (wire_ended(&upstream->wire) || wire_left(&upstream->wire) || host->users == 0 || host->worker->closing ||
        !make_place(upstream, &owner)) {
        upstream_close(upstream);
        return;
    }
    upstream->owner = owner;
    upstream->own_next = *owner.own;
    if (upstream->own_next != NULL) {
        upstream->own_next->owner.own = &upstream->own_next;
    }
    *owner.own = upstream;
    wire_wait(&upstream->wire);
    owned_add(upstream);
    idle_watch(upstream);
    serve_later(host); /* the pool may now have one connection too many */
}

static void take(struct upstream *upstream)
{
    owned_remove(upstream);
    upstream->state = UPSTREAM_BUSY;
    upstream->reused = true;
}

bool upstream_get_own(struct upstream *upstream, struct host_stream *stream)
{
    if (!alive(upstream)) {
        upstream_close(upstream);
        return false;
    }
    take(upstream);
    stream->host = upstream->host;
    give(upstream, stream);
    return true;
}

struct upstream *upstream_take_introduced(const struct upstream_host *host, struct host_stream *stream)
{
    struct host_owner owner = stream->calls->owner(stream);
    for (struct upstream *each = owner.own == NULL ? NULL : *owner.own, *next; each != NULL; each = next) {
        next = each->own_next;
        if (each->host != host) {
            continue;
        }
        if (is_usable(each, stream->careful)) {
            take(each);
            return each;
        }
        upstream_destroy(each); /* the view has its host */
    }
    return NULL;
}

void upstream_disown(struct upstream **own)
{
    while (*own != NULL) {
        upstream_close(*own);
    }
}
