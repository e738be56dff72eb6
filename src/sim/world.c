/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <becalm/call.h>

#include <stdlib.h>
#include <string.h>

#define NOTHING  UINT32_MAX
#define TIME_MAX (3600 * BECALM_S) /* of one service time: a heavy tail has no end */

enum event_kind { CLIENT_CALLS, JOB_ARRIVES, JOB_SERVED, JOB_ANSWERED, CALL_WAKES, FAULT_TURNS };

struct event {
    becalm_ns at;
    uint64_t order; /* the earlier of two events at the same instant is the one that was planned first */
    enum event_kind kind;
    uint32_t id;
    uint32_t generation;
};

/* A place from which a service is called: a client group, an instance group of another service, or a gate. */
struct hop {
    uint32_t to;
    uint32_t callers;
    bool is_gate;
    struct becalm_policy policy;
    struct becalm_target *target; /* one per caller */
    struct becalm_queue *queue;   /* gates only */
    void *memory;
};

/* One logical call on one hop. */
struct op {
    struct becalm_call call;
    uint32_t generation;
    uint32_t hop;
    uint32_t caller;
    uint32_t job; /* whose work it is part of; NOTHING: a client's */
    uint32_t client;
    becalm_ns root_at; /* when the client's call began */
    becalm_ns wake_at;
    uint32_t flight[BECALM_SLOTS]; /* jobs */
};

/* One attempt at a service. */
struct job {
    uint32_t generation;
    uint32_t op; /* NOTHING: nobody waits for it any more */
    uint32_t slot;
    uint32_t attempt;
    uint32_t service;
    uint32_t host;
    uint32_t pending; /* calls of its own */
    bool failed;
    bool through_gate;
    enum becalm_mark_kind mark;
    becalm_ns root_at;
    becalm_ns deadline_at;
    struct becalm_outcome outcome;
};

struct ring {
    uint32_t *job;
    uint32_t size; /* a power of two */
    uint32_t first;
    uint32_t count;
};

struct host {
    uint32_t busy;
    struct ring queue;
};

struct service {
    const struct scenario_service *plan;
    struct host *host;
    uint32_t first_hop; /* its own calls: hops first_hop .. first_hop + hop_count */
    uint32_t hop_count;
    uint32_t gate; /* the hop of its gate; NOTHING: none */
    uint32_t capacity_ppm;
    uint32_t error_ppm;
    uint32_t hang_ppm;
    uint32_t bad_hosts;
    uint32_t cut_ppm;
    becalm_ns latency;
    bool dead;
};

#define CHUNK 1024u

struct pool {
    size_t item;
    void **chunk;
    uint32_t chunks;
    uint32_t used; /* ever; below that, those in `free` are free again */
    uint32_t *free;
    uint32_t free_count;
};

struct world {
    const struct scenario *plan;
    const struct world_options *options;
    struct world_result *result;
    struct dist_tables tables;
    becalm_ns now;
    becalm_ns end_at;
    becalm_ns fault_from; /* the window of the mean amplification */
    becalm_ns fault_to;
    uint64_t order;
    uint64_t arrival_state; /* streams of their own, so that two policies meet the same calls */
    uint64_t service_state;
    uint64_t policy_state;
    struct event *heap;
    size_t heap_count, heap_size;
    struct pool ops;
    struct pool jobs;
    struct hop *hop;
    uint32_t hop_count;
    struct service *service;
    bool no_memory;
};

/* The event queue: a heap with four children to a node, which is shallower and kinder to caches than two. */

