/* SPDX-License-Identifier: MIT */
#include "scenario_load_internal.h"

#include <string.h>

#include "policy/value.h"

/* `loop: {think: 100ms}`: a duration, or a distribution. */
static void loop_load(struct reading *r, const struct yaml_node *loop, struct dist *think)
{
    const struct yaml_node *value = value_of(loop, "think");
    becalm_ns constant;
    if (value == NULL || loop->count != 1) {
        loader_error(&r->l, loop->line, loop->column, "wrong-type",
                     "loop has one key, think; write loop: {think: 100ms}, or {think: {exponential: 100ms}}");
    } else if (value->kind == YAML_MAPPING) {
        dist_load(r, "think", value, think);
    } else if (value->kind != YAML_SCALAR || !value_duration(value->text, &constant) || constant > 3600 * BECALM_S) {
        loader_error(&r->l, value->line, value->column, "wrong-type",
                     "think: write a duration up to 1h, like 100ms, or a distribution");
    } else {
        *think = (struct dist){.kind = DIST_CONSTANT, .mean = constant};
    }
}

/* A client calls at a rate, or each caller calls again when it has its answer, or keeps connections open. */
static void pace_load(struct reading *r, struct scenario_client *client, const struct yaml_node *name,
                      const struct yaml_node *node)
{
    const struct yaml_node *loop = value_of(node, "loop");
    bool has_rate = value_of(node, "rate") != NULL;
    if (client->connections > 0 && (has_rate || loop != NULL)) {
        loader_error(&r->l, name->line, name->column, "conflict",
                     "%.64s keeps connections and makes no calls; take %s out", name->text, has_rate ? "rate" : "loop");
    } else if (has_rate && loop != NULL) {
        loader_error(&r->l, loop->line, loop->column, "conflict", "%.64s has a rate and a loop; write one of them",
                     name->text);
    } else if (loop != NULL) {
        loop_load(r, loop, &client->think);
    } else if (client->connections == 0) {
        need(&r->l, name, node, "rate", "rate: 100/s");
    }
    if (client->connections > 0 && value_of(node, "calls") != NULL) {
        loader_error(&r->l, name->line, name->column, "conflict",
                     "%.64s keeps connections and makes no calls; take calls out", name->text);
    }
    if (client->connections > 0 && client->callers > CONNECTIONS_MAX / client->connections) {
        loader_error(&r->l, name->line, name->column, "out-of-range",
                     "%.64s keeps more than %u connections; lower callers or connections", name->text, CONNECTIONS_MAX);
    }
}

bool client_load(struct reading *r, struct scenario_client *client, uint32_t i)
{
    static const char *const beside[] = {"loop", "endpoints", NULL};
    const struct yaml_node *key = r->clients->key[i];
    const struct yaml_node *value = r->clients->item[i];
    *client = (struct scenario_client){.name = arena_text(r->l.arena, key->text), .callers = 1, .retries = true};
    if (client->name == NULL) {
        return loader_no_memory(&r->l);
    }
    struct space spaces[] = {{&schema_scenario_client, client, NULL}};
    struct place place = {
        .spaces = spaces, .space_count = 1, .what = "a client", .beside = beside, .manual = SCENARIO_MANUAL};
    (void)name_is_fine(&r->l, key, "client");
    (void)apply_mapping(&r->l, &place, value);
    need(&r->l, key, value, "to", "to: and the name of a service");
    pace_load(r, client, key, value);
    return !r->l.no_memory;
}

static uint32_t endpoint_index(const struct scenario_service *service, const char *name)
{
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        if (strcmp(service->endpoints[i].name, name) == 0) {
            return i;
        }
    }
    return SCENARIO_NONE;
}

/* `endpoints: {search: 30%}`: which share of its calls goes where. */
static bool shares_load(struct reading *r, struct scenario_client *client, const struct scenario_service *service,
                        const struct yaml_node *endpoints)
{
    uint32_t *share = arena_take(r->l.arena, (service->endpoint_count + 1) * sizeof *share);
    uint64_t sum = 0;
    if (share == NULL) {
        return loader_no_memory(&r->l);
    }
    for (uint32_t i = 0; i < endpoints->count; i++) {
        const struct yaml_node *key = endpoints->key[i];
        const struct yaml_node *value = endpoints->item[i];
        uint32_t index = endpoint_index(service, key->text);
        uint32_t ppm = 0;
        if (index == SCENARIO_NONE) {
            loader_error(&r->l, key->line, key->column, "unknown-endpoint", "%.64s has no endpoint \"%.64s\"",
                         service->name, key->text);
        } else if (value->kind != YAML_SCALAR || !value_percent(value->text, &ppm)) {
            loader_error(&r->l, value->line, value->column, "wrong-type",
                         "%.64s: write a share of the calls, like 30%%", key->text);
        } else {
            share[index] = ppm;
            sum += ppm;
        }
    }
    if (sum > 1000000) {
        loader_error(&r->l, endpoints->line, endpoints->column, "conflict", "the shares of %.64s are above 100%%",
                     client->name);
    }
    client->share_ppm = share;
    return true;
}

static becalm_ns latency_between(const struct reading *r, const char *from, const char *to)
{
    for (uint32_t i = 0; i < r->file->scenario.link_count; i++) {
        const struct scenario_link *link = &r->file->links[i];
        if (link->from != NULL && link->to != NULL && strcmp(link->from, from) == 0 && strcmp(link->to, to) == 0) {
            return link->latency;
        }
    }
    return r->file->scenario.link;
}

/* A loop in which nothing takes time would go round for ever in one instant. Where that depends on the policy or on a
 * fault, the world stops it. */
static void loop_check(struct reading *r, uint32_t i, const struct scenario_service *service)
{
    const struct scenario_client *client = &r->file->clients[i];
    const struct yaml_node *loop = value_of(r->clients->item[i], "loop");
    const struct yaml_node *think = loop == NULL ? NULL : value_of(loop, "think");
    if (think != NULL && client->calls == 0 && dist_is_zero(&client->think) && dist_is_zero(&service->time) &&
        service->calls == NULL && service->endpoint_count == 0 &&
        latency_between(r, client->name, service->name) == 0) {
        loader_error(&r->l, think->line, think->column, "conflict",
                     "%.64s would call for ever in one instant: think, the link and the time of %.64s are 0; make one "
                     "of them longer, or write calls",
                     client->name, service->name);
    }
}

bool client_check(struct reading *r, uint32_t i)
{
    const struct yaml_node *entry = r->clients->item[i];
    const struct yaml_node *to = text_of(entry, "to");
    uint32_t service = to == NULL ? SCENARIO_NONE : service_named(r, to, "to");
    const struct yaml_node *endpoints = named(&r->l, entry, "endpoints", ENDPOINTS_MAX);
    if (service != SCENARIO_NONE && r->file->clients[i].connections > 0 &&
        (r->file->services[service].gate || r->file->services[service].hosts > 1)) {
        loader_error(&r->l, to->line, to->column, "conflict",
                     "connections are to a service of one host without a gate; \"%.64s\" is not", to->text);
    }
    if (service != SCENARIO_NONE) {
        loop_check(r, i, &r->file->services[service]);
    }
    return service == SCENARIO_NONE || endpoints == NULL ||
           shares_load(r, &r->file->clients[i], &r->file->services[service], endpoints);
}
