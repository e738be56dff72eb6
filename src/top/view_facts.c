/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <becalm/breaker.h>

#include <string.h>

#define LABEL_WIDTH 12

static void begin(struct screen *s, const char *label)
{
    screen_field(s, SCREEN_STRONG, LABEL_WIDTH, label);
}

/* " (charge)", where it is not the service's own. */
static void put_endpoint(struct screen *s, const struct state_service *service, const struct state_endpoint *endpoint)
{
    if (endpoint != service->endpoint) {
        screen_put(s, SCREEN_PLAIN, " (%s)", endpoint->name);
    }
}

/* ---- breaker ---- */

/* The worse the higher. */
static uint32_t breaker_rank(const struct state_breaker *breaker)
{
    static const enum becalm_breaker_state order[] = {BECALM_BREAKER_CLOSED,   BECALM_BREAKER_METRICS_ONLY,
                                                      BECALM_BREAKER_DISABLED, BECALM_BREAKER_HALF_OPEN,
                                                      BECALM_BREAKER_OPEN,     BECALM_BREAKER_FORCED_OPEN};
    uint32_t rank = sizeof order / sizeof order[0];
    while (rank > 0 && strcmp(becalm_breaker_word(order[rank - 1]), breaker->state) != 0) {
        rank--;
    }
    return rank;
}

static enum screen_mark breaker_mark(const struct state_breaker *breaker)
{
    uint32_t rank = breaker_rank(breaker);
    return rank >= 5 ? SCREEN_BAD : rank == 4 ? SCREEN_WARN : SCREEN_PLAIN;
}

static void draw_breaker(struct screen *s, const struct state_service *service)
{
    char text[SCREEN_FIGURE_MAX];
    uint32_t not_closed = 0;
    const struct state_endpoint *worst = &service->endpoint[0];
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        const struct state_endpoint *endpoint = &service->endpoint[i];
        not_closed += breaker_rank(&endpoint->breaker) > 1;
        worst = breaker_rank(&endpoint->breaker) > breaker_rank(&worst->breaker) ? endpoint : worst;
    }
    begin(s, "breaker");
    screen_put(s, breaker_mark(&worst->breaker), "%s", worst->breaker.state);
    put_endpoint(s, service, worst);
    if (worst->breaker.retest == 0) {
        screen_put(s, SCREEN_PLAIN, ", tries again with the next call");
    } else if (worst->breaker.retest != STATE_NONE) {
        screen_put(s, SCREEN_PLAIN, ", tries again in %s", screen_time(worst->breaker.retest, text));
    }
    if (worst->breaker.calls > 0) {
        screen_put(s, SCREEN_PLAIN, ", %s", screen_count(worst->breaker.failed, text));
        screen_put(s, SCREEN_PLAIN, " of %s calls failed", screen_count(worst->breaker.calls, text));
    }
    if (worst->breaker.slow > 0) {
        screen_put(s, SCREEN_PLAIN, ", %s slow", screen_count(worst->breaker.slow, text));
    }
    if (not_closed > 1) {
        screen_put(s, SCREEN_PLAIN, "; %u of %u breakers not closed", not_closed, service->endpoint_count);
    }
    screen_line(s);
}

/* ---- budget, limit, queue ---- */

/* Does x leave a smaller part of itself? */
static bool is_emptier(const struct state_budget *x, const struct state_budget *y)
{
    if (x->left == STATE_NONE || y->left == STATE_NONE || x->cap == STATE_NONE || y->cap == STATE_NONE) {
        return x->left < y->left;
    }
    return (double)x->left * (double)y->cap < (double)y->left * (double)x->cap;
}

static void draw_budget(struct screen *s, const struct state_service *service)
{
    char text[SCREEN_FIGURE_MAX];
    const struct state_endpoint *worst = &service->endpoint[0];
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        worst = is_emptier(&service->endpoint[i].budget, &worst->budget) ? &service->endpoint[i] : worst;
    }
    const struct state_budget *budget = &worst->budget;
    begin(s, "budget");
    screen_put(s, SCREEN_PLAIN, "%s: ", budget->kind);
    if (budget->left == STATE_NONE) {
        screen_put(s, SCREEN_PLAIN, "no limit");
    } else {
        bool empty = budget->left < 1000000;
        screen_put(s, empty ? SCREEN_WARN : SCREEN_PLAIN, "%s%s", empty ? "! " : "", screen_tokens(budget->left, text));
        if (budget->cap != STATE_NONE) {
            screen_put(s, SCREEN_PLAIN, " of %s", screen_tokens(budget->cap, text));
        }
        screen_put(s, SCREEN_PLAIN, " retries left");
    }
    put_endpoint(s, service, worst);
    if (worst->service_budget.kind[0] != '\0' && worst->service_budget.left != STATE_NONE) {
        screen_put(s, SCREEN_PLAIN, ", the service's %s", screen_tokens(worst->service_budget.left, text));
    }
    screen_put(s, SCREEN_PLAIN, ", retries are %s of the calls", screen_share(budget->retry_ratio, text));
    screen_line(s);
}

