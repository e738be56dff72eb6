/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

void clients_begin(struct world *w)
{
    for (uint32_t i = 0; i < w->plan->client_count; i++) {
        clock_plan(&w->clock, (struct event){.at = 0, .kind = CLIENT_CALLS, .id = i});
    }
}

void client_calls(struct world *w, uint32_t id)
{
    const struct scenario_client *plan = &w->plan->clients[id];
    struct world_client *counts = &w->result->client[id];
    struct dist gap = {.kind = DIST_EXPONENTIAL, .mean = 1000 * BECALM_S / plan->rate_milli};
    becalm_ns now = w->clock.now;
    clock_plan(
        &w->clock,
        (struct event){.at = now + dist_draw(&w->tables, &gap, &w->arrival_state), .kind = CLIENT_CALLS, .id = id});
    counts->begun[second_of(w, now)]++;
    counts->calls++;
    counts->calls_fault += in_fault(w, now);
    op_begin(w, &(struct op_origin){
                    .hop = id, /* the hops of clients come first */
                    .caller = (uint32_t)becalm_rand_below(becalm_rand_next(&w->arrival_state), plan->callers),
                    .client = id,
                    .job = NOTHING,
                });
}
