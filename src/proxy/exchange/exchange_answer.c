/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "http/grpc_text.h"
#include "http/text_internal.h"
#include "journal/explain_header.h"
#include "message/answer_head.h"
#include "message/own.h"
#include "message/packed.h"
#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/upstream.h"
#include "unfilled.h"

#include <string.h>

#define VALUES_ROOM (512u + EXPLAIN_HEADER_MAX) /* of the fields that are added to an answer that is passed on */

void answer_enter(struct exchange *exchange, enum answer_phase phase)
{
    BECALM_ASSERT(phase > exchange->answer);
    exchange->answer = phase;
}

void answer_classify(struct attempt *attempt, const struct head *head, struct becalm_outcome *outcome)
{
    struct exchange *exchange = attempt->exchange;
    const struct becalm_retry_on *retry_on = &exchange->target->rules->retry_on;
    const uint64_t hints = FIELD_BIT(FIELD_RETRY_AFTER) | FIELD_BIT(FIELD_GRPC_STATUS) |
                           FIELD_BIT(FIELD_GRPC_PUSHBACK) | FIELD_BIT(FIELD_BECALM_RETRY) |
                           FIELD_BIT(FIELD_ENVOY_OVERLOADED);
    struct becalm_http_answer answer = {.status = attempt->status, .grpc_status = BECALM_GRPC_NONE};
    UNFILLED char joined[EXCHANGE_MARK_ROOM];
    if (exchange->join == EXCHANGE_JOIN_IN && attempt->status >= 500) { /* maybe because a call of the program failed */
        answer.mark = exchange_join_mark(exchange, joined);
    }
    if ((head->seen & hints) != 0) {
        answer.retry_after = head_find(head, FIELD_RETRY_AFTER);
        answer.date = head_find(head, FIELD_DATE);
        if (answer.retry_after.length < sizeof exchange->retry_after) { /* for the log */
            memcpy(exchange->retry_after, answer.retry_after.length > 0 ? answer.retry_after.at : "",
                   answer.retry_after.length);
            exchange->retry_after[answer.retry_after.length] = '\0';
        }
        answer.pushback = head_find(head, FIELD_GRPC_PUSHBACK);
        answer.wall = (int64_t)(exchange->worker->loop.wall / BECALM_S);
        answer.grpc_status = head_grpc_status(head);
        if (answer.grpc_status != BECALM_GRPC_NONE) {
            exchange->grpc_status = answer.grpc_status; /* for the log */
        }
        if (trust_has(snapshot_trust(exchange->view->snapshot, exchange->origin.door), &attempt->host->address.any)) {
            if (head_has(head, FIELD_BECALM_RETRY)) {
                answer.mark = head_find(head, FIELD_BECALM_RETRY);
            }
            answer.overloaded = head_find(head, FIELD_ENVOY_OVERLOADED);
        }
    }
    becalm_http_classify(retry_on, &answer, outcome);
}

/* A host's answer passes, with its date, or when it came if the host has no clock (RFC 9110, 6.6.1). */
static void draft_passed(struct draft *draft, struct answer_head *ours, struct worker *worker, const struct head *head)
{
    draft->status = head->status;
    draft->phrase = head_phrase(head);
    draft->passed = head;
    ours->passes = true;
    ours->passed = head->version;
    if (!head_has(head, FIELD_DATE)) {
        ours->date = worker_date(worker);
    }
}

bool answer_fields(struct worker *worker, const struct head *head, struct bytes *to)
{
    UNFILLED struct draft draft;
    struct answer_head ours = {0};
    struct text_sink out = {.at = worker->out, .size = WORKER_OUT};
    draft_begin(&draft, NULL, 0);
    draft_passed(&draft, &ours, worker, head);
    draft.skip = answer_head_skip(head->framing == BODY_NONE && head->status != 204);
    answer_head_add(&draft, &ours);
    packed_put_draft(&out, &draft);
    return !out.full && buffered_add(worker, to, out.at, out.length);
}

void answer_keep(struct exchange *exchange, const struct offer *offer)
{
    struct kept *kept = &exchange->kept;
    buffered_free(exchange->worker, &kept->bytes);
    bytes_free(&kept->trailers);
    kept->status = offer->attempt->status;
    kept->whole = offer->ended && offer->pieces->bytes <= KEEP_BYTES;
    bool fields = offer->head == NULL
                      ? buffered_add(exchange->worker, &kept->bytes, offer->fields.at, offer->fields.length)
                      : answer_fields(exchange->worker, offer->head, &kept->bytes);
    kept->fields_length = kept->bytes.length;
    for (int i = 0; fields && kept->whole && i < offer->pieces->count; i++) {
        fields =
            buffered_add(exchange->worker, &kept->bytes, offer->pieces->piece[i].at, offer->pieces->piece[i].length);
    }
    const struct bytes *trailers = &offer->attempt->stream.trailers;
    if (kept->whole && bytes_left(trailers) > 0 && grpc_has_trailers(exchange)) {
        fields &= bytes_add(&kept->trailers, trailers->at, bytes_left(trailers));
    }
    kept->whole &= fields;
}

