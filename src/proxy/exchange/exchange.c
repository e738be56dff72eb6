/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "container.h"
#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "proxy/view.h"
#include "proxy/waiting.h"
#include "unfilled.h"

#include <stdlib.h>
#include <string.h>

#define SPARE_MAX   256u
#define ORPHAN_STEP (16u * 1024) /* of an answer for the store alone: as much must come in each idleTimeout */
#define NO_ANSWER   UINT64_MAX

/* The timer. Nearly no call ever needs it, and the next one needs it a little later: so it stays armed while calls end
 * and the exchange is used again, and looks when it fires whether there is something to be done. */

static void timer_fires(struct timer *timer)
{
    struct exchange *exchange = CONTAINER_OF(timer, struct exchange, timer);
    struct loop *loop = &exchange->worker->loop;
    if (exchange->timer_at <= loop->now) {
        exchange_event(exchange, BECALM_EVENT_TIMER, 0, NULL);
    } else {
        wheel_arm(&loop->wheel, timer, exchange->timer_at);
    }
}

static void timer_set(struct exchange *exchange, becalm_ns at)
{
    exchange->timer_at = at;
    if (!timer_armed(&exchange->timer) || exchange->timer.at > at) {
        wheel_arm(&exchange->worker->loop.wheel, &exchange->timer, at);
    }
}

/* Memory: exchanges are all of one size, and used again. */

/* One more, or one less. No other thread writes it. */
static void exchange_count(struct worker *worker, uint32_t more)
{
    uint32_t count = atomic_load_explicit(&worker->exchange_count, memory_order_relaxed);
    atomic_store_explicit(&worker->exchange_count, count + more, memory_order_relaxed);
}

struct exchange *exchange_make(struct worker *worker, struct client_stream *stream)
{
    struct exchange *exchange = worker->spare;
    if (exchange != NULL) {
        worker->spare = exchange->next;
        worker->spare_count--;
    } else {
        exchange = malloc(EXCHANGE_BYTES);
        if (exchange == NULL) {
            return NULL;
        }
        exchange->timer = (struct timer){.fire = timer_fires};
    }
    memset((char *)exchange + sizeof exchange->timer, 0, offsetof(struct exchange, call) - sizeof exchange->timer);
    attempt_enter(&exchange->first, ATTEMPT_NONE);
    exchange->retry_after[0] = '\0';
    exchange->timer_at = BECALM_NEVER;
    exchange->stream = stream;
    exchange->worker = worker;
    exchange->arrived_at = worker->loop.now;
    exchange->arrived_wall = worker->loop.wall;
    exchange->grpc_status = BECALM_GRPC_NONE;
    stream->exchange = exchange;
    exchange_count(worker, 1);
    return exchange;
}

/* Calls that hold a key and have no client any more. With a client its timer ends an answer that has stopped; without
 * one the exchange does it. */

static void silence_arm(struct exchange *exchange)
{
    struct loop *loop = &exchange->worker->loop;
    becalm_ns most = exchange->view->snapshot->settings->idle_timeout;
    exchange->silence_bytes = exchange->answer == ANSWER_NONE ? NO_ANSWER : exchange->answer_bytes;
    wheel_arm(&loop->wheel, &exchange->silence, becalm_ns_after(loop->now, most));
}

static void silence_fires(struct timer *timer)
{
    struct exchange *exchange = CONTAINER_OF(timer, struct exchange, silence);
    if (exchange->passing != NULL) { /* else the engine times it */
        attempt_stalled(exchange->passing);
    }
}

static void orphan_begin(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    exchange->silence = (struct timer){.fire = silence_fires};
    exchange->next = worker->orphans;
    exchange->orphan_link = &worker->orphans;
    if (exchange->next != NULL) {
        exchange->next->orphan_link = &exchange->next;
    }
    worker->orphans = exchange;
    silence_arm(exchange);
    if (exchange->passing != NULL) { /* the answer may have waited for the client to read */
        loop_later(&worker->loop, &exchange->passing->stream.task);
    }
}

static void orphan_end(struct exchange *exchange)
{
    if (exchange->orphan_link != NULL) {
        timer_disarm(&exchange->silence);
        *exchange->orphan_link = exchange->next;
        if (exchange->next != NULL) {
            exchange->next->orphan_link = exchange->orphan_link;
        }
    }
}

bool exchange_orphan_moves(struct exchange *exchange)
{
    if (!exchange->storing && exchange->answer < ANSWER_ENDED) {
        return false;
    }
    if (exchange->silence_bytes == NO_ANSWER || exchange->answer_bytes - exchange->silence_bytes >= ORPHAN_STEP) {
        silence_arm(exchange);
    }
    return true;
}

