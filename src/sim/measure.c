/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

#define PPM 1000000u

static uint64_t share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : part * PPM / whole;
}

/* Client calls begun, and those that went well, in one second. */
static struct world_tally tally(const struct scenario *plan, const struct world_result *result, uint32_t second)
{
    struct world_tally sum = {0, 0};
    for (uint32_t c = 0; c < plan->client_count; c++) {
        sum.begun += result->client[c].begun[second];
        sum.good += result->client[c].good[second];
    }
    return sum;
}

static struct world_tally tally_add(struct world_tally a, const struct world_tally *b)
{
    return (struct world_tally){a.begun + b->begun, a.good + b->good};
}

static uint64_t success(const struct world_tally *tally)
{
    return tally->begun == 0 ? MEASURE_NO_SHARE : share(tally->good, tally->begun);
}

const struct world_tally *measure_client_window(const struct scenario *plan, const struct world_result *result,
                                                uint32_t client)
{
    return &result->client[client].phase[plan->fault_count > 0 ? WORLD_IN_FAULT : WORLD_BEFORE];
}

static void successes(const struct scenario *plan, const struct world_result *result, struct measure *measure)
{
    struct world_tally phase[WORLD_PHASES] = {{0, 0}};
    struct world_tally all = {0, 0};
    for (uint32_t c = 0; c < plan->client_count; c++) {
        for (int i = 0; i < WORLD_PHASES; i++) {
            phase[i] = tally_add(phase[i], &result->client[c].phase[i]);
            all = tally_add(all, &result->client[c].phase[i]);
        }
    }
    measure->success_ppm = success(&all);
    measure->success_before_ppm = success(&phase[WORLD_BEFORE]);
    measure->success_in_fault_ppm = success(&phase[WORLD_IN_FAULT]);
    measure->success_after_ppm = success(&phase[WORLD_AFTER]);
}

/* A max-min fair division of the calls that succeeded: every caller gets the same number, and a caller that wants less
 * leaves its rest to all other callers. Clients that want no more than their part are removed, round by round; the rest
 * is divided evenly. */
struct division {
    uint64_t left;    /* successes to be shared out */
    uint64_t callers; /* among so many */
};

static bool wants_little(const struct division *d, const struct world_tally *tally, uint64_t callers)
{
    return tally->begun * d->callers <= d->left * callers;
}

/* The share of the successful calls that was divided fairly: each client counts up to its fair part. */
static uint64_t fairness(const struct scenario *plan, const struct world_result *result)
{
    struct division d = {0, 0};
    bool content[SCENARIO_CLIENTS_MAX] = {false};
    uint64_t count = 0;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        const struct world_tally *tally = measure_client_window(plan, result, c);
        count += tally->begun > 0;
        content[c] = tally->begun == 0;
        d.left += tally->good;
        d.callers += tally->begun == 0 ? 0 : plan->clients[c].callers;
    }
    uint64_t all = d.left;
    uint64_t fair = 0;
    for (bool again = true; again && d.callers > 0;) {
        again = false;
        for (uint32_t c = 0; c < plan->client_count; c++) {
            const struct world_tally *tally = measure_client_window(plan, result, c);
            if (!content[c] && wants_little(&d, tally, plan->clients[c].callers)) {
                content[c] = again = true;
                fair += tally->good;
                d.left -= tally->begun;
                d.callers -= plan->clients[c].callers;
            }
        }
    }
    for (uint32_t c = 0; c < plan->client_count; c++) {
        const struct world_tally *tally = measure_client_window(plan, result, c);
        uint64_t part = content[c] ? 0 : d.left * plan->clients[c].callers / d.callers;
        fair += content[c] ? 0 : tally->good < part ? tally->good : part;
    }
    return count < 2 || all == 0 ? MEASURE_NO_SHARE : fair * PPM / all;
}

static uint32_t recovered(const struct scenario *plan, const struct world_result *result, uint32_t from)
{
    uint32_t well = 0;
    uint32_t since = from;
    bool ends_well = true;
    for (uint32_t s = from; s < result->seconds; s++) {
        struct world_tally one = tally(plan, result, s);
        if (one.begun == 0) {
            continue;
        }
        if (one.good * 100 < one.begun * 99) {
            well = 0;
            ends_well = false;
            continue;
        }
        ends_well = true;
        since = well == 0 ? s : since;
        if (++well == 10) {
            return since - from;
        }
    }
    return ends_well && since - from < 10 ? MEASURE_TOO_SHORT : MEASURE_NEVER; /* the run was too short */
}

