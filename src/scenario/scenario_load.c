/* SPDX-License-Identifier: MIT */
#include "scenario_load_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/file.h"
#include "policy/set.h"
#include "policy/value.h"
#include "scenario_policy.h"

const struct yaml_node *value_of(const struct yaml_node *node, const char *key)
{
    const struct yaml_node *value = node->kind == YAML_MAPPING ? yaml_get(node, key) : NULL;
    return yaml_is_null(value) ? NULL : value;
}

void need(struct loader *l, const struct yaml_node *name, const struct yaml_node *node, const char *key,
          const char *example)
{
    if (value_of(node, key) == NULL) {
        loader_error(l, name->line, name->column, "missing", "%.64s has no %s; write %s", name->text, key, example);
    }
}

const struct yaml_node *named(struct loader *l, const struct yaml_node *root, const char *key, uint32_t max)
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

/* `time` and `body` of a service or endpoint, where they are written. */
static void times_load(struct reading *r, const struct yaml_node *node, struct dist *time, struct dist *body)
{
    const struct yaml_node *written = value_of(node, "time");
    if (written != NULL) {
        dist_load(r, "time", written, time);
    }
    written = value_of(node, "body");
    if (written != NULL) {
        dist_load(r, "body", written, body);
    }
}

/* The endpoints of a service inherit its values, unless they set their own. */
static bool endpoints_load(struct reading *r, struct scenario_service *service, const struct yaml_node *endpoints)
{
    static const char *const beside[] = {"time", "body", NULL};
    struct scenario_endpoint *made = arena_take(r->l.arena, (endpoints->count + 1) * sizeof *made);
    uint64_t sum = 0;
    if (made == NULL) {
        return loader_no_memory(&r->l);
    }
    for (uint32_t i = 0; i < endpoints->count; i++) {
        const struct yaml_node *key = endpoints->key[i];
        made[i] = (struct scenario_endpoint){
            .name = arena_text(r->l.arena, key->text),
            .time = service->time,
            .body = service->body,
            .error_ppm = service->error_ppm,
            .hang_ppm = service->hang_ppm,
            .hang_first = service->hang_first,
            .hang = service->hang,
        };
        if (made[i].name == NULL) {
            return loader_no_memory(&r->l);
        }
        struct space spaces[] = {{&schema_scenario_endpoint, &made[i], NULL}};
        struct place place = {
            .spaces = spaces, .space_count = 1, .what = "an endpoint", .beside = beside, .manual = SCENARIO_MANUAL};
        (void)name_is_fine(&r->l, key, "endpoint");
        (void)apply_mapping(&r->l, &place, endpoints->item[i]);
        times_load(r, endpoints->item[i], &made[i].time, &made[i].body);
        sum += made[i].share_ppm;
    }
    if (sum > 1000000) {
        loader_error(&r->l, endpoints->line, endpoints->column, "conflict",
                     "the shares of the endpoints of %.64s are above 100%%", service->name);
    }
    service->endpoints = made;
    service->endpoint_count = endpoints->count;
    return true;
}

static bool service_load(struct reading *r, struct scenario_service *service, uint32_t i)
{
    static const char *const beside[] = {"time", "body", "endpoints", NULL};
    const struct yaml_node *key = r->services->key[i];
    const struct yaml_node *value = r->services->item[i];
    *service = (struct scenario_service){
        .name = arena_text(r->l.arena, key->text),
        .hosts = 1,
        .queue_max = UINT32_MAX,
        .gate_retries = true,
        .instances = 1,
        .hang = 10 * BECALM_S,
        .quota_burst = 10,
        .accept_max = SCENARIO_NONE,
        .restart = 5 * BECALM_S,
        .fan_out = 1,
    };
    if (service->name == NULL) {
        return loader_no_memory(&r->l);
    }
    struct space spaces[] = {{&schema_scenario_service, service, NULL}};
    struct place place = {
        .spaces = spaces, .space_count = 1, .what = "a service", .beside = beside, .manual = SCENARIO_MANUAL};
    (void)name_is_fine(&r->l, key, "service");
    (void)apply_mapping(&r->l, &place, value);
    need(&r->l, key, value, "time", "time: {exponential: 10ms}");
    times_load(r, value, &service->time, &service->body);
    const struct yaml_node *quota = value_of(value, "quota");
    if (quota != NULL && quota->kind == YAML_MAPPING) {
        need(&r->l, key, quota, "rate", "quota: {rate: 10/s}");
    }
    const struct yaml_node *endpoints = named(&r->l, value, "endpoints", ENDPOINTS_MAX);
    if (endpoints != NULL && !endpoints_load(r, service, endpoints)) {
        return false;
    }
    return !r->l.no_memory;
}

