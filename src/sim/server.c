/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>
#include <string.h>

/* A queue with CoDel: it may be long for an instant; if it stays long, requests are refused. */
#define CODEL_TARGET   (20 * BECALM_MS)
#define CODEL_INTERVAL (100 * BECALM_MS)
#define CODEL_MAX      BECALM_S

#define TIME_MAX (3600 * BECALM_S) /* of one service time: a heavy tail has no end */

void attempt_give(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    joined_leave(w, attempt);
    attempt->generation++;
    attempt->stage = ATTEMPT_NONE;
    pool_give(&w->attempts, id);
}

/* A message of this attempt's has vanished: its caller never hears of it, and closes the connection at its timeout. */
static void attempt_lost(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    if (attempt->connected && attempt->call != NOTHING) {
        attempt->stage = ATTEMPT_VANISHED;
        return;
    }
    if (attempt->call != NOTHING) {
        call_at(w, attempt->call)->flight[attempt->slot] = NOTHING;
    }
    attempt_give(w, id);
}

static uint32_t status_of(enum becalm_outcome_kind kind)
{
    return kind == BECALM_OUTCOME_OK             ? 200
           : kind == BECALM_OUTCOME_REFUSED      ? 0
           : kind == BECALM_OUTCOME_CONFLICT     ? 409
           : kind == BECALM_OUTCOME_RATE_LIMITED ? 429
           : kind == BECALM_OUTCOME_LATE         ? 504
                                                 : 503;
}

static void attempt_answer(struct world *w, uint32_t id, enum becalm_outcome_kind kind, enum becalm_mark_kind mark)
{
    struct attempt *attempt = attempt_at(w, id);
    if (w->options->marks_always && (mark == BECALM_MARK_SPENT || mark == BECALM_MARK_UNASKED)) {
        mark = BECALM_MARK_OVERLOADED;
    }
    attempt->outcome = (struct becalm_outcome){
        .kind = kind,
        .mark = w->options->carries_marks ? mark : BECALM_MARK_NONE,
        .status = status_of(kind),
    };
    attempt->stage = ATTEMPT_RETURNS;
    joined_leave(w, attempt);
    clock_plan(&w->clock, (struct event){.at = w->clock.now + link_takes(w, &w->hop[attempt->hop].link),
                                         .kind = ATTEMPT_ANSWERED,
                                         .id = id,
                                         .generation = attempt->generation});
}

/* No process listens there, or a fault on the way says so. */
static void attempt_refuse(struct world *w, uint32_t id)
{
    attempt_answer(w, id, BECALM_OUTCOME_REFUSED, BECALM_MARK_NONE);
    attempt_at(w, id)->outcome.no_listener = true;
}

/* The client has used up its quota: 429, with Retry-After if the service says how long to wait. */
static void attempt_limit(struct world *w, uint32_t id, becalm_ns retry_after)
{
    struct attempt *attempt = attempt_at(w, id);
    attempt_answer(w, id, BECALM_OUTCOME_RATE_LIMITED, BECALM_MARK_NONE);
    attempt->outcome.has_hint = attempt->outcome.own_hint = retry_after > 0;
    attempt->outcome.hint = retry_after;
}

/* The service's own answer, which may go on for a while after its head. */
static void attempt_succeed(struct world *w, uint32_t id, enum becalm_mark_kind mark)
{
    struct attempt *attempt = attempt_at(w, id);
    const struct scenario_endpoint *endpoint = &w->service[attempt->service].endpoint[attempt->endpoint];
    attempt->body = becalm_ns_min(dist_draw(&w->tables, &endpoint->body, &w->service_state), TIME_MAX);
    attempt_answer(w, id, BECALM_OUTCOME_OK, mark);
}

static void end_plan(struct world *w, uint32_t id, becalm_ns after)
{
    clock_plan(&w->clock, (struct event){.at = becalm_ns_after(w->clock.now, after),
                                         .kind = ATTEMPT_ENDED,
                                         .id = id,
                                         .generation = attempt_at(w, id)->generation});
}

