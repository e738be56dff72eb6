/* SPDX-License-Identifier: MIT */
#include "upstream_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void upstream_not_connected(struct upstream *upstream, int error)
{
    struct host_stream *stream = upstream->stream;
    upstream->stream = NULL;
    upstream_close(upstream);
    tell_failed(stream, &(struct host_failure){.failure = BECALM_HTTP_CONNECT, .error = error});
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

/* TLS with it failed, or ended without the protocol that we need. */
static void unsecured(struct upstream *upstream, const char *why)
{
    struct host_stream *stream = upstream->stream;
    log_unsecured(upstream->host, why);
    upstream->stream = NULL;
    upstream_close(upstream);
    tell_failed(stream, &(struct host_failure){.failure = BECALM_HTTP_TLS});
}

/* The protocols that are offered to the host. */
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

/* The socket is connected: writes the PROXY protocol header first, if the host wants one. False: that failed, or the
 * stream that wanted the connection has gone, and no other client's stream may use it. */
static bool introduce(struct upstream *upstream)
{
    char header[PROXY_HEADER_WRITTEN];
    const struct host_stream *stream = upstream->stream;
    if (stream == NULL) {
        return false;
    }
    upstream->personal |= UPSTREAM_INTRODUCED;
    size_t length = stream->calls->introduces(stream, upstream->host->introduces, header);
    return send(upstream->wire.source.fd, header, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* An event of a connection that is being made. True: it is made. */
static bool connects(struct upstream *upstream, uint32_t events)
{
    bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
    bool secures = upstream->wire.tls != NULL;
    if (!secures && broken) {
        upstream_not_connected(upstream, socket_error(upstream->wire.source.fd));
        return false;
    }
    if (!secures && (events & EPOLLOUT) == 0) {
        return false;
    }
    if (!secures && upstream->host->introduces > 0 && !introduce(upstream)) {
        upstream_not_connected(upstream, ECONNRESET);
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
    case WIRE_LOST: /* without an alert: counts as a refused connection */
        upstream_not_connected(upstream, ECONNRESET);
        return false;
    case WIRE_UNSHAKEN:
        unsecured(upstream, wire_shake_why(&upstream->wire));
        return false;
    }
    return false;
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
        upstream_not_connected(upstream, ENOMEM);
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
        /* begin_protocol() has told the stream that wanted the connection. */
    } else if (stream == NULL && upstream->personal != 0) {
        upstream_close(upstream); /* the connection was opened for one client, which has gone */
    } else if (stream == NULL && upstream->h2 == NULL) {
        upstream_put(upstream); /* the stream that wanted it has gone: the new connection serves the next stream */
    } else if (stream != NULL) {
        stream->calls->accepted(stream);
        give(upstream, stream);
        stream->calls->connected(stream);
    }
    serve_later(host); /* one fewer is connecting */
    host->users--;
    upstream_host_free_if_unused(host);
}

void upstream_connecting(struct upstream *upstream, uint32_t events)
{
    if (connects(upstream, events)) {
        connected(upstream);
    }
}

struct upstream *upstream_connect(struct upstream_host *host, const struct host_stream *stream)
{
    struct loop *loop = loop_of(host);
    const union address_socket *address = &host->address;
    struct upstream *upstream = calloc(1, sizeof *upstream);
    if (upstream == NULL) {
        return NULL;
    }
    int on = 1;
    upstream->wire.source.ready = upstream_ready;
    upstream->wire.source.fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    upstream->host = host;
    upstream->state = UPSTREAM_CONNECTING_NOW;
    upstream->only_h1 = stream->only_h1 || host->wants_h1;
    upstream->timer.fire = upstream_timer_fires;
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
