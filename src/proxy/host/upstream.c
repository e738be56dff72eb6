/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "upstream_internal.h"

#include "proxy/buffered.h"

#include "container.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define LOOK_AGAIN (20 * BECALM_MS)

void upstream_keep_for(struct upstream *upstream, becalm_ns time)
{
    becalm_ns before = time > 2 * BECALM_S
                           ? BECALM_S
                           : time / 2; /* a connection that the host keeps for a second may be used for half of it */
    upstream->keep_for = becalm_ns_max(1, time - before);
}

void upstream_destroy(struct upstream *upstream)
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
    timer_disarm(&upstream->timer);
    wire_free(&upstream->wire);
    buffered_free(host->worker, &upstream->wire.out);
    host->count--;
    loop_bury(loop_of(host), &upstream->wire.source);
}

void upstream_close(struct upstream *upstream)
{
    struct upstream_host *host = upstream->host;
    upstream_destroy(upstream);
    serve_later(host);
    upstream_host_free_if_unused(host);
}

/* One timer per connection: while connecting it is the timeout; later it is left armed and looks, when it fires,
 * whether the connection has been idle for long enough. */
void upstream_timer_fires(struct timer *timer)
{
    struct upstream *upstream = CONTAINER_OF(timer, struct upstream, timer);
    struct upstream_host *host = upstream->host;
    struct loop *loop = loop_of(host);
    struct host_stream *stream = upstream->stream;
    switch (upstream->state) {
    case UPSTREAM_CONNECTING_NOW:
        wire_shake_late(&upstream->wire);
        upstream_not_connected(upstream, ETIMEDOUT);
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

void upstream_ready(struct source *source, uint32_t events)
{
    struct upstream *upstream = CONTAINER_OF(source, struct upstream, wire.source);
    struct host_stream *stream = upstream->stream;
    wire_note(&upstream->wire, events);
    switch (upstream->state) {
    case UPSTREAM_IDLE:
    case UPSTREAM_OWNED:
        if (wire_readable(&upstream->wire) && !wire_small_talk(&upstream->wire)) {
            upstream_close(upstream); /* closed by its peer, or it has sent bytes without a request */
        }
        break;
    case UPSTREAM_CONNECTING_NOW:
        upstream_connecting(upstream, events);
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

void upstream_look_again(struct upstream *upstream)
{
    struct loop *loop = loop_of(upstream->host);
    wheel_arm(&loop->wheel, &upstream->timer, becalm_ns_after(loop->now, LOOK_AGAIN));
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
