/* SPDX-License-Identifier: MIT */
/* Kubernetes' Gateway API: HTTPRoute with retry and timeouts (GEP-1731, GEP-1742), and the retryConstraint of a
 * BackendTrafficPolicy (GEP-3388). A backend becomes a service and a rule that leads to it an endpoint. */
#include "../value.h"
#include "dialect.h"
#include "envoy/envoy_gateway.h"
#include "linkerd.h"
#include "mesh.h"
#include "route.h"

#include <string.h>

#define BUDGET_PERCENT  200000u
#define BUDGET_INTERVAL (10 * BECALM_S)
#define RATE_COUNT      10u
#define RATE_INTERVAL   BECALM_S
#define SHARES_MAX      64u

struct gateway {
    struct source *s;
    const struct objects *objects;
    const struct yaml_node *object; /* that is being read */
    bool *used;                     /* of each object: a policy of Envoy Gateway that a route is called by */
    bool routes;                    /* there are any */
};

/* ---- a rule's settings for calls ---- */

static void codes_put(struct source *s, struct emit_target *target, const struct from *codes, const struct from *retry)
{
    static const char *const no_answer[] = {"connect-failure", "refused-stream", "reset", "timeout"};
    struct source_list list = {.emit = s->emit};
    struct from from = codes->node != NULL ? *codes : *retry;
    for (uint32_t i = 0; source_is(s, codes, YAML_SEQUENCE) && i < codes->node->count; i++) {
        uint64_t code;
        const struct from item = {codes->node->item[i], codes->path, NULL};
        if (source_integer(s, &item, &code)) {
            if (code < 400 || code > 599) {
                source_error(s, item.node, "bad-value", "retry.codes: %s is not from 400 to 599", item.node->text);
                return;
            }
            source_list_add(&list, emit_text(s->emit, "%u", (unsigned)code));
        }
    }
    for (size_t i = 0; i < sizeof no_answer / sizeof *no_answer; i++) {
        source_list_add(&list, no_answer[i]);
    }
    from.remark = "and no answer at all, as GEP-1731 wants";
    source_put_list(s, target, "retryOn", &list, &from);
    mesh_application_tell(s, target, &list, &from);
}

static void retry_read(struct source *s, struct emit_target *target, const struct from *retry)
{
    static const struct field fields[] = {{"codes", NULL}, {"attempts", NULL}, {"backoff", NULL}, {NULL, NULL}};
    if (!source_is(s, retry, YAML_MAPPING)) {
        return;
    }
    const struct from attempts = {source_get(retry->node, "attempts"), "retry.attempts", "these are retries"};
    const struct from backoff = {source_get(retry->node, "backoff"), "retry.backoff", NULL};
    const struct from codes = {source_get(retry->node, "codes"), "retry.codes", NULL};
    becalm_ns base;
    source_rest(s, target, retry->node, "retry", fields);
    source_take_integer(s, target, "maxRetries", &attempts);
    if (source_duration(s, &backoff, &base)) {
        struct becalm_backoff_policy own;
        becalm_backoff_defaults(&own);
        source_put_duration(s, target, "initialDelay", base, &backoff);
        source_put_duration(
            s, target, "maxDelay", base > own.cap ? base : own.cap,
            &(struct from){backoff.node, "retry.backoff", "Becalm's default, or the first wait if longer"});
    }
    codes_put(s, target, &codes, retry);
}

/* 0s switches a timeout off. */
static void timeout_put(struct source *s, struct emit_target *target, const char *key, const struct from *from)
{
    becalm_ns value;
    if (!source_duration(s, from, &value)) {
        return;
    }
    if (value > 0) {
        source_put_duration(s, target, key, value, from);
    } else {
        source_put_word(s, target, key, "none", from);
    }
}

static void rule_calls(struct source *s, struct emit_target *target, const struct yaml_node *rule)
{
    static const struct field fields[] = {{"request", NULL}, {"backendRequest", NULL}, {NULL, NULL}};
    const struct from retry = {source_get(rule, "retry"), "retry", NULL};
    const struct from timeouts = {source_get(rule, "timeouts"), "timeouts", NULL};
    if (timeouts.node != NULL && source_is(s, &timeouts, YAML_MAPPING)) {
        source_rest(s, target, timeouts.node, "timeouts", fields);
        timeout_put(s, target, "deadline",
                    &(struct from){source_get(timeouts.node, "request"), "timeouts.request", NULL});
        timeout_put(s, target, "attemptTimeout",
                    &(struct from){source_get(timeouts.node, "backendRequest"), "timeouts.backendRequest", NULL});
    }
    if (retry.node != NULL) {
        retry_read(s, target, &retry);
    }
}

