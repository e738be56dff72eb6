/* SPDX-License-Identifier: MIT */
#include "exchange.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/upstream.h"

#include "container.h"
#include "message/phrase.h"
#include "unfilled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Injected faults: a host seems to misbehave, without being called. */

#define PHRASE_ROOM 64u

/* ---- delays ---- */

static void hold_fires(struct timer *timer)
{
    struct fault_hold *hold = CONTAINER_OF(timer, struct fault_hold, timer);
    hold->then(hold);
}

struct fault_hold *fault_hold(struct worker *worker, const struct fault_hit *hit, becalm_ns at,
                              void (*then)(struct fault_hold *), void *data)
{
    struct fault_hold *hold = calloc(1, sizeof *hold);
    if (hold == NULL) {
        return NULL;
    }
    hold->timer.fire = hold_fires;
    hold->worker = worker;
    hold->hit = *hit;
    hold->then = then;
    hold->data = data;
    hold->next = worker->holds;
    hold->link = &worker->holds;
    if (hold->next != NULL) {
        hold->next->link = &hold->next;
    }
    worker->holds = hold;
    wheel_arm(&worker->loop.wheel, &hold->timer, at);
    return hold;
}

void fault_hold_free(struct fault_hold *hold)
{
    timer_disarm(&hold->timer);
    *hold->link = hold->next;
    if (hold->next != NULL) {
        hold->next->link = hold->link;
    }
    free(hold);
}

void fault_holds_end(struct worker *worker)
{
    for (struct fault_hold *hold = worker->holds; hold != NULL; hold = hold->next) {
        if (!hold->over && !fault_book_has(worker->faults, hold->hit.number, worker->loop.now)) {
            hold->over = true;
            wheel_arm(&worker->loop.wheel, &hold->timer, worker->loop.now);
        }
    }
}

/* ---- hits ---- */

bool fault_hits(struct exchange *exchange, bool to_clients, uint32_t host, struct fault_hit *hit)
{
    const struct snapshot_target *target = exchange->target;
    struct fault_call call = {
        .service = target->service->name,
        .endpoint = target->endpoint == NULL ? NULL : target->endpoint->name,
        .to_clients = to_clients,
        .host = host,
        .host_count = exchange->view->snapshot->service[target->service_index].host_count,
        .caller = exchange->stream->ops->identity(exchange->stream),
        .ip = &exchange->origin.ip,
        .head = exchange->head,
        .now = exchange->worker->loop.now,
        .random = becalm_rand_next(&exchange->worker->loop.random),
    };
    if (!fault_book_draw(exchange->worker->faults, &call, hit)) {
        return false;
    }
    exchange->faulted = true;
    memcpy(exchange->fault, hit->name, sizeof exchange->fault);
    meter_add(&exchange->meter->faults[hit->word], 1);
    return true;
}

/* ---- attempts ---- */

static bool held_send(struct host_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    (void)stream;
    (void)draft;
    (void)part;
    return false;
}

static bool held_more(struct host_stream *stream, const struct stream_part *part)
{
    return held_send(stream, NULL, part);
}

static bool held_blocked(const struct host_stream *stream)
{
    (void)stream;
    return false;
}

static size_t held_bytes(const struct host_stream *stream)
{
    (void)stream;
    return sizeof(struct fault_hold);
}

static void held_resume(struct host_stream *stream)
{
    (void)stream;
}

static void held_drop(struct host_stream *stream)
{
    fault_hold_free(stream->fault);
    stream->fault = NULL;
    host_stream_over(stream);
}

/* The host's side of an attempt that a fault delays. Nothing is sent, so only `drop` is ever called. */
static const struct host_stream_ops held_ops = {
    .send = held_send,
    .more = held_more,
    .blocked = held_blocked,
    .held = held_bytes,
    .resume = held_resume,
    .drop = held_drop,
};

/* As if its host had answered so. */
static void answer(struct attempt *attempt, const struct fault_hit *hit)
{
    static const struct pieces nothing;
    static const char field[] = "becalm-fault";
    UNFILLED struct head head;
    char bytes[sizeof field + FAULT_NAME_MAX + PHRASE_ROOM];
    const char *phrase = status_phrase(hit->status);
    size_t phrase_length = strlen(phrase) < PHRASE_ROOM ? strlen(phrase) : 0;
    size_t length = strlen(hit->name);
    memset(&head, 0, offsetof(struct head, field));
    memcpy(bytes, field, sizeof field - 1);
    memcpy(bytes + sizeof field, hit->name, length);
    memcpy(bytes + sizeof field + length, phrase, phrase_length);
    head.bytes = bytes;
    head.length = (uint32_t)(sizeof field + length + phrase_length);
    head.phrase = (uint32_t)(sizeof field + length);
    head.phrase_length = (uint32_t)phrase_length;
    head.status = hit->status;
    head.version = HTTP_1_1;
    head.framing = BODY_LENGTH;
    head.keep_alive = true;
    head.field_count = 1;
    head.field[0] = (struct field){
        .value = sizeof field,
        .value_length = (uint32_t)length,
        .name_length = sizeof field - 1,
        .id = FIELD_OTHER,
    };
    attempt->state = ATTEMPT_SENT;
    attempt->reached = true;
    attempt->through = true;
    (void)attempt->stream.calls->head(&attempt->stream, &head, &nothing, true);
}

static void fail(struct attempt *attempt, enum becalm_http_failure failure, int error)
{
    attempt->stream.calls->failed(&attempt->stream, &(struct host_failure){.failure = failure, .error = error});
}

static void acts(struct fault_hold *hold)
{
    struct attempt *attempt = hold->data;
    struct fault_hit hit = hold->hit;
    bool over = hold->over;
    held_drop(&attempt->stream);
    if (over) {
        attempt_go(attempt);
        return;
    }
    switch (hit.act) {
    case FAULT_ACT_STATUS:
        answer(attempt, &hit);
        break;
    case FAULT_ACT_RESET:
        attempt->state = ATTEMPT_SENT;
        attempt->reached = true;
        fail(attempt, BECALM_HTTP_RESET, ECONNRESET);
        break;
    case FAULT_ACT_REFUSE:
        fail(attempt, BECALM_HTTP_CONNECT, ECONNREFUSED);
        break;
    case FAULT_ACT_SWALLOW:
        fail(attempt, BECALM_HTTP_CONNECT, ETIMEDOUT);
        break;
    case FAULT_ACT_HANG:
    case FAULT_ACT_DELAY:
        attempt_go(attempt);
        break;
    }
}

bool attempt_fault(struct attempt *attempt, uint32_t host)
{
    struct exchange *exchange = attempt->exchange;
    struct host_stream *stream = &attempt->stream;
    becalm_ns at = exchange->worker->loop.now;
    struct fault_hit hit;
    if (!fault_hits(exchange, false, host, &hit)) {
        return false;
    }
    if (hit.act == FAULT_ACT_SWALLOW) {
        at = becalm_ns_after(at, stream->connect_timeout);
    } else if (hit.act == FAULT_ACT_HANG || hit.act == FAULT_ACT_DELAY) {
        at = hit.until;
    }
    struct fault_hold *hold = fault_hold(exchange->worker, &hit, at, acts, attempt);
    if (hold == NULL) {
        return false;
    }
    stream->fault = hold;
    stream->ops = &held_ops;
    return true;
}
