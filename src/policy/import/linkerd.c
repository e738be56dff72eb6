/* SPDX-License-Identifier: MIT */
/* Linkerd: ServiceProfiles, and Services with the annotations retry.linkerd.io and timeout.linkerd.io. A profile is a
 * service of the profile's name, its routes are routes. Its retries have no limit but the budget, which is our `ratio`,
 * key by key. */
#include "linkerd.h"

#include "dialect.h"
#include "mesh.h"
#include "route.h"

#include <string.h>

#define RATIO       200000u /* Linkerd's default, in ppm */
#define PER_SECOND  10u
#define TTL         (10 * BECALM_S)
#define DEPTH       8u
#define CHOICES_MAX 32u

/* ---- annotations ---- */

/* 5xx, gateway-error, 503, 500-504, with commas: as retryOn. */
static void statuses_add(struct source *s, struct source_list *on, const struct from *from, const char *text)
{
    for (const char *c = text; *c != '\0';) {
        size_t length = strcspn(c, ", ");
        const char *word = emit_text(s->emit, "%.*s", (int)length, c);
        const char *dash = strchr(word, '-');
        uint64_t low = 0;
        uint64_t high = 0;
        bool numbers = length > 0 && strspn(word, "0123456789-") == length;
        c += length + strspn(c + length, ", ");
        if (strcmp(word, "5xx") == 0 || strcmp(word, "gateway-error") == 0) {
            source_list_add(on, word);
        } else if (numbers &&
                   value_integer(dash == NULL ? word : emit_text(s->emit, "%.*s", (int)(dash - word), word), &low) &&
                   value_integer(dash == NULL ? word : dash + 1, &high) && low >= 400 && high <= 599) {
            for (; low <= high; low++) {
                source_list_add(on, emit_text(s->emit, "%u", (unsigned)low));
            }
        } else if (length > 0) {
            source_error(s, from->node, "bad-value", "%s: \"%.64s\" is neither 5xx, gateway-error nor a status",
                         from->path, word);
        }
    }
}

static struct from annotation(const struct yaml_node *annotations, const char *name)
{
    return (struct from){annotations == NULL ? NULL : yaml_get(annotations, name), name, NULL};
}

bool linkerd_annotated(const struct yaml_node *object)
{
    const struct yaml_node *annotations = source_get(source_get(object, "metadata"), "annotations");
    for (uint32_t i = 0; annotations != NULL && annotations->kind == YAML_MAPPING && i < annotations->count; i++) {
        const char *key = annotations->key[i]->text;
        if (strncmp(key, "retry.linkerd.io/", 17) == 0 || strncmp(key, "timeout.linkerd.io/", 19) == 0) {
            return true;
        }
    }
    return false;
}

void linkerd_annotations(struct source *s, struct emit_target *rules, const struct yaml_node *object)
{
    const struct yaml_node *annotations = source_get(source_get(object, "metadata"), "annotations");
    if (annotations == NULL || annotations->kind != YAML_MAPPING) {
        return;
    }
    const struct from http = annotation(annotations, "retry.linkerd.io/http");
    const struct from grpc = annotation(annotations, "retry.linkerd.io/grpc");
    const struct from limit = annotation(annotations, "retry.linkerd.io/limit");
    const struct from time = annotation(annotations, "retry.linkerd.io/timeout");
    const struct from request = annotation(annotations, "timeout.linkerd.io/request");
    const struct from response = annotation(annotations, "timeout.linkerd.io/response");
    const struct from idle = annotation(annotations, "timeout.linkerd.io/idle");
    struct source_list on = {.emit = s->emit};
    const char *text = http.node == NULL ? NULL : source_text(s, &http);
    if (text != NULL) {
        statuses_add(s, &on, &http, text);
    }
    text = grpc.node == NULL ? NULL : source_text(s, &grpc);
    for (const char *c = text; c != NULL && *c != '\0';) {
        size_t length = strcspn(c, ", ");
        if (length > 0) {
            source_list_add(&on, emit_text(s->emit, "%.*s", (int)length, c));
        }
        c += length + strspn(c + length, ", ");
    }
    if (on.count > 0) {
        uint64_t retries = 1;
        const struct from written = limit.node != NULL ? limit : http.node != NULL ? http : grpc;
        bool given = limit.node != NULL && source_integer(s, &limit, &retries);
        const struct from count = {written.node, written.path, given ? NULL : "Linkerd's default"};
        source_list_add(&on, "timeout"); /* since 2.16 timeouts are retried */
        source_put_integer(s, rules, "maxRetries", retries, &count);
        source_put_list(s, rules, "retryOn", &on, http.node != NULL ? &http : &grpc);
        mesh_application_tell(s, rules, &on, http.node != NULL ? &http : &grpc);
        source_put_word(s, rules, "idempotent", "true",
                        &(struct from){count.node, count.path, "Linkerd retries every method"});
    }
    source_take_duration(s, rules, "attemptTimeout", &time);
    source_take_duration(s, rules, "deadline", &request);
    if (response.node != NULL && request.node == NULL) {
        source_no_equal(s, rules, &response, "it begins with the request's end; a deadline begins with the request");
        source_take_duration(s, rules, "deadline", &response);
    }
    if (idle.node != NULL) {
        source_aside(s, rules, &idle, "write idleTimeout, which holds for all");
    }
}