/* A 1xx before the answer belongs to the whole call, no matter from which attempt it came: a client accepts any number
 * of them, and they promise nothing (RFC 8297), so the call may still be retried after them. */

#define INTERIM_MAX 16u /* for one call; further ones are left out, and all while a client does not read */

bool answer_interim(struct exchange *exchange, const struct head *head)
{
    struct client_stream *stream = exchange->stream;
    UNFILLED struct draft draft;
    struct answer_head ours = {0};
    if (exchange->head->version == HTTP_1_0 || exchange->answer != ANSWER_NONE || exchange->interim == INTERIM_MAX ||
        stream->ops->blocked(stream)) {
        return true;
    }
    exchange->interim++;
    draft_begin(&draft, NULL, 0);
    draft_passed(&draft, &ours, exchange->worker, head);
    draft.skip = answer_head_skip(false);
    ours.date = (struct becalm_text){0}; /* the answer will have one */
    answer_head_add(&draft, &ours);
    if (stream->ops->interim(stream, &draft)) {
        return true;
    }
    stream->ops->cut(stream);
    return false;
}

/* The head. */

static size_t explain(const struct exchange *exchange, const struct becalm_action *action, char *text)
{
    const struct snapshot_service *service = &exchange->view->snapshot->service[exchange->target->service_index];
    return explain_header(&(struct explain){.record = &exchange->call.record,
                                            .hosts = service->host_name,
                                            .host_count = service->host_count,
                                            .why = action->why,
                                            .now = exchange->worker->loop.now},
                          text);
}

/* Adds the gateway's own fields about the call. */
static void add_ours(struct draft *draft, struct answer_head *ours, struct exchange *exchange,
                     const struct becalm_action *action)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    ours->mark = gateway_mark(exchange_role(exchange), action->mark);
    ours->mark_reason = action->why;
    if (exchange->join == EXCHANGE_JOIN_OUT && ours->mark != BECALM_MARK_NONE) {
        exchange_join_told(exchange, ours->mark, action->why);
    }
    if (action->why != BECALM_WHY_OK && action->why != BECALM_WHY_PERMANENT && exchange->status > 0) {
        ours->note = ANSWER_NOTE_RECEIVED;
        ours->received = exchange->status;
        ours->reason = becalm_reason_word(action->why);
    }
    if (settings->explain) {
        struct text_sink *values = &draft->values;
        ours->explain = (struct becalm_text){values->at, explain(exchange, action, values->at)};
        values->length = ours->explain.length;
    }
    answer_head_add(draft, ours);
    if (exchange->fell_from != NULL) {
        fallback_name(draft, exchange);
    }
}

/* How long its body is, or how its end will be known. */
static enum body_framing framing_of(const struct exchange *exchange, const struct offer *offer, uint64_t *length)
{
    const struct attempt *attempt = offer->attempt;
    uint32_t status = attempt->status;
    if (exchange->is_head || status == 304 || status == 204 || status < 200) {
        return BODY_NONE;
    }
    if (attempt->framing == BODY_LENGTH || attempt->framing == BODY_NONE) {
        *length = attempt->framing == BODY_LENGTH ? attempt->content_length : 0;
        return BODY_LENGTH;
    }
    *length = offer->pieces->bytes;
    return offer->ended && bytes_left(&attempt->stream.trailers) == 0 ? BODY_LENGTH : BODY_OPEN;
}

static void draft_answer(struct draft *draft, struct exchange *exchange, const struct offer *offer,
                         const struct becalm_action *action)
{
    struct answer_head ours = {0};
    if (offer->head != NULL) {
        draft_passed(draft, &ours, exchange->worker, offer->head);
        draft->skip = answer_head_skip(exchange->is_head || offer->head->status == 304);
    } else {
        draft->status = offer->attempt->status;
        draft->packed = offer->fields;
    }
    draft->framing = framing_of(exchange, offer, &ours.length);
    ours.length_known = draft->framing == BODY_LENGTH && !grpc_has_trailers(exchange);
    if (ours.length_known && offer->head != NULL && offer->head->length_once) {
        ours.length_known = false; /* the host's own field passes */
        draft->skip = answer_head_skip(true);
    }
    add_ours(draft, &ours, exchange, action);
    bool by_close = draft->framing == BODY_OPEN && exchange->head->version == HTTP_1_0;
    /* Answered before all was asked: the rest is not read. */
    exchange->wants_close |= by_close || exchange->worker->draining || exchange->request != REQUEST_WHOLE;
    draft->close = exchange->wants_close;
}

