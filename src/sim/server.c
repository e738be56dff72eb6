/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>
#include <string.h>

#define TIME_MAX (3600 * BECALM_S) /* of one service time: a heavy tail has no end */

static void job_give(struct world *w, uint32_t id)
{
    job_at(w, id)->generation++;
    pool_give(&w->jobs, id);
}

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
    clock_plan(&w->clock,
               (struct event){
                   .at = w->clock.now + w->plan->link, .kind = JOB_ANSWERED, .id = id, .generation = job->generation});
}

void job_send(struct world *w, uint32_t op_id, const struct becalm_action *action)
{
    struct op *op = op_at(w, op_id);
    const struct hop *hop = &w->hop[op->hop];
    const struct service *service = &w->service[hop->to];
    struct world_service *counts = &w->result->service[hop->to];
    uint32_t id = pool_take(&w->jobs);
    if (id == NOTHING) {
        w->no_memory = true;
        return;
    }
    struct job *job = job_at(w, id);
    uint32_t generation = job->generation;
    *job = (struct job){
        .generation = generation,
        .op = op_id,
        .slot = action->slot,
        .attempt = action->attempt,
        .service = hop->to,
        .host = action->host == BECALM_NO_HOST ? 0 : action->host,
        .root = op->root,
        .root_at = op->root_at,
        .deadline_at = action->timeout_at,
        .through_gate = hop->is_gate,
    };
    op->flight[action->slot] = id;
    counts->first += action->attempt == 0 && !hop->is_gate;
    counts->retries += action->attempt > 0;
    if (!hop->is_gate && (uint64_t)op->caller * 1000000 < (uint64_t)service->cut_ppm * hop->callers) {
        job_answer(w, id, BECALM_OUTCOME_REFUSED, BECALM_MARK_NONE);
        return;
    }
    clock_plan(
        &w->clock,
        (struct event){.at = w->clock.now + w->plan->link, .kind = JOB_ARRIVES, .id = id, .generation = generation});
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
    clock_plan(&w->clock,
               (struct event){.at = w->clock.now + time, .kind = JOB_SERVED, .id = id, .generation = job->generation});
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

void service_work(struct world *w, struct service *service)
{
    for (uint32_t i = 0; i < service->plan->hosts; i++) {
        host_work(w, service, &service->host[i]);
    }
}

void job_arrives(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct service *service = &w->service[job->service];
    struct world_service *counts = &w->result->service[job->service];
    if (service->gate != NOTHING &&
        !job->through_gate) { /* our gateway stands in front: its own call goes on from here */
        op_begin(w, &(struct op_origin){.hop = service->gate, .job = id, .client = NOTHING});
        return;
    }
    if (w->clock.now < w->plan->length) {
        counts->arrivals[second_of(w, w->clock.now)]++;
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

void job_served(struct world *w, uint32_t id)
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

void job_child_done(struct world *w, uint32_t id, bool good, enum becalm_mark_kind mark)
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

void job_answered(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct becalm_outcome outcome = job->outcome;
    uint32_t op = job->op;
    uint32_t slot = job->slot;
    uint32_t attempt = job->attempt;
    struct world_service *counts = &w->result->service[job->service];
    if (w->clock.now < w->plan->length && !(w->service[job->service].gate != NOTHING && job->through_gate)) {
        bool good = outcome.kind == BECALM_OUTCOME_OK;
        (good ? counts->good : counts->failed)[second_of(w, w->clock.now)]++;
    }
    job_give(w, id);
    if (op != NOTHING) {
        op_done(w, op, slot, attempt, &outcome);
    }
}

/* Making and unmaking services. */

uint32_t service_find(const struct scenario *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->service_count; i++) {
        if (strcmp(plan->services[i].name, name) == 0) {
            return i;
        }
    }
    return NOTHING;
}

bool services_make(struct world *w)
{
    w->service = calloc(w->plan->service_count, sizeof *w->service);
    for (uint32_t i = 0; w->service != NULL && i < w->plan->service_count; i++) {
        struct service *service = &w->service[i];
        service->plan = &w->plan->services[i];
        service->capacity_ppm = 1000000;
        service->error_ppm = service->plan->error_ppm;
        service->hang_ppm = service->plan->hang_ppm;
        service->gate = NOTHING;
        service->host = calloc(service->plan->hosts, sizeof *service->host);
        if (service->host == NULL) {
            return false;
        }
    }
    return w->service != NULL;
}

void services_free(struct world *w)
{
    for (uint32_t i = 0; w->service != NULL && i < w->plan->service_count; i++) {
        for (uint32_t h = 0; w->service[i].host != NULL && h < w->plan->services[i].hosts; h++) {
            free(w->service[i].host[h].queue.job);
        }
        free(w->service[i].host);
    }
    free(w->service);
}
