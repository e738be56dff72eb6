/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "client.h"

#include "proxy/buffered.h"
#include "proxy/exchange/exchange.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/upstream.h"

#include "container.h"
#include "h2/h2.h"
#include "message/own.h"
#include "message/phrase.h"
#include "unfilled.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_HEADS  16    /* or then: requests that are answered at once, many to a read */
#define HEAD_MORE   4096u /* is read of a head that is too large already */
#define LINGER      (2 * BECALM_S)
#define GRACE       (1 * BECALM_S) /* the time to send a request, for clients that connected a moment before the end */
#define TUNNEL_IDLE (3600 * BECALM_S)  /* as Envoy's connections, and HAProxy's manual for tunnels */
#define STUCK       (5 * BECALM_S)     /* reads nothing of its answer for so long: it may be given up for another one */
#define READ_STEP   EXCHANGE_BODY_STEP /* the same at a rate, over more than STUCK, below these bytes ... */
#define READ_TIME   (60 * BECALM_S)    /* ... in this time: that of the slowest body that is taken */

_Static_assert(BECALM_HEADER_BYTES_MAX + HEAD_MORE <= WORKER_IN, "a head that is too large fits where it is read");

static void client_read(struct client *);

void client_moves(struct client *client)
{
    client->since = client->worker->loop.now;
}

/* Coming and going. */

static const struct becalm_settings *settings_of(const struct client *client)
{
    return client->worker->view->snapshot->settings;
}

/* Until the answer's head the engine times the call; after it silence counts, on either side. */
static becalm_ns patience_with_call(const struct client *client, const struct becalm_settings *settings)
{
    const struct exchange *exchange = client->stream.exchange;
    if (client_blocked(client) || exchange == NULL) {
        return settings->idle_timeout;
    }
    return exchange_patience(exchange);
}

/* How long it may go on without progress. */
static becalm_ns patience(const struct client *client)
{
    const struct becalm_settings *settings = settings_of(client);
    switch (client->state) {
    case CLIENT_WAITING:
        return CLIENT_PLACE_PATIENCE;
    case CLIENT_HEAD:
        return client->worker->closing ? GRACE : settings->header_timeout;
    case CLIENT_LINGER:
        return LINGER;
    case CLIENT_BUSY:
        return patience_with_call(client, settings);
    case CLIENT_TUNNEL:
        return client_blocked(client) || client->taker->ops->lopsided(client->taker)
                   ? settings->idle_timeout
                   : exchange_silence_or(settings->tunnel_idle_timeout, TUNNEL_IDLE, settings);
    case CLIENT_H2: /* its streams time themselves */
        return client_blocked(client) || client_h2_busy(client) == 0 ? settings->idle_timeout : BECALM_NEVER;
    case CLIENT_IDLE:
    case CLIENT_BODY:
        return settings->idle_timeout;
    }
    return settings->idle_timeout;
}

/* Timers are left armed while states change, and look again when they fire: this is how late they may be. */
static becalm_ns look_after(const struct client *client)
{
    const struct becalm_settings *settings = settings_of(client);
    becalm_ns least = becalm_ns_min(settings->header_timeout, settings->body_timeout);
    least = becalm_ns_min(least, exchange_stream_idle(settings));
    least = becalm_ns_min(least, exchange_silence_or(settings->tunnel_idle_timeout, TUNNEL_IDLE, settings));
    return becalm_ns_min(least, settings->idle_timeout);
}

static bool body_late(const struct client *client)
{
    return client->stream.exchange != NULL && exchange_body_due(client->stream.exchange) <= client->worker->loop.now;
}

struct becalm_text client_refusal(const struct client *client, struct draft *draft, char *room, uint32_t status,
                                  const char *reason, const char *what)
{
    struct worker *worker = client->worker;
    struct becalm_text body = own_draft(draft,
                                        &(struct own){
                                            .status = status,
                                            .error = status == 503 ? "connection_limit_reached" : "http_request_error",
                                            .reason = reason,
                                            .title = status_phrase(status),
                                            .detail = what,
                                            .retry_after = BECALM_NEVER,
                                            .random = becalm_rand_next(&worker->loop.random),
                                            .grpc_status = BECALM_GRPC_NONE,
                                            .date = worker_date(worker),
                                        },
                                        room);
    gateway_count_refusal(worker->gateway, status);
    if (log_wants_access(worker->log)) {
        char peer[ADDRESS_TEXT_MAX];
        log_access_line(worker->log, &(struct log_access){.wall = worker->loop.wall,
                                                          .peer = client_peer(client, peer, sizeof peer),
                                                          .status = status,
                                                          .body_bytes = body.length,
                                                          .reason = reason,
                                                          .detail = what});
    }
    return body;
}

