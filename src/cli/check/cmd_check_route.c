/* SPDX-License-Identifier: MIT */
#include "cmd_check_route.h"

#include <string.h>
#include <strings.h>

#include "cli/json.h"
#include "policy/lint/lint.h"
#include "policy/routing/match.h"
#include "policy/routing/route.h"
#include "policy/text/escape.h"

#define MATCH_BYTES 256

/* The request that is asked about. */
struct asked {
    struct becalm_text method;
    struct becalm_text path;
    const char *host;           /* NULL: not said */
    const char *const *headers; /* "name: value"; ends with NULL */
};

/* "POST /pay", or a path alone, which is a GET. */
static bool asked_read(const char *text, struct asked *asked)
{
    const char *blank = strchr(text, ' ');
    const char *path = blank == NULL ? text : blank + 1 + strspn(blank, " ") - 1;
    asked->method = blank == NULL ? (struct becalm_text){"GET", 3} : (struct becalm_text){text, (size_t)(blank - text)};
    asked->path = (struct becalm_text){path, strlen(path)};
    return asked->method.length > 0 && path[0] == '/' && strchr(path, ' ') == NULL;
}

static bool header_is(const char *line, const char *name, struct becalm_text value)
{
    size_t length = strcspn(line, ":");
    const char *at = line + length + (line[length] == ':');
    at += strspn(at, " ");
    return strlen(name) == length && strncasecmp(line, name, length) == 0 && strlen(at) == value.length &&
           memcmp(at, value.at, value.length) == 0;
}

static bool has_header(const void *headers, const char *name, struct becalm_text value)
{
    const struct asked *asked = headers;
    for (const char *const *line = asked->headers; *line != NULL; line++) {
        if (header_is(*line, name, value)) {
            return true;
        }
    }
    return false;
}

/* Does the request fit one of the matches? The first that it fits; NULL. */
static const struct becalm_match *fits(const struct asked *asked, const struct becalm_match *match)
{
    char method[32];
    char path[1024];
    (void)snprintf(method, sizeof method, "%.*s", (int)asked->method.length, asked->method.at);
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(asked->path.at, "?"), asked->path.at);
    const struct becalm_match request = {
        .host = asked->host == NULL ? "no-host" : asked->host, .path = path, .method = method};
    for (; match != NULL; match = match->next) {
        struct becalm_match bare = *match;
        bare.header_name = NULL;
        const char *value = match->header_value;
        bool header = match->header_name == NULL ||
                      has_header(asked, match->header_name, (struct becalm_text){value, strlen(value)});
        if (header && match_covers(&bare, &request)) {
            return match;
        }
    }
    return NULL;
}

/* The result for one config. */
struct told {
    const struct asked *asked;
    const struct becalm_config *config;
    struct route route;
    const struct becalm_service *service;   /* NULL: no service matches the request */
    const struct becalm_endpoint *endpoint; /* NULL: the service's own rules */
    const struct becalm_rules *rules;
};

static struct told route_ask(const struct asked *asked, const struct becalm_config *config,
                             const struct route_table *table)
{
    struct told told = {.asked = asked, .config = config};
    struct route_request request = {.host = {asked->host, asked->host == NULL ? 0 : strlen(asked->host)},
                                    .path = asked->path,
                                    .method = asked->method,
                                    .has_header = has_header,
                                    .headers = asked};
    told.route = route_find(table, &request);
    if (told.route.service != ROUTE_NONE && !told.route.bad_path && !told.route.ambiguous) {
        told.service = becalm_config_service(config, told.route.service);
        told.rules = &told.service->rules;
    }
    if (told.service != NULL && told.route.endpoint != ROUTE_NONE) {
        told.endpoint = &told.service->endpoints[told.route.endpoint];
        told.rules = &told.endpoint->rules;
    }
    return told;
}

static const char *refusal(const struct route *route)
{
    if (route->bad_path) {
        return "its path has .. segments or a bad escape (400)";
    }
    return route->ambiguous ? "its path leads elsewhere in another spelling (400)" : "no service matches it (404)";
}

/* ---- as text ---- */

static void match_print(const char *what, const char *name, const struct becalm_match *match, uint32_t line,
                        const struct told *told)
{
    char text[MATCH_BYTES];
    match_write(match, text, sizeof text);
    escape_text(text, sizeof text);
    printf("  %-9s %s: it matches %s (%s:%u)\n", what, name, text, told->service->file, (unsigned)line);
}

static void others_print(const struct told *told)
{
    for (uint32_t i = 0; i < becalm_config_services(told->config); i++) {
        const struct becalm_service *other = becalm_config_service(told->config, i);
        const struct becalm_match *match = other == told->service ? NULL : fits(told->asked, &other->match);
        if (match != NULL) {
            char text[MATCH_BYTES];
            match_write(match, text, sizeof text);
            escape_text(text, sizeof text);
            printf("  not       %s: it matches %s, which is less specific, or later in the file (%s:%u)\n", other->name,
                   text, other->file, (unsigned)other->line);
        }
    }
}

