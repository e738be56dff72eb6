/* SPDX-License-Identifier: MIT */
#include "envoy_gateway.h"

#include "policy/import/mesh.h"

#include <string.h>

#define RETRIES 2u /* Envoy Gateway's default if `retry` does not set it */
#define ON      "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes,503"

bool envoy_gateway_is(const struct object *object)
{
    return strcmp(object->kind, "BackendTrafficPolicy") == 0 && strcmp(object->group, "gateway.envoyproxy.io") == 0;
}

/* ---- whom it is for ---- */

enum fit { FIT_NONE, FIT_GATEWAY, FIT_ROUTE };

static bool same_name(const struct yaml_node *a, const struct yaml_node *b)
{
    return a != NULL && b != NULL && a->kind == YAML_SCALAR && yaml_is(b, a->text);
}

static enum fit ref_fit(const struct yaml_node *ref, const struct yaml_node *route)
{
    const struct yaml_node *name = source_get(ref, "name");
    const struct yaml_node *kind = source_get(ref, "kind");
    if (same_name(kind, source_get(route, "kind")) &&
        same_name(name, source_get(source_get(route, "metadata"), "name"))) {
        return FIT_ROUTE;
    }
    const struct yaml_node *parents = source_get(source_get(route, "spec"), "parentRefs");
    for (uint32_t i = 0;
         yaml_is(kind, "Gateway") && parents != NULL && parents->kind == YAML_SEQUENCE && i < parents->count; i++) {
        if (same_name(name, source_get(parents->item[i], "name"))) {
            return FIT_GATEWAY;
        }
    }
    return FIT_NONE;
}

static enum fit policy_fit(const struct yaml_node *policy, const struct yaml_node *route)
{
    const struct yaml_node *spec = source_get(policy, "spec");
    const struct yaml_node *refs = source_get(spec, "targetRefs");
    enum fit best = ref_fit(source_get(spec, "targetRef"), route);
    for (uint32_t i = 0; refs != NULL && refs->kind == YAML_SEQUENCE && i < refs->count; i++) {
        enum fit fit = ref_fit(refs->item[i], route);
        best = fit > best ? fit : best;
    }
    return best;
}

/* ---- its fields ---- */

/* A list of words as the text with commas that Envoy has. */
static const char *words_join(struct source *s, const struct from *list)
{
    const char *text = "";
    for (uint32_t i = 0; source_is(s, list, YAML_SEQUENCE) && i < list->node->count && i < 64; i++) {
        const struct from item = {list->node->item[i], list->path, NULL};
        const char *word = source_text(s, &item);
        text = word == NULL ? text : emit_text(s->emit, "%s%s%s", text, text[0] == '\0' ? "" : ",", word);
    }
    return text;
}

static void retry_put(struct source *s, struct emit_target *rules, const struct from *retry)
{
    static const struct field fields[] = {{"numRetries", NULL},
                                          {"retryOn", NULL},
                                          {"perRetry", NULL},
                                          {"numAttemptsPerPriority", NOTE "hosts have no priorities"},
                                          {NULL, NULL}};
    if (retry->node == NULL || !source_is(s, retry, YAML_MAPPING)) {
        return;
    }
    const struct from count = {source_get(retry->node, "numRetries"), "retry.numRetries", NULL};
    const struct yaml_node *on = source_get(retry->node, "retryOn");
    const struct from triggers = {source_get(on, "triggers"), "retry.retryOn.triggers", NULL};
    const struct from codes = {source_get(on, "httpStatusCodes"), "retry.retryOn.httpStatusCodes", NULL};
    const struct yaml_node *each = source_get(retry->node, "perRetry");
    const struct yaml_node *backoff = source_get(each, "backOff");
    const struct from time = {source_get(each, "timeout"), "retry.perRetry.timeout", NULL};
    const struct from base = {source_get(backoff, "baseInterval"), "retry.perRetry.backOff.baseInterval", NULL};
    const struct from cap = {source_get(backoff, "maxInterval"), "retry.perRetry.backOff.maxInterval", NULL};
    uint64_t retries = RETRIES;
    source_rest(s, rules, retry->node, "retry", fields);
    bool written = count.node != NULL && source_integer(s, &count, &retries);
    const struct from unwritten = {retry->node, "retry", "Envoy Gateway's default"};
    if (emit_get(rules, "maxRetries") != NULL) {
        return; /* the route has a `retry` of its own, and it wins */
    }
    source_put_integer(s, rules, "maxRetries", retries, written ? &count : &unwritten);
    struct yaml_node text = {.kind = YAML_SCALAR, .line = retry->node->line, .column = retry->node->column};
    if (triggers.node != NULL) {
        text = (struct yaml_node){.kind = YAML_SCALAR, .line = triggers.node->line, .column = triggers.node->column};
        text.text = words_join(s, &triggers);
        text.length = strlen(text.text);
    }
    const struct from word = {triggers.node != NULL ? &text : NULL, triggers.path, NULL};
    mesh_retry_on(s, rules, &word, &codes, retry, ON);
    mesh_backoff(s, rules, &base, &cap, retry);
    if (time.node != NULL) {
        mesh_attempt_timeout(s, rules, &time);
    }
}