/* ---- matches ---- */

static void path_match(struct source *s, struct emit_target *service, const struct from *from, struct route_match *m)
{
    if (!source_is(s, from, YAML_MAPPING)) {
        return;
    }
    const struct yaml_node *type = source_get(from->node, "type");
    const struct from value = {source_get(from->node, "value"), "matches.path.value", NULL};
    const char *text = source_text(s, &value);
    if (type == NULL || yaml_is(type, "PathPrefix")) {
        size_t length = text == NULL ? 0 : strlen(text); /* a slash at its end means nothing there */
        m->prefix = length > 1 && text[length - 1] == '/' ? emit_text(s->emit, "%.*s", (int)length - 1, text) : text;
    } else if (yaml_is(type, "Exact")) {
        m->path = text;
    } else {
        source_no_equal(s, service, from, "paths match whole, or by a prefix; the rule is left out");
        m->impossible = true;
    }
}

/* GRPCRoute: {service, method}, which is a path. */
static void method_match(struct source *s, struct emit_target *service, const struct from *from, struct route_match *m)
{
    if (from->node->kind == YAML_SCALAR) {
        m->method = from->node->text;
        return;
    }
    const struct yaml_node *type = source_get(from->node, "type");
    const char *name =
        source_text(s, &(struct from){source_get(from->node, "service"), "matches.method.service", NULL});
    const char *method =
        source_text(s, &(struct from){source_get(from->node, "method"), "matches.method.method", NULL});
    if (name == NULL || (type != NULL && !yaml_is(type, "Exact"))) {
        source_no_equal(s, service, from, "a gRPC method is matched as the path /service/method; the rule is left out");
        m->impossible = true;
    } else if (method != NULL) {
        m->path = emit_text(s->emit, "/%s/%s", name, method);
    } else {
        m->prefix = emit_text(s->emit, "/%s/", name);
    }
}

static void header_match(struct source *s, struct emit_target *service, const struct from *from, struct route_match *m)
{
    if (!source_is(s, from, YAML_SEQUENCE) || from->node->count == 0) {
        return;
    }
    const struct yaml_node *header = from->node->item[0];
    const struct yaml_node *type = source_get(header, "type");
    const struct from name = {source_get(header, "name"), "matches.headers", NULL};
    const struct from value = {source_get(header, "value"), "matches.headers", NULL};
    m->header = source_text(s, &name);
    m->value = source_text(s, &value);
    if (from->node->count > 1 || (type != NULL && !yaml_is(type, "Exact")) || m->header == NULL || m->value == NULL) {
        source_no_equal(s, service, from, "an endpoint matches one header and its whole value; the rule is left out");
        m->impossible = true;
    }
}

static struct route_match match_read(struct source *s, struct emit_target *service, const struct yaml_node *node)
{
    static const struct field fields[] = {
        {"path", NULL}, {"headers", NULL}, {"method", NULL}, {"queryParams", source_narrows}, {NULL, NULL}};
    struct route_match m = {0};
    if (!source_is(s, &(struct from){node, "matches", NULL}, YAML_MAPPING)) {
        m.impossible = true;
        return m;
    }
    const struct from method = {source_get(node, "method"), "matches.method", NULL};
    m.impossible = source_rest(s, service, node, "matches", fields);
    path_match(s, service, &(struct from){source_get(node, "path"), "matches.path", NULL}, &m);
    header_match(s, service, &(struct from){source_get(node, "headers"), "matches.headers", NULL}, &m);
    if (method.node != NULL) {
        method_match(s, service, &method, &m);
    }
    return m;
}

/* ---- routes ---- */

