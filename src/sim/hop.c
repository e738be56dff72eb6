/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>

static struct becalm_moment moment(struct world *w)
{
    return (struct becalm_moment){.now = w->clock.now, .random = becalm_rand_next(&w->policy_state)};
}

/* Calls. */

static void op_step(struct world *w, uint32_t id, uint32_t attempt, struct becalm_event *event);

static void queue_serve(struct world *w, struct hop *hop, uint32_t caller)
{
    struct becalm_moment at = moment(w);
    struct becalm_ticket *ticket;
    while ((ticket = becalm_queue_next(&hop->queue[caller], &hop->policy.gate, &hop->policy.limit, &at)) != NULL) {
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        op_step(w, (uint32_t)(uintptr_t)ticket->owner, 0, &event);
    }
}

static void op_end(struct world *w, uint32_t id, const struct becalm_action *action)
{
    struct op *op = op_at(w, id);
    bool good = action->why == BECALM_WHY_OK;
    uint32_t job = op->job;
    w->result->service[w->hop[op->hop].to].ended[action->why]++;
    if (job == NOTHING) {
        uint32_t second = second_of(w, op->root_at);
        w->result->client[op->client].good[second] += good;
        if (good) {
            w->result->latency_sum_us += (w->clock.now - op->root_at) / BECALM_US;
            w->result->latency_count++;
        }
    }
    op->generation++;
    pool_give(&w->ops, id);
    if (job != NOTHING) {
        job_child_done(w, job, good, action->mark);
    }
}

static void op_trace(const struct world *w, const struct op *op, uint32_t attempt, const struct becalm_event *event,
                     const struct becalm_action *action)
{
    const struct hop *hop = &w->hop[op->hop];
    w->options->trace(w->options->trace_self, &(struct world_trace){
                                                  .call = op->root,
                                                  .op = op->number,
                                                  .from = hop->from,
                                                  .to = w->plan->services[hop->to].name,
                                                  .is_gate = hop->is_gate,
                                                  .attempt = attempt,
                                                  .event = event,
                                                  .action = action,
                                                  .record = &op->call.record,
                                              });
}

/* `attempt` is the number of the one that a DONE is about. */
static void op_step(struct world *w, uint32_t id, uint32_t attempt, struct becalm_event *event)
{
    struct op *op = op_at(w, id);
    struct hop *hop = &w->hop[op->hop];
    uint32_t caller = op->caller;
    struct becalm_action action;
    event->at = moment(w);
    becalm_call_step(&op->call, event, &action);
    if (w->options->trace != NULL) {
        op_trace(w, op, attempt, event, &action);
    }
    for (uint32_t slot = 0; action.cancel >> slot != 0; slot++) {
        if ((action.cancel >> slot & 1) != 0) {
            job_at(w, op->flight[slot])->op = NOTHING;
        }
    }
    if ((action.flags & BECALM_DO_SEND) != 0) {
        job_send(w, id, &action);
    }
    if ((action.flags & BECALM_DO_FINISH) != 0) {
        op_end(w, id, &action);
    } else if (action.wake_at != op->wake_at) {
        op->wake_at = action.wake_at;
        clock_plan(&w->clock,
                   (struct event){.at = action.wake_at, .kind = CALL_WAKES, .id = id, .generation = op->generation});
    }
    if ((action.flags & BECALM_DO_SERVE) != 0 && hop->queue != NULL) {
        queue_serve(w, hop, caller);
    }
}