void exchange_free(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    exchange->timer_at = BECALM_NEVER;
    orphan_end(exchange);
    for (uint32_t i = 0; i < BECALM_SLOTS; i++) {
        if (exchange->attempt[i] != NULL) {
            attempt_abandon(exchange->attempt[i]);
        }
    }
    if (exchange->phase == EXCHANGE_ASKING) {
        key_forget(exchange);
    } else if (exchange->phase == EXCHANGE_HELD) {
        exchange_fault_end(exchange);
    }
    key_end(exchange);
    if (exchange->join == EXCHANGE_JOIN_IN) {
        exchange_join_end(exchange);
    }
    if (exchange->expect != NULL) {
        expect_drop(exchange);
    }
    tunnel_place_give(exchange);
    exchange_release_body(exchange);
    if (exchange->kept.status != 0) {
        buffered_free(worker, &exchange->kept.bytes);
        bytes_free(&exchange->kept.trailers);
    }
    buffered_free(worker, &exchange->stored);
    if (exchange->large != NULL) {
        free(exchange->large);
    }
    if (exchange->span != NULL) {
        free(exchange->span);
    }
    if (exchange->view != NULL) {
        view_leave(worker, exchange->view);
    }
    exchange_count(worker, UINT32_MAX);
    if (worker->spare_count < SPARE_MAX) {
        exchange->next = worker->spare;
        worker->spare = exchange;
        worker->spare_count++;
    } else {
        timer_disarm(&exchange->timer);
        free(exchange);
    }
}

/* The one writer. */
static void exchange_client_enter(struct exchange *exchange, enum client_phase phase)
{
    BECALM_ASSERT(phase > exchange->client);
    exchange->client = phase;
}

/* Takes the client's side and the exchange apart, and returns the side. */
static struct client_stream *exchange_part(struct exchange *exchange)
{
    struct client_stream *stream = exchange->stream;
    if (stream != &stream_nobody) {
        stream->exchange = NULL;
        exchange->stream = &stream_nobody;
    }
    return stream;
}

/* The call and its answer are over: counts, tells, and lets the client go on. */
static void exchange_end(struct exchange *exchange)
{
    const struct becalm_record *record = &exchange->call.record;
    meter_end(exchange->meter, &exchange->steps, record, exchange->status == 0 ? METER_CLIENT_LEFT : exchange->status);
    exchange_log_end(exchange);
    bool keep = !exchange->wants_close && exchange->request == REQUEST_WHOLE;
    enum answer_phase answer = exchange->answer;
    bool broken = exchange->client_broke;
    struct client_stream *stream = exchange_part(exchange);
    exchange_free(exchange);
    if (broken) {
        stream->ops->cut(stream);
        return;
    }
    switch (answer) {
    case ANSWER_BEGUN:
        stream->ops->cut(stream);
        break;
    case ANSWER_NONE:
    case ANSWER_ENDED:
    case ANSWER_TUNNEL: /* which begins now */
        stream->ops->done(stream, keep);
        break;
    }
}

/* The call is over, and another service is asked in place of its own. */
static __attribute__((noinline)) void exchange_fall(struct exchange *exchange)
{
    meter_end_untold(exchange->meter, &exchange->steps, &exchange->call.record);
    exchange->fallback = FALLBACK_SERVICE;
    exchange_log_fell(exchange);
    if (exchange->kept.status != 0) {
        buffered_free(exchange->worker, &exchange->kept.bytes);
        bytes_free(&exchange->kept.trailers);
        exchange->kept = (struct kept){0};
    }
    exchange->falls = exchange->reached = false;
    exchange->host_full = exchange->no_means = exchange->connect_late = false;
    exchange->rule = NULL;
    exchange->retry_after[0] = '\0';
    exchange->grpc_status = BECALM_GRPC_NONE;
    exchange->status = 0;
    exchange->phase = EXCHANGE_OPEN; /* the one way back */
    fallback_begin(exchange);
    exchange_begin_again(exchange);
}

/* Steps. */

void exchange_enter(struct exchange *exchange, enum exchange_phase phase)
{
    BECALM_ASSERT(phase > exchange->phase);
    exchange->phase = phase;
}

