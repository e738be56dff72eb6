/* SPDX-License-Identifier: MIT */
#include "chaos.h"

#include <becalm/call.h>

#include <stdlib.h>
#include <string.h>

#define CALLS 16u

struct actor {
    struct becalm_call call;
    becalm_ns wake_at;
    uint32_t flying; /* bit n: the host has an attempt in slot n */
    uint32_t sends;
    uint32_t ends;
    bool used;
    bool left;
};

struct chaos {
    const uint8_t *data;
    size_t size;
    size_t at;
    becalm_ns now;
    uint64_t seed;
    struct chaos_counts *counts;
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_queue queue;
    struct becalm_parking line;
    void *memory;
    void *service_memory;
    struct actor actor[CALLS];
};

static uint8_t byte(struct chaos *c)
{
    return c->at < c->size ? c->data[c->at++] : 0;
}

static uint32_t below(struct chaos *c, uint32_t bound)
{
    return byte(c) % bound;
}

/* A duration from nothing to minutes, evenly over the orders of magnitude. */
static becalm_ns duration(struct chaos *c)
{
    return ((becalm_ns)byte(c) + 1) << below(c, 30);
}

static void policy_draw(struct chaos *c)
{
    struct becalm_policy *p = &c->policy;
    becalm_policy_defaults(p);
    p->max_retries = below(c, 12);
    p->attempt_timeout = becalm_ns_max(10 * BECALM_MS, duration(c));
    p->timeout_kind = (enum becalm_timeout_kind)below(c, 3);
    p->retry_overdue = below(c, 4) != 0;
    p->deadline = below(c, 4) == 0 ? BECALM_NEVER : becalm_ns_max(100 * BECALM_MS, 16 * duration(c));
    p->idempotent = below(c, 4) == 0;
    p->shadow = below(c, 8) == 0;
    p->backoff.jitter = (enum becalm_jitter)below(c, BECALM_JITTER_CUSTOM);
    p->backoff.growth = (enum becalm_growth)below(c, 3);
    p->backoff.base = below(c, 4) == 0 ? 0 : duration(c) % BECALM_S;
    becalm_budget_defaults(&p->budget, (enum becalm_budget_kind)below(c, BECALM_BUDGET_NONE + 1));
    becalm_budget_defaults(&p->service_budget, (enum becalm_budget_kind)below(c, BECALM_BUDGET_NONE + 1));
    if (below(c, 2) == 0) {
        becalm_breaker_resilience4j(&p->breaker);
    }
    p->breaker.enabled = below(c, 3) == 0; /* an open one ends nearly every call at once */
    p->breaker.mode = (enum becalm_breaker_mode)below(c, 2);
    p->breaker.per_attempt = below(c, 2) == 0;
    p->breaker.min_calls = 1 + below(c, 100);
    p->breaker.slow_share_ppm = below(c, 2) == 0 ? 500000 : BECALM_BREAKER_SLOW_OFF;
    p->breaker.slow_after = becalm_ns_max(BECALM_MS, duration(c));
    p->breaker.probes = 1 + below(c, 4);
    p->throttle.enabled = below(c, 16) == 0;
    p->rate.enabled = below(c, 16) == 0;
    becalm_limit_defaults(&p->limit, (enum becalm_limit_kind)below(c, BECALM_LIMIT_NONE + 1));
    p->limit.max = 1 + below(c, 24);
    p->limit.max_answers = below(c, 4) == 0 ? 1 + below(c, 12) : p->limit.max_answers;
    p->gate.max_queue = below(c, 16);
    p->gate.cpu_threshold_ppm = below(c, 16) == 0 ? 500000 : 0;
    p->hedge.enabled = below(c, 2) == 0;
    p->hedge.delay = below(c, 2) == 0 ? 0 : becalm_ns_max(BECALM_MS, duration(c));
    p->hedge.max = 1 + below(c, 4);
    p->restart.enabled = below(c, 8) != 0;
    if (below(c, 3) == 0) {
        becalm_gate_for_caller(&p->gate);
    }
}

