/* SPDX-License-Identifier: MIT */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* More attempts than any call can make: a larger bound has no effect. */
#define UNBOUND (2 * BECALM_RETRIES_MAX * (uint64_t)GRAPH_ONE)

/* ---- sums that saturate ---- */

static becalm_ns times(uint64_t n, becalm_ns each)
{
    return each != 0 && n > BECALM_NEVER / each ? BECALM_NEVER : n * each;
}

/* a * b, both in parts per million, to the nearest. A factor is at most 1001 attempts, or 1 + a budget's thousandfold.
 */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product = a / GRAPH_ONE * b + (a % GRAPH_ONE * b + GRAPH_ONE / 2) / GRAPH_ONE;
    return product < GRAPH_MOST ? product : GRAPH_MOST;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- one hop ---- */

/* The longest that the wait before a retry can be, from its delay by growth and cap. */
static becalm_ns wait_most(const struct becalm_backoff_policy *backoff, becalm_ns delay)
{
    if (backoff->jitter != BECALM_JITTER_PROPORTIONAL) {
        return delay; /* every other jitter only shortens; a custom one is cut at the cap, and no file can have one */
    }
    becalm_ns spread = becalm_ns_scale(delay, backoff->jitter_ppm, 1000000);
    return becalm_ns_min(backoff->cap, becalm_ns_after(delay, spread));
}

/* The delay before retry n + 1, from the one before retry n. */
static becalm_ns delay_next(const struct becalm_backoff_policy *backoff, becalm_ns delay)
{
    if (backoff->jitter == BECALM_JITTER_DECORRELATED) {
        return becalm_ns_scale(delay, 3, 1);
    }
    switch (backoff->growth) {
    case BECALM_GROWTH_CONSTANT:
        return delay;
    case BECALM_GROWTH_LINEAR:
        return becalm_ns_after(delay, backoff->base);
    case BECALM_GROWTH_EXPONENTIAL:
        return becalm_ns_scale(delay, backoff->factor_ppm, 1000000);
    }
    BECALM_UNREACHABLE();
}

becalm_ns graph_waits(const struct becalm_policy *policy)
{
    const struct becalm_backoff_policy *backoff = &policy->backoff;
    becalm_ns sum = 0;
    becalm_ns delay = backoff->base;
    if (backoff->jitter == BECALM_JITTER_DECORRELATED) {
        delay = becalm_ns_scale(delay, 3, 1);
    }
    for (uint32_t left = policy->max_retries; left > 0; left--) {
        becalm_ns now = becalm_ns_min(delay, backoff->cap);
        becalm_ns next = delay_next(backoff, delay);
        if (now == backoff->cap || next == delay) {
            return becalm_ns_after(sum, times(left, wait_most(backoff, now))); /* from here on they are all the same */
        }
        sum = becalm_ns_after(sum, wait_most(backoff, now));
        delay = next;
    }
    return sum;
}

becalm_ns graph_attempt(const struct becalm_policy *policy)
{
    return policy->timeout_kind == BECALM_TIMEOUT_EXACT ? policy->attempt_timeout : policy->deadline;
}

becalm_ns graph_whole(const struct becalm_policy *policy, becalm_ns waits)
{
    if (policy->timeout_kind != BECALM_TIMEOUT_EXACT) {
        return policy->deadline; /* the first attempt alone may take all of it */
    }
    return becalm_ns_after(times(policy->max_retries + UINT64_C(1), policy->attempt_timeout), waits);
}

/* A rate of retries that does not depend on the traffic, as a share of it; UNBOUND if the file does not declare the
 * traffic. `buckets` is the number of these rates in each instance. */
static uint64_t share_of_traffic(const struct becalm_service *service, uint32_t per_second, uint64_t buckets)
{
    uint64_t rate = times(times(per_second, service->instances), buckets);
    if (rate == 0) {
        return 0;
    }
    if (service->traffic_milli == 0 || rate > UINT64_MAX / (1000 * (uint64_t)GRAPH_ONE)) {
        return UNBOUND;
    }
    return least(rate * 1000 * GRAPH_ONE / service->traffic_milli, UNBOUND);
}

