/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "proxy/gateway_shared.h"
#include "proxy/view.h"

#include <string.h>

/* Attempts to hosts that no service names. */

/* Ports that a pattern without one stands for. */
#define HTTP_PORT  80u
#define HTTPS_PORT 443u

static bool is_pattern(const char *host)
{
    return host[0] == '*' || host[0] == ':' || host[0] == '\0';
}

static bool has_port(const char *host)
{
    const char *end = strrchr(host, ']');
    const char *colon = strchr(end == NULL ? host : end, ':');
    return colon != NULL && (end != NULL || strchr(colon + 1, ':') == NULL);
}

const char *exchange_passing(struct exchange *exchange, const struct route *route)
{
    const struct snapshot *snapshot = exchange->view->snapshot;
    union address_socket address;
    struct passing_name name;
    if (!snapshot->door[exchange->origin.door].passes) {
        return "this listener passes no host that no service names";
    }
    if (!passing_name_read(exchange->host_name, &name)) {
        return "this host can't be looked up";
    }
    if (!has_port(route->match->host) && name.port != HTTP_PORT && name.port != HTTPS_PORT) {
        return "match.host of this service does not name the port";
    }
    exchange->named = name.written = !is_pattern(route->match->host);
    if (passing_literal(&name, &address) && !name.written && passing_guards(&address)) {
        return "this address is passed only where match.host names it";
    }
    return NULL;
}

/* Keeps the host for a while after the attempt, with its connections. */
static void keep(struct worker *worker, struct upstream_host *host)
{
    const union address_socket *address = &host->address;
    uint64_t hash = peer_hash(&worker->gateway->peer_key, address, address_length(address));
    struct upstream_host **place = &worker->passed[hash % WORKER_PASSED];
    if (*place == host) {
        return;
    }
    host->users++;
    if (*place != NULL) {
        upstream_host_drop(*place);
    }
    *place = host;
}

void passing_hosts_drop(struct worker *worker)
{
    for (uint32_t i = 0; i < WORKER_PASSED; i++) {
        if (worker->passed[i] != NULL) {
            upstream_host_drop(worker->passed[i]);
            worker->passed[i] = NULL;
        }
    }
}

static void wait(struct attempt *attempt)
{
    struct worker *worker = attempt->exchange->worker;
    attempt->unnamed_next = worker->unnamed;
    attempt->unnamed_link = &worker->unnamed;
    if (attempt->unnamed_next != NULL) {
        attempt->unnamed_next->unnamed_link = &attempt->unnamed_next;
    }
    worker->unnamed = attempt;
}

static void wait_end(struct attempt *attempt)
{
    *attempt->unnamed_link = attempt->unnamed_next;
    if (attempt->unnamed_next != NULL) {
        attempt->unnamed_next->unnamed_link = attempt->unnamed_link;
    }
    attempt->unnamed_link = NULL;
}

static bool host_set(struct attempt *attempt, const union address_socket *address)
{
    struct worker *worker = attempt->exchange->worker;
    struct upstream_pool pool = view_pool(worker, attempt->exchange->view->snapshot->settings);
    attempt->host =
        upstream_host_use(worker, &(struct upstream_place){.address = address, .protocol = UPSTREAM_H1}, &pool);
    attempt->borrowed = attempt->host != NULL;
    if (attempt->borrowed) {
        keep(worker, attempt->host);
    }
    return attempt->borrowed;
}

static enum passing_found find(const struct attempt *attempt, union address_socket *address)
{
    const struct exchange *exchange = attempt->exchange;
    struct worker *worker = exchange->worker;
    struct passing_name name;
    bool read = passing_name_read(exchange->host_name, &name);
    BECALM_ASSERT(read); /* exchange_passing() has */
    name.written = exchange->named;
    return passing_find(&worker->gateway->passing, &name, worker->loop.now, becalm_rand_next(&worker->loop.random),
                        address);
}

enum attempt_place attempt_place(struct attempt *attempt, const char **why)
{
    union address_socket address;
    switch (find(attempt, &address)) {
    case PASSING_READY:
        return host_set(attempt, &address) ? ATTEMPT_PLACED : ATTEMPT_NOWHERE;
    case PASSING_LATER:
        wait(attempt);
        return ATTEMPT_UNNAMED;
    case PASSING_GUARDED:
        *why = "the name leads to addresses that are passed only where match.host names it";
        return ATTEMPT_NOWHERE;
    case PASSING_NONE:
    case PASSING_FULL:
        return ATTEMPT_NOWHERE;
    }
    BECALM_UNREACHABLE();
}

void attempt_unplace(struct attempt *attempt)
{
    if (attempt->unnamed_link != NULL) {
        wait_end(attempt);
    }
    if (attempt->borrowed) {
        attempt->borrowed = false;
        upstream_host_drop(attempt->host);
    }
}

/* An attempt that must go on waiting is put back into the worker's list; attempts that are still in the old list may
 * end while others are started. */
void attempts_named(struct worker *worker)
{
    struct attempt *waiting = worker->unnamed;
    worker->unnamed = NULL;
    if (waiting != NULL) {
        waiting->unnamed_link = &waiting;
    }
    while (waiting != NULL) {
        struct attempt *attempt = waiting;
        wait_end(attempt);
        attempt_go(attempt);
    }
}