static void told_print(const struct told *told)
{
    const struct asked *asked = told->asked;
    printf("%.*s %s%.*s ", (int)asked->method.length, asked->method.at, asked->host == NULL ? "" : asked->host,
           (int)asked->path.length, asked->path.at);
    if (told->service == NULL) {
        printf("comes to no service: %s\n", refusal(&told->route));
        return;
    }
    printf("comes to %s%s%s\n", told->service->name, told->endpoint == NULL ? "" : "/",
           told->endpoint == NULL ? "" : told->endpoint->name);
    match_print("service", told->service->name, told->route.match, told->service->line, told);
    if (told->endpoint != NULL) {
        match_print("endpoint", told->endpoint->name, told->route.endpoint_match, told->endpoint->line, told);
    } else {
        printf("  endpoint  none matches: the rules of the service apply\n");
    }
    printf("  hosts    ");
    for (uint32_t i = 0; i < told->service->host_count; i++) {
        printf(" %s", told->service->hosts[i]);
    }
    putchar('\n');
    others_print(told);
}

/* ---- as JSON ---- */

static void match_json(struct json *json, const char *name, const struct becalm_match *match)
{
    if (match == NULL) {
        json_null(json, name);
        return;
    }
    json_object(json, name);
    json_text(json, "host", match->host);
    json_text(json, "prefix", match->prefix);
    json_text(json, "start", match->start);
    json_text(json, "path", match->path);
    json_text(json, "method", match->method);
    json_text(json, "header", match->header_name);
    json_text(json, "value", match->header_value);
    json_object_end(json);
}

static void value_json(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                       void *data)
{
    (void)origin;
    (void)sentence;
    json_text(data, key, value);
}

static void told_json(const struct told *told, struct json *json)
{
    json_object(json, NULL);
    json_text(json, "file", told->service == NULL ? becalm_config_name(told->config) : told->service->file);
    json_text(json, "service", told->service == NULL ? NULL : told->service->name);
    json_text(json, "endpoint", told->endpoint == NULL ? NULL : told->endpoint->name);
    json_text(json, "refused", told->service == NULL ? refusal(&told->route) : NULL);
    match_json(json, "match", told->service == NULL ? NULL : told->route.match);
    match_json(json, "endpoint_match", told->endpoint == NULL ? NULL : told->route.endpoint_match);
    json_array(json, "hosts");
    for (uint32_t i = 0; told->service != NULL && i < told->service->host_count; i++) {
        json_text(json, NULL, told->service->hosts[i]);
    }
    json_array_end(json);
    json_object(json, "values");
    if (told->rules != NULL) {
        becalm_rules_explain(told->rules, value_json, json);
    }
    json_object_end(json);
    json_object_end(json);
}

/* ---- the option ---- */

/* Prints the route of one request in each config. */
static int all_tell(const struct asked *asked, struct becalm_config *const *configs, uint32_t count, struct json *json)
{
    int rc = 1;
    for (uint32_t i = 0; i < count; i++) {
        struct route_table *table = route_table_make(configs[i]);
        if (table == NULL) {
            return -1;
        }
        struct told told = route_ask(asked, configs[i], table);
        rc = told.service != NULL ? 0 : rc;
        if (json != NULL) {
            told_json(&told, json);
        } else {
            told_print(&told);
        }
        route_table_free(table);
    }
    return rc;
}

int check_route(const struct cli_command *command, const struct cli_args *args, struct becalm_config *const *configs,
                uint32_t count)
{
    struct json json;
    const char *const *routes = cli_values(command, args, "route");
    bool as_json = cli_has(command, args, "json");
    int rc = 0;
    for (const char *const *route = routes; *route != NULL; route++) {
        struct asked asked;
        if (!asked_read(*route, &asked)) {
            return cli_usage(command, "--route is a method and a path, like 'POST /pay'; '%s' is not", *route);
        }
    }
    if (as_json) {
        json_begin(&json, stdout);
        json_object(&json, NULL);
        json_array(&json, "routes");
    }
    for (const char *const *route = routes; *route != NULL && rc >= 0; route++) {
        struct asked asked = {.host = cli_value(command, args, "host"), .headers = cli_values(command, args, "header")};
        (void)asked_read(*route, &asked);
        int one = all_tell(&asked, configs, count, as_json ? &json : NULL);
        rc = one < 0 || one > rc ? one : rc;
    }
    if (as_json) {
        json_array_end(&json);
        json_object_end(&json);
        json_end(&json);
    }
    return rc < 0 ? cli_fail(command, "there is not enough memory") : rc;
}
