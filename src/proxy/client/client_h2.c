/* SPDX-License-Identifier: MIT */
#include "client.h"

#include "proxy/buffered.h"
#include "proxy/exchange/exchange.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/h2_room.h"
#include "proxy/host/upstream.h"

#include "container.h"
#include "message/own.h"

#include <stdlib.h>
#include <string.h>

#define PASS_FROM    (16u * 1024)   /* bytes of a body are written without a copy */
#define GOODBYE_WAIT (5 * BECALM_S) /* at most, for the requests that were on their way at the first GOAWAY */

struct stream {
    struct client_stream side; /* first: the part that its exchange knows */
    struct client_h2 *h2;
    struct h2_stream *stream; /* NULL: it is over for the peer */
    struct stream *next;
    struct stream **link;
    struct timer timer; /* left armed: when it fires, `since` decides whether a timeout is over */
    struct task task;   /* goes on with the request's body */
    struct bytes in;    /* of the body: bytes that the exchange does not want yet */
    struct bytes trailers;
    becalm_ns since; /* the latest progress */
    uint32_t unread; /* bytes of the answer that waited when the timer looked last */
    bool ended;      /* the request has come to its end */
    struct loop_given given;
};

struct client_h2 {
    struct client *client;
    struct h2_session *session;
    struct task task;   /* writes the queued frames */
    struct timer going; /* the steps of going away */
    struct timer late;  /* our SETTINGS are not acknowledged */
    struct stream *streams;
    struct upstream *own; /* idle connections to hosts that are this client's, see struct host_owner */
    uint32_t count;
    size_t counted; /* bytes of answers that wait, as maxBuffered knows them */
    bool said;      /* that we go: the next step is the last */
    bool broken;    /* its socket takes nothing any more */
};

static struct stream *stream_of(const struct client_stream *side)
{
    return CONTAINER_OF((struct client_stream *)(uintptr_t)side, struct stream, side);
}

static struct worker *worker_of(const struct stream *stream)
{
    return stream->h2->client->worker;
}

static void stream_close(struct stream *, uint32_t code);

static bool is_blocked(const struct stream *stream)
{
    return stream->stream != NULL && h2_blocked(stream->stream);
}

/* ---- the connection ---- */

static void count_held(struct client_h2 *h2)
{
    size_t held = h2_held(h2->session);
    buffered_changed(h2->client->worker, h2->counted, held);
    h2->counted = held;
    if (held == 0 && !client_blocked(h2->client)) {
        h2->client->read_at = 0; /* there is nothing that it could read */
    }
}

static void write_later(struct client_h2 *h2)
{
    loop_later(&h2->client->worker->loop, &h2->task);
}

void client_h2_free(struct client *client)
{
    struct client_h2 *h2 = client->h2;
    while (h2->streams != NULL) {
        stream_close(h2->streams, H2_CANCEL);
    }
    upstream_disown(&h2->own);
    loop_not_later(&client->worker->loop, &h2->task);
    timer_disarm(&h2->going);
    timer_disarm(&h2->late);
    buffered_changed(client->worker, h2->counted, 0);
    h2_session_free(h2->session);
    loop_free_later(&client->worker->loop, h2);
    client->h2 = NULL;
}

/* Writes all that there is to be said, as far as the socket takes it. False: the connection is closed. */
static bool write_out(struct client_h2 *h2)
{
    struct client *client = h2->client;
    struct h2_room *room = client->worker->h2;
    while (!client_blocked(client)) {
        size_t length = h2_write(h2->session, room->out, sizeof room->out);
        if (length == 0 && !h2->broken) {
            break;
        }
        if (h2->broken || !client_write(client, &(struct iovec){room->out, length}, 1)) {
            client_close(client);
            return false;
        }
    }
    count_held(h2);
    return true;
}

/* The log line about a connection that was ended because of its peer's behaviour. */
static void tell_end(const struct client *client, enum h2_end end)
{
    char peer[ADDRESS_TEXT_MAX];
    const char *word = h2_end_word(end);
    const struct log_pair pairs[] = {
        {.key = "peer", .type = LOG_TEXT, .text = client_peer(client, peer, sizeof peer)},
        {.key = "why", .type = LOG_TEXT, .text = {word, strlen(word)}},
    };
    struct worker *worker = client->worker;
    if (becalm_ns_since(worker->loop.now, worker->h2->told_at) < BECALM_S && worker->h2->told_at != 0) {
        return; /* a crowd of them does not fill the log */
    }
    worker->h2->told_at = worker->loop.now;
    log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall, "a connection that speaks HTTP/2 was ended", pairs,
             sizeof pairs / sizeof pairs[0]);
}