static void backend_address(struct source *s, struct emit_target *service, const struct yaml_node *ref,
                            const struct from *name)
{
    const struct from space = {source_get(ref, "namespace"), "backendRefs.namespace", NULL};
    const struct from port = {source_get(ref, "port"), "backendRefs.port", NULL};
    const char *space_text = source_text(s, &space);
    uint64_t number;
    if (source_integer(s, &port, &number)) {
        const char *address = emit_text(s->emit, "%s%s%s:%llu", name->node->text, space_text == NULL ? "" : ".",
                                        space_text == NULL ? "" : space_text, (unsigned long long)number);
        struct source_list hosts = {.emit = s->emit};
        if (!value_address_of_host(address)) {
            source_no_equal(s, service, name, emit_text(s->emit, "\"%.64s\" is not an address", address));
            return;
        }
        source_list_add(&hosts, address);
        source_put_list(s, service, "hosts", &hosts, &port);
    }
}

/* The service of a rule's heaviest backend; NULL if it has none. */
static struct emit_target *backend_read(struct source *s, const struct from *refs)
{
    static const struct field fields[] = {{"group", NULL},
                                          {"kind", NULL},
                                          {"name", NULL},
                                          {"namespace", NULL},
                                          {"port", NULL},
                                          {"weight", NULL},
                                          {"filters", "requests are passed on unchanged"},
                                          {NULL, NULL}};
    struct share share[SHARES_MAX];
    size_t count = 0;
    for (uint32_t i = 0; source_is(s, refs, YAML_SEQUENCE) && i < refs->node->count && count < SHARES_MAX; i++) {
        const struct yaml_node *ref = refs->node->item[i];
        const struct from name = {source_get(ref, "name"), "backendRefs.name", NULL};
        const struct from weight = {source_get(ref, "weight"), "backendRefs.weight", NULL};
        const char *text = source_text(s, &name);
        if (text == NULL) {
            continue;
        }
        struct emit_target *service = emit_service(s->emit, text, source_where(s, &name));
        source_rest(s, service, ref, "backendRefs", fields);
        backend_address(s, service, ref, &name);
        share[count] = (struct share){service, text, 1};
        (void)source_integer(s, &weight, &share[count].weight);
        count++;
    }
    struct emit_target *most = shares_pick(s, share, count, refs);
    return most == NULL && count > 0 ? share[0].service : most;
}

