/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

/* How far ahead memory is asked for: see world_internal.h. */
#define FORESEEN_CALLERS 5u /* the next event, and those of which one comes after it */
#define FORESEEN_ATTEMPT 9u /* of the messages that arrive next */
#define FORESEEN_CALL    6u
#define FORESEEN_TARGET  3u

static bool is_of_attempt(const struct event *event)
{
    return event->kind == ATTEMPT_ARRIVES || event->kind == ATTEMPT_SERVED || event->kind == ATTEMPT_ANSWERED ||
           event->kind == ATTEMPT_ENDED || event->kind == ATTEMPT_LEFT || event->kind == ATTEMPT_DIALS ||
           event->kind == ATTEMPT_CONNECTED || event->kind == ATTEMPT_NOT_CONNECTED || event->kind == ATTEMPT_ACCEPTED;
}

/* Each kind of event, the function that it calls, and the fields of the event that the function gets. */
#define EVENTS(X)                                                             \
    X(CLIENT_CALLS, client_calls, event->id, event->generation)               \
    X(CALLER_CALLS, caller_calls, event->generation, event->id)               \
    X(ATTEMPT_ARRIVES, attempt_arrives, event->id)                            \
    X(ATTEMPT_SERVED, attempt_served, event->id)                              \
    X(ATTEMPT_ANSWERED, attempt_answered, event->id)                          \
    X(ATTEMPT_ENDED, attempt_ended, event->id)                                \
    X(ATTEMPT_LEFT, attempt_left, event->id)                                  \
    X(ATTEMPT_ACCEPTED, attempt_hears_accepted, event->id)                    \
    X(ATTEMPT_DIALS, attempt_dials, event->id)                                \
    X(ATTEMPT_CONNECTED, attempt_is_connected, event->id)                     \
    X(ATTEMPT_NOT_CONNECTED, attempt_is_not_connected, event->id)             \
    X(POOLED_SERVES, pooled_serves, event->id, event->generation)             \
    X(LINE_WAKES, line_wakes, event->id, event->generation)                   \
    X(CALL_WAKES, call_wakes, event->id, event->generation)                   \
    X(FAULT_TURNS, fault_turns, event->id)                                    \
    X(CONNECTION_TRIES, connection_tries, event->generation, event->id)       \
    X(CONNECTION_ARRIVES, connection_arrives, event->generation, event->id)   \
    X(CONNECTION_ANSWERED, connection_answered, event->generation, event->id) \
    X(SERVICE_RISES, service_restarted, event->id)                            \
    X(TENANT_ASKS, tenant_asks, event->id)                                    \
    X(STORE_ASKED, store_asked, event->id)                                    \
    X(TENANT_ANSWERED, tenant_answered, event->id)                            \
    X(TENANT_CONNECTS, tenant_connects, event->id, event->generation)         \
    X(TENANT_LINKED, tenant_linked, event->id, event->generation)             \
    X(TENANT_LOSES, tenant_loses, event->id, event->generation)               \
    X(STORE_SAVES, store_saves, event->id)

static void happen(struct world *w, const struct event *event)
{
    if (is_of_attempt(event) && attempt_at(w, event->id)->generation != event->generation) {
        return; /* its host was killed meanwhile */
    }
    switch (event->kind) {
#define HAPPENS(kind, function, ...) \
    case kind:                       \
        function(w, __VA_ARGS__);    \
        break;
        EVENTS(HAPPENS)
#undef HAPPENS
    }
}

/* Every second that is over when the next event comes is written down first. */
static void seconds_pass(struct world *w, uint32_t *done, becalm_ns until)
{
    while (*done < w->result->seconds && (*done + 1) * BECALM_S <= until) {
        series_second(w, *done);
        connections_second(w, *done);
        tenants_second(w, *done);
        (*done)++;
        if (w->options->progress != NULL && !w->options->progress(w->options->progress_self, *done * BECALM_S)) {
            w->stopped = true;
        }
    }
}

/* When the run is over, calls in progress may still end; nothing else happens. */
static bool ends_a_call(enum event_kind kind)
{
    switch (kind) {
    case ATTEMPT_ARRIVES:
    case ATTEMPT_SERVED:
    case ATTEMPT_ANSWERED:
    case ATTEMPT_ENDED:
    case ATTEMPT_LEFT:
    case ATTEMPT_ACCEPTED:
    case ATTEMPT_DIALS:
    case ATTEMPT_CONNECTED:
    case ATTEMPT_NOT_CONNECTED:
    case POOLED_SERVES:
    case LINE_WAKES:
    case CALL_WAKES:
        return true;
    case CLIENT_CALLS:
    case CALLER_CALLS:
    case FAULT_TURNS:
    case CONNECTION_TRIES:
    case CONNECTION_ARRIVES:
    case CONNECTION_ANSWERED:
    case SERVICE_RISES:
    case TENANT_ASKS:
    case STORE_ASKED:
    case TENANT_ANSWERED:
    case TENANT_CONNECTS:
    case TENANT_LINKED:
    case TENANT_LOSES:
    case STORE_SAVES:
        return false;
    }
    BECALM_UNREACHABLE();
}

/* The call that the answer is for; NOTHING: the event is no answer, or no call waits for it. */
static uint32_t call_of(const struct world *w, const struct event *event)
{
    return event != NULL && event->kind == ATTEMPT_ANSWERED ? attempt_at(w, event->id)->call : NOTHING;
}

