/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tunnel.h"

#include "buffered.h"
#include "exchange.h"
#include "gateway_shared.h"
#include "host/upstream.h"
#include "websocket.h"

#include "container.h"
#include "message/answer_head.h"

#include <stdlib.h>
#include <strings.h>

struct tunnel {
    struct wire far;  /* first */
    struct task task; /* goes on, after others had their turn */
    struct client *client;
    bool far_shut; /* we told it that we won't */
    bool client_shut;
    uint64_t host_key; /* whose place it has */
    bool websocket;
    struct websocket_frames out; /* of a websocket: what has gone to the far end, and to the client */
    struct websocket_frames in;
    bool far_told; /* that we go: what comes for it now is dropped */
    bool client_told;
};

bool tunnel_place_take(struct exchange *exchange)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    struct gateway *gateway = exchange->worker->gateway;
    uint32_t max = settings->max_tunnels > 0 ? settings->max_tunnels : (settings->max_connections + 1) / 2;
    exchange->tunnel_place = atomic_fetch_add_explicit(&gateway->tunnels, 1, memory_order_relaxed) < max;
    if (!exchange->tunnel_place) {
        atomic_fetch_sub_explicit(&gateway->tunnels, 1, memory_order_relaxed);
        gateway_count_bound(gateway, METRICS_TUNNELS_REFUSED);
    }
    return exchange->tunnel_place;
}

void tunnel_place_give(struct exchange *exchange)
{
    if (exchange->tunnel_place) {
        exchange->tunnel_place = false;
        atomic_fetch_sub_explicit(&exchange->worker->gateway->tunnels, 1, memory_order_relaxed);
    }
}

bool tunnel_host_take(struct attempt *attempt)
{
    const struct exchange *exchange = attempt->exchange;
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    struct gateway *gateway = exchange->worker->gateway;
    const union address_socket *address = &attempt->host->address;
    uint32_t pool = settings->pool_max_per_host > 0 ? settings->pool_max_per_host : UPSTREAM_USUAL;
    uint32_t max = settings->max_tunnels_per_host > 0 ? settings->max_tunnels_per_host : pool;
    uint64_t key = peer_hash(&gateway->peer_key, address, address_length(address));
    if (!tally_take(&gateway->host_tunnels, key, max)) {
        gateway_count_bound(gateway, METRICS_HOST_TUNNELS_REFUSED);
        return false;
    }
    attempt->tunnel_key = key;
    attempt->tunnel_place = true;
    return true;
}

void tunnel_host_give(struct attempt *attempt)
{
    if (attempt->tunnel_place) {
        attempt->tunnel_place = false;
        tally_give(&attempt->exchange->worker->gateway->host_tunnels, attempt->tunnel_key);
    }
}

void tunnel_free(struct tunnel *tunnel)
{
    loop_not_later(&tunnel->client->worker->loop, &tunnel->task);
    struct gateway *gateway = tunnel->client->worker->gateway;
    wire_free(&tunnel->far);
    buffered_free(tunnel->client->worker, &tunnel->far.out);
    atomic_fetch_sub_explicit(&gateway->tunnels, 1, memory_order_relaxed);
    tally_give(&gateway->host_tunnels, tunnel->host_key);
    loop_bury(&tunnel->client->worker->loop, &tunnel->far.source);
}

bool tunnel_lopsided(const struct tunnel *tunnel)
{
    return wire_blocked(&tunnel->far) || wire_over(&tunnel->far) || wire_ended(&tunnel->client->wire);
}

uint64_t tunnel_held(const struct tunnel *tunnel)
{
    return tunnel->far.out.size;
}

/* False: broken. */
static bool send_far(struct tunnel *tunnel, const char *at, size_t length)
{
    struct iovec part = {(char *)(uintptr_t)at, length};
    return length == 0 || buffered_write(tunnel->client->worker, &tunnel->far, &part, 1) >= 0;
}

