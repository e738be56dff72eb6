/* SPDX-License-Identifier: MIT */
/* Spring Cloud Gateway: the routes of an application.yml. A route is a route, of which the first that fits is taken;
 * its uri is a service. Its Retry filter repeats the methods that it names and no others, so that a route with it
 * becomes two: one for these methods, and one for the rest. */
#include "dialect.h"
#include "place.h"
#include "route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ROUTES_MAX  100000u
#define PARTS_MAX   32u
#define RETRIES     3u
#define PASSED_ON   "requests are passed on unchanged"
#define OWN_ANSWER  "Becalm sends neither redirects nor fixed answers"
#define APPLICATION "an error of the application (500) is retried once per call"

/* Words with commas between them. */
struct words {
    const char *at[PARTS_MAX];
    uint32_t count;
};

static struct words words_of(struct source *s, const char *text)
{
    struct words words = {.count = 0};
    while (text != NULL && *text != '\0' && words.count < PARTS_MAX) {
        text += strspn(text, ", \t");
        size_t length = strcspn(text, ",");
        size_t used = length;
        while (used > 0 && (text[used - 1] == ' ' || text[used - 1] == '\t')) {
            used--;
        }
        if (used > 0) {
            words.at[words.count++] = emit_text(s->emit, "%.*s", (int)used, text);
        }
        text += length;
    }
    return words;
}

/* A list of words: one text with commas, or a list of them. */
static struct words words_read(struct source *s, const struct yaml_node *node)
{
    struct words words = {.count = 0};
    if (node != NULL && node->kind == YAML_SCALAR) {
        return words_of(s, node->text);
    }
    for (uint32_t i = 0; node != NULL && node->kind == YAML_SEQUENCE && i < node->count && words.count < PARTS_MAX;
         i++) {
        if (node->item[i]->kind == YAML_SCALAR) {
            words.at[words.count++] = node->item[i]->text;
        }
    }
    return words;
}

/* A predicate or a filter: "Name=a,b", or {name: Name, args: {...}}. */
struct part {
    const struct yaml_node *node;
    const char *name;
    const struct yaml_node *args; /* NULL: it is a text */
    struct words words;           /* of the text */
};

static struct part part_of(struct source *s, const struct yaml_node *node)
{
    struct part part = {.node = node, .name = ""};
    if (node->kind == YAML_SCALAR) {
        const char *sign = strchr(node->text, '=');
        part.name = sign == NULL ? node->text : emit_text(s->emit, "%.*s", (int)(sign - node->text), node->text);
        part.words = words_of(s, sign == NULL ? "" : sign + 1);
    } else if (node->kind == YAML_MAPPING) {
        const struct yaml_node *name = source_get(node, "name");
        part.name = name != NULL && name->kind == YAML_SCALAR ? name->text : "";
        part.args = source_get(node, "args");
        for (uint32_t i = 0; part.args != NULL && part.args->kind == YAML_MAPPING && i < part.args->count; i++) {
            const struct words more = words_read(s, part.args->item[i]);
            for (uint32_t k = 0; k < more.count && part.words.count < PARTS_MAX; k++) {
                part.words.at[part.words.count++] = more.at[k];
            }
        }
    }
    return part;
}

/* spring.cloud.gateway.routes, whether the names are nested or have dots in them. */
static const struct yaml_node *by_path(const struct yaml_node *node, const char *path)
{
    for (uint32_t i = 0; node != NULL && node->kind == YAML_MAPPING && i < node->count; i++) {
        const char *key = node->key[i]->text;
        size_t length = strlen(key);
        if (strcmp(key, path) == 0) {
            return node->item[i];
        }
        if (strncmp(path, key, length) == 0 && path[length] == '.') {
            const struct yaml_node *found = by_path(node->item[i], path + length + 1);
            if (found != NULL) {
                return found;
            }
        }
    }
    return NULL;
}

static const struct yaml_node *gateway_of(const struct yaml_node *document, const char *key)
{
    static const char *const places[] = {"spring.cloud.gateway.", "spring.cloud.gateway.server.webflux.",
                                         "spring.cloud.gateway.server.webmvc.", "spring.cloud.gateway.mvc."};
    char path[128];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t length = strlen(places[i]);
        memcpy(path, places[i], length);
        memcpy(path + length, key, strlen(key) + 1);
        const struct yaml_node *found = by_path(document, path);
        if (found != NULL && !yaml_is_null(found)) {
            return found;
        }
    }
    return NULL;
}