static bool chaos_open(struct chaos *c)
{
    uint32_t hosts = below(c, 5);
    uint32_t cells = 1 + below(c, 3);
    struct becalm_complaint complaint;
    if (becalm_policy_check(&c->policy, &complaint) != 0) {
        BECALM_ASSERT(complaint.part != NULL && complaint.sentence != NULL);
        return false;
    }
    c->memory = aligned_alloc(64, becalm_target_bytes(&c->policy, hosts, cells));
    BECALM_ASSERT(c->memory != NULL);
    int rc = becalm_target_init(&c->target, c->memory, &c->policy, hosts, cells);
    BECALM_ASSERT(rc == 0);
    becalm_queue_init(&c->queue, c->target.gate, c->target.limit);
    becalm_parking_init(&c->line, c->target.restart);
    if (below(c, 2) == 0) {
        c->service_memory = aligned_alloc(64, becalm_budget_bytes(&c->policy.service_budget, cells));
        BECALM_ASSERT(c->service_memory != NULL);
        c->target.service_budget = becalm_budget_init(c->service_memory, &c->policy.service_budget, cells);
    }
    return true;
}

static uint32_t attempts_max(const struct chaos *c)
{
    uint32_t retries = c->policy.max_retries + 1;
    uint32_t hedges = c->policy.hedge.enabled ? c->policy.hedge.max + 1 : 0;
    return retries > hedges ? retries : hedges;
}

static void check_action(struct chaos *c, struct actor *actor, const struct becalm_action *action)
{
    const struct becalm_call *call = &actor->call;
    BECALM_ASSERT((action->cancel & ~actor->flying) == 0);
    BECALM_ASSERT(((action->flags & BECALM_DO_CANCEL) != 0) == (action->cancel != 0));
    bool unsent = action->why == BECALM_WHY_NO_HOST || action->why == BECALM_WHY_DEADLINE ||
                  action->why == BECALM_WHY_NO_CONNECTION;
    if (unsent && call->record.attempts + 1 == actor->sends) {
        actor->sends--; /* it was never sent, and the next one has its number */
    }
    actor->flying &= ~action->cancel;
    if ((action->flags & BECALM_DO_SEND) != 0) {
        BECALM_ASSERT(actor->ends == 0);
        BECALM_ASSERT(action->slot < BECALM_SLOTS && (actor->flying & 1u << action->slot) == 0);
        BECALM_ASSERT(action->attempt == actor->sends);
        BECALM_ASSERT(action->attempt == 0 || !actor->left); /* nothing is begun for a caller that has left */
        BECALM_ASSERT(action->timeout_at <= call->deadline_at);
        BECALM_ASSERT(c->target.hosts == NULL ? action->host == BECALM_NO_HOST : action->host < c->target.hosts->count);
        actor->flying |= 1u << action->slot;
        actor->sends++;
        c->counts->sends++;
        c->counts->retries += action->attempt > 0;
        c->counts->hedges += action->why == BECALM_WHY_HEDGE;
        BECALM_ASSERT(actor->sends <= attempts_max(c));
    }
    if ((action->flags & BECALM_DO_FINISH) != 0) {
        BECALM_ASSERT(action->why != BECALM_WHY_NONE && action->why == call->record.reason);
        BECALM_ASSERT(actor->flying == 0);
        BECALM_ASSERT(action->wake_at == BECALM_NEVER);
        actor->ends++;
        c->counts->ended[action->why]++;
        BECALM_ASSERT(actor->ends == 1);
        BECALM_ASSERT(!call->permit.held && !call->spend.held && !call->service_spend.held);
        BECALM_ASSERT(!call->rate_held && call->ticket.queue == NULL && !call->ticket.slot.held);
        BECALM_ASSERT(call->berth.parking == NULL);
    }
    BECALM_ASSERT(call->phase != BECALM_PHASE_PARKED || (!call->permit.held || call->record.attempts > 0));
    BECALM_ASSERT(((action->flags & BECALM_DO_PARK) != 0) <= (call->phase == BECALM_PHASE_PARKED));
    BECALM_ASSERT(((action->flags & BECALM_DO_LINE_UP) != 0) <= (call->phase == BECALM_PHASE_OUTSIDE));
    BECALM_ASSERT((call->ticket.queue != NULL || call->berth.parking != NULL) <= becalm_call_in_line(call));
    BECALM_ASSERT(becalm_call_ended(call) == (actor->ends == 1));
    BECALM_ASSERT(actor->flying == call->live);
    BECALM_ASSERT(call->record.attempts == actor->sends);
}