/* No more frames will be queued: the written ones go out, then the connection ends. */
static void say_goodbye(struct client_h2 *h2)
{
    struct client *client = h2->client;
    enum h2_end end = h2_ended(h2->session);
    gateway_count_h2_end(client->worker->gateway, end);
    if (end > H2_END_GOAWAY && log_wants(client->worker->log, BECALM_LOG_WARN)) {
        tell_end(client, end);
    }
    if (write_out(h2)) {
        client_h2_free(client);
        client_goodbye(client);
    }
}

static void task_runs(struct task *task)
{
    struct client_h2 *h2 = CONTAINER_OF(task, struct client_h2, task);
    if (write_out(h2) &&
        (h2_over(h2->session) || (wire_over(&h2->client->wire) && h2_stream_count(h2->session) == 0)) &&
        !client_blocked(h2->client)) {
        say_goodbye(h2);
    }
}

void client_h2_unblocked(struct client *client)
{
    task_runs(&client->h2->task);
}

void client_h2_feed(struct client *client, const char *bytes, size_t length)
{
    struct client_h2 *h2 = client->h2; /* bytes alone are no progress: a head may come one by one */
    if (h2_feed(h2->session, bytes, length, client->worker->loop.now)) {
        write_later(h2);
    } else {
        say_goodbye(h2);
    }
}

/* The second step: from here on no new stream is taken. */
static void go_away(struct client_h2 *h2)
{
    timer_disarm(&h2->going);
    h2_goaway(h2->session, H2_NO_ERROR);
    write_later(h2);
}

/* The first step: a GOAWAY that still accepts requests on their way, and a PING. All requests that the client sent
 * before it saw the GOAWAY arrive before its answer to the PING. A client that does not answer has GOODBYE_WAIT. */
static void going_fires(struct timer *timer)
{
    struct client_h2 *h2 = CONTAINER_OF(timer, struct client_h2, going);
    struct loop *loop = &h2->client->worker->loop;
    if (h2->said) {
        go_away(h2);
        return;
    }
    h2->said = true;
    h2_going(h2->session);
    wheel_arm(&loop->wheel, &h2->going, becalm_ns_after(loop->now, GOODBYE_WAIT));
    write_later(h2);
}

/* A peer that does not read our SETTINGS can't keep to them. */
static void late_fires(struct timer *timer)
{
    struct client_h2 *h2 = CONTAINER_OF(timer, struct client_h2, late);
    h2_unacknowledged(h2->session);
    say_goodbye(h2);
}

static void on_acknowledged(void *owner)
{
    struct client_h2 *h2 = owner;
    timer_disarm(&h2->late);
}

static void on_pong(void *owner)
{
    struct client_h2 *h2 = owner;
    if (h2->said) {
        go_away(h2);
    }
}

/* Clients that leave come back elsewhere, so they are told at random moments of the delay. */
void client_h2_drain(struct client *client)
{
    struct client_h2 *h2 = client->h2;
    struct worker *worker = client->worker;
    becalm_ns delay = worker->closing ? 0 : worker->view->snapshot->settings->drain_delay;
    if (!h2->said) {
        becalm_ns wait = delay == 0 ? 0 : becalm_rand_next(&worker->loop.random) % delay;
        wheel_arm(&worker->loop.wheel, &h2->going, becalm_ns_after(worker->loop.now, wait));
    }
}

void client_h2_idle(struct client *client)
{
    struct client_h2 *h2 = client->h2;
    if (client_blocked(client) || h2_stream_count(h2->session) > 0) {
        client_abort(client); /* its peer does not read */
        return;
    }
    h2_terminate(h2->session, H2_NO_ERROR);
    say_goodbye(h2);
}

void client_h2_left(struct client *client)
{
    struct stream *next;
    for (struct stream *stream = client->h2->streams; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->side.exchange != NULL) {
            exchange_left(stream->side.exchange);
        }
    }
    write_later(client->h2);
}

uint32_t client_h2_busy(const struct client *client)
{
    return client->h2->count;
}

