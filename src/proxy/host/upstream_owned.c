/* SPDX-License-Identifier: MIT */
#include "upstream_internal.h"

struct upstream *upstream_owned_to_close(const struct upstream_host *host)
{
    struct upstream *best = host->owned.oldest;
    for (struct upstream *each = best; each != NULL; each = each->previous) {
        if (*each->owner.count > *best->owner.count) {
            best = each;
        }
    }
    return best;
}

void upstream_own(struct upstream *upstream, struct host_owner owner)
{
    struct upstream_host *host = upstream->host;
    upstream->stream = NULL;
    if (wire_ended(&upstream->wire) || wire_left(&upstream->wire) || host->users == 0 || host->worker->closing) {
        upstream_close(upstream);
        return;
    }
    if (*owner.login != upstream) {
        upstream_disown(*owner.login);
    }
    upstream->owner = owner;
    *owner.login = upstream;
    wire_wait(&upstream->wire);
    owned_add(upstream);
    serve_later(host); /* it may be one too many */
}

bool upstream_get_own(struct upstream *upstream, struct host_stream *stream)
{
    if (upstream->state != UPSTREAM_OWNED) {
        return false;
    }
    if (!alive(upstream)) {
        upstream_close(upstream);
        return false;
    }
    owned_remove(upstream);
    upstream->state = UPSTREAM_BUSY;
    upstream->reused = true;
    stream->host = upstream->host;
    give(upstream, stream);
    return true;
}

void upstream_disown(struct upstream *upstream)
{
    if (upstream == NULL) {
        return;
    }
    if (upstream->state == UPSTREAM_OWNED) {
        upstream_close(upstream);
    } else {
        *upstream->owner.login = NULL;
        upstream->owner = (struct host_owner){0};
    }
}