/* The rest of an answer is here, or lost: it ends as soon as that is known to its caller, but not before its head. */
static void answer_end(struct world *w, uint32_t id, bool cut)
{
    struct attempt *attempt = attempt_at(w, id);
    attempt->cut |= cut;
    attempt->body = 1;
    if (attempt->stage == ATTEMPT_STREAMS) {
        attempt->generation++; /* the attempt ends now: the event that was planned for its end is void */
        end_plan(w, id, link_takes(w, &w->hop[attempt->hop].link));
    }
}

/* One more attempt is sent, or, with -1, one less. */
static void attempt_count(struct world *w, const struct call *call, uint32_t number, uint64_t more)
{
    const struct hop *hop = &w->hop[call->hop];
    struct world_service *counts = &w->result->service[hop->to];
    uint32_t endpoints = w->plan->services[hop->to].endpoint_count;
    struct world_sent *sent = &counts->endpoint[call->endpoint == 0 ? endpoints : call->endpoint - 1];
    struct world_sent *of_client = call->attempt == NOTHING ? &w->result->client[call->client].sent : NULL;
    if (number == 0) {
        counts->first += hop->is_gate ? 0 : more;
        sent->first += hop->is_gate ? 0 : more;
    } else {
        counts->retries += more;
        sent->retries += hop->is_gate ? 0 : more;
    }
    if (of_client != NULL) {
        *(number == 0 ? &of_client->first : &of_client->retries) += more;
    }
}

void attempt_unsent(struct world *w, const struct call *call, uint32_t number)
{
    attempt_count(w, call, number, UINT64_MAX);
}

/* Is its caller one of those that can't reach the service? */
static bool is_cut_off(const struct world *w, const struct attempt *attempt)
{
    const struct hop *hop = &w->hop[attempt->hop];
    uint64_t cut_ppm = w->service[attempt->service].cut_ppm;
    return !hop->is_gate && (uint64_t)attempt->caller * 1000000 < cut_ppm * hop->callers;
}

becalm_ns deadline_written(const struct world *w, becalm_ns at)
{
    becalm_ns left = at > w->clock.now ? at - w->clock.now : 0;
    return left > 0 && left < BECALM_MS ? BECALM_MS : left / BECALM_MS * BECALM_MS;
}

void attempt_travel(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    const struct link *link = &w->hop[attempt->hop].link;
    attempt->stage = ATTEMPT_TRAVELS;
    if ((attempt->connected && is_cut_off(w, attempt)) || link_loses(w, link)) {
        attempt_lost(w, id);
        return;
    }
    becalm_ns takes = link_takes(w, link);
    if (attempt->deadline_at != BECALM_NEVER) {
        attempt->deadline_at = becalm_ns_after(w->clock.now + takes, deadline_written(w, attempt->deadline_at));
    }
    clock_plan(&w->clock,
               (struct event){
                   .at = w->clock.now + takes, .kind = ATTEMPT_ARRIVES, .id = id, .generation = attempt->generation});
}

bool attempt_is_swallowed(struct world *w, const struct attempt *attempt)
{
    return is_cut_off(w, attempt) || link_loses(w, &w->hop[attempt->hop].link);
}

void attempt_send(struct world *w, uint32_t call_id, const struct becalm_action *action)
{
    struct call *call = call_at(w, call_id);
    const struct hop *hop = &w->hop[call->hop];
    const struct service *service = &w->service[hop->to];
    struct world_service *counts = &w->result->service[hop->to];
    uint32_t id = pool_take(&w->attempts);
    if (id == NOTHING) {
        w->no_memory = true;
        return;
    }
    struct attempt *attempt = attempt_at(w, id);
    uint32_t generation = attempt->generation;
    *attempt = (struct attempt){
        .generation = generation,
        .call = call_id,
        .slot = action->slot,
        .number = action->attempt,
        .stage = ATTEMPT_TRAVELS,
        .hop = call->hop,
        .endpoint = call->endpoint,
        .service = hop->to,
        .host = action->host == BECALM_NO_HOST ? 0 : action->host,
        .tenant = call->tenant,
        .root = call->root,
        .root_at = call->root_at,
        .timeout_at = action->timeout_at,
        .deadline_at = action->timeout_at,
        .caller = call->caller,
        .fresh = action->why == BECALM_WHY_NO_HOST,
        .through_gate = hop->is_gate,
        .operation = call->operation,
    };
    call->flight[action->slot] = id;
    attempt_count(w, call, action->attempt, 1);
    if (w->clock.now < w->plan->length) {
        counts->retried[second_of(w, w->clock.now)] += action->attempt > 0;
    }
    bool cut = is_cut_off(w, attempt);
    if (cut && !service->cut_silent) {
        attempt_refuse(w, id);
        return;
    }
    if (hop->pooled != NULL) {
        pooled_get(w, id);
    } else if (cut) {
        attempt_lost(w, id);
    } else {
        attempt_travel(w, id);
    }
}

