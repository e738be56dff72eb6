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

static uint32_t number_of(const struct world *w, const struct attempt *attempt)
{
    return attempt->caller * hosts_of(&w->hop[attempt->hop]) + attempt->host;
}

static struct pooled *pooled_of(const struct world *w, const struct attempt *attempt)
{
    return &w->hop[attempt->hop].pooled[number_of(w, attempt)];
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

static void plan_attempt(struct world *w, enum event_kind kind, becalm_ns after, uint32_t id)
{
    clock_plan(&w->clock, (struct event){.at = becalm_ns_after(w->clock.now, after),
                                         .kind = kind,
                                         .id = id,
                                         .generation = attempt_at(w, id)->generation});
}

/* ---- the line ---- */

static void serve_later(struct world *w, const struct attempt *attempt)
{
    struct pooled *pooled = pooled_of(w, attempt);
    if (pooled->first != NOTHING && !pooled->serves) {
        pooled->serves = true;
        clock_plan(&w->clock, (struct event){.at = w->clock.now,
                                             .kind = POOLED_SERVES,
                                             .id = attempt->hop,
                                             .generation = number_of(w, attempt)});
    }
}

static void line_up(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct pooled *pooled = pooled_of(w, attempt);
    attempt->stage = ATTEMPT_IN_LINE;
    attempt->next = NOTHING;
    if (pooled->first == NOTHING) {
        pooled->first = id;
    } else {
        attempt_at(w, pooled->last)->next = id;
    }
    pooled->last = id;
    w->result->service[attempt->service].waited++;
    becalm_call_unsent(&call_at(w, attempt->call)->engine, attempt->slot, attempt->timeout_at);
}

/* Who has given up leaves the line when its turn comes. */
static uint32_t line_take(const struct world *w, struct pooled *pooled)
{
    uint32_t id = pooled->first;
    pooled->first = attempt_at(w, id)->next;
    return id;
}

/* ---- connections ---- */

static bool is_bounded(const struct world *w, const struct attempt *attempt)
{
    return w->hop[attempt->hop].is_proxy;
}

static bool can_connect(const struct world *w, const struct attempt *attempt)
{
    const struct pooled *pooled = pooled_of(w, attempt);
    bool room = pooled->count < w->plan->pool_max || (attempt->fresh && pooled->idle > 0);
    return !is_bounded(w, attempt) || (room && pooled->connecting < CONNECTING_MAX);
}

static void count_more(struct world *w, const struct attempt *attempt, struct pooled *pooled)
{
    struct world_service *counts = &w->result->service[attempt->service];
    struct service *service = &w->service[attempt->service];
    pooled->count++;
    service->connected++;
    counts->connected_most = service->connected > counts->connected_most ? service->connected : counts->connected_most;
}

static void count_less(struct world *w, const struct attempt *attempt, uint32_t by)
{
    pooled_of(w, attempt)->count -= by;
    w->service[attempt->service].connected -= by;
}

static void dial(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct pooled *pooled = pooled_of(w, attempt);
    if (is_bounded(w, attempt) && pooled->count >= w->plan->pool_max) { /* a used one makes room for a fresh one */
        pooled->idle--;
        count_less(w, attempt, 1);
    }
    count_more(w, attempt, pooled);
    pooled->connecting++;
    attempt->stage = ATTEMPT_CONNECTS;
    if (attempt_is_swallowed(w, attempt)) {
        plan_attempt(w, ATTEMPT_NOT_CONNECTED, CONNECT_TIMEOUT, id);
    } else {
        plan_attempt(w, ATTEMPT_DIALS, link_takes(w, &w->hop[attempt->hop].link), id);
    }
}

/* Sends it on an idle connection, or makes one. */
static void get(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct pooled *pooled = pooled_of(w, attempt);
    if (pooled->idle > 0 && !attempt->fresh) {
        pooled->idle--;
        attempt->connected = true;
        attempt_travel(w, id);
    } else {
        dial(w, id);
    }
}

void pooled_get(struct world *w, uint32_t id)
{
    const struct attempt *attempt = attempt_at(w, id);
    const struct pooled *pooled = pooled_of(w, attempt);
    bool idle = pooled->idle > 0 && !attempt->fresh;
    if (pooled->first != NOTHING || (!idle && !can_connect(w, attempt))) {
        line_up(w, id);
    } else {
        get(w, id);
    }
}

/* The connection is idle again, or gone. */
void pooled_put(struct world *w, struct attempt *attempt, bool clean)
{
    if (!attempt->connected) {
        return;
    }
    attempt->connected = false;
    if (clean) {
        pooled_of(w, attempt)->idle++;
    } else {
        count_less(w, attempt, 1);
    }
    serve_later(w, attempt);
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

void attempt_dials(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    becalm_ns back = link_takes(w, &w->hop[attempt->hop].link);
    switch (attempt_listener(w, attempt)) {
    case LISTENER_ACCEPTS:
        plan_attempt(w, ATTEMPT_CONNECTED, back, id);
        return;
    case LISTENER_REFUSES:
        arrival_count(w, attempt, LISTENER_REFUSES);
        attempt->outcome.no_listener = true;
        plan_attempt(w, ATTEMPT_NOT_CONNECTED, back, id);
        return;
    case LISTENER_SWALLOWS:
        plan_attempt(w, ATTEMPT_NOT_CONNECTED, CONNECT_TIMEOUT, id);
        return;
    }
    BECALM_UNREACHABLE();
}

void attempt_is_connected(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    pooled_of(w, attempt)->connecting--;
    attempt->connected = true;
    if (attempt->call == NOTHING) { /* whoever wanted it has gone: it is a fresh one for the next */
        pooled_put(w, attempt, true);
        attempt_give(w, id);
        return;
    }
    uint32_t call = attempt->call;
    uint32_t slot = attempt->slot;
    serve_later(w, attempt); /* one fewer is connecting */
    attempt_travel(w, id);
    if (call_wants_accepted(w, call)) {
        call_accepted(w, call, slot);
    }
}

void attempt_is_not_connected(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct becalm_outcome outcome = {.kind = BECALM_OUTCOME_REFUSED, .no_listener = attempt->outcome.no_listener};
    uint32_t call = attempt->call;
    uint32_t slot = attempt->slot;
    uint32_t number = attempt->number;
    pooled_of(w, attempt)->connecting--;
    count_less(w, attempt, 1);
    serve_later(w, attempt);
    attempt_give(w, id);
    if (call != NOTHING) {
        call_done(w, call, slot, number, &outcome);
    }
}

/* The host refuses, as those before it in line were told. */
static void told_with_the_others(struct world *w, uint32_t id)
{
    struct attempt *attempt = attempt_at(w, id);
    struct becalm_outcome outcome = {.kind = BECALM_OUTCOME_REFUSED, .no_listener = true};
    uint32_t call = attempt->call;
    uint32_t slot = attempt->slot;
    uint32_t number = attempt->number;
    attempt_give(w, id);
    call_done(w, call, slot, number, &outcome);
}

void pooled_serves(struct world *w, uint32_t hop, uint32_t number)
{
    struct pooled *pooled = &w->hop[hop].pooled[number];
    pooled->serves = false;
    while (pooled->first != NOTHING) {
        struct attempt *attempt = attempt_at(w, pooled->first);
        bool idle = pooled->idle > 0;
        if (attempt->call == NOTHING) {
            attempt_give(w, line_take(w, pooled));
            continue;
        }
        if (!(idle && !attempt->fresh) && !can_connect(w, attempt)) {
            return;
        }
        uint32_t id = line_take(w, pooled);
        attempt->deadline_at = becalm_call_goes(&call_at(w, attempt->call)->engine, attempt->slot, w->clock.now);
        if (!idle && !attempt->fresh && call_has_no_host(w, attempt->call)) {
            told_with_the_others(w, id);
        } else {
            get(w, id);
        }
    }
}
