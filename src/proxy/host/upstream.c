/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "upstream.h"

#include "proxy/buffered.h"
#include "proxy/worker.h"

#include "container.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUSY_WAIT (5 * BECALM_MS) /* before a full backlog is asked again */

static struct loop *loop_of(const struct upstream_host *host)
{
    return &host->worker->loop;
}

static void serve_line(struct task *);
static void busy_fires(struct timer *);

/* A place came free: the first in line gets it, but not now. The stream that gave it back may be in the middle of an
 * answer. */
static void serve_later(struct upstream_host *host)
{
    if (host->waiting != NULL) {
        loop_later(loop_of(host), &host->serve);
    }
}

static bool is_at(const struct upstream_host *host, const struct upstream_place *place)
{
    if (!address_equal(&host->address, place->address) || (host->tls == NULL) != (place->tls == NULL) ||
        host->protocol != place->protocol) {
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
        host->shares = place->protocol == UPSTREAM_H2 || (place->protocol == UPSTREAM_AUTO && place->tls != NULL);
        host->last_waiting = &host->waiting;
        host->serve.run = serve_line;
        host->busy.fire = busy_fires;
        host->get = upstream_get;
        host->next = worker->hosts;
        worker->hosts = host;
    }
    host->pool = *pool;
    host->users++;
    serve_later(host); /* there may be more room */
    return host;
}

static void host_free_if_unused(struct upstream_host *host)
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
        host_free_if_unused(host);
    }
}

/* The idle ones, and those with an owner: the latest used first, so that the others grow old and are closed. */

static void list_add(struct upstream_list *list, struct upstream *upstream)
{
    upstream->idle_since = loop_of(upstream->host)->now;
    upstream->previous = NULL;
    upstream->next = list->latest;
    *(list->latest == NULL ? &list->oldest : &list->latest->previous) = upstream;
    list->latest = upstream;
}

static void list_remove(struct upstream_list *list, struct upstream *upstream)
{
    *(upstream->previous == NULL ? &list->latest : &upstream->previous->next) = upstream->next;
    *(upstream->next == NULL ? &list->oldest : &upstream->next->previous) = upstream->previous;
    upstream->next = upstream->previous = NULL;
}

static void idle_add(struct upstream *upstream)
{
    upstream->state = UPSTREAM_IDLE;
    list_add(&upstream->host->idle, upstream);
    upstream->host->idle_count++;
}

static void idle_remove(struct upstream *upstream)
{
    list_remove(&upstream->host->idle, upstream);
    upstream->host->idle_count--;
}

static void owned_add(struct upstream *upstream)
{
    upstream->state = UPSTREAM_OWNED;
    list_add(&upstream->host->owned, upstream);
    upstream->host->owned_count++;
    (*upstream->owner.count)++;
}

static void owned_remove(struct upstream *upstream)
{
    list_remove(&upstream->host->owned, upstream);
    upstream->host->owned_count--;
    (*upstream->owner.count)--;
}

/* Those being connected: they go on when the stream that wanted them has left. */

static void dialing_add(struct upstream *upstream)
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

static void dialing_remove(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    *(upstream->previous == NULL ? &host->dialing : &upstream->previous->next) = upstream->next;
    if (upstream->next != NULL) {
        upstream->next->previous = upstream->previous;
    }
    upstream->next = upstream->previous = NULL;
    host->connecting--;
}

/* How long this one may be idle: as the policy says, and no longer than its host likes. */
static becalm_ns idle_limit(const struct upstream *upstream)
{
    becalm_ns limit = upstream->host->pool.idle;
    return upstream->keep_for > 0 && upstream->keep_for < limit ? upstream->keep_for : limit;
}

void upstream_keep_for(struct upstream *upstream, becalm_ns time)
{
    becalm_ns before =
        time > 2 * BECALM_S ? BECALM_S : time / 2; /* what is kept for a second can be used for half of it */
    upstream->keep_for = becalm_ns_max(1, time - before);
}

