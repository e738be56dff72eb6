/* SPDX-License-Identifier: MIT */
#include "buffered.h"
#include "exchange.h"
#include "gateway_shared.h"
#include "key_scope.h"

#define STORED_MAX (1024u * 1024) /* a longer answer is passed on and not stored: its key is released */

/* A stored answer, as it was, and the word that it was not made anew. */
static void answer_stored(struct exchange *exchange, const struct store_answer *answer)
{
    struct worker *worker = exchange->worker;
    struct client *client = exchange->client;
    struct h1_out out = {.at = worker->out, .size = WORKER_OUT};
    bool keep = !exchange->wants_close;
    bool is_head = exchange->is_head;
    h1_put_status_begin(&out, answer->status);
    h1_put(&out, (struct becalm_text){answer->bytes, answer->fields_length});
    if (!is_head && answer->status != 204 && answer->status != 304) { /* else it is among its fields */
        h1_put_number_field(&out, "content-length", answer->body_length);
    }
    h1_put_chars(&out, "proxy-status: becalm; details=\"replayed\"\r\n");
    h1_put_chars(&out, keep ? "\r\n" : "connection: close\r\n\r\n");
    struct iovec part[2] = {
        {out.at, out.length},
        {(char *)(uintptr_t)(answer->bytes + answer->fields_length), is_head ? 0 : answer->body_length},
    };
    meter_code(exchange->meter, answer->status);
    bool written = !out.full && client_write(client, part, 2);
    client_enter(client, CLIENT_BUSY);
    exchange->status = answer->status;
    exchange->answer_bytes = part[1].iov_len;
    exchange_log(exchange, "replayed");
    exchange_discard(exchange);
    if (written) {
        client_done(client, keep);
    } else {
        client_close(client);
    }
}

enum key_verdict key_begin(struct exchange *exchange)
{
    struct store *store = exchange->worker->gateway->store;
    const char *bytes = exchange->bytes;
    const struct h1_head *head = exchange->head;
    const struct snapshot_target *target = exchange->target;
    struct store_ask ask;
    struct becalm_text key;
    struct key_scope scope;
    if (!exchange->keyed || !becalm_key_parse(h1_find(bytes, head, H1_IDEMPOTENCY_KEY), &key)) {
        return KEY_GO; /* a safe method needs none */
    }
    key_scope_read(&scope, target->rules->key_scope, exchange->host_name, bytes, head);
    struct store_request request = {
        .service = text_of(target->service->name),
        .endpoint = text_of(target->endpoint == NULL ? NULL : target->endpoint->name),
        .key = key,
        .scope = scope.text,
        .scope_count = scope.count,
        .peer = client_identity(exchange->client),
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
        exchange->storing =
            offer->head == NULL
                ? buffered_add(exchange->worker, &exchange->stored, offer->fields.at, offer->fields.length)
                : answer_fields(exchange->worker, offer->bytes, offer->head, &exchange->stored);
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
