/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

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
        op_wakes(w, event->id, event->generation);
        break;
    case FAULT_TURNS:
        fault_turns(w, event->id);
        break;
    }
}

/* Every second that is over when the next event comes is written down first. */
static void seconds_pass(struct world *w, uint32_t *done, becalm_ns until)
{
    while (*done < w->result->seconds && (*done + 1) * BECALM_S <= until) {
        series_second(w, *done);
        (*done)++;
        if (w->options->progress != NULL) {
            w->options->progress(w->options->progress_self, *done * BECALM_S);
        }
    }
}

static void pass(struct world *w)
{
    struct event event;
    uint32_t done = 0;
    while (!w->no_memory && !w->clock.no_memory && clock_next(&w->clock, &event)) {
        seconds_pass(w, &done, event.at);
        if (event.at < w->plan->length || (event.kind != CLIENT_CALLS && event.kind != FAULT_TURNS)) {
            w->result->events++;
            happen(w, &event);
        }
    }
    seconds_pass(w, &done, BECALM_NEVER);
}

int world_run(const struct scenario *plan, const struct world_options *options, struct world_result *result)
{
    struct world w = {.plan = plan, .options = options, .result = result};
    w.ops.item = sizeof(struct op);
    w.jobs.item = sizeof(struct job);
    w.arrival_state = options->seed * 3 + 1;
    w.service_state = options->seed * 3 + 2;
    w.policy_state = options->seed * 3 + 3;
    w.clock.end_at = becalm_ns_after(plan->length, WORLD_DRAIN);
    dist_init(&w.tables);
    bool made = series_make(plan, result) && services_make(&w) && hops_make(&w);
    if (made) {
        clients_begin(&w);
        faults_begin(&w);
        pass(&w);
    }
    int rc = made && !w.no_memory && !w.clock.no_memory ? 0 : BECALM_ENOMEM;
    if (rc != 0) {
        world_result_free(plan, result);
    }
    hops_free(&w);
    services_free(&w);
    clock_free(&w.clock);
    pool_free(&w.ops);
    pool_free(&w.jobs);
    return rc;
}
