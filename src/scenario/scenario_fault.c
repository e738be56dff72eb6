/* SPDX-License-Identifier: MIT */
#include "scenario_load_internal.h"

#include <string.h>

/* Faults: each does one thing. */

#define WORDS                                                                                                      \
    "capacity, errors, dead, latency, hangs, badHosts, cutCallers, refuse, killHosts, rolling, partition, surge, " \
    "store, swallow, loseConnections, killStore, hangStore or emptyStore"

const char *const scenario_fault_words[] = {
    "capacity",        "errors",    "dead",      "latency",    "hangs", "badHosts", "cutCallers",
    "refuse",          "killHosts", "rolling",   "partition",  "surge", "store",    "swallow",
    "loseConnections", "killStore", "hangStore", "emptyStore", NULL}; /* in the order of the enum */

/* A fault that is switched off is none. */
static bool is_off(const struct scenario_fault *fault, const struct fault_keys *keys)
{
    return (fault->kind == FAULT_DEAD && !keys->dead) || (fault->kind == FAULT_REFUSE && !keys->refuse) ||
           (fault->kind == FAULT_PARTITION && !keys->partition) || (fault->kind == FAULT_SWALLOW && !keys->swallow) ||
           (fault->kind == FAULT_HANG_STORE && !keys->hang_store) ||
           (fault->kind == FAULT_EMPTY_STORE && !keys->empty_store);
}

static bool fault_choose(struct loader *l, struct scenario_fault *fault, const struct fault_keys *keys,
                         const struct yaml_node *name, const struct yaml_node *node)
{
    int found = 0;
    for (int i = 0; scenario_fault_words[i] != NULL; i++) {
        if (value_of(node, scenario_fault_words[i]) != NULL) {
            fault->kind = (enum fault_kind)i;
            found++;
        }
    }
    if (found != 1) {
        loader_error(l, name->line, name->column, found == 0 ? "missing" : "conflict",
                     "%.64s does %s; write " WORDS ", one of them", name->text,
                     found == 0 ? "nothing" : "several things");
        return false;
    }
    const struct yaml_node *value = yaml_get(node, scenario_fault_words[fault->kind]);
    if (is_off(fault, keys)) {
        loader_error(l, value->line, value->column, "conflict", "%s: %.64s is no fault; write %s: true",
                     scenario_fault_words[fault->kind], value->text, scenario_fault_words[fault->kind]);
        return false;
    }
    fault->ppm = fault->kind == FAULT_CAPACITY ? keys->capacity
                 : fault->kind == FAULT_ERRORS ? keys->errors
                 : fault->kind == FAULT_HANG   ? keys->hangs
                                               : keys->cut_callers;
    fault->count = fault->kind == FAULT_KILL_HOSTS         ? keys->kill_hosts
                   : fault->kind == FAULT_LOSE_CONNECTIONS ? keys->lose_connections
                                                           : keys->bad_hosts;
    fault->latency = fault->kind == FAULT_STORE ? keys->store : keys->latency;
    fault->age = keys->kill_store;
    fault->each = keys->rolling;
    fault->factor_milli = keys->surge;
    return true;
}

/* Which keys go with which fault. */
static void keys_check(struct loader *l, const struct scenario_fault *fault, const struct yaml_node *key,
                       const struct yaml_node *value)
{
    const struct yaml_node *flap = value_of(value, "flap");
    const struct yaml_node *from = value_of(value, "from");
    const struct yaml_node *client = value_of(value, "client");
    if (flap != NULL && (fault->on == 0 || fault->off == 0)) {
        loader_error(l, flap->line, flap->column, "missing", "flap has on and off; write flap: {on: 1s, off: 2s}");
    }
    if (from != NULL && fault->kind != FAULT_PARTITION) {
        loader_error(l, from->line, from->column, "conflict", "from belongs to a partition");
    }
    const struct yaml_node *silent = value_of(value, "silent");
    if (silent != NULL && fault->kind != FAULT_CUT_CALLERS) {
        loader_error(l, silent->line, silent->column, "conflict", "silent belongs to cutCallers");
    }
    if (fault->kind == FAULT_SURGE) {
        const struct yaml_node *service = value_of(value, "service");
        need(l, key, value, "client", "client: and the name of a client");
        if (service != NULL) {
            loader_error(l, service->line, service->column, "conflict", "a surge is of a client; write client");
        }
    } else {
        need(l, key, value, "service", "service: and the name of a service");
        if (client != NULL) {
            loader_error(l, client->line, client->column, "conflict", "client belongs to a surge");
        }
    }
}

