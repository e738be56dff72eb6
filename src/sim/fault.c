/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

void faults_begin(struct world *w)
{
    w->fault_from = 0; /* without a fault, all calls count */
    w->fault_to = BECALM_NEVER;
    for (uint32_t i = 0; i < w->plan->fault_count; i++) {
        const struct scenario_fault *fault = &w->plan->faults[i];
        becalm_ns over_at = becalm_ns_after(fault->at, fault->length);
        clock_plan(&w->clock, (struct event){.at = fault->at, .kind = FAULT_TURNS, .id = 2 * i});
        clock_plan(&w->clock, (struct event){.at = over_at, .kind = FAULT_TURNS, .id = 2 * i + 1});
        if (i == 0) {
            w->fault_from = becalm_ns_after(fault->at, BECALM_S);
            w->fault_to = over_at;
        }
    }
}

void fault_turns(struct world *w, uint32_t id)
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
    service_work(w, service);
}
