/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "h1/h1.h"
#include "http/grpc_text.h"
#include "message/answer_head.h"
#include "message/packed.h"
#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "proxy/key_scope.h"
#include "proxy/key_store.h"
#include "unfilled.h"

#include <stdio.h>
#include <string.h>

#define STORED_MAX (1024u * 1024) /* a longer answer is passed on and not stored */

/* The code of gRPC among fields that are stored, or their trailers. */
static uint32_t code_stored(struct becalm_text packed)
{
    static const char status[] = "grpc-status";
    struct packed_field field;
    uint32_t code = BECALM_GRPC_NONE;
    while (packed_next(&packed, &field)) {
        if (field.name.length == sizeof status - 1 && memcmp(field.name.at, status, field.name.length) == 0) {
            code = becalm__grpc_status_both(code, becalm__grpc_status_read(field.value));
        }
    }
    return code;
}

/* Trailers that were stored, as HTTP/1 writes them. Without memory they are left out, which its client takes for a
 * failure. */
static void trailers_write(struct worker *worker, struct becalm_text packed, struct bytes *to)
{
    struct packed_field field;
    struct text_sink out = {.at = worker->out, .size = WORKER_OUT};
    while (packed_next(&packed, &field)) {
        h1_put_line(&out, field.name, field.value);
        if (field.secret) {
            h1_hide_line(&out, field.value.length);
        }
    }
    text_put_chars(&out, "\r\n");
    if (!out.full) {
        (void)bytes_add(to, out.at, out.length);
    }
}

/* A stored answer, as it was, and the word that it was not made anew. */
static void answer_stored(struct exchange *exchange, const struct store_answer *answer)
{
    struct becalm_text body = {answer->bytes + answer->fields_length, answer->body_length};
    struct becalm_text fields = {answer->bytes, answer->fields_length};
    struct becalm_text packed_trailers = packed_split(&fields);
    struct bytes trailers = {0};
    /* An answer without a body has its length among its fields. */
    bool has_length =
        !exchange->is_head && answer->status != 204 && answer->status != 304 && !grpc_has_trailers(exchange);
    if (grpc_has_trailers(exchange)) {
        exchange->grpc_status = code_stored((struct becalm_text){answer->bytes, answer->fields_length});
    }
    if (packed_trailers.length > 0 && grpc_has_trailers(exchange)) {
        trailers_write(exchange->worker, packed_trailers, &trailers);
    }
    struct draft draft;
    char values[512];
    bool keep = !exchange->wants_close;
    draft_begin(&draft, values, sizeof values);
    draft.status = answer->status;
    draft.packed = fields;
    draft.close = !keep;
    answer_head_add(&draft, &(struct answer_head){.length_known = has_length,
                                                  .length = body.length,
                                                  .note = ANSWER_NOTE_REPLAYED,
                                                  .reason = "replayed"});
    meter_code(exchange->meter, answer->status);
    answer_whole(exchange, &draft, body, &trailers);
    bytes_free(&trailers);
    exchange->status = answer->status;
    exchange_log(exchange, "replayed");
    exchange_discard(exchange, keep);
}

/* The name by which the gateway's people know a key; see store_held(). */
static void put_name(char *text, size_t size, const unsigned char id[STORE_ID])
{
    size_t length = strlen(text);
    for (size_t i = 0; i < STORE_ID && length + 2 * i + 2 < size; i++) {
        (void)snprintf(text + length + 2 * i, 3, "%02x", id[i]);
    }
}

static void refuse_held(struct exchange *exchange)
{
    char detail[192] = "a request with this idempotency key was sent, and it is unknown whether it was executed: "
                       "find that out before you use another key. It is held as ";
    put_name(detail, sizeof detail, exchange->key.id);
    exchange_refuse(exchange, 409, "http_request_denied", "key_unknown", detail);
}