/* False: the connection is broken. */
static bool put_refusal(struct client *client, uint32_t status, const char *reason, const char *what)
{
    struct draft draft;
    char room[OWN_ROOM];
    struct becalm_text body = client_refusal(client, &draft, room, status, reason, what);
    draft.close = true;
    return client_answer(client, &draft, body);
}

void client_refuse(struct client *client, uint32_t status, const char *reason, const char *what)
{
    if (put_refusal(client, status, reason, what)) {
        client_answered(client, false);
    } else {
        client_close(client);
    }
}

/* The request's body does not come, or too slowly. */
static void body_timed_out(struct client *client)
{
    gateway_count_bound(client->worker->gateway, METRICS_BODY_CUT);
    exchange_cancel(client->stream.exchange);
    client_refuse(client, 408, "body_timeout", "the request's body did not arrive in time");
}

/* A slow reader takes bytes from the kernel's buffer long before there is room for more of ours. */
static void note_reading(struct client *client)
{
    int left = 0;
    if (client_blocked(client) && ioctl(client->wire.source.fd, SIOCOUTQ, &left) == 0) {
        if ((uint32_t)left != client->unread) {
            client_moves(client);
        }
        client->unread = (uint32_t)left;
    }
}

static void timer_fires(struct timer *timer)
{
    struct client *client = CONTAINER_OF(timer, struct client, timer);
    struct loop *loop = &client->worker->loop;
    note_reading(client);
    becalm_ns limit = patience(client);
    becalm_ns due = becalm_ns_after(client->since, limit);
    if (client->stream.exchange != NULL) {
        due = becalm_ns_min(due, exchange_body_due(client->stream.exchange));
    }
    if (due > loop->now) {
        /* Nothing is due while the engine times the call, but look again: the state will change. */
        becalm_ns look = becalm_ns_after(loop->now, look_after(client));
        wheel_arm(&loop->wheel, timer, becalm_ns_min(due, look));
        return;
    }
    wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, LINGER));
    if (client->state == CLIENT_WAITING) {
        client->worker->places->late(client);
    } else if (wire_shakes(&client->wire)) {
        wire_shake_late(&client->wire);
        client_close(client);
    } else if (client->state == CLIENT_HEAD && client->worker->closing && bytes_left(&client->in) == 0) {
        client_close(client);
    } else if (client->state == CLIENT_HEAD && (client->only_h2 || wire_chose_h2(&client->wire))) {
        client_close(client); /* an answer in HTTP/1 would be nothing to it */
    } else if (client->state == CLIENT_HEAD) {
        client_refuse(client, 408, "header_timeout", "the request's head did not arrive in time");
    } else if (client->state == CLIENT_H2) {
        client_h2_idle(client);
    } else if (client->state == CLIENT_BODY || body_late(client)) {
        body_timed_out(client);
    } else if (client->state == CLIENT_BUSY && !client_blocked(client) && client->stream.exchange != NULL) {
        if (!exchange_stalled(client->stream.exchange)) {
            body_timed_out(client);
        }
    } else if (client->state == CLIENT_BUSY || client->state == CLIENT_TUNNEL) {
        client_abort(client);
    } else {
        client_close(client);
    }
}

/* The socket takes bytes again. */
static void unblock(struct client *client)
{
    if (!client_write(client, NULL, 0)) {
        client_close(client);
        return;
    }
    client->read_at = client_blocked(client) ? client->read_at : 0;
    if (!client_blocked(client) && client->state == CLIENT_H2) {
        client_h2_unblocked(client);
    } else if (!client_blocked(client) && client->state == CLIENT_BUSY) {
        if (client->stream.exchange != NULL) {
            exchange_unblocked(client->stream.exchange);
        } else {
            client_answered(client, !client->close_after);
        }
    }
}

