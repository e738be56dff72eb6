/* SPDX-License-Identifier: MIT */
#include "match.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/path.h"

bool match_is_empty(const struct becalm_match *m)
{
    return m->host == NULL && m->prefix == NULL && m->start == NULL && m->path == NULL && m->method == NULL &&
           m->header_name == NULL;
}

/* ---- hosts ---- */

/* A match.host in its parts. */
struct host {
    const char *name; /* without `*` in front; "" for any host */
    size_t length;
    bool below;       /* *.example.com: the name begins with the dot */
    const char *port; /* digits; "" for any */
};

static struct host host_split(const char *text)
{
    struct host host = {.name = "", .port = ""};
    if (text == NULL) {
        return host;
    }
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = strrchr(bracket == NULL ? text : bracket, ':');
    bool bare_v6 = bracket == NULL && colon != NULL && colon != strchr(text, ':');
    size_t length = colon == NULL || bare_v6 ? strlen(text) : (size_t)(colon - text);
    host.port = colon == NULL || bare_v6 ? "" : colon + 1;
    length -= length > 1 && text[length - 1] == '.' ? 1 : 0;
    if (length == 0 || (length == 1 && text[0] == '*')) {
        return host;
    }
    host.below = length > 2 && text[0] == '*' && text[1] == '.';
    host.name = text + host.below;
    host.length = length - host.below;
    return host;
}

static bool ends_with(const struct host *name, const struct host *end)
{
    return name->length >= end->length &&
           strncasecmp(name->name + name->length - end->length, end->name, end->length) == 0;
}

static bool host_covers(const struct host *wide, const struct host *narrow)
{
    if (wide->port[0] != '\0' && strcmp(wide->port, narrow->port) != 0) {
        return false;
    }
    if (wide->length == 0 || narrow->length == 0) {
        return wide->length == 0;
    }
    bool same = wide->length == narrow->length && wide->below == narrow->below;
    return (same || (wide->below && (narrow->below || narrow->length > wide->length))) && ends_with(narrow, wide);
}

static bool host_meets(const struct host *a, const struct host *b)
{
    if (a->port[0] != '\0' && b->port[0] != '\0' && strcmp(a->port, b->port) != 0) {
        return false;
    }
    const struct host any_a = {a->name, a->length, a->below, ""};
    const struct host any_b = {b->name, b->length, b->below, ""};
    return host_covers(&any_a, &any_b) || host_covers(&any_b, &any_a);
}

/* ---- paths ---- */

enum path_kind { PATH_ANY, PATH_START, PATH_PREFIX, PATH_WHOLE };

struct path {
    enum path_kind kind;
    struct becalm_text text;
};

static struct path path_of(const struct becalm_match *m)
{
    const char *text = m->path != NULL ? m->path : m->prefix != NULL ? m->prefix : m->start;
    if (text == NULL || (m->path == NULL && strcmp(text, "/") == 0)) {
        return (struct path){PATH_ANY, {"", 0}};
    }
    enum path_kind kind = m->path != NULL ? PATH_WHOLE : m->prefix != NULL ? PATH_PREFIX : PATH_START;
    return (struct path){kind, {text, strlen(text)}};
}

static bool begins(struct becalm_text text, struct becalm_text with)
{
    return text.length >= with.length && memcmp(text.at, with.at, with.length) == 0;
}

/* Is everything that begins with `start` under the prefix? */
static bool start_under(struct becalm_text start, struct becalm_text prefix)
{
    return becalm__path_under(start, prefix) && (start.length > prefix.length || prefix.at[prefix.length - 1] == '/');
}

static bool path_covers(const struct path *wide, const struct path *narrow)
{
    switch (wide->kind) {
    case PATH_ANY:
        return true;
    case PATH_START:
        return narrow->kind != PATH_ANY && begins(narrow->text, wide->text);
    case PATH_PREFIX:
        return narrow->kind == PATH_START ? start_under(narrow->text, wide->text)
                                          : narrow->kind != PATH_ANY && becalm__path_under(narrow->text, wide->text);
    case PATH_WHOLE:
        return narrow->kind == PATH_WHOLE && becalm__path_is(narrow->text, wide->text);
    }
    BECALM_UNREACHABLE();
}

static bool path_meets(const struct path *a, const struct path *b)
{
    if (path_covers(a, b) || path_covers(b, a)) {
        return true;
    }
    /* /pay as a start and as a prefix, or a start above a prefix: both match the prefix's requests. */
    const struct path *start = a->kind == PATH_START ? a : b;
    const struct path *prefix = a->kind == PATH_START ? b : a;
    return start->kind == PATH_START && prefix->kind == PATH_PREFIX && becalm__path_under(start->text, prefix->text);
}