static bool flush_far(struct tunnel *tunnel)
{
    struct worker *worker = tunnel->client->worker;
    ssize_t sent = wire_blocked(&tunnel->far) ? buffered_write(worker, &tunnel->far, NULL, 0) : 0;
    if (sent > 0) {
        client_moves(tunnel->client);
    }
    return sent >= 0;
}

static bool pass_out(struct tunnel *tunnel, const char *at, size_t length)
{
    if (tunnel->websocket) {
        websocket_follow(&tunnel->out, at, length);
    }
    return tunnel->far_told || send_far(tunnel, at, length);
}

static bool pass_in(struct tunnel *tunnel, char *at, size_t length)
{
    if (tunnel->websocket) {
        websocket_follow(&tunnel->in, at, length);
    }
    return tunnel->client_told || client_write(tunnel->client, &(struct iovec){at, length}, 1);
}

/* Tells each side of a websocket that we go, once and between two of its frames: then it knows that it may come back
 * elsewhere, and does not take the end for a failure. False: broken. */
static bool say_goodbye(struct tunnel *tunnel)
{
    struct client *client = tunnel->client;
    char frame[WEBSOCKET_CLOSE_MAX];
    if (!tunnel->client_told && !client_blocked(client) && !tunnel->client_shut && websocket_between(&tunnel->in)) {
        struct iovec part = {frame, websocket_write_close(frame, WEBSOCKET_GOING_AWAY, NULL)};
        tunnel->client_told = true;
        if (!client_write(client, &part, 1)) {
            return false;
        }
    }
    if (!tunnel->far_told && !wire_blocked(&tunnel->far) && !tunnel->far_shut && websocket_between(&tunnel->out)) {
        uint32_t mask = (uint32_t)becalm_rand_next(&client->worker->loop.random);
        tunnel->far_told = true;
        return send_far(tunnel, frame, websocket_write_close(frame, WEBSOCKET_GOING_AWAY, &mask));
    }
    return true;
}

/* Client to far end, as far as it goes. False: broken. */
static bool pump_out(struct tunnel *tunnel)
{
    struct client *client = tunnel->client;
    struct worker *worker = client->worker;
    for (int turn = 0; wire_readable(&client->wire) && !wire_blocked(&tunnel->far); turn++) {
        if (turn == WIRE_TURN) {
            loop_later(&worker->loop, &tunnel->task);
            return true;
        }
        ssize_t got = wire_read(&client->wire, worker->in, buffered_piece(worker));
        if (got == WIRE_BROKEN) {
            return false;
        }
        client_moves(client);
        if (got > 0 && !pass_out(tunnel, worker->in, (size_t)got)) {
            return false;
        }
    }
    bool ended = tunnel->far_told || wire_over(&client->wire);
    if (ended && !wire_blocked(&tunnel->far) && !tunnel->far_shut) {
        tunnel->far_shut = true;
        wire_shut(&tunnel->far);
    }
    return true;
}

/* Far end to client. False: broken. */
static bool pump_in(struct tunnel *tunnel)
{
    struct client *client = tunnel->client;
    struct worker *worker = client->worker;
    for (int turn = 0; wire_readable(&tunnel->far) && !client_blocked(client); turn++) {
        if (turn == WIRE_TURN) {
            loop_later(&worker->loop, &tunnel->task);
            return true;
        }
        ssize_t got = wire_read(&tunnel->far, worker->in, buffered_piece(worker));
        if (got == WIRE_BROKEN) {
            return false;
        }
        client_moves(client);
        if (got > 0 && !pass_in(tunnel, worker->in, (size_t)got)) {
            return false;
        }
    }
    if ((wire_over(&tunnel->far) || tunnel->client_told) && !client_blocked(client) && !tunnel->client_shut) {
        tunnel->client_shut = true;
        wire_shut(&client->wire);
    }
    return true;
}

