/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy/share.h"

#define FETCHED_MAX 1024u /* the most bytes to prefetch at once: more would evict each other from the cache */

struct becalm_moment world_moment(struct world *w)
{
    return (struct becalm_moment){.now = w->clock.now, .random = becalm_rand_next(&w->policy_state)};
}

bool link_loses(struct world *w, const struct link *link)
{
    return link->cut || (link->loss_ppm > 0 && becalm_rand_chance(becalm_rand_next(&w->service_state), link->loss_ppm));
}

becalm_ns link_takes(struct world *w, const struct link *link)
{
    return dist_draw(&w->tables, &link->latency, &w->service_state);
}

/* A caller's state of a target, made when it is first used. */

/* Only policies with hedges or deadlines use latencies, which take more memory than all the rest. */
static bool needs_sketch(const struct world *w, const struct hop *hop, const struct becalm_policy *policy)
{
    bool is_client = hop < &w->hop[w->plan->client_count];
    return policy->hedge.enabled || policy->deadline != BECALM_NEVER || (!is_client && w->options->carries_deadlines);
}

static void *part(struct world *w, size_t bytes)
{
    void *memory = slab_take(&w->memory, bytes);
    w->no_memory |= memory == NULL;
    return memory;
}

/* The caller's lease of a shared budget. NULL: there is none, or memory ran out. */
static struct becalm_lease *lease_of(struct world *w, const struct hop *hop, const struct rules *rules)
{
    void *memory = rules->policy.lease.enabled ? part(w, becalm_lease_bytes(1)) : NULL;
    if (memory == NULL) {
        return NULL;
    }
    struct becalm_lease *lease = becalm_lease_init(memory, 1);
    w->no_memory |= !tenant_add(w, hop, (uint32_t)(rules - hop->rules), lease);
    return lease;
}

/* The parts of a size of their own. */
static void parts_add(struct world *w, const struct hop *hop, const struct becalm_policy *policy,
                      struct becalm_target *target)
{
    void *memory;
    if (policy->budget.kind != BECALM_BUDGET_NONE &&
        (memory = part(w, becalm_budget_bytes(&policy->budget, 1))) != NULL) {
        target->budget = becalm_budget_init(memory, &policy->budget, 1);
    }
    if (policy->breaker.enabled && (memory = part(w, becalm_breaker_bytes(&policy->breaker, 1))) != NULL) {
        target->breaker = becalm_breaker_init(memory, &policy->breaker, 1);
    }
    if (policy->throttle.enabled && (memory = part(w, becalm_throttle_bytes(&policy->throttle, 1))) != NULL) {
        target->throttle = becalm_throttle_init(memory, &policy->throttle, 1);
    }
    if (policy->hedge.enabled && (memory = part(w, sizeof(struct becalm_hedge))) != NULL) {
        becalm_hedge_init(target->hedge = memory, &policy->hedge);
    }
    if (policy->rate.enabled && (memory = part(w, sizeof(struct becalm_rate))) != NULL) {
        becalm_rate_init(target->rate = memory);
    }
    if (needs_sketch(w, hop, policy) && (memory = part(w, sizeof(struct becalm_sketch))) != NULL) {
        target->sketch = memory;
        becalm_sketch_init(target->sketch);
    }
    bool retries_overdue = policy->retry_overdue && policy->max_retries > 0 && hop->is_proxy;
    if ((policy->timeout_kind != BECALM_TIMEOUT_EXACT || retries_overdue) &&
        (memory = part(w, sizeof(struct becalm_due))) != NULL) {
        becalm_due_init(target->due = memory);
    }
    if (hop->is_gate && policy->max_retries > 0 && (memory = part(w, sizeof(struct becalm_losses))) != NULL) {
        /* Only a gate tells clients apart: the calls of any other hop are one flow. */
        becalm_losses_init(target->losses = memory);
    }
    if (hop->may_refuse && policy->restart.enabled && (memory = part(w, becalm_restart_bytes(hop->hosts))) != NULL) {
        target->restart = becalm_restart_init(memory, hop->hosts);
    }
    if (hop->hosts > 0 && (memory = part(w, becalm_hosts_bytes(&policy->outlier, hop->hosts, 1))) != NULL) {
        target->hosts = becalm_hosts_init(memory, &policy->outlier, hop->hosts, 1);
    }
}