static void ring_push(struct world *w, struct ring *ring, uint32_t attempt)
{
    if (ring->count == ring->size) {
        uint32_t larger = ring->size == 0 ? 64 : ring->size * 2;
        uint32_t *moved = malloc(larger * sizeof *moved);
        if (moved == NULL) {
            w->no_memory = true;
            return;
        }
        for (uint32_t i = 0; i < ring->count; i++) {
            moved[i] = ring->attempt[(ring->first + i) & (ring->size - 1)];
        }
        free(ring->attempt);
        *ring = (struct ring){.attempt = moved, .size = larger, .count = ring->count};
    }
    ring->attempt[(ring->first + ring->count++) & (ring->size - 1)] = attempt;
}

static uint32_t ring_pop_last(struct ring *ring)
{
    return ring->attempt[(ring->first + --ring->count) & (ring->size - 1)];
}

static uint32_t ring_pop(struct ring *ring)
{
    uint32_t attempt = ring->attempt[ring->first];
    ring->first = (ring->first + 1) & (ring->size - 1);
    ring->count--;
    return attempt;
}

/* Three tenths of ten workers are three; of one worker, one that takes 3.33 times as long (attempt_time). */
static uint32_t host_workers(const struct service *service)
{
    uint32_t workers = service->plan->workers;
    return workers == 0 ? UINT32_MAX : (uint32_t)(((uint64_t)workers * service->capacity_ppm + 999999) / 1000000);
}

static becalm_ns attempt_time(struct world *w, const struct service *service, const struct scenario_endpoint *endpoint)
{
    becalm_ns time = dist_draw(&w->tables, &endpoint->time, &w->service_state);
    uint64_t left = (uint64_t)service->plan->workers * service->capacity_ppm; /* millionths of a worker */
    uint64_t slots = left == 0 ? 0 : (uint64_t)host_workers(service) * 1000000;
    if (slots > left && time < TIME_MAX) {
        uint64_t slower = slots * 1000 / left; /* of an integer, so the products fit */
        time = time / 1000 * slower + time % 1000 * slower / 1000;
    }
    return becalm_ns_min(time, TIME_MAX) + service->latency;
}

static void attempt_start(struct world *w, struct service *service, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    const struct scenario_endpoint *endpoint = &service->endpoint[attempt->endpoint];
    becalm_ns time = attempt_time(w, service, endpoint);
    bool bad = attempt->host < service->bad_hosts;
    uint32_t hang_ppm = service->hang_ppm == NOTHING ? endpoint->hang_ppm : service->hang_ppm;
    if (hang_ppm > 0 && (attempt->number == 0 || !endpoint->hang_first) && (service->bad_hosts == 0 || bad) &&
        becalm_rand_chance(becalm_rand_next(&w->service_state), hang_ppm)) {
        time += endpoint->hang;
    }
    attempt->stage = ATTEMPT_SERVED_NOW;
    service->host[attempt->host].busy++;
    clock_plan(
        &w->clock,
        (struct event){.at = w->clock.now + time, .kind = ATTEMPT_SERVED, .id = id, .generation = attempt->generation});
}

/* CoDel as services have it: a queue that lasts is made short. */
static bool waited_too_long(const struct world *w, const struct host *host, const struct attempt *attempt)
{
    becalm_ns bound = w->clock.now - host->waited_since > CODEL_INTERVAL ? CODEL_TARGET : CODEL_MAX;
    return w->clock.now - attempt->queued_at > bound;
}