static bool sooner(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void plan_event(struct world *w, struct event event)
{
    if (event.at >= w->end_at) {
        return; /* long timeouts would only fill the heap */
    }
    if (w->heap_count == w->heap_size) {
        size_t larger = w->heap_size == 0 ? 4096 : w->heap_size * 2;
        struct event *moved = realloc(w->heap, larger * sizeof *moved);
        if (moved == NULL) {
            w->no_memory = true;
            return;
        }
        w->heap = moved;
        w->heap_size = larger;
    }
    event.order = w->order++;
    size_t i = w->heap_count++;
    for (; i > 0 && sooner(&event, &w->heap[(i - 1) / 4]); i = (i - 1) / 4) {
        w->heap[i] = w->heap[(i - 1) / 4];
    }
    w->heap[i] = event;
}

static struct event next_event(struct world *w)
{
    struct event top = w->heap[0];
    struct event last = w->heap[--w->heap_count];
    size_t i = 0;
    for (size_t child; (child = 4 * i + 1) < w->heap_count; i = child) {
        size_t end = child + 4 < w->heap_count ? child + 4 : w->heap_count;
        for (size_t c = child + 1; c < end; c++) {
            child = sooner(&w->heap[c], &w->heap[child]) ? c : child;
        }
        if (!sooner(&w->heap[child], &last)) {
            break;
        }
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

static uint32_t second_of(const struct world *w, becalm_ns at)
{
    uint32_t second = (uint32_t)(at / BECALM_S);
    return second < w->result->seconds ? second : w->result->seconds - 1;
}

static bool in_fault(const struct world *w, becalm_ns root_at)
{
    return root_at >= w->fault_from && root_at < w->fault_to;
}

/* Places for calls and jobs, used again and again. They never move: a gate's queue links the calls themselves. */

static void *pool_at(const struct pool *pool, uint32_t id)
{
    return (unsigned char *)pool->chunk[id / CHUNK] + (size_t)(id % CHUNK) * pool->item;
}

static bool pool_grow(struct pool *pool)
{
    void **chunks = realloc(pool->chunk, (pool->chunks + 1) * sizeof *chunks);
    if (chunks == NULL) {
        return false;
    }
    pool->chunk = chunks;
    chunks[pool->chunks] = calloc(CHUNK, pool->item);
    if (chunks[pool->chunks] == NULL) {
        return false;
    }
    pool->chunks++;
    return true;
}

/* NOTHING: no memory, and noted. */
static uint32_t pool_take(struct world *w, struct pool *pool)
{
    if (pool->free_count > 0) {
        return pool->free[--pool->free_count];
    }
    if (pool->used == pool->chunks * CHUNK) {
        uint32_t *free_ids = realloc(pool->free, (pool->chunks + 1) * CHUNK * sizeof *free_ids);
        pool->free = free_ids == NULL ? pool->free : free_ids;
        if (free_ids == NULL || !pool_grow(pool)) {
            w->no_memory = true;
            return NOTHING;
        }
    }
    return pool->used++;
}

static void pool_give(struct pool *pool, uint32_t id)
{
    pool->free[pool->free_count++] = id;
}

static void pool_free(struct pool *pool)
{
    for (uint32_t i = 0; i < pool->chunks; i++) {
        free(pool->chunk[i]);
    }
    free(pool->chunk);
    free(pool->free);
}

static struct op *op_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->ops, id);
}

static struct job *job_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->jobs, id);
}

static void op_give(struct world *w, uint32_t id)
{
    op_at(w, id)->generation++;
    pool_give(&w->ops, id);
}

static void job_give(struct world *w, uint32_t id)
{
    job_at(w, id)->generation++;
    pool_give(&w->jobs, id);
}

/* Calls. */

static struct becalm_moment moment(struct world *w)
{
    return (struct becalm_moment){.now = w->now, .random = becalm_rand_next(&w->policy_state)};
}

static void op_step(struct world *w, uint32_t id, struct becalm_event *event);
static void job_child_done(struct world *w, uint32_t id, bool good, enum becalm_mark_kind mark);
static void job_answer(struct world *w, uint32_t id, enum becalm_outcome_kind kind, enum becalm_mark_kind mark);

static void queue_serve(struct world *w, struct hop *hop, uint32_t caller)
{
    struct becalm_moment at = moment(w);
    struct becalm_ticket *ticket;
    while ((ticket = becalm_queue_next(&hop->queue[caller], &hop->policy.gate, &hop->policy.limit, &at)) != NULL) {
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        op_step(w, (uint32_t)(uintptr_t)ticket->owner, &event);
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
            w->result->latency_sum_us += (w->now - op->root_at) / BECALM_US;
            w->result->latency_count++;
        }
    }
    op_give(w, id);
    if (job != NOTHING) {
        job_child_done(w, job, good, action->mark);
    }
}