/* NULL: no memory. */
static struct state *state_make(struct world *w, struct hop *hop, uint32_t kind, struct state *of_service)
{
    size_t before = w->memory.given;
    const struct rules *rules = &hop->rules[kind];
    const struct becalm_policy *policy = &rules->policy;
    struct state *state = part(w, sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    memset(state, 0, sizeof *state);
    struct becalm_target *target = &state->target;
    if (policy->limit.kind != BECALM_LIMIT_NONE) {
        becalm_limit_init(target->limit = &state->limit, &policy->limit);
    }
    becalm_mark_init(target->mark = &state->mark);
    bool leases_itself = of_service == NULL || rules->level == BECALM_LEVEL_ENDPOINT;
    target->lease = leases_itself ? lease_of(w, hop, rules) : NULL;
    parts_add(w, hop, policy, target);
    state->limited = state;
    if (of_service != NULL) {
        share_with_service((struct share){target, policy}, (struct share){&of_service->target, &hop->rules[0].policy},
                           rules->level);
        state->limited = target->limit == of_service->target.limit ? of_service : state;
    }
    if (target->restart != NULL) {
        becalm_parking_init(&state->line, target->restart);
    }
    state->line_at = BECALM_NEVER;
    size_t bytes = w->memory.given - before;
    hop->state_bytes = bytes < FETCHED_MAX ? bytes : FETCHED_MAX;
    return w->no_memory ? NULL : state;
}

/* NULL: no memory. */
static struct state *state_of(struct world *w, struct hop *hop, uint32_t caller, uint32_t kind)
{
    struct state **mine = &hop->state[(size_t)caller * hop->kinds];
    if (mine[0] == NULL) {
        mine[0] = state_make(w, hop, 0, NULL);
    }
    if (mine[kind] == NULL && mine[0] != NULL) {
        mine[kind] = state_make(w, hop, kind, mine[0]);
    }
    return mine[kind];
}

struct becalm_limit *hop_limit(struct world *w, struct hop *hop, uint32_t caller)
{
    struct state *state = state_of(w, hop, caller, 0);
    w->no_memory |= state == NULL;
    if (state == NULL) {
        return NULL;
    }
    state->used = true;
    return state->target.limit;
}

void hop_foresee(const struct hop *hop, uint32_t caller, uint32_t calls)
{
    struct state *const *mine = &hop->state[(size_t)caller * hop->kinds];
    if (calls >= HOP_FORESEEN) {
        __builtin_prefetch(mine);
    } else if (*mine != NULL) {
        fetch(*mine, calls > 0 ? 1 : hop->state_bytes);
    }
}

/* The queue of first attempts, as the hosts of the engine have it. */

/* Could the limit say no to the next call? */
static bool may_be_full(const struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    uint32_t most = becalm_limit_now(limit, policy);
    return becalm_limit_in_flight(limit) >= most || most <= policy->min; /* at its minimum it may pace */
}

/* The queue and its gate, together. */
struct waiting {
    struct becalm_gate gate;
    struct becalm_queue queue;
};

/* A queue takes more room than all the rest of a state, and most callers never need one: it is allocated when a call
 * might have to wait. NULL: none, or no memory. */
static struct becalm_queue *queue_of(struct world *w, struct state *state, const struct becalm_policy *policy)
{
    struct becalm_target *target = &state->target;
    bool probes = target->breaker != NULL && !becalm_breaker_closed(target->breaker); /* and others wait for that */
    if (state->queue != NULL || target->limit == NULL || !(probes || may_be_full(target->limit, &policy->limit))) {
        return state->queue;
    }
    struct waiting *waiting = part(w, sizeof *waiting);
    if (waiting == NULL) {
        return NULL;
    }
    becalm_gate_init(target->gate = &waiting->gate);
    becalm_queue_init(&waiting->queue, &waiting->gate, target->limit);
    return state->queue = &waiting->queue;
}

uint32_t gate_waiting(const struct hop *hop)
{
    uint32_t sum = 0;
    for (uint32_t kind = 0; kind < hop->kinds; kind++) {
        const struct state *state = hop->state[kind];
        sum += state == NULL || state->queue == NULL ? 0 : state->queue->length;
    }
    return sum;
}

/* Calls. */

static void call_step(struct world *w, uint32_t id, uint32_t number, struct becalm_event *event);

/* The flow of a call at a gate: the caller that sent the request, which may have given it up since. */
static uint64_t flow_of(const struct world *w, const struct attempt *attempt)
{
    return attempt == NULL || attempt->call == NOTHING
               ? 0
               : ((uint64_t)attempt->hop + 1) << 32 | call_at(w, attempt->call)->caller;
}

/* Calls that are served may end at once and free their slots in turn: they are seen to by the first of these. */
static void queue_serve(struct world *w, struct becalm_queue *queue, const struct becalm_policy *policy)
{
    if (queue == w->serving) {
        return;
    }
    struct becalm_moment at = world_moment(w);
    struct becalm_ticket *ticket;
    const struct becalm_queue *before = w->serving;
    w->serving = queue;
    while ((ticket = becalm_queue_next(queue, &policy->gate, &policy->limit, &at)) != NULL) {
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        call_step(w, (uint32_t)(uintptr_t)ticket->owner, 0, &event);
    }
    w->serving = before;
}

/* Lines: calls that wait for a host to accept connections. */

static void line_serve(struct world *w, uint32_t hop, uint32_t number)
{
    struct state *state = w->hop[hop].state[number];
    becalm_ns timeout = w->hop[hop].rules[number % w->hop[hop].kinds].policy.attempt_timeout;
    struct becalm_berth *berth;
    while ((berth = becalm_parking_next(&state->line, timeout, w->clock.now)) != NULL) {
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        call_step(w, (uint32_t)(uintptr_t)berth->owner, 0, &event);
    }
    becalm_ns at = becalm_parking_wake_at(&state->line, timeout, w->clock.now);
    if (at != state->line_at && at != BECALM_NEVER) {
        clock_plan(&w->clock, (struct event){.at = at, .kind = LINE_WAKES, .id = hop, .generation = number});
    }
    state->line_at = at;
}

void line_wakes(struct world *w, uint32_t hop, uint32_t number)
{
    struct state *state = w->hop[hop].state[number];
    if (state->line_at == w->clock.now) {
        state->line_at = BECALM_NEVER;
        line_serve(w, hop, number);
    }
}

bool call_wants_accepted(const struct world *w, uint32_t id)
{
    const struct call *call = call_at(w, id);
    return w->hop[call->hop].state[(size_t)call->caller * w->hop[call->hop].kinds]->refused;
}

void call_accepted(struct world *w, uint32_t id, uint32_t slot)
{
    struct call *call = call_at(w, id);
    uint32_t hop = call->hop;
    uint32_t first = call->caller * w->hop[hop].kinds;
    if (becalm_call_accepted(&call->engine, slot, w->clock.now)) {
        for (uint32_t kind = 0; kind < w->hop[hop].kinds; kind++) {
            if (w->hop[hop].state[first + kind] != NULL) {
                line_serve(w, hop, first + kind);
            }
        }
    }
}

/* The answer of a gateway: the answer that it got itself; else 502, 504, or 503 if it sent nothing at all. */
static enum becalm_outcome_kind gate_answer(const struct becalm_record *record)
{
    const struct becalm_record_attempt *last = becalm_record_last(record);
    if (last == NULL) {
        return BECALM_OUTCOME_REJECTED;
    }
    if (last->open || last->outcome == BECALM_OUTCOME_TIMED_OUT || last->outcome == BECALM_OUTCOME_CANCELLED) {
        return BECALM_OUTCOME_LATE;
    }
    return last->outcome == BECALM_OUTCOME_REFUSED ? BECALM_OUTCOME_BROKEN : last->outcome;
}

/* A client's call has ended, or the head of its answer has come: the time after the head does not count as waiting. */
static void root_count(struct world *w, const struct call *call, bool good)
{
    struct world_client *counts = &w->result->client[call->client];
    bool faulty = in_fault(w, call->root_at);
    counts->good[second_of(w, call->root_at)] += good;
    counts->phase[phase_of(w, call->root_at)].good += good;
    counts->local_fault += faulty && !good && call->engine.record.attempts == 0;
    if (good) {
        series_latency(&w->result->latency, w->clock.now - call->root_at);
        series_latency(&counts->latency, w->clock.now - call->root_at);
    }
    if (good && faulty) {
        series_latency(&w->result->latency_fault, w->clock.now - call->root_at);
    }
}

/* An answer that was counted as good at its head broke off. */
static void root_cut(struct world *w, const struct call *call)
{
    struct world_client *counts = &w->result->client[call->client];
    counts->good[second_of(w, call->root_at)]--;
    counts->phase[phase_of(w, call->root_at)].good--;
}

/* The head of an answer is here, and its body is on its way. */
static void call_answered(struct world *w, uint32_t id)
{
    struct call *call = call_at(w, id);
    call->answered = true;
    if (call->attempt == NOTHING) {
        root_count(w, call, true); /* errors come whole */
    } else if (w->hop[call->hop].is_gate) {
        attempt_pass(w, call->attempt);
    }
}

static void root_end(struct world *w, const struct call *call, bool good)
{
    if (!call->answered) {
        root_count(w, call, good);
    } else if (!good) {
        root_cut(w, call);
    }
    effect_end(w, call->client, call->caller, &call->operation, good);
}

static void call_end(struct world *w, uint32_t id, const struct becalm_action *action)
{
    struct call *call = call_at(w, id);
    bool good = action->why == BECALM_WHY_OK;
    enum becalm_outcome_kind kind = good                        ? BECALM_OUTCOME_OK
                                    : call->answered            ? BECALM_OUTCOME_BROKEN /* the answer was cut */
                                    : w->hop[call->hop].is_gate ? gate_answer(&call->engine.record)
                                                                : BECALM_OUTCOME_REJECTED;
    struct child_end end = {kind, action->mark, kind == BECALM_OUTCOME_RATE_LIMITED ? call->hint : 0};
    uint32_t attempt = call->attempt;
    uint32_t client = call->client;
    uint32_t caller = call->caller;
    struct world_service *counts = &w->result->service[w->hop[call->hop].to];
    (w->hop[call->hop].is_gate ? counts->gate_ended : counts->ended)[action->why]++;
    if (attempt == NOTHING) {
        root_end(w, call, good);
    }
    call->generation++;
    pool_give(&w->calls, id);
    if (attempt != NOTHING) {
        attempt_child_done(w, attempt, &end);
    } else {
        caller_answered(w, client, caller);
    }
}

static void call_trace(const struct world *w, const struct call *call, uint32_t number,
                       const struct becalm_event *event, const struct becalm_action *action)
{
    const struct hop *hop = &w->hop[call->hop];
    const struct scenario_service *to = &w->plan->services[hop->to];
    w->options->trace(w->options->trace_self,
                      &(struct world_trace){
                          .call = call->root,
                          .part = call->number,
                          .from = hop->from,
                          .to = to->name,
                          .endpoint = call->endpoint == 0 ? NULL : to->endpoints[call->endpoint - 1].name,
                          .is_gate = hop->is_gate,
                          .attempt = number,
                          .event = event,
                          .action = action,
                          .record = &call->engine.record,
                      });
}

/* `attempt` is the number of the one that a DONE is about. */
static void call_step(struct world *w, uint32_t id, uint32_t number, struct becalm_event *event)
{
    struct call *call = call_at(w, id);
    const struct state *state = ((const struct state *)call->engine.target)->limited; /* its first member */
    const struct becalm_policy *policy = call->engine.policy;
    struct becalm_action action;
    uint32_t attempts = call->engine.record.attempts;
    uint32_t hop = call->hop;
    uint32_t place = call->caller * w->hop[hop].kinds + call->endpoint;
    event->at = world_moment(w);
    becalm_call_step(&call->engine, event, &action);
    if (call->engine.record.attempts < attempts) { /* no host took it: it is as if it had not been sent */
        attempt_unsent(w, call, call->engine.record.attempts);
    }
    if (w->options->trace != NULL) {
        call_trace(w, call, number, event, &action);
    }
    for (uint32_t slot = 0; action.cancel >> slot != 0; slot++) {
        if ((action.cancel >> slot & 1) != 0 && call->flight[slot] != NOTHING) {
            attempt_give_up(w, call->flight[slot]);
        }
    }
    if ((action.flags & BECALM_DO_SEND) != 0) {
        attempt_send(w, id, &action);
    }
    if ((action.flags & (BECALM_DO_ANSWER | BECALM_DO_FINISH)) == BECALM_DO_ANSWER) {
        call_answered(w, id);
    }
    if ((action.flags & BECALM_DO_FINISH) != 0) {
        call_end(w, id, &action);
    } else if (action.wake_at != call->wake_at) {
        call->wake_at = action.wake_at;
        clock_plan(&w->clock,
                   (struct event){.at = action.wake_at, .kind = CALL_WAKES, .id = id, .generation = call->generation});
    }
    if ((action.flags & BECALM_DO_SERVE) != 0 && state->queue != NULL) {
        queue_serve(w, state->queue, policy);
    }
    if ((action.flags & BECALM_DO_PARK) != 0) {
        line_serve(w, hop, place);
    }
}

/* The deadline of a call. A service tells its own proxy how much of its time is left: always a little less than the
 * service got itself, and in whole milliseconds. So in a chain where all hops have the same timeout, the lowest hop
 * gives up first. A library knows the exact instant. */
static becalm_ns deadline_of(const struct world *w, const struct hop *hop, const struct attempt *parent)
{
    if (parent == NULL || !w->options->carries_deadlines) {
        return BECALM_NEVER;
    }
    if (!hop->is_gate && w->service[parent->service].plan->passes != PASSES_ALL) {
        return joined_deadline(w, parent);
    }
    if (!hop->is_told || parent->deadline_at == BECALM_NEVER) {
        return parent->deadline_at;
    }
    return becalm_ns_after(w->clock.now, deadline_written(w, parent->deadline_at - 1));
}

void call_begin(struct world *w, const struct call_origin *origin)
{
    struct hop *hop = &w->hop[origin->hop];
    uint32_t kind = origin->endpoint;
    struct state *state = state_of(w, hop, origin->caller, kind);
    uint32_t id = pool_take(&w->calls);
    if (state == NULL || id == NOTHING) {
        w->no_memory = true;
        return;
    }
    struct call *call = call_at(w, id);
    struct attempt *parent = origin->attempt == NOTHING ? NULL : attempt_at(w, origin->attempt);
    if (hop->is_gate && parent != NULL) {
        parent->gate_call = id;
    }
    state->used = true;
    call->number = ++w->call_number;
    call->root = parent == NULL ? ++w->root_number : parent->root;
    call->hop = origin->hop;
    call->caller = origin->caller;
    call->client = origin->client;
    call->tenant = parent == NULL ? origin->client : parent->tenant;
    call->hint = 0;
    call->endpoint = origin->endpoint;
    call->attempt = origin->attempt;
    call->root_at = parent == NULL ? w->clock.now : parent->root_at;
    call->wake_at = BECALM_NEVER;
    call->answered = false;
    call->operation = parent == NULL ? effect_begin(w, origin->client, origin->caller) : parent->operation;
    struct becalm_request request = {
        .idempotent = !w->service[hop->to].has_effect,
        .keyed = call->operation.keyed,
        .deadline_at = deadline_of(w, hop, parent),
        .retry_from_above = parent != NULL && parent->number > 0,
        .attempt_from_above = parent != NULL,
        .queue = queue_of(w, state->limited, &hop->rules[kind].policy),
        .parking = state->target.restart == NULL ? NULL : &state->line,
        .alone = !hop->is_proxy && !hop->rules[kind].policy.hedge.enabled, /* as libbecalm-curl, run, exec */
        .flow = hop->is_gate ? flow_of(w, parent) : 0,
        .owner = (void *)(uintptr_t)id,
    };
    becalm_call_init(&call->engine, &hop->rules[kind].policy, &state->target, &request);
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    call_step(w, id, 0, &event);
}

void call_wakes(struct world *w, uint32_t id, uint32_t generation)
{
    struct call *call = call_at(w, id);
    if (call->generation == generation && call->wake_at == w->clock.now) {
        struct becalm_event timer = {.kind = BECALM_EVENT_TIMER};
        call_step(w, id, 0, &timer);
    }
}

bool call_has_no_host(const struct world *w, uint32_t id)
{
    const struct becalm_call *call = &call_at(w, id)->engine;
    return call->target->restart != NULL && becalm_restart_peek(call->target->restart, call->policy->attempt_timeout,
                                                                w->clock.now) == BECALM_RESTART_DOWN;
}

void call_left(struct world *w, uint32_t id)
{
    struct becalm_event event = {.kind = BECALM_EVENT_LEFT};
    call_step(w, id, 0, &event);
}

void call_cancel(struct world *w, uint32_t id)
{
    struct becalm_event event = {.kind = BECALM_EVENT_CANCEL};
    call_step(w, id, 0, &event);
}

void call_head(struct world *w, uint32_t id, uint32_t slot, uint32_t number, const struct becalm_outcome *outcome)
{
    struct becalm_event event = {.kind = BECALM_EVENT_HEAD, .slot = slot, .outcome = *outcome};
    call_step(w, id, number, &event);
}

void call_done(struct world *w, uint32_t id, uint32_t slot, uint32_t number, const struct becalm_outcome *outcome)
{
    struct becalm_event event = {.kind = BECALM_EVENT_DONE, .slot = slot, .outcome = *outcome};
    struct call *call = call_at(w, id);
    call->hint = outcome->hint;
    if (outcome->no_listener) {
        w->hop[call->hop].state[(size_t)call->caller * w->hop[call->hop].kinds]->refused = true;
    }
    call_step(w, id, number, &event);
}

void call_foresee(const struct world *w, uint32_t id)
{
    const struct call *call = call_at(w, id);
    fetch(&call->engine, offsetof(struct becalm_call, slot[1]));
    fetch(&call->engine.record, offsetof(struct becalm_record, attempt[1]));
    fetch(&call->number, sizeof *call - offsetof(struct call, number));
}

void call_foresee_target(const struct world *w, uint32_t id)
{
    const struct call *call = call_at(w, id);
    fetch(call->engine.target, w->hop[call->hop].state_bytes);
}

/* Making and unmaking hops. */

struct dist latency_dist(const struct scenario *plan, becalm_ns mean)
{
    if (plan->link_deviation == 0 || mean == 0) {
        return (struct dist){.kind = DIST_CONSTANT, .mean = mean};
    }
    return (struct dist){.kind = DIST_NORMAL, .mean = mean, .shape = (uint32_t)(plan->link_deviation * 1000000 / mean)};
}

static struct link link_between(const struct scenario *plan, const char *from, const char *to)
{
    for (uint32_t i = 0; i < plan->link_count; i++) {
        if (strcmp(plan->links[i].from, from) == 0 && strcmp(plan->links[i].to, to) == 0) {
            return (struct link){.latency = latency_dist(plan, plan->links[i].latency),
                                 .loss_ppm = plan->links[i].loss_ppm};
        }
    }
    return (struct link){.latency = latency_dist(plan, plan->link), .loss_ppm = plan->loss_ppm};
}

/* Changes that the driver makes to a policy, by its role. */
static void role_settle(struct becalm_policy *policy, enum scenario_role role, bool auto_limit)
{
    switch (role) {
    case ROLE_LIBRARY:
    case ROLE_SIDECAR:
        becalm_gate_for_caller(&policy->gate);
        return;
    case ROLE_GATEWAY:
        policy->gate.caller = false;
        policy->limit.kind = auto_limit ? BECALM_LIMIT_SLOTS : policy->limit.kind;
        return;
    }
    BECALM_UNREACHABLE();
}

static void retries_off(struct becalm_policy *policy)
{
    policy->max_retries = 0;
    policy->hedge.enabled = false;
}

/* The rules that the file has for the service and its endpoints, or else the rules for all. */
static void rules_fill(const struct world *w, struct hop *hop, enum scenario_role role, bool retries)
{
    const struct world_options *options = w->options;
    uint32_t first = world_target(w->plan, hop->to, 0);
    for (uint32_t kind = 0; kind < hop->kinds; kind++) {
        const struct becalm_policy *own = options->policy_to == NULL ? NULL : options->policy_to[first + kind];
        struct rules *rules = &hop->rules[kind];
        rules->policy = own != NULL ? *own : *options->policy;
        rules->level = options->level_to == NULL ? options->level : options->level_to[first + kind];
        if (!retries) {
            retries_off(&rules->policy);
        }
        role_settle(&rules->policy, role,
                    options->auto_limit_to == NULL ? options->auto_limit : options->auto_limit_to[first + kind]);
    }
}

/* Which faults make a connection be refused: of hosts; and of callers that are cut off, also from a gate. */
static bool refuses_at_host(const struct scenario_fault *fault)
{
    return fault->kind == FAULT_REFUSE || fault->kind == FAULT_KILL_HOSTS || fault->kind == FAULT_ROLLING;
}

static bool refuses_to_caller(const struct scenario_fault *fault)
{
    return fault->kind == FAULT_CUT_CALLERS && !fault->silent;
}

static bool has_fault(const struct scenario *plan, uint32_t service, bool (*is)(const struct scenario_fault *))
{
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        if (is(&plan->faults[i]) && scenario_find(plan, plan->faults[i].service) == service) {
            return true;
        }
    }
    return false;
}