/* Free workers take the next requests. */
static void host_work(struct world *w, struct service *service, struct host *host)
{
    const struct scenario_service *plan = service->plan;
    while (host->queue.count > 0 && host->busy < host_workers(service)) {
        uint32_t id = plan->lifo ? ring_pop_last(&host->queue) : ring_pop(&host->queue);
        if (plan->expiry && attempt_at(w, id)->call == NOTHING) {
            attempt_give(w, id);
        } else if (plan->codel && waited_too_long(w, host, attempt_at(w, id))) {
            attempt_answer(w, id, BECALM_OUTCOME_REJECTED, BECALM_MARK_NONE);
        } else {
            attempt_start(w, service, id);
        }
    }
}

static void host_queue(struct world *w, struct host *host, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    if (host->queue.count == 0) {
        host->waited_since = w->clock.now;
    }
    attempt->stage = ATTEMPT_WAITS;
    attempt->queued_at = w->clock.now;
    ring_push(w, &host->queue, id);
}

static bool is_at_host(const struct attempt *attempt)
{
    return attempt->stage == ATTEMPT_WAITS || attempt->stage == ATTEMPT_SERVED_NOW || attempt->stage == ATTEMPT_CALLS;
}

/* Its host has begun to answer, and is not through. */
static bool is_answering(const struct attempt *attempt)
{
    return (attempt->stage == ATTEMPT_RETURNS || attempt->stage == ATTEMPT_STREAMS) && attempt->body > 0 &&
           attempt->body != BECALM_NEVER;
}

void host_killed(struct world *w, uint32_t service, uint32_t host)
{
    struct host *killed = &w->service[service].host[host];
    killed->busy = 0;
    killed->queue.count = 0;
    pooled_close(w, service, host);
    for (uint32_t id = 0; id < w->attempts.used; id++) {
        struct attempt *attempt = attempt_at(w, id);
        if (attempt->service != service || attempt->host != host) {
            continue;
        }
        if (is_at_host(attempt)) {
            attempt->generation++; /* the attempt is not served any more: its planned events are void */
            attempt->cut = true;
            attempt_answer(w, id, BECALM_OUTCOME_BROKEN, BECALM_MARK_NONE);
        } else if (is_answering(attempt)) {
            answer_end(w, id, true);
        }
    }
}

void service_work(struct world *w, struct service *service)
{
    for (uint32_t i = 0; i < service->plan->hosts; i++) {
        host_work(w, service, &service->host[i]);
    }
}

/* An attempt at a row first reads it. The value travels to the caller, and the caller's write comes back. */
static void row_read(struct world *w, const struct service *service, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    const struct link *link = &w->hop[attempt->hop].link;
    becalm_ns back = link_takes(w, link);
    becalm_ns again = link_takes(w, link);
    attempt->has_read = true;
    attempt->version = service->version;
    clock_plan(&w->clock, (struct event){.at = w->clock.now + back + again,
                                         .kind = ATTEMPT_ARRIVES,
                                         .id = id,
                                         .generation = attempt->generation});
}

/* The caller that writes first after a read wins; the writes of all other callers have read an outdated version. */
static bool row_write(struct service *service, const struct attempt *attempt)
{
    bool current = attempt->version == service->version;
    service->version += current;
    return current;
}

/* Takes one request from this client's quota. False: the quota is used up. The quota is full again at `quota_at`. Each
 * request moves that instant by the time to earn one request, and never further ahead than a full burst takes to earn.
 */
static bool quota_take(const struct world *w, struct service *service, uint32_t tenant)
{
    const struct scenario_service *plan = service->plan;
    becalm_ns each = 1000 * BECALM_S / plan->quota_milli;
    becalm_ns next = becalm_ns_max(service->quota_at[tenant], w->clock.now) + each;
    if (next > w->clock.now + each * plan->quota_burst) {
        return false;
    }
    service->quota_at[tenant] = next;
    return true;
}

static becalm_ns whole_seconds(becalm_ns time)
{
    return (time + BECALM_S - 1) / BECALM_S * BECALM_S;
}

static bool is_down(const struct service *service, uint32_t host)
{
    return host < service->killed_hosts || host == service->rolling_host;
}

