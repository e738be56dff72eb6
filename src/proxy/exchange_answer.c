/* SPDX-License-Identifier: MIT */
#include "buffered.h"
#include "exchange.h"
#include "gateway_shared.h"
#include "own.h"

#include "http/grpc.h"
#include "http/text_internal.h"
#include "journal/explain_header.h"
#include "unfilled.h"

#include <string.h>

/* Of an answer: what we write ourselves, and what was said to us alone. */
#define OURS \
    (H1_BIT(H1_CONTENT_LENGTH) | H1_BIT(H1_BECALM_RETRY) | H1_BIT(H1_BECALM_EXPLAIN) | H1_BIT(H1_ENVOY_OVERLOADED))

#define VIA_BECALM     "via: 1.1 becalm\r\n"
#define VIA_BECALM_1_0 "via: 1.0 becalm\r\n" /* the host spoke HTTP/1.0 */

void answer_enter(struct exchange *exchange, enum answer_phase phase)
{
    BECALM_ASSERT(phase > exchange->answer);
    exchange->answer = phase;
}

void answer_classify(struct attempt *attempt, const char *bytes, const struct h1_head *head,
                     struct becalm_outcome *outcome)
{
    struct exchange *exchange = attempt->exchange;
    const struct becalm_retry_on *retry_on = &exchange->target->rules->retry_on;
    const uint64_t hints = H1_BIT(H1_RETRY_AFTER) | H1_BIT(H1_GRPC_STATUS) | H1_BIT(H1_GRPC_PUSHBACK) |
                           H1_BIT(H1_BECALM_RETRY) | H1_BIT(H1_ENVOY_OVERLOADED);
    struct becalm_http_answer answer = {.status = head->status, .grpc_status = BECALM_GRPC_NONE};
    if ((head->seen & hints) != 0) {
        answer.retry_after = h1_find(bytes, head, H1_RETRY_AFTER);
        answer.date = h1_find(bytes, head, H1_DATE);
        if (answer.retry_after.length < sizeof exchange->retry_after) { /* for the log */
            memcpy(exchange->retry_after, answer.retry_after.length > 0 ? answer.retry_after.at : "",
                   answer.retry_after.length);
            exchange->retry_after[answer.retry_after.length] = '\0';
        }
        answer.pushback = h1_find(bytes, head, H1_GRPC_PUSHBACK);
        answer.wall = (int64_t)(exchange->worker->loop.wall / BECALM_S);
        answer.grpc_status = becalm__grpc_status_read(h1_find(bytes, head, H1_GRPC_STATUS));
        if (answer.grpc_status != BECALM_GRPC_NONE) {
            exchange->grpc_status = answer.grpc_status; /* for the log */
        }
        if (trust_has(exchange->view->snapshot->trust, &attempt->host->address.any)) {
            answer.mark = h1_find(bytes, head, H1_BECALM_RETRY);
            answer.overloaded = h1_find(bytes, head, H1_ENVOY_OVERLOADED);
        }
    }
    becalm_http_classify(retry_on, &answer, outcome);
}

/* What a proxy adds behind the fields of an answer: itself (RFC 9110, 7.6.3), and when it came, if the host has no
 * clock (6.6.1). */
static void put_passed(struct h1_out *out, struct worker *worker, const struct h1_head *head)
{
    if (!h1_has(head, H1_DATE)) {
        h1_put_field(out, "date", worker_date(worker));
    }
    h1_put_chars(out, head->minor == 0 ? VIA_BECALM_1_0 : VIA_BECALM);
}

bool answer_fields(struct worker *worker, const char *bytes, const struct h1_head *head, struct bytes *to)
{
    UNFILLED char space[4096];
    struct h1_out added = {.at = space, .size = sizeof space};
    struct becalm_text phrase = h1_phrase(bytes, head);
    if (!buffered_add(worker, to, phrase.at, phrase.length) || !buffered_add(worker, to, "\r\n", 2)) {
        return false;
    }
    /* What has no body says how long it would be; of another, whoever writes it says so. */
    bool bodiless = head->framing == H1_NO_BODY && head->status != 204;
    uint64_t ours = bodiless ? OURS & ~H1_BIT(H1_CONTENT_LENGTH) : OURS;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->field[i];
        struct becalm_text name = h1_name(bytes, field);
        struct becalm_text value = h1_value(bytes, field);
        if (field->hop || (ours >> field->id & 1) != 0) {
            continue;
        }
        size_t length = name.length + value.length + 4;
        if (length <= sizeof space) {
            memcpy(space, name.at, name.length);
            memcpy(space + name.length, ": ", 2);
            memcpy(space + name.length + 2, value.at, value.length);
            memcpy(space + length - 2, "\r\n", 2);
            if (!buffered_add(worker, to, space, length)) {
                return false;
            }
        } else if (!buffered_add(worker, to, name.at, name.length) || !buffered_add(worker, to, ": ", 2) ||
                   !buffered_add(worker, to, value.at, value.length) || !buffered_add(worker, to, "\r\n", 2)) {
            return false;
        }
    }
    put_passed(&added, worker, head);
    return buffered_add(worker, to, added.at, added.length);
}

