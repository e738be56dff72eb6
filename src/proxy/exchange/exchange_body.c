/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"

#define BODY_GRACE        (500 * BECALM_MS)   /* nothing is slow before */
#define BODY_STEP_LONGEST (60 * BECALM_S)     /* the limit for a slow body, where bodyTimeout is longer or none */
#define STREAM_IDLE       (5 * 60 * BECALM_S) /* as Envoy's streams; servers send a comment every 15 s or so */

/* May the body be kept in full? Counts it towards the gateway's total. */
static bool reserve_body(struct exchange *exchange, size_t length)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    struct gateway *gateway = exchange->worker->gateway;
    if (length > settings->replay_per_request) {
        return false;
    }
    if (length <= exchange->body_reserved) {
        return true;
    }
    uint64_t more = length - exchange->body_reserved;
    if (atomic_fetch_add_explicit(&gateway->replay_bytes, more, memory_order_relaxed) + more > settings->replay_total) {
        atomic_fetch_sub_explicit(&gateway->replay_bytes, more, memory_order_relaxed);
        return false;
    }
    exchange->body_reserved = length;
    return true;
}

void exchange_unreserve_body(struct exchange *exchange)
{
    if (exchange->body_reserved > 0) {
        atomic_fetch_sub_explicit(&exchange->worker->gateway->replay_bytes, exchange->body_reserved,
                                  memory_order_relaxed);
        exchange->body_reserved = 0;
    }
}

void exchange_release_body(struct exchange *exchange)
{
    exchange_unreserve_body(exchange);
    exchange_drop_body(exchange);
    bytes_give(&exchange->trailers, &exchange->worker->loop.blocks);
}

void exchange_drop_body(struct exchange *exchange)
{
    buffered_changed(exchange->worker, exchange->body_buffered, 0);
    exchange->body_buffered = 0;
    bytes_give(&exchange->body, &exchange->worker->loop.blocks);
}

uint64_t exchange_held(const struct exchange *exchange)
{
    uint64_t held = exchange->body_buffered + exchange->kept.bytes.size + exchange->stored.size;
    for (uint32_t i = 0; i < BECALM_SLOTS; i++) {
        const struct attempt *attempt = exchange->attempt[i];
        held += attempt == NULL ? 0 : attempt_held(attempt);
    }
    return held;
}

/* A body that streams waits for its turn. False: there is no memory for that, and the request is refused. */
static bool buffer_body(struct exchange *exchange)
{
    if (buffered_over(exchange->worker)) {
        gateway_count_bound(exchange->worker->gateway, METRICS_BUFFERED_REFUSED);
        exchange->wants_close = true;
        exchange_refuse(exchange, 503, "proxy_internal_response", "buffered",
                        "more is waiting in this gateway than maxBuffered allows");
        return false;
    }
    exchange->body_buffered = exchange->body.size;
    buffered_changed(exchange->worker, 0, exchange->body_buffered);
    return true;
}

void exchange_refuse_body(struct exchange *exchange)
{
    exchange_refuse(exchange, 413, "http_request_error", "body_too_large",
                    "the request's body is larger than maxBody allows");
}

/* Has this attempt been given all that has come? */
static bool has_all(const struct exchange *exchange, const struct attempt *attempt)
{
    return bytes_left(&exchange->body) == (exchange->body_recorded ? attempt->body_given : 0);
}

bool exchange_wants_body(const struct exchange *exchange)
{
    if (exchange->request == REQUEST_WHOLE || exchange->phase == EXCHANGE_OVER) {
        return false;
    }
    if (exchange->phase == EXCHANGE_OPEN) {
        return true;
    }
    const struct attempt *attempt = exchange->attempt[0];
    return exchange->body_streams && exchange->expect == NULL && attempt != NULL && attempt->state >= ATTEMPT_SENT &&
           !attempt_blocked(attempt) && has_all(exchange, attempt);
}

enum upload exchange_upload(const struct exchange *exchange)
{
    const struct attempt *attempt = exchange->attempt[0];
    if (exchange->phase == EXCHANGE_OPEN || !exchange->body_streams || attempt == NULL || attempt->through ||
        attempt->state < ATTEMPT_SENT) {
        return UPLOAD_NONE;
    }
    return exchange_wants_body(exchange) ? UPLOAD_CLIENT : UPLOAD_HOST;
}

/* Awaited from the client: not held up by the host, nor answered before it was read. Between two messages of gRPC a
 * client may think for as long as a stream may be silent. */
static bool body_awaited(const struct exchange *exchange)
{
    return exchange->request != REQUEST_WHOLE && exchange->answer == ANSWER_NONE &&
           (exchange->phase == EXCHANGE_OPEN || (!exchange->grpc && exchange_upload(exchange) == UPLOAD_CLIENT));
}

becalm_ns exchange_silence_or(becalm_ns written, becalm_ns usual, const struct becalm_settings *settings)
{
    return written > 0 ? written : becalm_ns_max(usual, settings->idle_timeout);
}

becalm_ns exchange_stream_idle(const struct becalm_settings *settings)
{
    return exchange_silence_or(settings->stream_idle_timeout, STREAM_IDLE, settings);
}

/* Until the answer's head the engine times the call; after it silence counts, on either side. */
becalm_ns exchange_patience(const struct exchange *exchange)
{
    const struct becalm_settings *settings = exchange->worker->view->snapshot->settings;
    if (exchange->passing == NULL && exchange_upload(exchange) == UPLOAD_NONE) {
        return BECALM_NEVER;
    }
    return exchange->event_stream || exchange->grpc ? exchange_stream_idle(settings) : settings->idle_timeout;
}