enum listener attempt_listener(const struct world *w, const struct attempt *attempt)
{
    const struct service *service = &w->service[attempt->service];
    if (service->gate != NOTHING && !attempt->through_gate) {
        return LISTENER_ACCEPTS; /* our gateway */
    }
    return service->swallows                                     ? LISTENER_SWALLOWS
           : service->refuses || is_down(service, attempt->host) ? LISTENER_REFUSES
                                                                 : LISTENER_ACCEPTS;
}

void arrival_count(struct world *w, const struct attempt *attempt, enum listener listener)
{
    struct world_service *counts = &w->result->service[attempt->service];
    bool refused = listener == LISTENER_REFUSES;
    if (w->clock.now < w->plan->length) {
        (refused ? counts->refused : counts->arrivals)[second_of(w, w->clock.now)]++;
    }
    *(refused ? &counts->refused_fault : &counts->arrivals_fault) += in_fault(w, attempt->root_at);
}

/* A host has accepted the connection: callers that were refused before are told. */
static void tell_accepted(struct world *w, uint32_t id)
{
    const struct attempt *attempt = attempt_at(w, id);
    if (w->hop[attempt->hop].may_refuse && attempt->call != NOTHING && !attempt->connected &&
        call_wants_accepted(w, attempt->call)) {
        clock_plan(&w->clock, (struct event){.at = w->clock.now + link_takes(w, &w->hop[attempt->hop].link),
                                             .kind = ATTEMPT_ACCEPTED,
                                             .id = id,
                                             .generation = attempt->generation});
    }
}

void attempt_arrives(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct service *service = &w->service[attempt->service];
    struct world_service *counts = &w->result->service[attempt->service];
    if (service->gate != NOTHING && !attempt->through_gate) { /* our gateway: its own call goes on from here */
        attempt->stage = ATTEMPT_AT_GATE;
        tell_accepted(w, id);
        call_begin(w, &(struct call_origin){
                          .hop = service->gate, .attempt = id, .client = NOTHING, .endpoint = attempt->endpoint});
        if (attempt->left && attempt->stage == ATTEMPT_AT_GATE) {
            call_left(w, attempt->gate_call);
        }
        return;
    }
    if (service->plan->row && !attempt->has_read && !service_is_down(service)) {
        row_read(w, service, id);
        return;
    }
    if (attempt->has_read && attempt->call == NOTHING) { /* a caller that has given up meanwhile does not write */
        attempt_give(w, id);
        return;
    }
    struct host *host = &service->host[attempt->host];
    enum listener listener =
        attempt->connected && !is_down(service, attempt->host) ? LISTENER_ACCEPTS : attempt_listener(w, attempt);
    arrival_count(w, attempt, listener);
    if (listener == LISTENER_SWALLOWS) {
        attempt_lost(w, id);
        return;
    }
    if (listener == LISTENER_REFUSES) {
        attempt_refuse(w, id);
        return;
    }
    tell_accepted(w, id);
    joined_enter(w, attempt);
    if (service->dead || service->fallen) {
        attempt_answer(w, id, BECALM_OUTCOME_BROKEN, BECALM_MARK_NONE);
    } else if (service->quota_at != NULL && !quota_take(w, service, attempt->tenant)) {
        counts->limited++;
        attempt_limit(w, id, whole_seconds(service->plan->quota_after));
    } else if (host->busy < host_workers(service)) {
        attempt_start(w, service, id);
    } else if (host->queue.count < service->plan->queue_max) {
        host_queue(w, host, id);
    } else {
        attempt_answer(w, id, BECALM_OUTCOME_REJECTED, BECALM_MARK_NONE);
    }
}

/* Is it the service itself that answers, and not the gate in front of it? */
static bool is_from_service(const struct world *w, const struct attempt *attempt)
{
    return w->service[attempt->service].gate == NOTHING || attempt->through_gate;
}

static void answers_count(struct world *w, const struct attempt *attempt, uint64_t more)
{
    struct service *service = &w->service[attempt->service];
    struct world_service *counts = &w->result->service[attempt->service];
    if (is_from_service(w, attempt)) {
        service->answers += more;
        counts->answers_most = service->answers > counts->answers_most ? service->answers : counts->answers_most;
    }
}