enum client_pace client_h2_pace(const struct client *client)
{
    const struct client_h2 *h2 = client->h2;
    bool waits = h2_held(h2->session) > 0 || client_blocked(client); /* or the last bytes of an answer do */
    bool uploads = false;
    for (const struct stream *stream = h2->streams; stream != NULL; stream = stream->next) {
        bool slow = stream->side.exchange != NULL && exchange_body_slow(stream->side.exchange);
        if (!slow && !is_blocked(stream)) {
            return CLIENT_PACE_MOVES;
        }
        uploads |= slow;
    }
    return waits ? CLIENT_PACE_WAITS : uploads ? CLIENT_PACE_UPLOADS : CLIENT_PACE_NONE;
}

void client_h2_displace(struct client *client)
{
    h2_terminate(client->h2->session, H2_NO_ERROR);
    gateway_count_h2_end(client->worker->gateway, h2_ended(client->h2->session));
    if (write_out(client->h2)) { /* false: it is closed already */
        client_close(client);
    }
}

uint64_t client_h2_held(const struct client *client)
{
    uint64_t held = h2_held(client->h2->session);
    for (const struct stream *stream = client->h2->streams; stream != NULL; stream = stream->next) {
        held += stream->in.size + (stream->side.exchange == NULL ? 0 : exchange_held(stream->side.exchange));
    }
    return held;
}

/* ---- a stream's time ---- */

static void stream_moves(struct stream *stream)
{
    stream->since = worker_of(stream)->loop.now;
}

/* The gateway's own answer on a stream that has no exchange, or no longer has one. */
static void refuse(struct stream *, uint32_t status, const char *reason, const char *what);

static void body_timed_out(struct stream *stream)
{
    struct exchange *exchange = stream->side.exchange;
    gateway_count_bound(worker_of(stream)->gateway, METRICS_BODY_CUT);
    if (exchange->grpc && exchange->phase == EXCHANGE_CALLING) { /* a stream that has been silent for too long */
        stream_close(stream, H2_CANCEL);
        return;
    }
    exchange_cancel(stream->side.exchange);
    refuse(stream, 408, "body_timeout", "the request's body did not arrive in time");
}

/* When it will have stood still for too long. */
static becalm_ns due_at(const struct stream *stream, const struct becalm_settings *settings)
{
    const struct exchange *exchange = stream->side.exchange;
    bool collects = exchange != NULL && exchange->phase == EXCHANGE_OPEN;
    becalm_ns limit =
        exchange == NULL || collects || is_blocked(stream) ? settings->idle_timeout : exchange_patience(exchange);
    becalm_ns due = becalm_ns_after(stream->since, limit);
    return exchange == NULL ? due : becalm_ns_min(due, exchange_body_due(exchange));
}

/* How late the timer may fire: timeouts change while it is armed. */
static becalm_ns look_after(const struct becalm_settings *settings)
{
    becalm_ns least = becalm_ns_min(settings->body_timeout, exchange_stream_idle(settings));
    return becalm_ns_min(least, settings->idle_timeout);
}

static void timer_fires(struct timer *timer)
{
    struct stream *stream = CONTAINER_OF(timer, struct stream, timer);
    struct loop *loop = &worker_of(stream)->loop;
    const struct becalm_settings *settings = worker_of(stream)->view->snapshot->settings;
    struct exchange *exchange = stream->side.exchange;
    uint32_t waits = stream->stream == NULL ? 0 : (uint32_t)h2_stream_held(stream->stream);
    if (waits != stream->unread) { /* a slow reader reads */
        stream_moves(stream);
    }
    stream->unread = waits;
    becalm_ns due = due_at(stream, settings);
    if (due > loop->now) {
        wheel_arm(&loop->wheel, timer, becalm_ns_min(due, becalm_ns_after(loop->now, look_after(settings))));
        return;
    }
    wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, BECALM_S));
    if (exchange != NULL && (exchange->phase == EXCHANGE_OPEN || exchange_body_due(exchange) <= loop->now)) {
        body_timed_out(stream);
    } else if (exchange == NULL || is_blocked(stream)) {
        stream_close(stream, H2_CANCEL);
    } else if (!exchange_stalled(exchange)) {
        body_timed_out(stream);
    }
}

/* ---- from a stream to its exchange ---- */