/* ---- conditions of routes ---- */

struct choices {
    struct route_match match[CHOICES_MAX];
    uint32_t count;
    bool impossible;
};

/* A regular expression that is a path: no sign of one in it but \. and a .* at the end. */
static bool regex_read(struct source *s, const char *regex, struct route_match *m)
{
    size_t length = strlen(regex);
    bool open = length >= 2 && strcmp(regex + length - 2, ".*") == 0;
    char *path = emit_take(s->emit, length + 1);
    size_t used = 0;
    for (size_t i = regex[0] == '^' ? 1 : 0; path != NULL && i < length - (open ? 2 : 0); i++) {
        if (regex[i] == '\\' && i + 1 < length && strchr(".-/", regex[i + 1]) != NULL) {
            i++;
        } else if (strchr("\\.[](){}*+?|^", regex[i]) != NULL || (regex[i] == '$' && i + 1 < length)) {
            return false;
        } else if (regex[i] == '$') {
            continue;
        }
        path[used++] = regex[i];
    }
    if (open) {
        match_begins_with(m, path);
    } else {
        m->path = path;
    }
    return path != NULL;
}

static void condition_read(struct source *s, const struct from *from, struct choices *out, unsigned depth);

static void each_of(struct source *s, const struct from *list, struct choices *out, bool all, unsigned depth)
{
    out->count = all ? 1 : 0;
    out->match[0] = (struct route_match){0};
    for (uint32_t i = 0; source_is(s, list, YAML_SEQUENCE) && i < list->node->count; i++) {
        struct choices one = {0};
        condition_read(s, &(struct from){list->node->item[i], list->path, NULL}, &one, depth - 1);
        out->impossible = out->impossible || one.impossible || (all && one.count != 1);
        for (uint32_t k = 0; k < one.count && !out->impossible; k++) {
            struct route_match *to = &out->match[0];
            if (!all && out->count < CHOICES_MAX) {
                out->match[out->count++] = one.match[k];
            } else if (all && !(to->method != NULL && one.match[k].method != NULL) &&
                       !((to->path != NULL || to->prefix != NULL || to->start != NULL) &&
                         (one.match[k].path != NULL || one.match[k].prefix != NULL || one.match[k].start != NULL))) {
                to->method = one.match[k].method != NULL ? one.match[k].method : to->method;
                to->path = one.match[k].path != NULL ? one.match[k].path : to->path;
                to->prefix = one.match[k].prefix != NULL ? one.match[k].prefix : to->prefix;
                to->start = one.match[k].start != NULL ? one.match[k].start : to->start;
            } else {
                out->impossible = true;
            }
        }
    }
}