void attempt_give_up(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    const struct service *service = &w->service[attempt->service];
    const struct link *link = &w->hop[attempt->hop].link;
    bool on_its_way = attempt->stage == ATTEMPT_TRAVELS || attempt->stage == ATTEMPT_AT_GATE;
    attempt->call = NOTHING;
    joined_leave(w, attempt);
    pooled_put(w, attempt, POOLED_LEFT);
    if (attempt->stage == ATTEMPT_STREAMS) {
        answers_count(w, attempt, UINT64_MAX);
    }
    if (attempt->stage == ATTEMPT_STREAMS || attempt->stage == ATTEMPT_VANISHED) {
        attempt_give(w, id);
        return;
    }
    if (service->gate != NOTHING && service->plan->gate_retries && on_its_way && !attempt->through_gate && !link->cut) {
        clock_plan(&w->clock, (struct event){.at = w->clock.now + link_takes(w, link),
                                             .kind = ATTEMPT_LEFT,
                                             .id = id,
                                             .generation = attempt->generation});
    }
}

void attempt_left(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    attempt->left = true; /* the cancellation may arrive before the request */
    if (attempt->stage == ATTEMPT_AT_GATE) {
        call_left(w, attempt->gate_call);
    }
}

void attempt_hears_accepted(struct world *w, uint32_t id)
{
    const struct attempt *attempt = attempt_at(w, id);
    if (attempt->call != NOTHING) {
        call_accepted(w, attempt->call, attempt->slot);
    }
}

/* All calls of a request, at once, and by one instance: the one that has the request. */
static void attempt_calls(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    const struct service *service = &w->service[attempt->service];
    uint32_t calls = service->hop_count * service->plan->fan_out;
    attempt->stage = ATTEMPT_CALLS;
    attempt->pending = calls;
    uint64_t instance = 0;
    for (uint32_t i = 0; i < calls; i++) {
        uint32_t hop = service->first_hop + i % service->hop_count;
        uint64_t drawn = becalm_rand_next(&w->service_state); /* by every call: others draw after it as ever */
        instance = i == 0 ? drawn : instance;
        call_begin(w, &(struct call_origin){
                          .hop = hop,
                          .caller = (uint32_t)becalm_rand_below(instance, w->hop[hop].callers),
                          .endpoint = endpoint_draw(&w->service[w->hop[hop].to], NULL, &w->service_state),
                          .attempt = id,
                          .client = NOTHING,
                      });
    }
}

void attempt_served(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct service *service = &w->service[attempt->service];
    struct host *host = &service->host[attempt->host];
    host->busy--;
    host_work(w, service, host);
    if (service->plan->effect) { /* first the effect, then the possible failure: so a retry can repeat an effect */
        effect_happens(w, attempt->service, &attempt->operation);
    }
    const struct scenario_endpoint *endpoint = &service->endpoint[attempt->endpoint];
    uint32_t hang_ppm = service->hang_ppm == NOTHING ? endpoint->hang_ppm : service->hang_ppm;
    uint32_t error_ppm = service->error_ppm == NOTHING ? endpoint->error_ppm : service->error_ppm;
    bool bad = attempt->host < service->bad_hosts && hang_ppm == 0;
    if (bad || (error_ppm > 0 && becalm_rand_chance(becalm_rand_next(&w->service_state), error_ppm))) {
        attempt_answer(w, id, BECALM_OUTCOME_BROKEN, BECALM_MARK_NONE);
        return;
    }
    if (service->plan->row && !row_write(service, attempt)) {
        attempt_answer(w, id, BECALM_OUTCOME_CONFLICT, BECALM_MARK_NONE);
        return;
    }
    if (service->hop_count == 0) {
        attempt_succeed(w, id, BECALM_MARK_NONE);
        return;
    }
    attempt_calls(w, id);
}

