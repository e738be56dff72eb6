/* SPDX-License-Identifier: MIT */
#include "buffered.h"
#include "exchange.h"
#include "gateway_shared.h"
#include "key_scope.h"

#include "message/answer_head.h"

#define STORED_MAX (1024u * 1024) /* a longer answer is passed on and not stored: its key is released */

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

enum key_verdict key_begin(struct exchange *exchange)
{
    struct store *store = exchange->worker->gateway->store;
    const struct head *head = exchange->head;
    const struct snapshot_target *target = exchange->target;
    struct store_ask ask;
    struct becalm_text key;
    struct key_scope scope;
    if (!exchange->keyed || !becalm_key_parse(head_find(head, FIELD_IDEMPOTENCY_KEY), &key)) {
        return KEY_GO; /* a safe method needs none */
    }
    key_scope_read(&scope, target->rules->key_scope, exchange->host_name, head);
    struct store_request request = {
        .service = text_of(target->service->name),
        .endpoint = text_of(target->endpoint == NULL ? NULL : target->endpoint->name),
        .key = key,
        .scope = scope.text,
        .scope_count = scope.count,
        .peer = exchange->stream->ops->identity(exchange->stream),
        .method = exchange_method(exchange),
        .path = exchange->path,
        .body = {bytes_at(&exchange->body), bytes_left(&exchange->body)},
    };
    if (!store_key_make(&exchange->key, &request)) {
        return KEY_FULL;
    }
    switch (store_begin(store, &exchange->key, exchange->worker->loop.now, &ask)) {
    case STORE_BEGUN:
        exchange->holds_key = true;
        return KEY_GO;
    case STORE_ANSWERED:
        answer_stored(exchange, ask.answer);
        store_answer_free(ask.answer);
        return KEY_ANSWERED;
    case STORE_IN_FLIGHT:
        return KEY_IN_FLIGHT;
    case STORE_MISMATCH:
        return KEY_MISMATCH;
    case STORE_FULL:
    case STORE_LATER: /* only a store over a network says so, and there is none yet */
        return KEY_FULL;
    }
    return KEY_FULL;
}

void key_store_begin(struct exchange *exchange, const struct offer *offer)
{
    uint32_t status = offer->attempt->status;
    exchange->storing = store_keeps(status);
    if (exchange->storing) {
        exchange->storing = offer->head == NULL ? buffered_add(exchange->worker, &exchange->stored, offer->fields.at,
                                                               offer->fields.length)
                                                : answer_fields(exchange->worker, offer->head, &exchange->stored);
        exchange->stored_fields = exchange->stored.length;
    }
}

void key_store_more(struct exchange *exchange, const struct pieces *pieces)
{
    for (int i = 0; exchange->storing && i < pieces->count; i++) {
        exchange->storing =
            exchange->stored.length + pieces->piece[i].length <= STORED_MAX + exchange->stored_fields &&
            !buffered_over(exchange->worker) &&
            buffered_add(exchange->worker, &exchange->stored, pieces->piece[i].at, pieces->piece[i].length);
    }
    if (!exchange->storing) { /* also where there is no memory for it: the key is released at its end */
        buffered_free(exchange->worker, &exchange->stored);
        exchange->stored_fields = 0;
    }
}

void key_end(struct exchange *exchange, bool whole)
{
    if (!exchange->holds_key) {
        return;
    }
    const struct bytes *stored = &exchange->stored;
    struct store_result result = {
        .status = exchange->status,
        .fields = {bytes_at(stored), exchange->stored_fields},
        .body = {bytes_at(stored) + exchange->stored_fields, stored->length - exchange->stored_fields},
    };
    exchange->holds_key = false;
    store_end(exchange->worker->gateway->store, &exchange->key, exchange->worker->loop.now,
              whole && exchange->storing ? &result : NULL);
}