/* The graph of calls, as numbers; services in an order in which callers come before those that they call. */
struct graph {
    const struct scenario *plan;
    uint32_t *first; /* of each service its first place in `callee`; one more than there are services */
    uint32_t *callee;
    uint32_t *order;
    uint64_t *offered_milli; /* room for a figure of each service */
};

static uint32_t calls_count(const struct scenario *plan)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->service_count; s++) {
        for (uint32_t i = 0; plan->services[s].calls != NULL && plan->services[s].calls[i] != NULL; i++) {
            count++;
        }
    }
    return count;
}

/* Kahn's algorithm: a service without callers left comes next. A scenario has no cycles. */
static void graph_sort(struct graph *graph, uint32_t *callers)
{
    uint32_t services = graph->plan->service_count;
    uint32_t sorted = 0;
    for (uint32_t i = 0; i < graph->first[services]; i++) {
        callers[graph->callee[i]]++;
    }
    for (uint32_t s = 0; s < services; s++) {
        if (callers[s] == 0) {
            graph->order[sorted++] = s;
        }
    }
    for (uint32_t at = 0; at < sorted; at++) {
        uint32_t s = graph->order[at];
        for (uint32_t i = graph->first[s]; i < graph->first[s + 1]; i++) {
            if (--callers[graph->callee[i]] == 0) {
                graph->order[sorted++] = graph->callee[i];
            }
        }
    }
    BECALM_ASSERT(sorted == services);
}

static bool graph_make(struct graph *graph, const struct scenario *plan)
{
    uint32_t services = plan->service_count;
    uint32_t count = 0;
    uint32_t *callers = calloc(services + 1, sizeof *callers);
    *graph = (struct graph){.plan = plan};
    graph->first = calloc(services + 1, sizeof *graph->first);
    graph->callee = calloc(calls_count(plan) + 1, sizeof *graph->callee);
    graph->order = calloc(services + 1, sizeof *graph->order);
    graph->offered_milli = calloc(services + 1, sizeof *graph->offered_milli);
    bool made = callers != NULL && graph->first != NULL && graph->callee != NULL && graph->order != NULL &&
                graph->offered_milli != NULL;
    for (uint32_t s = 0; made && s < services; s++) {
        graph->first[s] = count;
        for (uint32_t i = 0; plan->services[s].calls != NULL && plan->services[s].calls[i] != NULL; i++) {
            graph->callee[count++] = scenario_find(plan, plan->services[s].calls[i]);
        }
    }
    if (made) {
        graph->first[services] = count;
        graph_sort(graph, callers);
    }
    free(callers);
    return made;
}

static void graph_free(struct graph *graph)
{
    free(graph->first);
    free(graph->callee);
    free(graph->order);
    free(graph->offered_milli);
}

/* Calls of a client in the seconds [from, to), in thousandths. One that only keeps connections does not call. */
static uint64_t begun_milli(const struct scenario *plan, const struct world_result *result, uint32_t client,
                            uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    if (plan->clients[client].connections > 0) {
        return 0;
    }
    for (uint32_t s = from; s < to; s++) {
        sum += result->client[client].begun[s] * 1000;
    }
    return sum;
}

/* The calls that a client is to make in a second. Loops depend on the answers: for them, the mean of the calls that
 * they made. */
static uint64_t planned_milli(const struct scenario *plan, const struct world_result *result, uint32_t client)
{
    uint64_t rate = plan->clients[client].rate_milli;
    return rate > 0 ? rate : begun_milli(plan, result, client, 0, result->seconds) / result->seconds;
}

/* Computes the load on lower services from the load that clients offer: services in the order of the graph. */
static void offer_down(struct graph *graph)
{
    const struct scenario *plan = graph->plan;
    uint64_t *offered = graph->offered_milli;
    for (uint32_t at = 0; at < plan->service_count; at++) {
        uint32_t s = graph->order[at];
        for (uint32_t i = graph->first[s]; i < graph->first[s + 1]; i++) {
            offered[graph->callee[i]] += offered[s] * plan->services[s].fan_out;
        }
    }
}

/* Offered load: the attempts that would reach each service if every hop made one attempt for each call. In the seconds
 * [from, to) of a run, or, if that range is empty, as planned for each second. */
static void offer(struct graph *graph, const struct world_result *result, uint32_t from, uint32_t to)
{
    const struct scenario *plan = graph->plan;
    uint64_t *offered = graph->offered_milli;
    memset(offered, 0, plan->service_count * sizeof *offered);
    for (uint32_t c = 0; c < plan->client_count; c++) {
        offered[scenario_find(plan, plan->clients[c].to)] +=
            from < to ? begun_milli(plan, result, c, from, to) : planned_milli(plan, result, c);
    }
    offer_down(graph);
}