/* Is x nearer to its limit? One without a limit is the furthest. */
static bool is_fuller(const struct state_limit *x, const struct state_limit *y)
{
    if (x->now == STATE_NONE || y->now == STATE_NONE) {
        return x->now < y->now;
    }
    return (double)x->in_flight * (double)y->now > (double)y->in_flight * (double)x->now;
}

static void draw_limit(struct screen *s, const struct state_service *service)
{
    char text[SCREEN_FIGURE_MAX];
    const struct state_endpoint *worst = &service->endpoint[0];
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        worst = is_fuller(&service->endpoint[i].limit, &worst->limit) ? &service->endpoint[i] : worst;
    }
    begin(s, "in flight");
    screen_put(s, SCREEN_PLAIN, "%s", screen_count(worst->limit.in_flight, text));
    if (worst->limit.now == STATE_NONE) {
        screen_put(s, SCREEN_PLAIN, ", no limit");
    } else {
        screen_put(s, SCREEN_PLAIN, ", limit %s", screen_count(worst->limit.now, text));
    }
    put_endpoint(s, service, worst);
    screen_line(s);
}

static void draw_queue(struct screen *s, const struct state_service *service)
{
    char text[SCREEN_FIGURE_MAX];
    uint64_t waiting = 0;
    const struct state_endpoint *worst = &service->endpoint[0];
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        const struct state_gate *gate = &service->endpoint[i].gate;
        waiting += gate->shared ? 0 : gate->waiting;
        worst = gate->shed_share > worst->gate.shed_share ? &service->endpoint[i] : worst;
    }
    begin(s, "queue");
    screen_put(s, SCREEN_PLAIN, "%s %s", screen_count(waiting, text), waiting == 1 ? "call waits" : "calls wait");
    if (worst->gate.shed_share > 0) {
        screen_put(s, SCREEN_WARN, ", ! refuses %s", screen_share(worst->gate.shed_share, text));
        put_endpoint(s, service, worst);
    }
    if (worst->gate.overloaded) {
        screen_put(s, SCREEN_WARN, ", ! overloaded");
    }
    screen_line(s);
}

/* ---- hosts ---- */

static void draw_hosts(struct screen *s, const struct state_service *service)
{
    char text[SCREEN_FIGURE_MAX];
    uint32_t usable = 0;
    uint32_t ejected = 0;
    uint32_t unhealthy = 0;
    for (uint32_t i = 0; i < service->host_count; i++) {
        usable += service->host[i].usable;
        ejected += service->host[i].ejected;
        unhealthy += service->host[i].unhealthy;
    }
    begin(s, "hosts");
    screen_put(s, usable == 0 ? SCREEN_BAD : SCREEN_PLAIN, "%s%u of %u usable", usable == 0 ? "!! " : "", usable,
               service->host_count);
    if (unhealthy > 0 && unhealthy == service->host_count) {
        screen_put(s, SCREEN_WARN, ", ! all fail their health checks, still used");
    } else if (unhealthy > 0) {
        screen_put(s, SCREEN_WARN, ", ! %u unhealthy", unhealthy);
    }
    if (ejected > 0 && service->ejections_ignored) {
        screen_put(s, SCREEN_WARN, ", ! %u of them fail, still used:", ejected);
    } else if (ejected > 0) {
        screen_put(s, SCREEN_WARN, ", ! %u ejected:", ejected);
    }
    for (uint32_t i = 0; i < service->host_count; i++) {
        const struct state_host *host = &service->host[i];
        if (host->ejected && service->ejections_ignored) {
            screen_put(s, SCREEN_PLAIN, " %s", host->name);
        } else if (host->ejected) {
            screen_put(s, SCREEN_PLAIN, " %s for %s", host->name, screen_time(host->ejected_for, text));
        }
    }
    screen_line(s);
}

/* ---- refusals by reason ---- */

/* The most frequent first. */
static void draw_reasons(struct screen *s, const char *label, const uint64_t rate[STATE_REASONS])
{
    char text[SCREEN_FIGURE_MAX];
    bool told[STATE_REASONS] = {false};
    bool any = false;
    begin(s, label);
    for (;;) {
        uint32_t most = STATE_REASONS;
        for (uint32_t i = 0; i < STATE_REASONS; i++) {
            bool more = most == STATE_REASONS || rate[i] > rate[most];
            most = rate[i] > 0 && !told[i] && more ? i : most;
        }
        if (most == STATE_REASONS) {
            break;
        }
        told[most] = true;
        screen_put(s, SCREEN_PLAIN, "%s%s %s/s", any ? ", " : "", state_reason_word(most),
                   screen_rate(rate[most], text));
        any = true;
    }
    screen_put(s, SCREEN_PLAIN, any ? "" : "none");
    screen_line(s);
}

void view_facts_draw(const struct table_row *row, struct screen *s)
{
    const struct state_service *service = row->service;
    if (service->endpoint_count == 0) { /* no gateway says so */
        return;
    }
    draw_breaker(s, service);
    draw_budget(s, service);
    draw_limit(s, service);
    draw_queue(s, service);
    draw_hosts(s, service);
    draw_reasons(s, "refused", &row->figures.rate[STATE_REFUSED]);
    draw_reasons(s, "not retried", &row->figures.rate[STATE_NOT_RETRIED]);
}