static void rule_read(struct gateway *in, const struct yaml_node *rule, const struct from *names)
{
    static const struct field fields[] = {
        {"name", NULL},
        {"matches", NULL},
        {"backendRefs", NULL},
        {"timeouts", NULL},
        {"retry", NULL},
        {"filters", "requests are passed on unchanged"},
        {"sessionPersistence", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {NULL, NULL}};
    struct source *s = in->s;
    if (!source_is(s, &(struct from){rule, "rules", NULL}, YAML_MAPPING)) {
        return;
    }
    struct emit_target *service = backend_read(s, &(struct from){source_get(rule, "backendRefs"), "backendRefs", NULL});
    const struct from matches = {source_get(rule, "matches"), "matches", NULL};
    source_rest(s, service, rule, "rules", fields);
    if (service == NULL) {
        rule_calls(s, emit_defaults(s->emit), rule); /* a piece of a route: it holds for every service */
        return;
    }
    if (yaml_is(source_get(in->object, "kind"), "GRPCRoute")) {
        source_put_h2(s, service, &(struct from){rule, "rules", "gRPC is HTTP/2"});
    }
    const struct yaml_node *name = source_get(rule, "name");
    struct route *out = route_add(s, service, name != NULL && name->kind == YAML_SCALAR ? name->text : NULL,
                                  &(struct from){rule, "rules", NULL});
    for (uint32_t i = 0; source_is(s, names, YAML_SEQUENCE) && i < names->node->count; i++) {
        const struct from name_from = {names->node->item[i], "hostnames", NULL};
        route_add_host(s, out, source_text(s, &name_from), &name_from);
    }
    for (uint32_t i = 0; source_is(s, &matches, YAML_SEQUENCE) && i < matches.node->count; i++) {
        const struct from from = {matches.node->item[i], "matches", NULL};
        const struct route_match m = match_read(s, service, from.node);
        route_add_match(s, out, &m, &from);
    }
    rule_calls(s, route_rules(out), rule);
    linkerd_annotations(s, route_rules(out), in->object);
    envoy_gateway_apply(s, in->objects, in->object, service, route_rules(out), in->used);
    in->routes = true;
}

static void route_read(struct gateway *in, const struct yaml_node *spec)
{
    static const struct field fields[] = {
        {"hostnames", NULL}, {"rules", NULL}, {"parentRefs", NOTE "a policy holds where Becalm runs"}, {NULL, NULL}};
    struct source *s = in->s;
    const struct from names = {source_get(spec, "hostnames"), "hostnames", NULL};
    const struct from rules = {source_get(spec, "rules"), "rules", NULL};
    source_rest(s, NULL, spec, "", fields);
    for (uint32_t i = 0; source_is(s, &rules, YAML_SEQUENCE) && i < rules.node->count; i++) {
        rule_read(in, rules.node->item[i], &names);
    }
}

/* ---- retryConstraint ---- */

static struct from unwritten(const struct from *from, const struct from *block)
{
    return from->node != NULL ? *from : (struct from){block->node, block->path, "the Gateway API's default"};
}

/* So many retries a second that are always allowed: count / interval. */
static void rate_put(struct source *s, struct emit_target *target, const struct from *rate, const struct from *block)
{
    static const struct field fields[] = {{"count", NULL}, {"interval", NULL}, {NULL, NULL}};
    const struct from count = {source_get(rate->node, "count"), "minRetryRate.count", NULL};
    const struct from interval = {source_get(rate->node, "interval"), "minRetryRate.interval", NULL};
    uint64_t number = RATE_COUNT;
    becalm_ns time = RATE_INTERVAL;
    source_rest(s, target, rate->node, "minRetryRate", fields);
    if ((count.node != NULL && !source_integer(s, &count, &number)) ||
        (interval.node != NULL && !source_duration(s, &interval, &time))) {
        return;
    }
    struct from from = unwritten(&count, rate->node != NULL ? rate : block);
    if (number > UINT32_MAX || time < BECALM_MS) {
        source_error(s, from.node, "bad-value", "minRetryRate: count or interval is out of its range");
        return;
    }
    uint64_t thousandths = number * BECALM_S / (time / 1000);
    if (thousandths % 1000 != 0) {
        source_no_equal(s, target, &from, "a part of a retry a second; minPerSecond is a whole number, rounded down");
    }
    source_put_integer(s, target, "budget.minPerSecond", thousandths / 1000, &from);
}

static void constraint_read(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {{"budget", NULL}, {"minRetryRate", NULL}, {NULL, NULL}};
    static const struct field budget_fields[] = {{"percent", NULL}, {"interval", NULL}, {NULL, NULL}};
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    const struct from budget = {source_get(block->node, "budget"), "retryConstraint.budget", NULL};
    const struct from rate = {source_get(block->node, "minRetryRate"), "retryConstraint.minRetryRate", NULL};
    const struct from percent = {source_get(budget.node, "percent"), "retryConstraint.budget.percent", NULL};
    const struct from interval = {source_get(budget.node, "interval"), "retryConstraint.budget.interval", NULL};
    uint64_t ppm = BUDGET_PERCENT;
    becalm_ns window = BUDGET_INTERVAL;
    source_rest(s, target, block->node, "retryConstraint", fields);
    source_rest(s, target, budget.node, "retryConstraint.budget", budget_fields);
    if ((percent.node != NULL && !source_decimal(s, &percent, 10000, &ppm)) ||
        (interval.node != NULL && !source_duration(s, &interval, &window)) ||
        (rate.node != NULL && !source_is(s, &rate, YAML_MAPPING)) ||
        (budget.node != NULL && !source_is(s, &budget, YAML_MAPPING))) {
        return;
    }
    const struct from percent_from = unwritten(&percent, block);
    const struct from window_from = unwritten(&interval, block);
    source_put_word(s, target, "budget.kind", "ratio", block);
    source_put_percent(s, target, "budget.percent", ppm, &percent_from);
    source_put_duration(s, target, "budget.window", window, &window_from);
    rate_put(s, target, &rate, block);
    source_put_word(s, target, "budget.level", "service", block);
}

static void traffic_policy(struct source *s, const struct yaml_node *spec)
{
    static const struct field fields[] = {
        {"targetRefs", NULL},
        {"targetRef", NULL},
        {"retryConstraint", NULL},
        {"sessionPersistence", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {NULL, NULL}};
    const struct from constraint = {source_get(spec, "retryConstraint"), "retryConstraint", NULL};
    const struct from refs = {source_get(spec, "targetRefs"), "targetRefs", NULL};
    source_rest(s, NULL, spec, "", fields);
    if (constraint.node == NULL) {
        return;
    }
    if (refs.node == NULL) {
        constraint_read(s, emit_defaults(s->emit), &constraint);
    }
    for (uint32_t i = 0; source_is(s, &refs, YAML_SEQUENCE) && i < refs.node->count; i++) {
        const struct from name = {source_get(refs.node->item[i], "name"), "targetRefs.name", NULL};
        const char *text = source_text(s, &name);
        if (text != NULL) {
            constraint_read(s, emit_service(s->emit, text, source_where(s, &name)), &constraint);
        }
    }
}

/* ---- documents ---- */

static void object_read(struct gateway *in, const struct object *from)
{
    static const struct field fields[] = {{"retry", NULL}, {"timeouts", NULL}, {"retryConstraint", NULL}, {NULL, NULL}};
    struct source *s = in->s;
    const struct yaml_node *object = from->node;
    const char *kind = from->kind;
    const struct from written = {source_get(object, "spec"), "spec", NULL};
    const struct yaml_node *spec = written.node == NULL ? object : written.node;
    if (written.node != NULL && !source_is(s, &written, YAML_MAPPING)) {
        return;
    }
    if (strcmp(kind, "HTTPRoute") == 0 || strcmp(kind, "GRPCRoute") == 0 ||
        (kind[0] == '\0' && source_get(spec, "rules") != NULL)) {
        in->object = object;
        route_read(in, spec);
    } else if (strcmp(kind, "XBackendTrafficPolicy") == 0 || strcmp(kind, "BackendTrafficPolicy") == 0 ||
               (kind[0] == '\0' && source_get(spec, "targetRefs") != NULL)) {
        traffic_policy(s, spec);
    } else if (kind[0] != '\0') {
        const struct from other = {source_get(object, "kind"), emit_text(s->emit, "kind \"%s\"", kind), NULL};
        source_no_equal(s, NULL, &other, "only HTTPRoute, GRPCRoute and BackendTrafficPolicy are read");
    } else {
        const struct from constraint = {source_get(spec, "retryConstraint"), "retryConstraint", NULL};
        source_rest(s, emit_defaults(s->emit), spec, "", fields);
        if (source_get(spec, "retry") != NULL || source_get(spec, "timeouts") != NULL) {
            rule_calls(s, emit_defaults(s->emit), spec);
        }
        if (constraint.node != NULL) {
            constraint_read(s, emit_defaults(s->emit), &constraint);
        }
    }
}

static const struct unwritten unwritten_rules[] = {{"maxRetries", "0", "without `retry` a rule is not retried"},
                                                   {"attemptTimeout", "none", "no timeouts.backendRequest"},
                                                   {"deadline", "none", "no timeouts.request"},
                                                   {NULL, NULL, NULL}};

static bool gateway_api_recognises(const struct object *object)
{
    static const char *const kinds[] = {"HTTPRoute", "GRPCRoute", "XBackendTrafficPolicy", "BackendTrafficPolicy"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(object->kind, kinds[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void gateway_api_read(struct source *s, const struct objects *objects)
{
    struct gateway in = {.s = s, .objects = objects};
    in.used = emit_take(s->emit, objects->count * sizeof *in.used + 1);
    if (in.used == NULL) {
        return;
    }
    emit_note(
        s->emit, NULL,
        "Becalm repeats POST and PATCH only with an Idempotency-Key, or where a policy says `idempotent: true`. Over "
        "budget it passes the last answer on; the Gateway API asks for a 503.");
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        if (source_is(s, &(struct from){objects->at[i].node, "the document", NULL}, YAML_MAPPING) &&
            !envoy_gateway_is(&objects->at[i])) {
            object_read(&in, &objects->at[i]);
        }
    }
    envoy_gateway_rest(s, objects, in.used, in.routes);
}

const struct dialect dialect_gateway_api = {.word = "gateway-api",
                                            .product = "the Gateway API",
                                            .unwritten = unwritten_rules,
                                            .host_decides = true,
                                            .recognises = gateway_api_recognises,
                                            .read = gateway_api_read};
