/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_HOST_UPSTREAM_INTERNAL_H
#define BECALM_PROXY_HOST_UPSTREAM_INTERNAL_H

/* Shared by the files of the connection pool. upstream.c is one connection; upstream_connect.c opens it;
 * upstream_pool.c keeps the connections to one host and finds one for a stream; upstream_line.c is the queue of streams
 * that wait for a connection; upstream_owned.c has connections that belong to one client. Functions on the path of a
 * healthy request are inline. */

#include "upstream.h"

#include "proxy/worker.h"

#include <string.h>

/* Before a full backlog is asked again, or another worker has given up descriptors. */
#define UPSTREAM_BUSY_WAIT (5 * BECALM_MS)

static inline struct loop *loop_of(const struct upstream_host *host)
{
    return &host->worker->loop;
}

/* A connection came free: the first stream in the queue gets it later, because the stream that gave it back may be in
 * the middle of an answer. */
static inline void serve_later(struct upstream_host *host)
{
    if (host->waiting != NULL) {
        loop_later(loop_of(host), &host->serve);
    }
}

/* Lists of idle connections, and of those with an owner: the most recently used first, so that connections that are not
 * needed grow old and are closed. */

static inline void list_add(struct upstream_list *list, struct upstream *upstream)
{
    upstream->idle_since = loop_of(upstream->host)->now;
    upstream->previous = NULL;
    upstream->next = list->latest;
    *(list->latest == NULL ? &list->oldest : &list->latest->previous) = upstream;
    list->latest = upstream;
}

static inline void list_remove(struct upstream_list *list, struct upstream *upstream)
{
    *(upstream->previous == NULL ? &list->latest : &upstream->previous->next) = upstream->next;
    *(upstream->next == NULL ? &list->oldest : &upstream->next->previous) = upstream->previous;
    upstream->next = upstream->previous = NULL;
}

static inline void idle_add(struct upstream *upstream)
{
    upstream->state = UPSTREAM_IDLE;
    list_add(&upstream->host->idle, upstream);
    upstream->host->idle_count++;
}

static inline void idle_remove(struct upstream *upstream)
{
    list_remove(&upstream->host->idle, upstream);
    upstream->host->idle_count--;
}

static inline void owned_add(struct upstream *upstream)
{
    upstream->state = UPSTREAM_OWNED;
    list_add(&upstream->host->owned, upstream);
    upstream->host->owned_count++;
    if (upstream->owner.count != NULL) {
        (*upstream->owner.count)++;
    }
}

static inline void owned_remove(struct upstream *upstream)
{
    list_remove(&upstream->host->owned, upstream);
    upstream->host->owned_count--;
    if (upstream->owner.count != NULL) {
        (*upstream->owner.count)--;
    }
    *upstream->owner.own = upstream->own_next;
    if (upstream->own_next != NULL) {
        upstream->own_next->owner.own = upstream->owner.own;
    }
    upstream->own_next = NULL;
    upstream->owner = (struct host_owner){0};
}

/* Connections that are being opened: they go on even if the stream that wanted them has left. */

static inline void dialing_add(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    upstream->next = host->dialing;
    if (host->dialing != NULL) {
        host->dialing->previous = upstream;
    }
    host->dialing = upstream;
    host->count++;
    host->connecting++;
}

static inline void dialing_remove(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    *(upstream->previous == NULL ? &host->dialing : &upstream->previous->next) = upstream->next;
    if (upstream->next != NULL) {
        upstream->next->previous = upstream->previous;
    }
    upstream->next = upstream->previous = NULL;
    host->connecting--;
}

/* How long this connection may be idle: pool.idle, or its host's Keep-Alive timeout if that is less. */
static inline becalm_ns idle_limit(const struct upstream *upstream)
{
    becalm_ns limit = upstream->host->pool.idle;
    return upstream->keep_for > 0 && upstream->keep_for < limit ? upstream->keep_for : limit;
}

