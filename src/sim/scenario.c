/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/apply.h"
#include "policy/value.h"
#include "scenario_policy.h"
#include "scenario_schema.h"

#define SERVICES_MAX 1000u
#define CLIENTS_MAX  1000u
#define FAULTS_MAX   1000u
#define POLICIES_MAX 64u
#define CALLS_MAX    100000u /* that one request may cause below a service, retries aside */

struct scenario_file {
    struct arena arena;
    struct scenario scenario;
    struct scenario_service *services; /* the same as in the scenario, while they are being filled */
    struct scenario_client *clients;
    struct scenario_fault *faults;
    struct scenario_policy *policies;
};

/* The file while it is being read: the mappings by name, or NULL. */
struct reading {
    struct loader l;
    struct scenario_file *file;
    const struct yaml_node *services;
    const struct yaml_node *clients;
    const struct yaml_node *faults;
    const struct yaml_node *policies;
};

/* The value of a key, or NULL if there is none, whatever the node is. */
static const struct yaml_node *value_of(const struct yaml_node *node, const char *key)
{
    const struct yaml_node *value = node->kind == YAML_MAPPING ? yaml_get(node, key) : NULL;
    return yaml_is_null(value) ? NULL : value;
}

/* A key that must be there; `name` is the one of the client, service or fault that should have it. */
static void need(struct loader *l, const struct yaml_node *name, const struct yaml_node *node, const char *key,
                 const char *example)
{
    if (value_of(node, key) == NULL) {
        loader_error(l, name->line, name->column, "missing", "%.64s has no %s; write %s", name->text, key, example);
    }
}

/* One of the mappings by name, with as many entries as there may be; or NULL. */
static const struct yaml_node *named(struct loader *l, const struct yaml_node *root, const char *key, uint32_t max)
{
    const struct yaml_node *node = value_of(root, key);
    if (node == NULL) {
        return NULL;
    }
    if (node->kind != YAML_MAPPING) {
        loader_error(l, node->line, node->column, "wrong-type", "%s is a mapping of names; write name: {...}", key);
        return NULL;
    }
    if (node->count > max) {
        loader_error(l, node->line, node->column, "out-of-range", "there are %u %s, the most allowed is %u",
                     node->count, key, max);
        return NULL;
    }
    return node;
}

/* A service's time: one distribution, with all that it needs. */

struct time_kind {
    const char *key;
    enum dist_kind kind;
    const char *part[2]; /* of a mapping; NULL: the key's value is a duration */
    const char *example;
};

static const struct time_kind time_kinds[] = {
    {"constant", DIST_CONSTANT, {NULL, NULL}, "{constant: 10ms}"},
    {"exponential", DIST_EXPONENTIAL, {NULL, NULL}, "{exponential: 10ms}"},
    {"lognormal", DIST_LOGNORMAL, {"median", "sigma"}, "{lognormal: {median: 10ms, sigma: 0.5}}"},
    {"pareto", DIST_PARETO, {"least", "alpha"}, "{pareto: {least: 10ms, alpha: 2.5}}"},
    {"normal", DIST_NORMAL, {"mean", "deviation"}, "{normal: {mean: 10ms, deviation: 2ms}}"},
};

static struct dist dist_from(enum dist_kind kind, const struct time_keys *keys)
{
    switch (kind) {
    case DIST_CONSTANT:
        return (struct dist){.kind = kind, .mean = keys->constant};
    case DIST_EXPONENTIAL:
        return (struct dist){.kind = kind, .mean = keys->exponential};
    case DIST_LOGNORMAL:
        return (struct dist){.kind = kind, .mean = keys->median, .shape = keys->sigma};
    case DIST_PARETO:
        return (struct dist){.kind = kind, .mean = keys->least, .shape = keys->alpha};
    case DIST_NORMAL:
        return (struct dist){
            .kind = kind, .mean = keys->mean, .shape = (uint32_t)(keys->deviation * 1000000 / keys->mean)};
    }
    BECALM_UNREACHABLE();
}