bool fault_load(struct reading *r, struct scenario_fault *fault, uint32_t i)
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
    struct place place = {.spaces = spaces, .space_count = 2, .what = "a fault", .manual = SCENARIO_MANUAL};
    (void)name_is_fine(&r->l, key, "fault");
    bool fine = apply_mapping(&r->l, &place, value);
    need(&r->l, key, value, "at", "at: 60s");
    need(&r->l, key, value, "for", "for: 30s");
    if (fine && fault_choose(&r->l, fault, &keys, key, value)) {
        keys_check(&r->l, fault, key, value);
    } else {
        fault->service = fault->client = NULL; /* nothing more is said of half a fault */
    }
    return !r->l.no_memory;
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Two overlapping faults of one kind are an error: the end of the first would end the second. */
static void fault_overlap(struct reading *r, uint32_t i)
{
    const struct scenario_fault *late = &r->file->faults[i];
    for (uint32_t k = 0; k < i; k++) {
        const struct scenario_fault *early = &r->file->faults[k];
        if (early->kind == late->kind && early->service != NULL && same(early->service, late->service) &&
            same(early->from, late->from) && same(early->client, late->client) && early->at < late->at + late->length &&
            late->at < early->at + early->length) {
            loader_error(&r->l, r->faults->key[i]->line, r->faults->key[i]->column, "conflict",
                         "%.64s and %.64s do the same to %.64s at the same time", early->name, late->name,
                         late->client == NULL ? late->service : late->client);
        }
    }
}

/* Does the service have the part that the fault breaks? */
static void victim_check(struct reading *r, const struct scenario_fault *fault, const struct yaml_node *key,
                         uint32_t index)
{
    const struct scenario_service *service = &r->file->services[index];
    const struct yaml_node *workers = value_of(r->services->item[index], "workers");
    bool any = workers == NULL || yaml_is(workers, "any"); /* else, if it could not be read, that was reported */
    if (fault->kind == FAULT_CAPACITY && any) {
        loader_error(&r->l, key->line, key->column, "conflict",
                     "%.64s cuts the capacity of %.64s, which has any number of workers; give it workers", fault->name,
                     service->name);
    }
    if (fault->kind == FAULT_LOSE_CONNECTIONS && r->file->scenario.pool_max == 0) {
        loader_error(&r->l, key->line, key->column, "conflict",
                     "%.64s loses connections, but there are none in this world; write pool: {maxPerHost: any}, or "
                     "protocol: h2",
                     fault->name);
    }
    if ((fault->kind == FAULT_BAD_HOSTS || fault->kind == FAULT_KILL_HOSTS) && fault->count > service->hosts) {
        loader_error(&r->l, key->line, key->column, "conflict", "%s is %u, but %.64s has %u host%s",
                     scenario_fault_words[fault->kind], fault->count, service->name, service->hosts,
                     service->hosts == 1 ? "" : "s");
    }
}

/* Callers that are cut off are whole ones: a share that rounds up to all of a group is no share. */
static void cut_check(struct reading *r, const struct yaml_node *key, const struct scenario_fault *fault,
                      const char *name, uint64_t callers)
{
    if (fault->ppm > 0 && fault->ppm < 1000000 && (fault->ppm * callers + 999999) / 1000000 == callers) {
        loader_error(&r->l, key->line, key->column, "conflict",
                     "%.64s would cut off all %.64s: there %s %u; give it more %s, or write 100%%", fault->name, name,
                     callers == 1 ? "is" : "are", (unsigned)callers,
                     scenario_find(&r->file->scenario, name) == SCENARIO_NONE ? "callers" : "instances");
    }
}

static void cuts_check(struct reading *r, const struct yaml_node *key, const struct scenario_fault *fault)
{
    const struct scenario *plan = &r->file->scenario;
    for (uint32_t i = 0; i < plan->client_count; i++) {
        const struct scenario_client *client = &plan->clients[i];
        if (client->to != NULL && strcmp(client->to, fault->service) == 0) {
            cut_check(r, key, fault, client->name, client->callers);
        }
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        const struct scenario_service *service = &plan->services[i];
        for (uint32_t k = 0; service->calls != NULL && service->calls[k] != NULL; k++) {
            if (strcmp(service->calls[k], fault->service) == 0) {
                cut_check(r, key, fault, service->name, service->instances);
            }
        }
    }
}

void fault_check(struct reading *r, uint32_t i)
{
    struct scenario_fault *fault = &r->file->faults[i];
    const struct yaml_node *entry = r->faults->item[i];
    const struct yaml_node *at = value_of(entry, "at");
    const struct yaml_node *name = text_of(entry, "service");
    const struct yaml_node *client = text_of(entry, "client");
    uint32_t index = name == NULL ? SCENARIO_NONE : service_named(r, name, "service");
    if (at != NULL && fault->at >= r->file->scenario.length && r->file->scenario.length > 0) {
        loader_error(&r->l, at->line, at->column, "conflict", "at: %.64s begins when the run has ended; see length",
                     fault->name);
    }
    if (fault->client != NULL && client != NULL) { /* a surge is felt by the service that is called */
        uint32_t caller = client_named(r, client, "client");
        fault->service = caller == SCENARIO_NONE ? NULL : r->file->clients[caller].to;
    }
    if (fault->from != NULL) {
        calls_between_check(r, text_of(entry, "from"), name);
    }
    if (fault->service != NULL && index != SCENARIO_NONE) {
        victim_check(r, fault, r->faults->key[i], index);
        if (fault->kind == FAULT_CUT_CALLERS) {
            cuts_check(r, r->faults->key[i], fault);
        }
    }
    if (fault->service != NULL) {
        fault_overlap(r, i);
    }
}
