/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_GRAPH_H
#define BECALM_POLICY_GRAPH_H

/* The call graph of one or several files, and the worst that retries can do on it: how many attempts one client request
 * can become at each service, and how long the client can wait. docs/check.md defines every figure.
 *
 * A hop is a call *to* a service, made by that service's rules, from any caller. The client itself sends one request.
 * The result is a bound over all paths from a client to the service, computed in one pass along the graph, so it is
 * cheap for any graph that a file can hold. Amounts are parts per million and saturate: no floating point, no overflow.
 */

#include <becalm/config.h>

#define GRAPH_ONE      1000000u                           /* one attempt per client request */
#define GRAPH_MOST     (UINT64_C(1000000000) * GRAPH_ONE) /* nothing is counted beyond a thousand million times */
#define GRAPH_NONE     UINT32_MAX
#define GRAPH_PATH_MAX 64u

/* How long a call can take if the service that it calls takes x: min(most, times * x + more). */
struct graph_time {
    becalm_ns most; /* BECALM_NEVER: no limit */
    uint64_t times;
    becalm_ns more;
};

/* A service as one file declares it: the worst of its own rules and of its endpoints' rules. */
struct graph_hop {
    const struct becalm_config *config;
    const struct becalm_service *service; /* NULL: no file declares it; then it is one attempt without a timeout */
    uint32_t node;
    uint32_t next;     /* the same service in another file; GRAPH_NONE */
    uint32_t attempts; /* 1 + maxRetries, or 1 + hedge.max */
    bool hedges;
    uint64_t budgeted; /* attempts that its budget lets through, at worst */
    uint64_t dead;     /* the same, while the service answers nothing */
    struct graph_time time;
    struct graph_time once; /* of a call without retries */
    becalm_ns parked;       /* the longest that a call waits for a host to accept connections; 0: it does not */
    becalm_ns unwritten; /* how long an attempt may take where the policy sets no timeout; 0: it sets one everywhere */
};

struct graph_edge {
    uint32_t from;
    uint32_t to;
    uint32_t hop;
    bool back; /* closes a cycle: not followed */
};

struct graph_node {
    const char *name;
    uint32_t hop;   /* its first declaration; GRAPH_NONE */
    uint32_t edges; /* its first edge; those of a node stand together */
    uint32_t edge_count;
    bool called; /* by a service in the graph */
    bool root;   /* clients call it */
    bool below;  /* some hop below it retries */

    /* Per client request, the worst over all paths. */
    uint64_t unbudgeted;
    uint64_t budgeted;
    uint64_t dead;
    uint64_t marked;
    struct graph_time time;
    uint32_t before;      /* the node before it on the path that gives `budgeted`; GRAPH_NONE at its begin */
    uint32_t begin;       /* the root of that path */
    uint32_t wide_before; /* the same of the path that gives `unbudgeted` */
    uint32_t wide_begin;

    uint32_t layers;        /* the most hops between services that retry, on one path */
    uint32_t layers_before; /* the node before it on that path */
    bool layers_last;       /* the last hop of that path retries */
};

struct graph {
    struct graph_node *nodes; /* in the order of the files, then those that no file declares */
    uint32_t node_count;
    struct graph_hop *hops; /* in the order of the files */
    uint32_t hop_count;
    struct graph_edge *edges;
    uint32_t edge_count;
    uint32_t *order; /* callers before their callees */
    uint32_t *table; /* names: open addressing */
    uint32_t table_size;
};

/* Builds the graph of all files together. The configs must outlive it. 0 or BECALM_ENOMEM. */
int graph_build(struct graph **, const struct becalm_config *const *configs, uint32_t count);
void graph_free(struct graph *);

uint32_t graph_find(const struct graph *, const char *name); /* GRAPH_NONE: no service has this name */

/* How clients reach a root: by which hop (GRAPH_NONE: by themselves, or it is no root), and whether that retries. */
struct graph_entry {
    uint32_t hop;
    bool retries;
};
struct graph_entry graph_entry(const struct graph *, uint32_t node);

/* Of which figure of a node a path is: its `unbudgeted`, `layers` or `budgeted`. */
enum graph_way { GRAPH_BY_UNBUDGETED, GRAPH_BY_LAYERS, GRAPH_BY_BUDGETED };

/* The path with the worst figure, the root first. Returns the number of entries; a path of more than GRAPH_PATH_MAX has
 * its root, then GRAPH_NONE for the nodes that are left out, then its end. */
uint32_t graph_path(const struct graph *, uint32_t node, enum graph_way, uint32_t path[GRAPH_PATH_MAX]);

/* The hop that leads from one node to another: the one that retries most, if several files describe it. NULL: none. */
const struct graph_hop *graph_hop_between(const struct graph *, uint32_t from, uint32_t to);

/* The longest that all waits of a call can take together, server hints aside. */
becalm_ns graph_waits(const struct becalm_policy *);

/* The longest that an attempt can take. */
becalm_ns graph_attempt(const struct becalm_policy *);

/* All attempts at their timeout, and all waits: the longest time of a call, without its deadline. */
becalm_ns graph_whole(const struct becalm_policy *, becalm_ns waits);

#endif
