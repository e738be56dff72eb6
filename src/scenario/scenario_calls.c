/* SPDX-License-Identifier: MIT */
#include "scenario_load_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* The calls between services, as numbers. */
struct calls {
    struct reading *r;
    uint32_t *callee[SCENARIO_SERVICES_MAX]; /* ends with SCENARIO_NONE */
    uint64_t below[SCENARIO_SERVICES_MAX];   /* calls that one request causes */
    uint32_t path[SCENARIO_SERVICES_MAX];    /* the chain of callers down to the present service */
    uint32_t depth;
    enum { UNSEEN, ON_THE_WAY, SEEN, REACHED } state[SCENARIO_SERVICES_MAX];
};

static const struct yaml_node *call_node(const struct yaml_node *calls, uint32_t i)
{
    return calls->kind == YAML_SEQUENCE ? calls->item[i] : calls;
}

static bool is_among(const uint32_t *list, uint32_t count, uint32_t index)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] == index) {
            return true;
        }
    }
    return false;
}

static bool calls_resolve(struct calls *c, uint32_t service)
{
    struct reading *r = c->r;
    const struct yaml_node *calls = value_of(r->services->item[service], "calls");
    uint32_t count = calls == NULL || calls->kind == YAML_MAPPING ? 0 : calls->kind == YAML_SEQUENCE ? calls->count : 1;
    uint32_t used = 0;
    c->callee[service] = arena_take(r->l.arena, (count + 1) * sizeof(uint32_t));
    if (c->callee[service] == NULL) {
        return loader_no_memory(&r->l);
    }
    for (uint32_t i = 0; i < count && used < SCENARIO_SERVICES_MAX; i++) {
        const struct yaml_node *node = call_node(calls, i);
        uint32_t index =
            node->kind == YAML_SCALAR && node->length > 0 ? service_named(r, node, "calls") : SCENARIO_NONE;
        if (index != SCENARIO_NONE && is_among(c->callee[service], used, index)) {
            loader_error(&r->l, node->line, node->column, "conflict",
                         "\"%.64s\" stands twice in calls; to call it several times, write fanOut", node->text);
        } else if (index != SCENARIO_NONE) {
            c->callee[service][used++] = index;
        }
    }
    c->callee[service][used] = SCENARIO_NONE;
    return true;
}

#define CIRCLE_SHOWN 8u /* services of a circle that are named */

/* The last on the way calls one that is on it already. */
static void circle_tell(struct calls *c, uint32_t again)
{
    const struct yaml_node *key = c->r->services->key[c->path[c->depth - 1]];
    uint32_t from = 0;
    while (c->path[from] != again) {
        from++;
    }
    if (from == c->depth - 1) {
        loader_error(&c->r->l, key->line, key->column, "cycle", "%.64s calls itself; remove it from its calls",
                     key->text);
        return;
    }
    char text[CIRCLE_SHOWN * 80] = "";
    size_t used = 0;
    for (uint32_t i = from; i < c->depth && i < from + CIRCLE_SHOWN; i++) {
        const char *name = c->r->file->services[c->path[i]].name;
        used += (size_t)snprintf(text + used, sizeof text - used, "%.64s calls ", name);
    }
    loader_error(&c->r->l, key->line, key->column, "cycle", "%s%s%.64s: a circle; take one of the calls out", text,
                 c->depth - from > CIRCLE_SHOWN ? "... " : "", c->r->file->services[again].name);
}

/* Walks down from a service, callees first. The depth is bounded by the number of services. */
static void calls_walk(struct calls *c, uint32_t service)
{
    const struct scenario_service *plan = &c->r->file->services[service];
    const struct yaml_node *key = c->r->services->key[service];
    uint64_t below = 0;
    bool deeper = false; /* a callee was reported already */
    c->state[service] = ON_THE_WAY;
    c->path[c->depth++] = service;
    for (const uint32_t *callee = c->callee[service]; *callee != SCENARIO_NONE; callee++) {
        if (c->state[*callee] == UNSEEN) {
            calls_walk(c, *callee);
        }
        if (c->state[*callee] == ON_THE_WAY) {
            circle_tell(c, *callee);
        }
        deeper |= c->below[*callee] > CALLS_MAX;
        below += plan->fan_out * (1 + c->below[*callee]);
    }
    c->below[service] = below;
    if (below > CALLS_MAX) {
        if (!deeper) {
            loader_error(&c->r->l, key->line, key->column, "out-of-range",
                         "one request to %.64s causes more than %u calls; lower fanOut, or shorten calls", plan->name,
                         CALLS_MAX);
        }
        c->below[service] = CALLS_MAX + 1;
    }
    c->depth--;
    c->state[service] = SEEN;
}

static void reach(struct calls *c, uint32_t service)
{
    if (c->state[service] == REACHED) {
        return;
    }
    c->state[service] = REACHED;
    for (const uint32_t *callee = c->callee[service]; *callee != SCENARIO_NONE; callee++) {
        reach(c, *callee);
    }
}

/* A service that no client or service calls gets no load, and a fault of it shows nothing. It is reported as an error,
 * because it must be a typo. */
static void reach_check(struct calls *c)
{
    struct reading *r = c->r;
    const struct scenario *plan = &r->file->scenario;
    for (uint32_t i = 0; i < plan->client_count; i++) {
        uint32_t to = plan->clients[i].to == NULL ? SCENARIO_NONE : scenario_find(plan, plan->clients[i].to);
        if (to == SCENARIO_NONE) {
            return; /* the error was reported, and it is unknown which services the circle reaches */
        }
        reach(c, to);
    }
    for (uint32_t i = 0; plan->client_count > 0 && r->l.diags->errors == 0 && i < plan->service_count; i++) {
        const struct yaml_node *key = r->services->key[i];
        if (c->state[i] != REACHED) {
            becalm_diag_add(r->l.diags, BECALM_WARNING, r->l.name, key->line, key->column, "no-effect",
                            "no caller of %.64s: no client, and no service that is called", key->text);
        }
    }
    for (uint32_t i = 0; r->l.diags->errors == 0 && i < plan->fault_count; i++) {
        const struct yaml_node *key = r->faults->key[i];
        uint32_t hit = scenario_find(plan, plan->faults[i].service);
        if (hit != SCENARIO_NONE && c->state[hit] != REACHED) {
            loader_error(&r->l, key->line, key->column, "conflict", "%.64s hits %.64s, which has no caller", key->text,
                         plan->faults[i].service);
        }
    }
}

bool calls_check(struct reading *r)
{
    struct calls *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return loader_no_memory(&r->l);
    }
    c->r = r;
    uint32_t count = r->file->scenario.service_count;
    for (uint32_t i = 0; i < count && !r->l.no_memory; i++) {
        (void)calls_resolve(c, i);
    }
    for (uint32_t i = 0; i < count && !r->l.no_memory; i++) {
        if (c->state[i] == UNSEEN) {
            calls_walk(c, i);
        }
    }
    if (!r->l.no_memory) {
        reach_check(c);
    }
    free(c);
    return !r->l.no_memory;
}