static void ready(struct source *source, uint32_t events)
{
    struct client *client = CONTAINER_OF(source, struct client, wire.source);
    bool ends = (events & EPOLLRDHUP) != 0 && !wire_ended(&client->wire);
    wire_note(&client->wire, events);
    if ((events & (EPOLLERR | EPOLLHUP)) != 0 && client->state != CLIENT_LINGER && client->state != CLIENT_TUNNEL) {
        client_close(client); /* reset: the client will not read an answer */
        return;
    }
    if (client->state == CLIENT_TUNNEL) {
        client->taker->ops->ready(client->taker);
        return;
    }
    if ((events & EPOLLOUT) != 0 && client_blocked(client)) {
        unblock(client);
    }
    if (ends && client->wire.source.fd >= 0 && client->stream.exchange != NULL) {
        exchange_left(client->stream.exchange);
    }
    if (ends && client->wire.source.fd >= 0 && client->state == CLIENT_H2) {
        client_h2_left(client);
    }
    if (client->wire.source.fd >= 0 && wire_readable(&client->wire)) {
        client_read(client);
    }
}

static void next_request(struct task *);

void client_accept(struct worker *worker, int fd, const union address_socket *peer, const struct client_door *by)
{
    struct tls_context *tls = by->tls;
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        close(fd);
        return;
    }
    int on = 1;
    if (peer->any.sa_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    client->wire.source = (struct source){.ready = ready, .fd = fd};
    client->timer.fire = timer_fires;
    client->task.run = next_request;
    client->stream.ops = &client_h1_ops;
    client->asked = !by->h2;
    client->only_h2 = by->h2 && !by->h1;
    client->door = by->number;
    client->worker = worker;
    client_moves(client);
    client_enter(client, CLIENT_WAITING);
    origin_ip_set(&client->ip, peer);
    client->port = address_port(peer);
    client->trusted = trust_has(snapshot_trust(worker->view->snapshot, by->number), &peer->any);
    client->trusted_in = (uint32_t)worker->view->snapshot->number - (tls != NULL); /* its certificate is yet to come */
    client->next = worker->clients;
    client->link = &worker->clients;
    if (client->next != NULL) {
        client->next->link = &client->next;
    }
    worker->clients = client;
    atomic_fetch_add_explicit(&worker->gateway->accepted, 1, memory_order_relaxed);
    uint64_t identity = peer_of_socket(&worker->gateway->peer_key, fd, peer);
    if (loop_watch(&worker->loop, &client->wire.source) != 0 ||
        !crowd_join(&worker->crowd, &client->member, identity) ||
        (tls != NULL && !wire_tls_accept(&client->wire, tls, &worker->sealed))) {
        client_close(client);
        return;
    }
    wheel_arm(&worker->loop.wheel, &client->timer, becalm_ns_after(client->since, look_after(client)));
    worker->places->enter(client);
}

void client_admit(struct client *client)
{
    client_moves(client);
    client_enter(client, CLIENT_HEAD);  /* a new client sends soon */
    if (wire_readable(&client->wire)) { /* the request arrived while the client waited for its place */
        loop_later(&client->worker->loop, &client->task);
    }
}

void client_close(struct client *client)
{
    struct worker *worker = client->worker;
    if (client->stream.exchange != NULL) {
        struct exchange *exchange = client->stream.exchange;
        client->stream.exchange = NULL;
        exchange_cancel(exchange);
    }
    if (client->state == CLIENT_H2) {
        client_h2_free(client);
    } else if (client->state != CLIENT_TUNNEL) {
        upstream_disown(&client->own);
    } else if (client->taker != NULL) {
        client->taker->ops->free(client->taker);
        client->taker = NULL;
    }
    timer_disarm(&client->timer);
    loop_not_later(&worker->loop, &client->task);
    wire_free(&client->wire);
    buffered_free(worker, &client->in);
    buffered_free(worker, &client->wire.out);
    *client->link = client->next;
    if (client->next != NULL) {
        client->next->link = client->link;
    }
    worker->places->leave(client);
    if (client->member.group != NULL) {
        crowd_leave(&worker->crowd, &client->member);
    }
    loop_bury(&worker->loop, &client->wire.source);
}

void client_abort(struct client *client)
{
    wire_reset(&client->wire);
    client_close(client);
}

static bool stuck(struct client *client)
{
    note_reading(client);
    return client_blocked(client) && becalm_ns_since(client->worker->loop.now, client->since) > STUCK;
}