/* Tokens a second, rounded up. */
static uint32_t refill_rate(const struct becalm_budget_policy *budget)
{
    if (budget->refill_every == 0) {
        return budget->refill_per_second;
    }
    return (uint32_t)least((BECALM_S + budget->refill_every - 1) / budget->refill_every, UINT32_MAX);
}

/* How many attempts per call a budget allows, with the first: in general, and while nothing succeeds. The result is not
 * yet cut at the number of attempts. */
struct bound {
    uint64_t budgeted;
    uint64_t dead;
};

static struct bound bound_of(const struct becalm_budget_policy *budget, const struct becalm_service *service,
                             uint64_t buckets)
{
    uint64_t one = GRAPH_ONE;
    uint64_t share = budget->share_ppm;
    uint64_t floor = 0;
    switch (budget->kind) {
    case BECALM_BUDGET_EARNED: /* a call has one retry that is free, since it ends the call, and lost ones cost no more
                                * than successes earn */
        return (struct bound){2 * one + least(BECALM_EARNED_FAVOUR * share, one), one};
    case BECALM_BUDGET_RATIO:
        floor = share_of_traffic(service, budget->min_per_second, buckets);
        if (budget->of_attempts) { /* r <= p (1 + r) + floor; p is below 1 */
            uint64_t all = one + ((share + floor) * one + one - share - 1) / (one - share);
            return (struct bound){all, all};
        }
        return (struct bound){one + share + floor, one + share + floor};
    case BECALM_BUDGET_TOKENS:
        floor = share_of_traffic(service, refill_rate(budget), buckets);
        return (struct bound){one + floor, one + floor};
    case BECALM_BUDGET_CONCURRENCY: /* while calls fail fast, few are in progress, and the minimum pays for every
                                     * retry */
        return budget->min_concurrency > 0 ? (struct bound){UNBOUND, UNBOUND}
                                           : (struct bound){one + share, one + share};
    case BECALM_BUDGET_ADAPTIVE:
        return (struct bound){one + budget->max_share_ppm, one + budget->min_share_ppm};
    case BECALM_BUDGET_GRPC: /* their tokens are absolute numbers, so they give no bound per call; */
    case BECALM_BUDGET_AWS:  /* but failures alone use them up */
        return (struct bound){UNBOUND, one};
    case BECALM_BUDGET_NONE:
        return (struct bound){UNBOUND, UNBOUND};
    }
    BECALM_UNREACHABLE();
}

/* The budgets that an endpoint's (or the service's own) retries pay from. */
static struct bound bound_at_level(const struct becalm_rules *rules, const struct becalm_service *service)
{
    const struct becalm_budget_policy *shared = &service->rules.policy.budget;
    uint64_t targets = service->endpoint_count + UINT64_C(1);
    struct bound own = bound_of(&rules->policy.budget, service, targets);
    struct bound all = bound_of(shared, service, 1);
    switch (rules->level) {
    case BECALM_LEVEL_ENDPOINT:
        return own;
    case BECALM_LEVEL_SERVICE:
        return all;
    case BECALM_LEVEL_BOTH:
        return (struct bound){least(own.budgeted, all.budgeted), least(own.dead, all.dead)};
    }
    BECALM_UNREACHABLE();
}

/* A shared budget limits the retries of all instances together to its percentage. Its minimum, one retry in ten seconds
 * for all instances, is not counted, nor are the tokens at the start of other kinds. */
static struct bound bound_shared(const struct becalm_rules *rules, struct bound own)
{
    uint64_t most = rules->shared_redis == NULL ? UNBOUND : GRAPH_ONE + (uint64_t)rules->policy.lease.share_ppm;
    return (struct bound){least(own.budgeted, most), least(own.dead, most)};
}

static void time_widen(struct graph_time *time, struct graph_time other)
{
    time->most = becalm_ns_max(time->most, other.most);
    time->times = most(time->times, other.times);
    time->more = becalm_ns_max(time->more, other.more);
}

