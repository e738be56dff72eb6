/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lane.h"

#include <becalm/version.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1000u /* of the users, and of all services together */
#define POLICY_MAX      4096u
#define FACTOR_CALLS    (LANE_RATE / 2) /* of fewer nothing can be said */

/* The last service can serve 125 requests a second and gets 50. Its queue is so long that clients give up first, as
 * with most default settings. */
const struct service_plan lane_services[LANE_SERVICES] = {
    {.name = "front", .workers = 400, .queue_max = 0, .time = 2 * BECALM_MS, .next = "middle"},
    {.name = "middle", .workers = 400, .queue_max = 0, .time = 2 * BECALM_MS, .next = "back"},
    {.name = "back", .workers = 5, .queue_max = 250, .time = 40 * BECALM_MS, .next = NULL},
};

static const struct load_plan users = {
    .service = "front", .rate = LANE_RATE, .patience = LANE_PATIENCE, .calls_max = 400};

/* Retries as many programs have them: at once, at every layer, without regard to other layers. */
static const char naive_rules[] = "  maxRetries: 2\n"
                                  "  growth: constant\n"
                                  "  initialDelay: 0s\n"
                                  "  jitter: none\n"
                                  "  attemptTimeout: 1s\n"
                                  "  deadline: none\n"
                                  "  budget: {kind: none}\n"
                                  "  breaker: {enabled: false}\n"
                                  "  limit: {kind: none}\n"
                                  "  outlier: {enabled: false}\n";

/* Becalm's defaults, with the same timeout as the naive lane. */
static const char becalm_rules[] = "  attemptTimeout: 1s\n";

const char *lane_name(enum lane_kind kind)
{
    return kind == LANE_NAIVE ? "naive" : "becalm";
}

/* ---- the gateway ---- */

/* A listening socket on a free port of loopback, and its address as text. -1 with errno. */
static int listen_free(union address_socket *address, char text[ADDRESS_TEXT_MAX])
{
    socklen_t length = sizeof *address;
    *address = (union address_socket){.v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
    int fd = listen_on(address, false);
    if (fd >= 0 && getsockname(fd, &address->any, &length) != 0) {
        close(fd);
        return -1;
    }
    address_write(address, text, ADDRESS_TEXT_MAX);
    return fd;
}

static void policy_write(struct lane *lane, const char *listen)
{
    int length = snprintf(lane->policy, POLICY_MAX,
                          "version: 1\n"
                          "listen: %s\n"
                          "admin: %s\n"
                          "workers: 1\n"
                          "log: {level: error}\n"
                          "drain: {delay: 0s, limit: 1s}\n"
                          "%s"
                          "defaults:\n%s"
                          "services:\n",
                          listen, lane->admin, lane->kind == LANE_NAIVE ? "trust: []\n" : "trust: [127.0.0.0/8]\n",
                          lane->kind == LANE_NAIVE ? naive_rules : becalm_rules);
    for (uint32_t i = 0; i < LANE_SERVICES; i++) {
        char host[ADDRESS_TEXT_MAX];
        address_write(&lane->service[i].address, host, sizeof host);
        length += snprintf(lane->policy + length, POLICY_MAX - (size_t)length, "  %s: {hosts: [\"%s\"]%s%s%s}\n",
                           lane_services[i].name, host, lane_services[i].next == NULL ? "" : ", calls: [",
                           lane_services[i].next == NULL ? "" : lane_services[i].next,
                           lane_services[i].next == NULL ? "" : "]");
        BECALM_ASSERT((size_t)length < POLICY_MAX);
    }
}

static int gateway_begin(struct lane *lane, struct becalm_diags *diags)
{
    union address_socket admin;
    char listen[ADDRESS_TEXT_MAX];
    int fd[2] = {listen_free(&lane->address, listen), listen_free(&admin, lane->admin)};
    int rc = fd[0] < 0 || fd[1] < 0 ? BECALM_EIO : 0;
    if (rc == 0) {
        policy_write(lane, listen);
        rc = gateway_make(&lane->gateway,
                          &(struct gateway_options){
                              .path = lane_name(lane->kind),
                              .text = lane->policy,
                              .handed = {fd, 2},
                              .log_fd = STDERR_FILENO,
                              .access_fd = STDERR_FILENO,
                          },
                          diags);
    }
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0) {
            close(fd[i]); /* the gateway has copies */
        }
    }
    return rc == 0 ? gateway_start(lane->gateway) : rc;
}