/* ---- predicates ---- */

struct conditions {
    struct words paths;
    struct words hosts;
    struct words methods;
    bool impossible;
};

/* A pattern of paths: one path, or a path and everything below it. False: no match can express it. */
static bool pattern_match(struct source *s, const char *pattern, struct route_match *m)
{
    size_t length = strlen(pattern);
    bool open = length >= 3 && strcmp(pattern + length - 3, "/**") == 0;
    size_t plain = open ? length - 3 : length;
    const char *text = emit_text(s->emit, "%.*s", (int)plain, pattern);
    if (strpbrk(text, "*?{}") != NULL) {
        return false;
    }
    if (!open) {
        m->path = text;
    } else if (plain > 0) {
        m->prefix = text;
    }
    return true;
}

static void predicate_read(struct source *s, const struct part *part, struct conditions *out)
{
    const struct from from = {part->node, "predicates", NULL};
    if (strcmp(part->name, "Path") == 0 && out->paths.count == 0) {
        out->paths = part->words;
    } else if (strcmp(part->name, "Host") == 0 && out->hosts.count == 0) {
        out->hosts = part->words;
    } else if (strcmp(part->name, "Method") == 0 && out->methods.count == 0) {
        out->methods = part->words;
    } else {
        source_no_equal(
            s, NULL, &from,
            emit_text(s->emit, "an endpoint can't have the condition %.32s, so the route is left out", part->name));
        out->impossible = true;
    }
}

/* **.example.com is the name and everything below it, *.example.com one level of it. */
static void host_add(struct source *s, struct route *route, const char *host, const struct from *from)
{
    if (strncmp(host, "**.", 3) == 0) {
        route_add_host(s, route, host + 3, from);
        route_add_host(s, route, host + 1, from);
        return;
    }
    if (strncmp(host, "*.", 2) == 0) {
        source_aside(s, NULL, from, "*. is one level of a name there, here it is any number");
    }
    route_add_host(s, route, host, from);
}

/* ---- filters ---- */

struct retry {
    const struct yaml_node *node; /* NULL: the route does not have the filter */
    struct words methods;
    uint64_t count;
};

static const struct {
    const char *name;
    unsigned status;
} status_names[] = {{"INTERNAL_SERVER_ERROR", 500},
                    {"NOT_IMPLEMENTED", 501},
                    {"BAD_GATEWAY", 502},
                    {"SERVICE_UNAVAILABLE", 503},
                    {"GATEWAY_TIMEOUT", 504},
                    {"REQUEST_TIMEOUT", 408},
                    {"CONFLICT", 409},
                    {"TOO_MANY_REQUESTS", 429},
                    {"NOT_FOUND", 404},
                    {"BAD_REQUEST", 400},
                    {"TOO_EARLY", 425}};

static void status_add(struct source *s, struct source_list *on, const char *word, const struct from *from)
{
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof status_names / sizeof *status_names; i++) {
        number = strcmp(status_names[i].name, word) == 0 ? status_names[i].status : number;
    }
    if (number == 0 && (!value_integer(word, &number) || number < 400 || number > 599)) {
        source_error(s, from->node, "bad-value", "Retry.statuses: \"%.64s\" is no status from 400 to 599", word);
        return;
    }
    source_list_add(on, emit_text(s->emit, "%u", (unsigned)number));
}

