/* SPDX-License-Identifier: MIT */
/* Dapr's Resiliency: policies with names, and the apps that they are for. An app is a service that is found by its
 * name. Around a call stand the retries, then the breaker, then the timeout: both of these see every attempt. */
#include "dialect.h"
#include "route.h"

#include <string.h>

#define CODES 17u

/* By their numbers. */
static const char *const grpc_codes[CODES] = {
    "ok",        "cancelled",      "unknown",           "invalid-argument",   "deadline-exceeded",
    "not-found", "already-exists", "permission-denied", "resource-exhausted", "failed-precondition",
    "aborted",   "out-of-range",   "unimplemented",     "internal",           "unavailable",
    "data-loss", "unauthenticated"};

/* ---- retries ---- */

typedef void code_fn(struct source *, struct source_list *, const struct from *, unsigned code);

static void http_add(struct source *s, struct source_list *on, const struct from *from, unsigned code)
{
    if (code >= 400) {
        source_list_add(on, emit_text(s->emit, "%u", code));
    } else {
        source_no_equal(s, NULL, from, "only statuses from 400 to 599 are failures");
    }
}

static void grpc_add(struct source *s, struct source_list *on, const struct from *from, unsigned code)
{
    struct becalm_retry_on known = {0};
    const char *name = code < CODES ? grpc_codes[code] : "";
    if (becalm_retry_on_add(&known, (struct becalm_text){name, strlen(name)}) == 0) {
        source_list_add(on, name);
    } else {
        source_no_equal(s, NULL, from, emit_text(s->emit, "there is no condition for gRPC's code %u", code));
    }
}

/* "429,500-599" */
static void codes_read(struct source *s, struct source_list *on, const struct from *from, unsigned most, code_fn *add)
{
    const char *text = source_text(s, from);
    for (const char *c = text; c != NULL && *c != '\0';) {
        size_t length = strcspn(c, ",");
        const char *word = emit_text(s->emit, "%.*s", (int)length, c);
        const char *dash = strchr(word, '-');
        uint64_t low = 0;
        uint64_t high = 0;
        c += length + strspn(c + length, ", ");
        bool fine = value_integer(dash == NULL ? word : emit_text(s->emit, "%.*s", (int)(dash - word), word), &low) &&
                    value_integer(dash == NULL ? word : dash + 1, &high) && low <= high && high <= most;
        if (!fine) {
            source_error(s, from->node, "bad-value", "%s: \"%.64s\" is no code", from->path, word);
            continue;
        }
        if (low <= 500 && high == 599) {
            source_list_add(on, "5xx");
            high = 499;
        }
        for (; low <= high; low++) {
            add(s, on, from, (unsigned)low);
        }
    }
}

static void conditions_put(struct source *s, struct emit_target *rules, const struct from *retry, uint64_t retries)
{
    static const char *const no_answer[] = {"connect-failure", "refused-stream", "reset", "timeout"};
    const struct yaml_node *matching = source_get(retry->node, "matching");
    const struct from http = {source_get(matching, "httpStatusCodes"), "retries.matching.httpStatusCodes", NULL};
    const struct from grpc = {source_get(matching, "gRPCStatusCodes"), "retries.matching.gRPCStatusCodes", NULL};
    struct source_list on = {.emit = s->emit};
    for (size_t i = 0; i < sizeof no_answer / sizeof *no_answer; i++) {
        source_list_add(&on, no_answer[i]);
    }
    if (http.node != NULL) {
        codes_read(s, &on, &http, 599, http_add);
    } else {
        source_list_add(&on, "5xx");
        source_no_equal(s, rules, retry, "every 4xx is retried there as well, here no answer below 500 is");
    }
    if (grpc.node != NULL) {
        codes_read(s, &on, &grpc, CODES - 1, grpc_add);
    }
    if (retries > 1 && (source_list_has(&on, "5xx") || source_list_has(&on, "500"))) {
        source_no_equal(s, rules, http.node != NULL ? &http : retry,
                        "an error of the application (500) is retried once per call");
    }
    source_put_list(s, rules, "retryOn", &on, http.node != NULL ? &http : retry);
    source_put_word(s, rules, "idempotent", "true",
                    &(struct from){retry->node, retry->path, "Dapr repeats every method"});
}