/* Takes over the body bytes that have arrived. False: the stream has no exchange any more. */
static bool give_body(struct stream *stream)
{
    struct bytes whole = stream->in;
    struct worker *worker = worker_of(stream);
    struct becalm_text text = {bytes_at(&whole), bytes_left(&whole)};
    stream->in = (struct bytes){0};
    bool goes_on = text.length == 0 || exchange_body(stream->side.exchange, text);
    if (stream->stream != NULL && text.length > 0) {
        h2_took(stream->stream, text.length);
        write_later(stream->h2);
    }
    buffered_changed(worker, whole.size, 0);
    bytes_free(&whole);
    return goes_on;
}

/* Gives the exchange the part of the request that is here, if it wants it. May end the stream. */
static void feed_exchange(struct stream *stream)
{
    struct exchange *exchange = stream->side.exchange;
    bool ended = stream->ended;
    bool more = exchange != NULL && (bytes_left(&stream->in) > 0 || ended || exchange_gathers(exchange));
    if (!more || !exchange_wants_body(exchange)) {
        return;
    }
    stream_moves(stream);
    if (!give_body(stream)) {
        return;
    }
    struct becalm_text trailers = {bytes_at(&stream->trailers), bytes_left(&stream->trailers)};
    if (ended && trailers.length > 0 && !exchange_trailers(exchange, trailers)) {
        return;
    }
    exchange_body_came(exchange, ended);
}

static void task_feeds(struct task *task)
{
    feed_exchange(CONTAINER_OF(task, struct stream, task));
}

/* More of the request has arrived. Bytes that come with its head are given at once: they may be the whole body. */
static void request_came(struct stream *stream)
{
    if (stream->side.exchange != NULL && exchange_gathers(stream->side.exchange)) {
        loop_later(&worker_of(stream)->loop, &stream->task);
    } else {
        feed_exchange(stream);
    }
}

static void on_data(void *owner, const char *bytes, size_t length)
{
    struct stream *stream = owner;
    if (!buffered_add(worker_of(stream), &stream->in, bytes, length)) {
        stream_close(stream, H2_INTERNAL_ERROR);
        return;
    }
    request_came(stream);
}

static void on_trailers(void *owner, const char *bytes, size_t length)
{
    struct stream *stream = owner;
    if (length == 0 || length > H1_TRAILER_BYTES || !bytes_add(&stream->trailers, bytes, length)) {
        stream_close(stream, H2_ENHANCE_YOUR_CALM);
    }
}

static void on_end(void *owner)
{
    struct stream *stream = owner;
    stream->ended = true;
    request_came(stream);
}

static void on_drained(void *owner)
{
    struct stream *stream = owner;
    stream_moves(stream);
    stream->h2->client->read_at = 0;
    if (stream->side.exchange != NULL) {
        exchange_unblocked(stream->side.exchange);
    }
}

/* The peer has reset it, or broke a rule on it. */
static void on_closed(void *owner, uint32_t code)
{
    struct stream *stream = owner;
    (void)code;
    stream->stream = NULL;
    stream_close(stream, H2_NO_ERROR);
}

/* ---- beginning and end ---- */

static const struct client_stream_ops ops;