static bool link_load(struct reading *r, struct scenario_link *link, uint32_t i)
{
    const struct yaml_node *key = r->links->key[i];
    const struct yaml_node *value = r->links->item[i];
    const struct scenario *scenario = &r->file->scenario;
    *link = (struct scenario_link){
        .name = arena_text(r->l.arena, key->text), .latency = scenario->link, .loss_ppm = scenario->loss_ppm};
    if (link->name == NULL) {
        return loader_no_memory(&r->l);
    }
    struct space spaces[] = {{&schema_scenario_link, link, NULL}};
    struct place place = {.spaces = spaces, .space_count = 1, .what = "a link", .manual = SCENARIO_MANUAL};
    (void)name_is_fine(&r->l, key, "link");
    (void)apply_mapping(&r->l, &place, value);
    need(&r->l, key, value, "from", "from: and the name of a client or service");
    need(&r->l, key, value, "to", "to: and the name of a service");
    return !r->l.no_memory;
}

/* Checks values that are valid by themselves but must fit the rest of the file. */

uint32_t service_named(struct reading *r, const struct yaml_node *node, const char *key)
{
    uint32_t index = scenario_find(&r->file->scenario, node->text);
    const char *names[SCENARIO_SERVICES_MAX];
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

uint32_t client_named(struct reading *r, const struct yaml_node *node, const char *key)
{
    for (uint32_t i = 0; i < r->file->scenario.client_count; i++) {
        if (strcmp(r->file->clients[i].name, node->text) == 0) {
            return i;
        }
    }
    loader_error(&r->l, node->line, node->column, "unknown-client", "%s: there is no client \"%.64s\"", key,
                 node->text);
    return SCENARIO_NONE;
}

/* A client or a service; false: reported. */
static bool caller_check(struct reading *r, const struct yaml_node *node, const char *key)
{
    for (uint32_t i = 0; i < r->file->scenario.client_count; i++) {
        if (strcmp(r->file->clients[i].name, node->text) == 0) {
            return true;
        }
    }
    return service_named(r, node, key) != SCENARIO_NONE;
}

static bool is_called(const struct scenario_service *service, const char *to)
{
    for (uint32_t i = 0; service->calls != NULL && service->calls[i] != NULL; i++) {
        if (strcmp(service->calls[i], to) == 0) {
            return true;
        }
    }
    return service->gate && strcmp(service->name, to) == 0; /* the gate calls the service behind it */
}

static bool does_call(const struct reading *r, const char *from, const char *to)
{
    for (uint32_t i = 0; i < r->file->scenario.client_count; i++) {
        const struct scenario_client *client = &r->file->clients[i];
        if (strcmp(client->name, from) == 0 && client->to != NULL && strcmp(client->to, to) == 0) {
            return true;
        }
    }
    for (uint32_t i = 0; i < r->file->scenario.service_count; i++) {
        if (strcmp(r->file->services[i].name, from) == 0 && is_called(&r->file->services[i], to)) {
            return true;
        }
    }
    return false;
}

void calls_between_check(struct reading *r, const struct yaml_node *from, const struct yaml_node *to)
{
    bool known = from != NULL && caller_check(r, from, "from");
    if (known && to != NULL && scenario_find(&r->file->scenario, to->text) != SCENARIO_NONE &&
        !does_call(r, from->text, to->text)) {
        loader_error(&r->l, from->line, from->column, "conflict",
                     "\"%.64s\" never calls \"%.64s\": nothing is sent there", from->text, to->text);
    }
}

static bool same_text(const struct yaml_node *a, const struct yaml_node *b)
{
    return a != NULL && b != NULL && strcmp(a->text, b->text) == 0;
}

/* Of two links with the same ends one would never be used. */
static void link_twins(struct reading *r, uint32_t i)
{
    const struct yaml_node *late = r->links->item[i];
    for (uint32_t k = 0; k < i; k++) {
        const struct yaml_node *early = r->links->item[k];
        if (same_text(text_of(early, "from"), text_of(late, "from")) &&
            same_text(text_of(early, "to"), text_of(late, "to"))) {
            loader_error(&r->l, r->links->key[i]->line, r->links->key[i]->column, "conflict",
                         "%.64s and %.64s are the same link; remove one of them", r->links->key[k]->text,
                         r->links->key[i]->text);
        }
    }
}

/* from: NAME would mean either. */
static void client_name_check(struct reading *r, uint32_t i)
{
    const struct yaml_node *key = r->clients->key[i];
    if (scenario_find(&r->file->scenario, key->text) != SCENARIO_NONE) {
        loader_error(&r->l, key->line, key->column, "conflict",
                     "\"%.64s\" is a client and a service; give one of them another name", key->text);
    }
}

static void link_check(struct reading *r, uint32_t i)
{
    link_twins(r, i);
    const struct yaml_node *to = text_of(r->links->item[i], "to");
    calls_between_check(r, text_of(r->links->item[i], "from"), to);
    if (to != NULL) {
        (void)service_named(r, to, "to");
    }
}

const struct yaml_node *text_of(const struct yaml_node *entry, const char *key)
{
    const struct yaml_node *node = value_of(entry, key);
    return node != NULL && node->kind == YAML_SCALAR && node->length > 0 ? node : NULL;
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

static void deviation_check(struct reading *r, const struct yaml_node *root)
{
    const struct yaml_node *link = value_of(root, "link");
    if (link != NULL && r->file->scenario.link_deviation > r->file->scenario.link) {
        loader_error(&r->l, link->line, link->column, "conflict", "link: deviation must not be above latency");
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

/* A scenario whose calls share connections must model connections. */
static void streams_check(struct reading *r, const struct yaml_node *root)
{
    struct scenario *scenario = &r->file->scenario;
    const struct yaml_node *pool = value_of(root, "pool");
    const struct yaml_node *streams = pool == NULL ? NULL : value_of(pool, "streams");
    if (streams != NULL && !scenario->shared) {
        loader_error(&r->l, streams->line, streams->column, "conflict",
                     "pool.streams are those of HTTP/2; write protocol: h2");
    }
    if (scenario->shared && scenario->pool_max == 0) {
        scenario->pool_max = UINT32_MAX;
    }
}

static bool top_load(struct reading *r, const struct yaml_node *root)
{
    static const char *const beside[] = {"services", "clients", "faults", "links", "policies", NULL};
    struct scenario *scenario = &r->file->scenario;
    struct space spaces[] = {{&schema_scenario, scenario, NULL}};
    struct place place = {.spaces = spaces,
                          .space_count = 1,
                          .what = "the top of a scenario",
                          .beside = beside,
                          .manual = SCENARIO_MANUAL};
    scenario->name = name_from_path(r->l.arena, r->l.name);
    scenario->about = "";
    scenario->attempts = 4;
    scenario->timeout = BECALM_S;
    scenario->link = BECALM_MS / 2;
    scenario->streams = 100; /* as pool.streams of a policy */
    if (scenario->name == NULL) {
        return loader_no_memory(&r->l);
    }
    (void)apply_mapping(&r->l, &place, root);
    streams_check(r, root);
    length_check(r, root);
    deviation_check(r, root);
    r->services = named(&r->l, root, "services", SCENARIO_SERVICES_MAX);
    r->clients = named(&r->l, root, "clients", SCENARIO_CLIENTS_MAX);
    r->faults = named(&r->l, root, "faults", FAULTS_MAX);
    r->links = named(&r->l, root, "links", LINKS_MAX);
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

static uint32_t count_of(const struct yaml_node *mapping)
{
    return mapping == NULL ? 0 : mapping->count;
}

/* Room for all parts, and one more of each, so that none is of size 0. */
static bool parts_make(struct reading *r)
{
    struct scenario *scenario = &r->file->scenario;
    struct scenario_file *file = r->file;
    scenario->service_count = count_of(r->services);
    scenario->client_count = count_of(r->clients);
    scenario->fault_count = count_of(r->faults);
    scenario->link_count = count_of(r->links);
    scenario->policy_count = count_of(r->policies);
    file->services = arena_take(r->l.arena, (scenario->service_count + 1) * sizeof *file->services);
    file->clients = arena_take(r->l.arena, (scenario->client_count + 1) * sizeof *file->clients);
    file->faults = arena_take(r->l.arena, (scenario->fault_count + 1) * sizeof *file->faults);
    file->links = arena_take(r->l.arena, (scenario->link_count + 1) * sizeof *file->links);
    file->policies = arena_take(r->l.arena, (scenario->policy_count + 1) * sizeof *file->policies);
    scenario->services = file->services;
    scenario->clients = file->clients;
    scenario->faults = file->faults;
    scenario->links = file->links;
    scenario->policies = file->policies;
    bool made = file->services != NULL && file->clients != NULL && file->faults != NULL && file->links != NULL &&
                file->policies != NULL;
    return made || loader_no_memory(&r->l);
}

static bool parts_load(struct reading *r)
{
    const struct scenario *scenario = &r->file->scenario;
    bool fine = parts_make(r);
    for (uint32_t i = 0; fine && i < scenario->service_count; i++) {
        fine = service_load(r, &r->file->services[i], i);
    }
    for (uint32_t i = 0; fine && i < scenario->client_count; i++) {
        fine = client_load(r, &r->file->clients[i], i);
    }
    for (uint32_t i = 0; fine && i < scenario->fault_count; i++) {
        fine = fault_load(r, &r->file->faults[i], i);
    }
    for (uint32_t i = 0; fine && i < scenario->link_count; i++) {
        fine = link_load(r, &r->file->links[i], i);
    }
    for (uint32_t i = 0; fine && i < scenario->policy_count; i++) {
        fine = scenario_policy_load(&r->l, &r->file->policies[i], r->policies->key[i], r->policies->item[i]);
    }
    return fine;
}

/* Checks the names by which parts of the scenario refer to other parts. */
static bool names_check(struct reading *r)
{
    const struct scenario *scenario = &r->file->scenario;
    for (uint32_t i = 0; i < scenario->client_count; i++) {
        client_name_check(r, i);
        if (!client_check(r, i)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        fault_check(r, i);
    }
    for (uint32_t i = 0; i < scenario->link_count; i++) {
        link_check(r, i);
    }
    return calls_check(r);
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
    if (r->services != NULL && !names_check(r)) { /* without services every name would be wrong */
        return BECALM_ENOMEM;
    }
    return r->l.diags->errors == 0 ? 0 : BECALM_EPARSE;
}

/* Does a path begin with a key of the mapping? */
static bool begins_with_key(const struct yaml_node *mapping, const char *path)
{
    for (uint32_t i = 0; i < mapping->count; i++) {
        size_t length = mapping->key[i]->length;
        if (strncmp(path, mapping->key[i]->text, length) == 0 && (path[length] == '.' || path[length] == '=')) {
            return true;
        }
    }
    return false;
}

static bool set_unknown(const char *set, const char *path, const char *what, const struct yaml_node *mapping,
                        struct becalm_diags *diags)
{
    const char *names[SCENARIO_SERVICES_MAX];
    char name[128];
    uint32_t count = mapping == NULL ? 0 : mapping->count;
    count = count < SCENARIO_SERVICES_MAX ? count : SCENARIO_SERVICES_MAX;
    for (uint32_t i = 0; i < count; i++) {
        names[i] = mapping->key[i]->text;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(path, ".="), path);
    const char *near = value_nearest(name, names, count);
    becalm_diag_add(diags, BECALM_ERROR, "--set", 1, 1, "unknown-name", "%.128s: there is no %s \"%.64s\"%s%.64s%s",
                    set, what, name,
                    near != NULL ? "; did you mean \""
                    : count > 0  ? "; there is \""
                                 : ", nor any other",
                    near != NULL ? near
                    : count > 0  ? names[0]
                                 : "",
                    near != NULL ? "\"?"
                    : count > 0  ? "\""
                                 : "");
    return false;
}

/* faults.f={at: 1s, ...}: a whole one. */
static bool is_whole(const char *path)
{
    const char *end = path + strcspn(path, ".=");
    return end[0] == '=' && end[1] == '{';
}

/* An override may only change a key that exists: else a typo would add a service or client. */
static bool set_check(const struct yaml_node *root, const char *set, struct becalm_diags *diags)
{
    static const struct {
        const char *start;
        const char *what;
    } groups[] = {{"services.", "service"},
                  {"clients.", "client"},
                  {"faults.", "fault"},
                  {"links.", "link"},
                  {"policies.", "policy"}};
    for (size_t i = 0; root->kind == YAML_MAPPING && i < sizeof groups / sizeof *groups; i++) {
        size_t start = strlen(groups[i].start);
        char group[16];
        if (strncmp(set, groups[i].start, start) != 0) {
            continue;
        }
        (void)snprintf(group, sizeof group, "%.*s", (int)start - 1, groups[i].start);
        const struct yaml_node *mapping = value_of(root, group);
        if (mapping != NULL && mapping->kind != YAML_MAPPING) {
            return true; /* that is another error, and will be told */
        }
        if ((mapping == NULL || !begins_with_key(mapping, set + start)) && !is_whole(set + start)) {
            return set_unknown(set, set + start, groups[i].what, mapping, diags);
        }
    }
    return true;
}

/* `path` is NULL if the text is no file's. */
static int scenario_read(struct scenario_file **file, const char *name, const char *path, const char *text,
                         size_t length, const struct becalm_load_options *options, struct becalm_diags *diags)
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
        (void)(set_check(tree->root, *set, diags) && set_apply(tree, &made->arena, *set, diags));
    }
    struct reading reading = {
        .l = {.arena = &made->arena,
              .name = name,
              .diags = diags,
              .allow_unknown = options != NULL && options->allow_unknown,
              .shared_budgets = true},
        .file = made,
        .path = path,
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

int scenario_parse(struct scenario_file **file, const char *name, const char *text, size_t length,
                   const struct becalm_load_options *options, struct becalm_diags *diags)
{
    return scenario_read(file, name, NULL, text, length, options, diags);
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
    int rc = scenario_read(file, path, path, text, length, options, diags);
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