/* Arms the timer that closes an idle connection, in time for its host's Keep-Alive timeout. */
static inline void idle_watch(struct upstream *upstream)
{
    if (upstream->keep_for > 0) {
        becalm_ns close_at = becalm_ns_after(upstream->idle_since, idle_limit(upstream));
        if (upstream->timer.at > close_at) { /* else it checks again when it fires */
            wheel_arm(&loop_of(upstream->host)->wheel, &upstream->timer, close_at);
        }
    }
}

/* Will its host have closed it by now? */
static inline bool is_late(const struct upstream *upstream)
{
    return upstream->keep_for > 0 &&
           becalm_ns_since(loop_of(upstream->host)->now, upstream->idle_since) >= upstream->keep_for;
}

/* A pooled connection may have been closed by its peer a moment ago, with the event still to come. */
static inline bool alive(struct upstream *upstream)
{
    return wire_peek(&upstream->wire) == WIRE_QUIET;
}

/* May it be used for another request? Bytes that came before that request are no answer to it, even if their event is
 * handled later. */
static inline bool is_usable(struct upstream *upstream, bool careful)
{
    return !is_late(upstream) && ((!careful && !upstream->wire.source.due) || alive(upstream));
}

/* Tells the stream that wanted the connection, if it is still there. */
static inline void tell_failed(struct host_stream *stream, const struct host_failure *failure)
{
    if (stream != NULL) {
        host_stream_over(stream);
        stream->calls->failed(stream, failure);
    }
}

/* Gives the connection to the stream; with HTTP/2, one of its streams. */
static inline void give(struct upstream *upstream, struct host_stream *stream)
{
    stream->upstream = upstream;
    if (upstream->h2 != NULL) {
        host_h2_open(stream);
        return;
    }
    upstream->stream = stream;
    stream->ops = &host_h1_ops;
    memset(&stream->h1, 0, sizeof stream->h1);
}

/* ---- upstream.c ---- */

/* Removes the connection from its list and closes it. Unlike upstream_close(), this function neither serves the queue
 * nor frees the host. */
void upstream_destroy(struct upstream *);
/* Handlers of its socket and its timer. */
void upstream_ready(struct source *, uint32_t events);
void upstream_timer_fires(struct timer *);

/* ---- upstream_connect.c ---- */

/* Begins a connection for a stream. NULL: it could not even be tried, and errno says why. */
struct upstream *upstream_connect(struct upstream_host *, const struct host_stream *);
/* An event of a connection that is being made. */
void upstream_connecting(struct upstream *, uint32_t events);
/* The connect failed: closes the connection, and tells the stream that wanted it. */
void upstream_not_connected(struct upstream *, int error);

/* ---- upstream_pool.c ---- */

void upstream_host_free_if_unused(struct upstream_host *);
/* Could the first stream in the queue get a connection now? */
bool upstream_can_serve(const struct upstream_host *, const struct host_stream *);
/* As upstream_get(), for the first stream in the queue. */
enum upstream_result upstream_get_in_turn(struct upstream_host *, struct host_stream *);

/* ---- upstream_line.c ---- */

void upstream_line_up(struct upstream_host *, struct host_stream *);
/* Puts it back at the head of the queue. */
void upstream_line_up_first(struct upstream_host *, struct host_stream *);
void upstream_serve_line(struct task *);
void upstream_busy_fires(struct timer *);
/* No client can give up its descriptor: for a while streams that need one are refused at once. */
void upstream_barren(struct upstream_host *);

/* ---- upstream_owned.c ---- */

/* The longest idle connection of the client that has the most. That client has to log in again for its next request. */
struct upstream *upstream_owned_to_close(const struct upstream_host *);
/* Takes a connection that the stream's client owns; NULL: there is none. */
struct upstream *upstream_take_introduced(const struct upstream_host *, struct host_stream *);

#endif
