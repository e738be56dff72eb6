/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "message/answer_head.h"
#include "proxy/gateway_shared.h"
#include "unfilled.h"

#include <string.h>

#define VALUES_ROOM 1024u

/* The bit of `fallback.on` for calls that end with this reason; 0: they have no fallback. */
static uint32_t word_of(enum becalm_reason why)
{
    switch (why) {
    case BECALM_WHY_BREAKER_OPEN:
        return BECALM_FALLBACK_OPEN;
    case BECALM_WHY_THROTTLED:
    case BECALM_WHY_SHED:
    case BECALM_WHY_LIMIT:
    case BECALM_WHY_ANSWERS:
    case BECALM_WHY_RATE:
    case BECALM_WHY_QUEUED:
    case BECALM_WHY_NO_CONNECTION:
        return BECALM_FALLBACK_SHED;
    case BECALM_WHY_ATTEMPTS_SPENT:
    case BECALM_WHY_BUDGET_EMPTY:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_DEADLINE:
    case BECALM_WHY_NOT_IDEMPOTENT:
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_STOPPED:
    case BECALM_WHY_RETRIES_OFF:
    case BECALM_WHY_NO_HOST:
        return BECALM_FALLBACK_FAILED;
    case BECALM_WHY_NONE:
    case BECALM_WHY_OK:
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_PERMANENT:
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_CANCELLED:
        return 0;
    }
    BECALM_UNREACHABLE();
}

/* The rules that have the fallback: those of the service that was called first, also during the fallback call. */
static const struct snapshot_target *asked(const struct exchange *exchange)
{
    return exchange->fell_from != NULL ? exchange->fell_from : exchange->target;
}

/* May the request be sent to another service? Not if it could be executed twice and must not be. */
static bool may_go_elsewhere(const struct exchange *exchange)
{
    bool reached = exchange->reached;
    for (uint32_t i = 0; i < BECALM_SLOTS; i++) {
        reached |= exchange->attempt[i] != NULL && exchange->attempt[i]->reached;
    }
    return exchange->request == REQUEST_WHOLE && (!exchange->body_streams || exchange->body_recorded) &&
           exchange->expect == NULL && !exchange->login && (!reached || exchange_may_repeat(exchange));
}

enum fallback fallback_of(const struct exchange *exchange, enum becalm_reason why)
{
    const struct snapshot_target *target = asked(exchange);
    const struct becalm_fallback *fallback = &target->rules->fallback;
    BECALM_ASSERT(exchange->answer == ANSWER_NONE); /* a fallback is looked for only before an answer begins */
    if ((fallback->on & word_of(why)) == 0 || target->state->policy.shadow || exchange->holds_key ||
        exchange->is_connect || exchange->upgrades || exchange->client == CLIENT_GONE) {
        return FALLBACK_NONE;
    }
    if (exchange->fell_from == NULL && target->fallback != NULL && may_go_elsewhere(exchange)) {
        return FALLBACK_SERVICE;
    }
    return fallback->status != 0 && !exchange->grpc ? FALLBACK_ANSWER : FALLBACK_NONE;
}

void fallback_name(struct draft *draft, const struct exchange *exchange)
{
    draft_add_chars(draft, "becalm-fallback", asked(exchange)->service->name);
}

void fallback_answer(struct exchange *exchange, const struct becalm_action *action)
{
    const struct becalm_fallback *fallback = &asked(exchange)->rules->fallback;
    UNFILLED struct draft draft;
    UNFILLED char values[VALUES_ROOM];
    struct becalm_text body = text_of(fallback->body == NULL ? "" : fallback->body);
    struct becalm_own_answer usual;
    bool failed = fallback->status >= 500;
    becalm_own_answer_for(action->why, exchange->call.record.attempts > 0 ? exchange->call.last : BECALM_OUTCOME_OK,
                          &usual);
    draft_begin(&draft, values, sizeof values);
    draft.status = fallback->status;
    for (size_t i = 0; fallback->fields[i] != NULL; i += 2) {
        draft_add_chars(&draft, fallback->fields[i], fallback->fields[i + 1]);
    }
    fallback_name(&draft, exchange);
    answer_head_add(&draft, &(struct answer_head){
                                .date = worker_date(exchange->worker),
                                .length_known = fallback->status != 204 && fallback->status != 304,
                                .length = body.length,
                                .note = ANSWER_NOTE_ERROR,
                                .error = usual.error,
                                .reason = becalm_reason_word(action->why),
                                .mark = failed ? gateway_mark(exchange_role(exchange), action->mark) : BECALM_MARK_NONE,
                                .mark_reason = action->why,
                            });
    draft.close = exchange->wants_close;
    exchange->status = fallback->status;
    exchange->fallback = FALLBACK_ANSWER;
    struct meters *meters = asked(exchange)->meters;
    meter_add(&meters->meter[exchange->worker->number]->fallbacks[METER_FALLBACK_ANSWER], 1);
    exchange_answer(exchange, &draft, body);
}

void fallback_begin(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    const struct snapshot_target *target = exchange->target;
    const struct snapshot *snapshot = exchange->view->snapshot;
    struct route route;
    meter_add(&exchange->meter->fallbacks[METER_FALLBACK_SERVICE], 1);
    exchange->fell_from = target;
    exchange->fallback = FALLBACK_SERVICE;
    exchange->prefix = 0;
    exchange->target = target->fallback;
    if (exchange_route_at(exchange, target->fallback->service_index, &route)) {
        exchange->target = &snapshot->target[snapshot_target_of(snapshot, &route)];
    }
    exchange->meter = exchange->target->meters->meter[worker->number];
    meter_add(&exchange->meter->arrivals[exchange_protocol(exchange, exchange->head->version == HTTP_2)], 1);
}