/* Called for a mapping whose keys are all known and in range. */
static void time_choose(struct loader *l, struct dist *dist, const struct time_keys *keys, const struct yaml_node *time)
{
    if (time->count != 1) {
        loader_error(l, time->line, time->column, "conflict",
                     "time is one distribution; write for example time: {exponential: 10ms}");
        return;
    }
    for (size_t i = 0; i < sizeof time_kinds / sizeof *time_kinds; i++) {
        const struct time_kind *kind = &time_kinds[i];
        const struct yaml_node *value = yaml_get(time, kind->key);
        if (value == NULL) {
            continue;
        }
        if (kind->part[0] != NULL &&
            (value_of(value, kind->part[0]) == NULL || value_of(value, kind->part[1]) == NULL)) {
            loader_error(l, value->line, value->column, "missing", "%s has %s and %s; write time: %s", kind->key,
                         kind->part[0], kind->part[1], kind->example);
        } else if (kind->kind == DIST_NORMAL && keys->deviation > keys->mean) {
            loader_error(l, value->line, value->column, "conflict", "deviation must not be above mean");
        } else {
            *dist = dist_from(kind->kind, keys);
        }
    }
}

static bool service_load(struct reading *r, struct scenario_service *service, uint32_t i)
{
    const struct yaml_node *key = r->services->key[i];
    const struct yaml_node *value = r->services->item[i];
    struct time_keys keys;
    memset(&keys, 0, sizeof keys);
    *service = (struct scenario_service){
        .name = arena_text(r->l.arena, key->text),
        .hosts = 1,
        .queue_max = UINT32_MAX,
        .instances = 1,
        .hang = 10 * BECALM_S,
        .fan_out = 1,
    };
    if (service->name == NULL) {
        return loader_no_memory(&r->l);
    }
    struct space spaces[] = {{&schema_scenario_service, service, NULL}, {&schema_scenario_time, &keys, NULL}};
    struct place place = {.spaces = spaces, .space_count = 2, .what = "a service"};
    (void)name_is_fine(&r->l, key, "service");
    bool fine = apply_mapping(&r->l, &place, value);
    need(&r->l, key, value, "time", "time: {exponential: 10ms}");
    const struct yaml_node *time = value_of(value, "time");
    if (fine && time != NULL) {
        time_choose(&r->l, &service->time, &keys, time);
    }
    return !r->l.no_memory;
}

static bool client_load(struct reading *r, struct scenario_client *client, uint32_t i)
{
    const struct yaml_node *key = r->clients->key[i];
    const struct yaml_node *value = r->clients->item[i];
    *client = (struct scenario_client){.name = arena_text(r->l.arena, key->text), .callers = 1, .retries = true};
    if (client->name == NULL) {
        return loader_no_memory(&r->l);
    }
    struct space spaces[] = {{&schema_scenario_client, client, NULL}};
    struct place place = {.spaces = spaces, .space_count = 1, .what = "a client"};
    (void)name_is_fine(&r->l, key, "client");
    (void)apply_mapping(&r->l, &place, value);
    need(&r->l, key, value, "to", "to: and the name of a service");
    need(&r->l, key, value, "rate", "rate: 100/s");
    return !r->l.no_memory;
}

/* Faults: each does one thing. */

static const char *const fault_words[] = {"capacity", "errors",   "dead",       "latency",
                                          "hangs",    "badHosts", "cutCallers", NULL}; /* in the order of the enum */

static bool fault_choose(struct loader *l, struct scenario_fault *fault, const struct fault_keys *keys,
                         const struct yaml_node *name, const struct yaml_node *node)
{
    int found = 0;
    for (int i = 0; fault_words[i] != NULL; i++) {
        if (value_of(node, fault_words[i]) != NULL) {
            fault->kind = (enum fault_kind)i;
            found++;
        }
    }
    if (found != 1) {
        loader_error(l, name->line, name->column, found == 0 ? "missing" : "conflict",
                     "%.64s does %s; write capacity, errors, dead, latency, hangs, badHosts or cutCallers, one of them",
                     name->text, found == 0 ? "nothing" : "several things");
        return false;
    }
    if (fault->kind == FAULT_DEAD && !keys->dead) {
        const struct yaml_node *dead = yaml_get(node, "dead");
        loader_error(l, dead->line, dead->column, "conflict", "dead: false is no fault; write dead: true");
        return false;
    }
    fault->ppm = fault->kind == FAULT_CAPACITY ? keys->capacity
                 : fault->kind == FAULT_ERRORS ? keys->errors
                 : fault->kind == FAULT_HANG   ? keys->hangs
                                               : keys->cut_callers;
    fault->count = keys->bad_hosts;
    fault->latency = keys->latency;
    return true;
}