static void note_action(struct exchange *exchange, const struct becalm_action *action)
{
    unsigned means = meter_step_means(&exchange->steps, action);
    if (means == 0) {
        return;
    }
    meter_step(exchange->meter, &exchange->steps, means, action, exchange->worker->loop.now);
    if ((means & METER_STEP_BREAKER) != 0) {
        gateway_breaker_moved(exchange->worker, exchange->target, action->breaker_from, action->breaker_to);
    }
    if ((means & METER_STEP_SENDS) != 0) {
        if (exchange->steps.why != BECALM_WHY_HEDGE) {
            exchange_log_retry(exchange, action);
        }
        if (exchange->span != NULL) {
            exchange_trace_retry(exchange, action->attempt - 1);
        }
        exchange->retry_after[0] = '\0';
        exchange->grpc_status = BECALM_GRPC_NONE;
    }
}

/* The attempt may wait in line for a connection, where it has less time than a request that streams. */
static __attribute__((noinline)) void wake_for_line(const struct exchange *exchange, struct becalm_action *action)
{
    const struct attempt *attempt = exchange->attempt[action->slot];
    if (attempt != NULL && attempt->leave_at != 0) {
        action->wake_at = becalm_ns_min(action->wake_at, attempt->leave_at);
    }
}

/* The call has failed, and nothing was answered. */
static void finish_failed(struct exchange *exchange, const struct becalm_action *action)
{
    enum fallback fallback = fallback_of(exchange, action->why);
    if (fallback == FALLBACK_SERVICE) {
        exchange->falls = true; /* as soon as this step is done */
    } else {
        answer_finish(exchange, action, fallback == FALLBACK_ANSWER);
    }
}

/* A failed answer is not passed on where something else is answered in its place: the attempt ends here. */
static __attribute__((noinline)) bool withhold(struct exchange *exchange, const struct becalm_action *action)
{
    if (fallback_of(exchange, action->why) == FALLBACK_NONE) {
        return false;
    }
    if ((action->flags & BECALM_DO_FINISH) == 0) {
        exchange->end[action->slot] = (struct becalm_outcome){.status = exchange->attempt[action->slot]->status};
        exchange->pending |= 1u << action->slot;
    }
    return true;
}

/* The call is over, and its answer is not. */
static __attribute__((noinline)) void finish_answer(struct exchange *exchange, const struct becalm_action *action)
{
    if (exchange->answer == ANSWER_NONE && exchange->client != CLIENT_GONE) {
        finish_failed(exchange, action);
    } else if (exchange->answer == ANSWER_BEGUN && grpc_has_trailers(exchange)) {
        grpc_end(exchange, action);
    }
}

static void act(struct exchange *exchange, struct becalm_action *action)
{
    for (uint32_t slot = 0; action->cancel >> slot != 0; slot++) {
        if ((action->cancel >> slot & 1) != 0 && exchange->attempt[slot] != NULL) {
            attempt_abandon(exchange->attempt[slot]);
            exchange->pending &= ~(1u << slot);
        }
    }
    if ((action->flags & BECALM_DO_SEND) != 0) {
        attempt_start(exchange, action);
        if (exchange->body_streams) {
            wake_for_line(exchange, action);
        }
    }
    if ((action->flags & BECALM_DO_ANSWER) != 0 && exchange->offer != NULL &&
        (action->why == BECALM_WHY_OK || !withhold(exchange, action))) {
        exchange->passing = exchange->attempt[action->slot];
        answer_begin(exchange, exchange->offer, action);
    }
    if ((action->flags & BECALM_DO_FINISH) != 0) {
        if (exchange->answer <= ANSWER_BEGUN) {
            finish_answer(exchange, action);
        }
        exchange_enter(exchange, EXCHANGE_OVER);
    }
}

static void step(struct exchange *exchange, struct becalm_event *event, bool *serve)
{
    UNFILLED struct becalm_action action;
    bool done = event->kind == BECALM_EVENT_DONE;
    struct attempt *attempt = done ? exchange->attempt[event->slot] : NULL;
    event->at = worker_moment(exchange->worker);
    becalm_call_step(&exchange->call, event, &action);
    if (done) {
        meter_attempt_ended(exchange->meter, &action, event->outcome.status);
    }
    note_action(exchange, &action);
    if (attempt != NULL && (action.flags & BECALM_DO_ANSWER) == 0) {
        attempt_free(attempt); /* the attempt is over, and its slot may be needed again */
        attempt = NULL;
    }
    act(exchange, &action);
    if (attempt != NULL) {
        exchange->passing = NULL;
        attempt_free(attempt);
    }
    if (exchange->phase != EXCHANGE_OVER && action.wake_at != exchange->timer_at) {
        timer_set(exchange, action.wake_at);
    }
    *serve |= (action.flags & BECALM_DO_SERVE) != 0;
    if ((action.flags & BECALM_DO_PARK) != 0) {
        waiting_serve_lines(exchange->worker);
    }
}