/* Bytes wait for it: does it take them at a rate that a slow line has? Not known when it is looked at first. */
static bool reads_slowly(struct client *client)
{
    uint32_t read;
    uint8_t now = (uint8_t)(client->worker->loop.now / BECALM_S);
    now = now == 0 ? 1 : now;
    if (!wire_taken(&client->wire, &read)) {
        return false;
    }
    if (client->read_at == 0 || read - client->read >= READ_STEP) {
        client->read_at = now;
        client->read = read;
    }
    becalm_ns age = becalm_ns_min((uint8_t)(now - client->read_at) * BECALM_S, READ_TIME);
    return age > STUCK && (read - client->read) * READ_TIME < READ_STEP * age;
}

static enum price price_of_call(struct client *client)
{
    const struct exchange *exchange = client->stream.exchange;
    bool slow = exchange != NULL && exchange_body_slow(exchange);
    return slow || stuck(client) || (client_blocked(client) && reads_slowly(client)) ? PRICE_SLOW : PRICE_BUSY;
}

static enum price price_of_h2(struct client *client)
{
    if (stuck(client)) {
        return PRICE_SLOW;
    }
    switch (client_h2_pace(client)) {
    case CLIENT_PACE_NONE: /* a request may have come a moment ago */
        return wire_peek(&client->wire) == WIRE_SPEAKS ? PRICE_BUSY : PRICE_IDLE;
    case CLIENT_PACE_UPLOADS:
        return PRICE_SLOW;
    case CLIENT_PACE_WAITS:
        return reads_slowly(client) ? PRICE_SLOW : PRICE_BUSY;
    case CLIENT_PACE_MOVES:
        return PRICE_BUSY;
    }
    return PRICE_BUSY;
}

enum price client_price(struct crowd_member *member, becalm_ns *since)
{
    struct client *client = CONTAINER_OF(member, struct client, member);
    *since = client->since;
    if (!client->placed) {
        return PRICE_BUSY; /* no other connection could use its place */
    }
    switch (client->state) {
    case CLIENT_LINGER:
        return PRICE_NOTHING;
    case CLIENT_IDLE:
    case CLIENT_HEAD:
        /* One that has just sent its first bytes of a request is at work. */
        return bytes_left(&client->in) == 0 && wire_peek(&client->wire) == WIRE_SPEAKS ? PRICE_BUSY : PRICE_IDLE;
    case CLIENT_BUSY:
        return price_of_call(client);
    case CLIENT_BODY:
        return exchange_body_slow(client->stream.exchange) ? PRICE_SLOW : PRICE_BUSY;
    case CLIENT_H2:
        return price_of_h2(client);
    case CLIENT_WAITING:
    case CLIENT_TUNNEL:
        return PRICE_BUSY;
    }
    return PRICE_BUSY;
}

void client_displace(struct client *client, const char *reason, const char *what)
{
    struct exchange *exchange = client->stream.exchange;
    bool answering = client_blocked(client) || (exchange != NULL && exchange->answer != ANSWER_NONE);
    if (answering) {
        client_abort(client);
        return;
    }
    if (client->state == CLIENT_H2) {
        client_h2_displace(client);
        return;
    }
    if (exchange != NULL) {
        exchange_cancel(exchange);
    }
    if (exchange != NULL || (client->state == CLIENT_HEAD && bytes_left(&client->in) > 0)) {
        put_refusal(client, 503, reason, what);
    }
    client_close(client);
}

void client_quiet(struct client *client)
{
    if (client->state == CLIENT_H2) {
        client_h2_drain(client);
        return;
    }
    if (client->state == CLIENT_IDLE || client->state == CLIENT_HEAD) {
        wire_again(&client->wire); /* a request may have come a moment ago: it is still answered */
        client_read(client);
    }
    if (client->wire.source.fd >= 0 && client->state == CLIENT_IDLE) {
        client_close(client);
    } else if (client->wire.source.fd >= 0 && client->state == CLIENT_HEAD) {
        client_moves(client);
        wheel_arm(&client->worker->loop.wheel, &client->timer, becalm_ns_after(client->since, GRACE));
    }
}

static bool name_trusted(void *data, enum tls_name_kind kind, struct becalm_text name)
{
    return trust_names(data, kind, name);
}

