/* SPDX-License-Identifier: MIT */
#include "upstream_internal.h"

#include "container.h"

#include <errno.h>

#define BARREN (100 * BECALM_MS) /* before clients are asked for a descriptor again */

void upstream_line_up(struct upstream_host *host, struct host_stream *stream)
{
    stream->calls->waits(stream);
    stream->next = NULL;
    stream->link = host->last_waiting;
    *host->last_waiting = stream;
    host->last_waiting = &stream->next;
}

void upstream_line_up_first(struct upstream_host *host, struct host_stream *stream)
{
    stream->next = host->waiting;
    stream->link = &host->waiting;
    if (host->waiting != NULL) {
        host->waiting->link = &stream->next;
    } else {
        host->last_waiting = &stream->next;
    }
    host->waiting = stream;
}

static void leave(struct host_stream *stream)
{
    *stream->link = stream->next;
    if (stream->next != NULL) {
        stream->next->link = stream->link;
    } else {
        stream->host->last_waiting = stream->link;
    }
    stream->link = NULL;
}

/* Streams without a connection. */

static bool none_send(struct host_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    (void)stream, (void)draft, (void)part;
    return false;
}

static bool none_more(struct host_stream *stream, const struct stream_part *part)
{
    (void)stream, (void)part;
    return false;
}

static bool none_blocked(const struct host_stream *stream)
{
    (void)stream;
    return false;
}

static size_t none_held(const struct host_stream *stream)
{
    (void)stream;
    return 0;
}

static void none_resume(struct host_stream *stream)
{
    (void)stream;
}

/* The connection that is being opened for it goes on, for the next stream in the queue, or until its timeout. */
static void none_drop(struct host_stream *stream)
{
    if (stream->link != NULL) {
        leave(stream);
    }
    if (stream->upstream != NULL) {
        stream->upstream->stream = NULL;
        stream->upstream = NULL;
    }
}

const struct host_stream_ops host_stream_none = {
    .send = none_send,
    .more = none_more,
    .blocked = none_blocked,
    .held = none_held,
    .resume = none_resume,
    .drop = none_drop,
};

void upstream_serve_line(struct task *task)
{
    struct upstream_host *host = CONTAINER_OF(task, struct upstream_host, serve);
    host->users++; /* stay until the end of this */
    while (host->waiting != NULL && upstream_can_serve(host, host->waiting)) {
        struct host_stream *stream = host->waiting;
        leave(stream);
        stream->calls->goes(stream);
        if (host->idle.latest == NULL && host->shared.latest == NULL && stream->calls->has_no_host(stream)) {
            tell_failed(stream, &(struct host_failure){.failure = BECALM_HTTP_CONNECT, .error = ECONNREFUSED});
            continue; /* as those before it were told */
        }
        switch (upstream_get_in_turn(host, stream)) {
        case UPSTREAM_READY:
            stream->calls->connected(stream);
            break;
        case UPSTREAM_LATER:
            break;
        case UPSTREAM_REFUSED:
            tell_failed(stream,
                        &(struct host_failure){.failure = BECALM_HTTP_CONNECT, .error = errno, .untried = true});
            break;
        }
    }
    host->users--;
    upstream_host_free_if_unused(host);
}

void upstream_barren(struct upstream_host *host)
{
    host->squeezes = 0;
    host->barren_until = becalm_ns_after(loop_of(host)->now, BARREN);
}

void upstream_busy_fires(struct timer *timer)
{
    struct upstream_host *host = CONTAINER_OF(timer, struct upstream_host, busy);
    host->users++; /* stay until the end of this */
    enum worker_squeeze squeezed = host->lacks_descriptor ? host->worker->squeeze(host->worker) : SQUEEZE_DONE;
    host->lacks_descriptor = false;
    if (squeezed == SQUEEZE_NOTHING) {
        upstream_barren(host);
    }
    if (squeezed == SQUEEZE_SOON) { /* by then the other worker has closed some: if none, it is asked again */
        wheel_arm(&loop_of(host)->wheel, timer, becalm_ns_after(loop_of(host)->now, UPSTREAM_BUSY_WAIT));
    } else {
        serve_later(host);
    }
    host->users--;
    upstream_host_free_if_unused(host);
}