static void passive_put(struct source *s, struct emit_target *service, const struct from *passive)
{
    static const struct field fields[] = {{"consecutive5XxErrors", NULL},
                                          {"consecutiveGatewayErrors", NULL},
                                          {"interval", NULL},
                                          {"baseEjectionTime", NULL},
                                          {"maxEjectionPercent", NULL},
                                          {"splitExternalLocalOriginErrors", "failures to connect count like 5xx"},
                                          {"consecutiveLocalOriginFailures", "failures to connect count like 5xx"},
                                          {"failurePercentageThreshold", "hosts are ejected by failures in a row"},
                                          {NULL, NULL}};
    const struct yaml_node *node = passive->node;
    const struct yaml_node *interval = source_get(node, "interval");
    const struct yaml_node three = {
        .kind = YAML_SCALAR, .line = node->line, .column = node->column, .text = "3s", .length = 2};
    const struct mesh_outlier outlier = {
        .block = *passive,
        .consecutive = {source_get(node, "consecutive5XxErrors"), "healthCheck.passive.consecutive5XxErrors", NULL},
        .gateway = {source_get(node, "consecutiveGatewayErrors"), "healthCheck.passive.consecutiveGatewayErrors", NULL},
        .interval = {interval != NULL ? interval : &three, "healthCheck.passive.interval",
                     interval != NULL ? NULL : "Envoy Gateway's default"},
        .ejection = {source_get(node, "baseEjectionTime"), "healthCheck.passive.baseEjectionTime", NULL},
        .percent = {source_get(node, "maxEjectionPercent"), "healthCheck.passive.maxEjectionPercent", NULL}};
    source_rest(s, service, node, "healthCheck.passive", fields);
    mesh_outlier(s, service, &outlier);
}

static void limits_put(struct source *s, struct emit_target *service, const struct yaml_node *breaker)
{
    static const struct field fields[] = {{"maxParallelRequests", NULL},
                                          {"maxPendingRequests", NULL},
                                          {"maxParallelRetries", NULL},
                                          {"maxConnections", NOTE "pool.maxPerHost holds for all services"},
                                          {"maxRequestsPerConnection", NOTE "a connection has no number of requests"},
                                          {"perEndpoint", NOTE "pool.maxPerHost holds for all services"},
                                          {NULL, NULL}};
    if (breaker == NULL || !source_is(s, &(struct from){breaker, "circuitBreaker", NULL}, YAML_MAPPING)) {
        return;
    }
    source_rest(s, service, breaker, "circuitBreaker", fields);
    const struct mesh_limits limits = {
        .retries = {source_get(breaker, "maxParallelRetries"), "circuitBreaker.maxParallelRetries", NULL},
        .requests = {source_get(breaker, "maxParallelRequests"), "circuitBreaker.maxParallelRequests", NULL},
        .pending = {source_get(breaker, "maxPendingRequests"), "circuitBreaker.maxPendingRequests", NULL}};
    mesh_limits(s, service, &limits);
}

static void spec_put(struct source *s, struct emit_target *service, struct emit_target *rules,
                     const struct yaml_node *spec)
{
    static const struct field fields[] = {
        {"targetRef", NULL},
        {"targetRefs", NULL},
        {"retry", NULL},
        {"timeout", NULL},
        {"circuitBreaker", NULL},
        {"healthCheck", NULL},
        {"loadBalancer", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"rateLimit", NOTE "clients have no rates"},
        {"faultInjection", "Becalm injects no faults"},
        {NULL, NULL}};
    const struct from retry = {source_get(spec, "retry"), "retry", NULL};
    const struct yaml_node *timeout = source_get(spec, "timeout");
    const struct from request = {source_get(source_get(timeout, "http"), "requestTimeout"),
                                 "timeout.http.requestTimeout", NULL};
    const struct from connect = {source_get(source_get(timeout, "tcp"), "connectTimeout"), "timeout.tcp.connectTimeout",
                                 NULL};
    const struct from passive = {source_get(source_get(spec, "healthCheck"), "passive"), "healthCheck.passive", NULL};
    const struct from active = {source_get(source_get(spec, "healthCheck"), "active"), "healthCheck.active", NULL};
    source_rest(s, service, spec, "", fields);
    retry_put(s, rules, &retry);
    if (request.node != NULL && emit_get(rules, "deadline") == NULL) {
        mesh_deadline(s, rules, &request);
    }
    source_take_duration(s, rules, "connectTimeout", &connect);
    limits_put(s, service, source_get(spec, "circuitBreaker"));
    if (passive.node != NULL && source_is(s, &passive, YAML_MAPPING)) {
        passive_put(s, service, &passive);
    }
    if (active.node != NULL) {
        source_aside(s, service, &active, "hosts are judged by their answers, not by checks");
    }
}

void envoy_gateway_apply(struct source *s, const struct objects *objects, const struct yaml_node *route,
                         struct emit_target *service, struct emit_target *rules, bool *used)
{
    enum fit best = FIT_NONE;
    uint32_t found = 0;
    for (uint32_t i = 0; i < objects->count; i++) {
        enum fit fit = envoy_gateway_is(&objects->at[i]) ? policy_fit(objects->at[i].node, route) : FIT_NONE;
        used[i] = used[i] || fit != FIT_NONE;
        if (fit > best) {
            best = fit;
            found = i;
        }
    }
    if (best != FIT_NONE) {
        const char *file = s->file;
        s->file = objects->at[found].file;
        spec_put(s, service, rules, source_get(objects->at[found].node, "spec"));
        s->file = file;
    }
}

void envoy_gateway_rest(struct source *s, const struct objects *objects, const bool *used, bool routes)
{
    for (uint32_t i = 0; i < objects->count; i++) {
        if (!envoy_gateway_is(&objects->at[i]) || used[i]) {
            continue;
        }
        s->file = objects->at[i].file;
        const struct yaml_node *object = objects->at[i].node;
        const struct from from = {object, "BackendTrafficPolicy", NULL};
        source_no_equal(s, NULL, &from,
                        routes ? "none of the routes is its target, and its own is not in the files; it is left out"
                               : "the routes that it is for are not in the files; here it holds for all services");
        if (!routes) {
            spec_put(s, emit_defaults(s->emit), emit_defaults(s->emit), source_get(object, "spec"));
        }
    }
}