/* Adds the rules of a service or of one endpoint to its hop. `mode: shadow` is computed as if it were enforced. */
static void hop_add(struct graph_hop *hop, const struct becalm_rules *rules)
{
    const struct becalm_policy *policy = &rules->policy;
    const struct becalm_hedge_policy *hedge = &policy->hedge;
    uint32_t attempts = policy->max_retries + 1;
    struct bound bound = bound_shared(rules, bound_at_level(rules, hop->service));
    becalm_ns waits = graph_waits(policy);
    hop->attempts = attempts > hop->attempts ? attempts : hop->attempts;
    hop->budgeted = most(hop->budgeted, least(bound.budgeted, attempts * (uint64_t)GRAPH_ONE));
    hop->dead = most(hop->dead, least(bound.dead, attempts * (uint64_t)GRAPH_ONE));
    becalm_ns attempt = graph_attempt(policy);
    time_widen(&hop->time,
               (struct graph_time){becalm_ns_min(policy->deadline, graph_whole(policy, waits)), attempts, waits});
    time_widen(&hop->once, (struct graph_time){becalm_ns_min(policy->deadline, attempt), 1, 0});
    if (policy->restart.enabled && !policy->shadow) {
        becalm_ns timeout = becalm_ns_min(policy->deadline, policy->attempt_timeout);
        becalm_ns until_gone = becalm_ns_min(timeout - timeout / 4, BECALM_RESTART_MOST);
        hop->parked = becalm_ns_max(hop->parked, until_gone);
    }
    if (policy->timeout_kind == BECALM_TIMEOUT_LEARNED) {
        hop->unwritten = becalm_ns_max(hop->unwritten, policy->deadline);
    }
    if (hedge->enabled) { /* idempotent calls hedge and all other calls retry: the worse of the two */
        uint32_t sent = hedge->max + 1;
        becalm_ns apart = hedge->delay == 0 ? attempt : becalm_ns_min(hedge->delay, attempt);
        becalm_ns last = times(hedge->max, apart);
        becalm_ns whole = becalm_ns_min(policy->deadline, becalm_ns_after(attempt, last));
        hop->hedges = true;
        hop->attempts = sent > hop->attempts ? sent : hop->attempts;
        hop->budgeted =
            most(hop->budgeted, least(2 * (uint64_t)GRAPH_ONE + hedge->share_ppm, sent * (uint64_t)GRAPH_ONE));
        time_widen(&hop->time, (struct graph_time){whole, 1, last});
    }
}

static void hop_fill(struct graph_hop *hop)
{
    hop->attempts = 1;
    hop->budgeted = GRAPH_ONE;
    hop->dead = GRAPH_ONE;
    if (hop->service == NULL) {
        hop->time = hop->once = (struct graph_time){BECALM_NEVER, 1, 0};
        return;
    }
    hop_add(hop, &hop->service->rules);
    for (uint32_t i = 0; i < hop->service->endpoint_count; i++) {
        hop_add(hop, &hop->service->endpoints[i].rules);
    }
}

/* ---- names ---- */

static uint32_t *place_of(const struct graph *graph, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    }
    uint32_t mask = graph->table_size - 1;
    uint32_t at = (uint32_t)(hash >> 32 ^ hash) & mask;
    while (graph->table[at] != GRAPH_NONE && strcmp(graph->nodes[graph->table[at]].name, name) != 0) {
        at = (at + 1) & mask;
    }
    return &graph->table[at];
}

uint32_t graph_find(const struct graph *graph, const char *name)
{
    return *place_of(graph, name);
}

static uint32_t node_for(struct graph *graph, const char *name)
{
    uint32_t *place = place_of(graph, name);
    if (*place == GRAPH_NONE) {
        *place = graph->node_count;
        graph->nodes[graph->node_count++] = (struct graph_node){.name = name,
                                                                .hop = GRAPH_NONE,
                                                                .before = GRAPH_NONE,
                                                                .begin = GRAPH_NONE,
                                                                .wide_before = GRAPH_NONE,
                                                                .wide_begin = GRAPH_NONE};
    }
    return *place;
}

/* ---- building ---- */

static uint32_t hop_append(struct graph *graph, uint32_t node, const struct becalm_config *config,
                           const struct becalm_service *service)
{
    uint32_t *last = &graph->nodes[node].hop;
    while (*last != GRAPH_NONE) {
        last = &graph->hops[*last].next;
    }
    *last = graph->hop_count;
    graph->hops[graph->hop_count] =
        (struct graph_hop){.config = config, .service = service, .node = node, .next = GRAPH_NONE};
    hop_fill(&graph->hops[graph->hop_count]);
    return graph->hop_count++;
}