/* Prefetches memory for the messages that arrive next. Each step of a message gives the address that its next step
 * needs. */
static void messages_foresee(const struct world *w)
{
    const struct event *message = clock_peek(&w->clock, FORESEEN_ATTEMPT);
    if (message != NULL && is_of_attempt(message)) {
        fetch(attempt_at(w, message->id), sizeof(struct attempt));
    }
    uint32_t call = call_of(w, clock_peek(&w->clock, FORESEEN_CALL));
    if (call != NOTHING) {
        call_foresee(w, call);
    }
    call = call_of(w, clock_peek(&w->clock, FORESEEN_TARGET));
    if (call != NOTHING) {
        call_foresee_target(w, call);
    }
}

static void callers_foresee(const struct world *w)
{
    for (uint32_t i = 0; i < FORESEEN_CALLERS; i++) {
        const struct event *next = clock_peek(&w->clock, i);
        if (next != NULL && next->kind == CALLER_CALLS) {
            hop_foresee(&w->hop[next->generation], next->id, i == 0 ? 0 : HOP_FORESEEN);
        }
    }
}

static void foresee(const struct world *w)
{
    if (w->clock.latest == NULL) {
        callers_foresee(w);
    } else {
        messages_foresee(w);
    }
}

/* False: time stands still. */
static bool moves_on(struct world *w, becalm_ns last, uint32_t *instant)
{
    uint32_t most = w->options->instant_max == 0 ? WORLD_INSTANT_MAX : w->options->instant_max;
    *instant = w->clock.now == last ? *instant + 1 : 0;
    if (*instant == most) {
        w->result->stuck_at = w->clock.now;
    }
    return *instant < most;
}

static void pass(struct world *w)
{
    struct event event;
    uint32_t done = 0;
    uint32_t instant = 0; /* events at `last` */
    becalm_ns last = BECALM_NEVER;
    becalm_ns second_at = BECALM_S; /* when the one that is counted is over */
    while (!w->stopped && !w->no_memory && !w->clock.no_memory && clock_next(&w->clock, &event) &&
           moves_on(w, last, &instant)) {
        last = event.at;
        if (world_is_large(w)) {
            foresee(w);
        }
        if (event.at >= second_at) {
            seconds_pass(w, &done, event.at);
            second_at = (done + 1) * BECALM_S;
        }
        if (event.at < w->plan->length || ends_a_call(event.kind)) {
            w->result->events++;
            happen(w, &event);
        }
    }
    seconds_pass(w, &done, BECALM_NEVER);
}

static void dist_expect(struct clock *clock, const struct dist *dist)
{
    if (dist->kind == DIST_CONSTANT) {
        clock_expect(clock, dist->mean);
    }
}

/* Nearly all events are messages, timeouts and services, most of them constant. */
static void events_expect(struct world *w)
{
    for (uint32_t i = 0; i < w->hop_count; i++) {
        const struct becalm_policy *policy = &w->hop[i].rules[0].policy;
        dist_expect(&w->clock, &w->hop[i].link.latency);
        clock_expect(&w->clock, policy->attempt_timeout);
        if (policy->breaker.enabled && policy->breaker.slow_share_ppm != BECALM_BREAKER_SLOW_OFF) {
            clock_expect(&w->clock, policy->breaker.slow_after);
        }
    }
    for (uint32_t i = 0; i < w->plan->service_count; i++) {
        dist_expect(&w->clock, &w->plan->services[i].time);
    }
}

uint32_t world_target(const struct scenario *plan, uint32_t service, uint32_t endpoint)
{
    uint32_t target = endpoint;
    for (uint32_t i = 0; i < service; i++) {
        target += 1 + plan->services[i].endpoint_count;
    }
    return target;
}

int world_run(const struct scenario *plan, const struct world_options *options, struct world_result *result)
{
    struct world w = {.plan = plan, .options = options, .result = result};
    w.calls.item = sizeof(struct call);
    w.attempts.item = sizeof(struct attempt);
    w.arrival_state = options->seed * 3 + 1;
    w.service_state = options->seed * 3 + 2;
    w.policy_state = options->seed * 3 + 3;
    w.fault_state = options->seed * 3 + 4;
    dist_init(&w.tables);
    bool made = series_make(plan, result) && clock_make(&w.clock, becalm_ns_after(plan->length, WORLD_DRAIN)) &&
                services_make(&w) && clients_make(&w) && stores_make(&w) && hops_make(&w) && effects_make(&w) &&
                connections_make(&w);
    if (made) {
        events_expect(&w);
        clients_begin(&w);
        faults_begin(&w);
        pass(&w);
        tenants_end(&w);
    }
    int rc = !made || w.no_memory || w.clock.no_memory       ? BECALM_ENOMEM
             : w.stopped || result->stuck_at != BECALM_NEVER ? BECALM_EINVAL
                                                             : 0;
    if (rc != 0) {
        world_result_free(plan, result);
    }
    stores_free(&w);
    connections_free(&w);
    effects_free(&w);
    hops_free(&w);
    clients_free(&w);
    services_free(&w);
    clock_free(&w.clock);
    pool_free(&w.calls);
    pool_free(&w.attempts);
    return rc;
}
