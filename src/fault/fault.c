/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include "policy/apply.h"
#include "scenario/scenario_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR (3600 * BECALM_S)

/* The keys of an order that a scenario does not have. */
struct order {
    struct fault *fault;
    const char *name;
    uint32_t share;
    uint32_t reset;
    uint32_t status;
};

static const char *const towards[] = {"hosts", "clients", NULL};

/* clang-format off */
#define RANGE(low, high) .min = (low), .max = (high)
#define FIELD(what, field) .type = TYPE_##what, .offset = offsetof(ROW, field)

#define ROW struct fault
static const struct schema_key fault_table[] = {
    {"service", FIELD(TEXT, service), .sentence = "the service that it hits"},
    {"endpoint", FIELD(TEXT, endpoint), .sentence = "only calls of this endpoint; default: of the service's own rules"},
    {"for", FIELD(DURATION, length), RANGE(BECALM_MS, HOUR), .sentence = "how long it lasts"},
    {"cap", FIELD(INTEGER, cap), RANGE(1, 1000000000), .sentence = "the fault ends after it has hit this number of calls"},
    {"towards", FIELD(EITHER, to_clients), .words = towards, .sentence = "which side seems to fail: hosts to the gateway, or the gateway to clients"},
    {"clients", FIELD(NETWORKS, clients), .sentence = "only calls from these networks are hit"},
    {"headers", FIELD(LIST, headers), .sentence = "only calls with all of these headers are hit"},
    {"silent", FIELD(BOOLEAN, silent), .sentence = "cutCallers: packets of the callers vanish, instead of being refused"},
    {"flap.on", FIELD(DURATION, on), RANGE(BECALM_MS, HOUR), .sentence = "how long the fault is on, again and again"},
    {"flap.off", FIELD(DURATION, off), RANGE(BECALM_MS, HOUR), .sentence = "how long the fault is off in between"},
};
#undef ROW

#define ROW struct order
static const struct schema_key order_table[] = {
    {"name", FIELD(TEXT, name), .sentence = "the name by which it is cleared"},
    {"share", FIELD(PERCENT, share), RANGE(1, FAULT_ALL), .sentence = "the share of the attempts, or of the calls, that is hit"},
    {"reset", FIELD(PERCENT, reset), RANGE(1, FAULT_ALL), .sentence = "the share of the attempts whose connection breaks"},
    {"status", FIELD(INTEGER, status), RANGE(400, 599), .sentence = "the status of answers with errors"},
};
#undef ROW
/* clang-format on */

static const struct schema fault_schema = {.keys = fault_table, .count = sizeof fault_table / sizeof *fault_table};
static const struct schema order_schema = {.keys = order_table, .count = sizeof order_table / sizeof *order_table};

const char *fault_word(enum fault_kind kind)
{
    return kind == FAULT_RESET ? "reset" : scenario_fault_words[kind];
}

bool fault_is_of_gateways(enum fault_kind kind)
{
    return kind != FAULT_CAPACITY && kind != FAULT_SURGE && kind != FAULT_STORE && kind != FAULT_KILL_STORE &&
           kind != FAULT_HANG_STORE && kind != FAULT_EMPTY_STORE && kind != FAULT_LOSE_CONNECTIONS;
}

static const struct yaml_node *value_of(const struct yaml_node *body, const char *key)
{
    return body->kind == YAML_MAPPING ? yaml_get(body, key) : NULL;
}

static void wrong(struct loader *l, const struct yaml_node *at, const char *code, const char *sentence)
{
    loader_error(l, at->line, at->column, code, "%s", sentence);
}

/* Which one it is. False: none, or several. */
static bool choose(struct loader *l, struct fault *fault, const struct yaml_node *body)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < FAULT_WORDS; i++) {
        if (value_of(body, fault_word((enum fault_kind)i)) != NULL) {
            fault->word = (enum fault_kind)i;
            found++;
        }
    }
    if (found != 1) {
        wrong(l, body, found == 0 ? "missing" : "conflict",
              "an order does one thing; write errors, dead, latency, hangs, badHosts, cutCallers, refuse, swallow, "
              "killHosts, rolling, partition or reset");
        return false;
    }
    const struct yaml_node *value = yaml_get(body, fault_word(fault->word));
    if (!fault_is_of_gateways(fault->word)) {
        loader_error(l, value->line, value->column, "conflict",
                     "%s is a fault of the simulator: no gateway can do that", fault_word(fault->word));
        return false;
    }
    return true;
}

