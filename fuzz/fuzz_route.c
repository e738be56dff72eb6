/* SPDX-License-Identifier: MIT */
/* Host, path and method of a request, from lines of bytes: whatever they are, a route lies in the table, a bad path
 * leads nowhere, and a path means the same with its letters escaped. */
#include "policy/route.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char services[] = "services:\n"
                               "  named: {endpoints: {get: {match: {method: GET}}, a: {match: {path: /a%2fb}}}}\n"
                               "  below: {match: {host: \"*.example.com\"}}\n"
                               "  near: {match: {host: \"*.eu.example.com\", prefix: /eu}}\n"
                               "  port: {match: {host: \"named:8080\", prefix: /p}}\n"
                               "  six: {match: {host: \"[::1]\"}, hosts: [\"h:1\"]}\n"
                               "  pay: {match: {prefix: /pay}}\n"
                               "  rest: {match: {prefix: /}}\n";

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

static struct becalm_config *config_make(void)
{
    static struct becalm_diags diags;
    struct becalm_config *config = NULL;
    int rc = becalm_config_parse(&config, "fuzz", services, sizeof services - 1, NULL, &diags);
    BECALM_ASSERT(rc == 0);
    return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_config *config;
    static struct route_table *table;
    if (table == NULL) {
        config = config_make();
        table = route_table_make(config);
        BECALM_ASSERT(table != NULL);
    }
    struct route_request request = {0};
    request.host = line_take(&data, &size);
    request.method = line_take(&data, &size);
    request.path = (struct becalm_text){(const char *)data, size};
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
                  escaped.bad_path == route.bad_path);
    free((void *)(uintptr_t)request.path.at);
    return 0;
}