/* series, statuses and exceptions into retryOn. */
static void conditions_put(struct source *s, struct emit_target *rules, const struct from *from,
                           const struct yaml_node *args, const struct words *statuses, uint64_t count)
{
    const struct yaml_node *series = source_get(args, "series");
    const struct yaml_node *exceptions = source_get(args, "exceptions");
    const struct words kinds = words_read(s, series);
    const struct words thrown = words_read(s, exceptions);
    struct source_list on = {.emit = s->emit};
    bool errors = series == NULL;
    for (uint32_t i = 0; i < kinds.count; i++) {
        errors = errors || strcmp(kinds.at[i], "SERVER_ERROR") == 0;
        if (strcmp(kinds.at[i], "SERVER_ERROR") != 0) {
            source_no_equal(s, rules, &(struct from){series, "Retry.series", NULL},
                            "only SERVER_ERROR is read; write the statuses");
        }
    }
    if (errors) {
        source_list_add(&on, "5xx");
    }
    for (uint32_t i = 0; i < statuses->count; i++) {
        status_add(s, &on, statuses->at[i], from);
    }
    for (uint32_t i = 0; i < thrown.count; i++) {
        const char *dot = strrchr(thrown.at[i], '.');
        const char *name = dot == NULL ? thrown.at[i] : dot + 1;
        if (strcmp(name, "IOException") != 0 && strcmp(name, "TimeoutException") != 0 &&
            strcmp(name, "ConnectException") != 0) {
            source_no_equal(s, rules, &(struct from){exceptions, "Retry.exceptions", NULL},
                            emit_text(s->emit, "Becalm does not know what %.64s means on the wire", thrown.at[i]));
        }
    }
    bool written = exceptions != NULL;
    for (uint32_t i = 0; i < (written ? thrown.count : 2u); i++) {
        const char *name = written ? thrown.at[i] : i == 0 ? "IOException" : "TimeoutException";
        bool late = strstr(name, "TimeoutException") != NULL;
        source_list_add(&on, late ? "timeout" : "connect-failure");
        source_list_add(&on, late ? "timeout" : "refused-stream");
        if (!late && strstr(name, "ConnectException") == NULL) {
            source_list_add(&on, "reset");
        }
    }
    if (count > 1 && (errors || source_list_has(&on, "500"))) {
        source_no_equal(s, rules, from, APPLICATION);
    }
    source_put_list(s, rules, "retryOn", &on, from);
}

static bool spring_time(struct source *s, const struct from *from, becalm_ns *out)
{
    uint64_t millis;
    if (from->node != NULL && from->node->kind == YAML_SCALAR && value_integer(from->node->text, &millis)) {
        *out = millis > BECALM_NEVER / 2 / BECALM_MS ? BECALM_NEVER / 2 : millis * BECALM_MS;
        return true;
    }
    return source_duration(s, from, out);
}

static void waits_put(struct source *s, struct emit_target *rules, const struct from *from,
                      const struct yaml_node *backoff)
{
    const struct from first = {source_get(backoff, "firstBackoff"), "Retry.backoff.firstBackoff", NULL};
    const struct from most = {source_get(backoff, "maxBackoff"), "Retry.backoff.maxBackoff", NULL};
    const struct from factor = {source_get(backoff, "factor"), "Retry.backoff.factor", NULL};
    becalm_ns time = 5 * BECALM_MS;
    becalm_ns cap = 24 * 3600 * BECALM_S;
    uint64_t times = 2;
    if (backoff == NULL) {
        source_put_duration(s, rules, "initialDelay", 0,
                            &(struct from){from->node, from->path, "without a backoff there is no wait"});
        return;
    }
    (void)spring_time(s, &first, &time);
    bool capped = spring_time(s, &most, &cap);
    bool grown = source_integer(s, &factor, &times);
    const struct from unwritten = {backoff, "Retry.backoff", "its default"};
    source_put_duration(s, rules, "initialDelay", time, first.node != NULL ? &first : &unwritten);
    source_put_duration(s, rules, "maxDelay", cap < time ? time : cap, capped ? &most : &unwritten);
    source_put_decimal(s, rules, "multiplier", times > 100 ? 100000000u : times * 1000000u, 1000000,
                       grown ? &factor : &unwritten);
    source_put_word(s, rules, "jitter", "none", &unwritten);
}

