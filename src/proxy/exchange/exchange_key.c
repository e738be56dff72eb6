/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "message/answer_head.h"
#include "message/packed.h"
#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "proxy/key_scope.h"
#include "proxy/key_store.h"

#include <stdio.h>
#include <string.h>

#define STORED_MAX (1024u * 1024) /* a longer answer is passed on and not stored */

/* A stored answer, as it was, and the word that it was not made anew. */
static void answer_stored(struct exchange *exchange, const struct store_answer *answer)
{
    struct becalm_text body = {answer->bytes + answer->fields_length, answer->body_length};
    /* Of what has no body the length is among its fields. */
    bool has_length = !exchange->is_head && answer->status != 204 && answer->status != 304;
    struct draft draft;
    char values[512];
    bool keep = !exchange->wants_close;
    draft_begin(&draft, values, sizeof values);
    draft.status = answer->status;
    draft.packed = (struct becalm_text){answer->bytes, answer->fields_length};
    draft.close = !keep;
    answer_head_add(&draft, &(struct answer_head){.length_known = has_length,
                                                  .length = body.length,
                                                  .note = ANSWER_NOTE_REPLAYED,
                                                  .reason = "replayed"});
    meter_code(exchange->meter, answer->status);
    exchange_answer(exchange, &draft, body);
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
    char detail[192] = "a request with this idempotency key was sent, and nobody knows whether it was executed: see "
                       "what became of it before you use another key. It is held as ";
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
                                                                 "and there was no room to keep its answer",
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
                        "the store of idempotency keys does not answer, so nobody knows whether this one was used");
        break;
    case STORE_FULL:
        exchange_refuse(exchange, 503, "proxy_internal_response", "key_store_full",
                        "no room to remember this idempotency key");
        break;
    }
}

/* False: no memory. */
static bool key_make(struct exchange *exchange, struct becalm_text key, const struct store_secret *secret)
{
    const struct head *head = exchange->head;
    const struct snapshot_target *target = exchange->target;
    struct key_scope scope;
    key_scope_read(&scope, target->rules->key_scope, exchange->host_name, head);
    return store_key_make(&exchange->key,
                          &(struct store_request){
                              .secret = secret,
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

/* The store has said what it knows. True: the call may begin. */
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

bool key_begin(struct exchange *exchange)
{
    const struct store_secret *secret;
    struct worker *worker = exchange->worker;
    struct becalm_text key;
    if (!exchange->keyed || !becalm_key_parse(head_find(exchange->head, FIELD_IDEMPOTENCY_KEY), &key)) {
        return true; /* a safe method needs none */
    }
    exchange->ask = (struct store_ask){.verdict = STORE_FULL, .then = key_told, .data = exchange};
    exchange->store = key_store(worker, &secret);
    if (exchange->store != NULL && key_make(exchange, key, secret)) {
        (void)store_begin(exchange->store, &exchange->key, worker->loop.now, &exchange->ask);
    }
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

/* How the key ends with its call. Where the service knows keys, all but an answer may be asked for again. Where it does
 * not, only what nobody can have executed: nothing of it was sent, or the service said so (store_keeps()). */
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

void key_end(struct exchange *exchange, bool whole)
{
    if (!exchange->holds_key) {
        return;
    }
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