/* The act of this kind of fault in a gateway. False: its value switches it off, so there is no fault. */
static bool act_of(struct fault *fault, const struct order *order, const struct fault_keys *keys)
{
    fault->share = fault->callers = FAULT_ALL;
    if (fault->word == FAULT_RESET) {
        fault->act = FAULT_ACT_RESET;
        fault->share = order->reset;
        return true;
    }
    switch (fault->word) {
    case FAULT_ERRORS:
        fault->act = FAULT_ACT_STATUS;
        fault->share = keys->errors;
        return fault->share > 0;
    case FAULT_DEAD:
        fault->act = FAULT_ACT_STATUS;
        return keys->dead;
    case FAULT_LATENCY:
        fault->act = FAULT_ACT_DELAY;
        fault->latency = keys->latency;
        return true;
    case FAULT_HANG:
        fault->act = FAULT_ACT_HANG;
        fault->share = keys->hangs;
        return fault->share > 0;
    case FAULT_BAD_HOSTS:
        fault->act = FAULT_ACT_STATUS;
        fault->hosts = keys->bad_hosts;
        return true;
    case FAULT_CUT_CALLERS:
        fault->act = fault->silent ? FAULT_ACT_HANG : FAULT_ACT_REFUSE;
        fault->callers = keys->cut_callers;
        return fault->callers > 0;
    case FAULT_REFUSE:
        fault->act = FAULT_ACT_REFUSE;
        return keys->refuse;
    case FAULT_KILL_HOSTS:
        fault->act = FAULT_ACT_REFUSE;
        fault->hosts = keys->kill_hosts;
        return true;
    case FAULT_ROLLING:
        fault->act = FAULT_ACT_REFUSE;
        fault->each = keys->rolling;
        return true;
    case FAULT_PARTITION:
        fault->act = FAULT_ACT_HANG;
        return keys->partition;
    case FAULT_SWALLOW:
        fault->act = FAULT_ACT_SWALLOW;
        return keys->swallow;
    case FAULT_CAPACITY:
    case FAULT_SURGE:
    case FAULT_STORE:
    case FAULT_LOSE_CONNECTIONS:
    case FAULT_KILL_STORE:
    case FAULT_HANG_STORE:
    case FAULT_EMPTY_STORE:
        break; /* choose() has refused them */
    }
    return false;
}

/* Has the word a share of its own? */
static bool has_share(enum fault_kind word)
{
    return word == FAULT_ERRORS || word == FAULT_HANG || word == FAULT_CUT_CALLERS || word == FAULT_RESET;
}

/* Checks which keys go with which kind of fault. */
static void check(struct loader *l, const struct fault *fault, const struct yaml_node *body)
{
    const struct yaml_node *share = value_of(body, "share");
    const struct yaml_node *status = value_of(body, "status");
    const struct yaml_node *silent = value_of(body, "silent");
    const struct yaml_node *flap = value_of(body, "flap");
    const struct yaml_node *direction = value_of(body, "towards");
    if (share != NULL && has_share(fault->word)) {
        loader_error(l, share->line, share->column, "conflict", "%s has its own share; leave out share",
                     fault_word(fault->word));
    }
    if (status != NULL && fault->act != FAULT_ACT_STATUS) {
        wrong(l, status, "conflict", "status belongs to errors, dead and badHosts");
    }
    if (silent != NULL && fault->word != FAULT_CUT_CALLERS) {
        wrong(l, silent, "conflict", "silent belongs to cutCallers");
    }
    if (flap != NULL && (fault->on == 0 || fault->off == 0)) {
        wrong(l, flap, "missing", "flap has on and off; write flap: {on: 1s, off: 2s}");
    }
    if (fault->to_clients && (fault->hosts > 0 || fault->each > 0)) {
        wrong(l, direction, "conflict", "a fault of single hosts needs towards: hosts");
    }
    if (fault->service == NULL) {
        wrong(l, body, "missing", "the fault needs a service; write service: and its name");
    }
    if (fault->length == 0) {
        wrong(l, body, "missing", "the fault needs an end; write for: 30s");
    }
}

/* The name must be safe in a header field of answers, and in a path. */
static bool name_set(struct loader *l, struct fault *fault, const struct yaml_node *body, const char *name)
{
    const struct yaml_node *node = value_of(body, "name");
    if (name == NULL) {
        return true;
    }
    if (strlen(name) >= sizeof fault->name || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                           "0123456789-_.") != strlen(name)) {
        wrong(l, node, "range", "a fault's name has up to 32 letters, digits, - _ and .");
        return false;
    }
    memcpy(fault->name, name, strlen(name) + 1);
    return true;
}

static bool fill(struct loader *l, struct fault *fault, const struct yaml_node *body)
{
    struct order order = {.fault = fault, .share = FAULT_ALL, .status = FAULT_ERRORS_ARE};
    struct fault_keys keys;
    memset(&keys, 0, sizeof keys);
    fault->cap = FAULT_CAP;
    struct space spaces[] = {
        {&fault_schema, fault, NULL}, {&order_schema, &order, NULL}, {&schema_scenario_effect, &keys, NULL}};
    struct place place = {.spaces = spaces, .space_count = 3, .what = "a fault", .manual = "becalm-fault(1)"};
    if (!apply_mapping(l, &place, body) || loader_errors(l) > 0 || !choose(l, fault, body) ||
        !name_set(l, fault, body, order.name)) {
        return false;
    }
    if (!act_of(fault, &order, &keys)) {
        const struct yaml_node *value = yaml_get(body, fault_word(fault->word));
        loader_error(l, value->line, value->column, "conflict", "%s: %.64s is no fault", fault_word(fault->word),
                     value->kind == YAML_SCALAR ? value->text : "");
        return false;
    }
    fault->share = has_share(fault->word) ? fault->share : order.share;
    fault->status = order.status;
    check(l, fault, body);
    if (loader_errors(l) > 0) {
        return false;
    }
    fault->trust = fault->clients == NULL ? NULL : trust_make(fault->clients);
    return fault->clients == NULL || fault->trust != NULL;
}

struct fault *fault_read(const struct yaml_tree *tree, struct becalm_diags *diags)
{
    struct fault *fault = calloc(1, sizeof *fault);
    if (fault == NULL) {
        return NULL;
    }
    struct loader l = {.arena = &fault->arena, .name = tree->name, .diags = diags, .told = diags->count};
    if (!fill(&l, fault, tree->root)) {
        fault_free(fault);
        return NULL;
    }
    return fault;
}

void fault_free(struct fault *fault)
{
    if (fault != NULL) {
        trust_free(fault->trust);
        arena_free(&fault->arena);
        free(fault);
    }
}