/* NULL: no memory. */
static struct hop *hop_make(struct world *w, const char *from, uint32_t to, uint32_t callers, uint32_t kinds)
{
    struct hop *hop = &w->hop[w->hop_count++];
    const struct scenario_service *service = &w->plan->services[to];
    hop->from = from;
    hop->to = to;
    hop->callers = callers;
    hop->kinds = kinds;
    hop->may_refuse = has_fault(w->plan, to, refuses_to_caller) || /* a gate itself never refuses connections */
                      (!service->gate && has_fault(w->plan, to, refuses_at_host));
    hop->link = link_between(w->plan, from, service->name);
    hop->hosts = service->hosts > 1 && !service->gate ? service->hosts : 0;
    hop->rules = calloc(kinds, sizeof *hop->rules);
    hop->state = calloc((size_t)callers * kinds, sizeof(struct state *));
    return hop->rules == NULL || hop->state == NULL ? NULL : hop;
}

static bool gate_make(struct world *w, uint32_t to)
{
    const struct scenario_service *service = &w->plan->services[to];
    const struct world_options *options = w->options;
    struct hop *hop = hop_make(w, service->name, to, 1, 1 + service->endpoint_count);
    if (hop == NULL) {
        return false;
    }
    hop->is_gate = hop->is_proxy = true;
    hop->may_refuse = has_fault(w->plan, to, refuses_at_host);
    hop->hosts = service->hosts > 1 ? service->hosts : 0;
    uint32_t first = world_target(w->plan, to, 0);
    for (uint32_t kind = 0; kind < hop->kinds; kind++) {
        const struct becalm_policy *own =
            options->gate_policy_to == NULL ? NULL : options->gate_policy_to[first + kind];
        struct rules *rules = &hop->rules[kind];
        rules->policy = own != NULL ? *own : *options->gate_policy;
        rules->level = options->level_to == NULL ? options->level : options->level_to[first + kind];
        rules->policy.lease.enabled = false; /* its calls are its callers' calls, which have reported them */
        if (!service->gate_retries) {
            retries_off(&rules->policy);
        }
    }
    return true;
}

