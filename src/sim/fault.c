/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <string.h>

/* Each fault has an event for its start and one for its end from the beginning on, and those between them, where it
 * comes and goes, as they are needed. */
void faults_begin(struct world *w)
{
    struct fault_span span;
    bool faulty = scenario_fault_span(w->plan, &span);
    w->fault_at = faulty ? span.at : BECALM_NEVER;
    w->fault_from = faulty ? becalm_ns_after(span.at, BECALM_S) : 0; /* without a fault, all calls count */
    w->fault_to = faulty ? span.over_at : BECALM_NEVER;
    for (uint32_t i = 0; i < w->plan->fault_count; i++) {
        const struct scenario_fault *fault = &w->plan->faults[i];
        becalm_ns over_at = becalm_ns_after(fault->at, fault->length);
        clock_plan(&w->clock, (struct event){.at = fault->at, .kind = FAULT_TURNS, .id = i});
        clock_plan(&w->clock, (struct event){.at = over_at, .kind = FAULT_TURNS, .id = i});
        if (fault->kind == FAULT_KILL_STORE && fault->age != BECALM_NEVER) {
            becalm_ns saved_at = fault->at - becalm_ns_min(fault->age, fault->at);
            clock_plan(&w->clock, (struct event){.at = saved_at, .kind = STORE_SAVES, .id = i});
        }
    }
}

static void hosts_kill(struct world *w, uint32_t service, uint32_t count)
{
    for (uint32_t host = 0; host < count; host++) {
        host_killed(w, service, host);
    }
    w->service[service].killed_hosts = count;
}

/* Host after host, round and round. */
static void roll(struct world *w, uint32_t service, const struct scenario_fault *fault)
{
    uint64_t turn = (w->clock.now - fault->at) / fault->each;
    uint32_t host = (uint32_t)(turn % w->plan->services[service].hosts);
    if (w->service[service].rolling_host != host) {
        w->service[service].rolling_host = host;
        host_killed(w, service, host);
    }
}

static void links_cut(struct world *w, uint32_t service, const char *from, bool on)
{
    for (uint32_t i = 0; i < w->hop_count; i++) {
        struct hop *hop = &w->hop[i];
        if (hop->to == service && !hop->is_gate && (from == NULL || strcmp(hop->from, from) == 0)) {
            hop->link.cut = on;
        }
    }
}

static void surge(struct world *w, const struct scenario_fault *fault, bool on)
{
    for (uint32_t i = 0; i < w->plan->client_count; i++) {
        if (strcmp(w->plan->clients[i].name, fault->client) == 0) {
            client_surges(w, i, on ? fault->factor_milli : 1000);
        }
    }
}

/* The network is cut, or works again: connected clients notice at once. */
static void down_turns(struct world *w, uint32_t id, bool *fault, bool on)
{
    bool was_down = service_is_down(&w->service[id]);
    *fault = on;
    bool is_down = service_is_down(&w->service[id]);
    if (!was_down && is_down) {
        service_falls(w, id);
    } else if (was_down && !is_down) {
        service_rises(w, id);
    }
}

/* The faults of the store of shared budgets. */
static void store_fault_set(struct world *w, uint32_t index, const struct scenario_fault *fault, bool on)
{
    struct service *service = &w->service[index];
    if (fault->kind == FAULT_STORE) {
        service->store_latency = on ? fault->latency : 0;
    } else if (fault->kind == FAULT_KILL_STORE) {
        store_killed(w, index, on, fault->age != BECALM_NEVER);
    } else if (fault->kind == FAULT_HANG_STORE) {
        service->store_hangs = on;
    } else if (on) {
        store_emptied(w, index);
    }
}

static void fault_set(struct world *w, const struct scenario_fault *fault, bool on)
{
    uint32_t index = scenario_find(w->plan, fault->service);
    struct service *service = &w->service[index];
    switch (fault->kind) {
    case FAULT_CAPACITY:
        service->capacity_ppm = on ? fault->ppm : 1000000;
        break;
    case FAULT_ERRORS:
        service->error_ppm = on ? fault->ppm : NOTHING;
        break;
    case FAULT_DEAD:
        down_turns(w, index, &service->dead, on);
        break;
    case FAULT_LATENCY:
        service->latency = on ? fault->latency : 0;
        break;
    case FAULT_HANG:
        service->hang_ppm = on ? fault->ppm : NOTHING;
        break;
    case FAULT_BAD_HOSTS:
        service->bad_hosts = on ? fault->count : 0;
        break;
    case FAULT_CUT_CALLERS:
        service->cut_ppm = on ? fault->ppm : 0;
        service->cut_silent = fault->silent;
        break;
    case FAULT_REFUSE:
        down_turns(w, index, &service->refuses, on);
        for (uint32_t host = 0; on && host < service->plan->hosts; host++) {
            pooled_close(w, index, host);
        }
        break;
    case FAULT_KILL_HOSTS:
        hosts_kill(w, index, on ? fault->count : 0);
        break;
    case FAULT_ROLLING:
        service->rolling_host = on ? service->rolling_host : NOTHING;
        if (on) {
            roll(w, index, fault);
        }
        break;
    case FAULT_PARTITION:
        links_cut(w, index, fault->from, on);
        break;
    case FAULT_SURGE:
        surge(w, fault, on);
        break;
    case FAULT_SWALLOW:
        service->swallows = on;
        break;
    case FAULT_LOSE_CONNECTIONS:
        if (on) {
            connections_lost(w, index, fault->count);
        }
        break;
    case FAULT_STORE:
    case FAULT_KILL_STORE:
    case FAULT_HANG_STORE:
    case FAULT_EMPTY_STORE:
        store_fault_set(w, index, fault, on);
        break;
    }
    service_work(w, service);
}

void fault_turns(struct world *w, uint32_t id)
{
    const struct scenario_fault *fault = &w->plan->faults[id];
    becalm_ns since = w->clock.now - fault->at;
    bool is_over = since >= fault->length;
    bool on = !is_over;
    becalm_ns next = BECALM_NEVER; /* the next turn, from the fault's start */
    if (!is_over && fault->on > 0) {
        becalm_ns phase = since % (fault->on + fault->off);
        on = phase < fault->on;
        next = since - phase + (on ? fault->on : fault->on + fault->off);
    }
    if (on && fault->kind == FAULT_ROLLING) {
        next = becalm_ns_min(next, (since / fault->each + 1) * fault->each);
    }
    fault_set(w, fault, on);
    if (next < fault->length) {
        clock_plan(&w->clock, (struct event){.at = fault->at + next, .kind = FAULT_TURNS, .id = id});
    }
}