/* pathRegex, method, all, any; `not` can't be said. */
static void condition_read(struct source *s, const struct from *from, struct choices *out, unsigned depth)
{
    if (depth == 0 || from->node == NULL || from->node->kind != YAML_MAPPING || source_get(from->node, "not") != NULL) {
        out->impossible = true;
        return;
    }
    const struct from all = {source_get(from->node, "all"), "condition.all", NULL};
    const struct from any = {source_get(from->node, "any"), "condition.any", NULL};
    const struct from regex = {source_get(from->node, "pathRegex"), "condition.pathRegex", NULL};
    const struct from method = {source_get(from->node, "method"), "condition.method", NULL};
    if (all.node != NULL || any.node != NULL) {
        each_of(s, all.node != NULL ? &all : &any, out, all.node != NULL, depth);
        return;
    }
    const char *text = regex.node == NULL ? NULL : source_text(s, &regex);
    out->count = 1;
    out->match[0].method = method.node == NULL ? NULL : source_text(s, &method);
    out->impossible = text != NULL && !regex_read(s, text, &out->match[0]);
}

/* ---- profiles ---- */

static void budget_put(struct source *s, struct emit_target *service, const struct from *block,
                       const struct from *profile)
{
    const struct from ratio = {source_get(block->node, "retryRatio"), "retryBudget.retryRatio", NULL};
    const struct from rate = {source_get(block->node, "minRetriesPerSecond"), "retryBudget.minRetriesPerSecond", NULL};
    const struct from ttl = {source_get(block->node, "ttl"), "retryBudget.ttl", NULL};
    const struct from unwritten = {block->node != NULL ? block->node : profile->node, "retryBudget",
                                   "Linkerd's default"};
    bool written = block->node != NULL; /* then missing keys are 0, except the ttl, which is required */
    uint64_t ppm = written ? 0 : RATIO;
    uint64_t least = written ? 0 : PER_SECOND;
    becalm_ns time = TTL;
    bool has_ratio = ratio.node != NULL && source_decimal(s, &ratio, 1000000, &ppm);
    bool has_rate = rate.node != NULL && source_integer(s, &rate, &least);
    bool has_ttl = ttl.node != NULL && source_duration(s, &ttl, &time);
    source_put_word(s, service, "budget.kind", "ratio", &unwritten);
    source_put_percent(s, service, "budget.percent", ppm, has_ratio ? &ratio : &unwritten);
    source_put_integer(s, service, "budget.minPerSecond", least, has_rate ? &rate : &unwritten);
    source_put_duration(s, service, "budget.window", time, has_ttl ? &ttl : &unwritten);
    source_put_word(s, service, "budget.level", "service", &unwritten);
}

static void route_put(struct source *s, struct emit_target *service, const char *host, const struct yaml_node *item)
{
    const struct from from = {item, "routes", NULL};
    const struct from condition = {source_get(item, "condition"), "condition", NULL};
    const struct from retryable = {source_get(item, "isRetryable"), "isRetryable", NULL};
    const struct from timeout = {source_get(item, "timeout"), "timeout", NULL};
    const struct from classes = {source_get(item, "responseClasses"), "responseClasses", NULL};
    const struct from name = {source_get(item, "name"), "name", NULL};
    struct choices choices = {0};
    bool retried = false;
    if (!source_is(s, &from, YAML_MAPPING)) {
        return;
    }
    condition_read(s, &condition, &choices, DEPTH);
    for (uint32_t i = 0; i < choices.count; i++) {
        choices.impossible = choices.impossible || !match_is_possible(&choices.match[i]);
    }
    if (choices.impossible || choices.count == 0) {
        const struct from at = {condition.node != NULL ? condition.node : item, "condition", NULL};
        source_no_equal(s, service, &at, "no match can be a regular expression, or `not`; the route is left out");
        return;
    }
    struct route *route = route_add(s, service, name.node == NULL ? NULL : source_text(s, &name), &from);
    route_add_host(s, route, host, &from);
    for (uint32_t i = 0; i < choices.count; i++) {
        route_add_match(s, route, &choices.match[i], &from);
    }
    struct emit_target *rules = route_rules(route);
    if (retryable.node != NULL && source_boolean(s, &retryable, &retried) && retried) {
        const struct from count = {retryable.node, retryable.path, "no limit but the budget"};
        const struct from every = {retryable.node, retryable.path, "whatever the method"};
        const struct from at_once = {retryable.node, retryable.path, "Linkerd does not wait between attempts"};
        source_put_integer(s, rules, "maxRetries", BECALM_RETRIES_MAX, &count);
        source_put_duration(s, rules, "initialDelay", 0, &at_once);
        source_put_word(s, rules, "retryOn", "[5xx]", &retryable);
        source_put_word(s, rules, "idempotent", "true", &every);
        source_no_equal(s, rules, &retryable, "an error of the application (500) is retried once per call");
    }
    source_take_duration(s, rules, "deadline", &timeout);
    if (classes.node != NULL) {
        source_no_equal(s, rules, &classes, "retryOn says which answers are failures");
    }
}