/* The rules by which a caller with `config` calls a service: those of its own file, else of another. */
static uint32_t hop_for(struct graph *graph, uint32_t node, const struct becalm_config *config)
{
    for (uint32_t hop = graph->nodes[node].hop; hop != GRAPH_NONE; hop = graph->hops[hop].next) {
        if (graph->hops[hop].config == config) {
            return hop;
        }
    }
    if (graph->nodes[node].hop == GRAPH_NONE) {
        return hop_append(graph, node, NULL, NULL);
    }
    return graph->nodes[node].hop;
}

static void nodes_add(struct graph *graph, const struct becalm_config *const *configs, uint32_t count)
{
    for (uint32_t c = 0; c < count; c++) {
        for (uint32_t s = 0; s < becalm_config_services(configs[c]); s++) {
            const struct becalm_service *service = becalm_config_service(configs[c], s);
            (void)hop_append(graph, node_for(graph, service->name), configs[c], service);
        }
    }
}

/* The edges of each node stand together, though its calls may be written in several files. */
static void edges_add(struct graph *graph)
{
    uint32_t declared = graph->node_count;
    for (uint32_t n = 0; n < declared; n++) {
        graph->nodes[n].edges = graph->edge_count;
        for (uint32_t hop = graph->nodes[n].hop; hop != GRAPH_NONE; hop = graph->hops[hop].next) {
            const struct becalm_service *service = graph->hops[hop].service;
            for (uint32_t i = 0; i < service->call_count; i++) {
                uint32_t to = node_for(graph, service->calls[i]);
                uint32_t by = hop_for(graph, to, graph->hops[hop].config);
                graph->edges[graph->edge_count++] = (struct graph_edge){.from = n, .to = to, .hop = by};
                graph->nodes[to].called = true;
            }
        }
        graph->nodes[n].edge_count = graph->edge_count - graph->nodes[n].edges;
    }
}

static bool graph_allocate(struct graph *graph, const struct becalm_config *const *configs, uint32_t count)
{
    size_t services = 0;
    size_t calls = 0;
    for (uint32_t c = 0; c < count; c++) {
        services += becalm_config_services(configs[c]);
        for (uint32_t s = 0; s < becalm_config_services(configs[c]); s++) {
            calls += becalm_config_service(configs[c], s)->call_count;
        }
    }
    size_t names = services + calls;
    if (names > UINT32_MAX / 8) {
        return false;
    }
    graph->table_size = 16;
    while (graph->table_size < 2 * names) {
        graph->table_size *= 2;
    }
    graph->nodes = calloc(names + 1, sizeof *graph->nodes);
    graph->hops = calloc(names + 1, sizeof *graph->hops);
    graph->edges = calloc(calls + 1, sizeof *graph->edges);
    graph->order = calloc(names + 1, sizeof *graph->order);
    graph->table = malloc(graph->table_size * sizeof *graph->table);
    if (graph->nodes == NULL || graph->hops == NULL || graph->edges == NULL || graph->order == NULL ||
        graph->table == NULL) {
        return false;
    }
    memset(graph->table, 0xff, graph->table_size * sizeof *graph->table);
    return true;
}

/* ---- order and cycles: depth first, without recursion ---- */

enum colour { WHITE, GREY, BLACK };

struct walk {
    uint32_t *stack; /* the nodes from the start to here: all of them are grey */
    uint32_t *next;  /* by node: its next edge to look at */
    unsigned char *colour;
    uint32_t depth;
    uint32_t place; /* where in `order` the next finished node goes: the first to finish has nothing below it */
};

static void walk_enter(struct graph *graph, struct walk *walk, uint32_t node)
{
    walk->colour[node] = GREY;
    walk->next[node] = graph->nodes[node].edges;
    walk->stack[walk->depth++] = node;
}

static void walk_from(struct graph *graph, struct walk *walk, uint32_t start)
{
    walk_enter(graph, walk, start);
    while (walk->depth > 0) {
        uint32_t node = walk->stack[walk->depth - 1];
        if (walk->next[node] == graph->nodes[node].edges + graph->nodes[node].edge_count) {
            walk->colour[node] = BLACK;
            graph->order[--walk->place] = node;
            walk->depth--;
            continue;
        }
        struct graph_edge *edge = &graph->edges[walk->next[node]++];
        if (walk->colour[edge->to] == GREY) {
            edge->back = true;
        } else if (walk->colour[edge->to] == WHITE) {
            walk_enter(graph, walk, edge->to);
        }
    }
}