void attempt_child_done(struct world *w, uint32_t id, const struct child_end *end)
{
    struct attempt *attempt = attempt_at(w, id);
    bool good = end->kind == BECALM_OUTCOME_OK;
    if (attempt->stage == ATTEMPT_AT_GATE && end->kind == BECALM_OUTCOME_RATE_LIMITED) {
        attempt_limit(w, id, end->hint);
        attempt->outcome.mark = w->options->carries_marks ? end->mark : BECALM_MARK_NONE;
        return;
    }
    if (attempt->stage == ATTEMPT_AT_GATE) {
        attempt_answer(w, id, end->kind, end->mark);
        return;
    }
    if (attempt->body == BECALM_NEVER) { /* the gate has passed the head on */
        if (attempt->stage == ATTEMPT_FORGOTTEN) {
            attempt_give(w, id);
        } else {
            answer_end(w, id, !good);
        }
        return;
    }
    attempt->failed |= !good;
    if (!good) {
        joined_note(w, attempt, end->mark);
    }
    attempt->pending--;
    if (attempt->pending > 0 || attempt->stage == ATTEMPT_RETURNS) {
        return; /* the attempt waits for more calls, or its host was killed meanwhile */
    }
    if (attempt->stage == ATTEMPT_FORGOTTEN) {
        attempt_give(w, id);
    } else if (attempt->failed) {
        attempt_answer(w, id, BECALM_OUTCOME_REJECTED, joined_mark(w, attempt));
    } else {
        attempt_succeed(w, id, attempt->mark);
    }
}

static void answer_count(struct world *w, const struct attempt *attempt)
{
    struct world_service *counts = &w->result->service[attempt->service];
    if (w->clock.now < w->plan->length && !attempt->through_gate) {
        bool good = attempt->outcome.kind == BECALM_OUTCOME_OK;
        (good ? counts->good : counts->failed)[second_of(w, w->clock.now)]++;
    }
}

/* The head of an answer that goes on has come. */
static void head_comes(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct becalm_outcome outcome = attempt->outcome;
    attempt->stage = ATTEMPT_STREAMS;
    answers_count(w, attempt, 1);
    if (attempt->body != BECALM_NEVER) {
        end_plan(w, id, attempt->body);
    }
    call_head(w, attempt->call, attempt->slot, attempt->number, &outcome);
}

/* The reader of an answer that a gate passes on has gone: the gate reads no further either. */
static void gate_stops(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    attempt->call = NOTHING;
    attempt->stage = ATTEMPT_FORGOTTEN;
    call_cancel(w, attempt->gate_call);
}

void attempt_pass(struct world *w, uint32_t id)
{
    attempt_at(w, id)->body = BECALM_NEVER;
    attempt_answer(w, id, BECALM_OUTCOME_OK, BECALM_MARK_NONE);
}

void attempt_ended(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    bool cut = attempt->cut || w->hop[attempt->hop].link.cut;
    struct becalm_outcome outcome = {.kind = cut ? BECALM_OUTCOME_BROKEN : BECALM_OUTCOME_OK, .delivered = true};
    uint32_t call = attempt->call;
    uint32_t slot = attempt->slot;
    uint32_t number = attempt->number;
    answers_count(w, attempt, UINT64_MAX);
    pooled_put(w, attempt, cut ? POOLED_BROKEN : POOLED_CLEAN);
    attempt_give(w, id);
    if (call != NOTHING) {
        call_done(w, call, slot, number, &outcome);
    }
}

void attempt_answered(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct becalm_outcome outcome = attempt->outcome;
    uint32_t call = attempt->call;
    uint32_t slot = attempt->slot;
    uint32_t number = attempt->number;
    bool lost = link_loses(w, &w->hop[attempt->hop].link);
    if (lost && attempt->connected && attempt->pending == 0 && attempt->body != BECALM_NEVER) {
        attempt->stage = ATTEMPT_VANISHED; /* until its caller gives it up */
        return;
    }
    if (lost && call != NOTHING) {
        call_at(w, call)->flight[slot] = NOTHING;
    } else if (!lost) {
        answer_count(w, attempt);
    }
    if (attempt->body > 0 && !lost && call != NOTHING) {
        head_comes(w, id);
        return;
    }
    pooled_put(w, attempt,
               attempt->cut || outcome.kind == BECALM_OUTCOME_REFUSED ? POOLED_BROKEN
               : lost                                                 ? POOLED_LEFT
                                                                      : POOLED_CLEAN);
    if (attempt->body == BECALM_NEVER) {
        gate_stops(w, id);
        return;
    }
    if (attempt->pending > 0) { /* its host was killed while it called others */
        attempt->call = NOTHING;
        attempt->stage = ATTEMPT_FORGOTTEN;
    } else {
        attempt_give(w, id);
    }
    if (call != NOTHING && !lost) {
        call_done(w, call, slot, number, &outcome);
    }
}