static void pump(struct tunnel *tunnel)
{
    struct client *client = tunnel->client;
    bool fine = flush_far(tunnel) && (!client_blocked(client) || client_write(client, NULL, 0)) && pump_out(tunnel) &&
                pump_in(tunnel);
    if (fine && tunnel->websocket && client->worker->leaving) {
        fine = say_goodbye(tunnel) && pump_out(tunnel) && pump_in(tunnel);
    }
    bool told = tunnel->far_told || tunnel->client_told; /* then both are heard to their end, so that none is reset */
    if (!fine || (tunnel->far_shut && tunnel->client_shut &&
                  (!told || (wire_ended(&client->wire) && wire_over(&tunnel->far))))) {
        client_close(client);
    }
}

void tunnel_leave(struct tunnel *tunnel)
{
    pump(tunnel);
}

static void go_on(struct task *task)
{
    pump(CONTAINER_OF(task, struct tunnel, task));
}

void tunnel_ready(struct tunnel *tunnel, uint32_t events)
{
    (void)events; /* the client has noted that it is readable */
    pump(tunnel);
}

static void far_ready(struct source *source, uint32_t events)
{
    struct tunnel *tunnel = CONTAINER_OF(source, struct tunnel, far.source);
    wire_note(&tunnel->far, events);
    pump(tunnel);
}

/* The answer to the client: 101 with the host's fields and the first bytes behind them, or CONNECT's. */
static bool put_answer(struct client *client, const struct head *head, struct becalm_text behind)
{
    static const char established[] = "Connection established";
    struct draft draft;
    draft_begin(&draft, NULL, 0);
    draft.status = head == NULL ? 200 : 101;
    draft.phrase = head == NULL ? text_of(established) : head_phrase(head);
    if (head != NULL) {
        draft.passed = head;
        draft.upgrade = head_find(head, FIELD_UPGRADE);
        answer_head_add(&draft, &(struct answer_head){.passes = true, .passed = head->version});
    }
    return client_answer(client, &draft, behind);
}

static bool is_websocket(struct becalm_text protocol)
{
    return protocol.length == 9 && strncasecmp(protocol.at, "websocket", 9) == 0;
}

void tunnel_open(struct exchange *exchange, struct attempt *attempt, const struct head *head, struct becalm_text behind)
{
    struct client *client = exchange->stream->ops->connection(exchange->stream);
    struct loop *loop = &exchange->worker->loop;
    struct host_stream *host = &attempt->stream;
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    struct becalm_outcome outcome = {.kind = BECALM_OUTCOME_OK, .status = attempt->status};
    bool fine = tunnel != NULL;
    BECALM_ASSERT(client != NULL); /* only a call that holds a key outlives its client, and a tunnel holds none */
    if (fine) {
        host->ops->take(host, &tunnel->far); /* with what the host did not take yet */
        tunnel->client = client;
        tunnel->far.source.ready = far_ready;
        tunnel->task.run = go_on;
        tunnel->host_key = attempt->tunnel_key; /* both places are the tunnel's from now on */
        exchange->tunnel_place = attempt->tunnel_place = false;
        wire_again(&tunnel->far);
        tunnel->websocket = head != NULL && is_websocket(head_find(head, FIELD_UPGRADE));
        if (tunnel->websocket) {
            websocket_follow(&tunnel->in, behind.at, behind.length);
        }
        fine = put_answer(client, head, behind);
    } else {
        host->ops->drop(host);
    }
    upstream_disown(client->login);
    exchange->status = attempt->status;
    answer_enter(exchange, ANSWER_TUNNEL);
    client->tunnel = tunnel;
    client_enter(client, CLIENT_TUNNEL);
    /* What the client sent early goes first. */
    fine = fine && pass_out(tunnel, bytes_at(&client->in), bytes_left(&client->in));
    buffered_free(client->worker, &client->in);
    exchange_attempt_ended(exchange, attempt->slot, &outcome);
    if (!fine || loop_watch(loop, &tunnel->far.source) != 0) {
        client_close(client);
        return;
    }
    wire_again(&client->wire);
    pump(tunnel);
}