/* A key that has not begun. */
static void refuse(struct exchange *exchange, const struct store_ask *ask)
{
    static const char denied[] = "http_request_denied";
    switch (ask->verdict) {
    case STORE_BEGUN:
    case STORE_PASSED:
    case STORE_ANSWERED:
    case STORE_LATER:
        break;
    case STORE_IN_FLIGHT:
        exchange_refuse_as(exchange,
                           &(struct refusal){.status = 409,
                                             .error = denied,
                                             .reason = "key_in_flight",
                                             .detail = "a request with this idempotency key is being answered",
                                             .retry_after = BECALM_S});
        break;
    case STORE_HELD:
        refuse_held(exchange);
        break;
    case STORE_ANSWER_LOST:
        exchange_refuse_as(exchange, &(struct refusal){.status = 409,
                                                       .error = denied,
                                                       .reason = "key_answer_lost",
                                                       .detail = "the request with this idempotency key was answered, "
                                                                 "but there was no room to keep the answer",
                                                       .last_status = ask->status});
        break;
    case STORE_MISMATCH:
        exchange_refuse(exchange, 422, denied, "key_mismatch", "this idempotency key belongs to another request");
        break;
    case STORE_OTHER_SCOPE:
        exchange_refuse(exchange, 422, denied, "key_scope",
                        "this very request came with this idempotency key before, under other credentials (keyScope)");
        break;
    case STORE_AWAY:
        exchange_refuse(exchange, 503, "proxy_internal_response", "key_store_away",
                        "the store of idempotency keys does not answer, so it is unknown whether this key was used");
        break;
    case STORE_FORGOT:
        exchange_refuse_as(exchange,
                           &(struct refusal){.status = 503,
                                             .error = "proxy_internal_response",
                                             .reason = "key_store_forgot",
                                             .detail = "the store of idempotency keys may have forgotten this "
                                                       "key; gateways are writing their keys to it again",
                                             .retry_after = ask->wait});
        break;
    case STORE_FULL:
        exchange_refuse(exchange, 503, "proxy_internal_response", "key_store_full",
                        "no room to remember this idempotency key");
        break;
    }
}

/* False: no memory. */
static bool key_make(const struct exchange *exchange, struct becalm_text key, struct key_hash *hash,
                     struct store_key *made)
{
    const struct head *head = exchange->head;
    const struct snapshot_target *target = exchange->target;
    UNFILLED struct key_scope scope;
    key_scope_read(&scope, target->rules->key_scope, exchange->host_name, head);
    return store_key_make(made, &(struct store_request){
                                    .hash = hash,
                                    .service = text_of(target->service->name),
                                    .endpoint = text_of(target->endpoint == NULL ? NULL : target->endpoint->name),
                                    .host = scope.text[0],
                                    .key = key,
                                    .scope = scope.text,
                                    .scope_count = scope.count,
                                    .peer = exchange->stream->ops->identity(exchange->stream),
                                    .method = exchange_method(exchange),
                                    .path = exchange->path,
                                    .body = {bytes_at(&exchange->body), bytes_left(&exchange->body)},
                                    .once = target->rules->key == BECALM_KEY_ENFORCED,
                                });
}

/* The store has answered. True: the call may begin. */
static bool key_decided(struct exchange *exchange)
{
    struct store_ask *ask = &exchange->ask;
    if (ask->verdict == STORE_BEGUN || ask->verdict == STORE_PASSED) {
        exchange->holds_key = ask->verdict == STORE_BEGUN;
        return true;
    }
    if (ask->verdict == STORE_ANSWERED) {
        struct store_answer *answer = ask->answer;
        answer_stored(exchange, answer);
        store_answer_free(answer);
    } else {
        refuse(exchange, ask);
    }
    return false;
}

static void key_told(struct store_ask *ask)
{
    struct exchange *exchange = ask->data;
    exchange->asking = false;
    if (key_decided(exchange)) {
        exchange_begin(exchange);
    }
}

/* If there is a previous secret, the key is also looked up under its hash. */
static void key_ask(struct exchange *exchange, struct becalm_text key)
{
    struct worker *worker = exchange->worker;
    struct key_hashes hashes;
    UNFILLED struct store_key older;
    exchange->store = key_store(worker, &hashes);
    if (exchange->store == NULL || !key_make(exchange, key, hashes.now, &exchange->key) ||
        (hashes.older != NULL && !key_make(exchange, key, hashes.older, &older))) {
        return;
    }
    exchange->key.older = hashes.older == NULL ? NULL : &older;
    (void)store_begin(exchange->store, &exchange->key, worker->loop.now, &exchange->ask);
    exchange->key.older = NULL;
}

bool key_begin(struct exchange *exchange)
{
    struct becalm_text key;
    if (!exchange->keyed || !becalm_key_parse(head_find(exchange->head, FIELD_IDEMPOTENCY_KEY), &key)) {
        return true; /* a safe method needs none */
    }
    exchange->ask = (struct store_ask){.verdict = STORE_FULL, .then = key_told, .data = exchange};
    key_ask(exchange, key);
    if (exchange->ask.verdict != STORE_LATER) {
        return key_decided(exchange);
    }
    exchange->asking = true;
    exchange_enter(exchange, EXCHANGE_ASKING);
    exchange->stream->ops->began(exchange->stream);
    return false;
}

