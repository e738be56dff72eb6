/* SPDX-License-Identifier: MIT */

/* The rules that need the whole call graph. */

#include "lint_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/value.h"

#define LIST_BYTES   300
#define NEAREST_MOST 20000u /* comparisons of names: a file may hold ten thousand of them, and all unknown */

/* Adds to a list in words: "a", "a and b", "a, b and c". */
struct list {
    char text[LIST_BYTES];
    size_t used;
    uint32_t count;
};

static void list_add(struct list *list, const char *between, const char *word)
{
    if (list->used < sizeof list->text) {
        int written = snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s",
                               list->count == 0 ? "" : between, word);
        list->used += written > 0 ? (size_t)written : 0;
    }
    list->count++;
}

/* ---- stacked-retries ---- */

static void stacked_at(struct lint *l, uint32_t node)
{
    const struct graph *graph = l->graph;
    uint32_t path[GRAPH_PATH_MAX];
    uint32_t count = graph_path(graph, node, GRAPH_BY_LAYERS, path);
    struct list factors = {.count = 0};
    struct list off = {.count = 0};
    uint64_t product = 1;
    const struct graph_hop *last = NULL;
    bool hedges = false;
    for (uint32_t i = 1; i < count; i++) {
        const struct graph_hop *hop =
            path[i - 1] == GRAPH_NONE || path[i] == GRAPH_NONE ? NULL : graph_hop_between(graph, path[i - 1], path[i]);
        if (hop == NULL || hop->attempts < 2) {
            continue;
        }
        char factor[192];
        (void)snprintf(factor, sizeof factor, "%.128s %u", graph->nodes[path[i]].name, hop->attempts);
        list_add(&factors, " x ", factor);
        product = product < GRAPH_MOST / GRAPH_ONE ? product * hop->attempts : product;
        if (last != NULL) {
            char name[160];
            (void)snprintf(name, sizeof name, "`%.128s`", last->service->name);
            list_add(&off, ", ", name);
        }
        hedges = hedges || hop->hedges;
        last = hop;
    }
    if (last == NULL || last->service == NULL) {
        return;
    }
    struct lint_target target = lint_service(last);
    struct lint_finding *finding = lint_find(l, &target, NULL);
    if (finding != NULL) {
        lint_say(finding,
                 "calls are retried at %u layers on the way to %s: one request to %s can become %" PRIu64
                 " attempts (%s)",
                 factors.count, graph->nodes[node].name, graph->nodes[path[0]].name, product, factors.text);
        lint_remedy(finding, "let only the layer next to the failure retry: keep `%s`, write `maxRetries: 0`%s for %s",
                    graph->nodes[node].name, hedges ? " and no hedge" : "", off.text);
    }
}

void lint_stacked_retries(struct lint *l)
{
    for (uint32_t n = 0; n < l->graph->node_count && !l->report->cut; n++) {
        const struct graph_node *node = &l->graph->nodes[n];
        if (node->layers >= 2 && node->layers_last && !node->below) { /* the end of its chain; once is enough */
            stacked_at(l, n);
        }
    }
}

/* ---- fresh-timeout ---- */

/* How long callers wait at most for this service: for one answer, or for the whole call. */
struct patience {
    becalm_ns attempt;
    becalm_ns call;
};

static struct patience patience_of(const struct becalm_service *service)
{
    const struct becalm_policy *policy = &service->rules.policy;
    struct patience most = {graph_attempt(policy), policy->deadline};
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        policy = &service->endpoints[i].rules.policy;
        most.attempt = becalm_ns_max(most.attempt, graph_attempt(policy));
        most.call = becalm_ns_max(most.call, policy->deadline);
    }
    return most;
}

/* A deadline in `defaults` is the same for caller and callee, and the time left is passed on: it is fresh only if the
 * caller's own is shorter. A deadline that is written for the callee must fit into an attempt of its caller. */
