/* SPDX-License-Identifier: MIT */
/* The policy of `becalm exec`. Options are short for keys of a policy file, so they are written into one, or over one,
 * and loaded by the same rules as any other. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_exec.h"

#include "policy/value.h"

#include <becalm/config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SETS_MAX  64
#define SET_BYTES 768
#define PLAIN     "version: 1\nservices: {command: {}}\n" /* without --policy */

/* Options that are keys under another name. */
static const struct {
    const char *option;
    const char *key;
} shorthands[] = {
    {"retries", "maxRetries"},    {"growth", "growth"}, {"delay", "initialDelay"},     {"max-delay", "maxDelay"},
    {"multiplier", "multiplier"}, {"jitter", "jitter"}, {"timeout", "attemptTimeout"}, {"deadline", "deadline"},
};

/* Assignments for the loader, in memory of their own. */
struct sets {
    char text[SETS_MAX][SET_BYTES];
    const char *list[SETS_MAX + 1];
    uint32_t count;
    bool full;
    const char *prefix; /* "services.command." */
};

static void sets_add(struct sets *sets, const char *prefix, const char *key, const char *value)
{
    if (sets->count == SETS_MAX) {
        sets->full = true;
        return;
    }
    char *text = sets->text[sets->count];
    int length =
        snprintf(text, SET_BYTES, "%s%s%s%s", prefix, key, value == NULL ? "" : "=", value == NULL ? "" : value);
    sets->full = sets->full || length < 0 || length >= SET_BYTES;
    sets->list[sets->count++] = text;
    sets->list[sets->count] = NULL;
}

static bool is_unlimited(const struct cli_command *command, const struct cli_args *args)
{
    const char *retries = cli_value(command, args, "retries");
    return retries != NULL && strcmp(retries, "unlimited") == 0;
}

static bool is_list(const char *text)
{
    return text != NULL && strchr(text, ',') != NULL;
}

/* A delay above the built-in cap, or a cap below the built-in delay, would be refused. A user who gives only one of the
 * two does not want that, so the other one is set to match. */
static void sets_add_wait(struct sets *sets, const struct cli_command *command, const struct cli_args *args)
{
    struct becalm_policy built_in;
    becalm_ns typed = 0;
    const char *delay = cli_value(command, args, "delay");
    const char *max = cli_value(command, args, "max-delay");
    becalm_policy_defaults(&built_in);
    if (delay != NULL && max == NULL && value_duration(delay, &typed) && typed > built_in.backoff.cap) {
        sets_add(sets, sets->prefix, "maxDelay", delay);
    }
    if (max != NULL && delay == NULL && value_duration(max, &typed) && typed < built_in.backoff.base) {
        sets_add(sets, sets->prefix, "initialDelay", max);
    }
}

static void sets_fill(struct sets *sets, const struct cli_command *command, const struct cli_args *args)
{
    bool file = cli_has(command, args, "policy");
    sets->list[0] = NULL;
    sets_add(sets, "", "role", "sidecar"); /* exec is always a caller, also with a gateway's file */
    if (!file) {
        sets_add(sets, sets->prefix, "deadline", "none");
        sets_add_wait(sets, command, args);
        if (cli_has(command, args, "budget")) {
            sets_add(sets, sets->prefix, "budget.kind", "tokens");
        }
    }
    for (size_t i = 0; i < sizeof shorthands / sizeof shorthands[0]; i++) {
        const char *value = cli_value(command, args, shorthands[i].option);
        bool other =
            (i == 0 && is_unlimited(command, args)) || (strcmp(shorthands[i].option, "delay") == 0 && is_list(value));
        if (value != NULL && !other) {
            sets_add(sets, sets->prefix, shorthands[i].key, value);
        }
    }
    for (const char *const *set = cli_values(command, args, "set"); *set != NULL; set++) {
        sets_add(sets, sets->prefix, *set, NULL);
    }
}

/* ---- loading ---- */

/* An error about an option begins with its policy key; the message must name the option that the user typed. */
static void print_option_diag(const struct cli_command *command, const struct cli_args *args, const char *message)
{
    for (size_t i = 0; i < sizeof shorthands / sizeof shorthands[0]; i++) {
        size_t length = strlen(shorthands[i].key);
        if (cli_has(command, args, shorthands[i].option) && strncmp(message, shorthands[i].key, length) == 0 &&
            message[length] == ':') {
            (void)cli_fail(command, "--%s%s", shorthands[i].option, message + length);
            return;
        }
    }
    (void)cli_fail(command, "%s", message);
}