bool exchange_event(struct exchange *exchange, enum becalm_event_kind kind, uint32_t slot,
                    const struct becalm_outcome *outcome)
{
    struct worker *worker = exchange->worker;
    struct view *view = exchange->view;
    struct state *state = exchange->target->state;
    bool serve = false;
    struct becalm_event event = {.kind = kind, .slot = slot};
    if (outcome != NULL) {
        event.outcome = *outcome;
    }
    BECALM_ASSERT(exchange->phase == EXCHANGE_CALLING);
    if (kind == BECALM_EVENT_TIMER) {
        exchange->timer_at = BECALM_NEVER; /* the timer has fired */
    }
    exchange->in_step = true;
    step(exchange, &event, &serve);
    exchange->offer = NULL;
    while (exchange->pending != 0 && exchange->phase != EXCHANGE_OVER) {
        uint32_t failed = (uint32_t)__builtin_ctz(exchange->pending);
        exchange->pending &= exchange->pending - 1;
        event = (struct becalm_event){.kind = BECALM_EVENT_DONE, .slot = failed, .outcome = exchange->end[failed]};
        step(exchange, &event, &serve);
    }
    if (exchange->client_broke && exchange->phase != EXCHANGE_OVER && !exchange_outlives(exchange)) {
        event = (struct becalm_event){.kind = BECALM_EVENT_CANCEL};
        step(exchange, &event, &serve);
    }
    exchange->in_step = false;
    bool over = exchange->phase == EXCHANGE_OVER;
    if (exchange->client_broke && !over) {
        exchange->client_broke = false;
        exchange->stream->ops->cut(exchange->stream); /* the call goes on without it */
    }
    if (serve) {
        view_enter(view); /* the end of this call must not take the view away */
    }
    if (over && exchange->falls) {
        exchange_fall(exchange);
    } else if (over) {
        exchange_end(exchange);
    }
    if (serve) {
        waiting_serve(worker, state);
        view_leave(worker, view);
    }
    return !over;
}

void exchange_discard(struct exchange *exchange, bool keep)
{
    bool broken = exchange->client_broke;
    struct client_stream *stream = exchange_part(exchange);
    exchange_free(exchange);
    if (broken) {
        stream->ops->cut(stream);
    } else {
        stream->ops->done(stream, keep);
    }
}

void exchange_attempt_ended(struct exchange *exchange, uint32_t slot, const struct becalm_outcome *outcome)
{
    if (exchange->in_step) {
        exchange->end[slot] = *outcome;
        exchange->pending |= 1u << slot;
    } else {
        exchange_event(exchange, BECALM_EVENT_DONE, slot, outcome);
    }
}

void exchange_serve(struct exchange *exchange)
{
    exchange_event(exchange, BECALM_EVENT_SERVE, 0, NULL);
}

/* With an idempotency key, as long as there will be an answer to store: the request must not be executed twice. */
bool exchange_outlives(const struct exchange *exchange)
{
    return exchange->holds_key && exchange->phase != EXCHANGE_HELD && exchange->request == REQUEST_WHOLE &&
           (exchange->answer == ANSWER_NONE || exchange->storing);
}

void exchange_cancel(struct exchange *exchange)
{
    if (exchange->client != CLIENT_GONE) {
        exchange_part(exchange);
        exchange_client_enter(exchange, CLIENT_GONE);
    }
    BECALM_ASSERT(!exchange->in_step && exchange->orphan_link == NULL);
    if (exchange_outlives(exchange)) {
        orphan_begin(exchange);
    } else if (exchange->phase == EXCHANGE_CALLING) {
        exchange_event(exchange, BECALM_EVENT_CANCEL, 0, NULL);
    } else {
        exchange_free(exchange);
    }
}

void exchange_left(struct exchange *exchange)
{
    if (exchange->client == CLIENT_THERE) {
        exchange_client_enter(exchange, CLIENT_LEFT);
    }
    if (exchange->phase == EXCHANGE_CALLING &&
        !exchange->holds_key) { /* with a key it goes on, also when its client is gone for certain */
        exchange_event(exchange, BECALM_EVENT_LEFT, 0, NULL);
    }
}

void exchange_feed(struct exchange *exchange)
{
    if (exchange->body_streams && exchange_wants_body(exchange)) {
        exchange->stream->ops->took(exchange->stream);
    }
}

void exchange_unblocked(struct exchange *exchange)
{
    if (exchange->passing != NULL) {
        attempt_resume(exchange->passing);
    }
}
