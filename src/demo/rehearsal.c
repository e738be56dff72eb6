/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "rehearsal.h"

#include "meter/buffer.h"
#include "sim/file_policies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX (16u * 1024)
#define SEED     1u

/* ---- the scenario ---- */

/* A gateway that runs the engine stands between every two services, so in the scenario each service calls in the role
 * of a gateway. */
static void put_services(struct buffer *text)
{
    for (uint32_t i = 0; i < LANE_SERVICES; i++) {
        const struct service_plan *plan = &lane_services[i];
        buffer_chars(text, "  ");
        buffer_chars(text, plan->name);
        buffer_chars(text, ": {time: {constant: ");
        buffer_number(text, plan->time / BECALM_MS);
        buffer_chars(text, "ms}");
        if (plan->next != NULL) { /* a service that calls another has more workers than it ever needs */
            buffer_chars(text, ", role: gateway, calls: [");
            buffer_chars(text, plan->next);
            buffer_chars(text, "]}\n");
        } else {
            buffer_chars(text, ", workers: ");
            buffer_number(text, plan->workers);
            buffer_chars(text, ", queue: {max: ");
            buffer_number(text, plan->queue_max);
            buffer_chars(text, "}}\n");
        }
    }
}

/* In the words of a scenario; NULL: nothing is wrong. */
static const char *effect_of(enum service_fault fault)
{
    switch (fault) {
    case SERVICE_HEALTHY:
        break;
    case SERVICE_SLOW:
        return "latency: 160ms";
    case SERVICE_ERRORS:
        return "errors: 10%";
    case SERVICE_DEAD:
        return "capacity: 0";
    case SERVICE_FLAPPING:
        return "capacity: 0, flap: {on: 2s, off: 2s}";
    case SERVICE_FAULT_COUNT:
        break;
    }
    return NULL;
}

/* " fault-3: {at: 10000ms, for: 2000ms, ": the caller adds the kind of fault. */
static void put_time(struct buffer *text, const char *name, uint32_t number, const struct rehearsal_pause *time)
{
    buffer_chars(text, "  ");
    buffer_chars(text, name);
    buffer_number(text, number);
    buffer_chars(text, ": {at: ");
    buffer_number(text, time->at / BECALM_MS);
    buffer_chars(text, "ms, for: ");
    buffer_number(text, time->length / BECALM_MS);
    buffer_chars(text, "ms, ");
}

/* A pause of the users becomes a surge with the lowest rate that a scenario allows: a call in 20 s. */
static void put_pauses(struct buffer *text, const struct rehearsal_plan *plan)
{
    for (uint32_t i = 0; i < plan->pause_count; i++) {
        if (plan->pause[i].length >= BECALM_MS) {
            put_time(text, "pause-", i + 1, &plan->pause[i]);
            buffer_chars(text, "client: users, surge: 0.001}\n");
        }
    }
}

static void put_faults(struct buffer *text, const struct rehearsal_plan *plan)
{
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        const struct rehearsal_fault *fault = &plan->fault[i];
        if (effect_of(fault->fault) == NULL || fault->length < BECALM_MS) {
            continue;
        }
        put_time(text, "fault-", i + 1, &(struct rehearsal_pause){fault->at, fault->length});
        buffer_chars(text, "service: ");
        buffer_chars(text, lane_services[LANE_LAST].name);
        buffer_chars(text, ", ");
        buffer_chars(text, effect_of(fault->fault));
        buffer_chars(text, "}\n");
    }
}

size_t rehearsal_write(const struct rehearsal_plan *plan, char *at, size_t size)
{
    struct buffer text = {.at = at, .size = size};
    buffer_chars(&text, "name: demo\nlength: ");
    buffer_number(&text, plan->seconds);
    buffer_chars(&text, "s\nattempts: ");
    buffer_number(&text, LANE_ATTEMPTS);
    buffer_chars(&text, "\ntimeout: ");
    buffer_number(&text, LANE_TIMEOUT / BECALM_MS);
    buffer_chars(&text, "ms\nlink: {latency: 0.1ms}\nservices:\n");
    put_services(&text);
    buffer_chars(&text, "clients:\n  users: {to: ");
    buffer_chars(&text, lane_services[0].name);
    buffer_chars(&text, ", rate: ");
    buffer_number(&text, LANE_RATE);
    buffer_chars(&text, "/s, role: gateway}\nfaults:\n");
    put_faults(&text, plan);
    put_pauses(&text, plan);
    return text.full ? 0 : text.length;
}