/* Errors of options have no line worth printing. */
static void print_diags(const struct cli_command *command, const struct cli_args *args,
                        const struct becalm_diags *diags)
{
    for (uint32_t i = 0; i < diags->count; i++) {
        const struct becalm_diag *diag = &diags->diag[i];
        char line[1024];
        if (strcmp(diag->file, "--set") == 0) {
            print_option_diag(command, args, diag->message);
            continue;
        }
        (void)becalm_diag_write(diag, line, sizeof line);
        (void)cli_fail(command, "%s", line);
    }
}

static int load(struct becalm_config **config, const char *path, const struct sets *sets,
                const struct cli_command *command, const struct cli_args *args)
{
    struct becalm_load_options options = {
        .substitute = true, .shared_budgets = true, .set = sets == NULL ? NULL : sets->list};
    struct becalm_diags *diags = calloc(1, sizeof *diags); /* too large for a stack */
    if (diags == NULL) {
        return cli_fail(command, "out of memory");
    }
    int rc = path == NULL ? becalm_config_parse(config, "options", PLAIN, strlen(PLAIN), &options, diags)
                          : becalm_config_load(config, path, &options, diags);
    if (rc == 0) {
        diags->count = 0; /* warnings are for `becalm check`, not for a job that runs every minute */
    }
    print_diags(command, args, diags);
    free(diags);
    return rc == 0 ? 0 : rc == BECALM_ENOMEM ? cli_fail(command, "out of memory") : command->failure;
}

static const struct becalm_endpoint *endpoint_find(const struct becalm_service *service, const char *name)
{
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        if (strcmp(service->endpoints[i].name, name) == 0) {
            return &service->endpoints[i];
        }
    }
    return NULL;
}

/* "payment" or "payment/charge". Either name may have slashes of its own: a service of the whole name is found first,
 * then the shortest service name that has an endpoint of the remaining name. */
static const struct becalm_rules *rules_find(const struct becalm_config *config, const char *target,
                                             const struct becalm_service **service,
                                             const struct becalm_endpoint **endpoint)
{
    char name[EXEC_NAME_MAX];
    *endpoint = NULL;
    *service = becalm_config_find(config, target);
    if (*service != NULL) {
        return &(*service)->rules;
    }
    for (const char *slash = strchr(target, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        if ((size_t)(slash - target) >= sizeof name) {
            return NULL;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(slash - target), target);
        *service = becalm_config_find(config, name);
        *endpoint = *service == NULL ? NULL : endpoint_find(*service, slash + 1);
        if (*endpoint != NULL) {
            return &(*endpoint)->rules;
        }
    }
    return NULL;
}

/* Where the keys of the target stand in the file: an override must not make a service that is not there. */
static int prefix_find(char *prefix, size_t size, const struct cli_command *command, const struct cli_args *args)
{
    const char *path = cli_value(command, args, "policy");
    const char *target = cli_value(command, args, "service");
    struct becalm_config *config = NULL;
    const struct becalm_service *service;
    const struct becalm_endpoint *endpoint;
    int rc = load(&config, path, NULL, command, args);
    if (rc != 0) {
        return rc;
    }
    if (rules_find(config, target, &service, &endpoint) == NULL) {
        rc = cli_fail(command, "%s has no service or endpoint '%s'", path, target);
    } else {
        (void)snprintf(prefix, size, "services.%s.%s%s%s", service->name, endpoint == NULL ? "" : "endpoints.",
                       endpoint == NULL ? "" : endpoint->name, endpoint == NULL ? "" : ".");
    }
    becalm_config_free(config);
    return rc;
}

/* ---- settings that only exec has ---- */

static becalm_ns delays_next(becalm_ns delay, uint64_t random, void *data)
{
    struct exec_delays *delays = data;
    (void)delay;
    (void)random;
    uint32_t at = delays->next < delays->count ? delays->next : delays->count - 1;
    delays->next++;
    return delays->wait[at];
}

static int delays_read(struct exec_rules *rules, const char *text, const struct cli_command *command)
{
    struct exec_delays *delays = &rules->delays;
    struct becalm_backoff_policy *backoff = &rules->policy.backoff;
    char piece[64];
    backoff->cap = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        (void)snprintf(piece, sizeof piece, "%.*s", (int)length, text);
        if (delays->count == EXEC_DELAYS_MAX || length >= sizeof piece ||
            !value_duration(piece, &delays->wait[delays->count])) {
            return cli_usage(command, "--delay: '%s' is not a duration, or one too many; write 1s,2s,5s", piece);
        }
        backoff->cap = becalm_ns_max(backoff->cap, delays->wait[delays->count++]);
        if (text[length] == '\0') {
            break;
        }
        text += length + 1;
    }
    backoff->base = backoff->cap;
    backoff->growth = BECALM_GROWTH_CONSTANT;
    backoff->jitter = BECALM_JITTER_CUSTOM;
    backoff->custom = delays_next;
    backoff->custom_data = delays;
    return 0;
}