static void waits_put(struct source *s, struct emit_target *rules, const struct from *retry)
{
    const struct from how = {source_get(retry->node, "policy"), "retries.policy", NULL};
    const struct from duration = {source_get(retry->node, "duration"), "retries.duration", NULL};
    const struct from most = {source_get(retry->node, "maxInterval"), "retries.maxInterval", NULL};
    const struct from unwritten = {retry->node, retry->path, "Dapr's default"};
    becalm_ns time = 5 * BECALM_S;
    becalm_ns cap = 60 * BECALM_S;
    bool grows = yaml_is(how.node, "exponential");
    if (grows) {
        bool written = source_duration(s, &most, &cap);
        const becalm_ns first = 500 * BECALM_MS;
        source_put_duration(s, rules, "initialDelay", first < cap ? first : cap, &unwritten);
        source_put_duration(s, rules, "maxDelay", cap, written ? &most : &unwritten);
        source_put_word(s, rules, "multiplier", "1.5", &unwritten);
        source_put_word(s, rules, "jitter", "proportional", &unwritten);
        source_put_word(s, rules, "jitterFactor", "0.5", &unwritten);
        return;
    }
    bool written = source_duration(s, &duration, &time);
    source_put_word(s, rules, "growth", "constant", how.node != NULL ? &how : &unwritten);
    source_put_duration(s, rules, "initialDelay", time, written ? &duration : &unwritten);
    source_put_duration(s, rules, "maxDelay", time > 10 * BECALM_S ? time : 10 * BECALM_S,
                        written ? &duration : &unwritten);
    source_put_word(s, rules, "jitter", "none", &unwritten);
}

static void retry_put(struct source *s, struct emit_target *rules, const struct from *retry)
{
    static const struct field fields[] = {{"policy", NULL},     {"duration", NULL}, {"maxInterval", NULL},
                                          {"maxRetries", NULL}, {"matching", NULL}, {NULL, NULL}};
    const struct from count = {source_get(retry->node, "maxRetries"), "retries.maxRetries", NULL};
    const char *text = count.node == NULL ? "-1" : source_text(s, &count);
    const struct from unwritten = {retry->node, retry->path, "Dapr's default"};
    const struct from *from = count.node != NULL ? &count : &unwritten;
    uint64_t retries = BECALM_RETRIES_MAX;
    source_rest(s, rules, retry->node, "retries", fields);
    if (text != NULL && text[0] == '-') {
        source_no_equal(s, rules, from, "the source retries without end, Becalm at most 1000 times");
    } else if (!source_integer(s, &count, &retries)) {
        return;
    }
    source_put_integer(s, rules, "maxRetries", retries, from);
    if (retries > 0) {
        conditions_put(s, rules, retry, retries);
        waits_put(s, rules, retry);
    }
}

/* ---- circuit breakers ---- */

/* consecutiveFailures > 5, and no other expression. 0: it is another one. */
static uint64_t trip_read(struct source *s, const struct from *trip)
{
    const char *text = trip->node == NULL ? "consecutiveFailures > 5" : source_text(s, trip);
    static const char name[] = "consecutiveFailures";
    uint64_t number = 0;
    if (text == NULL || strncmp(text, name, sizeof name - 1) != 0) {
        return 0;
    }
    const char *c = text + sizeof name - 1;
    c += strspn(c, " ");
    bool more = *c == '>';
    bool equal = more && c[1] == '=';
    c += more + equal;
    c += strspn(c, " ");
    return more && value_integer(c, &number) && number < UINT16_MAX ? number + !equal : 0;
}

static void breaker_put(struct source *s, struct emit_target *rules, const struct from *breaker)
{
    static const struct field fields[] = {
        {"maxRequests", NULL}, {"timeout", NULL}, {"trip", NULL}, {"interval", NULL}, {NULL, NULL}};
    const struct from trip = {source_get(breaker->node, "trip"), "circuitBreakers.trip", NULL};
    const struct from time = {source_get(breaker->node, "timeout"), "circuitBreakers.timeout", NULL};
    const struct from probes = {source_get(breaker->node, "maxRequests"), "circuitBreakers.maxRequests", NULL};
    const struct from interval = {source_get(breaker->node, "interval"), "circuitBreakers.interval", NULL};
    const struct from unwritten = {breaker->node, breaker->path, "Dapr's default"};
    uint64_t failures = trip_read(s, &trip);
    uint64_t successes = 1;
    becalm_ns open = 60 * BECALM_S;
    becalm_ns cleared = 0;
    source_rest(s, rules, breaker->node, "circuitBreakers", fields);
    if (failures == 0) {
        source_no_equal(s, rules, trip.node != NULL ? &trip : breaker,
                        "only consecutiveFailures > N is read; the breaker is left out");
        return;
    }
    bool has_probes = source_integer(s, &probes, &successes);
    bool has_time = source_duration(s, &time, &open);
    if (source_duration(s, &interval, &cleared) && cleared > 0) {
        source_no_equal(s, rules, &interval, "failures in a row are not forgotten after a time");
    }
    source_put_word(s, rules, "breaker.mode", "consecutive", trip.node != NULL ? &trip : &unwritten);
    source_put_word(s, rules, "breaker.per", "attempt", breaker);
    source_put_integer(s, rules, "breaker.failureThreshold", failures, trip.node != NULL ? &trip : &unwritten);
    source_put_integer(s, rules, "breaker.successThreshold", successes == 0 ? 1 : successes,
                       has_probes ? &probes : &unwritten);
    source_put_duration(s, rules, "breaker.waitDurationInOpenState", open, has_time ? &time : &unwritten);
}