static void fresh_at(struct lint *l, const struct lint_target *target, const char *caller, struct patience patience)
{
    enum becalm_origin_level level = becalm_rules_origin(target->rules, "deadline").level;
    becalm_ns deadline = target->rules->policy.deadline;
    becalm_ns waits_for =
        level == BECALM_FROM_DEFAULTS ? patience.call : becalm_ns_min(patience.attempt, patience.call);
    struct lint_finding *finding = NULL;
    if (level == BECALM_FROM_BUILT_IN || deadline == BECALM_NEVER || deadline <= waits_for ||
        (finding = lint_find(l, target, "deadline")) == NULL) {
        return;
    }
    lint_say(finding, "%s: a new timeout of %s for calls from %s, although the caller of %s gives up after %s", l->who,
             lint_duration(deadline).text, caller, caller, lint_duration(waits_for).text);
    lint_remedy(
        finding,
        "write a `deadline` at the first service and none here: the time that is left is sent along; or at most %s",
        lint_duration(waits_for).text);
}

void lint_fresh_timeout(struct lint *l)
{
    const struct graph *graph = l->graph;
    for (uint32_t e = 0; e < graph->edge_count && !l->report->cut; e++) {
        const struct graph_edge *edge = &graph->edges[e];
        const struct graph_hop *hop = &graph->hops[edge->hop];
        const struct graph_node *from = &graph->nodes[edge->from];
        bool awaited =
            !from->root || graph_entry(graph, edge->from).hop != GRAPH_NONE; /* by a caller that has our timeout */
        if (hop->service == NULL || !awaited || edge->from == edge->to) {
            continue;
        }
        struct patience patience = patience_of(graph->hops[from->hop].service);
        struct lint_target target = lint_service(hop);
        fresh_at(l, &target, from->name, patience);
        for (uint32_t i = 0; i < hop->service->endpoint_count; i++) {
            target.endpoint = &hop->service->endpoints[i];
            target.rules = &target.endpoint->rules;
            fresh_at(l, &target, from->name, patience);
        }
    }
}

/* ---- gateway-on-top ---- */

/* The services right below which are retried, themselves or further down. */
static void below_add(const struct graph *graph, uint32_t node, struct list *list)
{
    const struct graph_node *at = &graph->nodes[node];
    for (uint32_t e = 0; e < at->edge_count && list->count < 4; e++) {
        const struct graph_edge *edge = &graph->edges[at->edges + e];
        if (!edge->back && graph->hops[edge->hop].attempts > 1) {
            list_add(list, ", ", graph->nodes[edge->to].name);
        } else if (!edge->back && graph->nodes[edge->to].below) {
            char further[192];
            (void)snprintf(further, sizeof further, "below %.128s", graph->nodes[edge->to].name);
            list_add(list, ", ", further);
        }
    }
}

void lint_gateway_on_top(struct lint *l)
{
    const struct graph *graph = l->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct graph_entry entry = graph_entry(graph, n);
        if (!entry.retries || !graph->nodes[n].below || graph->hops[entry.hop].attempts < 2) {
            continue;
        }
        struct lint_target target = lint_service(&graph->hops[entry.hop]);
        struct lint_finding *finding = lint_find(l, &target, NULL);
        if (finding != NULL) {
            struct list below = {.count = 0};
            below_add(graph, n, &below);
            lint_say(finding, "the gateway retries calls to %s (%u attempts), on top of the retries below it (%s)",
                     graph->nodes[n].name, graph->hops[entry.hop].attempts, below.text);
            lint_remedy(finding, "write `gatewayRetries: false` at the top of the file, or `maxRetries: 0` for `%s`",
                        graph->nodes[n].name);
        }
    }
}

/* A finding about the callees of a service: it points at `calls`. */
static struct lint_finding *find_at_calls(struct lint *l, const struct lint_target *target)
{
    struct lint_finding *finding = lint_find(l, target, NULL);
    if (finding != NULL && target->service != NULL && target->service->calls_line > 0) {
        finding->line = target->service->calls_line;
        finding->column = target->service->calls_column;
    }
    return finding;
}

/* ---- cycle ---- */

/* The nodes from `to` down to `from` along first edges that were followed: the path exists, because the edge back was
 * found on it. Breadth first, so it is a shortest one. Returns its length, 0 without memory. */
