/* SPDX-License-Identifier: MIT */
/* The connections of callers, as src/proxy/host/upstream_pool.c keeps them: used again, at most so many to a host, at
 * most CONNECTING_MAX being made at once, and one line for attempts that find none. A library has neither bound nor
 * line, as libcurl has none. With HTTP/2 attempts share them, up to `streams` each: one until it is full, then the
 * next, of which one is made at a time. Nothing of this is there unless the scenario has a pool. */
#include "world_internal.h"

#include <stdlib.h>

#define CONNECTING_MAX  16u
#define CONNECT_TIMEOUT BECALM_S /* the default of the policy's connectTimeout */

/* A connection that attempts share. */
struct shared {
    uint32_t streams;
    bool gone; /* no new stream gets it; its place is free when the last one has left */
    bool lost; /* and those that it has are over */
};

/* The connections of one caller to one host. */
struct pooled {
    uint32_t count; /* all of them */
    uint32_t idle;  /* of those that are not shared */
    uint32_t connecting;
    struct shared *shared; /* NULL: none */
    uint32_t places;       /* of that */
    uint32_t first, last;  /* attempts in line; NOTHING: none */
    bool serves;           /* the line is looked at later in this instant */
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

void pooled_free(struct hop *hop)
{
    size_t count = hop->pooled == NULL ? 0 : (size_t)hop->callers * hosts_of(hop);
    for (size_t i = 0; i < count; i++) {
        free(hop->pooled[i].shared);
    }
    free(hop->pooled);
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

/* An attempt that was given up leaves the line when its turn comes. */
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

/* The first that takes one more stream; NOTHING: none does. */
static uint32_t roomy(const struct world *w, const struct pooled *pooled)
{
    uint32_t i = 0;
    while (i < pooled->places && (pooled->shared[i].gone || pooled->shared[i].streams >= w->plan->streams)) {
        i++;
    }
    return i < pooled->places ? i : NOTHING;
}

/* Is there one that the attempt can have at once? A shared one is as good as a fresh one. */
static bool has_one(const struct world *w, const struct attempt *attempt)
{
    const struct pooled *pooled = pooled_of(w, attempt);
    return w->plan->shared ? roomy(w, pooled) != NOTHING : pooled->idle > 0 && !attempt->fresh;
}

static bool can_connect(const struct world *w, const struct attempt *attempt)
{
    const struct pooled *pooled = pooled_of(w, attempt);
    if (w->plan->shared) {
        return pooled->connecting == 0 && (!is_bounded(w, attempt) || pooled->count < w->plan->pool_max);
    }
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
    if (!has_one(w, attempt)) {
        dial(w, id);
        return;
    }
    if (w->plan->shared) {
        attempt->stream_of = roomy(w, pooled);
        pooled->shared[attempt->stream_of].streams++;
    } else {
        pooled->idle--;
    }
    attempt->connected = true;
    attempt_travel(w, id);
}

void pooled_get(struct world *w, uint32_t id)
{
    const struct attempt *attempt = attempt_at(w, id);
    if (pooled_of(w, attempt)->first != NOTHING || (!has_one(w, attempt) && !can_connect(w, attempt))) {
        line_up(w, id);
    } else {
        get(w, id);
    }
}

/* ---- connections that are shared ---- */

/* No new stream gets it. */
static void retire(struct world *w, uint32_t service, struct pooled *pooled, struct shared *shared)
{
    if (!shared->gone) {
        shared->gone = true;
        pooled->count--;
        w->service[service].connected--;
    }
}

/* The one that was made for this attempt. */
static void share(struct world *w, struct attempt *attempt)
{
    struct pooled *pooled = pooled_of(w, attempt);
    uint32_t i = 0;
    while (i < pooled->places && !(pooled->shared[i].gone && pooled->shared[i].streams == 0)) {
        i++;
    }
    if (i == pooled->places) {
        struct shared *more = realloc(pooled->shared, (i + 1) * sizeof *more);
        if (more == NULL) {
            w->no_memory = true;
            return;
        }
        pooled->shared = more;
        pooled->places++;
    }
    pooled->shared[i] = (struct shared){.streams = 1};
    attempt->stream_of = i;
}

/* The connection is idle again, or gone. */
void pooled_put(struct world *w, struct attempt *attempt, enum pooled_end end)
{
    if (!attempt->connected) {
        return;
    }
    struct pooled *pooled = pooled_of(w, attempt);
    attempt->connected = false;
    if (w->plan->shared) {
        struct shared *shared = &pooled->shared[attempt->stream_of];
        shared->streams--;
        if (end == POOLED_BROKEN) {
            retire(w, attempt->service, pooled, shared);
        }
    } else if (end == POOLED_CLEAN) {
        pooled->idle++;
    } else {
        count_less(w, attempt, 1);
    }
    serve_later(w, attempt);
}

/* Do connections of this hop end at the service itself? */
static bool reaches(const struct world *w, const struct hop *hop, uint32_t service)
{
    return hop->pooled != NULL && hop->to == service && (w->service[service].gate == NOTHING || hop->is_gate);
}

void pooled_close(struct world *w, uint32_t service, uint32_t host)
{
    for (uint32_t h = 0; h < w->hop_count; h++) {
        struct hop *hop = &w->hop[h];
        for (uint32_t caller = 0; reaches(w, hop, service) && caller < hop->callers; caller++) {
            struct pooled *pooled = &hop->pooled[caller * hosts_of(hop) + host];
            pooled->count -= pooled->idle;
            w->service[service].connected -= pooled->idle;
            pooled->idle = 0;
            for (uint32_t i = 0; i < pooled->places; i++) {
                retire(w, service, pooled, &pooled->shared[i]); /* GOAWAY: the requests on this connection may finish */
            }
        }
    }
}

/* ---- connections that are lost ---- */

/* So many of those that are left are drawn, each as likely as any other. */
struct drawing {
    uint64_t left;
    uint64_t wanted;
};

static bool draw(struct world *w, struct drawing *drawing)
{
    bool drawn = becalm_rand_below(becalm_rand_next(&w->fault_state), drawing->left) < drawing->wanted;
    drawing->left--;
    drawing->wanted -= drawn;
    return drawn;
}

static void lose_of(struct world *w, uint32_t service, struct pooled *pooled, struct drawing *drawing)
{
    for (uint32_t i = pooled->idle; i > 0; i--) {
        if (draw(w, drawing)) {
            pooled->idle--;
            pooled->count--;
            w->service[service].connected--;
        }
    }
    for (uint32_t i = 0; i < pooled->places; i++) {
        if (!pooled->shared[i].gone && draw(w, drawing)) {
            pooled->shared[i].lost = true;
            retire(w, service, pooled, &pooled->shared[i]);
        }
    }
}

/* Connections that are being made, and those that have gone, do not count. */
static uint64_t connections_of(const struct world *w, uint32_t service)
{
    uint64_t sum = 0;
    for (uint32_t h = 0; h < w->hop_count; h++) {
        const struct hop *hop = &w->hop[h];
        size_t count = reaches(w, hop, service) ? (size_t)hop->callers * hosts_of(hop) : 0;
        for (size_t i = 0; i < count; i++) {
            sum += hop->pooled[i].count - hop->pooled[i].connecting;
        }
    }
    return sum;
}

void pooled_lose(struct world *w, uint32_t service, uint32_t wanted)
{
    uint64_t all = connections_of(w, service);
    struct drawing drawing = {all, wanted < all ? wanted : all};
    for (uint32_t h = 0; h < w->hop_count; h++) {
        const struct hop *hop = &w->hop[h];
        size_t count = reaches(w, hop, service) ? (size_t)hop->callers * hosts_of(hop) : 0;
        for (size_t i = 0; i < count; i++) {
            lose_of(w, service, &hop->pooled[i], &drawing);
        }
    }
    for (uint32_t id = 0; id < w->attempts.used; id++) {
        struct attempt *attempt = attempt_at(w, id);
        bool holds = attempt->connected && reaches(w, &w->hop[attempt->hop], service);
        attempt->doomed =
            holds && (w->plan->shared ? pooled_of(w, attempt)->shared[attempt->stream_of].lost : draw(w, &drawing));
    }
}

/* ---- events ---- */

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
    if (w->plan->shared) {
        share(w, attempt);
    }
    if (attempt->call == NOTHING) { /* the attempt that wanted it has gone: it is a fresh one for the next */
        pooled_put(w, attempt, POOLED_CLEAN);
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
        bool idle = w->plan->shared ? roomy(w, pooled) != NOTHING : pooled->idle > 0;
        if (attempt->call == NOTHING) {
            attempt_give(w, line_take(w, pooled));
            continue;
        }
        if (!has_one(w, attempt) && !can_connect(w, attempt)) {
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
