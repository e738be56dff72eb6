/* SPDX-License-Identifier: MIT */
/* Clients that stay connected. A reconnection is a retry like any other, and there is one for every connection that a
 * service had when it failed: the herd. A client that reconnects waits by the policy's backoff and takes a place under
 * the policy's limit, which caps the connects in progress. It never gives up, and no other part of the policy is used.
 */
#include "world_internal.h"

#include <stdlib.h>

#define BIN (100 * BECALM_MS) /* the capacity for connects is counted in bins of this length */

enum connection_state { CONNECTED, WAITING, IN_LINE, CONNECTING, ACCEPTED };

struct connection {
    enum connection_state state;
    uint32_t tries; /* since it broke */
    uint32_t falls; /* ACCEPTED: how often the service had fallen by then */
    uint32_t next;  /* IN_LINE: the one behind it */
    becalm_ns previous;
    struct becalm_slot slot;
};

/* Those of one caller that wait for a place, first come first served. */
struct line {
    uint32_t first;
    uint32_t last;
};

static struct connection *connection_at(const struct world *w, uint32_t client, uint32_t id)
{
    return &w->connections[client].all[id];
}

static uint32_t caller_of(const struct world *w, uint32_t client, uint32_t id)
{
    return id / w->plan->clients[client].connections;
}

/* The policy of a client's connections: that of its hop. Hops of clients come first, so their index is the client's. */
static const struct becalm_policy *policy_of(const struct world *w, uint32_t client)
{
    return &w->hop[client].rules[0].policy;
}

static bool is_anybody_connecting(struct world *w, uint32_t client, uint32_t caller)
{
    const struct becalm_limit *limit = hop_limit(w, &w->hop[client], caller);
    return limit != NULL && becalm_limit_in_flight(limit) > 0;
}

static void plan_connection(struct world *w, enum event_kind kind, becalm_ns after, uint32_t client, uint32_t id)
{
    clock_plan(
        &w->clock,
        (struct event){.at = becalm_ns_after(w->clock.now, after), .kind = kind, .id = id, .generation = client});
}

static void connection_waits(struct world *w, uint32_t client, uint32_t id)
{
    struct connection *connection = connection_at(w, client, id);
    struct becalm_wait wait;
    connection->state = WAITING;
    becalm_backoff_wait(&policy_of(w, client)->backoff,
                        &(struct becalm_backoff_draw){
                            .n = ++connection->tries,
                            .previous = connection->previous,
                            .hint = BECALM_NEVER,
                            .random = becalm_rand_next(&w->policy_state),
                        },
                        &wait);
    connection->previous = wait.jittered;
    plan_connection(w, CONNECTION_TRIES, wait.wait, client, id);
}

static void line_join(struct world *w, uint32_t client, uint32_t id)
{
    struct line *line = &w->connections[client].line[caller_of(w, client, id)];
    connection_at(w, client, id)->state = IN_LINE;
    connection_at(w, client, id)->next = NOTHING;
    if (line->first == NOTHING) {
        line->first = id;
    } else {
        connection_at(w, client, line->last)->next = id;
    }
    line->last = id;
}

/* False: there is no place for it. */
static bool connection_sends(struct world *w, uint32_t client, uint32_t id)
{
    struct hop *hop = &w->hop[client];
    struct connection *connection = connection_at(w, client, id);
    const struct becalm_policy *policy = policy_of(w, client);
    struct becalm_limit *limit = hop_limit(w, hop, caller_of(w, client, id));
    struct becalm_moment at = world_moment(w);
    if (limit != NULL && !becalm_limit_admit(limit, &policy->limit, &at, policy->attempt_timeout, &connection->slot)) {
        return false;
    }
    struct world_service *counts = &w->result->service[hop->to];
    counts->first += connection->tries == 0;
    counts->retries += connection->tries > 0;
    connection->state = CONNECTING;
    plan_connection(w, CONNECTION_ARRIVES, link_takes(w, &w->hop[client].link), client, id);
    return true;
}

void connection_tries(struct world *w, uint32_t client, uint32_t id)
{
    uint32_t caller = caller_of(w, client, id);
    bool behind = w->connections[client].line[caller].first != NOTHING;
    if (!behind && connection_sends(w, client, id)) {
        return;
    }
    if (behind || is_anybody_connecting(w, client, caller)) {
        line_join(w, client, id);
    } else {
        connection_waits(w, client, id); /* no connection is being made that could wake it */
    }
}

static void line_serve(struct world *w, uint32_t client, uint32_t caller)
{
    struct line *line = &w->connections[client].line[caller];
    while (line->first != NOTHING) {
        uint32_t id = line->first;
        uint32_t next = connection_at(w, client, id)->next;
        if (!connection_sends(w, client, id)) {
            if (is_anybody_connecting(w, client, caller)) {
                return;
            }
            connection_waits(w, client, id);
        }
        line->first = next;
    }
}

/* ---- at the service ---- */

bool service_is_down(const struct service *service)
{
    return service->dead || service->refuses || service->fallen;
}

static struct world_recovery *recovery_now(const struct world *w, uint32_t service)
{
    struct world_service *counts = &w->result->service[service];
    return counts->recovery_count == 0 ? NULL : &counts->recovery[counts->recovery_count - 1];
}

void service_falls(struct world *w, uint32_t service)
{
    w->service[service].falls++;
    for (uint32_t client = 0; client < w->plan->client_count; client++) {
        uint32_t count = w->hop[client].to == service ? w->connections[client].count : 0;
        for (uint32_t id = 0; id < count; id++) {
            struct connection *connection = connection_at(w, client, id);
            if (connection->state == CONNECTED) {
                connection->state = WAITING;
                connection->tries = 0;
                connection->previous = 0;
                plan_connection(w, CONNECTION_TRIES, link_takes(w, &w->hop[client].link), client, id);
            }
        }
    }
}

