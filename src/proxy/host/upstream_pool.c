/* SPDX-License-Identifier: MIT */
#include "upstream_internal.h"

#include <errno.h>
#include <stdlib.h>

/* Times that the first stream in the queue waits for a descriptor: on a busy machine another worker is slow to close
 * connections. */
#define SQUEEZES 64u

static bool is_at(const struct upstream_host *host, const struct upstream_place *place)
{
    if (!address_equal(&host->address, place->address) || (host->tls == NULL) != (place->tls == NULL) ||
        host->protocol != place->protocol || host->introduces != place->introduces) {
        return false;
    }
    return place->tls == NULL || (host->tls->context == place->tls && strcmp(host->tls->name, place->name) == 0);
}

struct upstream_host *upstream_host_use(struct worker *worker, const struct upstream_place *place,
                                        const struct upstream_pool *pool)
{
    struct upstream_host *host = worker->hosts;
    while (host != NULL && !is_at(host, place)) {
        host = host->next;
    }
    if (host == NULL) {
        host = calloc(1, sizeof *host);
        if (host == NULL) {
            return NULL;
        }
        host->tls = place->tls == NULL ? NULL : wire_host_make(place->tls, place->name);
        if (place->tls != NULL && host->tls == NULL) {
            free(host);
            return NULL;
        }
        host->worker = worker;
        host->address = *place->address;
        host->protocol = place->protocol;
        host->introduces = place->introduces;
        host->shares = place->protocol == UPSTREAM_H2 || (place->protocol == UPSTREAM_AUTO && place->tls != NULL);
        host->last_waiting = &host->waiting;
        host->serve.run = upstream_serve_line;
        host->busy.fire = upstream_busy_fires;
        host->get = place->introduces > 0 ? upstream_get_introduced : upstream_get;
        host->next = worker->hosts;
        worker->hosts = host;
    }
    host->pool = *pool;
    host->users++;
    serve_later(host); /* there may be more room */
    return host;
}

void upstream_host_free_if_unused(struct upstream_host *host)
{
    if (host->users > 0 || host->count > 0) {
        return;
    }
    struct upstream_host **link = &host->worker->hosts;
    while (*link != host) {
        link = &(*link)->next;
    }
    *link = host->next;
    loop_not_later(loop_of(host), &host->serve);
    timer_disarm(&host->busy);
    wire_host_drop(host->tls);
    free(host);
}

void upstream_host_drop(struct upstream_host *host)
{
    if (host == NULL) {
        return;
    }
    host->users--;
    if (host->users == 0) {
        upstream_host_quiet(host); /* frees it with its last connection */
    } else {
        upstream_host_free_if_unused(host);
    }
}

static struct upstream *take_idle(struct upstream_host *host, bool careful)
{
    while (host->idle.latest != NULL) {
        struct upstream *upstream = host->idle.latest;
        if (is_usable(upstream, careful)) {
            idle_remove(upstream);
            upstream->state = UPSTREAM_BUSY;
            upstream->reused = true;
            return upstream;
        }
        upstream_destroy(upstream);
    }
    return NULL;
}

/* Half of the pool may be idle and owned by clients, so that a login that has begun can be ended; more than that gives
 * way to a stream that waits. A connection that only names its client is as good as the next one. */
static bool has_spare(const struct upstream_host *host)
{
    return host->idle.latest != NULL || host->owned_count > (host->introduces > 0 ? 0 : host->pool.max / 2);
}

/* The pool is full: of used connections, where a new one is wanted, or of connections that belong to other clients. */
static void make_room(struct upstream_host *host)
{
    if (has_spare(host)) {
        upstream_destroy(host->idle.oldest != NULL ? host->idle.oldest : upstream_owned_to_close(host));
    }
}

/* A connection that is shared and has room, for a request that may not be sent twice one that has nothing to say: that
 * could be a GOAWAY. NULL: none now. */
static struct upstream *find_shared(const struct upstream_host *host, const struct host_stream *stream)
{
    struct upstream *upstream = stream->dials || stream->only_h1 ? NULL : host->shared.latest;
    while (upstream != NULL && (host_h2_room(upstream) == 0 || (stream->careful && !host_h2_silent(upstream)))) {
        upstream = upstream->next;
    }
    return upstream;
}

/* Is another connection to be made for it? Not while one that will be shared is being made, or could have it soon. */
static bool may_dial(const struct upstream_host *host, const struct host_stream *stream)
{
    bool shares = host->shares && !stream->dials && !stream->only_h1;
    for (const struct upstream *each = shares ? host->shared.latest : NULL; each != NULL; each = each->next) {
        if (host_h2_room(each) > 0 || !host_h2_settled(each)) {
            return false;
        }
    }
    return host->connecting < (shares ? 1u : UPSTREAM_CONNECTING) && !timer_armed(&host->busy);
}

