/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "proxy/gateway_shared.h"

#include "journal/span.h"
#include "origin/hex.h"
#include "unfilled.h"

#include <becalm/rand.h>

#include <stdlib.h>
#include <string.h>

/* A call whose spans are exported. */
struct exchange_span {
    char trace_id[TRACE_ID_LENGTH];
    struct trace_parent from;
    enum span_from from_what;
    unsigned flags;
    uint64_t seed;                           /* of the ids of its spans */
    uint32_t grpc_status[BECALM_RECORD_MAX]; /* of attempts before the latest */
};

/* ---- the beginning ---- */

static bool is_followed(const struct exchange *exchange)
{
    switch (exchange->view->snapshot->settings->tracing.parent) {
    case BECALM_TRACE_PARENT_ALL:
        return true;
    case BECALM_TRACE_PARENT_TRUSTED:
        return exchange->origin.trusted;
    case BECALM_TRACE_PARENT_NONE:
        return false;
    }
    BECALM_UNREACHABLE();
}

/* NULL, without memory: then nothing is recorded. */
static __attribute__((noinline)) struct exchange_span *span_make(struct exchange *exchange,
                                                                 const struct trace_parent *from, enum span_from what)
{
    struct exchange_span *span = malloc(sizeof *span);
    if (span == NULL) {
        return NULL;
    }
    *span = (struct exchange_span){
        .from_what = what,
        .flags = TRACE_FLAG_SAMPLED,
        .seed = becalm_rand_next(&exchange->worker->request_ids),
    };
    for (uint32_t i = 0; i < BECALM_RECORD_MAX; i++) {
        span->grpc_status[i] = BECALM_GRPC_NONE;
    }
    if (from != NULL) {
        span->from = *from;
    }
    if (what == SPAN_CHILD) {
        memcpy(span->trace_id, from->trace_id, TRACE_ID_LENGTH);
        span->flags = from->flags;
    } else {
        memcpy(span->trace_id, exchange->request_id, TRACE_ID_LENGTH);
    }
    return span;
}

/* A trace that a caller has begun. One that is not sampled passes as it came: no span of ours is in it. */
static __attribute__((noinline)) bool follow(struct exchange *exchange, struct trace_parent *parent, bool *found)
{
    *found = trace_parent_find(exchange->head, parent);
    if (!*found || !is_followed(exchange)) {
        return false;
    }
    if ((parent->flags & TRACE_FLAG_SAMPLED) != 0) {
        exchange->span = span_make(exchange, parent, SPAN_CHILD);
        exchange->trace = exchange->span == NULL ? EXCHANGE_TRACE_PASSES : EXCHANGE_TRACE_CONTINUED;
    }
    return true;
}

/* A request that comes with a traceparent. False: a trace begins here all the same. */
static __attribute__((noinline)) bool take_said(struct exchange *exchange, struct exchange_span **span)
{
    UNFILLED struct trace_parent parent;
    bool found;
    bool followed = follow(exchange, &parent, &found);
    struct worker *worker = exchange->worker;
    if (followed && head_has(exchange->head, FIELD_REQUEST_ID)) {
        return true;
    }
    uint64_t bits = request_id_make(exchange->request_id, worker->gateway->id, &worker->request_ids);
    if (!followed && trace_sampled(bits, exchange->view->snapshot->trace_least)) {
        *span = span_make(exchange, found ? &parent : NULL, found ? SPAN_LINKED : SPAN_ROOT);
    }
    return followed;
}

void exchange_trace_begin(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    if (head_has(exchange->head, FIELD_TRACEPARENT)) {
        exchange->trace = take_said(exchange, &exchange->span) ? exchange->trace : EXCHANGE_TRACE_BEGUN;
        return;
    }
    uint64_t bits = request_id_make(exchange->request_id, worker->gateway->id, &worker->request_ids);
    exchange->trace = EXCHANGE_TRACE_BEGUN;
    if (trace_sampled(bits, exchange->view->snapshot->trace_least)) {
        exchange->span = span_make(exchange, NULL, SPAN_ROOT);
    }
}