/* By its address, or by its certificate. */
static __attribute__((noinline)) bool look_trusted(const struct client *client, struct trust *trust)
{
    union address_socket peer;
    origin_ip_socket(&client->ip, &peer);
    return trust_has(trust, &peer.any) ||
           (trust_names_any(trust) && wire_peer_names(&client->wire, name_trusted, trust));
}

bool client_trusted(struct client *client)
{
    const struct snapshot *snapshot = client->worker->view->snapshot;
    if (client->trusted_in != (uint32_t)snapshot->number) { /* a reload may have changed `trust` */
        client->trusted_in = (uint32_t)snapshot->number;
        client->trusted = look_trusted(client, snapshot_trust(snapshot, client->door));
    }
    return client->trusted;
}

/* The first name counts: it is the one that its authority put there first. */
struct naming {
    const struct peer_key *key;
    uint64_t identity;
};

static bool take_name(void *data, enum tls_name_kind kind, struct becalm_text name)
{
    struct naming *naming = data;
    (void)kind;
    naming->identity = peer_of_name(naming->key, name);
    return true;
}

/* For `clientKey: certificate`; a client without a certificate is known by its address. */
static __attribute__((noinline)) uint64_t caller_named(const struct client *client)
{
    uint64_t *known = wire_word(&client->wire);
    if (*known == PEER_NOBODY) {
        struct naming naming = {&client->worker->gateway->peer_key, client_identity(client)};
        wire_peer_names(&client->wire, take_name, &naming);
        *known = naming.identity;
    }
    return *known;
}

uint64_t client_caller(const struct client *client)
{
    return client->wire.tls != NULL && client->worker->view->snapshot->client_certificate ? caller_named(client)
                                                                                          : client_identity(client);
}

void client_origin(struct client *client, struct origin *origin)
{
    origin->ip = client->ip;
    origin->tls = client->wire.tls != NULL;
    origin->trusted = client_trusted(client);
    origin->door = client->door;
}

void client_ends(const struct client *client, union address_socket *from, union address_socket *to)
{
    socklen_t length = sizeof *to;
    origin_ip_socket(&client->ip, from);
    if (from->any.sa_family == AF_INET6) {
        from->v6.sin6_port = client->port;
    }
    if (getsockname(client->wire.source.fd, &to->any, &length) != 0) {
        to->any.sa_family = AF_UNIX;
    }
}

uint64_t client_held(const struct client *client)
{
    uint64_t held = (uint64_t)client->in.size + client->wire.out.size;
    held += client->stream.exchange == NULL ? 0 : exchange_held(client->stream.exchange);
    held += client->state == CLIENT_H2 ? client_h2_held(client) : 0;
    return held +
           (client->state != CLIENT_TUNNEL || client->taker == NULL ? 0 : client->taker->ops->held(client->taker));
}

struct becalm_text client_peer(const struct client *client, char *text, size_t size)
{
    union address_socket peer;
    origin_ip_socket(&client->ip, &peer);
    return (struct becalm_text){text, address_write_ip(&peer, text, size)};
}

/* Writing. */

bool client_blocked(const struct client *client)
{
    return wire_blocked(&client->wire);
}

bool client_write(struct client *client, struct iovec *part, int count)
{
    ssize_t sent = buffered_write(client->worker, &client->wire, part, count);
    if (sent > 0 || count > 0) {
        client_moves(client);
    }
    return sent >= 0;
}

bool client_answer(struct client *client, const struct draft *draft, struct becalm_text body)
{
    struct text_sink out = {.at = client->worker->out, .size = WORKER_OUT};
    h1_put_answer(&out, draft, HTTP_1_1);
    struct iovec part[2] = {{out.at, out.length}, {(char *)(uintptr_t)body.at, body.length}};
    return !out.full && client_write(client, part, body.length > 0 ? 2 : 1);
}

/* Reading. */