/* There is no descriptor for a connection. Idle clients give up theirs, but not now: some may be on the stack. False:
 * that would not help, so the stream and those behind it are refused at once. */
static bool wait_for_descriptor(struct upstream_host *host, struct host_stream *stream)
{
    struct loop *loop = loop_of(host);
    if (loop->now < host->barren_until) {
        return false;
    }
    if (host->squeezes == SQUEEZES) { /* others have taken all that was given up */
        upstream_barren(host);
        return false;
    }
    host->lacks_descriptor = true;
    upstream_line_up_first(host, stream);
    wheel_arm(&loop->wheel, &host->busy, becalm_ns_after(loop->now, host->squeezes == 0 ? 0 : UPSTREAM_BUSY_WAIT));
    host->squeezes++;
    return true;
}

static enum upstream_result get(struct upstream_host *host, struct host_stream *stream, bool in_turn)
{
    stream->host = host;
    if (host->waiting != NULL && !in_turn) {
        upstream_line_up(host, stream); /* behind those that came before */
        return UPSTREAM_LATER;
    }
    struct upstream *upstream = host->shared.latest == NULL ? NULL : find_shared(host, stream);
    if (upstream == NULL && !stream->fresh) {
        upstream = take_idle(host, stream->careful);
    }
    if (upstream != NULL) {
        give(upstream, stream);
        return UPSTREAM_READY;
    }
    if (host->count >= host->pool.max) {
        make_room(host);
    }
    if (host->count >= host->pool.max || !may_dial(host, stream)) {
        upstream_line_up(host, stream);
        return UPSTREAM_LATER;
    }
    upstream = upstream_connect(host, stream);
    if (upstream == NULL && errno == EAGAIN && host->address.any.sa_family == AF_UNIX) {
        upstream_line_up_first(host, stream); /* its backlog is full: it is busy, and this is not a refusal */
        wheel_arm(&loop_of(host)->wheel, &host->busy, becalm_ns_after(loop_of(host)->now, UPSTREAM_BUSY_WAIT));
        return UPSTREAM_LATER;
    }
    if (upstream == NULL && (errno == EMFILE || errno == ENFILE) && wait_for_descriptor(host, stream)) {
        return UPSTREAM_LATER;
    }
    if (upstream == NULL) {
        return UPSTREAM_REFUSED;
    }
    host->squeezes = 0;
    upstream->stream = stream;
    stream->upstream = upstream;
    return UPSTREAM_LATER;
}

enum upstream_result upstream_get(struct upstream_host *host, struct host_stream *stream)
{
    return get(host, stream, false);
}

/* One of its client's own needs no turn. */
static enum upstream_result get_introduced(struct upstream_host *host, struct host_stream *stream, bool in_turn)
{
    struct upstream *upstream = stream->fresh ? NULL : upstream_take_introduced(host, stream);
    if (upstream == NULL) {
        return get(host, stream, in_turn);
    }
    stream->host = host;
    give(upstream, stream);
    return UPSTREAM_READY;
}

enum upstream_result upstream_get_introduced(struct upstream_host *host, struct host_stream *stream)
{
    return get_introduced(host, stream, false);
}

enum upstream_result upstream_get_in_turn(struct upstream_host *host, struct host_stream *stream)
{
    return host->introduces > 0 ? get_introduced(host, stream, true) : get(host, stream, true);
}

/* The queue keeps its order. A stream that wants a new connection does not take an idle one; an idle one is closed to
 * make room for it. The streams behind it wait until its connect succeeds or fails. */
bool upstream_can_serve(const struct upstream_host *host, const struct host_stream *stream)
{
    bool can_connect = may_dial(host, stream) && (host->count < host->pool.max || has_spare(host));
    return can_connect || (host->idle.latest != NULL && !stream->fresh) || find_shared(host, stream) != NULL;
}

void upstream_put(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    upstream->stream = NULL;
    if (wire_ended(&upstream->wire) || wire_left(&upstream->wire) || host->users == 0 || host->worker->closing ||
        host->idle_count >= host->pool.max_idle) {
        upstream_close(upstream);
        return;
    }
    wire_wait(&upstream->wire);
    idle_add(upstream);
    idle_watch(upstream);
    serve_later(host);
}

void upstream_host_quiet(struct upstream_host *host)
{
    host->users++; /* stay until the end of this */
    while (host->idle.latest != NULL) {
        upstream_destroy(host->idle.latest);
    }
    while (host->introduces > 0 && host->owned.latest != NULL) {
        upstream_destroy(host->owned.latest);
    }
    for (struct upstream *upstream = host->shared.latest, *next; upstream != NULL; upstream = next) {
        next = upstream->next;
        host_h2_quiet(upstream);
    }
    for (struct upstream *upstream = host->dialing, *next; upstream != NULL; upstream = next) {
        next = upstream->next;
        if (upstream->stream == NULL) {
            upstream_destroy(upstream);
        }
    }
    host->users--;
    upstream_host_free_if_unused(host);
}
