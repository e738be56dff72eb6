/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "proxy/gateway_shared.h"

static void keys_add(struct exchange *exchange, enum join_field field, struct becalm_text value)
{
    struct becalm_text id = join_id(field, value);
    if (id.length > 0 && exchange->joined.count < JOIN_KEYS) {
        exchange->joined.key[exchange->joined.count++] = peer_of_name(&exchange->worker->gateway->peer_key, id);
    }
}

static void keys_read(struct exchange *exchange)
{
    static const struct {
        enum becalm_join bit;
        enum join_field field;
        enum field_id id;
    } fields[] = {
        {BECALM_JOIN_TRACEPARENT, JOIN_TRACEPARENT, FIELD_TRACEPARENT},
        {BECALM_JOIN_B3, JOIN_B3, FIELD_B3},
        {BECALM_JOIN_B3, JOIN_B3, FIELD_B3_TRACE},
        {BECALM_JOIN_CLOUD_TRACE, JOIN_CLOUD_TRACE, FIELD_CLOUD_TRACE},
    };
    uint32_t which = exchange->view->snapshot->settings->join;
    exchange->joined.count = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if ((which & fields[i].bit) != 0 && head_has(exchange->head, fields[i].id)) {
            keys_add(exchange, fields[i].field, head_find(exchange->head, fields[i].id));
        }
    }
    if ((which & BECALM_JOIN_TRACEPARENT) != 0 && exchange->trace == EXCHANGE_TRACE_BEGUN) {
        /* The trace that its host gets to know. */
        keys_add(exchange, JOIN_REQUEST_ID, (struct becalm_text){exchange->request_id, TRACE_ID_LENGTH});
    }
    if ((which & BECALM_JOIN_REQUEST_ID) != 0) { /* hosts get one in any case, and may pass it on */
        keys_add(exchange, JOIN_REQUEST_ID,
                 head_has(exchange->head, FIELD_REQUEST_ID)
                     ? head_find(exchange->head, FIELD_REQUEST_ID)
                     : (struct becalm_text){exchange->request_id, sizeof exchange->request_id});
    }
}

void exchange_join_begin(struct exchange *exchange, struct becalm_request *request)
{
    struct join_table *table = exchange->worker->gateway->join;
    struct client_stream *stream = exchange->stream;
    becalm_ns now = exchange->worker->loop.now;
    if (table == NULL) {
        return;
    }
    keys_read(exchange);
    if (exchange_role(exchange) == BECALM_ROLE_SIDECAR) {
        exchange->join = EXCHANGE_JOIN_OUT;
        request->deadline_at = becalm_ns_min(request->deadline_at, join_deadline(table, &exchange->joined, now));
        return;
    }
    exchange->join = EXCHANGE_JOIN_IN;
    becalm_ns most = becalm_ns_after(now, exchange->target->state->policy.deadline);
    join_enter(table, &exchange->joined,
               &(struct join_request){
                   .peer = stream->ops->identity(stream),
                   .trusted = exchange->origin.trusted,
                   .deadline_at = becalm_ns_min(request->deadline_at, most),
               },
               now);
}

/* A gate further down that is overloaded does not make its callers overloaded: to theirs the call was spent. */
void exchange_join_told(struct exchange *exchange, enum becalm_mark_kind kind, enum becalm_reason reason)
{
    struct worker *worker = exchange->worker;
    bool unasked = becalm_mark_unasked(kind);
    join_note(worker->gateway->join, &exchange->joined,
              (struct join_mark){unasked ? BECALM_MARK_UNASKED : BECALM_MARK_SPENT, reason}, worker->loop.now);
}

struct becalm_text exchange_join_mark(struct exchange *exchange, char room[EXCHANGE_MARK_ROOM])
{
    struct worker *worker = exchange->worker;
    struct join_mark mark = join_mark(worker->gateway->join, &exchange->joined, worker->loop.now);
    size_t length = becalm_mark_write(mark.kind, mark.reason, room, EXCHANGE_MARK_ROOM);
    return (struct becalm_text){length == 0 ? NULL : room, length};
}

void exchange_join_end(struct exchange *exchange)
{
    join_leave(exchange->worker->gateway->join, &exchange->joined);
}