/* More of the request's body: takes the bytes of *at .. end that belong to it. False: it was refused. */
static bool take_body(struct client *client, const char **at, const char *end)
{
    struct exchange *exchange = client->stream.exchange;
    for (;;) {
        struct h1_piece piece = h1_body_next(&exchange->body_in, at, end);
        struct becalm_text text = {piece.at, piece.length};
        bool fine = true;
        switch (piece.kind) {
        case H1_PIECE_NONE:
            return exchange_body_came(exchange, exchange->body_in.ended);
        case H1_PIECE_END:
            return exchange_body_came(exchange, true);
        case H1_PIECE_DATA:
            fine = exchange_body(exchange, text);
            break;
        case H1_PIECE_TRAILER:
            fine = exchange_trailers(exchange, text);
            break;
        case H1_PIECE_BAD:
            exchange_body_wrong(exchange, piece.what);
            return false;
        }
        if (!fine) {
            return false;
        }
    }
}

static void next_request(struct task *task)
{
    struct client *client = CONTAINER_OF(task, struct client, task);
    if (bytes_left(&client->in) > 0 || wire_readable(&client->wire)) {
        wire_again(&client->wire);
        client_read(client);
    }
}

static void linger(struct client *client)
{
    client_enter(client, CLIENT_LINGER);
    client_moves(client);
    wheel_arm(&client->worker->loop.wheel, &client->timer, becalm_ns_after(client->since, LINGER));
    wire_shut(&client->wire);
    if (wire_ended(&client->wire)) {
        client_close(client);
    }
}

void client_answered(struct client *client, bool keep)
{
    client->stream.exchange = NULL;
    client_moves(client);
    client->close_after = !keep;
    if (client_blocked(client)) {
        client_enter(client, CLIENT_BUSY); /* ready() comes back here */
        return;
    }
    if (!keep || (client->worker->closing && bytes_left(&client->in) == 0)) {
        linger(client);
        return;
    }
    client_enter(client, CLIENT_IDLE);
    if (bytes_left(&client->in) > 0 || wire_readable(&client->wire) || wire_ended(&client->wire)) {
        wire_again(&client->wire);
        loop_later(&client->worker->loop, &client->task);
    }
}

#define TLS_RECORD 0x16 /* the first byte of a client that speaks TLS; no head begins with it */

/* TLS came to a plain listener. */
static __attribute__((noinline)) void speaks_tls(struct client *client)
{
    char peer[ADDRESS_TEXT_MAX];
    gateway_tell_once(client->worker, GATEWAY_TLS_TO_PLAIN, "a client speaks TLS to an address without it",
                      "write http:// in the client, or tls: {certificates: [...]} for this address in listen",
                      client_peer(client, peer, sizeof peer));
    client_refuse(client, 400, "bad_request", "TLS was sent to an address that speaks plain HTTP; write http://");
}

/* A head that could not be parsed may be the beginning of HTTP/2. */
static __attribute__((noinline)) void note_http2(struct client *client, const char *at, size_t length)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n";
    char peer[ADDRESS_TEXT_MAX];
    if (length >= sizeof preface - 1 && memcmp(at, preface, sizeof preface - 1) == 0) {
        gateway_tell_once(
            client->worker, GATEWAY_HTTP2, "a client speaks HTTP/2, which is not spoken here",
            "let the client speak HTTP/1.1, or write protocols: [h2, h1] for this address in listen; with "
            "TLS the client must name h2 by ALPN",
            client_peer(client, peer, sizeof peer));
    }
}

void client_goodbye(struct client *client)
{
    client_answered(client, false);
}

/* Empty lines, then a head, or the beginning of one. Returns false if there is nothing more to be done now. */
static bool take_head(struct client *client, const char **at, const char *end)
{
    struct worker *worker = client->worker;
    struct h1_limits limits = {.head_bytes = (uint32_t)settings_of(client)->max_header_bytes};
    size_t blank = client->scanned <= 1 ? h1_leading_blank(*at, (size_t)(end - *at)) : 0; /* 1: a CR may have waited */
    if (blank > 0) {
        *at += blank;
        client->scanned = 0;
    }
    size_t length = (size_t)(end - *at);
    if (length == 0) {
        return false;
    }
    if (client->state == CLIENT_IDLE) {
        client_enter(client, CLIENT_HEAD);
        client_moves(client);
    }
    if (client->scanned == 0 && **at == TLS_RECORD) {
        *at = end;
        speaks_tls(client);
        return false;
    }
    size_t head_length = h1_head_end(*at, length, client->scanned);
    client->scanned = (uint32_t)length;
    if (head_length == 0 && length <= limits.head_bytes) {
        wheel_arm(&worker->loop.wheel, &client->timer, becalm_ns_after(client->since, patience(client)));
        return false;
    }
    client->scanned = 0;
    if (head_length == H2_PREFACE_HEAD && !client->asked && h2_preface(*at, head_length)) {
        if (!client_h2_begin(client)) {
            *at = end;
            client_close(client);
            return false;
        }
        return true; /* all of it is HTTP/2's */
    }
    struct h1_verdict verdict = h1_parse_request(*at, head_length == 0 ? length : head_length, &limits, &worker->head);
    if (verdict.kind != H1_OK) {
        note_http2(client, *at, length);
        *at = end;
        client_refuse(client, verdict.status, "bad_request", verdict.what);
        return false;
    }
    *at += head_length;
    client->asked = true;
    client->http_1_0 = worker->head.version == HTTP_1_0;
    client_enter(client, CLIENT_BODY);
    exchange_open(worker, &client->stream, &worker->head);
    if (client->stream.exchange != NULL) {
        h1_body_init(&client->stream.exchange->body_in, client->stream.exchange->head);
    }
    return true;
}