/* Retry=3,BAD_GATEWAY,GET,10ms,50ms,2,false, or its arguments by name. */
static struct retry retry_read(struct source *s, struct emit_target *rules, const struct part *part)
{
    const struct from from = {part->node, "filters.Retry", NULL};
    const struct from count = {source_get(part->args, "retries"), "Retry.retries", NULL};
    struct retry retry = {.node = part->node, .count = RETRIES};
    struct words statuses = words_read(s, source_get(part->args, "statuses"));
    retry.methods = words_read(s, source_get(part->args, "methods"));
    if (part->args == NULL) {
        if (part->words.count > 0 && !value_integer(part->words.at[0], &retry.count)) {
            source_error(s, part->node, "bad-value", "filters.Retry: \"%.64s\" is not a whole number",
                         part->words.at[0]);
        }
        if (part->words.count > 1) {
            statuses = words_of(s, part->words.at[1]);
        }
        if (part->words.count > 2) {
            retry.methods = words_of(s, part->words.at[2]);
        }
        if (part->words.count > 3) {
            source_no_equal(s, rules, &from, "a backoff is read only from args.backoff");
        }
    } else {
        (void)source_integer(s, &count, &retry.count);
    }
    if (retry.methods.count == 0) {
        retry.methods = (struct words){{"GET"}, 1};
    }
    source_put_integer(s, rules, "maxRetries", retry.count, count.node != NULL ? &count : &from);
    conditions_put(s, rules, &from, part->args, &statuses, retry.count);
    waits_put(s, rules, &from, source_get(part->args, "backoff"));
    for (uint32_t i = 0; i < retry.methods.count; i++) {
        if (strcmp(retry.methods.at[i], "POST") == 0 || strcmp(retry.methods.at[i], "PATCH") == 0) {
            source_put_word(s, rules, "idempotent", "true",
                            &(struct from){part->node, "Retry.methods", "these are repeated"});
        }
    }
    return retry;
}

static const struct field filter_fields[] = {
    {"Retry", NULL},
    {"RewritePath", PASSED_ON},
    {"StripPrefix", PASSED_ON},
    {"PrefixPath", PASSED_ON},
    {"SetPath", PASSED_ON},
    {"RedirectTo", OWN_ANSWER},
    {"SetStatus", OWN_ANSWER},
    {"FallbackHeaders", OWN_ANSWER},
    {"CircuitBreaker", "its breaker, its time limit (1s if none is written) and its fallback are not read"},
    {"Hystrix", "its breaker, its time limit (1s if none is written) and its fallback are not read"},
    {"RequestRateLimiter", NOTE "clients have no rates"},
    {NULL, NULL}};

/* The filters of a route, or of all. */
static void filters_read(struct source *s, struct emit_target *rules, const struct from *list, struct retry *retry)
{
    for (uint32_t i = 0; list->node != NULL && source_is(s, list, YAML_SEQUENCE) && i < list->node->count; i++) {
        const struct part part = part_of(s, list->node->item[i]);
        const struct field *field = filter_fields;
        while (field->name != NULL && strcmp(field->name, part.name) != 0) {
            field++;
        }
        const struct from from = {part.node, emit_text(s->emit, "filters.%.32s", part.name), NULL};
        if (strcmp(part.name, "Retry") == 0 && retry->node == NULL) {
            *retry = retry_read(s, rules, &part);
        } else if (field->name == NULL) {
            source_aside(s, rules, &from, "it does not concern retries, or Becalm does not know it");
        } else if (field->why != NULL && field->why[0] == NOTE[0]) {
            source_aside(s, rules, &from, field->why + 1);
        } else if (field->why != NULL) {
            source_no_equal(s, rules, &from, field->why);
        }
    }
}

/* ---- routes ---- */

struct entry {
    const struct yaml_node *node;
    const struct yaml_node *document;
    const char *file;
    uint64_t order; /* its own, moved so that none is negative */
    uint32_t number;
};

struct spring_routes {
    struct source *s;
    struct entry *entry;
    uint32_t count;
    uint32_t space;
};

static struct emit_target *service_of(struct source *s, const struct yaml_node *route)
{
    const struct from uri = {source_get(route, "uri"), "route.uri", NULL};
    const char *text = uri.node == NULL ? NULL : source_text(s, &uri);
    struct host_place place;
    if (text == NULL || strncmp(text, "forward:", 8) == 0 || strncmp(text, "no:", 3) == 0) {
        source_no_equal(s, NULL, &(struct from){route, "route.uri", NULL},
                        "the application answers by itself; the route is left out");
        return NULL;
    }
    if (strncmp(text, "lb:", 3) == 0) {
        const char *name = strstr(text, "://");
        struct emit_target *service = emit_service(s->emit, name == NULL ? text : name + 3, source_where(s, &uri));
        source_aside(s, service, &uri, "where its hosts are is found out by discovery: add `hosts`");
        return service;
    }
    if (!place_read(s, text, &place)) {
        source_no_equal(s, NULL, &uri, emit_text(s->emit, "\"%.64s\" is no address; the route is left out", text));
        return NULL;
    }
    const char *bare = place.tls ? place.address + strlen("https://") : place.address;
    struct emit_target *service = emit_service(s->emit, bare, source_where(s, &uri));
    if (emit_get(service, "hosts") == NULL) {
        source_put_word(s, service, "hosts", emit_text(s->emit, "[%s]", emit_quote(s->emit, place.address)), &uri);
    }
    return service;
}