void answer_keep(struct exchange *exchange, const struct offer *offer)
{
    struct kept *kept = &exchange->kept;
    buffered_free(exchange->worker, &kept->bytes);
    kept->status = offer->attempt->status;
    kept->whole = offer->ended && offer->pieces->bytes <= KEEP_BYTES;
    bool fields = offer->head == NULL
                      ? buffered_add(exchange->worker, &kept->bytes, offer->fields.at, offer->fields.length)
                      : answer_fields(exchange->worker, offer->bytes, offer->head, &kept->bytes);
    kept->fields_length = kept->bytes.length;
    for (int i = 0; fields && kept->whole && i < offer->pieces->count; i++) {
        fields =
            buffered_add(exchange->worker, &kept->bytes, offer->pieces->piece[i].at, offer->pieces->piece[i].length);
    }
    kept->whole &= fields;
}

/* Before the answer. What it is about is the whole call, whichever attempt it came from: a client takes any number of
 * them, and they promise nothing (RFC 8297), so one may be retried behind them. */

#define INTERIM_MAX 16u /* for one call; further ones are left out, and all while a client does not read */

bool answer_interim(struct exchange *exchange, const char *bytes, const struct h1_head *head)
{
    struct worker *worker = exchange->worker;
    struct client *client = exchange->client;
    struct h1_out out = {.at = worker->out, .size = WORKER_OUT};
    if (client == NULL || exchange->head->minor == 0 || exchange->answer != ANSWER_NONE ||
        exchange->interim == INTERIM_MAX || client_blocked(client)) {
        return true;
    }
    exchange->interim++;
    h1_put_status_line(&out, head->status, h1_phrase(bytes, head));
    h1_put_fields(&out, bytes, head, OURS);
    h1_put_chars(&out, head->minor == 0 ? VIA_BECALM_1_0 "\r\n" : VIA_BECALM "\r\n");
    if (client_write(client, &(struct iovec){out.at, out.length}, 1)) {
        return true;
    }
    client_close(client);
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

static void put_ours(struct h1_out *out, struct exchange *exchange, const struct becalm_action *action)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    UNFILLED char value[EXPLAIN_HEADER_MAX];
    size_t length = becalm_mark_write(gateway_mark(settings, action->mark), action->why, value, sizeof value);
    if (length > 0) {
        h1_put_field(out, "becalm-retry", (struct becalm_text){value, length});
    }
    if (action->why != BECALM_WHY_OK && action->why != BECALM_WHY_PERMANENT && exchange->status > 0) {
        h1_put_chars(out, "proxy-status: becalm; received-status=");
        h1_put_number(out, exchange->status);
        h1_put_chars(out, "; details=\"");
        h1_put_chars(out, becalm_reason_word(action->why));
        h1_put_chars(out, "\"\r\n");
    }
    if (settings->explain) {
        length = explain(exchange, action, value);
        h1_put_field(out, "becalm-explain", (struct becalm_text){value, length});
    }
}

/* What the body's end will be known by. Returns false if only the connection's end can say it. */
static bool put_framing(struct h1_out *out, struct exchange *exchange, const struct offer *offer)
{
    const struct attempt *attempt = offer->attempt;
    uint32_t status = attempt->status;
    if (exchange->is_head || status == 304) {
        const struct h1_head *head = offer->head; /* NULL: it is among the fields */
        struct becalm_text length =
            head == NULL ? (struct becalm_text){0} : h1_find(offer->bytes, head, H1_CONTENT_LENGTH);
        if (length.at != NULL) {
            h1_put_field(out, "content-length", length);
        }
        return true;
    }
    if (status == 204 || status < 200) {
        return true;
    }
    if (attempt->framing == H1_LENGTH || attempt->framing == H1_NO_BODY) {
        h1_put_number_field(out, "content-length", attempt->framing == H1_LENGTH ? attempt->content_length : 0);
        return true;
    }
    if (offer->ended && bytes_left(&attempt->trailers) == 0) {
        h1_put_number_field(out, "content-length", offer->pieces->bytes);
        return true;
    }
    if (exchange->head->minor >= 1) {
        exchange->answer_chunked = true;
        h1_put_chars(out, "transfer-encoding: chunked\r\n");
        return true;
    }
    return false;
}