void op_begin(struct world *w, const struct op_origin *origin)
{
    uint32_t id = pool_take(&w->ops);
    if (id == NOTHING) {
        w->no_memory = true;
        return;
    }
    struct op *op = op_at(w, id);
    struct hop *hop = &w->hop[origin->hop];
    const struct job *parent = origin->job == NOTHING ? NULL : job_at(w, origin->job);
    op->number = ++w->op_number;
    op->root = parent == NULL ? ++w->root_number : parent->root;
    op->hop = origin->hop;
    op->caller = origin->caller;
    op->client = origin->client;
    op->job = origin->job;
    op->root_at = parent == NULL ? w->clock.now : parent->root_at;
    op->wake_at = BECALM_NEVER;
    struct becalm_request request = {
        .idempotent = true,
        .deadline_at = parent == NULL || !w->options->carries_deadlines ? BECALM_NEVER : parent->deadline_at,
        .retry_from_above = parent != NULL && parent->attempt > 0,
        .queue = hop->queue == NULL ? NULL : &hop->queue[origin->caller],
        .owner = (void *)(uintptr_t)id,
    };
    becalm_call_init(&op->call, &hop->policy, &hop->target[origin->caller], &request);
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    op_step(w, id, 0, &event);
}

void op_wakes(struct world *w, uint32_t id, uint32_t generation)
{
    struct op *op = op_at(w, id);
    if (op->generation == generation && op->wake_at == w->clock.now) {
        struct becalm_event timer = {.kind = BECALM_EVENT_TIMER};
        op_step(w, id, 0, &timer);
    }
}

void op_done(struct world *w, uint32_t id, uint32_t slot, uint32_t attempt, const struct becalm_outcome *outcome)
{
    struct becalm_event event = {.kind = BECALM_EVENT_DONE, .slot = slot, .outcome = *outcome};
    op_step(w, id, attempt, &event);
}

/* Making and unmaking hops. */

static bool hop_make(struct world *w, const char *from, uint32_t to, uint32_t callers,
                     const struct becalm_policy *policy)
{
    struct hop *hop = &w->hop[w->hop_count++];
    uint32_t hosts = w->plan->services[to].hosts > 1 ? w->plan->services[to].hosts : 0;
    size_t bytes = becalm_target_bytes(policy, hosts, 1);
    hop->from = from;
    hop->to = to;
    hop->callers = callers;
    hop->policy = *policy;
    hop->target = calloc(callers, sizeof *hop->target);
    hop->memory = aligned_alloc(64, bytes * callers);
    if (hop->target == NULL || hop->memory == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < callers; i++) {
        int rc = becalm_target_init(&hop->target[i], (unsigned char *)hop->memory + i * bytes, &hop->policy, hosts, 1);
        BECALM_ASSERT(rc == 0);
    }
    return true;
}

static bool gate_make(struct world *w, uint32_t to)
{
    struct hop *hop = &w->hop[w->hop_count];
    if (!hop_make(w, w->plan->services[to].name, to, 1, w->options->gate_policy)) {
        return false;
    }
    hop->is_gate = true;
    hop->queue = calloc(1, sizeof *hop->queue);
    if (hop->queue == NULL) {
        return false;
    }
    becalm_queue_init(&hop->queue[0], hop->target[0].gate, hop->target[0].limit);
    return true;
}

static struct becalm_policy without_retries(const struct becalm_policy *policy)
{
    struct becalm_policy once = *policy;
    once.max_retries = 0;
    once.hedge.enabled = false;
    return once;
}

static const struct becalm_policy *policy_to(const struct world *w, uint32_t service)
{
    const struct becalm_policy *const *own = w->options->policy_to;
    return own != NULL && own[service] != NULL ? own[service] : w->options->policy;
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
        uint32_t to = service_find(w->plan, client->to);
        struct becalm_policy once = without_retries(policy_to(w, to));
        const struct becalm_policy *policy = client->retries ? policy_to(w, to) : &once;
        if (!hop_make(w, client->name, to, client->callers, policy)) {
            return false;
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
        uint32_t to = service_find(w->plan, plan->calls[c]);
        if (!hop_make(w, plan->name, to, plan->instances, policy_to(w, to))) {
            return false;
        }
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
    return made;
}

void hops_free(struct world *w)
{
    for (uint32_t i = 0; i < w->hop_count; i++) {
        free(w->hop[i].target);
        free(w->hop[i].queue);
        free(w->hop[i].memory);
    }
    free(w->hop);
}