static void op_send(struct world *w, uint32_t id, const struct becalm_action *action)
{
    struct op *op = op_at(w, id);
    struct hop *hop = &w->hop[op->hop];
    struct service *service = &w->service[hop->to];
    struct world_service *counts = &w->result->service[hop->to];
    uint32_t job_id = pool_take(w, &w->jobs);
    if (job_id == NOTHING) {
        return;
    }
    struct job *job = job_at(w, job_id);
    uint32_t generation = job->generation;
    *job = (struct job){
        .generation = generation,
        .op = id,
        .slot = action->slot,
        .attempt = action->attempt,
        .service = hop->to,
        .host = action->host == BECALM_NO_HOST ? 0 : action->host,
        .root_at = op->root_at,
        .deadline_at = action->timeout_at,
        .through_gate = hop->is_gate,
    };
    op->flight[action->slot] = job_id;
    counts->first += action->attempt == 0 && !hop->is_gate;
    counts->retries += action->attempt > 0;
    if (!hop->is_gate && (uint64_t)op->caller * 1000000 < (uint64_t)service->cut_ppm * hop->callers) {
        job_answer(w, job_id, BECALM_OUTCOME_REFUSED, BECALM_MARK_NONE);
        return;
    }
    plan_event(
        w, (struct event){.at = w->now + w->plan->link, .kind = JOB_ARRIVES, .id = job_id, .generation = generation});
}

static void op_step(struct world *w, uint32_t id, struct becalm_event *event)
{
    struct op *op = op_at(w, id);
    struct hop *hop = &w->hop[op->hop];
    uint32_t caller = op->caller;
    struct becalm_action action;
    event->at = moment(w);
    becalm_call_step(&op->call, event, &action);
    for (uint32_t slot = 0; action.cancel >> slot != 0; slot++) {
        if ((action.cancel >> slot & 1) != 0) {
            job_at(w, op->flight[slot])->op = NOTHING;
        }
    }
    if ((action.flags & BECALM_DO_SEND) != 0) {
        op_send(w, id, &action);
    }
    if ((action.flags & BECALM_DO_FINISH) != 0) {
        op_end(w, id, &action);
    } else if (action.wake_at != op->wake_at) {
        op->wake_at = action.wake_at;
        plan_event(w, (struct event){.at = action.wake_at, .kind = CALL_WAKES, .id = id, .generation = op->generation});
    }
    if ((action.flags & BECALM_DO_SERVE) != 0 && hop->queue != NULL) {
        queue_serve(w, hop, caller);
    }
}

struct op_origin {
    uint32_t hop;
    uint32_t caller;
    uint32_t client;
    uint32_t job; /* NOTHING: a client's call */
};

static void op_begin(struct world *w, const struct op_origin *origin)
{
    uint32_t id = pool_take(w, &w->ops);
    if (id == NOTHING) {
        return;
    }
    struct op *op = op_at(w, id);
    struct hop *hop = &w->hop[origin->hop];
    const struct job *parent = origin->job == NOTHING ? NULL : job_at(w, origin->job);
    op->hop = origin->hop;
    op->caller = origin->caller;
    op->client = origin->client;
    op->job = origin->job;
    op->root_at = parent == NULL ? w->now : parent->root_at;
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
    op_step(w, id, &event);
}

/* Jobs at a service. */

static void job_answer(struct world *w, uint32_t id, enum becalm_outcome_kind kind, enum becalm_mark_kind mark)
{
    struct job *job = job_at(w, id);
    if (w->options->marks_always && mark == BECALM_MARK_SPENT) {
        mark = BECALM_MARK_OVERLOADED;
    }
    job->outcome = (struct becalm_outcome){
        .kind = kind,
        .mark = w->options->carries_marks ? mark : BECALM_MARK_NONE,
        .status = kind == BECALM_OUTCOME_OK        ? 200
                  : kind == BECALM_OUTCOME_REFUSED ? 0
                                                   : 503,
    };
    plan_event(
        w, (struct event){.at = w->now + w->plan->link, .kind = JOB_ANSWERED, .id = id, .generation = job->generation});
}

