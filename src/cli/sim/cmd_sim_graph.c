/* SPDX-License-Identifier: MIT */
/* becalm sim --graph: a scenario out of the call graph of a policy itself. Values that a policy does not have are
 * assumed, and printed with the result: each service takes 10 ms and is 60 % busy, and its clients make 100 calls a
 * second unless `traffic` says otherwise. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_sim.h"

#include "policy/graph.h"
#include "policy/value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MS      10u
#define BUSY_PERCENT 60u
#define RATE_MILLI   100000u            /* 100 calls a second */
#define RATE_MOST    UINT64_C(10000000) /* 10,000: more is a longer run, and no other answer */

struct picture {
    const struct graph *graph;
    uint64_t *rate; /* thousandths of a call a second, by node */
    const char *role;
};

static const struct becalm_service *service_of(const struct graph *graph, uint32_t node)
{
    uint32_t hop = graph->nodes[node].hop;
    return hop == GRAPH_NONE ? NULL : graph->hops[hop].service;
}

/* Names of services may contain characters that have a meaning in YAML. */
static void put_name(FILE *out, const char *name)
{
    fputc('"', out);
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\') {
            fputc('\\', out);
        }
        fputc(*name, out);
    }
    fputc('"', out);
}

/* The load of each service: the clients' own calls, and one call of each caller for each request that the caller gets.
 */
static void rates_fill(struct picture *p)
{
    for (uint32_t i = 0; i < p->graph->node_count; i++) {
        uint32_t node = p->graph->order[i];
        const struct graph_node *of = &p->graph->nodes[node];
        const struct becalm_service *service = service_of(p->graph, node);
        uint64_t said = service == NULL ? 0 : service->traffic_milli;
        if (of->root) {
            p->rate[node] += said == 0 ? RATE_MILLI : said;
        }
        p->rate[node] = p->rate[node] > RATE_MOST ? RATE_MOST : p->rate[node];
        for (uint32_t e = 0; e < of->edge_count; e++) {
            const struct graph_edge *edge = &p->graph->edges[of->edges + e];
            if (!edge->back) {
                p->rate[edge->to] += p->rate[node];
            }
        }
    }
}

static void put_calls(FILE *out, const struct graph *graph, const struct graph_node *node)
{
    const char *between = "";
    fputs(", calls: [", out);
    for (uint32_t e = 0; e < node->edge_count; e++) {
        const struct graph_edge *edge = &graph->edges[node->edges + e];
        if (!edge->back) {
            fputs(between, out);
            put_name(out, graph->nodes[edge->to].name);
            between = ", ";
        }
    }
    fputs("]", out);
}

static void put_service(FILE *out, const struct picture *p, uint32_t node)
{
    const struct becalm_service *service = service_of(p->graph, node);
    uint32_t hosts = service == NULL || service->host_count == 0 ? 1 : service->host_count;
    uint64_t busy = p->rate[node] * TIME_MS / 1000; /* thousandths of a worker */
    uint64_t workers = busy / (BUSY_PERCENT * 10) + 1;
    fputs("  ", out);
    put_name(out, p->graph->nodes[node].name);
    fprintf(out,
            ": {time: {exponential: %ums}, hosts: %" PRIu32 ", workers: %" PRIu64 ", instances: %" PRIu32 ", role: %s",
            TIME_MS, hosts, (workers + hosts - 1) / hosts, service == NULL ? 1 : service->instances, p->role);
    put_calls(out, p->graph, &p->graph->nodes[node]);
    fputs("}\n", out);
}

static void put_clients(FILE *out, const struct picture *p)
{
    fputs("clients:\n", out);
    for (uint32_t n = 0, clients = 0; n < p->graph->node_count; n++) {
        if (p->graph->nodes[n].root) {
            fprintf(out, "  clients%" PRIu32 ": {to: ", clients++);
            put_name(out, p->graph->nodes[n].name);
            fprintf(out, ", rate: %" PRIu64 ".%03" PRIu64 "/s, callers: 10, role: %s}\n", p->rate[n] / 1000,
                    p->rate[n] % 1000, p->role);
        }
    }
}

static void put_scenario(FILE *out, const struct picture *p, const char *path, const char *dead)
{
    fputs("name: graph\nabout: ", out);
    char about[512];
    (void)snprintf(about, sizeof about,
                   "the call graph of %s: %s is dead for 30 s; assumed: each service takes %u ms and is %u %% busy",
                   path, dead, TIME_MS, BUSY_PERCENT);
    put_name(out, about);
    fputs("\nlength: 150s\nservices:\n", out);
    for (uint32_t n = 0; n < p->graph->node_count; n++) {
        put_service(out, p, n);
    }
    put_clients(out, p);
    fputs("faults:\n  kill: {at: 30s, for: 30s, dead: true, service: ", out);
    put_name(out, dead);
    fputs("}\n", out);
}

static int dead_check(const struct sim *s, const struct graph *graph, const char *dead)
{
    const char *nearest = NULL;
    const char **names = calloc(graph->node_count + (size_t)1, sizeof *names);
    if (dead == NULL || graph_find(graph, dead) != GRAPH_NONE) {
        free(names);
        return dead == NULL ? cli_usage(s->command, "which service shall be dead? --kill NAME") : 0;
    }
    for (uint32_t n = 0; names != NULL && n < graph->node_count; n++) {
        names[n] = graph->nodes[n].name;
    }
    nearest = names == NULL ? NULL : value_nearest(dead, names, graph->node_count);
    free(names);
    return nearest == NULL
               ? cli_usage(s->command, "--kill: there is no service '%s'", dead)
               : cli_usage(s->command, "--kill: there is no service '%s'; did you mean '%s'?", dead, nearest);
}

int sim_graph_write(const struct sim *s, const struct becalm_config *config, const char *path, char **text,
                    size_t *length)
{
    struct picture p = {.role = becalm_config_settings(config)->role == BECALM_ROLE_GATEWAY ? "gateway" : "sidecar"};
    const char *dead = cli_value(s->command, s->args, "kill");
    struct graph *graph = NULL;
    int rc = graph_build(&graph, &config, 1) == 0 ? 0 : sim_no_memory(s);
    if (rc == 0 && graph->node_count == 0) {
        rc = cli_fail(s->command, "%s has no services", path);
    }
    rc = rc == 0 ? dead_check(s, graph, dead) : rc;
    if (rc == 0) {
        p.graph = graph;
        p.rate = calloc(graph->node_count, sizeof *p.rate);
        FILE *out = p.rate == NULL ? NULL : open_memstream(text, length);
        if (out == NULL) {
            rc = sim_no_memory(s);
        } else {
            rates_fill(&p);
            put_scenario(out, &p, path, dead);
            rc = fclose(out) == 0 ? 0 : sim_no_memory(s);
        }
    }
    free(p.rate);
    graph_free(graph);
    return rc;
}