/* Roots are services without a caller; of a cycle without a caller, the first service in the file is a root. */
static bool graph_walk(struct graph *graph)
{
    size_t count = graph->node_count + (size_t)1;
    struct walk walk = {
        .stack = calloc(count, sizeof *walk.stack),
        .next = calloc(count, sizeof *walk.next),
        .colour = calloc(count, 1),
        .place = graph->node_count,
    };
    bool fine = walk.stack != NULL && walk.next != NULL && walk.colour != NULL;
    for (uint32_t n = 0; fine && n < graph->node_count; n++) {
        if (!graph->nodes[n].called) {
            walk_from(graph, &walk, n);
        }
    }
    for (uint32_t n = 0; fine && n < graph->node_count; n++) {
        if (walk.colour[n] == WHITE) {
            walk_from(graph, &walk, n);
        }
    }
    free(walk.stack);
    free(walk.next);
    free(walk.colour);
    return fine;
}

/* ---- the figures ---- */

/* A gateway is between clients and roots; its file says whether it retries. */
struct graph_entry graph_entry(const struct graph *graph, uint32_t node)
{
    const struct graph_node *at = &graph->nodes[node];
    struct graph_entry entry = {.hop = GRAPH_NONE};
    for (uint32_t hop = at->root ? at->hop : GRAPH_NONE; hop != GRAPH_NONE; hop = graph->hops[hop].next) {
        const struct becalm_settings *settings = becalm_config_settings(graph->hops[hop].config);
        bool first = entry.hop == GRAPH_NONE;
        if (settings->role == BECALM_ROLE_GATEWAY && (first || (settings->gateway_retries && !entry.retries))) {
            entry = (struct graph_entry){.hop = hop, .retries = settings->gateway_retries};
        }
    }
    if (at->root && at->edge_count == 0 && !entry.retries) {
        /* The service has no caller in the files and calls no service: its rules must be for a caller outside the
         * graph. */
        entry = (struct graph_entry){.hop = at->hop, .retries = true};
    }
    return entry;
}

/* The time of a call at `outer`, whose attempts take as long as `inner` can. */
static struct graph_time time_inside(struct graph_time outer, struct graph_time inner)
{
    return (struct graph_time){
        .most = becalm_ns_min(outer.most, becalm_ns_after(times(outer.times, inner.most), outer.more)),
        .times = times(outer.times, inner.times),
        .more = becalm_ns_after(times(outer.times, inner.more), outer.more),
    };
}

static void node_start(const struct graph *graph, uint32_t node)
{
    struct graph_node *at = &graph->nodes[node];
    struct graph_entry entry = graph_entry(graph, node);
    at->begin = node;
    at->wide_begin = node;
    at->layers_before = GRAPH_NONE;
    at->unbudgeted = at->budgeted = at->dead = GRAPH_ONE;
    at->time = (struct graph_time){BECALM_NEVER, 1, 0};
    if (entry.retries) {
        const struct graph_hop *hop = &graph->hops[entry.hop];
        at->unbudgeted = hop->attempts * (uint64_t)GRAPH_ONE;
        at->budgeted = hop->budgeted;
        at->dead = hop->dead;
        at->time = hop->time;
    } else if (entry.hop != GRAPH_NONE) {
        at->time = graph->hops[entry.hop].once;
    }
    at->marked = at->budgeted;
}