static void destroy(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    switch (upstream->state) {
    case UPSTREAM_CONNECTING_NOW:
        dialing_remove(upstream);
        break;
    case UPSTREAM_BUSY:
        break;
    case UPSTREAM_IDLE:
        idle_remove(upstream);
        break;
    case UPSTREAM_OWNED:
        owned_remove(upstream);
        break;
    case UPSTREAM_SHARED:
        list_remove(&host->shared, upstream);
        break;
    case UPSTREAM_LEAVING:
        break;
    }
    if (upstream->h2 != NULL) {
        host_h2_free(upstream);
    }
    if (upstream->owner.login != NULL) {
        *upstream->owner.login = NULL;
    }
    timer_disarm(&upstream->timer);
    wire_free(&upstream->wire);
    buffered_free(host->worker, &upstream->wire.out);
    host->count--;
    loop_bury(loop_of(host), &upstream->wire.source);
}

/* Who wanted the connection is told, if it is still there. */
static void tell_failed(struct host_stream *stream, const struct host_failure *failure)
{
    if (stream != NULL) {
        host_stream_over(stream);
        stream->calls->failed(stream, failure);
    }
}

/* It was not connected. */
static void not_connected(struct upstream *upstream, int error)
{
    struct host_stream *stream = upstream->stream;
    upstream->stream = NULL;
    upstream_close(upstream);
    tell_failed(stream, &(struct host_failure){.failure = BECALM_HTTP_CONNECT, .error = error});
}

/* One timer per connection: while connecting it is the timeout; later it is left armed and looks, when it fires,
 * whether the connection has been idle for long enough. */
static void timer_fires(struct timer *timer)
{
    struct upstream *upstream = CONTAINER_OF(timer, struct upstream, timer);
    struct upstream_host *host = upstream->host;
    struct loop *loop = loop_of(host);
    struct host_stream *stream = upstream->stream;
    switch (upstream->state) {
    case UPSTREAM_CONNECTING_NOW:
        wire_shake_late(&upstream->wire);
        not_connected(upstream, ETIMEDOUT);
        break;
    case UPSTREAM_IDLE:
    case UPSTREAM_OWNED:
        if (becalm_ns_since(loop->now, upstream->idle_since) >= idle_limit(upstream)) {
            upstream_close(upstream);
        } else {
            wheel_arm(&loop->wheel, timer, becalm_ns_after(upstream->idle_since, idle_limit(upstream)));
        }
        break;
    case UPSTREAM_BUSY:
        wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, idle_limit(upstream)));
        if (wire_ended(&upstream->wire) && stream != NULL) {
            wire_again(&upstream->wire);
            host_h1_ready(stream, 0);
        }
        break;
    case UPSTREAM_SHARED:
    case UPSTREAM_LEAVING:
        host_h2_time(upstream);
        break;
    }
}

/* Why the connection was not made. */
static __attribute__((noinline)) int socket_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error != 0 ? error : EIO;
}

/* TLS with the host has failed: not every call says so again. */
static __attribute__((noinline)) void log_unsecured(struct upstream_host *host, const char *why)
{
    struct loop *loop = loop_of(host);
    char text[ADDRESS_TEXT_MAX];
    if (host->rule == why && becalm_ns_since(loop->now, host->rule_at) < BECALM_S) {
        return;
    }
    host->rule = why;
    host->rule_at = loop->now;
    struct log_pair pairs[] = {
        {.key = "host", .type = LOG_TEXT, .text = {text, address_write(&host->address, text, sizeof text)}},
        {.key = "name", .type = LOG_TEXT, .text = {host->tls->name, strlen(host->tls->name)}},
        {.key = "why", .type = LOG_TEXT, .text = {why, strlen(why)}},
    };
    log_line(host->worker->log, BECALM_LOG_WARN, loop->wall, "TLS with a host failed", pairs,
             sizeof pairs / sizeof pairs[0]);
}

/* TLS with it failed, or ended without what we need. */
static void unsecured(struct upstream *upstream, const char *why)
{
    struct host_stream *stream = upstream->stream;
    log_unsecured(upstream->host, why);
    upstream->stream = NULL;
    upstream_close(upstream);
    tell_failed(stream, &(struct host_failure){.failure = BECALM_HTTP_TLS});
}

/* What the host may choose from. */
static enum wire_offer offers(const struct upstream *upstream)
{
    switch (upstream->host->protocol) {
    case UPSTREAM_AUTO:
        return upstream->only_h1 ? WIRE_OFFERS_H1 : WIRE_OFFERS_BOTH;
    case UPSTREAM_H1:
        return WIRE_OFFERS_H1;
    case UPSTREAM_H2:
        return WIRE_OFFERS_H2;
    }
    return WIRE_OFFERS_H1;
}