/* The attempt's connection is lost: the caller that waits for it learns that now. Its host goes on with the work that
 * it has. */
static void attempt_breaks(struct world *w, uint32_t id)
{
    const struct attempt *attempt = attempt_at(w, id);
    struct becalm_outcome outcome = {.kind = BECALM_OUTCOME_BROKEN, .delivered = attempt->stage == ATTEMPT_STREAMS};
    uint32_t call = attempt->call;
    uint32_t slot = attempt->slot;
    uint32_t number = attempt->number;
    attempt_give_up(w, id);
    if (call != NOTHING) {
        call_at(w, call)->flight[slot] = NOTHING;
        call_done(w, call, slot, number, &outcome);
    }
}

void connections_lost(struct world *w, uint32_t service, uint32_t count)
{
    uint32_t used = w->attempts.used; /* attempts that are sent in this loop have other connections */
    pooled_lose(w, service, count);
    for (uint32_t id = 0; id < used; id++) {
        struct attempt *attempt = attempt_at(w, id);
        if (attempt->doomed && attempt->connected) {
            attempt->doomed = false;
            attempt_breaks(w, id);
        }
    }
}

/* Making and unmaking services. */

uint32_t endpoint_draw(const struct service *service, const uint32_t *share_ppm, uint64_t *state)
{
    uint32_t count = service->plan->endpoint_count;
    uint32_t at = count == 0 ? 0 : (uint32_t)becalm_rand_below(becalm_rand_next(state), 1000000);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t share = share_ppm == NULL ? service->plan->endpoints[i].share_ppm : share_ppm[i];
        if (at < share) {
            return i + 1;
        }
        at -= share;
    }
    return 0;
}

/* The service itself is the first of its endpoints: that of all requests that belong to none. */
static bool endpoints_make(struct service *service)
{
    const struct scenario_service *plan = service->plan;
    service->endpoint = calloc(1 + plan->endpoint_count, sizeof *service->endpoint);
    if (service->endpoint == NULL) {
        return false;
    }
    service->endpoint[0] = (struct scenario_endpoint){
        .time = plan->time,
        .body = plan->body,
        .error_ppm = plan->error_ppm,
        .hang_ppm = plan->hang_ppm,
        .hang_first = plan->hang_first,
        .hang = plan->hang,
    };
    for (uint32_t i = 0; i < plan->endpoint_count; i++) {
        service->endpoint[i + 1] = plan->endpoints[i];
    }
    return true;
}

bool services_make(struct world *w)
{
    w->service = calloc(w->plan->service_count, sizeof *w->service);
    for (uint32_t i = 0; w->service != NULL && i < w->plan->service_count; i++) {
        struct service *service = &w->service[i];
        service->plan = &w->plan->services[i];
        service->capacity_ppm = 1000000;
        service->error_ppm = NOTHING;
        service->hang_ppm = NOTHING;
        service->rolling_host = NOTHING;
        service->gate = NOTHING;
        service->host = calloc(service->plan->hosts, sizeof *service->host);
        bool quota = service->plan->quota_milli > 0;
        service->quota_at = quota ? calloc(w->plan->client_count + 1, sizeof *service->quota_at) : NULL;
        if (service->host == NULL || !endpoints_make(service) || (quota && service->quota_at == NULL) ||
            !joined_make(w, service)) {
            return false;
        }
    }
    return w->service != NULL;
}

void services_free(struct world *w)
{
    for (uint32_t i = 0; w->service != NULL && i < w->plan->service_count; i++) {
        for (uint32_t h = 0; w->service[i].host != NULL && h < w->plan->services[i].hosts; h++) {
            free(w->service[i].host[h].queue.attempt);
        }
        joined_free(&w->service[i]);
        free(w->service[i].host);
        free(w->service[i].endpoint);
        free(w->service[i].quota_at);
    }
    free(w->service);
}