static uint32_t calls_count(const struct scenario_service *service)
{
    uint32_t count = 0;
    while (service->calls != NULL && service->calls[count] != NULL) {
        count++;
    }
    return count;
}

static bool client_hops_make(struct world *w)
{
    for (uint32_t i = 0; i < w->plan->client_count; i++) {
        const struct scenario_client *client = &w->plan->clients[i];
        uint32_t to = scenario_find(w->plan, client->to);
        struct hop *hop = hop_make(w, client->name, to, client->callers, 1 + w->plan->services[to].endpoint_count);
        if (hop == NULL) {
            return false;
        }
        rules_fill(w, hop, client->role, client->retries);
        hop->is_proxy = client->role != ROLE_LIBRARY;
        for (uint32_t kind = 0; client->timeout > 0 && kind < hop->kinds; kind++) {
            hop->rules[kind].policy.attempt_timeout = client->timeout;
            hop->rules[kind].policy.timeout_kind = BECALM_TIMEOUT_EXACT;
        }
    }
    return true;
}

static bool service_hops_make(struct world *w, uint32_t i)
{
    const struct scenario_service *plan = &w->plan->services[i];
    struct service *service = &w->service[i];
    service->first_hop = w->hop_count;
    service->hop_count = calls_count(plan);
    for (uint32_t c = 0; c < service->hop_count; c++) {
        uint32_t to = scenario_find(w->plan, plan->calls[c]);
        struct hop *hop = hop_make(w, plan->name, to, plan->instances, 1 + w->plan->services[to].endpoint_count);
        if (hop == NULL) {
            return false;
        }
        rules_fill(w, hop, plan->role, true);
        hop->is_told = hop->is_proxy = plan->role != ROLE_LIBRARY;
    }
    return true;
}

bool hops_make(struct world *w)
{
    const struct scenario *plan = w->plan;
    size_t most = plan->client_count + plan->service_count;
    for (uint32_t i = 0; i < plan->service_count; i++) {
        most += calls_count(&plan->services[i]);
    }
    w->hop = calloc(most, sizeof *w->hop);
    bool made = w->hop != NULL && client_hops_make(w);
    for (uint32_t i = 0; made && i < plan->service_count; i++) {
        made = service_hops_make(w, i);
    }
    for (uint32_t i = 0; made && i < plan->service_count; i++) {
        w->service[i].gate = plan->services[i].gate ? w->hop_count : NOTHING;
        made = !plan->services[i].gate || gate_make(w, i);
    }
    for (uint32_t i = 0; made && i < w->hop_count; i++) {
        made = pooled_make(w, &w->hop[i]);
    }
    return made;
}

void hops_free(struct world *w)
{
    for (uint32_t i = 0; i < w->hop_count; i++) {
        free(w->hop[i].state);
        free(w->hop[i].rules);
        pooled_free(&w->hop[i]);
    }
    free(w->hop);
    slab_free(&w->memory);
}
