/* SPDX-License-Identifier: MIT */
#include "note.h"

#include "request.h"

#include "engine/apart_internal.h"

BECALM__SELDOM void note_retry(struct transfer *transfer, const struct becalm_action *action, becalm_ns now)
{
    const struct becalm_client_options *options = &transfer->client->options;
    char *made = NULL;
    if (options->on_retry == NULL) {
        return;
    }
    struct becalm_curl_retry retry = {
        .operation = transfer->site->operation,
        .service = transfer->target->service,
        .endpoint = transfer->target->endpoint,
        .method = request_method(transfer),
        .url = request_url(transfer, &made),
        .retry = action->attempt,
        .of = transfer->call.policy->max_retries,
        .wait = transfer->wait,
        .slept = transfer->why == BECALM_WHY_HEDGE ? 0 : becalm_ns_since(now, transfer->failed_at),
        .outcome = transfer->seen.outcome.kind,
        .status = transfer->seen.outcome.status,
        .grpc_status = transfer->seen.grpc_status,
        .code = transfer->code,
        .retry_after = {transfer->retry_after, strlen(transfer->retry_after)},
        .request_id = request_header(transfer, "X-Request-Id"),
        .reason = transfer->why,
    };
    options->on_retry(&retry, options->data);
    curl_free(made);
}

/* The status that the caller sees; of a call without an answer the one that the gateway would have made up. */
static uint32_t status_told(const struct transfer *transfer)
{
    struct becalm_own_answer own;
    const struct becalm_record *record = &transfer->call.record;
    if (transfer->seen.outcome.status != 0) {
        return transfer->seen.outcome.status;
    }
    if (record->reason == BECALM_WHY_OK) {
        return 200; /* not HTTP */
    }
    becalm_own_answer_for(record->reason, transfer->seen.outcome.kind, &own);
    return own.status;
}

static bool changes_breaker(const struct becalm_action *action)
{
    return action->breaker_from != action->breaker_to;
}

/* An attempt is over, or it has never come to libcurl; or no host took it, and its call waits for one. */
static void count_end(struct meter *meter, struct attempt *attempt, bool waits)
{
    if (waits) {
        meter_add(&meter->probes, 1);
    } else if (attempt->added && !attempt->unsent) {
        meter_attempt(meter, &(struct becalm_outcome){.status = attempt->status});
    }
    meter_add(&meter->in_flight, UINT64_MAX);
    attempt->counted = false;
}

static BECALM__APART void count_finish(struct meter *meter, const struct transfer *transfer)
{
    meter_call(meter, &transfer->call.record);
    meter_code(meter, status_told(transfer));
    meter_add(&meter->active, UINT64_MAX);
    if (transfer->retries) {
        meter_add(&meter->active_retries, UINT64_MAX);
    }
}

static void count_begin(struct meter *meter, struct transfer *transfer, const struct becalm_action *action)
{
    meter_add(&meter->arrivals, 1);
    meter_add(&meter->active, 1);
    if ((action->flags & BECALM_DO_SEND) != 0) { /* attempt_send() counts the others */
        meter_add(&meter->in_flight, 1);
        transfer->attempt[action->slot].counted = true;
    }
}

static bool retry_waits(const struct becalm_action *action)
{
    return action->why == BECALM_WHY_BACKOFF || action->why == BECALM_WHY_HINT;
}

static bool sends_again(const struct transfer *transfer, const struct becalm_action *action)
{
    return (action->flags & BECALM_DO_SEND) != 0 && action->attempt > transfer->noted;
}

/* A retry waits or is sent, or the breaker has changed. */
static BECALM__SELDOM void note_trouble(struct transfer *transfer, const struct becalm_event *event,
                                        const struct becalm_action *action)
{
    struct meter *meter = site_take(transfer->site, event->at.cell);
    meter_breaker(meter, action->breaker_from, action->breaker_to);
    if (retry_waits(action)) {
        transfer->waited = action->wait.wait;
        meter_add(&meter->active_retries, transfer->retries ? 0 : 1);
        transfer->retries = true;
    }
    if (sends_again(transfer, action)) {
        meter_retry(meter, action->attempt, transfer->waited);
        transfer->waited = 0;
    }
    site_give(meter);
}

/* After everything was counted: the callback may ask for the metrics. */
static BECALM__SELDOM void breaker_tell(const struct transfer *transfer, const struct becalm_action *action)
{
    const struct becalm_client_options *options = &transfer->client->options;
    if (options->on_breaker != NULL) {
        options->on_breaker(transfer->target->service, action->breaker_from, action->breaker_to, options->data);
    }
}

static void note_counts(struct transfer *transfer, const struct becalm_event *event, const struct becalm_action *action)
{
    bool begins = event->kind == BECALM_EVENT_BEGIN;
    bool ends = event->kind == BECALM_EVENT_DONE && transfer->attempt[event->slot].counted;
    bool finishes = (action->flags & BECALM_DO_FINISH) != 0;
    if (!begins && !ends && !finishes) {
        return;
    }
    struct meter *meter = site_take(transfer->site, event->at.cell);
    if (begins) {
        count_begin(meter, transfer, action);
    }
    if (ends) {
        count_end(meter, &transfer->attempt[event->slot], action->why == BECALM_WHY_NO_HOST);
    }
    if (finishes) {
        count_finish(meter, transfer);
    }
    site_give(meter);
}

void note_step(struct transfer *transfer, const struct becalm_event *event, const struct becalm_action *action)
{
    if (changes_breaker(action) || retry_waits(action) || sends_again(transfer, action)) {
        note_trouble(transfer, event, action);
    }
    note_counts(transfer, event, action);
    if (changes_breaker(action)) {
        breaker_tell(transfer, action);
    }
}

void note_sent(struct attempt *attempt)
{
    if (!attempt->counted) {
        struct meter *meter = site_take(attempt->transfer->site, 0);
        meter_add(&meter->in_flight, 1);
        attempt->counted = true;
        site_give(meter);
    }
}

void note_end(struct attempt *attempt)
{
    if (attempt->counted) {
        struct meter *meter = site_take(attempt->transfer->site, 0);
        count_end(meter, attempt, false);
        site_give(meter);
    }
}