static bool fault_load(struct reading *r, struct scenario_fault *fault, uint32_t i)
{
    const struct yaml_node *key = r->faults->key[i];
    const struct yaml_node *value = r->faults->item[i];
    struct fault_keys keys;
    memset(&keys, 0, sizeof keys);
    *fault = (struct scenario_fault){.name = arena_text(r->l.arena, key->text)};
    if (fault->name == NULL) {
        return loader_no_memory(&r->l);
    }
    struct space spaces[] = {{&schema_scenario_fault, fault, NULL}, {&schema_scenario_effect, &keys, NULL}};
    struct place place = {.spaces = spaces, .space_count = 2, .what = "a fault"};
    (void)name_is_fine(&r->l, key, "fault");
    bool fine = apply_mapping(&r->l, &place, value);
    need(&r->l, key, value, "at", "at: 60s");
    need(&r->l, key, value, "for", "for: 30s");
    need(&r->l, key, value, "service", "service: and the name of a service");
    if (!fine || !fault_choose(&r->l, fault, &keys, key, value)) {
        fault->service = NULL; /* nothing more is said of half a fault */
    }
    return !r->l.no_memory;
}

/* What is right by itself and must fit the rest. */

static uint32_t service_index(const struct reading *r, const char *name)
{
    for (uint32_t i = 0; i < r->file->scenario.service_count; i++) {
        if (strcmp(r->file->services[i].name, name) == 0) {
            return i;
        }
    }
    return SCENARIO_NONE;
}

/* The service that a text of the file names; SCENARIO_NONE: reported. */
static uint32_t service_named(struct reading *r, const struct yaml_node *node, const char *key)
{
    uint32_t index = service_index(r, node->text);
    const char *names[SERVICES_MAX];
    if (index == SCENARIO_NONE) {
        for (uint32_t i = 0; i < r->file->scenario.service_count; i++) {
            names[i] = r->file->services[i].name;
        }
        const char *near = value_nearest(node->text, names, r->file->scenario.service_count);
        loader_error(&r->l, node->line, node->column, "unknown-service", "%s: there is no service \"%.64s\"%s%.64s%s",
                     key, node->text, near == NULL ? "; services lists those that there are" : "; did you mean \"",
                     near == NULL ? "" : near, near == NULL ? "" : "\"?");
    }
    return index;
}

/* The text under a key of an entry, or NULL if it is no text: that was reported. */
static const struct yaml_node *text_of(const struct yaml_node *entry, const char *key)
{
    const struct yaml_node *node = value_of(entry, key);
    return node != NULL && node->kind == YAML_SCALAR && node->length > 0 ? node : NULL;
}