struct becalm_text exchange_trace_id(const struct exchange *exchange, char room[TRACE_ID_LENGTH])
{
    struct trace_parent parent;
    const char *id = exchange->span != NULL                       ? exchange->span->trace_id
                     : exchange->trace == EXCHANGE_TRACE_BEGUN    ? exchange->request_id
                     : trace_parent_find(exchange->head, &parent) ? parent.trace_id
                                                                  : NULL;
    if (id == NULL) {
        return (struct becalm_text){0};
    }
    memcpy(room, id, TRACE_ID_LENGTH);
    return (struct becalm_text){room, TRACE_ID_LENGTH};
}

void exchange_trace_again(struct exchange *exchange)
{
    exchange->span->seed = becalm_rand_next(&exchange->worker->request_ids);
    for (uint32_t i = 0; i < BECALM_RECORD_MAX; i++) {
        exchange->span->grpc_status[i] = BECALM_GRPC_NONE;
    }
}

/* ---- an attempt ---- */

static __attribute__((noinline)) void write_span(char *text, const struct exchange_span *span, uint32_t number)
{
    char id[SPAN_ID_LENGTH];
    hex_put(id, trace_span(span->seed, number + 1));
    trace_parent_write(text, span->trace_id, id, span->flags);
}

void exchange_trace_write(struct draft *draft, char text[TRACEPARENT_LENGTH], const struct exchange *exchange,
                          const struct attempt *attempt)
{
    /* The client's tracestate belongs to another trace than one that begins here, or to none. */
    draft->skip |= exchange->trace == EXCHANGE_TRACE_BEGUN ? FIELD_BIT(FIELD_TRACEPARENT) | FIELD_BIT(FIELD_TRACESTATE)
                                                           : FIELD_BIT(FIELD_TRACEPARENT);
    if (exchange->span == NULL) { /* no span has this id, so any value is fine */
        memcpy(text + 3, exchange->request_id, TRACE_ID_LENGTH);
        memcpy(text + 36, exchange->request_id + SPAN_ID_LENGTH, SPAN_ID_LENGTH);
    } else {
        write_span(text, exchange->span, attempt->number);
    }
}

void exchange_trace_retry(struct exchange *exchange, uint32_t number)
{
    exchange->span->grpc_status[becalm_record_place(number)] = exchange->grpc_status;
}

/* ---- the end ---- */

static bool has_ended(const struct becalm_record_attempt *attempt)
{
    return !attempt->open && attempt->outcome != BECALM_OUTCOME_CANCELLED;
}

static void put_attempts(struct span_note *note, const struct exchange *exchange)
{
    const struct becalm_record *record = &exchange->call.record;
    const struct exchange_span *span = exchange->span;
    becalm_ns now = exchange->worker->loop.now;
    uint32_t last = 0; /* the attempt whose gRPC status the call has */
    for (uint32_t i = 0; i + 1 < note->spans; i++) {
        last = has_ended(&record->attempt[i]) ? i : last;
    }
    for (uint32_t i = 0; i + 1 < note->spans; i++) {
        const struct becalm_record_attempt *attempt = &record->attempt[i];
        note->attempt[i] = (struct span_attempt){
            .span = trace_span(span->seed, attempt->number + 1),
            .sent = becalm_ns_since(attempt->sent_at, exchange->arrived_at),
            .took = attempt->open ? becalm_ns_since(now, attempt->sent_at) : attempt->took,
            .waited = attempt->waited,
            .number = attempt->number,
            .status = attempt->status,
            .grpc_status = i == last ? exchange->grpc_status : span->grpc_status[i],
            .outcome = attempt->open ? BECALM_OUTCOME_CANCELLED : attempt->outcome,
            .hedge = attempt->hedge,
        };
    }
}