static void ring_push(struct world *w, struct ring *ring, uint32_t job)
{
    if (ring->count == ring->size) {
        uint32_t larger = ring->size == 0 ? 64 : ring->size * 2;
        uint32_t *moved = malloc(larger * sizeof *moved);
        if (moved == NULL) {
            w->no_memory = true;
            return;
        }
        for (uint32_t i = 0; i < ring->count; i++) {
            moved[i] = ring->job[(ring->first + i) & (ring->size - 1)];
        }
        free(ring->job);
        *ring = (struct ring){.job = moved, .size = larger, .count = ring->count};
    }
    ring->job[(ring->first + ring->count++) & (ring->size - 1)] = job;
}

static uint32_t ring_pop(struct ring *ring)
{
    uint32_t job = ring->job[ring->first];
    ring->first = (ring->first + 1) & (ring->size - 1);
    ring->count--;
    return job;
}

/* Three tenths of ten workers are three; of one worker, one that takes 3.33 times as long (job_time). */
static uint32_t host_workers(const struct service *service)
{
    uint32_t workers = service->plan->workers;
    return workers == 0 ? UINT32_MAX : (uint32_t)(((uint64_t)workers * service->capacity_ppm + 999999) / 1000000);
}

static becalm_ns job_time(struct world *w, const struct service *service)
{
    becalm_ns time = dist_draw(&w->tables, &service->plan->time, &w->service_state);
    uint64_t left = (uint64_t)service->plan->workers * service->capacity_ppm; /* millionths of a worker */
    uint64_t slots = left == 0 ? 0 : (uint64_t)host_workers(service) * 1000000;
    if (slots > left && time < TIME_MAX) {
        uint64_t slower = slots * 1000 / left; /* of an integer, so the products fit */
        time = time / 1000 * slower + time % 1000 * slower / 1000;
    }
    return becalm_ns_min(time, TIME_MAX) + service->latency;
}

static void job_start(struct world *w, struct service *service, uint32_t id)
{
    struct job *job = job_at(w, id);
    becalm_ns time = job_time(w, service);
    bool bad = job->host < service->bad_hosts;
    if (service->hang_ppm > 0 && (job->attempt == 0 || !service->plan->hang_first) &&
        (service->bad_hosts == 0 || bad) &&
        becalm_rand_chance(becalm_rand_next(&w->service_state), service->hang_ppm)) {
        time += service->plan->hang;
    }
    service->host[job->host].busy++;
    plan_event(w, (struct event){.at = w->now + time, .kind = JOB_SERVED, .id = id, .generation = job->generation});
}

/* Free workers take the next requests. */
static void host_work(struct world *w, struct service *service, struct host *host)
{
    while (host->queue.count > 0 && host->busy < host_workers(service)) {
        uint32_t id = ring_pop(&host->queue);
        if (service->plan->expiry && job_at(w, id)->op == NOTHING) {
            job_give(w, id);
        } else {
            job_start(w, service, id);
        }
    }
}

static void job_arrives(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct service *service = &w->service[job->service];
    struct world_service *counts = &w->result->service[job->service];
    if (service->gate != NOTHING &&
        !job->through_gate) { /* our gateway stands in front: its own call goes on from here */
        op_begin(w, &(struct op_origin){.hop = service->gate, .job = id, .client = NOTHING});
        return;
    }
    if (w->now < w->plan->length) {
        counts->arrivals[second_of(w, w->now)]++;
    }
    counts->arrivals_fault += in_fault(w, job->root_at);
    struct host *host = &service->host[job->host];
    if (service->dead) {
        job_answer(w, id, BECALM_OUTCOME_BROKEN, BECALM_MARK_NONE);
    } else if (host->busy < host_workers(service)) {
        job_start(w, service, id);
    } else if (host->queue.count < service->plan->queue_max) {
        ring_push(w, &host->queue, id);
    } else {
        job_answer(w, id, BECALM_OUTCOME_REJECTED, BECALM_MARK_NONE);
    }
}