/* The socket is connected: TLS comes first, where the host has it. */
static enum wire_shake secure(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    if (host->tls == NULL) {
        return WIRE_SHAKEN;
    }
    if (upstream->wire.tls == NULL &&
        !wire_tls_connect(&upstream->wire, host->tls, offers(upstream), &host->worker->sealed)) {
        return WIRE_LOST;
    }
    return wire_shake(&upstream->wire);
}

/* An event of a connection that is being made. True: it is made. */
static bool connects(struct upstream *upstream, uint32_t events)
{
    bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
    bool secures = upstream->wire.tls != NULL;
    if (!secures && broken) {
        not_connected(upstream, socket_error(upstream->wire.source.fd));
        return false;
    }
    if (!secures && (events & EPOLLOUT) == 0) {
        return false;
    }
    enum wire_shake shake = secure(upstream);
    if (shake == WIRE_SHAKING && !broken) {
        return false;
    }
    switch (shake) {
    case WIRE_SHAKEN:
        return true;
    case WIRE_SHAKING:
    case WIRE_LOST: /* nobody said anything against us: as if it had not been there */
        not_connected(upstream, ECONNRESET);
        return false;
    case WIRE_UNSHAKEN:
        unsecured(upstream, wire_shake_why(&upstream->wire));
        return false;
    }
    return false;
}

/* The connection is the stream's from now on, or part of it is. */
static void give(struct upstream *upstream, struct host_stream *stream)
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

/* The connection is made: which protocol is it? False: it can't be spoken, and the stream that wanted it is told. */
static bool begin_protocol(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    bool h2 = host->tls == NULL ? host->protocol == UPSTREAM_H2 : wire_chose_h2(&upstream->wire);
    if (host->protocol == UPSTREAM_H2 && !h2) {
        unsecured(upstream, "the host does not speak HTTP/2");
        return false;
    }
    if (host->protocol == UPSTREAM_AUTO && !upstream->only_h1) {
        host->shares = h2;
    }
    if (h2 && !host_h2_begin(upstream)) {
        not_connected(upstream, ENOMEM);
        return false;
    }
    dialing_remove(upstream);
    if (!h2) {
        upstream->state = UPSTREAM_BUSY;
        return true;
    }
    upstream->stream = NULL;
    upstream->state = UPSTREAM_SHARED;
    list_add(&host->shared, upstream);
    return true;
}

/* The connection is made. */
static void connected(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    struct host_stream *stream = upstream->stream;
    wheel_arm(&loop_of(host)->wheel, &upstream->timer, becalm_ns_after(loop_of(host)->now, host->pool.idle));
    host->users++; /* stay until the end of this */
    if (!begin_protocol(upstream)) {
        /* The stream that wanted it knows. */
    } else if (stream == NULL && upstream->h2 == NULL) {
        upstream_put(upstream); /* the stream that wanted it has gone: it is a fresh one for the next */
    } else if (stream != NULL) {
        stream->calls->accepted(stream);
        give(upstream, stream);
        stream->calls->connected(stream);
    }
    serve_later(host); /* one fewer is connecting */
    host->users--;
    host_free_if_unused(host);
}

static void ready(struct source *source, uint32_t events)
{
    struct upstream *upstream = CONTAINER_OF(source, struct upstream, wire.source);
    struct host_stream *stream = upstream->stream;
    wire_note(&upstream->wire, events);
    switch (upstream->state) {
    case UPSTREAM_IDLE:
    case UPSTREAM_OWNED:
        if (wire_readable(&upstream->wire) && !wire_small_talk(&upstream->wire)) {
            upstream_close(upstream); /* closed by its peer, or saying what nobody asked */
        }
        break;
    case UPSTREAM_CONNECTING_NOW:
        if (connects(upstream, events)) {
            connected(upstream);
        }
        break;
    case UPSTREAM_BUSY:
        if (stream != NULL) {
            host_h1_ready(stream, events);
        }
        break;
    case UPSTREAM_SHARED:
    case UPSTREAM_LEAVING:
        host_h2_ready(upstream, events);
        break;
    }
}

