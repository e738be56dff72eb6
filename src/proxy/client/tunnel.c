/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tunnel.h"

#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/upstream.h"
#include "proxy/websocket.h"

#include "container.h"
#include "message/answer_head.h"

#include <stdlib.h>
#include <strings.h>

struct tunnel {
    struct wire far; /* first */
    struct client_taker taker;
    struct task task; /* goes on, after others had their turn */
    struct client *client;
    bool far_shut; /* our FIN to the far end was sent */
    bool client_shut;
    uint64_t host_key; /* the host in whose maxTunnelsPerHost the tunnel is counted */
    bool websocket;
    struct websocket_frames out; /* of a websocket: frames that went to the far end, and to the client */
    struct websocket_frames in;
    bool far_told; /* has got our close frame: later bytes for it are dropped */
    bool client_told;
    bool broken; /* before it began */
};

static struct tunnel *tunnel_of(const struct client_taker *taker)
{
    return CONTAINER_OF(taker, struct tunnel, taker);
}

static void end(struct client_taker *taker)
{
    struct tunnel *tunnel = tunnel_of(taker);
    struct worker *worker = tunnel->client->worker;
    loop_not_later(&worker->loop, &tunnel->task);
    wire_free(&tunnel->far);
    buffered_free(worker, &tunnel->far.out);
    atomic_fetch_sub_explicit(&worker->gateway->tunnels, 1, memory_order_relaxed);
    tally_give(&worker->gateway->host_tunnels, tunnel->host_key);
    loop_bury(&worker->loop, &tunnel->far.source);
}

static bool lopsided(const struct client_taker *taker)
{
    const struct tunnel *tunnel = tunnel_of(taker);
    return wire_blocked(&tunnel->far) || wire_over(&tunnel->far) || wire_ended(&tunnel->client->wire);
}

static uint64_t held(const struct client_taker *taker)
{
    return tunnel_of(taker)->far.out.size;
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

static void go_on(struct task *task)
{
    pump(CONTAINER_OF(task, struct tunnel, task));
}

static void ready(struct client_taker *taker)
{
    pump(tunnel_of(taker));
}

static void begin(struct client_taker *taker)
{
    struct tunnel *tunnel = tunnel_of(taker);
    if (tunnel->broken || loop_watch(&tunnel->client->worker->loop, &tunnel->far.source) != 0) {
        client_close(tunnel->client);
        return;
    }
    wire_again(&tunnel->client->wire);
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

static const struct client_taker_ops ops = {
    .begin = begin,
    .ready = ready,
    .leave = ready,
    .lopsided = lopsided,
    .held = held,
    .free = end,
};

bool tunnel_open(struct client *client, const struct stream_tunnel *plan)
{
    struct worker *worker = client->worker;
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    upstream_disown(&client->own);
    client->taker = tunnel == NULL ? NULL : &tunnel->taker;
    client_enter(client, CLIENT_TUNNEL);
    if (tunnel == NULL) {
        plan->host->ops->drop(plan->host);
        return false;
    }
    plan->host->ops->take(plan->host, &tunnel->far); /* including bytes that the host has not read yet */
    tunnel->taker.ops = &ops;
    tunnel->client = client;
    tunnel->far.source.ready = far_ready;
    tunnel->task.run = go_on;
    tunnel->host_key = plan->host_key;
    wire_again(&tunnel->far);
    tunnel->websocket = plan->head != NULL && is_websocket(head_find(plan->head, FIELD_UPGRADE));
    if (tunnel->websocket) {
        websocket_follow(&tunnel->in, plan->behind.at, plan->behind.length);
    }
    /* Bytes that the client sent early go first. */
    tunnel->broken = !put_answer(client, plan->head, plan->behind) ||
                     !pass_out(tunnel, bytes_at(&client->in), bytes_left(&client->in));
    buffered_free(worker, &client->in);
    return true;
}
