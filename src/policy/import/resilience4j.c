/* SPDX-License-Identifier: MIT */
/* Resilience4j as Spring Boot reads it: application.yml and application.properties. An instance is a service; values
 * that it does not set come from its baseConfig, else from configs.default, else from the library. Retry is the
 * outermost decorator of a call; CircuitBreaker, TimeLimiter and Bulkhead are inside, so that they see every attempt.
 */
#include "dialect.h"
#include "directives.h"
#include "route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PATH_MAX_BYTES 512u
#define DEPTH          16u
#define DAY            (24 * 3600 * BECALM_S)

enum module { RETRY, BREAKER, TIME, BULKHEAD, POOL, RATE, MODULES };
static const char *const module_name[] = {
    [RETRY] = "retry",       [BREAKER] = "circuitbreaker",  [TIME] = "timelimiter",
    [BULKHEAD] = "bulkhead", [POOL] = "threadpoolbulkhead", [RATE] = "ratelimiter"};

/* One value: resilience4j.retry.instances.NAME.PROPERTY */
struct leaf {
    struct leaf *next;
    const char *property;
    const struct yaml_node *node;
    const char *file;
};

struct group {
    struct group *next;
    enum module module;
    bool config; /* of configs, not of instances */
    const char *name;
    struct leaf *first;
};

struct spring {
    struct source *s;
    struct group *first;
    struct group *last;
    uint32_t groups;
};

/* ---- leaves ---- */

/* Spring compares names without case, dashes and underscores. */
static bool same(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "-_");
        b += strspn(b, "-_");
        if (strncasecmp(a, b, 1) != 0 || *a == '\0') {
            return *a == *b;
        }
    }
}

static struct group *group_of(struct spring *in, enum module module, bool config, const char *name)
{
    struct group *at = in->last; /* the leaves of one stand together */
    if (at == NULL || at->module != module || at->config != config || strcmp(at->name, name) != 0) {
        for (at = in->first; at != NULL; at = at->next) {
            if (at->module == module && at->config == config && strcmp(at->name, name) == 0) {
                return at;
            }
        }
        at = emit_take(in->s->emit, sizeof *at);
        if (at != NULL) {
            *at = (struct group){.module = module, .config = config, .name = emit_text(in->s->emit, "%s", name)};
            *(in->last == NULL ? &in->first : &in->last->next) = at;
            in->last = at;
        }
    }
    return at;
}

/* Adds a value by its path; unknown paths belong to other parts of Spring. */
static void leaf_add(struct spring *in, const char *path, const struct yaml_node *node)
{
    char text[PATH_MAX_BYTES];
    char *part[5] = {NULL};
    size_t length = strlen(path);
    if (length >= sizeof text) {
        return;
    }
    memcpy(text, path, length + 1);
    char *rest = text;
    for (size_t i = 0; i < 5; i++) {
        part[i] = rest;
        char *dot = i < 4 && rest != NULL ? strchr(rest, '.') : NULL;
        rest = dot == NULL ? NULL : dot + 1;
        if (dot != NULL) {
            *dot = '\0';
        }
    }
    if (part[4] == NULL || !same(part[0], "resilience4j")) {
        return;
    }
    bool config = same(part[2], "configs");
    for (int m = 0; m < MODULES; m++) {
        if (same(part[1], module_name[m]) && (config || same(part[2], "instances") || same(part[2], "backends"))) {
            struct group *group = group_of(in, (enum module)m, config, part[3]);
            struct leaf *leaf = group == NULL ? NULL : emit_take(in->s->emit, sizeof *leaf);
            if (leaf != NULL) {
                *leaf = (struct leaf){group->first, emit_text(in->s->emit, "%s", part[4]), node, in->s->file};
                group->first = leaf;
            }
        }
    }
}