static void edge_relax(struct graph *graph, const struct graph_edge *edge)
{
    const struct graph_node *from = &graph->nodes[edge->from];
    const struct graph_hop *hop = &graph->hops[edge->hop];
    struct graph_node *to = &graph->nodes[edge->to];
    bool retries = hop->attempts > 1;
    bool first = to->begin == GRAPH_NONE;
    uint64_t unbudgeted = multiply(from->unbudgeted, hop->attempts * (uint64_t)GRAPH_ONE);
    uint64_t budgeted = multiply(from->budgeted, hop->budgeted);
    if (first || budgeted > to->budgeted || (budgeted == to->budgeted && unbudgeted > to->unbudgeted)) {
        to->before = edge->from;
        to->begin = from->begin;
    }
    if (first || unbudgeted > to->unbudgeted || (unbudgeted == to->unbudgeted && budgeted > to->budgeted)) {
        to->wide_before = edge->from;
        to->wide_begin = from->wide_begin;
    }
    to->unbudgeted = most(to->unbudgeted, unbudgeted);
    to->budgeted = most(to->budgeted, budgeted);
    to->dead = most(to->dead, multiply(from->dead, hop->dead));
    /* A hop that may not retry sets no mark: then the nearest hop above that retries does. */
    to->marked = most(to->marked, retries ? hop->budgeted : from->marked);
    time_widen(&to->time, time_inside(from->time, hop->time));
    uint32_t layers = from->layers + retries;
    if (first || layers > to->layers || (layers == to->layers && retries && !to->layers_last)) {
        to->layers = layers;
        to->layers_before = edge->from;
        to->layers_last = retries;
    }
}

static void graph_figure(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint32_t n = graph->order[i];
        struct graph_node *node = &graph->nodes[n];
        node->root = node->begin == GRAPH_NONE; /* a cycle may have a caller that was found later */
        if (node->root) {
            node_start(graph, n);
        }
        for (uint32_t e = 0; e < node->edge_count; e++) {
            const struct graph_edge *edge = &graph->edges[node->edges + e];
            if (!edge->back) {
                edge_relax(graph, edge);
            }
        }
    }
    for (uint32_t i = graph->node_count; i-- > 0;) {
        struct graph_node *node = &graph->nodes[graph->order[i]];
        for (uint32_t e = 0; e < node->edge_count; e++) {
            const struct graph_edge *edge = &graph->edges[node->edges + e];
            node->below =
                node->below || (!edge->back && (graph->hops[edge->hop].attempts > 1 || graph->nodes[edge->to].below));
        }
    }
}

int graph_build(struct graph **graph, const struct becalm_config *const *configs, uint32_t count)
{
    struct graph *made = calloc(1, sizeof *made);
    *graph = NULL;
    if (made == NULL || !graph_allocate(made, configs, count)) {
        goto fail;
    }
    nodes_add(made, configs, count);
    edges_add(made);
    if (!graph_walk(made)) {
        goto fail;
    }
    graph_figure(made);
    *graph = made;
    return 0;
fail:
    graph_free(made);
    return BECALM_ENOMEM;
}

void graph_free(struct graph *graph)
{
    if (graph != NULL) {
        free(graph->nodes);
        free(graph->hops);
        free(graph->edges);
        free(graph->order);
        free(graph->table);
        free(graph);
    }
}

static uint32_t node_before(const struct graph_node *node, enum graph_way way)
{
    switch (way) {
    case GRAPH_BY_UNBUDGETED:
        return node->wide_before;
    case GRAPH_BY_LAYERS:
        return node->layers_before;
    case GRAPH_BY_BUDGETED:
        return node->before;
    }
    BECALM_UNREACHABLE();
}

uint32_t graph_path(const struct graph *graph, uint32_t node, enum graph_way way, uint32_t path[GRAPH_PATH_MAX])
{
    uint32_t count = 0;
    uint32_t at = node;
    while (at != GRAPH_NONE && count < GRAPH_PATH_MAX) {
        path[count++] = at;
        at = node_before(&graph->nodes[at], way);
    }
    if (at != GRAPH_NONE) { /* too long to read: show the root, a gap, and the end of the path */
        path[GRAPH_PATH_MAX - 1] =
            way == GRAPH_BY_UNBUDGETED ? graph->nodes[node].wide_begin : graph->nodes[node].begin;
        path[GRAPH_PATH_MAX - 2] = GRAPH_NONE;
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t swap = path[i];
        path[i] = path[count - 1 - i];
        path[count - 1 - i] = swap;
    }
    return count;
}

const struct graph_hop *graph_hop_between(const struct graph *graph, uint32_t from, uint32_t to)
{
    const struct graph_node *node = &graph->nodes[from];
    const struct graph_hop *found = NULL;
    for (uint32_t e = 0; e < node->edge_count; e++) {
        const struct graph_edge *edge = &graph->edges[node->edges + e];
        const struct graph_hop *hop = &graph->hops[edge->hop];
        if (edge->to == to && (found == NULL || hop->attempts > found->attempts)) {
            found = hop;
        }
    }
    return found;
}
