/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>

#define AS_PLANNED 1000u /* thousandths */

bool clients_make(struct world *w)
{
    w->client = calloc(w->plan->client_count, sizeof *w->client);
    for (uint32_t i = 0; w->client != NULL && i < w->plan->client_count; i++) {
        const struct scenario_client *plan = &w->plan->clients[i];
        w->client[i].factor_milli = AS_PLANNED;
        if (plan->rate_milli == 0 && plan->calls > 0) {
            w->client[i].made_by = calloc(plan->callers, sizeof(uint32_t));
            if (w->client[i].made_by == NULL) {
                return false;
            }
        }
    }
    return w->client != NULL;
}

void clients_free(struct world *w)
{
    for (uint32_t i = 0; w->client != NULL && i < w->plan->client_count; i++) {
        free(w->client[i].made_by);
    }
    free(w->client);
}

/* A caller with a loop begins at any moment of its first pause: not all of them do it together. */
static void loop_begins(struct world *w, uint32_t id)
{
    const struct scenario_client *plan = &w->plan->clients[id];
    for (uint32_t caller = 0; caller < plan->callers; caller++) {
        becalm_ns pause = dist_draw(&w->tables, &plan->think, &w->arrival_state);
        becalm_ns at = pause == 0 ? 0 : becalm_rand_below(becalm_rand_next(&w->arrival_state), pause);
        clock_plan(&w->clock, (struct event){.at = at, .kind = CALLER_CALLS, .id = caller, .generation = id});
    }
}

void clients_begin(struct world *w)
{
    for (uint32_t i = 0; i < w->plan->client_count; i++) {
        if (w->plan->clients[i].connections > 0) {
            continue; /* this client makes no calls */
        }
        if (w->plan->clients[i].rate_milli > 0) {
            clock_plan(&w->clock, (struct event){.at = 0, .kind = CLIENT_CALLS, .id = i});
        } else {
            loop_begins(w, i);
        }
    }
}

static void call_begins(struct world *w, uint32_t id, uint32_t caller)
{
    struct world_client *counts = &w->result->client[id];
    becalm_ns now = w->clock.now;
    counts->begun[second_of(w, now)]++;
    counts->phase[phase_of(w, now)].begun++;
    counts->calls++;
    counts->calls_fault += in_fault(w, now);
    w->client[id].made++;
    call_begin(
        w, &(struct call_origin){
               .hop = id, /* the hops of clients come first */
               .caller = caller,
               .client = id,
               .endpoint = endpoint_draw(&w->service[w->hop[id].to], w->plan->clients[id].share_ppm, &w->arrival_state),
               .attempt = NOTHING,
           });
}

static void next_plan(struct world *w, uint32_t id)
{
    const struct scenario_client *plan = &w->plan->clients[id];
    uint64_t rate = plan->rate_milli * w->client[id].factor_milli / AS_PLANNED;
    struct dist gap = {.kind = DIST_EXPONENTIAL, .mean = 1000 * BECALM_S / (rate > 0 ? rate : 1)};
    clock_plan(&w->clock, (struct event){.at = w->clock.now + dist_draw(&w->tables, &gap, &w->arrival_state),
                                         .kind = CLIENT_CALLS,
                                         .id = id,
                                         .generation = w->client[id].generation});
}

/* Which callers will call next, if no other draw comes before: each time a gap, the caller, and an endpoint if there
 * are any. A guess that is wrong costs a little time and nothing else. */
static void callers_foresee(const struct world *w, uint32_t id)
{
    const struct hop *hop = &w->hop[id];
    uint64_t state = w->arrival_state;
    for (uint32_t calls = 0; calls <= HOP_FORESEEN; calls++) {
        (void)becalm_rand_next(&state);
        hop_foresee(hop, (uint32_t)becalm_rand_below(becalm_rand_next(&state), hop->callers), calls);
        if (hop->kinds > 1) {
            (void)becalm_rand_next(&state);
        }
    }
}

void client_calls(struct world *w, uint32_t id, uint32_t generation)
{
    const struct scenario_client *plan = &w->plan->clients[id];
    const struct client *client = &w->client[id];
    if (generation != client->generation ||
        (plan->calls > 0 && client->made >= (uint64_t)plan->calls * plan->callers)) {
        return;
    }
    next_plan(w, id);
    call_begins(w, id, (uint32_t)becalm_rand_below(becalm_rand_next(&w->arrival_state), plan->callers));
    if (world_is_large(w)) {
        callers_foresee(w, id);
    }
}

void caller_calls(struct world *w, uint32_t id, uint32_t caller)
{
    uint32_t *made_by = w->client[id].made_by;
    if (made_by != NULL) {
        made_by[caller]++;
    }
    call_begins(w, id, caller);
}

void caller_answered(struct world *w, uint32_t id, uint32_t caller)
{
    const struct scenario_client *plan = &w->plan->clients[id];
    const struct client *client = &w->client[id];
    struct world_client *counts = &w->result->client[id];
    counts->ended_at = w->clock.now;
    counts->ended++;
    if (plan->rate_milli > 0 || (client->made_by != NULL && client->made_by[caller] >= plan->calls)) {
        return;
    }
    becalm_ns pause = dist_draw(&w->tables, &plan->think, &w->arrival_state);
    if (client->factor_milli != AS_PLANNED) {
        pause = becalm_ns_min(pause, BECALM_NEVER / AS_PLANNED) * AS_PLANNED / client->factor_milli;
    }
    clock_plan(&w->clock,
               (struct event){
                   .at = becalm_ns_after(w->clock.now, pause), .kind = CALLER_CALLS, .id = caller, .generation = id});
}

/* Arrivals that were planned at the old rate are void: a Poisson process has no memory. */
void client_surges(struct world *w, uint32_t id, uint32_t factor_milli)
{
    w->client[id].factor_milli = factor_milli;
    if (w->plan->clients[id].rate_milli > 0) {
        w->client[id].generation++;
        next_plan(w, id);
    }
}
