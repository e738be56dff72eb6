/* SPDX-License-Identifier: MIT */
/* The connections of callers, as src/proxy/upstream.c keeps them: used again, at most so many to a host, at most
 * CONNECTING_MAX being made at once, and one line for whoever finds none. A library has neither bound nor line, as
 * libcurl has none. Nothing of this is there unless the scenario has a pool. */
#include "world_internal.h"

#include <stdlib.h>

#define CONNECTING_MAX  16u
#define CONNECT_TIMEOUT BECALM_S /* what the policy's connectTimeout is unless somebody writes it */

/* The connections of one caller to one host. */
struct pooled {
    uint32_t count; /* all of them */
    uint32_t idle;
    uint32_t connecting;
    uint32_t first, last; /* attempts in line; NOTHING: none */
    bool serves;          /* the line is looked at later in this instant */
};

static uint32_t hosts_of(const struct hop *hop)
{
    return hop->hosts > 0 ? hop->hosts : 1;
}

static uint32_t number_of(const struct world *w, const struct job *job)
{
    return job->caller * hosts_of(&w->hop[job->hop]) + job->host;
}

static struct pooled *pooled_of(const struct world *w, const struct job *job)
{
    return &w->hop[job->hop].pooled[number_of(w, job)];
}

bool pooled_make(const struct world *w, struct hop *hop)
{
    size_t count = (size_t)hop->callers * hosts_of(hop);
    if (w->plan->pool_max == 0) {
        return true;
    }
    hop->pooled = calloc(count, sizeof *hop->pooled);
    for (size_t i = 0; hop->pooled != NULL && i < count; i++) {
        hop->pooled[i].first = hop->pooled[i].last = NOTHING;
    }
    return hop->pooled != NULL;
}

static void plan_job(struct world *w, enum event_kind kind, becalm_ns after, uint32_t id)
{
    clock_plan(&w->clock, (struct event){.at = becalm_ns_after(w->clock.now, after),
                                         .kind = kind,
                                         .id = id,
                                         .generation = job_at(w, id)->generation});
}

/* ---- the line ---- */

static void serve_later(struct world *w, const struct job *job)
{
    struct pooled *pooled = pooled_of(w, job);
    if (pooled->first != NOTHING && !pooled->serves) {
        pooled->serves = true;
        clock_plan(
            &w->clock,
            (struct event){.at = w->clock.now, .kind = POOLED_SERVES, .id = job->hop, .generation = number_of(w, job)});
    }
}

static void line_up(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct pooled *pooled = pooled_of(w, job);
    job->stage = JOB_IN_LINE;
    job->next = NOTHING;
    if (pooled->first == NOTHING) {
        pooled->first = id;
    } else {
        job_at(w, pooled->last)->next = id;
    }
    pooled->last = id;
    w->result->service[job->service].waited++;
    becalm_call_unsent(&op_at(w, job->op)->call, job->slot, job->timeout_at);
}

/* Who has given up leaves the line when its turn comes. */
static uint32_t line_take(const struct world *w, struct pooled *pooled)
{
    uint32_t id = pooled->first;
    pooled->first = job_at(w, id)->next;
    return id;
}

/* ---- connections ---- */

static bool is_bounded(const struct world *w, const struct job *job)
{
    return w->hop[job->hop].is_proxy;
}

static bool can_connect(const struct world *w, const struct job *job)
{
    const struct pooled *pooled = pooled_of(w, job);
    bool room = pooled->count < w->plan->pool_max || (job->fresh && pooled->idle > 0);
    return !is_bounded(w, job) || (room && pooled->connecting < CONNECTING_MAX);
}

static void count_more(struct world *w, const struct job *job, struct pooled *pooled)
{
    struct world_service *counts = &w->result->service[job->service];
    struct service *service = &w->service[job->service];
    pooled->count++;
    service->connected++;
    counts->connected_most = service->connected > counts->connected_most ? service->connected : counts->connected_most;
}

static void count_less(struct world *w, const struct job *job, uint32_t by)
{
    pooled_of(w, job)->count -= by;
    w->service[job->service].connected -= by;
}

static void dial(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct pooled *pooled = pooled_of(w, job);
    if (is_bounded(w, job) && pooled->count >= w->plan->pool_max) { /* a used one makes room for a fresh one */
        pooled->idle--;
        count_less(w, job, 1);
    }
    count_more(w, job, pooled);
    pooled->connecting++;
    job->stage = JOB_CONNECTS;
    if (job_is_swallowed(w, job)) {
        plan_job(w, JOB_NOT_CONNECTED, CONNECT_TIMEOUT, id);
    } else {
        plan_job(w, JOB_DIALS, link_takes(w, &w->hop[job->hop].link), id);
    }
}