/* ---- a run ---- */

static void keep(const struct world_result *world, uint32_t seconds, struct rehearsal_lane *lane)
{
    const struct world_service *last = &world->service[LANE_LAST];
    for (uint32_t i = 0; i < seconds && i < world->seconds; i++) {
        lane->arrivals[i] = (uint32_t)last->arrivals[i];
        lane->begun[i] = (uint32_t)world->client[0].begun[i];
        lane->good[i] = (uint32_t)world->client[0].good[i];
    }
}

static int run_lane(const struct rehearsal_plan *plan, enum lane_kind kind, struct rehearsal_result *result,
                    struct becalm_diags *diags)
{
    struct scenario_file *file = NULL;
    struct becalm_config *config = NULL;
    struct file_policies policies = {.policy = NULL};
    struct world_options options = {.seed = SEED};
    struct world_result world = {0};
    char *text = malloc(TEXT_MAX);
    size_t length = text == NULL ? 0 : rehearsal_write(plan, text, TEXT_MAX);
    int rc = length == 0 ? BECALM_ENOMEM : scenario_parse(&file, "demo", text, length, NULL, diags);
    if (rc == 0) {
        const char *policy = plan->policy[kind];
        rc = becalm_config_parse(&config, lane_name(kind), policy, strlen(policy), NULL, diags);
    }
    if (rc == 0) {
        rc = file_policies_make(&policies, config, scenario_of(file), &options);
    }
    if (rc == 0) {
        options.carries_deadlines = options.carries_marks = kind == LANE_BECALM;
        rc = world_run(scenario_of(file), &options, &world);
    }
    if (rc == 0) {
        keep(&world, plan->seconds, &result->lane[kind]);
        result->events += world.events;
        world_result_free(scenario_of(file), &world);
    }
    file_policies_free(&policies);
    becalm_config_free(config);
    scenario_free(file);
    free(text);
    return rc;
}

static becalm_ns clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (becalm_ns)time.tv_sec * BECALM_S + (becalm_ns)time.tv_nsec;
}

void rehearsal_run(const struct rehearsal_plan *plan, struct rehearsal_result *result)
{
    becalm_ns begun_at = clock_now();
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    memset(result, 0, sizeof *result);
    result->seconds = plan->seconds;
    result->rc = diags == NULL ? BECALM_ENOMEM : 0;
    for (unsigned i = 0; i < LANE_COUNT && result->rc == 0; i++) {
        result->rc = run_lane(plan, (enum lane_kind)i, result, diags);
    }
    free(diags);
    result->took = becalm_ns_since(clock_now(), begun_at);
}

/* ---- on a thread of its own ---- */

struct rehearsal {
    struct rehearsal_plan plan;
    struct rehearsal_result result;
    struct loop *loop;
    pthread_t thread;
    BECALM_ATOMIC(bool) done;
};

static void *run(void *self)
{
    struct rehearsal *rehearsal = self;
    rehearsal_run(&rehearsal->plan, &rehearsal->result);
    atomic_store_explicit(&rehearsal->done, true, memory_order_release); /* pairs with rehearsal_done(): the result */
    loop_wake(rehearsal->loop);
    return NULL;
}

struct rehearsal *rehearsal_begin(const struct rehearsal_plan *plan, struct loop *loop)
{
    struct rehearsal *rehearsal = calloc(1, sizeof *rehearsal);
    if (rehearsal == NULL) {
        return NULL;
    }
    rehearsal->plan = *plan;
    rehearsal->loop = loop;
    if (pthread_create(&rehearsal->thread, NULL, run, rehearsal) != 0) {
        free(rehearsal);
        return NULL;
    }
    return rehearsal;
}

bool rehearsal_done(struct rehearsal *rehearsal)
{
    return atomic_load_explicit(&rehearsal->done, memory_order_acquire);
}

const struct rehearsal_result *rehearsal_result(const struct rehearsal *rehearsal)
{
    return &rehearsal->result;
}

void rehearsal_free(struct rehearsal *rehearsal)
{
    if (rehearsal != NULL) {
        pthread_join(rehearsal->thread, NULL);
        free(rehearsal);
    }
}