/* Uses the bytes up, as far as the state of things and the turn allow; returns how far. */
static const char *take(struct client *client, const char *at, const char *end, int *heads)
{
    int fd = client->wire.source.fd;
    while (at < end) {
        switch (client->state) {
        case CLIENT_IDLE:
        case CLIENT_HEAD:
            if (*heads == 0 || !take_head(client, &at, end)) {
                return at;
            }
            --*heads;
            break;
        case CLIENT_BODY:
            client_moves(client);
            if (!take_body(client, &at, end)) {
                return end;
            }
            break;
        case CLIENT_BUSY:
            if (client->stream.exchange == NULL || !exchange_wants_body(client->stream.exchange)) {
                return at;
            }
            client_moves(client);
            if (!take_body(client, &at, end)) {
                return end;
            }
            break;
        case CLIENT_H2:
            client_h2_feed(client, at, (size_t)(end - at));
            at = end;
            break;
        case CLIENT_WAITING:
        case CLIENT_TUNNEL:
            return at;
        case CLIENT_LINGER:
            return end;
        }
        if (client->wire.source.fd != fd) {
            return NULL; /* the client was closed in the loop above */
        }
    }
    return at;
}

static bool wants_bytes(const struct client *client)
{
    switch (client->state) {
    case CLIENT_IDLE:
    case CLIENT_HEAD:
    case CLIENT_BODY:
    case CLIENT_LINGER:
        return true;
    case CLIENT_H2:
        return !client_blocked(client); /* from a client that does not read its answer we read nothing */
    case CLIENT_BUSY:
        return client->stream.exchange != NULL && exchange_wants_body(client->stream.exchange);
    case CLIENT_WAITING:
    case CLIENT_TUNNEL:
        return false;
    }
    return false;
}

/* The peer has sent its last byte. */
static void read_ended(struct client *client)
{
    if (client->state == CLIENT_H2) {
        client_h2_left(client);
    } else if (client->state == CLIENT_BODY || (client->state == CLIENT_BUSY && wants_bytes(client))) {
        client_close(client); /* in the middle of a body */
    } else if (client->state != CLIENT_BUSY) {
        client_close(client);
    }
}

/* Bytes that a client has sent and that are still in the kernel. */
struct arrival {
    struct bytes owned; /* requests that came early, or nothing: then the rest is in the worker's buffer */
    const char *at;
    const char *end;
};

/* Plain HTTP came to a listener with TLS. */
static __attribute__((noinline)) void speaks_plainly(struct client *client)
{
    char peer[ADDRESS_TEXT_MAX];
    gateway_tell_once(client->worker, GATEWAY_PLAIN_TO_TLS, "a client speaks plain HTTP to an address with TLS",
                      "write https:// in the client, or an address without tls: in listen",
                      client_peer(client, peer, sizeof peer));
    client_refuse(client, 400, "bad_request", "plain HTTP was sent to an address that speaks TLS; write https://");
}

/* How much to read after the bytes that are there. For a head no more than the largest one, because the bytes after it
 * wait until it is answered; if that was not enough, a little more shows that it is too large. */