static void tree_read(struct spring *in, const char *path, const struct yaml_node *node, unsigned depth)
{
    if (node->kind != YAML_MAPPING || depth == 0) {
        leaf_add(in, path, node);
        return;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const char *dot = path[0] == '\0' ? "" : ".";
        if (strlen(path) + strlen(node->key[i]->text) < PATH_MAX_BYTES) {
            tree_read(in, emit_text(in->s->emit, "%s%s%s", path, dot, node->key[i]->text), node->item[i], depth - 1);
        }
    }
    if (node->count == 0) {
        leaf_add(in, emit_text(in->s->emit, "%s.", path), node); /* an instance without a value of its own */
    }
}

static void object_leaves(struct spring *in, const struct object *object)
{
    in->s->file = object->file;
    if (object->node->kind == YAML_MAPPING) {
        tree_read(in, "", object->node, DEPTH);
        return;
    }
    for (uint32_t i = 0; i < object->node->count; i++) {
        const struct yaml_node *line = object->node->item[i];
        leaf_add(in, directive_text(line, 0), directive_word(line, 1));
    }
}

/* ---- values ---- */

static const struct group *group_find(const struct spring *in, enum module module, bool config, const char *name)
{
    const struct group *at = in->first;
    while (at != NULL && (at->module != module || at->config != config || !same(at->name, name))) {
        at = at->next;
    }
    return at;
}

static const struct leaf *leaf_find(const struct group *group, const char *property)
{
    const struct leaf *at = group == NULL ? NULL : group->first;
    while (at != NULL && !same(at->property, property)) {
        at = at->next;
    }
    return at;
}

/* A property of an instance, or of the configuration below it. */
static struct from property(struct spring *in, const struct group *instance, const char *name)
{
    const struct leaf *base = leaf_find(instance, "baseConfig");
    const struct leaf *leaf = leaf_find(instance, name);
    const char *config =
        base != NULL && base->node != NULL && base->node->kind == YAML_SCALAR ? base->node->text : "default";
    for (unsigned depth = 4; instance != NULL && leaf == NULL && depth > 0; depth--) {
        const struct group *below = group_find(in, instance->module, true, config);
        leaf = leaf_find(below, name);
        base = leaf_find(below, "baseConfig");
        if (base == NULL || base->node == NULL || base->node->kind != YAML_SCALAR) {
            break;
        }
        config = base->node->text;
    }
    if (leaf != NULL) {
        in->s->file = leaf->file;
    }
    return (struct from){leaf == NULL ? NULL : leaf->node,
                         instance == NULL ? name : emit_text(in->s->emit, "%s.%s", module_name[instance->module], name),
                         NULL};
}

/* The text of a value; of ${NAME:5} the 5. NULL: there is none, or it is unknown. */
static const char *value_text(struct spring *in, const struct from *from)
{
    const char *text = from->node == NULL ? NULL : source_text(in->s, from);
    if (text == NULL || strncmp(text, "${", 2) != 0) {
        return text;
    }
    const char *colon = strchr(text, ':');
    size_t length = strlen(text);
    if (colon == NULL || text[length - 1] != '}') {
        source_no_equal(in->s, NULL, from, "it is a variable without a value; Resilience4j's default is used");
        return NULL;
    }
    return emit_text(in->s->emit, "%.*s", (int)(length - (size_t)(colon + 1 - text) - 1), colon + 1);
}

static bool number_of(struct spring *in, const struct from *from, uint64_t *out)
{
    const char *text = value_text(in, from);
    if (text == NULL) {
        return false;
    }
    if (!value_integer(text, out) || *out > UINT32_MAX) {
        source_error(in->s, from->node, "bad-value", "%s: \"%.64s\" is not a whole number", from->path, text);
        return false;
    }
    return true;
}

static bool true_of(struct spring *in, const struct from *from)
{
    const char *text = value_text(in, from);
    return text != NULL && strcasecmp(text, "true") == 0;
}