void key_forget(struct exchange *exchange)
{
    if (exchange->asking) {
        store_cancel(exchange->store, &exchange->key);
        exchange->asking = false;
    }
}

void key_store_begin(struct exchange *exchange, const struct offer *offer)
{
    uint32_t status = offer->attempt->status;
    exchange->storing = store_keeps(status, exchange->key.once);
    if (exchange->storing) {
        exchange->storing = offer->head == NULL ? buffered_add(exchange->worker, &exchange->stored, offer->fields.at,
                                                               offer->fields.length)
                                                : answer_fields(exchange->worker, offer->head, &exchange->stored);
        /* A cookie is for the client that was answered first; another client of the same scope may ask again. */
        size_t length = exchange->storing ? exchange->stored.length : 0;
        exchange->stored.length = (uint32_t)packed_without(exchange->stored.at, length, "set-cookie");
        exchange->stored_fields = exchange->stored.length;
        exchange->answer_lost = !exchange->storing;
    }
}

void key_store_more(struct exchange *exchange, const struct pieces *pieces)
{
    bool was = exchange->storing;
    for (int i = 0; exchange->storing && i < pieces->count; i++) {
        exchange->storing =
            exchange->stored.length + pieces->piece[i].length <= STORED_MAX + exchange->stored_fields &&
            !buffered_over(exchange->worker) &&
            buffered_add(exchange->worker, &exchange->stored, pieces->piece[i].at, pieces->piece[i].length);
    }
    if (!exchange->storing) { /* also where there is no memory for it */
        exchange->answer_lost |= was;
        buffered_free(exchange->worker, &exchange->stored);
        exchange->stored_fields = 0;
    }
}

/* How the key ends with its call. If the service knows keys, every request without an answer may be repeated. If it
 * does not, only a request that no host can have executed: nothing of it was sent, or the service said so
 * (store_keeps()). */
static enum store_ending ending_of(const struct exchange *exchange, bool whole)
{
    if (whole && exchange->storing) {
        return STORE_END_ANSWER;
    }
    if (!exchange->key.once || (!whole && !exchange->reached)) {
        return STORE_END_RELEASE;
    }
    if (exchange->answer_lost) {
        return STORE_END_LOST;
    }
    return whole ? STORE_END_RELEASE : STORE_END_UNKNOWN;
}

static void end_key(struct exchange *exchange, bool whole)
{
    const struct bytes *stored = &exchange->stored;
    struct store_end end = {
        .kind = ending_of(exchange, whole),
        .result =
            {
                .status = exchange->status,
                .fields = {bytes_at(stored), exchange->stored_fields},
                .body = {bytes_at(stored) + exchange->stored_fields, stored->length - exchange->stored_fields},
            },
    };
    exchange->holds_key = false;
    store_end(exchange->store, &exchange->key, exchange->worker->loop.now, &end);
}

void key_end(struct exchange *exchange)
{
    if (exchange->holds_key) {
        end_key(exchange, false);
    }
}

/* Puts the trailers behind the fields that are stored. False: no memory. */
static bool store_trailers(struct exchange *exchange, const struct head *trailers)
{
    struct bytes *stored = &exchange->stored;
    struct text_sink out = {.at = exchange->worker->out, .size = WORKER_OUT};
    packed_put_trailers(&out, trailers);
    if (out.full || !buffered_add(exchange->worker, stored, out.at, out.length)) {
        return false;
    }
    char *at = stored->at + exchange->stored_fields;
    memmove(at + out.length, at, stored->length - exchange->stored_fields - out.length);
    memcpy(at, out.at, out.length);
    exchange->stored_fields += out.length;
    return true;
}

/* A gRPC answer is always 200: its gRPC status decides whether it is stored, and is stored with it. */
static __attribute__((noinline)) void store_grpc(struct exchange *exchange, const struct bytes *came)
{
    UNFILLED struct head trailers;
    if (bytes_left(came) > 0 && h1_parse_metadata(came->at, bytes_left(came), &trailers).kind == H1_OK) {
        exchange->storing = store_trailers(exchange, &trailers);
        exchange->answer_lost = !exchange->storing;
    }
    uint32_t code = code_stored((struct becalm_text){bytes_at(&exchange->stored), exchange->stored_fields});
    exchange->storing = exchange->storing && store_keeps(grpc_as_http(code), exchange->key.once);
}

void key_answered(struct exchange *exchange, const struct bytes *trailers)
{
    if (!exchange->holds_key) {
        return;
    }
    if (exchange->storing && grpc_has_trailers(exchange)) {
        store_grpc(exchange, trailers);
    }
    end_key(exchange, true);
}