static void times_put(struct source *s, struct emit_target *rules, const struct entry *entry)
{
    const struct yaml_node *own = source_get(entry->node, "metadata");
    const struct yaml_node *client = gateway_of(entry->document, "httpclient");
    static const struct {
        const char *name;
        const char *key;
    } times[] = {{"connect-timeout", "connectTimeout"}, {"response-timeout", "attemptTimeout"}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const struct yaml_node *mine = own == NULL ? NULL : yaml_get(own, times[i].name);
        const struct yaml_node *all = client == NULL ? NULL : yaml_get(client, times[i].name);
        const struct from from = {mine != NULL ? mine : all,
                                  emit_text(s->emit, "%s.%s", mine != NULL ? "metadata" : "httpclient", times[i].name),
                                  NULL};
        becalm_ns time;
        if (mine != NULL && mine->kind == YAML_SCALAR && mine->text[0] == '-') {
            source_put_word(s, rules, times[i].key, i == 0 ? "1h" : "none", &from);
        } else if (from.node != NULL && spring_time(s, &from, &time)) {
            source_put_duration(s, rules, times[i].key, time, &from);
        }
    }
}

/* The matches of a route, for some methods; NULL: for those that it names, or all. */
static void matches_add(struct source *s, struct route *route, const struct conditions *c, const struct words *methods,
                        const struct from *from)
{
    const struct words *of = methods != NULL ? methods : &c->methods;
    for (uint32_t h = 0; h < c->hosts.count; h++) {
        host_add(s, route, c->hosts.at[h], from);
    }
    for (uint32_t p = 0; p < (c->paths.count == 0 ? 1 : c->paths.count); p++) {
        struct route_match m = {0};
        if (c->paths.count > 0 && !pattern_match(s, c->paths.at[p], &m)) {
            source_no_equal(s, NULL, from,
                            emit_text(s->emit, "no match can be the pattern %.64s; it is left out", c->paths.at[p]));
            continue;
        }
        for (uint32_t k = 0; k < (of->count == 0 ? 1 : of->count); k++) {
            m.method = of->count == 0 ? NULL : of->at[k];
            route_add_match(s, route, &m, from);
        }
    }
}

static bool words_have(const struct words *words, const char *word)
{
    uint32_t i = 0;
    while (i < words->count && strcmp(words->at[i], word) != 0) {
        i++;
    }
    return i < words->count;
}