/* 500ms, 10s, 2m; without a unit milliseconds; and ISO's PT1.5S. */
static bool time_of(struct spring *in, const struct from *from, becalm_ns *out)
{
    static const struct {
        const char *unit;
        becalm_ns length;
    } units[] = {{"ns", 1},       {"us", BECALM_US},    {"ms", BECALM_MS},      {"", BECALM_MS},
                 {"s", BECALM_S}, {"m", 60 * BECALM_S}, {"h", 3600 * BECALM_S}, {"d", DAY}};
    const char *text = value_text(in, from);
    if (text == NULL) {
        return false;
    }
    bool iso = strncasecmp(text, "PT", 2) == 0;
    const char *number = iso ? text + 2 : text;
    char *end = NULL;
    double value = strtod(number, &end);
    for (size_t i = 0; end != number && value >= 0 && value < 1e9 && i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(end, units[i].unit) == 0 && !(iso && (units[i].unit[0] == '\0' || units[i].unit[1] != '\0'))) {
            double length = value * (double)units[i].length;
            *out = length > (double)(365 * DAY) ? 365 * DAY : (becalm_ns)length;
            return true;
        }
    }
    source_error(in->s, from->node, "bad-value", "%s: \"%.64s\" is not a duration; write it like 500ms", from->path,
                 text);
    return false;
}

/* ---- modules ---- */

struct target {
    struct emit_target *service;
    struct emit_target *rules;
    const char *name;
};

/* The outcome on the wire that corresponds to an exception. */
static void exception_add(struct spring *in, const struct target *t, struct source_list *on, const struct from *from,
                          const char *name)
{
    static const struct {
        const char *part;
        const char *means[5];
    } rows[] = {{"TooManyRequests", {"429", NULL}},
                {"ServiceUnavailable", {"503", NULL}},
                {"BadGateway", {"502", NULL}},
                {"GatewayTimeout", {"504", NULL}},
                {"InternalServerError", {"500", NULL}},
                {"HttpServerError", {"5xx", NULL}},
                {"WebClientResponseException", {"5xx", NULL}},
                {"FeignException", {"5xx", NULL}},
                {"RetryableException", {"connect-failure", "refused-stream", "reset", "timeout", NULL}},
                {"TimeoutException", {"timeout", NULL}},
                {"ConnectException", {"connect-failure", "refused-stream", NULL}},
                {"UnknownHostException", {"connect-failure", NULL}},
                {"SocketException", {"connect-failure", "refused-stream", "reset", NULL}},
                {"ResourceAccessException", {"connect-failure", "refused-stream", "reset", "timeout", NULL}},
                {"WebClientRequestException", {"connect-failure", "refused-stream", "reset", "timeout", NULL}},
                {"IOException", {"connect-failure", "refused-stream", "reset", "timeout", NULL}},
                {"java.lang.Exception", {"5xx", NULL}},
                {"java.lang.Throwable", {"5xx", NULL}},
                {"RuntimeException", {"5xx", NULL}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strstr(name, rows[i].part) != NULL) {
            for (size_t k = 0; rows[i].means[k] != NULL; k++) {
                source_list_add(on, rows[i].means[k]);
            }
            return;
        }
    }
    const struct from at = {from->node, emit_text(in->s->emit, "retryExceptions %.96s", name), NULL};
    source_no_equal(in->s, t->service, &at, "its meaning on the wire is not known; name the status in retryOn");
}

static void conditions_put(struct spring *in, const struct target *t, const struct group *retry,
                           const struct from *count)
{
    struct source *s = in->s;
    struct source_list on = {.emit = s->emit};
    const struct from from = property(in, retry, "retryExceptions");
    if (from.node == NULL) {
        const struct from all = {count->node, "retry", "every exception is retried there"};
        source_list_add(&on, "5xx");
        source_put_list(s, t->rules, "retryOn", &on, &all);
        return;
    }
    if (from.node->kind == YAML_SEQUENCE) {
        for (uint32_t i = 0; i < from.node->count; i++) {
            const struct from item = {from.node->item[i], from.path, NULL};
            const char *name = source_text(s, &item);
            if (name != NULL) {
                exception_add(in, t, &on, &item, name);
            }
        }
    } else {
        const char *text = value_text(in, &from);
        for (const char *c = text; c != NULL && *c != '\0';) {
            size_t length = strcspn(c, ", ");
            if (length > 0) {
                exception_add(in, t, &on, &from, emit_text(s->emit, "%.*s", (int)length, c));
            }
            c += length + strspn(c + length, ", ");
        }
    }
    source_put_list(s, t->rules, "retryOn", &on, &from);
}