/* The same for the calls of the window of the mean: those in the fault, or all where there is none. */
static void offer_window(struct graph *graph, const struct world_result *result)
{
    const struct scenario *plan = graph->plan;
    memset(graph->offered_milli, 0, plan->service_count * sizeof *graph->offered_milli);
    for (uint32_t c = 0; c < plan->client_count; c++) {
        const struct world_client *client = &result->client[c];
        uint64_t calls = plan->fault_count > 0 ? client->calls_fault : client->calls;
        graph->offered_milli[scenario_find(plan, plan->clients[c].to)] += calls * 1000;
    }
    offer_down(graph);
}

/* The same for every second of the run. */
static bool seconds_offer(struct graph *graph, const struct world_result *result, struct measure *measure)
{
    uint32_t services = graph->plan->service_count;
    measure->offered = calloc((size_t)services * result->seconds, sizeof *measure->offered);
    if (measure->offered == NULL) {
        return false;
    }
    for (uint32_t s = 0; s < result->seconds; s++) {
        offer(graph, result, s, s + 1);
        for (uint32_t i = 0; i < services; i++) {
            measure->offered[(size_t)i * result->seconds + s] = graph->offered_milli[i];
        }
    }
    for (uint32_t i = 0; i < services; i++) {
        measure->service[i].offered = measure->offered + (size_t)i * result->seconds;
    }
    return true;
}

uint64_t measure_offered_milli(const struct measure *measure, uint32_t service, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t s = from; s < to; s++) {
        sum += measure->service[service].offered[s];
    }
    return sum;
}

static uint64_t sum_of(const uint64_t *by_second, uint32_t seconds)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < seconds; s++) {
        sum += by_second[s];
    }
    return sum;
}

/* The worst of all bins of so many whole seconds. */
static uint64_t peak(const uint64_t *by_second, uint32_t seconds, uint32_t bin, uint64_t offered)
{
    uint64_t worst = 0;
    for (uint32_t s = 0; s + bin <= seconds; s += bin) {
        uint64_t sum = sum_of(by_second + s, bin);
        worst = sum > worst ? sum : worst;
    }
    return offered == 0 ? 0 : worst * 1000 * PPM / (offered * bin);
}

/* Retries to a service, and its offered load, in some seconds. */
struct traffic {
    uint64_t retries;
    uint64_t offered;
};

static struct traffic traffic(const struct world_result *result, const struct measure *measure, uint32_t service,
                              uint32_t from, uint32_t to)
{
    struct traffic sum = {0, measure_offered_milli(measure, service, from, to) / 1000};
    for (uint32_t s = from; s < to; s++) {
        sum.retries += result->service[service].retried[s];
    }
    return sum;
}

/* Poisson: the variance of a count is its mean. */
static bool is_usual(const struct traffic *now, const struct traffic *before)
{
    uint64_t mean = before->offered == 0 ? 0 : before->retries * now->offered / before->offered;
    uint64_t more = now->retries > mean ? now->retries - mean : 0;
    return now->retries * 100 <= now->offered || more * more <= 9 * mean;
}

static uint32_t retries_stop(const struct scenario *plan, const struct world_result *result,
                             const struct measure *measure, uint32_t fault_at, uint32_t from)
{
    uint32_t stop = from;
    for (uint32_t service = 0; service < plan->service_count; service++) {
        struct traffic before = traffic(result, measure, service, 0, fault_at);
        for (uint32_t s = from; s + 5 <= result->seconds; s += 5) {
            struct traffic now = traffic(result, measure, service, s, s + 5);
            stop = !is_usual(&now, &before) && s + 5 > stop ? s + 5 : stop;
        }
    }
    return stop + 5 > result->seconds ? MEASURE_NEVER : stop - from;
}

uint64_t measure_retry_ratio_ppm(const struct world_sent *sent)
{
    return share(sent->retries, sent->first);
}

static uint64_t queue_most(const struct world_result *result, uint32_t service)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < result->seconds; s++) {
        uint64_t queue = result->service[service].queue[s];
        most = queue > most ? queue : most;
    }
    return most;
}

bool measure_is_bounded(const struct scenario *plan)
{
    bool bounded = true;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        bounded = bounded && plan->clients[c].rate_milli == 0 && plan->clients[c].calls > 0;
    }
    return bounded;
}

static uint64_t completed_us(const struct scenario *plan, const struct world_result *result)
{
    becalm_ns last = 0;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        if (result->client[c].ended < (uint64_t)plan->clients[c].calls * plan->clients[c].callers) {
            return MEASURE_NEVER_US;
        }
        last = becalm_ns_max(last, result->client[c].ended_at);
    }
    return last / BECALM_US;
}