static void route_read(struct source *s, const struct entry *entry)
{
    static const struct field fields[] = {{"id", NULL},    {"uri", NULL},      {"predicates", NULL}, {"filters", NULL},
                                          {"order", NULL}, {"metadata", NULL}, {NULL, NULL}};
    const struct yaml_node *id = source_get(entry->node, "id");
    const struct from from = {entry->node, "route", NULL};
    const struct from predicates = {source_get(entry->node, "predicates"), "predicates", NULL};
    struct conditions conditions = {0};
    struct retry retry = {0};
    struct words retried = {.count = 0};
    s->file = entry->file;
    for (uint32_t i = 0;
         predicates.node != NULL && source_is(s, &predicates, YAML_SEQUENCE) && i < predicates.node->count; i++) {
        const struct part part = part_of(s, predicates.node->item[i]);
        predicate_read(s, &part, &conditions);
    }
    struct emit_target *service = conditions.impossible ? NULL : service_of(s, entry->node);
    if (service == NULL) {
        return;
    }
    source_rest(s, service, entry->node, "route", fields);
    const char *name = id != NULL && id->kind == YAML_SCALAR ? id->text : NULL;
    struct route *route = route_add(s, service, name, &from);
    struct emit_target *rules = route_rules(route);
    filters_read(s, rules, &(struct from){source_get(entry->node, "filters"), "filters", NULL}, &retry);
    filters_read(s, rules, &(struct from){gateway_of(entry->document, "default-filters"), "default-filters", NULL},
                 &retry);
    times_put(s, rules, entry);
    if (retry.node == NULL) {
        matches_add(s, route, &conditions, NULL, &from);
        return;
    }
    for (uint32_t i = 0; i < retry.methods.count; i++) {
        if (conditions.methods.count == 0 || words_have(&conditions.methods, retry.methods.at[i])) {
            retried.at[retried.count++] = retry.methods.at[i];
        }
    }
    if (retried.count > 0) {
        matches_add(s, route, &conditions, &retried, &from);
    } else {
        route_add_match(s, route, &(struct route_match){.impossible = true}, &from);
    }
    struct words others = {.count = 0}; /* methods that the filter does not retry */
    for (uint32_t i = 0; i < conditions.methods.count; i++) {
        if (!words_have(&retried, conditions.methods.at[i])) {
            others.at[others.count++] = conditions.methods.at[i];
        }
    }
    if (conditions.methods.count == 0 || others.count > 0) {
        struct route *rest = route_add(s, service, name, &from);
        times_put(s, route_rules(rest), entry);
        matches_add(s, rest, &conditions, &others, &from);
    }
}

static void entry_add(struct spring_routes *in, const struct entry *fresh)
{
    if (in->count == in->space) {
        uint32_t space = in->space == 0 ? 64 : in->space * 2;
        struct entry *more = in->count >= ROUTES_MAX ? NULL : emit_take(in->s->emit, space * sizeof *more);
        if (more == NULL) {
            return;
        }
        if (in->count > 0) {
            memcpy(more, in->entry, in->count * sizeof *more);
        }
        in->entry = more;
        in->space = space;
    }
    const struct yaml_node *order = source_get(fresh->node, "order");
    const char *text = order != NULL && order->kind == YAML_SCALAR ? order->text : "0";
    uint64_t number = 0;
    bool below = text[0] == '-';
    (void)value_integer(text + below, &number);
    number = number > UINT32_MAX ? UINT32_MAX : number;
    in->entry[in->count] = *fresh;
    in->entry[in->count].order = below ? UINT32_MAX - number : UINT32_MAX + number;
    in->entry[in->count].number = in->count;
    in->count++;
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    return x->order != y->order ? (x->order < y->order ? -1 : 1) : x->number < y->number ? -1 : 1;
}

static void spring_read(struct source *s, const struct objects *objects)
{
    struct spring_routes in = {.s = s};
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct from routes = {gateway_of(objects->at[i].node, "routes"), "routes", NULL};
        s->file = objects->at[i].file;
        for (uint32_t k = 0; routes.node != NULL && source_is(s, &routes, YAML_SEQUENCE) && k < routes.node->count;
             k++) {
            if (source_is(s, &(struct from){routes.node->item[k], "routes", NULL}, YAML_MAPPING)) {
                entry_add(&in, &(struct entry){.node = routes.node->item[k],
                                               .document = objects->at[i].node,
                                               .file = objects->at[i].file});
            }
        }
    }
    if (in.count > 0) {
        qsort(in.entry, in.count, sizeof *in.entry, entry_compare);
    }
    for (uint32_t i = 0; i < in.count; i++) {
        route_read(s, &in.entry[i]);
    }
}

static bool spring_recognises(const struct object *object)
{
    return object->kind[0] == '\0' && gateway_of(object->node, "routes") != NULL;
}

static const struct unwritten unwritten[] = {{"maxRetries", "0", "without a Retry filter nothing is retried"},
                                             {"connectTimeout", "45s", "Spring Cloud Gateway's default"},
                                             {"attemptTimeout", "none", "Spring Cloud Gateway has none"},
                                             {"deadline", "none", "Spring Cloud Gateway has none"},
                                             {NULL, NULL, NULL}};

const struct dialect dialect_spring_gateway = {.word = "spring-cloud-gateway",
                                               .product = "Spring Cloud Gateway",
                                               .unwritten = unwritten,
                                               .order = ORDER_FIRST_OF_ALL,
                                               .recognises = spring_recognises,
                                               .read = spring_read,
                                               .beside = true};