static void waits_put(struct spring *in, const struct target *t, const struct group *retry, const struct from *count)
{
    struct source *s = in->s;
    becalm_ns wait = 500 * BECALM_MS;
    becalm_ns cap = DAY;
    struct from from = property(in, retry, "waitDuration");
    const struct from here = {count->node, "retry", "Resilience4j's default"};
    (void)time_of(in, &from, &wait);
    source_put_duration(s, t->rules, "initialDelay", wait, from.node != NULL ? &from : &here);
    struct from grows = property(in, retry, "enableExponentialBackoff");
    if (true_of(in, &grows)) {
        const struct from factor = property(in, retry, "exponentialBackoffMultiplier");
        const struct from most = property(in, retry, "exponentialMaxWaitDuration");
        const char *text = value_text(in, &factor);
        uint64_t ppm = 1500000;
        if (text != NULL && !value_decimal(text, 1000000, &ppm)) {
            source_error(s, factor.node, "bad-value", "%s: \"%.64s\" is not a number", factor.path, text);
        }
        source_put_decimal(s, t->rules, "multiplier", ppm, 1000000, factor.node != NULL ? &factor : &grows);
        (void)time_of(in, &most, &cap);
        source_put_duration(s, t->rules, "maxDelay", cap < wait ? wait : cap, most.node != NULL ? &most : &grows);
    } else {
        source_put_word(s, t->rules, "growth", "constant", &here);
        source_put_duration(s, t->rules, "maxDelay", wait > 10 * BECALM_S ? wait : 10 * BECALM_S, &here);
    }
    struct from random = property(in, retry, "enableRandomizedWait");
    if (true_of(in, &random)) {
        const struct from share = property(in, retry, "randomizedWaitFactor");
        const char *text = value_text(in, &share);
        uint64_t ppm = 500000;
        if (text != NULL && !value_decimal(text, 1000000, &ppm)) {
            source_error(s, share.node, "bad-value", "%s: \"%.64s\" is not a number", share.path, text);
        }
        source_put_word(s, t->rules, "jitter", "proportional", &random);
        source_put_decimal(s, t->rules, "jitterFactor", ppm, 1000000, share.node != NULL ? &share : &random);
    } else {
        source_put_word(s, t->rules, "jitter", "none", &here);
    }
}

static void retry_put(struct spring *in, const struct target *t, const struct group *retry)
{
    struct source *s = in->s;
    uint64_t attempts = 3;
    struct from from = property(in, retry, "maxAttempts");
    if (from.node == NULL) {
        from = property(in, retry, "maxRetryAttempts");
    }
    bool written = from.node != NULL && number_of(in, &from, &attempts);
    const struct leaf *first = retry->first;
    s->file = written ? s->file : first->file;
    const struct from count = {written ? from.node : first->node, "retry.maxAttempts",
                               written ? "the first attempt is none" : "Resilience4j's default is 3 attempts"};
    source_put_integer(s, t->rules, "maxRetries", attempts == 0 ? 0 : attempts - 1, &count);
    if (attempts > 1) {
        conditions_put(in, t, retry, &count);
        waits_put(in, t, retry, &count);
    }
}