/* ---- all of it ---- */

static bool same_header(const struct becalm_match *a, const struct becalm_match *b)
{
    return strcasecmp(a->header_name, b->header_name) == 0 && strcmp(a->header_value, b->header_value) == 0;
}

bool match_covers(const struct becalm_match *wide, const struct becalm_match *narrow)
{
    const struct host host = host_split(wide->host), other_host = host_split(narrow->host);
    const struct path path = path_of(wide), other_path = path_of(narrow);
    bool method = wide->method == NULL || (narrow->method != NULL && strcmp(wide->method, narrow->method) == 0);
    bool header = wide->header_name == NULL || (narrow->header_name != NULL && same_header(wide, narrow));
    return method && header && host_covers(&host, &other_host) && path_covers(&path, &other_path);
}

bool match_meets(const struct becalm_match *a, const struct becalm_match *b)
{
    const struct host host = host_split(a->host), other_host = host_split(b->host);
    const struct path path = path_of(a), other_path = path_of(b);
    bool method = a->method == NULL || b->method == NULL || strcmp(a->method, b->method) == 0;
    return method && host_meets(&host, &other_host) && path_meets(&path, &other_path);
}

bool match_common(const struct becalm_match *a, const struct becalm_match *b, struct becalm_match *common)
{
    const struct host host = host_split(a->host), other_host = host_split(b->host);
    const struct path path = path_of(a), other_path = path_of(b);
    if (!match_meets(a, b) || (a->header_name != NULL && b->header_name != NULL && !same_header(a, b))) {
        return false;
    }
    /* a's port and b's name would have to be put together */
    if (!host_covers(&host, &other_host) && !host_covers(&other_host, &host)) {
        return false;
    }
    bool a_is_narrower = path_covers(&other_path, &path) || (path.kind == PATH_PREFIX && other_path.kind == PATH_START);
    bool b_is_narrower = path_covers(&path, &other_path) || !a_is_narrower;
    const struct becalm_match *narrow = b_is_narrower ? b : a;
    const struct becalm_match *with_header = a->header_name != NULL ? a : b;
    *common = (struct becalm_match){.host = host_covers(&host, &other_host) ? b->host : a->host,
                                    .prefix = narrow->prefix,
                                    .start = narrow->start,
                                    .path = narrow->path,
                                    .method = a->method != NULL ? a->method : b->method,
                                    .header_name = with_header->header_name,
                                    .header_value = with_header->header_value};
    return true;
}

static int number_compare(size_t a, size_t b)
{
    return (a < b) - (a > b); /* more comes first */
}

static size_t path_weight(const struct becalm_match *m)
{
    const char *text = m->prefix != NULL ? m->prefix : m->start;
    return m->path != NULL ? SIZE_MAX : text == NULL ? 0 : 2 * strlen(text) + 1 + (m->prefix != NULL);
}

int match_compare(const struct becalm_match *a, const struct becalm_match *b)
{
    const struct host host = host_split(a->host), other = host_split(b->host);
    int order = number_compare(host.length == 0 ? 0 : host.below ? 1 : 2, other.length == 0 ? 0 : other.below ? 1 : 2);
    if (order == 0) {
        order = number_compare(host.length, other.length);
    }
    if (order == 0) {
        order = number_compare(host.port[0] != '\0', other.port[0] != '\0');
    }
    if (order == 0) {
        order = number_compare(path_weight(a), path_weight(b));
    }
    if (order == 0) {
        order = number_compare((size_t)(a->method != NULL) + (a->header_name != NULL),
                               (size_t)(b->method != NULL) + (b->header_name != NULL));
    }
    return order;
}

void match_write(const struct becalm_match *m, char *text, size_t size)
{
    const struct path path = path_of(m);
    const char *after = "";
    switch (path.kind) {
    case PATH_ANY:
        after = m->host == NULL ? "every path" : "";
        break;
    case PATH_START:
        after = "*";
        break;
    case PATH_PREFIX:
        after = path.text.at[path.text.length - 1] == '/' ? "..." : "/...";
        break;
    case PATH_WHOLE:
        break;
    }
    (void)snprintf(text, size, "%s%s%s%.*s%s%s%s%s%s", m->method == NULL ? "" : m->method, m->method == NULL ? "" : " ",
                   m->host == NULL ? "" : m->host, (int)path.text.length, path.text.at, after,
                   m->header_name == NULL ? "" : " with ", m->header_name == NULL ? "" : m->header_name,
                   m->header_name == NULL ? "" : ": ", m->header_name == NULL ? "" : m->header_value);
}