/* ---- samples ---- */

static uint32_t total(const struct snapshot_target *target, size_t offset)
{
    return (uint32_t)meter_total((const struct meter *const *)target->meters->meter, target->meters->count, offset);
}

static uint32_t sum_reasons(const struct snapshot_target *target, size_t offset)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < BECALM_REASON_COUNT; i++) {
        sum += total(target, offset + i * sizeof(meter_count));
    }
    return sum;
}

static void read_refusals(const struct snapshot_target *target, uint32_t by[BECALM_REASON_COUNT])
{
    for (uint32_t i = 0; i < BECALM_REASON_COUNT; i++) {
        by[i] = total(target, offsetof(struct meter, overflow) + i * sizeof(meter_count)) +
                total(target, offsetof(struct meter, shed) + i * sizeof(meter_count));
    }
}

static uint32_t sum_retries(const struct snapshot_target *target)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < METER_ATTEMPTS; i++) {
        sum += total(target, offsetof(struct meter, retries) + i * sizeof(meter_count));
    }
    return sum;
}

/* Counts as they are now. */
static void read_service(const struct lane *lane, const struct snapshot_target *target, uint32_t index,
                         struct lane_service_sample *now)
{
    const struct service *service = &lane->service[index];
    const struct becalm_target *parts = &target->state->target;
    const struct becalm_policy *policy = &target->state->policy;
    uint64_t left = becalm_budget_left(parts->budget, &policy->budget, lane->loop->now);
    *now = (struct lane_service_sample){
        .arrivals = (uint32_t)service->arrivals,
        .retries = sum_retries(target),
        .refused = sum_reasons(target, offsetof(struct meter, overflow)),
        .shed = sum_reasons(target, offsetof(struct meter, shed)),
        .queue = service->waiting,
        .gate = (uint32_t)becalm_gate_waiting(parts->gate),
        .in_flight = total(target, offsetof(struct meter, in_flight)),
        .limit = becalm_limit_now(parts->limit, &policy->limit),
        .budget_left = left == UINT64_MAX ? UINT32_MAX : (uint32_t)(left / 1000),
        .breaker = becalm_breaker_state(parts->breaker),
        .has_breaker = policy->breaker.enabled,
    };
}

static void read_lane(struct lane *lane, struct lane_sample *now)
{
    struct snapshot *snapshot = gateway_snapshot(lane->gateway);
    now->begun = (uint32_t)lane->load.begun;
    now->good = (uint32_t)lane->load.good;
    now->failed = (uint32_t)lane->load.failed;
    for (uint32_t i = 0; i < LANE_SERVICES; i++) { /* the policy names them in this order, and no endpoints */
        const struct snapshot_target *target = &snapshot->target[snapshot->service[i].first_target];
        read_service(lane, target, i, &now->service[i]);
        read_refusals(target, lane->refused.by[i]);
    }
    snapshot_drop(snapshot);
}

void lane_tick(struct lane *lane)
{
    struct lane_sample now;
    struct lane_sample *sample = &lane->sample[lane->ticks % LANE_TICKS];
    read_lane(lane, &now);
    *sample = now; /* gauges stay; counts become differences, which are right even where 32 bits wrap around */
    sample->begun -= lane->before.begun;
    sample->good -= lane->before.good;
    sample->failed -= lane->before.failed;
    for (uint32_t i = 0; i < LANE_SERVICES; i++) {
        const struct lane_service_sample *before = &lane->before.service[i];
        sample->service[i].arrivals -= before->arrivals;
        sample->service[i].retries -= before->retries;
        sample->service[i].refused -= before->refused;
        sample->service[i].shed -= before->shed;
    }
    lane->before = now;
    lane->ticks++;
}

const struct lane_sample *lane_at(const struct lane *lane, uint32_t tick)
{
    bool known = tick < lane->ticks && lane->ticks - tick <= LANE_TICKS;
    return known ? &lane->sample[tick % LANE_TICKS] : NULL;
}