/* Sends it on an idle connection, or makes one. */
static void get(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct pooled *pooled = pooled_of(w, job);
    if (pooled->idle > 0 && !job->fresh) {
        pooled->idle--;
        job->connected = true;
        job_travel(w, id);
    } else {
        dial(w, id);
    }
}

void pooled_get(struct world *w, uint32_t id)
{
    const struct job *job = job_at(w, id);
    const struct pooled *pooled = pooled_of(w, job);
    bool idle = pooled->idle > 0 && !job->fresh;
    if (pooled->first != NOTHING || (!idle && !can_connect(w, job))) {
        line_up(w, id);
    } else {
        get(w, id);
    }
}

/* The connection is idle again, or gone. */
void pooled_put(struct world *w, struct job *job, bool clean)
{
    if (!job->connected) {
        return;
    }
    job->connected = false;
    if (clean) {
        pooled_of(w, job)->idle++;
    } else {
        count_less(w, job, 1);
    }
    serve_later(w, job);
}

void pooled_close(struct world *w, uint32_t service, uint32_t host)
{
    for (uint32_t h = 0; h < w->hop_count; h++) {
        struct hop *hop = &w->hop[h];
        bool reaches = hop->to == service && (w->service[service].gate == NOTHING || hop->is_gate);
        for (uint32_t caller = 0; reaches && hop->pooled != NULL && caller < hop->callers; caller++) {
            struct pooled *pooled = &hop->pooled[caller * hosts_of(hop) + host];
            pooled->count -= pooled->idle;
            w->service[service].connected -= pooled->idle;
            pooled->idle = 0;
        }
    }
}

/* ---- what happens ---- */

void job_dials(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    becalm_ns back = link_takes(w, &w->hop[job->hop].link);
    switch (job_listener(w, job)) {
    case LISTENER_ACCEPTS:
        plan_job(w, JOB_CONNECTED, back, id);
        return;
    case LISTENER_REFUSES:
        arrival_count(w, job, LISTENER_REFUSES);
        job->outcome.no_listener = true;
        plan_job(w, JOB_NOT_CONNECTED, back, id);
        return;
    case LISTENER_SWALLOWS:
        plan_job(w, JOB_NOT_CONNECTED, CONNECT_TIMEOUT, id);
        return;
    }
    BECALM_UNREACHABLE();
}

void job_connected(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    pooled_of(w, job)->connecting--;
    job->connected = true;
    if (job->op == NOTHING) { /* whoever wanted it has gone: it is a fresh one for the next */
        pooled_put(w, job, true);
        job_give(w, id);
        return;
    }
    uint32_t op = job->op;
    uint32_t slot = job->slot;
    serve_later(w, job); /* one fewer is connecting */
    job_travel(w, id);
    if (op_wants_accepted(w, op)) {
        op_accepted(w, op, slot);
    }
}

void job_not_connected(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct becalm_outcome outcome = {.kind = BECALM_OUTCOME_REFUSED, .no_listener = job->outcome.no_listener};
    uint32_t op = job->op;
    uint32_t slot = job->slot;
    uint32_t attempt = job->attempt;
    pooled_of(w, job)->connecting--;
    count_less(w, job, 1);
    serve_later(w, job);
    job_give(w, id);
    if (op != NOTHING) {
        op_done(w, op, slot, attempt, &outcome);
    }
}

/* The host refuses, as those before it in line were told. */
static void told_with_the_others(struct world *w, uint32_t id)
{
    struct job *job = job_at(w, id);
    struct becalm_outcome outcome = {.kind = BECALM_OUTCOME_REFUSED, .no_listener = true};
    uint32_t op = job->op;
    uint32_t slot = job->slot;
    uint32_t attempt = job->attempt;
    job_give(w, id);
    op_done(w, op, slot, attempt, &outcome);
}

void pooled_serves(struct world *w, uint32_t hop, uint32_t number)
{
    struct pooled *pooled = &w->hop[hop].pooled[number];
    pooled->serves = false;
    while (pooled->first != NOTHING) {
        struct job *job = job_at(w, pooled->first);
        bool idle = pooled->idle > 0;
        if (job->op == NOTHING) {
            job_give(w, line_take(w, pooled));
            continue;
        }
        if (!(idle && !job->fresh) && !can_connect(w, job)) {
            return;
        }
        uint32_t id = line_take(w, pooled);
        job->deadline_at = becalm_call_goes(&op_at(w, job->op)->call, job->slot, w->clock.now);
        if (!idle && !job->fresh && op_has_no_host(w, job->op)) {
            told_with_the_others(w, id);
        } else {
            get(w, id);
        }
    }
}