static struct stream *stream_new(struct client_h2 *h2, struct h2_stream *h2_stream)
{
    struct loop *loop = &h2->client->worker->loop;
    struct stream *stream = blocks_take(&loop->blocks, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    memset(stream, 0, sizeof *stream);
    stream->side.ops = &ops;
    stream->h2 = h2;
    stream->stream = h2_stream;
    stream->timer.fire = timer_fires;
    stream->task.run = task_feeds;
    stream->next = h2->streams;
    stream->link = &h2->streams;
    if (stream->next != NULL) {
        stream->next->link = &stream->next;
    }
    h2->streams = stream;
    h2->count++;
    h2->client->read_at = 0;
    stream_moves(stream);
    const struct becalm_settings *settings = h2->client->worker->view->snapshot->settings;
    wheel_arm(&loop->wheel, &stream->timer, becalm_ns_after(loop->now, look_after(settings)));
    return stream;
}

/* The exchange has finished with the stream. Its queued frames are still written. Its memory stays for this turn of the
 * loop. */
static void stream_free(struct stream *stream)
{
    struct worker *worker = worker_of(stream);
    timer_disarm(&stream->timer);
    loop_not_later(&worker->loop, &stream->task);
    buffered_free(worker, &stream->in);
    bytes_free(&stream->trailers);
    *stream->link = stream->next;
    if (stream->next != NULL) {
        stream->next->link = stream->link;
    }
    stream->h2->count--;
    stream->h2->client->read_at = 0;
    client_moves(stream->h2->client);
    write_later(stream->h2);
    loop_give_later(&worker->loop, &stream->given, stream, sizeof *stream);
}

static void stream_close(struct stream *stream, uint32_t code)
{
    if (stream->side.exchange != NULL) {
        exchange_cancel(stream->side.exchange);
    }
    if (stream->stream != NULL) {
        h2_reset(stream->stream, code);
        stream->stream = NULL;
    }
    stream_free(stream);
}

/* ---- from an exchange to its stream ---- */

/* Something was said: it is written behind the events of this wake-up. */
static void said(struct stream *stream)
{
    stream_moves(stream);
    count_held(stream->h2);
    write_later(stream->h2);
}

/* A large part of a body is written at once, from its own buffer: two copies would cost more than a write. Removes the
 * written bytes from the text. True: its stream has ended with it. */
static bool pass_on(struct stream *stream, struct becalm_text *text, bool end)
{
    struct client_h2 *h2 = stream->h2;
    struct h2_pass pass;
    size_t length = SIZE_MAX;
    while (text->length >= PASS_FROM && length > 0 && !h2->broken && !client_blocked(h2->client)) {
        length = h2_data_pass(stream->stream, *text, end, &pass);
        text->at += length;
        text->length -= length;
        h2->broken = length > 0 && !client_write(h2->client, pass.part, pass.count); /* task_runs() closes it */
    }
    return end && text->length == 0;
}

static bool say_part(struct stream *stream, const struct stream_part *part)
{
    bool kept = true;
    bool ended = false;
    for (int i = 0; kept && i < part->pieces->count; i++) {
        struct becalm_text text = part->pieces->piece[i];
        bool end = part->ended && part->trailers == NULL && i == part->pieces->count - 1;
        ended = text.length >= PASS_FROM && pass_on(stream, &text, end);
        kept = h2_data(stream->stream, text.at, text.length);
    }
    if (part->ended && !ended) {
        h2_end(stream->stream, part->trailers);
    }
    said(stream);
    return kept;
}

static bool side_begin(struct client_stream *side, const struct draft *draft, const struct stream_part *part)
{
    struct stream *stream = stream_of(side);
    bool bodiless = part->ended && part->pieces->bytes == 0 && part->trailers == NULL;
    if (stream->stream == NULL) {
        return false;
    }
    h2_answer(stream->stream, draft, bodiless);
    if (bodiless) {
        said(stream);
    }
    return bodiless || say_part(stream, part);
}

static bool side_more(struct client_stream *side, const struct stream_part *part)
{
    struct stream *stream = stream_of(side);
    return stream->stream != NULL && say_part(stream, part);
}

static bool side_interim(struct client_stream *side, const struct draft *draft)
{
    struct stream *stream = stream_of(side);
    if (stream->stream != NULL) {
        h2_interim(stream->stream, draft);
        said(stream);
    }
    return stream->stream != NULL;
}

static bool side_blocked(const struct client_stream *side)
{
    return is_blocked(stream_of(side));
}

static void side_moves(struct client_stream *side)
{
    stream_moves(stream_of(side));
}

static void side_took(struct client_stream *side)
{
    struct stream *stream = stream_of(side);
    exchange_body_resumes(side->exchange);
    if (bytes_left(&stream->in) > 0 || stream->ended) {
        loop_later(&worker_of(stream)->loop, &stream->task);
    }
}

static void side_began(struct client_stream *side)
{
    (void)side; /* the bytes of its body wait in `in` until the exchange wants them */
}

static bool side_left(const struct client_stream *side)
{
    return wire_ended(&stream_of(side)->h2->client->wire);
}

static void side_done(struct client_stream *side, bool keep)
{
    struct stream *stream = stream_of(side);
    (void)keep; /* the connection goes on in any case, until it is told to go */
    if (stream->stream != NULL) {
        h2_abandon(stream->stream);
        stream->stream = NULL;
    }
    stream_free(stream);
}

static void side_cut(struct client_stream *side)
{
    stream_close(stream_of(side), H2_INTERNAL_ERROR);
}

static uint64_t side_identity(const struct client_stream *side)
{
    return client_caller(stream_of(side)->h2->client);
}

static bool side_trusted(struct client_stream *side)
{
    return client_trusted(stream_of(side)->h2->client);
}

static void side_origin(struct client_stream *side, struct origin *origin)
{
    client_origin(stream_of(side)->h2->client, origin);
}

static struct becalm_text side_peer(const struct client_stream *side, char *text, size_t size)
{
    return client_peer(stream_of(side)->h2->client, text, size);
}

/* Neither a login nor a tunnel: there are others on its connection. */
static struct host_owner side_owner(struct client_stream *side)
{
    return (struct host_owner){.own = &stream_of(side)->h2->own};
}

static bool side_ends(const struct client_stream *side, union address_socket *from, union address_socket *to)
{
    client_ends(stream_of(side)->h2->client, from, to);
    return true;
}

static const struct client_stream_ops ops = {
    .begin = side_begin,
    .more = side_more,
    .interim = side_interim,
    .blocked = side_blocked,
    .moves = side_moves,
    .took = side_took,
    .began = side_began,
    .left = side_left,
    .done = side_done,
    .cut = side_cut,
    .identity = side_identity,
    .trusted = side_trusted,
    .origin = side_origin,
    .peer = side_peer,
    .owner = side_owner,
    .ends = side_ends,
};

/* ---- requests ---- */

static void refuse(struct stream *stream, uint32_t status, const char *reason, const char *what)
{
    struct draft draft;
    char room[OWN_ROOM];
    struct pieces pieces = {.count = 1};
    pieces.piece[0] = client_refusal(stream->h2->client, &draft, room, status, reason, what);
    pieces.bytes = pieces.piece[0].length;
    side_begin(&stream->side, &draft, &(struct stream_part){.pieces = &pieces, .ended = true});
    side_done(&stream->side, true);
}

static void *on_request(void *owner, struct h2_stream *h2_stream, const struct head *head, bool end)
{
    struct client_h2 *h2 = owner;
    struct stream *stream = stream_new(h2, h2_stream);
    if (stream == NULL) {
        return NULL;
    }
    stream->ended = end;
    exchange_open(h2->client->worker, &stream->side,
                  head); /* may answer at once, and then the end of the request is not wanted */
    if (stream->side.exchange != NULL && exchange_gathers(stream->side.exchange)) {
        loop_later(&h2->client->worker->loop, &stream->task);
    }
    return stream->stream == NULL ? NULL : stream;
}

static void *on_unfit(void *owner, struct h2_stream *h2_stream, struct h1_verdict verdict, bool end)
{
    struct client_h2 *h2 = owner;
    struct stream *stream = stream_new(h2, h2_stream);
    (void)end;
    if (stream != NULL) {
        refuse(stream, verdict.status, "bad_request", verdict.what);
    }
    return NULL;
}

static const struct h2_calls calls = {
    .request = on_request,
    .unfit = on_unfit,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .drained = on_drained,
    .closed = on_closed,
    .acknowledged = on_acknowledged,
    .pong = on_pong,
};

bool client_h2_begin(struct client *client)
{
    struct worker *worker = client->worker;
    struct h2_room *room = h2_room(worker);
    struct client_h2 *h2 = calloc(1, sizeof *h2);
    const struct becalm_settings *settings = worker->view->snapshot->settings;
    const struct h2_limits limits = {
        .streams = settings->http2_streams,
        .window = (uint32_t)settings->http2_window,
        .head_bytes = worker->head_room,
    };
    if (h2 == NULL || room == NULL) {
        free(h2);
        return false;
    }
    h2->client = client;
    h2->task.run = task_runs;
    h2->going.fire = going_fires;
    h2->late.fire = late_fires;
    h2->session = h2_session_new(H2_SERVER, &limits, &calls, h2, &room->scratch);
    if (h2->session == NULL) {
        free(h2);
        return false;
    }
    upstream_disown(&client->own);
    client->h2 = h2;
    client_enter(client, CLIENT_H2);
    if (worker->draining) {
        client_h2_drain(client);
    }
    wheel_arm(&worker->loop.wheel, &h2->late, becalm_ns_after(worker->loop.now, settings->header_timeout));
    write_later(h2);
    return true;
}