static void put_head(struct h1_out *out, struct exchange *exchange, const struct offer *offer,
                     const struct becalm_action *action)
{
    struct worker *worker = exchange->worker;
    if (offer->head != NULL) {
        h1_put_status_line(out, offer->attempt->status, h1_phrase(offer->bytes, offer->head));
        uint64_t ours = exchange->head->minor == 0 ? OURS | H1_BIT(H1_TRAILER) : OURS; /* HTTP/1.0 has none */
        h1_put_fields(out, offer->bytes, offer->head, ours);
        put_passed(out, worker, offer->head);
    } else {
        h1_put_status_begin(out, offer->attempt->status);
        h1_put(out, offer->fields);
    }
    exchange->wants_close |= !put_framing(out, exchange, offer) || worker->draining;
    exchange->wants_close |= !exchange->body_in.ended; /* answered before all was asked: the rest is not read */
    put_ours(out, exchange, action);
    if (exchange->wants_close) {
        h1_put_chars(out, "connection: close\r\n\r\n");
    } else if (exchange->head->minor == 0) {
        h1_put_chars(out, "connection: keep-alive\r\n\r\n");
    } else {
        h1_put_chars(out, "\r\n");
    }
}

/* The body. */

struct gather {
    struct iovec part[3 * PIECES_MAX + 4];
    int count;
    char chunk[PIECES_MAX][20];
};

static void gather_add(struct gather *gather, const char *at, size_t length)
{
    if (length > 0) {
        gather->part[gather->count++] = (struct iovec){(char *)(uintptr_t)at, length};
    }
}

static void gather_pieces(struct gather *gather, const struct exchange *exchange, const struct pieces *pieces)
{
    for (int i = 0; i < pieces->count; i++) {
        const struct becalm_text *piece = &pieces->piece[i];
        if (exchange->answer_chunked) {
            gather_add(gather, gather->chunk[i], h1_chunk_head(gather->chunk[i], piece->length));
        }
        gather_add(gather, piece->at, piece->length);
        if (exchange->answer_chunked) {
            gather_add(gather, "\r\n", 2);
        }
    }
}

static __attribute__((noinline)) void gather_trailers(struct gather *gather, struct worker *worker,
                                                      const struct attempt *attempt)
{
    struct h1_out out = {.at = worker->out + WORKER_OUT / 2, .size = WORKER_OUT / 2};
    exchange_put_trailers(&out, &attempt->trailers, attempt->names_fields);
    gather_add(gather, out.at, out.length);
}

/* The trailers that may be passed on, and the last empty line. */
static void gather_end(struct gather *gather, struct exchange *exchange, const struct attempt *attempt)
{
    answer_enter(exchange, ANSWER_ENDED);
    if (!exchange->answer_chunked) {
        return;
    }
    gather_add(gather, "0\r\n", 3);
    if (bytes_left(&attempt->trailers) > 0) {
        gather_trailers(gather, exchange->worker, attempt);
    }
    gather_add(gather, "\r\n", 2);
}

/* A call whose client has gone may still go on, for the answer that will be stored. */
static bool gather_write(struct gather *gather, struct exchange *exchange)
{
    if (exchange->client == NULL) {
        return exchange_orphan_moves(exchange);
    }
    return gather->count == 0 || client_write(exchange->client, gather->part, gather->count);
}

static __attribute__((noinline)) bool is_event_stream(const struct offer *offer)
{
    return offer->head != NULL &&
           text_is_media_type(h1_find(offer->bytes, offer->head, H1_CONTENT_TYPE), "text/event-stream");
}