/* The calls between services, as numbers. */
struct calls {
    struct reading *r;
    uint32_t *callee[SERVICES_MAX]; /* ends with SCENARIO_NONE */
    uint64_t below[SERVICES_MAX];   /* calls that one request causes */
    enum { UNSEEN, ON_THE_WAY, SEEN } state[SERVICES_MAX];
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
    for (uint32_t i = 0; i < count && used < SERVICES_MAX; i++) {
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

/* Walks down from a service, callees first. The depth is bounded by the number of services. */
static void calls_walk(struct calls *c, uint32_t service)
{
    const struct scenario_service *plan = &c->r->file->services[service];
    const struct yaml_node *key = c->r->services->key[service];
    uint64_t below = 0;
    bool deeper = false; /* a callee was reported already */
    c->state[service] = ON_THE_WAY;
    for (const uint32_t *callee = c->callee[service]; *callee != SCENARIO_NONE; callee++) {
        if (c->state[*callee] == UNSEEN) {
            calls_walk(c, *callee);
        }
        if (c->state[*callee] == ON_THE_WAY) {
            loader_error(&c->r->l, key->line, key->column, "cycle",
                         "%.64s and %.64s call each other in a circle; take one of the calls out", plan->name,
                         c->r->file->services[*callee].name);
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
    c->state[service] = SEEN;
}

static bool calls_check(struct reading *r)
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
    free(c);
    return !r->l.no_memory;
}

static void clients_check(struct reading *r)
{
    for (uint32_t i = 0; i < r->file->scenario.client_count; i++) {
        const struct yaml_node *to = text_of(r->clients->item[i], "to");
        if (to != NULL) {
            (void)service_named(r, to, "to");
        }
    }
}

/* Two of a kind at once would end each other. */
static void fault_overlap(struct reading *r, uint32_t i)
{
    const struct scenario_fault *late = &r->file->faults[i];
    for (uint32_t k = 0; k < i; k++) {
        const struct scenario_fault *early = &r->file->faults[k];
        if (early->kind == late->kind && early->service != NULL && strcmp(early->service, late->service) == 0 &&
            early->at < late->at + late->length && late->at < early->at + early->length) {
            loader_error(&r->l, r->faults->key[i]->line, r->faults->key[i]->column, "conflict",
                         "%.64s and %.64s do the same to %.64s at the same time", early->name, late->name,
                         late->service);
        }
    }
}

static void fault_check(struct reading *r, uint32_t i)
{
    const struct scenario_fault *fault = &r->file->faults[i];
    const struct yaml_node *key = r->faults->key[i];
    const struct yaml_node *at = value_of(r->faults->item[i], "at");
    const struct yaml_node *name = text_of(r->faults->item[i], "service");
    uint32_t index = name == NULL ? SCENARIO_NONE : service_named(r, name, "service");
    if (at != NULL && fault->at >= r->file->scenario.length && r->file->scenario.length > 0) {
        loader_error(&r->l, at->line, at->column, "conflict", "at: %.64s begins when the run has ended; see length",
                     fault->name);
    }
    if (index == SCENARIO_NONE || fault->service == NULL) {
        return;
    }
    const struct scenario_service *service = &r->file->services[index];
    if (fault->kind == FAULT_CAPACITY && service->workers == 0) {
        loader_error(&r->l, key->line, key->column, "conflict",
                     "%.64s cuts the capacity of %.64s, which has any number of workers; give it workers", fault->name,
                     service->name);
    }
    if (fault->kind == FAULT_BAD_HOSTS && fault->count > service->hosts) {
        loader_error(&r->l, key->line, key->column, "conflict", "badHosts is %u, but %.64s has %u hosts", fault->count,
                     service->name, service->hosts);
    }
    fault_overlap(r, i);
}

static void length_check(struct reading *r, const struct yaml_node *root)
{
    const struct yaml_node *length = value_of(root, "length");
    if (length == NULL) {
        loader_error(&r->l, root->line, root->column, "missing", "the scenario has no length; write length: 600s");
    } else if (r->file->scenario.length % BECALM_S != 0) {
        loader_error(&r->l, length->line, length->column, "out-of-range",
                     "length is in whole seconds; write 10s or 5m");
    }
}

/* "policies/scenarios/chain.yaml" -> "chain" */
static char *name_from_path(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = arena_text(arena, slash == NULL ? path : slash + 1);
    char *dot = name == NULL ? NULL : strrchr(name, '.');
    if (dot != NULL && dot != name) {
        *dot = '\0';
    }
    return name;
}

static bool top_load(struct reading *r, const struct yaml_node *root)
{
    static const char *const beside[] = {"services", "clients", "faults", "policies", NULL};
    struct scenario *scenario = &r->file->scenario;
    struct space spaces[] = {{&schema_scenario, scenario, NULL}};
    struct place place = {.spaces = spaces, .space_count = 1, .what = "the top of a scenario", .beside = beside};
    scenario->name = name_from_path(r->l.arena, r->l.name);
    scenario->about = "";
    scenario->attempts = 4;
    scenario->timeout = BECALM_S;
    scenario->link = BECALM_MS / 2;
    if (scenario->name == NULL) {
        return loader_no_memory(&r->l);
    }
    (void)apply_mapping(&r->l, &place, root);
    length_check(r, root);
    r->services = named(&r->l, root, "services", SERVICES_MAX);
    r->clients = named(&r->l, root, "clients", CLIENTS_MAX);
    r->faults = named(&r->l, root, "faults", FAULTS_MAX);
    r->policies = named(&r->l, root, "policies", POLICIES_MAX);
    if (value_of(root, "services") == NULL || (r->services != NULL && r->services->count == 0)) {
        loader_error(&r->l, root->line, root->column, "missing",
                     "a scenario has at least one service; write services: {api: {time: {exponential: 10ms}}}");
    }
    if (value_of(root, "clients") == NULL || (r->clients != NULL && r->clients->count == 0)) {
        loader_error(&r->l, root->line, root->column, "missing",
                     "a scenario has at least one client; write clients: {users: {to: api, rate: 100/s}}");
    }
    return !r->l.no_memory;
}

static bool parts_load(struct reading *r)
{
    struct scenario *scenario = &r->file->scenario;
    scenario->service_count = r->services == NULL ? 0 : r->services->count;
    scenario->client_count = r->clients == NULL ? 0 : r->clients->count;
    scenario->fault_count = r->faults == NULL ? 0 : r->faults->count;
    scenario->policy_count = r->policies == NULL ? 0 : r->policies->count;
    scenario->services = r->file->services =
        arena_take(r->l.arena, (scenario->service_count + 1) * sizeof *scenario->services);
    scenario->clients = r->file->clients =
        arena_take(r->l.arena, (scenario->client_count + 1) * sizeof *scenario->clients);
    scenario->faults = r->file->faults = arena_take(r->l.arena, (scenario->fault_count + 1) * sizeof *scenario->faults);
    scenario->policies = r->file->policies =
        arena_take(r->l.arena, (scenario->policy_count + 1) * sizeof *scenario->policies);
    if (scenario->services == NULL || scenario->clients == NULL || scenario->faults == NULL ||
        scenario->policies == NULL) {
        return loader_no_memory(&r->l);
    }
    bool fine = true;
    for (uint32_t i = 0; fine && i < scenario->service_count; i++) {
        fine = service_load(r, &r->file->services[i], i);
    }
    for (uint32_t i = 0; fine && i < scenario->client_count; i++) {
        fine = client_load(r, &r->file->clients[i], i);
    }
    for (uint32_t i = 0; fine && i < scenario->fault_count; i++) {
        fine = fault_load(r, &r->file->faults[i], i);
    }
    for (uint32_t i = 0; fine && i < scenario->policy_count; i++) {
        fine = scenario_policy_load(&r->l, &r->file->policies[i], r->policies->key[i], r->policies->item[i]);
    }
    return fine;
}

static int scenario_build(struct reading *r, const struct yaml_node *root)
{
    if (root->kind != YAML_MAPPING) {
        loader_error(&r->l, root->line, root->column, "wrong-type",
                     "a scenario is a mapping; write length:, services: and clients:");
        return BECALM_EPARSE;
    }
    if (!top_load(r, root) || !parts_load(r)) {
        return BECALM_ENOMEM;
    }
    if (r->services != NULL) { /* without services every name would be wrong */
        clients_check(r);
        for (uint32_t i = 0; i < r->file->scenario.fault_count; i++) {
            fault_check(r, i);
        }
        if (!calls_check(r)) {
            return BECALM_ENOMEM;
        }
    }
    return r->l.diags->errors == 0 ? 0 : BECALM_EPARSE;
}

int scenario_parse(struct scenario_file **file, const char *name, const char *text, size_t length,
                   const struct becalm_load_options *options, struct becalm_diags *diags)
{
    int rc = BECALM_EPARSE;
    struct yaml_tree *tree = NULL;
    struct scenario_file *made = calloc(1, sizeof *made);
    *file = NULL;
    if (made == NULL) {
        rc = BECALM_ENOMEM;
        goto out;
    }
    tree = yaml_parse(name, text, length, diags);
    if (tree == NULL) {
        goto out;
    }
    for (const char *const *set = options == NULL ? NULL : options->set; set != NULL && *set != NULL; set++) {
        (void)set_apply(tree, &made->arena, *set, diags);
    }
    struct reading reading = {
        .l = {.arena = &made->arena,
              .name = name,
              .diags = diags,
              .allow_unknown = options != NULL && options->allow_unknown},
        .file = made,
    };
    rc = scenario_build(&reading, tree->root);
    if (rc == 0) {
        *file = made;
        made = NULL;
    }
out:
    yaml_free(tree);
    scenario_free(made);
    return rc;
}

int scenario_load(struct scenario_file **file, const char *path, const struct becalm_load_options *options,
                  struct becalm_diags *diags)
{
    size_t length;
    char *text = file_read(path, &length);
    *file = NULL;
    if (text == NULL) {
        becalm_diag_add(diags, BECALM_ERROR, path, 1, 1, "unreadable", "%s", strerror(errno));
        return BECALM_EIO;
    }
    int rc = scenario_parse(file, path, text, length, options, diags);
    free(text);
    return rc;
}

void scenario_free(struct scenario_file *file)
{
    if (file != NULL) {
        arena_free(&file->arena);
        free(file);
    }
}

const struct scenario *scenario_of(const struct scenario_file *file)
{
    return &file->scenario;
}