/* ---- objects ---- */

/* The policy that a target names: policies.<list>.<name>. */
static struct from policy_of(struct source *s, const struct yaml_node *policies, const char *list,
                             const struct yaml_node *target, const char *key)
{
    const struct yaml_node *name = source_get(target, key);
    const struct yaml_node *all = source_get(policies, list);
    const struct yaml_node *found =
        name == NULL || name->kind != YAML_SCALAR || all == NULL ? NULL : yaml_get(all, name->text);
    if (name != NULL && found == NULL) {
        source_no_equal(s, NULL, &(struct from){name, key, NULL}, "no policy of the object has this name");
    }
    return (struct from){found, list, NULL};
}

static void app_read(struct source *s, const struct yaml_node *policies, const struct yaml_node *name,
                     const struct yaml_node *target)
{
    static const struct field fields[] = {{"timeout", NULL},
                                          {"retry", NULL},
                                          {"circuitBreaker", NULL},
                                          {"circuitBreakerCacheSize", NULL},
                                          {"circuitBreakerScope", NULL},
                                          {NULL, NULL}};
    const struct from from = {name, "targets.apps", NULL};
    struct emit_target *service = emit_service(s->emit, name->text, source_where(s, &from));
    struct route *route = route_add(s, service, NULL, &from);
    struct emit_target *rules = route_rules(route);
    route_add_host(s, route, name->text, &from);
    source_rest(s, service, target, "targets.apps", fields);
    const struct from timeout = policy_of(s, policies, "timeouts", target, "timeout");
    const struct from retry = policy_of(s, policies, "retries", target, "retry");
    const struct from breaker = policy_of(s, policies, "circuitBreakers", target, "circuitBreaker");
    source_take_duration(s, rules, "attemptTimeout", &timeout);
    if (retry.node != NULL && source_is(s, &retry, YAML_MAPPING)) {
        retry_put(s, rules, &retry);
    }
    if (breaker.node != NULL && source_is(s, &breaker, YAML_MAPPING)) {
        breaker_put(s, rules, &breaker);
    }
}

static void object_read(struct source *s, const struct object *object)
{
    static const struct field fields[] = {{"apps", NULL},
                                          {"actors", NOTE "only apps are called with HTTP"},
                                          {"components", NOTE "only apps are called with HTTP"},
                                          {NULL, NULL}};
    const struct yaml_node *spec = source_get(object->node, "spec");
    const struct yaml_node *targets = source_get(spec, "targets");
    const struct from apps = {source_get(targets, "apps"), "targets.apps", NULL};
    const struct from scopes = {source_get(object->node, "scopes"), "scopes", NULL};
    source_rest(s, NULL, targets, "targets", fields);
    if (scopes.node != NULL) {
        source_aside(s, NULL, &scopes, "a policy holds for all callers");
    }
    for (uint32_t i = 0; apps.node != NULL && source_is(s, &apps, YAML_MAPPING) && i < apps.node->count; i++) {
        const struct from target = {apps.node->item[i], "targets.apps", NULL};
        if (source_is(s, &target, YAML_MAPPING)) {
            app_read(s, source_get(spec, "policies"), apps.node->key[i], target.node);
        }
    }
}

static void dapr_read(struct source *s, const struct objects *objects)
{
    emit_note(s->emit, NULL, "The configuration has no addresses of the apps: add `hosts`.");
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        object_read(s, &objects->at[i]);
    }
}

static bool dapr_recognises(const struct object *object)
{
    return strcmp(object->kind, "Resiliency") == 0 && strcmp(object->group, "dapr.io") == 0;
}

static const struct unwritten unwritten[] = {{"maxRetries", "0", "a target without a retry is not retried"},
                                             {"attemptTimeout", "none", "a target without a timeout has none"},
                                             {"deadline", "none", "Dapr has none"},
                                             {NULL, NULL, NULL}};

const struct dialect dialect_dapr = {
    .word = "dapr", .product = "Dapr", .unwritten = unwritten, .recognises = dapr_recognises, .read = dapr_read};