static void job_served(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct service *service = &w->service[job->service];
    struct host *host = &service->host[job->host];
    host->busy--;
    host_work(w, service, host);
    bool bad = job->host < service->bad_hosts && service->hang_ppm == 0;
    if (bad ||
        (service->error_ppm > 0 && becalm_rand_chance(becalm_rand_next(&w->service_state), service->error_ppm))) {
        job_answer(w, id, BECALM_OUTCOME_BROKEN, BECALM_MARK_NONE);
        return;
    }
    if (service->hop_count == 0) {
        job_answer(w, id, BECALM_OUTCOME_OK, BECALM_MARK_NONE);
        return;
    }
    job->pending = service->hop_count * service->plan->fan_out;
    for (uint32_t i = 0; i < job->pending; i++) {
        uint32_t hop = service->first_hop + i % service->hop_count;
        uint32_t caller = (uint32_t)becalm_rand_below(becalm_rand_next(&w->service_state), w->hop[hop].callers);
        op_begin(w, &(struct op_origin){.hop = hop, .caller = caller, .job = id, .client = NOTHING});
    }
}

/* A call that this job made has ended. */
static void job_child_done(struct world *w, uint32_t id, bool good, enum becalm_mark_kind mark)
{
    struct job *job = job_at(w, id);
    const struct service *service = &w->service[job->service];
    job->failed |= !good;
    job->mark = good ? job->mark : mark;
    if (service->gate != NOTHING && !job->through_gate) {
        job_answer(w, id, good ? BECALM_OUTCOME_OK : BECALM_OUTCOME_REJECTED, mark);
    } else if (--job->pending == 0) {
        job_answer(w, id, job->failed ? BECALM_OUTCOME_REJECTED : BECALM_OUTCOME_OK, job->mark);
    }
}

static void job_answered(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    if (job->op != NOTHING) {
        struct becalm_event event = {.kind = BECALM_EVENT_DONE, .slot = job->slot, .outcome = job->outcome};
        uint32_t op = job->op;
        job_give(w, id);
        op_step(w, op, &event);
    } else {
        job_give(w, id);
    }
}

/* Clients and faults. */

static void client_calls(struct world *w, uint32_t id)
{
    const struct scenario_client *plan = &w->plan->clients[id];
    struct world_client *counts = &w->result->client[id];
    struct dist gap = {.kind = DIST_EXPONENTIAL, .mean = 1000 * BECALM_S / plan->rate_milli};
    plan_event(w, (struct event){
                      .at = w->now + dist_draw(&w->tables, &gap, &w->arrival_state), .kind = CLIENT_CALLS, .id = id});
    counts->begun[second_of(w, w->now)]++;
    counts->calls++;
    counts->calls_fault += in_fault(w, w->now);
    op_begin(w, &(struct op_origin){
                    .hop = id, /* the hops of clients come first */
                    .caller = (uint32_t)becalm_rand_below(becalm_rand_next(&w->arrival_state), plan->callers),
                    .client = id,
                    .job = NOTHING,
                });
}

static uint32_t service_find(const struct scenario *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->service_count; i++) {
        if (strcmp(plan->services[i].name, name) == 0) {
            return i;
        }
    }
    return NOTHING;
}

static void fault_turns(struct world *w, uint32_t id)
{
    const struct scenario_fault *fault = &w->plan->faults[id / 2];
    bool on = id % 2 == 0;
    struct service *service = &w->service[service_find(w->plan, fault->service)];
    switch (fault->kind) {
    case FAULT_CAPACITY:
        service->capacity_ppm = on ? fault->ppm : 1000000;
        break;
    case FAULT_ERRORS:
        service->error_ppm = on ? fault->ppm : service->plan->error_ppm;
        break;
    case FAULT_DEAD:
        service->dead = on;
        break;
    case FAULT_LATENCY:
        service->latency = on ? fault->latency : 0;
        break;
    case FAULT_HANG:
        service->hang_ppm = on ? fault->ppm : service->plan->hang_ppm;
        break;
    case FAULT_BAD_HOSTS:
        service->bad_hosts = on ? fault->count : 0;
        break;
    case FAULT_CUT_CALLERS:
        service->cut_ppm = on ? fault->ppm : 0;
        break;
    }
    for (uint32_t i = 0; i < service->plan->hosts; i++) {
        host_work(w, service, &service->host[i]);
    }
}