static void feed(struct chaos *c, struct actor *actor, struct becalm_event *event);

static void serve(struct chaos *c)
{
    struct becalm_moment at = {.now = c->now, .random = becalm_rand_next(&c->seed)};
    struct becalm_ticket *ticket;
    while ((ticket = becalm_queue_next(&c->queue, &c->policy.gate, &c->policy.limit, &at)) != NULL) {
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        feed(c, ticket->owner, &event);
    }
}

static void serve_line(struct chaos *c)
{
    struct becalm_berth *berth;
    while ((berth = becalm_parking_next(&c->line, c->policy.attempt_timeout, c->now)) != NULL) {
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        feed(c, berth->owner, &event);
    }
}

/* With lines that threads share, a step that is not made with their lock must leave them alone. */
static uint64_t lined_up(const struct chaos *c)
{
    return becalm_gate_waiting(c->target.gate) << 32 | becalm_restart_parked(c->target.restart);
}

static void feed(struct chaos *c, struct actor *actor, struct becalm_event *event)
{
    struct becalm_action action;
    bool locked = !actor->call.request.lines_shared || event->kind == BECALM_EVENT_LINE_UP ||
                  (becalm_call_in_line(&actor->call) && event->kind != BECALM_EVENT_SERVE);
    uint64_t before = lined_up(c);
    event->at = (struct becalm_moment){.now = c->now, .random = becalm_rand_next(&c->seed), .cell = byte(c)};
    if (event->kind == BECALM_EVENT_DONE && event->slot < BECALM_SLOTS) {
        actor->flying &= ~(1u << event->slot);
    }
    becalm_call_step(&actor->call, event, &action);
    BECALM_ASSERT(locked || lined_up(c) == before);
    c->counts->events++;
    c->counts->gated += action.why == BECALM_WHY_QUEUED;
    c->counts->parked += (action.flags & BECALM_DO_PARK) != 0;
    c->counts->probes += action.why == BECALM_WHY_NO_HOST && (action.flags & BECALM_DO_SEND) != 0;
    check_action(c, actor, &action);
    actor->wake_at = action.wake_at;
    if ((action.flags & BECALM_DO_SERVE) != 0 && byte(c) != 0) { /* a host may be slow to look */
        serve(c);
    }
    if ((action.flags & BECALM_DO_PARK) != 0 && byte(c) % 4 != 0) {
        serve_line(c);
    }
    if ((action.flags & BECALM_DO_LINE_UP) != 0 && byte(c) % 4 != 0) { /* another event may come in between */
        struct becalm_event line_up = {.kind = BECALM_EVENT_LINE_UP};
        feed(c, actor, &line_up);
    }
}