static void breaker_put(struct spring *in, const struct target *t, const struct group *breaker)
{
    static const struct {
        const char *name;
        const char *key;
        char type; /* p percent, n number, d duration, w word */
    } rows[] = {{"failureRateThreshold", "breaker.failureRateThreshold", 'p'},
                {"slowCallRateThreshold", "breaker.slowCallRateThreshold", 'p'},
                {"slowCallDurationThreshold", "breaker.slowCallDurationThreshold", 'd'},
                {"permittedNumberOfCallsInHalfOpenState", "breaker.permittedNumberOfCallsInHalfOpenState", 'n'},
                {"slidingWindowType", "breaker.slidingWindowType", 'w'},
                {"slidingWindowSize", "breaker.slidingWindowSize", 'n'},
                {"minimumNumberOfCalls", "breaker.minimumNumberOfCalls", 'n'},
                {"waitDurationInOpenState", "breaker.waitDurationInOpenState", 'd'},
                {"maxWaitDurationInHalfOpenState", "breaker.maxWaitDurationInHalfOpenState", 'd'}};
    struct source *s = in->s;
    s->file = breaker->first->file;
    const struct from block = {breaker->first->node, "circuitbreaker", NULL};
    const struct from order = {breaker->first->node, "circuitbreaker", "it stands inside of the retry"};
    source_put_word(s, t->service, "breaker.preset", "resilience4j", &block);
    source_put_word(s, t->service, "breaker.per", "attempt", &order);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct from from = property(in, breaker, rows[i].name);
        const char *text = value_text(in, &from);
        uint64_t number = 0;
        uint32_t ppm = 0;
        becalm_ns time = 0;
        if (text == NULL) {
            continue;
        }
        if (rows[i].type == 'n' && number_of(in, &from, &number)) {
            source_put_integer(s, t->service, rows[i].key, number, &from);
        } else if (rows[i].type == 'd' && time_of(in, &from, &time) && time > 0) {
            source_put_duration(s, t->service, rows[i].key, time, &from);
        } else if (rows[i].type == 'p' && value_percent(text, &ppm)) {
            source_put_percent(s, t->service, rows[i].key, ppm, &from);
        } else if (rows[i].type == 'w' && (strcmp(text, "TIME_BASED") == 0 || strcmp(text, "COUNT_BASED") == 0)) {
            source_put_word(s, t->service, rows[i].key, text, &from);
        } else if (rows[i].type == 'p' || rows[i].type == 'w') {
            source_error(s, from.node, "bad-value", "%s: \"%.64s\" can't be read", from.path, text);
        }
    }
}

static void limits_put(struct spring *in, const struct target *t, const struct group *bulkhead,
                       const struct group *pool)
{
    struct source *s = in->s;
    const struct group *group = bulkhead != NULL ? bulkhead : pool;
    const struct from most = property(in, group, bulkhead != NULL ? "maxConcurrentCalls" : "maxThreadPoolSize");
    uint64_t number = 25;
    bool written = number_of(in, &most, &number);
    s->file = written ? s->file : group->first->file;
    const struct from from = {written ? most.node : group->first->node, most.path,
                              written            ? NULL
                              : bulkhead != NULL ? "Resilience4j's default"
                                                 : NULL};
    if (!written && bulkhead == NULL) {
        source_no_equal(s, t->service, &from, "without it there are as many threads as processors; write limit.max");
        return;
    }
    source_put_word(s, t->service, "limit.kind", "fixed", &from);
    source_put_integer(s, t->service, "limit.max", number, &from);
    becalm_ns wait = 0;
    uint64_t queue = bulkhead != NULL ? 0 : 100;
    const struct from time = property(in, bulkhead, "maxWaitDuration");
    const struct from line = property(in, pool, "queueCapacity");
    if (bulkhead != NULL && time_of(in, &time, &wait) && wait > 0) {
        source_put_duration(s, t->service, "gate.maxQueueTime", wait, &time);
    } else {
        bool own = bulkhead == NULL && number_of(in, &line, &queue);
        source_put_integer(s, t->service, "gate.maxQueue", queue, own ? &line : &from);
    }
}