static size_t read_room(const struct client *client, size_t had)
{
    const struct worker *worker = client->worker;
    if (client->state == CLIENT_IDLE || client->state == CLIENT_HEAD) {
        return had < worker->head_room ? worker->head_room - had : HEAD_MORE;
    }
    size_t piece = buffered_piece(worker);
    return piece < WORKER_IN - had ? piece : WORKER_IN - had;
}

/* The first bytes are not HTTP/2's preface, and the listener speaks nothing else. */
static void note_no_preface(struct client *client, const char *at, size_t length)
{
    static const char preface[] = "PRI";
    char peer[ADDRESS_TEXT_MAX];
    if (memcmp(at, preface, length < sizeof preface - 1 ? length : sizeof preface - 1) != 0) {
        gateway_tell_once(
            client->worker, GATEWAY_ONLY_HTTP2, "a client does not speak HTTP/2 to an address that accepts only HTTP/2",
            "let the client speak HTTP/2 by prior knowledge, or write protocols: [h2, h1] for this address in listen",
            client_peer(client, peer, sizeof peer));
    }
}

/* With TLS the handshake has chosen the protocol; or the listener has only one. False: no memory. */
static bool begin_chosen(struct client *client, const char *at, size_t length)
{
    bool h2 = client->only_h2 || wire_chose_h2(&client->wire);
    client->asked = !h2;
    if (client->only_h2) {
        note_no_preface(client, at, length);
    }
    return !h2 || client_h2_begin(client);
}

/* Takes bytes that came early, or reads. False: there are none now, or the client is gone. */
static bool arrive(struct client *client, struct arrival *arrival)
{
    struct worker *worker = client->worker;
    size_t had = bytes_left(&client->in);
    if (had > 0 && client->scanned == 0) { /* there is enough to go on with */
        const char *at = bytes_at(&client->in);
        *arrival = (struct arrival){.owned = client->in, .at = at, .end = at + had};
        client->in = (struct bytes){0};
        return true;
    }
    if (had > 0) {
        memcpy(worker->in, bytes_at(&client->in), had);
    }
    size_t room = read_room(client, had);
    ssize_t got = wire_read(&client->wire, worker->in + had, room);
    if (got == WIRE_ALIEN) {
        speaks_plainly(client);
    } else if (got == WIRE_BROKEN && wire_failed(&client->wire) && client->state != CLIENT_LINGER) {
        linger(client); /* so that it can read TLS's word for it */
    } else if (got == WIRE_BROKEN) {
        client_close(client);
    } else if (got == WIRE_END) {
        read_ended(client);
    }
    if (got <= 0) {
        return false;
    }
    if (!client->asked && (client->wire.tls != NULL || client->only_h2) && client->state == CLIENT_HEAD &&
        !begin_chosen(client, worker->in + had, (size_t)got)) {
        client_close(client);
        return false;
    }
    buffered_free(worker, &client->in);
    *arrival = (struct arrival){.at = worker->in, .end = worker->in + had + got};
    return true;
}

/* Keeps the rest of the bytes for later. False: no memory. */
static bool keep_rest(struct client *client, struct arrival *arrival)
{
    if (arrival->at == arrival->end) {
        buffered_free(client->worker, &arrival->owned);
        return true;
    }
    if (arrival->owned.at == NULL) {
        return buffered_add(client->worker, &client->in, arrival->at, (size_t)(arrival->end - arrival->at));
    }
    arrival->owned.from = (uint32_t)(arrival->at - arrival->owned.at);
    client->in = arrival->owned;
    return true;
}

static void client_read(struct client *client)
{
    struct worker *worker = client->worker;
    int fd = client->wire.source.fd;
    int heads = TURN_HEADS;
    for (int turn = 0; wire_readable(&client->wire) && wants_bytes(client); turn++) {
        struct arrival arrival;
        if (turn == WIRE_TURN || heads == 0) {
            loop_later(&worker->loop, &client->task); /* others have their turn */
            return;
        }
        if (!arrive(client, &arrival)) {
            return;
        }
        arrival.at = take(client, arrival.at, arrival.end, &heads);
        if (arrival.at == NULL || client->wire.source.fd != fd) {
            buffered_free(worker, &arrival.owned);
            return;
        }
        if (!keep_rest(client, &arrival)) {
            client_close(client);
            return;
        }
        if (heads == 0 && bytes_left(&client->in) > 0) {
            wire_again(&client->wire);
        }
    }
}