static void begin(struct chaos *c, struct actor *actor)
{
    if (actor->used && actor->ends == 0) {
        struct becalm_event again = {.kind = BECALM_EVENT_BEGIN};
        feed(c, actor, &again); /* no host should; it must do nothing */
        return;
    }
    uint8_t bits = byte(c);
    struct becalm_request request = {
        .deadline_at = (bits & 129) == 129 ? becalm_ns_after(c->now, duration(c)) : 0,
        .idempotent = (bits & 18) != 0,
        .keyed = (bits & 4) != 0,
        .not_replayable = (bits & 56) == 56,
        .streams = (bits & 44) == 44,
        .retry_from_above = (bits & 32) != 0,
        .queue = (bits & 64) != 0 ? &c->queue : NULL,
        .flow = below(c, 5),
        .parking = (bits & 65) != 0 ? &c->line : NULL,
        .lines_shared = below(c, 2) == 0,
        .owner = actor,
    };
    memset(actor, 0xa5, sizeof *actor); /* fields that init does not set must never be read */
    actor->wake_at = BECALM_NEVER;
    actor->flying = actor->sends = actor->ends = 0;
    actor->left = false;
    actor->used = true;
    becalm_call_init(&actor->call, &c->policy, &c->target, &request);
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    feed(c, actor, &event);
}

static void attempt(struct chaos *c, struct actor *actor)
{
    static const enum becalm_event_kind kinds[] = {BECALM_EVENT_HEAD, BECALM_EVENT_HEAD, BECALM_EVENT_HELD,
                                                   BECALM_EVENT_DONE, BECALM_EVENT_DONE, BECALM_EVENT_DONE};
    struct becalm_event event = {
        .kind = kinds[below(c, 6)],
        .slot = below(c, 4) == 0 ? below(c, BECALM_SLOTS + 1) : 0, /* mostly one that flies */
    };
    /* Half of the attempts succeed, so that budgets, breakers and throttles do not end every call before it can retry.
     */
    event.outcome.kind =
        below(c, 2) == 0 ? BECALM_OUTCOME_OK : (enum becalm_outcome_kind)below(c, BECALM_OUTCOME_COUNT);
    uint8_t bits = byte(c);
    event.outcome.listed = (enum becalm_listed)(bits % 3);
    event.outcome.mark = (bits & 12) == 12 ? (enum becalm_mark_kind)below(c, 4) : BECALM_MARK_NONE;
    event.outcome.stop = (bits & 0x70) == 0x70;
    event.outcome.status = (bits & 1) != 0 ? 500 : 0;
    event.outcome.has_hint = (bits & 0x82) == 0x82;
    event.outcome.hint = event.outcome.has_hint ? duration(c) : 0;
    event.outcome.delivered = bits == 255;
    event.outcome.provisional = event.kind == BECALM_EVENT_HEAD && (bits & 3) == 2;
    event.outcome.no_listener = (bits & 6) != 0;
    if ((bits & 48) == 48 && actor->used && becalm_call_accepted(&actor->call, event.slot, c->now)) {
        serve_line(c);
    }
    if (bits % 8 == 5 && actor->used && c->target.hosts != NULL) { /* by another way than the chosen one */
        becalm_call_sent_to(&actor->call, event.slot, bits % c->target.hosts->count, c->now);
    }
    if (bits % 16 == 9 && actor->used) { /* it waits for a connection of ours, or does no more */
        becalm_call_unsent(&actor->call, event.slot, becalm_ns_after(c->now, duration(c)));
        return;
    }
    if (bits % 16 == 11 && actor->used) {
        (void)becalm_call_goes(&actor->call, event.slot, c->now);
    }
    feed(c, actor, &event);
}