static void instance_put(struct spring *in, const struct target *t)
{
    struct source *s = in->s;
    const struct group *group[MODULES];
    for (int m = 0; m < MODULES; m++) {
        group[m] = group_find(in, (enum module)m, false, t->name);
    }
    if (group[RETRY] != NULL) {
        retry_put(in, t, group[RETRY]);
    }
    if (group[TIME] != NULL) {
        becalm_ns time = BECALM_S;
        const struct from from = property(in, group[TIME], "timeoutDuration");
        bool written = time_of(in, &from, &time);
        s->file = written ? s->file : group[TIME]->first->file;
        const struct from unwritten = {group[TIME]->first->node, "timelimiter", "Resilience4j's default"};
        source_put_duration(s, t->rules, "attemptTimeout", time, written ? &from : &unwritten);
    }
    if (group[BREAKER] != NULL) {
        breaker_put(in, t, group[BREAKER]);
    }
    if (group[BULKHEAD] != NULL || group[POOL] != NULL) {
        limits_put(in, t, group[BULKHEAD], group[POOL]);
    }
    if (group[RATE] != NULL) {
        s->file = group[RATE]->first->file;
        const struct from from = {group[RATE]->first->node, "ratelimiter", NULL};
        source_no_equal(s, t->service, &from, "calls in progress are limited, not calls a second");
    }
}

static void resilience4j_read(struct source *s, const struct objects *objects)
{
    struct spring in = {.s = s};
    for (uint32_t i = 0; i < objects->count; i++) {
        object_leaves(&in, &objects->at[i]);
    }
    emit_note(s->emit, NULL,
              "The configuration has no addresses of the services: add `hosts`. Resilience4j retries whatever method "
              "the annotated code calls; Becalm repeats POST and PATCH only with an Idempotency-Key, or where a policy "
              "says `idempotent: true`.");
    for (const struct group *group = in.first; group != NULL; group = group->next) {
        if (group->config || group->first == NULL) {
            continue;
        }
        bool known = false; /* by a module above */
        for (const struct group *above = in.first; above != group && !known; above = above->next) {
            known = !above->config && same(above->name, group->name);
        }
        if (!known) {
            s->file = group->first->file;
            const struct from from = {group->first->node,
                                      emit_text(s->emit, "%s.instances.%s", module_name[group->module], group->name),
                                      NULL};
            struct emit_target *service = emit_service(s->emit, group->name, source_where(s, &from));
            struct route *route = route_add(s, service, NULL, &from);
            route_add_host(s, route, group->name, &from);
            instance_put(&in, &(struct target){service, route_rules(route), group->name});
        }
    }
}

static bool resilience4j_recognises(const struct object *object)
{
    const struct yaml_node *node = object->node;
    for (uint32_t i = 0; node->kind == YAML_MAPPING && i < node->count; i++) {
        if (strncmp(node->key[i]->text, "resilience4j", 12) == 0) {
            return true;
        }
    }
    return false;
}

static bool resilience4j_is_text(const char *text, size_t length)
{
    static const char word[] = "resilience4j.";
    bool found = false;
    for (size_t i = 0; i + sizeof word - 1 <= length && !found; i++) {
        found = (i == 0 || text[i - 1] == '\n') && memcmp(text + i, word, sizeof word - 1) == 0;
    }
    return found && properties_is(text, length);
}

static const struct unwritten resilience4j_unwritten[] = {
    {"maxRetries", "0", "without a retry instance nothing is retried"},
    {"attemptTimeout", "none", "without a timelimiter there is none"},
    {"deadline", "none", "Resilience4j has none"},
    {NULL, NULL, NULL}};

const struct dialect dialect_resilience4j = {.word = "resilience4j",
                                             .product = "Resilience4j",
                                             .unwritten = resilience4j_unwritten,
                                             .recognises = resilience4j_recognises,
                                             .read = resilience4j_read,
                                             .is_text = resilience4j_is_text,
                                             .parse = properties_parse,
                                             .yaml = true};