static void recoveries(const struct world_service *counts, struct measure_service *service)
{
    for (uint32_t i = 0; i < counts->recovery_count; i++) {
        const struct world_recovery *recovery = &counts->recovery[i];
        service->falls += recovery->fell_at != BECALM_NEVER;
        service->worst_100ms =
            recovery->worst_100ms > service->worst_100ms ? recovery->worst_100ms : service->worst_100ms;
    }
}

static void services_take(struct graph *graph, const struct world_result *result, struct measure *measure)
{
    const struct scenario *plan = graph->plan;
    uint64_t local = 0;
    uint64_t in_window = 0;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        local += result->client[c].local_fault;
        in_window += result->client[c].calls_fault;
        measure->calls += result->client[c].calls;
        measure->connections += (uint64_t)plan->clients[c].connections * plan->clients[c].callers;
    }
    measure->failed_locally_ppm = share(local, in_window);
    offer_window(graph, result);
    for (uint32_t i = 0; i < plan->service_count; i++) {
        const struct world_service *counts = &result->service[i];
        uint64_t reached = plan->fault_count > 0 ? counts->arrivals_fault : sum_of(counts->arrivals, result->seconds);
        uint64_t refused = plan->fault_count > 0 ? counts->refused_fault : 0; /* without a fault, every host listens */
        uint64_t offered = graph->offered_milli[i];
        measure->service[i].mean_ppm = offered == 0 ? MEASURE_NO_MEAN : share(reached * 1000, offered);
        measure->service[i].refused_ppm = offered == 0 ? MEASURE_NO_MEAN : share(refused * 1000, offered);
    }
    offer(graph, result, 0, 0);
    for (uint32_t i = 0; i < plan->service_count; i++) {
        struct measure_service *service = &measure->service[i];
        uint64_t offered = graph->offered_milli[i];
        service->offered_milli = offered;
        service->peak_1s_ppm = peak(result->service[i].arrivals, result->seconds, 1, offered);
        service->peak_5s_ppm = peak(result->service[i].arrivals, result->seconds, 5, offered);
        service->refused_1s_ppm = peak(result->service[i].refused, result->seconds, 1, offered);
        service->refused_5s_ppm = peak(result->service[i].refused, result->seconds, 5, offered);
        service->effects = result->service[i].effects;
        recoveries(&result->service[i], service);
        service->queue_most = queue_most(result, i);
        service->attempts = result->service[i].first + result->service[i].retries;
        service->retry_ratio_ppm = share(result->service[i].retries, result->service[i].first);
        for (uint32_t e = 0; e < plan->services[i].endpoint_count; e++) {
            uint64_t ratio = measure_retry_ratio_ppm(&result->service[i].endpoint[e]);
            service->endpoint_ratio_ppm = ratio > service->endpoint_ratio_ppm ? ratio : service->endpoint_ratio_ppm;
        }
    }
}

int measure_take(const struct scenario *plan, const struct world_result *result, struct measure *measure)
{
    memset(measure, 0, sizeof *measure);
    struct graph graph;
    bool made = graph_make(&graph, plan);
    measure->service = calloc(plan->service_count, sizeof *measure->service);
    if (!made || measure->service == NULL || !seconds_offer(&graph, result, measure)) {
        graph_free(&graph);
        measure_free(measure);
        return BECALM_ENOMEM;
    }
    successes(plan, result, measure);
    measure->fairness_ppm = fairness(plan, result);
    struct fault_span span;
    measure->recovered_after_s = measure->retries_stop_after_s = MEASURE_NEVER;
    if (scenario_fault_span(plan, &span)) {
        uint32_t from = (uint32_t)(span.at / BECALM_S);
        uint32_t to = (uint32_t)(becalm_ns_min(becalm_ns_after(span.over_at, BECALM_S - 1), plan->length) / BECALM_S);
        measure->recovered_after_s = recovered(plan, result, to);
        measure->retries_stop_after_s = retries_stop(plan, result, measure, from, to);
    }
    measure->latency_mean_us = result->latency.count == 0 ? 0 : result->latency.sum_us / result->latency.count;
    measure->completed_us = measure_is_bounded(plan) ? completed_us(plan, result) : MEASURE_NEVER_US;
    measure->latency_p50_us = world_latency_us(&result->latency, 500000);
    measure->latency_p99_us = world_latency_us(&result->latency, 990000);
    measure->latency_p50_in_fault_us = world_latency_us(&result->latency_fault, 500000);
    measure->latency_p999_us = world_latency_us(&result->latency, 999000);
    services_take(&graph, result, measure);
    graph_free(&graph);
    return 0;
}

void measure_free(struct measure *measure)
{
    free(measure->service);
    free(measure->offered);
    measure->service = NULL;
    measure->offered = NULL;
}
