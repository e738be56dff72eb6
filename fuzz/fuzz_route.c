/* SPDX-License-Identifier: MIT */
/* Host, path and method of a request, from lines of bytes: for all inputs, a route lies in the table, a bad path has no
 * route, a path with escaped letters has the same route, and an accepted path leads to the same target when it is
 * resolved first. */
#include "policy/routing/route.h"

#include <stdlib.h>
#include <string.h>

#include "http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char services[] = "services:\n"
                               "  named: {endpoints: {get: {match: {method: GET}}, a: {match: {path: /a%2fb}}}}\n"
                               "  below: {match: {host: \"*.example.com\"}}\n"
                               "  near: {match: {host: \"*.eu.example.com\", prefix: /eu}}\n"
                               "  port: {match: {host: \"named:8080\", prefix: /p}}\n"
                               "  six: {match: {host: \"[::1]\"}, hosts: [\"h:1\"]}\n"
                               "  pay: {match: {prefix: /pay}}\n"
                               "  rest: {match: {prefix: /}}\n";

/* No rule in here has another resolved form. */
static const char plain[] =
    "services:\n"
    "  pay: {match: {prefix: /pay}, endpoints: {exact: {match: {path: /pay/x}}}}\n"
    "  deep: {match: {prefix: /a/b}, endpoints: {post: {match: {method: POST}}}}\n"
    "  dot: {match: {path: /.a/..b}}\n"
    "  rest: {match: {prefix: /}, endpoints: {a: {match: {prefix: /a}}, b: {match: {path: /b/}}}}\n";

static struct becalm_text line_take(const uint8_t **data, size_t *size)
{
    const uint8_t *end = memchr(*data, '\n', *size);
    struct becalm_text line = {(const char *)*data, end == NULL ? *size : (size_t)(end - *data)};
    size_t used = end == NULL ? *size : line.length + 1;
    *data += used;
    *size -= used;
    return line;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The path with each letter before its query escaped, but the digits of its own escapes. */
static struct becalm_text path_escape(struct becalm_text path)
{
    static const char digits[] = "0123456789abcdef";
    char *text = malloc(3 * path.length + 1);
    BECALM_ASSERT(text != NULL);
    size_t length = 0;
    size_t keep = 0;
    bool query = false;
    for (size_t i = 0; i < path.length; i++) {
        char c = path.at[i];
        query = query || c == '?';
        keep = c == '%' ? 3 : keep;
        if (!query && keep == 0 && is_letter(c)) {
            text[length++] = '%';
            text[length++] = digits[c / 16];
            text[length++] = digits[c % 16];
        } else {
            text[length++] = c;
        }
        keep -= keep > 0;
    }
    return (struct becalm_text){text, length};
}

static struct becalm_config *config_make(const char *text)
{
    static struct becalm_diags diags;
    struct becalm_config *config = NULL;
    int rc = becalm_config_parse(&config, "fuzz", text, strlen(text), NULL, &diags);
    BECALM_ASSERT(rc == 0);
    return config;
}

/* Every reading of the path that a service may have falls under the same rule, or the request is refused. */
static void check_resolved(const struct route_table *table, struct route_request request)
{
    char resolved[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    struct route route = route_find(table, &request);
    if (route.bad_path || route.ambiguous) {
        return;
    }
    BECALM_ASSERT(becalm__path_read(request.path, &path) && !path.climbs);
    if (!path.odd) {
        return;
    }
    request.path = becalm__path_resolve(&path, resolved);
    BECALM_ASSERT(request.path.length > 0 && resolved[0] == '/');
    for (int turn = 0; turn < 2; turn++) {
        struct route again = route_find(table, &request);
        BECALM_ASSERT(again.service == route.service && again.endpoint == route.endpoint);
        bool slash = request.path.length > 1 && resolved[request.path.length - 1] == '/';
        request.path.length -= slash;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_config *config;
    static struct route_table *table;
    static struct becalm_config *plain_config;
    static struct route_table *plain_table;
    if (table == NULL) {
        config = config_make(services);
        table = route_table_make(config);
        plain_config = config_make(plain);
        plain_table = route_table_make(plain_config);
        BECALM_ASSERT(table != NULL && plain_table != NULL);
    }
    struct route_request request = {0};
    request.host = line_take(&data, &size);
    request.method = line_take(&data, &size);
    request.path = (struct becalm_text){(const char *)data, size};
    check_resolved(plain_table, request);
    struct route route = route_find(table, &request);
    if (route.bad_path || route.service == ROUTE_NONE) {
        BECALM_ASSERT(route.service == ROUTE_NONE && route.endpoint == ROUTE_NONE);
    } else {
        const struct becalm_service *service = becalm_config_service(config, route.service);
        BECALM_ASSERT(service != NULL);
        BECALM_ASSERT(route.endpoint == ROUTE_NONE || route.endpoint < service->endpoint_count);
    }
    request.path = path_escape(request.path);
    struct route escaped = route_find(table, &request);
    BECALM_ASSERT(escaped.service == route.service && escaped.endpoint == route.endpoint &&
                  escaped.bad_path == route.bad_path && escaped.ambiguous == route.ambiguous);
    free((void *)(uintptr_t)request.path.at);
    return 0;
}