void answer_begin(struct exchange *exchange, const struct offer *offer, const struct becalm_action *action)
{
    struct worker *worker = exchange->worker;
    struct h1_out out = {.at = worker->out, .size = WORKER_OUT / 2};
    UNFILLED struct gather gather;
    gather.count = 0;
    exchange->status = offer->attempt->status;
    exchange->rule = NULL; /* of an attempt before */
    answer_enter(exchange, ANSWER_BEGUN);
    if (exchange->holds_key) {
        key_store_begin(exchange, offer);
        key_store_more(exchange, offer->pieces);
    }
    put_head(&out, exchange, offer, action);
    if (out.full) {
        exchange->client_broke = true; /* a head that large was not let in */
        key_end(exchange, false);
        return;
    }
    gather_add(&gather, out.at, out.length);
    if (!exchange->is_head) {
        gather_pieces(&gather, exchange, offer->pieces);
        exchange->answer_bytes += offer->pieces->bytes;
    }
    offer->attempt->state = ATTEMPT_PASSING;
    if (offer->ended) {
        gather_end(&gather, exchange, offer->attempt);
        key_end(exchange, true);
    } else {
        exchange->event_stream = is_event_stream(offer);
    }
    exchange->client_broke = !gather_write(&gather, exchange);
}

bool answer_more(struct exchange *exchange, const struct pieces *pieces, bool ended)
{
    UNFILLED struct gather gather;
    gather.count = 0;
    gather_pieces(&gather, exchange, pieces);
    exchange->answer_bytes += pieces->bytes;
    if (exchange->holds_key) {
        key_store_more(exchange, pieces);
    }
    if (ended) {
        gather_end(&gather, exchange, exchange->passing);
        key_end(exchange, true);
    }
    return gather_write(&gather, exchange);
}

/* Without a new answer. */

static void answer_kept(struct exchange *exchange, const struct becalm_action *action)
{
    struct worker *worker = exchange->worker;
    const struct kept *kept = &exchange->kept;
    struct h1_out out = {.at = worker->out, .size = WORKER_OUT};
    size_t length = kept->bytes.length - kept->fields_length;
    const struct becalm_text body = {kept->bytes.at + kept->fields_length, length};
    exchange->status = kept->status;
    h1_put_status_begin(&out, kept->status);
    h1_put(&out, (struct becalm_text){kept->bytes.at, kept->fields_length});
    if (!exchange->is_head) { /* else it is among its fields */
        h1_put_number_field(&out, "content-length", length);
    }
    put_ours(&out, exchange, action);
    h1_put_chars(&out, exchange->wants_close ? "connection: close\r\n\r\n" : "\r\n");
    struct iovec part[2] = {{out.at, out.length}, {(char *)(uintptr_t)body.at, exchange->is_head ? 0 : body.length}};
    exchange->answer_bytes += part[1].iov_len;
    exchange->client_broke = out.full || !client_write(exchange->client, part, 2);
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

static void answer_own(struct exchange *exchange, const struct becalm_action *action)
{
    struct worker *worker = exchange->worker;
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    const struct becalm_record *record = &exchange->call.record;
    struct h1_out out = {.at = worker->out, .size = WORKER_OUT};
    struct becalm_own_answer usual;
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
    bool grpc = becalm__grpc_is_type(h1_find(exchange->bytes, exchange->head, H1_CONTENT_TYPE));
    struct own own = {
        .status = usual.status,
        .error = usual.error,
        .reason = becalm_reason_word(action->why),
        .title = usual.title,
        .detail = exchange->call.last == BECALM_OUTCOME_BROKEN ? exchange->rule : NULL,
        .last_status = exchange->kept.status,
        .attempts = record->attempts,
        .retry_after = action->retry_after,
        .random = becalm_rand_next(&worker->loop.random),
        .mark = gateway_mark(settings, action->mark),
        .mark_reason = action->why,
        .grpc_status = grpc ? becalm_grpc_status_for(action->why) : BECALM_GRPC_NONE,
        .date = worker_date(worker),
        .close = exchange->wants_close,
        .head_only = exchange->is_head,
    };
    if (settings->explain) {
        own.explain = (struct becalm_text){told, explain(exchange, action, told)};
    }
    exchange->status = usual.status;
    exchange->answer_bytes += own_write(&out, &own);
    exchange->client_broke = !client_write(exchange->client, &(struct iovec){out.at, out.length}, 1);
}

void answer_finish(struct exchange *exchange, const struct becalm_action *action)
{
    exchange->wants_close |= exchange->worker->draining || !exchange->body_in.ended;
    answer_enter(exchange, ANSWER_ENDED);
    if (action->last_answer && exchange->kept.status != 0 && exchange->kept.whole) {
        answer_kept(exchange, action);
    } else {
        answer_own(exchange, action);
    }
}