void service_rises(struct world *w, uint32_t service)
{
    struct world_service *counts = &w->result->service[service];
    if (w->service[service].plan->accept_max == SCENARIO_NONE) {
        return; /* the service accepts any number of connects */
    }
    struct world_recovery *more = realloc(counts->recovery, (counts->recovery_count + 1) * sizeof *more);
    if (more == NULL) {
        w->no_memory = true;
        return;
    }
    counts->recovery = more;
    more[counts->recovery_count++] = (struct world_recovery){.at = w->clock.now, .fell_at = BECALM_NEVER};
}

void service_restarted(struct world *w, uint32_t id)
{
    w->service[id].fallen = false;
    if (!service_is_down(&w->service[id])) {
        service_rises(w, id);
    }
}

/* Counts a connection that wants to be made; too many in 100 ms, and the service falls over. */
static void service_accepts(struct world *w, uint32_t id)
{
    struct service *service = &w->service[id];
    struct world_recovery *recovery = recovery_now(w, id);
    uint64_t bin = w->clock.now / BIN;
    service->accepted = bin == service->accept_bin ? service->accepted + 1 : 1;
    service->accept_bin = bin;
    if (recovery != NULL && service->accepted > recovery->worst_100ms) {
        recovery->worst_100ms = service->accepted;
    }
    if (service->accepted <= service->plan->accept_max || service->fallen) {
        return;
    }
    service->fallen = true;
    if (recovery != NULL) {
        recovery->fell_at = w->clock.now;
    }
    service_falls(w, id);
    clock_plan(
        &w->clock,
        (struct event){.at = becalm_ns_after(w->clock.now, service->plan->restart), .kind = SERVICE_RISES, .id = id});
}

/* Those that come in the same 100 ms as the one too many are counted too: the herd does not know yet. */
static bool is_falling(const struct world *w, const struct service *service)
{
    return service->fallen && !service->dead && !service->refuses && w->clock.now / BIN == service->accept_bin;
}

void connection_arrives(struct world *w, uint32_t client, uint32_t id)
{
    uint32_t to = w->hop[client].to;
    struct service *service = &w->service[to];
    struct connection *connection = connection_at(w, client, id);
    if (w->clock.now < w->plan->length) {
        w->result->service[to].arrivals[second_of(w, w->clock.now)]++;
    }
    w->result->service[to].arrivals_fault += in_fault(w, w->clock.now);
    becalm_ns time = 0; /* no process listens: refused at once */
    if (!service_is_down(service) || is_falling(w, service)) {
        service_accepts(w, to);
    }
    if (!service_is_down(service)) {
        connection->state = ACCEPTED;
        connection->falls = service->falls;
        time = dist_draw(&w->tables, &service->plan->time, &w->service_state);
    }
    plan_connection(w, CONNECTION_ANSWERED, becalm_ns_after(time, link_takes(w, &w->hop[client].link)), client, id);
}

void connection_answered(struct world *w, uint32_t client, uint32_t id)
{
    struct hop *hop = &w->hop[client];
    struct connection *connection = connection_at(w, client, id);
    uint32_t caller = caller_of(w, client, id);
    struct becalm_limit *limit = hop_limit(w, hop, caller);
    bool good = connection->state == ACCEPTED && connection->falls == w->service[hop->to].falls;
    enum becalm_outcome_kind kind = good ? BECALM_OUTCOME_OK : BECALM_OUTCOME_REFUSED;
    struct becalm_moment at = world_moment(w);
    if (limit != NULL) {
        becalm_limit_note(limit, &policy_of(w, client)->limit, &at, &connection->slot,
                          becalm_outcome_traits(kind)->evidence);
        becalm_limit_give(limit, &connection->slot);
    }
    if (good) {
        connection->state = CONNECTED;
    } else {
        connection_waits(w, client, id);
    }
    line_serve(w, client, caller);
}

/* ---- making and counting ---- */

bool connections_make(struct world *w)
{
    w->connections = calloc(w->plan->client_count, sizeof *w->connections);
    for (uint32_t i = 0; w->connections != NULL && i < w->plan->client_count; i++) {
        const struct scenario_client *plan = &w->plan->clients[i];
        struct connections *connections = &w->connections[i];
        if (plan->connections == 0) {
            continue;
        }
        connections->count = plan->connections * plan->callers;
        connections->all = calloc(connections->count, sizeof *connections->all); /* all are CONNECTED */
        connections->line = malloc(plan->callers * sizeof *connections->line);
        if (connections->all == NULL || connections->line == NULL) {
            return false;
        }
        for (uint32_t caller = 0; caller < plan->callers; caller++) {
            connections->line[caller] = (struct line){NOTHING, NOTHING};
        }
    }
    return w->connections != NULL;
}

void connections_free(struct world *w)
{
    for (uint32_t i = 0; w->connections != NULL && i < w->plan->client_count; i++) {
        free(w->connections[i].all);
        free(w->connections[i].line);
    }
    free(w->connections);
}

void connections_second(struct world *w, uint32_t second)
{
    for (uint32_t client = 0; client < w->plan->client_count; client++) {
        struct world_client *counts = &w->result->client[client];
        uint64_t connected = 0;
        for (uint32_t id = 0; id < w->connections[client].count; id++) {
            connected += connection_at(w, client, id)->state == CONNECTED;
        }
        counts->begun[second] += w->connections[client].count;
        counts->good[second] += connected;
        struct world_tally *tally = &counts->phase[phase_of(w, (second + 1) * BECALM_S - 1)]; /* just before its end */
        tally->begun += w->connections[client].count;
        tally->good += connected;
    }
}