uint32_t lane_success_ppm(const struct lane *lane, uint32_t from, uint32_t to)
{
    uint64_t good = 0;
    uint64_t all = 0;
    for (uint32_t tick = from; tick < to; tick++) {
        const struct lane_sample *sample = lane_at(lane, tick);
        good += sample == NULL ? 0 : sample->good;
        all += sample == NULL ? 0 : sample->good + sample->failed;
    }
    return all == 0 ? LANE_UNKNOWN : (uint32_t)(good * 1000000 / all);
}

/* The first of the last few ticks. */
static uint32_t recent(const struct lane *lane)
{
    return lane->ticks > STORM_STEADY ? lane->ticks - STORM_STEADY : 0;
}

uint32_t lane_success_now(const struct lane *lane)
{
    bool none = lane->ticks == 0 || lane_success_ppm(lane, lane->ticks - 1, lane->ticks) == LANE_UNKNOWN;
    return none ? LANE_UNKNOWN : lane_success_ppm(lane, recent(lane), lane->ticks);
}

void lane_factor_anew(struct lane *lane)
{
    lane->begun_before = lane->load.begun - lane->load.waiting; /* these have most of their requests before them */
    lane->arrivals_before = lane->service[LANE_LAST].arrivals;
}

uint32_t lane_factor_milli(const struct lane *lane)
{
    uint64_t begun = lane->load.begun - lane->begun_before;
    uint64_t arrivals = lane->service[LANE_LAST].arrivals - lane->arrivals_before;
    return begun < FACTOR_CALLS ? LANE_UNKNOWN : (uint32_t)(arrivals * 1000 / begun);
}

uint32_t lane_reach(const struct lane *lane, uint32_t from, uint32_t to)
{
    uint64_t arrivals = 0;
    for (uint32_t tick = from; tick < to; tick++) {
        const struct lane_sample *sample = lane_at(lane, tick);
        arrivals += sample == NULL ? 0 : sample->service[LANE_LAST].arrivals;
    }
    return from >= to ? 0 : (uint32_t)(arrivals * BECALM_S / ((to - from) * LANE_TICK));
}

void lane_refusals_anew(struct lane *lane)
{
    lane->refused_before = lane->refused;
}

uint32_t lane_refusals(const struct lane *lane, uint32_t service, enum becalm_reason why)
{
    return lane->refused.by[service][why] - lane->refused_before.by[service][why];
}

uint32_t lane_holds(const struct lane *lane)
{
    uint32_t holds = lane->load.waiting;
    for (uint32_t i = 0; i < LANE_SERVICES; i++) {
        holds += lane->service[i].fault == SERVICE_DEAD ? 0 : service_holds(&lane->service[i]);
    }
    return holds;
}

/* ---- beginning and end ---- */

int lane_open(struct lane *lane, enum lane_kind kind, struct loop *loop, struct becalm_diags *diags)
{
    *lane = (struct lane){.kind = kind, .loop = loop};
    lane->policy = malloc(POLICY_MAX);
    lane->sample = calloc(LANE_TICKS, sizeof *lane->sample);
    if (lane->policy == NULL || lane->sample == NULL) {
        return BECALM_ENOMEM;
    }
    for (uint32_t i = 0; i < LANE_SERVICES; i++) {
        int rc = service_open(&lane->service[i], &lane_services[i], loop, &lane->inner);
        if (rc != 0) {
            return rc;
        }
    }
    int rc = gateway_begin(lane, diags);
    if (rc == 0) {
        caller_init(&lane->users, loop, &lane->address, CONNECTIONS_MAX);
        caller_init(&lane->inner, loop, &lane->address, CONNECTIONS_MAX);
        load_open(&lane->load, &users, loop, &lane->users);
    }
    return rc;
}

void lane_close(struct lane *lane)
{
    load_close(&lane->load);
    for (uint32_t i = 0; i < LANE_SERVICES; i++) {
        service_close(&lane->service[i]);
    }
    caller_close(&lane->users);
    caller_close(&lane->inner);
    gateway_free(lane->gateway);
    free(lane->policy);
    free(lane->sample);
    *lane = (struct lane){0};
}