static void happen(struct world *w, const struct event *event)
{
    switch (event->kind) {
    case CLIENT_CALLS:
        client_calls(w, event->id);
        break;
    case JOB_ARRIVES:
        job_arrives(w, event->id);
        break;
    case JOB_SERVED:
        job_served(w, event->id);
        break;
    case JOB_ANSWERED:
        job_answered(w, event->id);
        break;
    case CALL_WAKES:
        if (op_at(w, event->id)->generation == event->generation && op_at(w, event->id)->wake_at == event->at) {
            struct becalm_event timer = {.kind = BECALM_EVENT_TIMER};
            op_step(w, event->id, &timer);
        }
        break;
    case FAULT_TURNS:
        fault_turns(w, event->id);
        break;
    }
}

/* Making and unmaking a world. */

static bool hop_make(struct world *w, uint32_t to, uint32_t callers, const struct becalm_policy *policy, bool gate)
{
    struct hop *hop = &w->hop[w->hop_count++];
    uint32_t hosts = w->plan->services[to].hosts > 1 ? w->plan->services[to].hosts : 0;
    size_t bytes = becalm_target_bytes(policy, hosts, 1);
    hop->to = to;
    hop->callers = callers;
    hop->policy = *policy;
    hop->is_gate = gate;
    hop->target = calloc(callers, sizeof *hop->target);
    hop->memory = aligned_alloc(64, bytes * callers);
    if (hop->target == NULL || hop->memory == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < callers; i++) {
        int rc = becalm_target_init(&hop->target[i], (unsigned char *)hop->memory + i * bytes, &hop->policy, hosts, 1);
        BECALM_ASSERT(rc == 0);
    }
    if (gate) {
        hop->queue = calloc(callers, sizeof *hop->queue);
        if (hop->queue == NULL) {
            return false;
        }
        becalm_queue_init(&hop->queue[0], hop->target[0].gate, hop->target[0].limit);
    }
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

static bool hops_make(struct world *w)
{
    const struct scenario *plan = w->plan;
    size_t most = plan->client_count + plan->service_count;
    for (uint32_t i = 0; i < plan->service_count; i++) {
        for (uint32_t c = 0; plan->services[i].calls != NULL && plan->services[i].calls[c] != NULL; c++) {
            most++;
        }
    }
    w->hop = calloc(most, sizeof *w->hop);
    if (w->hop == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < plan->client_count; i++) {
        uint32_t to = service_find(plan, plan->clients[i].to);
        struct becalm_policy once = without_retries(policy_to(w, to));
        const struct becalm_policy *policy = plan->clients[i].retries ? policy_to(w, to) : &once;
        if (!hop_make(w, to, plan->clients[i].callers, policy, false)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        struct service *service = &w->service[i];
        service->first_hop = w->hop_count;
        for (uint32_t c = 0; plan->services[i].calls != NULL && plan->services[i].calls[c] != NULL; c++) {
            uint32_t to = service_find(plan, plan->services[i].calls[c]);
            if (!hop_make(w, to, plan->services[i].instances, policy_to(w, to), false)) {
                return false;
            }
            service->hop_count++;
        }
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        w->service[i].gate = NOTHING;
        if (plan->services[i].gate) {
            w->service[i].gate = w->hop_count;
            if (!hop_make(w, i, 1, w->options->gate_policy, true)) {
                return false;
            }
        }
    }
    return true;
}

static bool services_make(struct world *w)
{
    w->service = calloc(w->plan->service_count, sizeof *w->service);
    for (uint32_t i = 0; w->service != NULL && i < w->plan->service_count; i++) {
        struct service *service = &w->service[i];
        service->plan = &w->plan->services[i];
        service->capacity_ppm = 1000000;
        service->error_ppm = service->plan->error_ppm;
        service->hang_ppm = service->plan->hang_ppm;
        service->host = calloc(service->plan->hosts, sizeof *service->host);
        if (service->host == NULL) {
            return false;
        }
    }
    return w->service != NULL;
}

static bool result_make(struct world *w)
{
    struct world_result *result = w->result;
    memset(result, 0, sizeof *result);
    result->seconds = (uint32_t)(w->plan->length / BECALM_S);
    result->service = calloc(w->plan->service_count, sizeof *result->service);
    result->client = calloc(w->plan->client_count, sizeof *result->client);
    if (result->service == NULL || result->client == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < w->plan->service_count; i++) {
        result->service[i].arrivals = calloc(result->seconds, sizeof(uint64_t));
        if (result->service[i].arrivals == NULL) {
            return false;
        }
    }
    for (uint32_t i = 0; i < w->plan->client_count; i++) {
        result->client[i].begun = calloc(result->seconds, sizeof(uint64_t));
        result->client[i].good = calloc(result->seconds, sizeof(uint64_t));
        if (result->client[i].begun == NULL || result->client[i].good == NULL) {
            return false;
        }
    }
    return true;
}

void world_result_free(const struct scenario *plan, struct world_result *result)
{
    for (uint32_t i = 0; result->service != NULL && i < plan->service_count; i++) {
        free(result->service[i].arrivals);
    }
    for (uint32_t i = 0; result->client != NULL && i < plan->client_count; i++) {
        free(result->client[i].begun);
        free(result->client[i].good);
    }
    free(result->service);
    free(result->client);
    result->service = NULL;
    result->client = NULL;
}

static void world_free(struct world *w)
{
    for (uint32_t i = 0; i < w->hop_count; i++) {
        free(w->hop[i].target);
        free(w->hop[i].queue);
        free(w->hop[i].memory);
    }
    for (uint32_t i = 0; w->service != NULL && i < w->plan->service_count; i++) {
        for (uint32_t h = 0; w->service[i].host != NULL && h < w->service[i].plan->hosts; h++) {
            free(w->service[i].host[h].queue.job);
        }
        free(w->service[i].host);
    }
    free(w->service);
    free(w->hop);
    free(w->heap);
    pool_free(&w->ops);
    pool_free(&w->jobs);
}

static void first_events(struct world *w)
{
    for (uint32_t i = 0; i < w->plan->client_count; i++) {
        plan_event(w, (struct event){.at = 0, .kind = CLIENT_CALLS, .id = i});
    }
    w->fault_from = 0; /* without a fault, all calls count */
    w->fault_to = BECALM_NEVER;
    for (uint32_t i = 0; i < w->plan->fault_count; i++) {
        const struct scenario_fault *fault = &w->plan->faults[i];
        plan_event(w, (struct event){.at = fault->at, .kind = FAULT_TURNS, .id = 2 * i});
        plan_event(
            w, (struct event){.at = becalm_ns_after(fault->at, fault->length), .kind = FAULT_TURNS, .id = 2 * i + 1});
        if (i == 0) {
            w->fault_from = becalm_ns_after(fault->at, BECALM_S);
            w->fault_to = becalm_ns_after(fault->at, fault->length);
        }
    }
}

int world_run(const struct scenario *plan, const struct world_options *options, struct world_result *result)
{
    struct world w = {.plan = plan, .options = options, .result = result};
    w.ops.item = sizeof(struct op);
    w.jobs.item = sizeof(struct job);
    w.arrival_state = options->seed * 3 + 1;
    w.service_state = options->seed * 3 + 2;
    w.policy_state = options->seed * 3 + 3;
    w.end_at = becalm_ns_after(plan->length, WORLD_DRAIN);
    dist_init(&w.tables);
    bool made = result_make(&w) && services_make(&w) && hops_make(&w);
    if (made) {
        first_events(&w);
        while (!w.no_memory && w.heap_count > 0) {
            struct event event = next_event(&w);
            w.now = event.at;
            if (w.now < plan->length || (event.kind != CLIENT_CALLS && event.kind != FAULT_TURNS)) {
                result->events++;
                happen(&w, &event);
            }
        }
    }
    int rc = made && !w.no_memory ? 0 : BECALM_ENOMEM;
    if (rc != 0) {
        world_result_free(plan, result);
    }
    world_free(&w);
    return rc;
}