static uint32_t circle(const struct graph *graph, const struct graph_edge *back, uint32_t *queue, uint32_t *parent)
{
    uint32_t head = 0;
    uint32_t tail = 0;
    memset(parent, 0xff, graph->node_count * sizeof *parent);
    queue[tail++] = back->to;
    parent[back->to] = back->to;
    while (head < tail && parent[back->from] == GRAPH_NONE) {
        const struct graph_node *node = &graph->nodes[queue[head++]];
        for (uint32_t e = 0; e < node->edge_count; e++) {
            const struct graph_edge *edge = &graph->edges[node->edges + e];
            if (!edge->back && parent[edge->to] == GRAPH_NONE) {
                parent[edge->to] = edge->from;
                queue[tail++] = edge->to;
            }
        }
    }
    uint32_t count = 0; /* the queue is done with: now it holds the path, from its end */
    for (uint32_t at = back->from;; at = parent[at]) {
        queue[count++] = at;
        if (at == back->to) {
            return count;
        }
    }
}

static void cycle_say(struct lint *l, const struct graph_edge *back, const uint32_t *reversed, uint32_t count)
{
    const struct graph *graph = l->graph;
    struct lint_target target = lint_service(&graph->hops[graph->nodes[back->from].hop]);
    struct lint_finding *finding = find_at_calls(l, &target);
    if (finding == NULL) {
        return;
    }
    struct list path = {.count = 0};
    bool cut = count > 12;
    for (uint32_t i = count; i-- > 0;) {
        if (cut && i == count - 7) {
            list_add(&path, " > ", "...");
        }
        if (!cut || i >= count - 6 || i < 6) {
            list_add(&path, " > ", graph->nodes[reversed[i]].name);
        }
    }
    list_add(&path, " > ", graph->nodes[back->to].name);
    lint_say(finding, "services call each other in a circle: %s; the number of attempts of a request has no bound",
             path.text);
    lint_remedy(finding,
                "remove `%s` from the calls of `%s`; if no request goes round the whole circle, silence this rule with "
                "that reason",
                graph->nodes[back->to].name, graph->nodes[back->from].name);
}

void lint_cycle(struct lint *l)
{
    const struct graph *graph = l->graph;
    uint32_t *queue = NULL;
    uint32_t *parent = NULL;
    uint32_t said = 0;
    for (uint32_t e = 0; e < graph->edge_count && said < 20; e++) {
        const struct graph_edge *edge = &graph->edges[e];
        if (!edge->back) {
            continue;
        }
        if (queue == NULL) {
            queue = calloc(graph->node_count + (size_t)1, sizeof *queue);
            parent = calloc(graph->node_count + (size_t)1, sizeof *parent);
        }
        if (queue == NULL || parent == NULL) {
            l->report->no_memory = true;
            break;
        }
        cycle_say(l, edge, queue, circle(graph, edge, queue, parent));
        said++;
    }
    free(queue);
    free(parent);
}

/* ---- --max-amplification ---- */

/* The services on the way to a node whose calls are retried, but for the last of them. */
static uint32_t retrying_above(const struct graph *graph, uint32_t node, struct list *above, const char **last)
{
    uint32_t path[GRAPH_PATH_MAX];
    uint32_t count = graph_path(graph, node, GRAPH_BY_BUDGETED, path);
    struct graph_entry entry = graph_entry(graph, path[0]);
    uint32_t retrying = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (path[i] == GRAPH_NONE || (i > 0 && path[i - 1] == GRAPH_NONE)) {
            continue;
        }
        const struct graph_hop *hop = entry.retries ? &graph->hops[entry.hop] : NULL;
        if (i > 0) {
            hop = graph_hop_between(graph, path[i - 1], path[i]);
        }
        if (hop == NULL || hop->attempts < 2) {
            continue;
        }
        if (retrying > 0) {
            char name[160];
            (void)snprintf(name, sizeof name, "`%.128s`", *last);
            list_add(above, ", ", name);
        }
        *last = graph->nodes[path[i]].name;
        retrying++;
    }
    return retrying;
}

/* The declared service of a node, or the nearest declared one above it. */
static const struct graph_hop *declared_at(const struct graph *graph, uint32_t node)
{
    const struct graph_hop *hop = &graph->hops[graph->nodes[node].hop];
    return hop->service != NULL ? hop : &graph->hops[graph->nodes[graph->nodes[node].before].hop];
}