static void profile_read(struct source *s, const struct yaml_node *object)
{
    const struct from name = {source_get(source_get(object, "metadata"), "name"), "metadata.name", NULL};
    const struct yaml_node *spec = source_get(object, "spec");
    const struct from routes = {source_get(spec, "routes"), "routes", NULL};
    const struct from budget = {source_get(spec, "retryBudget"), "retryBudget", NULL};
    const struct from overrides = {source_get(spec, "dstOverrides"), "dstOverrides", NULL};
    const char *host = name.node == NULL ? NULL : source_text(s, &name);
    if (host == NULL || host[0] == '\0') {
        source_no_equal(s, NULL, &(struct from){object, "ServiceProfile", NULL}, "it has no name; it is left out");
        return;
    }
    struct emit_target *service = emit_service(s->emit, host, source_where(s, &name));
    budget_put(s, service, &budget, &name);
    if (overrides.node != NULL) {
        source_no_equal(s, service, &overrides, "requests are not split");
    }
    for (uint32_t i = 0; source_is(s, &routes, YAML_SEQUENCE) && i < routes.node->count; i++) {
        route_put(s, service, host, routes.node->item[i]);
    }
    struct route *rest = route_add(s, service, NULL, &name); /* requests that no route of the profile matches */
    route_add_host(s, rest, host, &name);
}

static void service_read(struct source *s, const struct yaml_node *object)
{
    const struct yaml_node *meta = source_get(object, "metadata");
    const struct from name = {source_get(meta, "name"), "metadata.name", NULL};
    const char *host = name.node == NULL ? NULL : source_text(s, &name);
    if (host != NULL && host[0] != '\0') {
        struct emit_target *service = emit_service(s->emit, host, source_where(s, &name));
        struct route *route = route_add(s, service, NULL, &name);
        route_add_host(s, route, host, &name);
        linkerd_annotations(s, route_rules(route), object);
    }
}

static void linkerd_read(struct source *s, const struct objects *objects)
{
    emit_note(s->emit, NULL, "The configuration has no addresses of the services: add `hosts`.");
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        if (strcmp(objects->at[i].kind, "ServiceProfile") == 0) {
            profile_read(s, objects->at[i].node);
        } else if (strcmp(objects->at[i].kind, "Service") == 0) {
            service_read(s, objects->at[i].node);
        }
    }
}

static bool linkerd_recognises(const struct object *object)
{
    return strcmp(object->kind, "ServiceProfile") == 0 ||
           (strcmp(object->kind, "Service") == 0 && linkerd_annotated(object->node));
}

static const struct unwritten linkerd_unwritten[] = {{"maxRetries", "0", "it is not retryable"},
                                                     {"attemptTimeout", "none", "Linkerd has none"},
                                                     {"deadline", "none", "Linkerd has none"},
                                                     {NULL, NULL, NULL}};

const struct dialect dialect_linkerd = {.word = "linkerd",
                                        .product = "Linkerd",
                                        .unwritten = linkerd_unwritten,
                                        .order = ORDER_FIRST,
                                        .recognises = linkerd_recognises,
                                        .read = linkerd_read};