/* The body. */

/* The result of a write to the client. If the client has gone, checks instead whether the call must still go on. */
static bool answered(struct exchange *exchange, bool written)
{
    return exchange->client == CLIENT_GONE ? exchange_orphan_moves(exchange) : written;
}

/* Most answers have no trailers: only those that do pay for a head on the stack. */
static __attribute__((noinline)) bool more_with_trailers(struct exchange *exchange, struct stream_part *part,
                                                         const struct draft *draft, const struct bytes *trailers)
{
    UNFILLED struct head head;
    struct client_stream *stream = exchange->stream;
    struct h1_verdict verdict = grpc_has_trailers(exchange)
                                    ? h1_parse_metadata(trailers->at, bytes_left(trailers), &head)
                                    : h1_parse_trailers(trailers->at, bytes_left(trailers), &head);
    if (verdict.kind == H1_OK) {
        part->trailers = &head;
    }
    return draft == NULL ? stream->ops->more(stream, part) : stream->ops->begin(stream, draft, part);
}

/* `draft`: NULL, if the head has gone before. */
static bool write_part(struct exchange *exchange, struct stream_part *part, const struct draft *draft,
                       const struct attempt *attempt)
{
    struct client_stream *stream = exchange->stream;
    if (part->ended && bytes_left(&attempt->stream.trailers) > 0 && !attempt->names_fields) {
        return answered(exchange, more_with_trailers(exchange, part, draft, &attempt->stream.trailers));
    }
    return answered(exchange,
                    draft == NULL ? stream->ops->more(stream, part) : stream->ops->begin(stream, draft, part));
}

static __attribute__((noinline)) bool is_event_stream(const struct offer *offer)
{
    return offer->head != NULL && text_is_media_type(head_find(offer->head, FIELD_CONTENT_TYPE), "text/event-stream");
}

static const struct pieces no_pieces;

void answer_begin(struct exchange *exchange, const struct offer *offer, const struct becalm_action *action)
{
    UNFILLED struct draft draft;
    UNFILLED char values[VALUES_ROOM];
    struct stream_part part = {.pieces = exchange->is_head ? &no_pieces : offer->pieces, .ended = offer->ended};
    exchange->status = offer->attempt->status;
    exchange->rule = NULL; /* of an attempt before */
    answer_enter(exchange, ANSWER_BEGUN);
    if (exchange->body_recorded) {
        exchange_record_end(exchange, offer->attempt); /* bytes that were delivered can't be taken back */
    }
    if (exchange->holds_key) {
        key_store_begin(exchange, offer);
        key_store_more(exchange, offer->pieces);
    }
    draft_begin(&draft, values, sizeof values);
    draft_answer(&draft, exchange, offer, action);
    exchange->answer_bytes += part.pieces->bytes;
    attempt_enter(offer->attempt, ATTEMPT_PASSING);
    if (offer->ended) {
        answer_enter(exchange, ANSWER_ENDED);
        key_answered(exchange, &offer->attempt->stream.trailers);
    } else {
        exchange->event_stream = is_event_stream(offer);
    }
    exchange->client_broke = !write_part(exchange, &part, &draft, offer->attempt);
}

bool answer_more(struct exchange *exchange, const struct pieces *pieces, bool ended)
{
    struct stream_part part = {.pieces = pieces, .ended = ended};
    exchange->answer_bytes += pieces->bytes;
    if (exchange->holds_key) {
        key_store_more(exchange, pieces);
    }
    if (ended) {
        answer_enter(exchange, ANSWER_ENDED);
        key_answered(exchange, &exchange->passing->stream.trailers);
    }
    return write_part(exchange, &part, NULL, exchange->passing);
}

/* Without a new answer. */

static void answer_kept(struct exchange *exchange, const struct becalm_action *action)
{
    const struct kept *kept = &exchange->kept;
    struct becalm_text body = {kept->bytes.at + kept->fields_length, kept->bytes.length - kept->fields_length};
    UNFILLED struct draft draft;
    UNFILLED char values[VALUES_ROOM];
    exchange->status = kept->status;
    draft_begin(&draft, values, sizeof values);
    draft.status = kept->status;
    draft.packed = (struct becalm_text){kept->bytes.at, kept->fields_length};
    draft.close = exchange->wants_close;
    /* An answer to HEAD has its length among its fields. */
    bool length_known = !exchange->is_head && !grpc_has_trailers(exchange);
    add_ours(&draft, &(struct answer_head){.length_known = length_known, .length = body.length}, exchange, action);
    answer_whole(exchange, &draft, body, &kept->trailers);
}