static int policy_finish(struct exec_rules *rules, const struct cli_command *command, const struct cli_args *args)
{
    const char *delay = cli_value(command, args, "delay");
    struct becalm_policy *policy = &rules->policy;
    int rc = is_list(delay) ? delays_read(rules, delay, command) : 0;
    if (rc != 0) {
        return rc;
    }
    if (is_unlimited(command, args)) {
        policy->max_retries = EXEC_UNLIMITED;
    }
    if (policy->budget.kind == BECALM_BUDGET_CONCURRENCY && rules->budget[0] != '\0') {
        return cli_fail(command, "budget.kind: concurrency counts calls in progress, and a killed process would never "
                                 "give its own back; use tokens");
    }
    return 0;
}

/* A command is not a request: no built-in timeout bounds it, and it is never run twice at once. A command that hangs
 * until the deadline of the call took too long all the same, and the breaker must count that. */
static void command_times(struct exec_rules *rules, const struct becalm_rules *from)
{
    struct becalm_policy *policy = &rules->policy;
    if (becalm_rules_origin(from, "deadline").level == BECALM_FROM_BUILT_IN) {
        policy->deadline = BECALM_NEVER;
    }
    if (policy->timeout_kind != BECALM_TIMEOUT_EXACT) {
        policy->timeout_kind = BECALM_TIMEOUT_EXACT;
        policy->attempt_timeout = policy->deadline;
    }
}

static void name_set(char *name, const char *option, const char *target)
{
    (void)snprintf(name, EXEC_NAME_MAX, "%s", option != NULL ? option : target);
}

/* Under which names budget and breaker are shared: those of the options, else the target's own. */
static void names_set(struct exec_rules *rules, const struct becalm_rules *from, const char *target,
                      const struct becalm_service *service, const struct becalm_endpoint *endpoint)
{
    bool is_endpoint = endpoint != NULL;
    if (rules->policy.budget.kind != BECALM_BUDGET_NONE) {
        name_set(rules->budget, NULL, is_endpoint && from->level == BECALM_LEVEL_SERVICE ? service->name : target);
    }
    if (is_endpoint && from->level == BECALM_LEVEL_BOTH && rules->policy.service_budget.kind != BECALM_BUDGET_NONE) {
        name_set(rules->service_budget, NULL, service->name);
    }
    if (rules->policy.breaker.enabled) {
        name_set(rules->breaker, NULL, target);
    }
}

/* A hash of where the budget is, so that policies with other stores have other files. */
static uint32_t place_hash(const char *fleet, const char *url)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (const char *at = fleet; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    }
    for (const char *at = url; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    }
    return hash;
}

/* Chooses the shared budget from which this machine leases: that of the service or the endpoint, by `budget.level`. 0,
 * or an exit code. */
static int lease_set(struct exec_rules *rules, const struct becalm_rules *from, const struct becalm_service *service,
                     const struct becalm_endpoint *endpoint, const struct cli_command *command)
{
    if (from->shared_redis == NULL) {
        return 0;
    }
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    struct becalm_origin at = becalm_rules_origin(from, "budget.shared.redis");
    if (diags == NULL) {
        return cli_fail(command, "out of memory");
    }
    bool opened = redis_site_open(&rules->site, rules->config, from->shared_redis, at, diags);
    print_diags(command, NULL, diags);
    free(diags);
    if (!opened) {
        return command->failure;
    }
    rules->fleet = becalm_config_settings(rules->config)->fleet;
    rules->lease_service = service->name;
    rules->lease_endpoint = endpoint == NULL || from->level != BECALM_LEVEL_ENDPOINT ? NULL : endpoint->name;
    (void)snprintf(rules->lease, sizeof rules->lease, "%s%s%s@%08" PRIx32, service->name,
                   rules->lease_endpoint == NULL ? "" : "/", rules->lease_endpoint == NULL ? "" : rules->lease_endpoint,
                   place_hash(rules->fleet, from->shared_redis));
    return 0;
}

static int names_check(const struct exec_rules *rules, const struct cli_command *command)
{
    const char *const names[] = {rules->budget, rules->service_budget, rules->breaker, rules->lease};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) > SHARED_NAME_MAX) {
            return cli_fail(command, "the name '%s' is too long: at most %d bytes", names[i], SHARED_NAME_MAX);
        }
    }
    return 0;
}

