/* SPDX-License-Identifier: MIT */
#include "tune.h"

#include "figure.h"

becalm_ns plan_wait(becalm_ns base, becalm_ns cap, uint32_t n)
{
    becalm_ns wait = base;
    for (uint32_t i = 1; i < n && wait < cap; i++) {
        wait = becalm_ns_after(wait, wait);
    }
    return wait < cap ? wait : cap;
}

void plan_schedule(struct plan_schedule *out, uint32_t retries, becalm_ns each, becalm_ns base, becalm_ns cap)
{
    *out = (struct plan_schedule){.retries = retries, .each = each, .base = base, .cap = cap, .attempts = each};
    for (uint32_t n = 1; n <= retries; n++) {
        out->attempts = becalm_ns_after(out->attempts, each);
        out->waits = becalm_ns_after(out->waits, plan_wait(base, cap, n));
    }
    out->all = becalm_ns_after(out->attempts, out->waits);
}

/* The most retries that end within the deadline. */
static uint32_t count_fitting(becalm_ns deadline, becalm_ns each, becalm_ns base, becalm_ns cap)
{
    struct plan_schedule schedule;
    uint32_t fits = 0;
    while (fits < PLAN_RETRIES_MAX) {
        plan_schedule(&schedule, fits + 1, each, base, cap);
        if (schedule.all > deadline) {
            break;
        }
        fits++;
    }
    return fits;
}

/* A healthy round trip; more where the deadline has room for it, since a service in trouble needs time to drain. */
static becalm_ns choose_base(const struct plan_tune_input *input, becalm_ns each)
{
    becalm_ns trip = figure_round_up(input->p50 > BECALM_MS ? input->p50 : BECALM_MS, 2);
    if (input->initial_delay > 0) {
        return input->initial_delay;
    }
    if (trip < PLAN_BASE_LEAST && count_fitting(input->deadline, each, PLAN_BASE_LEAST, BECALM_NEVER) > 0) {
        return PLAN_BASE_LEAST;
    }
    return trip;
}

/* How many retries to recommend when `fits` fit whole. One that the deadline may cut is better than none: attempts that
 * fail at once leave it all the time in the world. */
static uint32_t choose_retries(const struct plan_tune_input *input, struct plan_tuning *out, becalm_ns each)
{
    if (input->judge) {
        return input->retries;
    }
    if (out->fits > 0) {
        return out->fits < PLAN_RETRIES_ENOUGH ? out->fits : PLAN_RETRIES_ENOUGH;
    }
    becalm_ns least = becalm_ns_after(becalm_ns_after(each, out->base), input->p50);
    return least <= input->deadline ? 1 : 0;
}

void plan_tune(const struct plan_tune_input *input, struct plan_tuning *out)
{
    *out = (struct plan_tuning){.whole = true};
    if (input->p99_5 > 0) {
        out->attempt_timeout = figure_round_up(input->p99_5 + input->p99_5 / 10, 2);
        if (out->attempt_timeout < BECALM_MS) {
            out->attempt_timeout = BECALM_MS; /* the least that a policy takes */
        }
    }
    if (out->attempt_timeout > input->deadline) {
        out->attempt_timeout = input->deadline;
        out->whole = false;
    }
    becalm_ns each = out->attempt_timeout > 0 ? out->attempt_timeout : input->p50;
    out->base = choose_base(input, each);
    out->fits = count_fitting(input->deadline, each, out->base, input->max_delay > 0 ? input->max_delay : BECALM_NEVER);
    out->retries = choose_retries(input, out, each);
    out->cap = input->max_delay > 0 ? input->max_delay : plan_wait(out->base, BECALM_NEVER, out->retries);
    plan_schedule(&out->worst, out->retries, each, out->base, out->cap);
    plan_schedule(&out->common, out->retries, input->p50, out->base, out->cap);
    out->refused = input->judge && out->common.all > input->deadline;
    out->cut = out->worst.all > input->deadline;
}