static void happen(struct chaos *c)
{
    struct actor *actor = &c->actor[below(c, CALLS)];
    struct becalm_event event = {.kind = BECALM_EVENT_TIMER};
    uint32_t what = below(c, 16);
    c->now = becalm_ns_after(c->now, byte(c) * 20 * BECALM_US);
    bool over = !actor->used || actor->ends > 0;
    if (what < 2 || (over && what < 14)) {
        begin(c, actor);
    } else if (what < 9) {
        attempt(c, actor);
    } else if (what < 12) {
        c->now = actor->wake_at == BECALM_NEVER ? c->now : becalm_ns_max(c->now, actor->wake_at);
        feed(c, actor, &event);
    } else if (what == 12) {
        static const enum becalm_event_kind kinds[] = {BECALM_EVENT_CANCEL, BECALM_EVENT_LEFT, BECALM_EVENT_TIMER};
        event.kind = kinds[below(c, 3)];
        actor->left |= event.kind == BECALM_EVENT_LEFT;
        feed(c, actor, &event);
    } else if (what == 13) {
        static const enum becalm_event_kind kinds[] = {BECALM_EVENT_SERVE, BECALM_EVENT_SENT, BECALM_EVENT_LINE_UP};
        event.kind = kinds[below(c, 3)]; /* a driver sends these only in some states, the test in all */
        event.slot = below(c, BECALM_SLOTS + 1);
        if (actor->used && event.slot % 2 == 0) { /* as it turns out */
            becalm_call_streams(&actor->call, event.slot);
        } else if (actor->used && event.slot == 1) {
            becalm_call_streamed(&actor->call, c->now);
        }
        feed(c, actor, &event);
        serve(c);
        serve_line(c);
    } else if (what == 14) {
        becalm_gate_note_cpu(c->target.gate, below(c, 256) * 4000u);
        c->now = becalm_ns_after(c->now, duration(c));
        serve_line(c);
    } else {
        becalm_ns back = duration(c); /* another worker's clock is a little behind */
        c->now = becalm_ns_since(c->now, back < BECALM_MS ? back : 0);
    }
}

static void check_nothing_is_held(const struct chaos *c)
{
    BECALM_ASSERT(becalm_limit_in_flight(c->target.limit) == 0);
    BECALM_ASSERT(becalm_limit_answers(c->target.limit) == 0);
    BECALM_ASSERT(becalm_gate_waiting(c->target.gate) == 0);
    BECALM_ASSERT(atomic_load_explicit(&c->target.gate->awaiting, memory_order_relaxed) == 0);
    BECALM_ASSERT(c->queue.length == 0 && c->queue.busy == 0 && becalm_gate_flows(c->target.gate) == 0);
    for (uint32_t i = 0; i <= BECALM_FLOWS; i++) {
        BECALM_ASSERT(c->queue.line[i].length == 0 && c->queue.line[i].first == NULL && c->queue.line[i].last == NULL);
    }
    BECALM_ASSERT(becalm_restart_parked(c->target.restart) == 0 && c->line.first == NULL && c->line.last == NULL);
    for (uint32_t i = 0; c->target.hosts != NULL && i < c->target.hosts->count; i++) {
        BECALM_ASSERT(atomic_load_explicit(&c->target.hosts->host[i].in_flight, memory_order_relaxed) == 0);
    }
    if (c->policy.budget.kind == BECALM_BUDGET_CONCURRENCY) {
        BECALM_ASSERT(atomic_load_explicit(&c->target.budget->word, memory_order_relaxed) == 0);
    }
    if (c->target.service_budget != NULL && c->policy.service_budget.kind == BECALM_BUDGET_CONCURRENCY) {
        BECALM_ASSERT(atomic_load_explicit(&c->target.service_budget->word, memory_order_relaxed) == 0);
    }
}

void chaos_run(const uint8_t *data, size_t size, struct chaos_counts *counts)
{
    struct chaos *c = calloc(1, sizeof *c);
    BECALM_ASSERT(c != NULL);
    c->data = data;
    c->size = size;
    c->seed = size;
    c->counts = counts;
    policy_draw(c);
    if (chaos_open(c)) {
        while (c->at < c->size) {
            happen(c);
        }
        for (uint32_t i = 0; i < CALLS; i++) {
            struct becalm_event event = {.kind = BECALM_EVENT_CANCEL};
            if (c->actor[i].used) {
                feed(c, &c->actor[i], &event);
                BECALM_ASSERT(becalm_call_ended(&c->actor[i].call));
            }
        }
        check_nothing_is_held(c);
    }
    free(c->service_memory);
    free(c->memory);
    free(c);
}