void answer_whole(struct exchange *exchange, const struct draft *draft, struct becalm_text body,
                  const struct bytes *trailers)
{
    struct client_stream *stream = exchange->stream;
    UNFILLED struct pieces pieces;
    pieces.count = !exchange->is_head && body.length > 0;
    pieces.bytes = pieces.count == 0 ? 0 : body.length;
    pieces.piece[0] = body;
    exchange->answer_bytes += pieces.bytes;
    struct stream_part part = {.pieces = &pieces, .ended = true};
    exchange->client_broke = bytes_left(trailers) > 0 ? !more_with_trailers(exchange, &part, draft, trailers)
                                                      : !stream->ops->begin(stream, draft, &part);
}

void exchange_answer(struct exchange *exchange, const struct draft *draft, struct becalm_text body)
{
    static const struct bytes none;
    answer_whole(exchange, draft, body, &none);
}

/* The wire says more than the engine's outcome: RFC 9209 has a word for each. */
static void name_failure(const struct exchange *exchange, struct becalm_own_answer *usual)
{
    enum becalm_outcome_kind last = exchange->call.last;
    if (usual->status != 502) {
        return;
    }
    if (last == BECALM_OUTCOME_REFUSED && exchange->connect_late) {
        usual->status = 504;
        usual->error = "connection_timeout";
    } else if (last == BECALM_OUTCOME_REFUSED && exchange->failure == BECALM_HTTP_DNS) {
        usual->error = "dns_error";
    } else if (last == BECALM_OUTCOME_BROKEN && exchange->failure == BECALM_HTTP_BAD_ANSWER) {
        usual->error = "http_protocol_error";
    } else if (last == BECALM_OUTCOME_BROKEN && exchange->failure == BECALM_HTTP_CUT) {
        usual->error = "http_response_incomplete";
    }
}

static bool tells_rule(const struct exchange *exchange)
{
    return exchange->call.last == BECALM_OUTCOME_BROKEN ||
           (exchange->call.last == BECALM_OUTCOME_REFUSED && exchange->failure == BECALM_HTTP_DNS);
}

static void answer_own(struct exchange *exchange, const struct becalm_action *action)
{
    struct worker *worker = exchange->worker;
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    const struct becalm_record *record = &exchange->call.record;
    struct becalm_own_answer usual;
    struct draft draft;
    char room[OWN_ROOM];
    char told[EXPLAIN_HEADER_MAX];
    bool sent = record->attempts > 0; /* OK stands for: none */
    becalm_own_answer_for(action->why, sent ? exchange->call.last : BECALM_OUTCOME_OK, &usual);
    name_failure(exchange, &usual);
    if (exchange->host_full && action->why == BECALM_WHY_CANCELLED) {
        usual = (struct becalm_own_answer){503, "connection_limit_reached",
                                           "too many tunnels to this host are open (maxTunnelsPerHost)"};
    } else if (exchange->no_means && action->why == BECALM_WHY_CANCELLED) {
        usual = (struct becalm_own_answer){503, "connection_limit_reached", "the gateway has no means left to connect"};
    }
    if (exchange->grpc) {
        exchange->grpc_status = becalm_grpc_status_for(action->why);
    }
    struct own own = {
        .status = usual.status,
        .error = usual.error,
        .reason = becalm_reason_word(action->why),
        .title = usual.title,
        .detail = tells_rule(exchange) ? exchange->rule : NULL,
        .last_status = exchange->kept.status,
        .attempts = record->attempts,
        .retry_after = action->retry_after,
        .random = becalm_rand_next(&worker->loop.random),
        .mark = gateway_mark(exchange_role(exchange), action->mark),
        .mark_reason = action->why,
        .grpc_status = exchange->grpc ? exchange->grpc_status : BECALM_GRPC_NONE,
        .bare = grpc_has_trailers(exchange),
        .date = worker_date(worker),
    };
    if (exchange->join == EXCHANGE_JOIN_OUT && own.mark != BECALM_MARK_NONE) {
        exchange_join_told(exchange, own.mark, action->why);
    }
    if (settings->explain) {
        own.explain = (struct becalm_text){told, explain(exchange, action, told)};
    }
    exchange->status = usual.status;
    struct becalm_text body = own_draft(&draft, &own, room);
    draft.close = exchange->wants_close;
    exchange_answer(exchange, &draft, body);
}

void answer_finish(struct exchange *exchange, const struct becalm_action *action, bool fallback)
{
    exchange->wants_close |= exchange->worker->draining || exchange->request != REQUEST_WHOLE;
    answer_enter(exchange, ANSWER_ENDED);
    if (fallback) {
        fallback_answer(exchange, action);
    } else if (action->last_answer && exchange->kept.status != 0 && exchange->kept.whole) {
        answer_kept(exchange, action);
    } else {
        answer_own(exchange, action);
    }
}
