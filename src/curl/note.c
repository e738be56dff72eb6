/* SPDX-License-Identifier: MIT */
#include "note.h"

#include "request.h"

#include "engine/apart_internal.h"

BECALM__COLD void note_retry(struct transfer *transfer, const struct becalm_action *action)
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
        .wait = transfer->counted.wait,
        .slept = transfer->counted.waited,
        .outcome = transfer->seen.outcome.kind,
        .status = transfer->seen.outcome.status,
        .grpc_status = transfer->seen.grpc_status,
        .code = transfer->code,
        .retry_after = {transfer->retry_after, strlen(transfer->retry_after)},
        .request_id = request_header(transfer, "X-Request-Id"),
        .reason = transfer->counted.why,
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

/* An attempt is over; it counts only if libcurl has sent it, or if no host accepted the connection and its call waits
 * for one. */
static void count_end(struct meter *meter, struct attempt *attempt, const struct becalm_action *action)
{
    if ((attempt->added && !attempt->unsent) || action->why == BECALM_WHY_NO_HOST) {
        meter_attempt_ended(meter, action, attempt->status);
    }
    meter_add(&meter->in_flight, UINT64_MAX);
    attempt->counted = false;
}

static BECALM__OUTLINE void count_finish(struct meter *meter, const struct transfer *transfer)
{
    meter_end(meter, &transfer->counted, &transfer->call.record, status_told(transfer));
}

static void count_begin(struct meter *meter, struct transfer *transfer, const struct becalm_action *action)
{
    meter_add(&meter->arrivals[METER_H1], 1); /* libcurl chooses, and they are shown as one */
    meter_begin(meter, &transfer->counted);
    if ((action->flags & BECALM_DO_SEND) != 0) { /* attempt_dispatch() counts all other attempts */
        meter_add(&meter->in_flight, 1);
        transfer->attempt[action->slot].counted = true;
    }
}

/* A retry waits or is sent, or the breaker has changed. */
static BECALM__COLD void count_trouble(struct transfer *transfer, const struct becalm_event *event,
                                       const struct becalm_action *action, unsigned means)
{
    struct meter *meter = site_take(transfer->site, event->at.cell);
    meter_step(meter, &transfer->counted, means, action, event->at.now);
    site_give(meter);
}

/* After everything was counted: the callback may ask for the metrics. */
static BECALM__COLD void breaker_tell(const struct transfer *transfer, const struct becalm_action *action)
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
        count_end(meter, &transfer->attempt[event->slot], action);
    }
    if (finishes) {
        count_finish(meter, transfer);
    }
    site_give(meter);
}

unsigned note_step(struct transfer *transfer, const struct becalm_event *event, const struct becalm_action *action)
{
    note_counts(transfer, event, action);
    unsigned means = meter_step_means(&transfer->counted, action);
    if (means != 0) {
        count_trouble(transfer, event, action, means);
    }
    if ((means & METER_STEP_BREAKER) != 0) {
        breaker_tell(transfer, action);
    }
    return means;
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
        count_end(meter, attempt, &(struct becalm_action){.why = BECALM_WHY_NONE});
        site_give(meter);
    }
}