void lint_amplification(struct lint_report *report, const struct becalm_config *const *configs, uint32_t count,
                        const struct graph *graph, uint64_t most)
{
    static const struct lint_rule rule = {"max-amplification", BECALM_ERROR, "more than --max-amplification", NULL,
                                          NULL};
    struct lint l = {.report = report, .rule = &rule, .configs = configs, .count = count, .graph = graph};
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct graph_node *node = &graph->nodes[n];
        struct lint_target target = lint_service(declared_at(graph, n));
        struct lint_finding *finding = node->budgeted > most ? lint_find(&l, &target, NULL) : NULL;
        if (finding == NULL) {
            continue;
        }
        struct list above = {.count = 0};
        const char *last = node->name;
        uint32_t retrying = retrying_above(graph, n, &above, &last);
        lint_say(finding, "%s: one client request can become %s attempts, budgets included; at most %s are allowed",
                 node->name, lint_amount(node->budgeted).text, lint_amount(most).text);
        if (retrying > 1) {
            lint_remedy(finding, "write `maxRetries: 0` for %s: then only calls to `%s` are retried", above.text, last);
        } else {
            lint_remedy(finding, "write a smaller `maxRetries` for `%s`, or `budget: {kind: ratio, percent: 10}`",
                        last);
        }
    }
    lint_sort(report);
}

/* ---- names ---- */

void lint_unknown_callee(struct lint *l)
{
    const struct graph *graph = l->graph;
    uint32_t declared = 0;
    uint32_t compared = 0;
    const char **names = calloc(graph->node_count + (size_t)1, sizeof *names);
    if (names == NULL) {
        l->report->no_memory = true;
        return;
    }
    for (uint32_t n = 0; n < graph->node_count && graph->hops[graph->nodes[n].hop].service != NULL; n++) {
        names[declared++] = graph->nodes[n].name;
    }
    for (uint32_t e = 0; e < graph->edge_count && compared < NEAREST_MOST; e++) {
        const struct graph_edge *edge = &graph->edges[e];
        if (graph->hops[edge->hop].service != NULL) {
            continue;
        }
        const char *nearest = value_nearest(graph->nodes[edge->to].name, names, declared);
        struct lint_target target = lint_service(&graph->hops[graph->nodes[edge->from].hop]);
        struct lint_finding *finding = nearest == NULL ? NULL : find_at_calls(l, &target);
        compared += declared;
        if (finding != NULL) {
            lint_say(finding, "%s calls %s, which no file declares", graph->nodes[edge->from].name,
                     graph->nodes[edge->to].name);
            lint_remedy(finding, "did you mean `%s`? if not, declare it: `%s: {}`", nearest,
                        graph->nodes[edge->to].name);
        }
    }
    free(names);
}

void lint_unknown_rule(struct lint *l)
{
    const char *codes[64];
    size_t known = 0;
    for (const struct lint_rule *rule = lint_rules; rule->code != NULL && known < 64; rule++) {
        codes[known++] = rule->code;
    }
    for (uint32_t c = 0; c < l->count; c++) {
        const char *const *ignored = becalm_config_settings(l->configs[c])->lint_code;
        for (; *ignored != NULL && !l->report->cut; ignored++) {
            size_t i = 0;
            while (i < known && strcmp(codes[i], *ignored) != 0) {
                i++;
            }
            struct lint_finding *finding = i < known ? NULL : lint_append(l->report);
            if (finding == NULL) {
                continue;
            }
            const char *nearest = value_nearest(*ignored, codes, known);
            finding->code = l->rule->code;
            finding->severity = l->rule->severity;
            finding->order = c;
            finding->line = 1; /* a config does not keep the position of ignored keys */
            finding->column = 1;
            (void)snprintf(finding->file, sizeof finding->file, "%s", becalm_config_name(l->configs[c]));
            lint_say(finding, "lint.ignore names %.128s, which is no rule", *ignored);
            lint_remedy(finding, nearest == NULL ? "docs/lint.md lists the rules" : "did you mean `%s`?", nearest);
        }
    }
}

void lint_store_password(struct lint *l)
{
    for (uint32_t c = 0; c < l->count; c++) {
        const struct becalm_store *store = &becalm_config_settings(l->configs[c])->store;
        bool inlined = store->redis != NULL && value_redis_has_password(store->redis);
        struct lint_finding *finding = inlined ? lint_find_at(l, l->configs[c], store->line, store->column) : NULL;
        if (finding == NULL) {
            continue;
        }
        lint_say(finding, "the policy has the password of the store, and every reader of the file sees it");
        lint_remedy(finding, "write `passwordFile: FILE` or `passwordEnv: VARIABLE` beside `redis`");
    }
}