static __attribute__((noinline)) struct upstream *upstream_connect(struct upstream_host *host,
                                                                   const struct host_stream *stream)
{
    struct loop *loop = loop_of(host);
    const union address_socket *address = &host->address;
    struct upstream *upstream = calloc(1, sizeof *upstream);
    if (upstream == NULL) {
        return NULL;
    }
    int on = 1;
    upstream->wire.source.ready = ready;
    upstream->wire.source.fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    upstream->host = host;
    upstream->state = UPSTREAM_CONNECTING_NOW;
    upstream->only_h1 = stream->only_h1 || host->wants_h1;
    upstream->timer.fire = timer_fires;
    if (upstream->wire.source.fd < 0) {
        goto fail;
    }
    if (address->any.sa_family != AF_UNIX) {
        setsockopt(upstream->wire.source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (connect(upstream->wire.source.fd, &address->any, address_length(address)) != 0 && errno != EINPROGRESS) {
        goto fail;
    }
    if (loop_watch(loop, &upstream->wire.source) != 0) {
        goto fail;
    }
    dialing_add(upstream);
    wheel_arm(&loop->wheel, &upstream->timer, becalm_ns_after(loop->now, stream->connect_timeout));
    return upstream;
fail:;
    int error = errno;
    if (upstream->wire.source.fd >= 0) {
        close(upstream->wire.source.fd);
    }
    free(upstream);
    errno = error;
    return NULL;
}

/* A pooled connection may have been closed by its peer a moment ago, with the event still to come. */
static bool alive(struct upstream *upstream)
{
    return wire_peek(&upstream->wire) == WIRE_QUIET;
}

static struct upstream *take_idle(struct upstream_host *host, bool careful)
{
    while (host->idle.latest != NULL) {
        struct upstream *upstream = host->idle.latest;
        bool late =
            upstream->keep_for > 0 && becalm_ns_since(loop_of(host)->now, upstream->idle_since) >= upstream->keep_for;
        if (!late && (!careful || alive(upstream))) {
            idle_remove(upstream);
            upstream->state = UPSTREAM_BUSY;
            upstream->reused = true;
            return upstream;
        }
        destroy(upstream);
    }
    return NULL;
}

/* Half of the pool may be idle and owned by clients, so that a login that has begun can be ended; more than that gives
 * way to whoever waits. */
static bool has_spare(const struct upstream_host *host)
{
    return host->idle.latest != NULL || host->owned_count > host->pool.max / 2;
}

/* The longest idle one of the client that has the most. It has to log in again, if it comes back. */
static __attribute__((noinline)) struct upstream *owned_to_close(const struct upstream_host *host)
{
    struct upstream *best = host->owned.oldest;
    for (struct upstream *each = best; each != NULL; each = each->previous) {
        if (*each->owner.count > *best->owner.count) {
            best = each;
        }
    }
    return best;
}

/* The pool is full: of used ones, where a fresh one is wanted, or of what nobody else may have. */
static void make_room(struct upstream_host *host)
{
    if (has_spare(host)) {
        destroy(host->idle.oldest != NULL ? host->idle.oldest : owned_to_close(host));
    }
}

static void line_up(struct upstream_host *host, struct host_stream *stream)
{
    stream->calls->waits(stream);
    stream->next = NULL;
    stream->link = host->last_waiting;
    *host->last_waiting = stream;
    host->last_waiting = &stream->next;
}

/* Back to where it was. */
static void line_up_first(struct upstream_host *host, struct host_stream *stream)
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

/* A connection that is shared and has room, for a request that may not be sent twice one that has nothing to say: that
 * could be a GOAWAY. NULL: none now. */
static struct upstream *find_shared(const struct upstream_host *host, const struct host_stream *stream)
{
    struct upstream *upstream = stream->dials || stream->only_h1 ? NULL : host->shared.latest;
    while (upstream != NULL &&
           (host_h2_room(upstream) == 0 || (stream->careful && wire_peek(&upstream->wire) != WIRE_QUIET))) {
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

static enum upstream_result get(struct upstream_host *host, struct host_stream *stream, bool in_turn)
{
    stream->host = host;
    if (host->waiting != NULL && !in_turn) {
        line_up(host, stream); /* behind those that came before */
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
        line_up(host, stream);
        return UPSTREAM_LATER;
    }
    upstream = upstream_connect(host, stream);
    if (upstream == NULL && errno == EAGAIN && host->address.any.sa_family == AF_UNIX) {
        line_up_first(host, stream); /* its backlog is full: it is busy, and has refused nobody */
        wheel_arm(&loop_of(host)->wheel, &host->busy, becalm_ns_after(loop_of(host)->now, BUSY_WAIT));
        return UPSTREAM_LATER;
    }
    if (upstream == NULL) {
        return UPSTREAM_REFUSED;
    }
    upstream->stream = stream;
    stream->upstream = upstream;
    return UPSTREAM_LATER;
}

enum upstream_result upstream_get(struct upstream_host *host, struct host_stream *stream)
{
    return get(host, stream, false);
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

/* What is being made for it goes on, for the next one who wants it, or until its timeout. */
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

/* The line keeps its order: who wants a fresh connection does not take an idle one, which only makes room for it, and
 * those behind it wait for the next that is connected, or is not. */
static bool can_serve(const struct upstream_host *host, const struct host_stream *stream)
{
    bool can_connect = may_dial(host, stream) && (host->count < host->pool.max || has_spare(host));
    return can_connect || (host->idle.latest != NULL && !stream->fresh) || find_shared(host, stream) != NULL;
}

static void serve_line(struct task *task)
{
    struct upstream_host *host = CONTAINER_OF(task, struct upstream_host, serve);
    host->users++; /* stay until the end of this */
    while (host->waiting != NULL && can_serve(host, host->waiting)) {
        struct host_stream *stream = host->waiting;
        leave(stream);
        stream->calls->goes(stream);
        if (host->idle.latest == NULL && host->shared.latest == NULL && stream->calls->has_no_host(stream)) {
            tell_failed(stream, &(struct host_failure){.failure = BECALM_HTTP_CONNECT, .error = ECONNREFUSED});
            continue; /* as those before it were told */
        }
        switch (get(host, stream, true)) {
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
    host_free_if_unused(host);
}

static void busy_fires(struct timer *timer)
{
    struct upstream_host *host = CONTAINER_OF(timer, struct upstream_host, busy);
    serve_later(host);
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
    if (upstream->keep_for > 0) {
        becalm_ns close_at = becalm_ns_after(upstream->idle_since, idle_limit(upstream));
        if (upstream->timer.at > close_at) { /* else it looks again when it fires */
            wheel_arm(&loop_of(host)->wheel, &upstream->timer, close_at);
        }
    }
    serve_later(host);
}

enum upstream_fate upstream_fate(const struct upstream *upstream, size_t written)
{
    int fd = upstream->wire.source.fd;
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    int waiting = 0; /* bytes that are not acknowledged, or not even sent */
    if (upstream->host->address.any.sa_family == AF_UNIX || ioctl(fd, SIOCOUTQ, &waiting) != 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || waiting < 0 || (size_t)waiting != written) {
        return UPSTREAM_FATE_UNKNOWN;
    }
    return info.tcpi_state == TCP_CLOSE ? UPSTREAM_FATE_UNREAD : UPSTREAM_FATE_OPEN;
}

#define LOOK_AGAIN (20 * BECALM_MS)

void upstream_look_again(struct upstream *upstream)
{
    struct loop *loop = loop_of(upstream->host);
    wheel_arm(&loop->wheel, &upstream->timer, becalm_ns_after(loop->now, LOOK_AGAIN));
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

void upstream_shared_ended(struct upstream *upstream, bool last)
{
    upstream->reused = true;
    if (last) {
        upstream->idle_since = loop_of(upstream->host)->now;
    }
    serve_later(upstream->host);
}

void upstream_shared_room(struct upstream *upstream)
{
    serve_later(upstream->host);
}

void upstream_shared_leave(struct upstream *upstream)
{
    list_remove(&upstream->host->shared, upstream);
    upstream->state = UPSTREAM_LEAVING;
    serve_later(upstream->host);
}

bool upstream_goes_h1(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    if (host->protocol != UPSTREAM_AUTO) {
        return false;
    }
    host->wants_h1 = true;
    host->shares = false;
    return true;
}

void upstream_close(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    destroy(upstream);
    serve_later(host);
    host_free_if_unused(host);
}

void upstream_host_quiet(struct upstream_host *host)
{
    host->users++; /* stay until the end of this */
    while (host->idle.latest != NULL) {
        destroy(host->idle.latest);
    }
    for (struct upstream *upstream = host->shared.latest, *next; upstream != NULL; upstream = next) {
        next = upstream->next;
        host_h2_quiet(upstream);
    }
    for (struct upstream *upstream = host->dialing, *next; upstream != NULL; upstream = next) {
        next = upstream->next;
        if (upstream->stream == NULL) {
            destroy(upstream);
        }
    }
    host->users--;
    host_free_if_unused(host);
}