bool exchange_stalled(struct exchange *exchange)
{
    if (exchange->passing != NULL) {
        attempt_stalled(exchange->passing);
        return true;
    }
    if (exchange_upload(exchange) == UPLOAD_HOST) {
        attempt_stalled(exchange->attempt[0]);
        return true;
    }
    return false;
}

becalm_ns exchange_body_due(const struct exchange *exchange)
{
    return body_awaited(exchange) ? becalm_ns_after(exchange->body_at, exchange->view->snapshot->settings->body_timeout)
                                  : BECALM_NEVER;
}

bool exchange_body_slow(const struct exchange *exchange)
{
    becalm_ns step = becalm_ns_min(exchange->view->snapshot->settings->body_timeout, BODY_STEP_LONGEST);
    becalm_ns age = becalm_ns_min(becalm_ns_since(exchange->worker->loop.now, exchange->body_at), step);
    return body_awaited(exchange) && age >= BODY_GRACE && exchange->body_step * step < EXCHANGE_BODY_STEP * age;
}

void exchange_body_resumes(struct exchange *exchange)
{
    exchange->body_at = exchange->worker->loop.now;
    exchange->body_step = 0;
}

static void body_came(struct exchange *exchange, uint64_t bytes)
{
    exchange->body_bytes += bytes;
    uint64_t step = exchange->body_step + bytes;
    if (step < EXCHANGE_BODY_STEP) {
        exchange->body_step = (uint32_t)step;
    } else {
        exchange_body_resumes(exchange);
    }
}

/* The client's body is malformed: nothing behind it can be told from it. */
static void refuse_malformed(struct exchange *exchange, const char *what)
{
    exchange->wants_close = true;
    if (exchange->phase != EXCHANGE_OPEN) {
        exchange->stream->ops->cut(exchange->stream);
    } else {
        exchange_refuse(exchange, 400, "http_request_error", "bad_request", what);
    }
}

void exchange_body_wrong(struct exchange *exchange, const char *what)
{
    refuse_malformed(exchange, what);
}

bool exchange_trailers(struct exchange *exchange, struct becalm_text piece)
{
    if (bytes_add(&exchange->trailers, piece.at, piece.length)) {
        return true;
    }
    exchange->stream->ops->cut(exchange->stream);
    return false;
}

bool exchange_body(struct exchange *exchange, struct becalm_text piece)
{
    body_came(exchange, piece.length);
    if (exchange->body_bytes > exchange->view->snapshot->settings->max_body) {
        exchange->wants_close = true;
        if (exchange->phase != EXCHANGE_OPEN) {
            exchange->stream->ops->cut(exchange->stream);
        } else {
            exchange_refuse_body(exchange);
        }
        return false;
    }
    if (bytes_add_from(&exchange->body, &exchange->worker->loop.blocks, piece.at, piece.length)) {
        return true;
    }
    exchange->stream->ops->cut(exchange->stream);
    return false;
}

/* Does the call begin before the body is complete? A gRPC client may wait for the answer before it sends more. */
static bool begins_early(const struct exchange *exchange)
{
    return grpc_has_trailers(exchange) && !key_guards(exchange->target->rules);
}

bool exchange_gathers(const struct exchange *exchange)
{
    return exchange->phase == EXCHANGE_OPEN && exchange->request != REQUEST_WHOLE && begins_early(exchange);
}

void exchange_record_end(struct exchange *exchange, struct attempt *attempt)
{
    exchange->body_recorded = false;
    becalm_call_not_replayable(&exchange->call);
    attempt->body_gone |= attempt->body_given > 0;
    exchange->body.from += attempt->body_given;
    attempt->body_given = 0;
    exchange_unreserve_body(exchange);
    if (bytes_left(&exchange->body) == 0) {
        bytes_give(&exchange->body, &exchange->worker->loop.blocks);
    }
}

/* More of a body has come that is recorded. */
static void record(struct exchange *exchange)
{
    if (!reserve_body(exchange, bytes_left(&exchange->body))) {
        exchange_record_end(exchange, exchange->attempt[0]);
    } else if (exchange->request == REQUEST_WHOLE) {
        becalm_call_streamed(&exchange->call, exchange->worker->loop.now);
    }
}

/* Before the call: is the body collected, does it stream, or is it too large for its key? */
static bool collect_body(struct exchange *exchange)
{
    bool kept = reserve_body(exchange, bytes_left(&exchange->body));
    exchange->body_recorded = kept && exchange_gathers(exchange);
    exchange->body_streams = !kept || exchange->body_recorded;
    if (exchange->body_streams && key_guards(exchange->target->rules)) {
        exchange->wants_close = true;
        exchange_refuse(exchange, 413, "http_request_error", "body_too_large",
                        "the body is too large to be remembered with its idempotency key");
        return false;
    }
    if (!kept && !buffer_body(exchange)) {
        return false;
    }
    if (exchange->request == REQUEST_WHOLE) {
        exchange_asked(exchange);
    } else if (exchange->body_streams) {
        exchange_begin(exchange);
    }
    return true;
}

void exchange_request_whole(struct exchange *exchange)
{
    BECALM_ASSERT(exchange->request == REQUEST_COMING);
    exchange->request = REQUEST_WHOLE;
}

bool exchange_body_came(struct exchange *exchange, bool ended)
{
    const char *wrong = ended ? h1_trailers_wrong(exchange->trailers.at, bytes_left(&exchange->trailers)) : NULL;
    if (wrong != NULL) {
        refuse_malformed(exchange, wrong);
        return false;
    }
    if (ended) {
        exchange_request_whole(exchange);
    }
    if (exchange->phase == EXCHANGE_OPEN) {
        return collect_body(exchange);
    }
    if (exchange->body_recorded) {
        record(exchange);
    }
    if (exchange->attempt[0] != NULL) {
        attempt_body(exchange->attempt[0]); /* may end the exchange */
    }
    return true;
}