/* The route for the span's name: the policy's match; absent without one. */
static struct becalm_text route_text(const struct snapshot_target *target)
{
    const struct becalm_match *match = target->endpoint != NULL ? &target->endpoint->match : &target->service->match;
    return text_of(match->path != NULL ? match->path : match->prefix != NULL ? match->prefix : match->start);
}

static struct becalm_text before(struct becalm_text text, char c, struct becalm_text *behind)
{
    const char *at = text.length == 0 ? NULL : memchr(text.at, c, text.length);
    if (at == NULL) {
        *behind = (struct becalm_text){0};
        return text;
    }
    size_t length = (size_t)(at - text.at);
    *behind = (struct becalm_text){at + 1, text.length - length - 1};
    return (struct becalm_text){text.at, length};
}

static struct becalm_text trace_state(const struct exchange *exchange)
{
    struct becalm_text state = head_find(exchange->head, FIELD_TRACESTATE);
    bool said = exchange->span->from_what == SPAN_CHILD && state.length <= SPAN_TEXT_MAX;
    return said ? state : (struct becalm_text){0};
}

static void put_texts(union span_room *room, const struct exchange *exchange)
{
    const struct snapshot_target *target = exchange->target;
    struct becalm_text query;
    struct becalm_text path = before(exchange->path, '?', &query);
    bool queries = exchange->view->snapshot->settings->log_query; /* tokens and names of people stand there */
    span_add_text(room, SPAN_METHOD, exchange_method(exchange));
    span_add_text(room, SPAN_PATH, path);
    span_add_text(room, SPAN_QUERY, queries ? query : (struct becalm_text){0});
    span_add_text(room, SPAN_AUTHORITY, exchange->host_name);
    span_add_text(room, SPAN_USER_AGENT, head_find(exchange->head, FIELD_USER_AGENT));
    span_add_text(room, SPAN_REQUEST_ID, exchange_request_id(exchange));
    span_add_text(room, SPAN_TRACE_STATE, trace_state(exchange));
    span_add_text(room, SPAN_SERVICE, text_of(target->service->name));
    span_add_text(room, SPAN_ENDPOINT, text_of(target->endpoint == NULL ? NULL : target->endpoint->name));
    span_add_text(room, SPAN_ROUTE, route_text(target));
}

void exchange_trace_end(struct exchange *exchange)
{
    UNFILLED union span_room room;
    const struct becalm_record *record = &exchange->call.record;
    const struct exchange_span *span = exchange->span;
    const struct snapshot_service *service = &exchange->view->snapshot->service[exchange->target->service_index];
    uint32_t kept = becalm_record_kept(record);
    room.note = (struct span_note){
        .spans = 1 + kept,
        .attempts = record->attempts,
        .status = exchange->status,
        .grpc_status = exchange->grpc_status,
        .reason = record->reason,
        .from_what = span->from_what,
        .flags = span->flags,
        .grpc = exchange->grpc,
        .tls = exchange->origin.tls,
        .host_tls = exchange->target->service->tls.enabled,
        .version = exchange->head->version,
        .from = span->from,
        .client = exchange->origin.ip,
        .span = trace_span(span->seed, 0),
        .wall = exchange->arrived_wall,
        .took = becalm_ns_since(exchange->worker->loop.now, exchange->arrived_at),
        .gated = record->gated,
        .parked = record->parked,
    };
    memcpy(room.note.trace_id, span->trace_id, TRACE_ID_LENGTH);
    put_attempts(&room.note, exchange);
    span_begin(&room);
    put_texts(&room, exchange);
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t host = record->attempt[i].host;
        span_add_host(&room, i, text_of(host < service->host_count ? service->host[host].name : NULL));
    }
    span_end(&room);
    span_put(exchange->worker->spans, &room.note);
    meter_exemplar(exchange->meter, record, exchange->worker->loop.wall, span->trace_id);
}