static bool is_max_below_delay(const struct cli_command *command, const struct cli_args *args)
{
    const char *delay_text = cli_value(command, args, "delay");
    const char *max_text = cli_value(command, args, "max-delay");
    becalm_ns delay = 0;
    becalm_ns max = 0;
    return delay_text != NULL && max_text != NULL && value_duration(delay_text, &delay) &&
           value_duration(max_text, &max) && max < delay;
}

/* A list of delays sets all waits: any other option about waits would be ignored, so it is refused. */
static int list_alone(const struct cli_command *command, const struct cli_args *args)
{
    static const char *const others[] = {"max-delay", "growth", "multiplier", "jitter"};
    for (size_t i = 0; is_list(cli_value(command, args, "delay")) && i < sizeof others / sizeof others[0]; i++) {
        if (cli_has(command, args, others[i])) {
            return cli_usage(command, "a list of delays is waited as it stands, without --%s", others[i]);
        }
    }
    return 0;
}

/* A budget or breaker without a name is not shared and not used at all, so its numbers would be ignored. */
static int set_agrees(const char *set, const struct cli_command *command, const struct cli_args *args)
{
    static const char *const parts[] = {"budget", "breaker"};
    if (strchr(set, '=') == NULL) {
        return cli_usage(command, "--set: '%s' is no assignment; write KEY=VALUE, like budget.capacity=10", set);
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t length = strlen(parts[i]);
        bool of_part = strncmp(set, parts[i], length) == 0 && (set[length] == '.' || set[length] == '=');
        if (of_part && !cli_has(command, args, parts[i]) && !cli_has(command, args, "policy")) {
            return cli_usage(command, "--set %s needs --%s NAME: without it, the key has no effect", set, parts[i]);
        }
    }
    return 0;
}

static int options_agree(const struct cli_command *command, const struct cli_args *args)
{
    static const char *const named[] = {"budget", "breaker", "service"};
    bool policy = cli_has(command, args, "policy");
    if (policy != cli_has(command, args, "service")) {
        return cli_usage(command, policy ? "--policy needs --service NAME" : "--service needs --policy FILE");
    }
    if (is_max_below_delay(command, args)) {
        return cli_usage(command, "--max-delay is below --delay; the longest wait must be at least the first");
    }
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        const char *name = cli_value(command, args, named[i]);
        if (name != NULL && name[0] == '\0') {
            return cli_usage(command, "--%s needs a name", named[i]);
        }
    }
    int rc = list_alone(command, args);
    for (const char *const *set = cli_values(command, args, "set"); rc == 0 && *set != NULL; set++) {
        rc = set_agrees(*set, command, args);
    }
    return rc;
}

int exec_rules_load(struct exec_rules *rules, const struct cli_command *command, const struct cli_args *args)
{
    const char *path = cli_value(command, args, "policy");
    const char *target = path == NULL ? "command" : cli_value(command, args, "service");
    const char *budget = cli_value(command, args, "budget");
    const char *breaker = cli_value(command, args, "breaker");
    const struct becalm_service *service;
    const struct becalm_endpoint *endpoint;
    char prefix[SET_BYTES] = "services.command.";
    struct sets *sets = calloc(1, sizeof *sets);
    int rc = sets == NULL ? cli_fail(command, "out of memory") : options_agree(command, args);
    if (rc != 0) {
        goto out;
    }
    rc = path == NULL ? 0 : prefix_find(prefix, sizeof prefix, command, args);
    if (rc != 0) {
        goto out;
    }
    sets->prefix = prefix;
    sets_fill(sets, command, args);
    rc =
        sets->full ? cli_usage(command, "too many or too long --set") : load(&rules->config, path, sets, command, args);
    if (rc != 0) {
        goto out;
    }
    const struct becalm_rules *from = rules_find(rules->config, target, &service, &endpoint);
    BECALM_ASSERT(from != NULL); /* the rules were found a moment ago, or are the built-in ones */
    becalm_rules_policy(rules->config, from, &rules->policy);
    command_times(rules, from);
    rules->retries_timeouts = (rules->policy.retry_on & BECALM_OUTCOME_BIT(BECALM_OUTCOME_TIMED_OUT)) != 0;
    if (path != NULL) {
        names_set(rules, from, target, service, endpoint);
        rc = lease_set(rules, from, service, endpoint, command);
    }
    if (rc != 0) {
        goto out;
    }
    if (budget != NULL) {
        name_set(rules->budget, budget, NULL);
    }
    if (breaker != NULL) {
        name_set(rules->breaker, breaker, NULL);
    }
    rc = policy_finish(rules, command, args);
    if (rc == 0) {
        rc = names_check(rules, command);
    }
out:
    free(sets);
    return rc;
}

void exec_rules_free(struct exec_rules *rules)
{
    redis_site_close(&rules->site);
    becalm_config_free(rules->config);
}
