/* SPDX-License-Identifier: MIT */
#include "route.h"

#include <stdlib.h>
#include <string.h>

#include "http/path.h"
#include "unfilled.h"

#define HOST_MAX  255u /* bytes of a host; no longer one is looked up, and DNS has none */
#define NO_PORT   UINT32_MAX
#define HTTP_PORT 80u

/* How much a host says; more wins. */
enum host_rank { HOST_ANY, HOST_BELOW, HOST_EXACT };

/* One match, ready to be compared. */
struct row {
    char *host; /* in lower case, without port; HOST_BELOW: ".example.com" */
    size_t host_length;
    enum host_rank rank;
    uint32_t port; /* or NO_PORT: any */
    char *path;    /* a rule of http/path.h; NULL: any */
    size_t path_length;
    char *resolved; /* the path in its resolved form, if that is another one; else NULL */
    size_t resolved_length;
    bool exact; /* the whole path, not its beginning */
    bool start; /* its beginning, which may end inside of a segment */
    const char *method;
    size_t method_length;
    const char *header_name;
    const char *header_value;
    const struct becalm_match *match;
    uint32_t index; /* of the service in the config, or of the endpoint in the service */
};

/* Rows next to each other, the most specific first. */
struct range {
    uint32_t first;
    uint32_t count;
};

/* Services are found by a hash of the host, with all rows of one host in one range. Endpoints are a range for each
 * service; there are few of them, and each is asked. */
struct route_table {
    struct row *rows;
    uint32_t row_count;
    struct range *endpoints; /* by service */
    struct range *hosts;     /* open addressing; a count of 0 is a free place */
    uint32_t host_places;    /* a power of two */
    struct range any_host;
    bool by_host;   /* there are rows that ask for a host or a port */
    bool has_below; /* there are rows of rank HOST_BELOW */
    bool by_method; /* there are rows that ask for one */
    bool as_is;     /* paths are only compared as they came */
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* ---- hosts ---- */

struct host {
    char text[HOST_MAX];
    size_t length;
    uint32_t port;
};

/* ":80" to the end of the text; nothing, or a colon alone, is no port. */
static bool port_read(struct becalm_text text, uint32_t *port)
{
    *port = NO_PORT;
    if (text.length == 0) {
        return true;
    }
    if (text.at[0] != ':' || text.length > 6) {
        return false;
    }
    for (size_t i = 1; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return false;
        }
        *port = (i == 1 ? 0 : *port * 10) + (uint32_t)(text.at[i] - '0');
    }
    return text.length == 1 || *port <= UINT16_MAX;
}

/* "Pay.Local.:8080" is pay.local and 8080; "[::1]:80" is [::1] and 80. False: too long, or not of this form. */
static bool host_read(struct becalm_text text, struct host *host)
{
    size_t length = 0;
    host->length = 0;
    host->port = NO_PORT;
    if (text.length == 0) {
        return true;
    }
    if (text.at[0] == '[') {
        const char *end = memchr(text.at, ']', text.length);
        length = end == NULL ? 0 : (size_t)(end - text.at) + 1;
    } else {
        while (length < text.length && text.at[length] != ':') {
            length++;
        }
    }
    if (!port_read((struct becalm_text){text.at + length, text.length - length}, &host->port)) {
        return false;
    }
    if (length > 1 && text.at[length - 1] == '.') {
        length--;
    }
    if (length > HOST_MAX) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        host->text[i] = lower(text.at[i]);
    }
    host->length = length;
    return true;
}

/* FNV-1a from the back, so that one pass over a name gives the hash of each of its suffixes. */
#define HASH_START 2166136261u

static uint32_t hash_add(uint32_t hash, char c)
{
    return (hash ^ (unsigned char)c) * 16777619u;
}

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = HASH_START;
    while (length > 0) {
        hash = hash_add(hash, text[--length]);
    }
    return hash;
}

static bool row_has_host(const struct row *row, enum host_rank rank, const char *host, size_t length)
{
    return row->rank == rank && row->host_length == length && (length == 0 || memcmp(row->host, host, length) == 0);
}

/* The rows of one host, or an empty range. */
static struct range hosts_find(const struct route_table *table, uint32_t hash, enum host_rank rank,
                               struct becalm_text host)
{
    uint32_t mask = table->host_places - 1;
    uint32_t at = hash & mask;
    while (table->hosts[at].count > 0 &&
           !row_has_host(&table->rows[table->hosts[at].first], rank, host.at, host.length)) {
        at = (at + 1) & mask; /* at most half of the places are taken, so that there is an end */
    }
    return table->hosts[at];
}

static void hosts_add(struct route_table *table, struct range range)
{
    const struct row *row = &table->rows[range.first];
    uint32_t mask = table->host_places - 1;
    uint32_t at = hash_of(row->host, row->host_length) & mask;
    while (table->hosts[at].count > 0) {
        at = (at + 1) & mask;
    }
    table->hosts[at] = range;
}

/* ---- making ---- */

static char *bytes_copy(const char *bytes, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, bytes, length);
        copy[length] = '\0';
    }
    return copy;
}

/* A match.host. False: no request can have it, or (*no_memory) there is no memory. */
static bool row_set_host(struct row *row, const char *text, bool *no_memory)
{
    struct host host;
    char bracketed[HOST_MAX];
    size_t length = text == NULL ? 0 : strlen(text);
    row->port = NO_PORT;
    if (length == 0 || strcmp(text, "*") == 0) {
        return true;
    }
    const char *colon = strchr(text, ':');
    if (text[0] != '[' && colon != strrchr(text, ':') && length + 2 <= sizeof bracketed) { /* ::1 means [::1] */
        bracketed[0] = '[';
        memcpy(bracketed + 1, text, length);
        bracketed[length + 1] = ']';
        text = bracketed;
        length += 2;
    }
    if (!host_read((struct becalm_text){text, length}, &host)) {
        return false;
    }
    row->port = host.port;
    if (host.length == 0) { /* ":8080": any name */
        return true;
    }
    bool below = host.length > 2 && host.text[0] == '*' && host.text[1] == '.';
    row->rank = below ? HOST_BELOW : HOST_EXACT;
    row->host_length = host.length - below;
    row->host = bytes_copy(host.text + below, row->host_length);
    *no_memory = row->host == NULL;
    return row->host != NULL;
}

/* The loader allows one of path and prefix. */
static bool row_set_path(struct row *row, const struct becalm_match *match, bool *no_memory)
{
    char memory[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    row->exact = match->path != NULL;
    row->start = match->start != NULL;
    const char *text = row->exact ? match->path : row->start ? match->start : match->prefix;
    if (text == NULL) {
        return true;
    }
    if (!becalm__path_read((struct becalm_text){text, strlen(text)}, &path) || path.text.length != strlen(text)) {
        return false;
    }
    struct becalm_text rule = becalm__path_normalize(&path, memory);
    if (rule.length > BECALM__PATH_RULE_MAX) {
        return false;
    }
    row->path = bytes_copy(rule.at, rule.length);
    row->path_length = rule.length;
    *no_memory = row->path == NULL;
    if (path.odd && row->path != NULL) {
        rule = becalm__path_resolve(&path, memory);
        row->resolved = bytes_copy(rule.at, rule.length);
        row->resolved_length = rule.length;
        *no_memory = row->resolved == NULL;
    }
    return !*no_memory;
}

static void row_free(struct row *row)
{
    free(row->host);
    free(row->path);
    free(row->resolved);
}

/* Adds a match, unless no request can fit it. False: no memory. */
static bool row_add(struct route_table *table, const struct becalm_match *match, uint32_t index)
{
    struct row *row = &table->rows[table->row_count];
    bool no_memory = false;
    *row = (struct row){.method = match->method,
                        .method_length = match->method == NULL ? 0 : strlen(match->method),
                        .header_name = match->header_name,
                        .header_value = match->header_value,
                        .match = match,
                        .index = index};
    if (!row_set_host(row, match->host, &no_memory) || !row_set_path(row, match, &no_memory)) {
        row_free(row);
        return !no_memory;
    }
    table->row_count++;
    table->by_method = table->by_method || row->method != NULL;
    table->by_host = table->by_host || row->rank != HOST_ANY || row->port != NO_PORT;
    return true;
}

/* The same for all matches of a service or an endpoint. */
static bool rows_add(struct route_table *table, const struct becalm_match *match, uint32_t index)
{
    while (match != NULL && row_add(table, match, index)) {
        match = match->next;
    }
    return match == NULL;
}

static size_t rows_of(const struct becalm_match *match)
{
    size_t count = 0;
    for (; match != NULL; match = match->next) {
        count++;
    }
    return count;
}

static int number_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* How much a row says about the path: any, a beginning of some length, whole segments of it, all of it. */
static uint64_t path_weight(const struct row *row)
{
    return row->path == NULL ? 0 : row->exact ? UINT64_MAX : 2 * (uint64_t)row->path_length + 1 + !row->start;
}

/* The most specific first, with the rows of one host side by side. */
static int row_compare(const void *one, const void *other)
{
    const struct row *a = one;
    const struct row *b = other;
    int order = number_compare(b->rank, a->rank);
    if (order == 0) {
        order = number_compare(b->host_length, a->host_length);
    }
    if (order == 0 && a->host_length > 0) {
        order = memcmp(a->host, b->host, a->host_length);
    }
    if (order == 0) {
        order = number_compare(b->port != NO_PORT, a->port != NO_PORT);
    }
    if (order == 0) {
        order = number_compare(path_weight(b), path_weight(a));
    }
    if (order == 0) {
        order = (b->method != NULL) + (b->header_name != NULL) - (a->method != NULL) - (a->header_name != NULL);
    }
    return order == 0 ? number_compare(a->index, b->index) : order;
}

/* All rows since `first`, in order. */
static struct range rows_sort(struct route_table *table, uint32_t first)
{
    uint32_t count = table->row_count - first;
    if (count > 1) {
        qsort(table->rows + first, count, sizeof *table->rows, row_compare);
    }
    return (struct range){first, count};
}

/* Rows of the same host become one range each. */
static bool hosts_make(struct route_table *table, struct range services)
{
    table->host_places = 2;
    while (table->host_places < 2 * services.count) {
        table->host_places *= 2;
    }
    table->hosts = calloc(table->host_places, sizeof *table->hosts);
    if (table->hosts == NULL) {
        return false;
    }
    uint32_t end = services.first + services.count;
    for (uint32_t i = services.first; i < end;) {
        const struct row *row = &table->rows[i];
        uint32_t next = i + 1;
        while (next < end && row_has_host(&table->rows[next], row->rank, row->host, row->host_length)) {
            next++;
        }
        struct range range = {i, next - i};
        if (row->rank == HOST_ANY) {
            table->any_host = range;
        } else {
            hosts_add(table, range);
        }
        table->has_below = table->has_below || row->rank == HOST_BELOW;
        i = next;
    }
    return true;
}

struct route_table *route_table_make(const struct becalm_config *config)
{
    uint32_t services = becalm_config_services(config);
    size_t rows = 0;
    for (uint32_t i = 0; i < services; i++) {
        const struct becalm_service *service = becalm_config_service(config, i);
        rows += rows_of(&service->match);
        for (uint32_t j = 0; j < service->endpoint_count; j++) {
            rows += rows_of(&service->endpoints[j].match);
        }
    }
    struct route_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        return NULL;
    }
    table->as_is = becalm_config_settings(config)->paths == BECALM_PATHS_AS_IS;
    table->rows = calloc(rows + 1, sizeof *table->rows);
    table->endpoints = calloc((size_t)services + 1, sizeof *table->endpoints);
    if (table->rows == NULL || table->endpoints == NULL) {
        goto fail;
    }
    for (uint32_t i = 0; i < services; i++) {
        if (!rows_add(table, &becalm_config_service(config, i)->match, i)) {
            goto fail;
        }
    }
    if (!hosts_make(table, rows_sort(table, 0))) {
        goto fail;
    }
    for (uint32_t i = 0; i < services; i++) {
        const struct becalm_service *service = becalm_config_service(config, i);
        uint32_t first = table->row_count;
        for (uint32_t j = 0; j < service->endpoint_count; j++) {
            if (!rows_add(table, &service->endpoints[j].match, j)) {
                goto fail;
            }
        }
        table->endpoints[i] = rows_sort(table, first);
    }
    return table;
fail:
    route_table_free(table);
    return NULL;
}

void route_table_free(struct route_table *table)
{
    if (table == NULL) {
        return;
    }
    for (uint32_t i = 0; i < table->row_count; i++) {
        row_free(&table->rows[i]);
    }
    free(table->rows);
    free(table->endpoints);
    free(table->hosts);
    free(table);
}

/* ---- finding ---- */

/* A request, ready to be compared. */
struct seeker {
    const struct route_request *request;
    struct becalm_text path; /* in its normal form, or resolved */
    bool resolved;
    struct host host;
};

static bool header_fits(const struct row *row, const struct route_request *request)
{
    struct becalm_text value = {row->header_value, strlen(row->header_value)};
    return request->has_header != NULL && request->has_header(request->headers, row->header_name, value);
}

static bool path_fits(const struct row *row, const struct seeker *seeker)
{
    struct becalm_text path = seeker->path;
    struct becalm_text rule = {row->path, row->path_length};
    if (seeker->resolved && row->resolved != NULL) {
        rule = (struct becalm_text){row->resolved, row->resolved_length};
    }
    if (row->path == NULL || row->exact) {
        return row->path == NULL || becalm__path_is(path, rule);
    }
    return row->start ? becalm__path_starts(path, rule) : becalm__path_under(path, rule);
}

/* Everything but the name of the host. */
static bool row_fits(const struct row *row, const struct seeker *seeker)
{
    const struct becalm_text *method = &seeker->request->method;
    if (row->port != NO_PORT && row->port != seeker->host.port) {
        return false;
    }
    if (row->method != NULL &&
        (row->method_length != method->length || memcmp(row->method, method->at, method->length) != 0)) {
        return false;
    }
    return path_fits(row, seeker) && (row->header_name == NULL || header_fits(row, seeker->request));
}

static const struct row *range_find(const struct route_table *table, struct range range, const struct seeker *seeker)
{
    for (uint32_t i = range.first; i < range.first + range.count; i++) {
        if (row_fits(&table->rows[i], seeker)) {
            return &table->rows[i];
        }
    }
    return NULL;
}

/* By the host's own name, then by its parent domains, the longest suffix first, then any host. */
static const struct row *service_find(const struct route_table *table, const struct seeker *seeker)
{
    const struct host *host = &seeker->host;
    UNFILLED struct range below[HOST_MAX / 2 + 1]; /* one for each dot of a real name */
    uint32_t below_count = 0;
    uint32_t hash = HASH_START;
    for (size_t i = host->length; i > 0; i--) {
        hash = hash_add(hash, host->text[i - 1]);
        if (table->has_below && host->text[i - 1] == '.' && i > 1) {
            struct range found =
                hosts_find(table, hash, HOST_BELOW, (struct becalm_text){host->text + i - 1, host->length - i + 1});
            if (found.count > 0 && below_count < sizeof below / sizeof *below) {
                below[below_count++] = found;
            }
        }
    }
    struct range exact = hosts_find(table, hash, HOST_EXACT, (struct becalm_text){host->text, host->length});
    const struct row *row = range_find(table, exact, seeker);
    while (row == NULL && below_count > 0) {
        row = range_find(table, below[--below_count], seeker);
    }
    return row == NULL ? range_find(table, table->any_host, seeker) : row;
}

static bool host_fits(const struct row *row, const struct host *host)
{
    switch (row->rank) {
    case HOST_ANY:
        return true;
    case HOST_BELOW:
        return host->length > row->host_length &&
               memcmp(host->text + host->length - row->host_length, row->host, row->host_length) == 0;
    case HOST_EXACT:
        return row_has_host(row, HOST_EXACT, host->text, host->length);
    }
    BECALM_UNREACHABLE();
}

static const struct row *endpoint_find(const struct route_table *table, struct range range, const struct seeker *seeker)
{
    for (uint32_t i = range.first; i < range.first + range.count; i++) {
        const struct row *row = &table->rows[i];
        if (host_fits(row, &seeker->host) && row_fits(row, seeker)) {
            return row;
        }
    }
    return NULL;
}

bool route_table_by_method(const struct route_table *table)
{
    return table->by_method;
}

static struct route find(const struct route_table *table, const struct seeker *seeker)
{
    static const struct becalm_match anything = {.start = "/"};
    struct route route = {.service = ROUTE_NONE, .endpoint = ROUTE_NONE};
    if (seeker->request->by_listener) {
        route.service = seeker->request->service;
        route.match = &anything;
    } else {
        const struct row *service = service_find(table, seeker);
        if (service == NULL) {
            return route;
        }
        route.service = service->index;
        route.match = service->match;
    }
    const struct row *endpoint = endpoint_find(table, table->endpoints[route.service], seeker);
    if (endpoint != NULL) {
        route.endpoint = endpoint->index;
        route.endpoint_match = endpoint->match;
    }
    return route;
}

static bool leads_to(const struct route_table *table, const struct seeker *seeker, const struct route *route)
{
    struct route found = find(table, seeker);
    return found.service == route->service && found.endpoint == route->endpoint;
}

/* Does the path lead to another target in its resolved form? Where that ends with a slash which may be none, as in
 * /pay%2F and /pay/., it is asked for without it, too. */
static __attribute__((noinline)) bool leads_elsewhere(const struct route_table *table, struct seeker *seeker,
                                                      const struct becalm__path *path, const struct route *route)
{
    char resolved[BECALM__PATH_NORMAL_MAX];
    seeker->resolved = true;
    seeker->path = becalm__path_resolve(path, resolved);
    if (!leads_to(table, seeker, route)) {
        return true;
    }
    if (seeker->path.length < 2 || resolved[seeker->path.length - 1] != '/') {
        return false;
    }
    seeker->path.length--;
    return !leads_to(table, seeker, route);
}

struct route route_find(const struct route_table *table, const struct route_request *request)
{
    UNFILLED char normal[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    UNFILLED struct seeker seeker; /* not zeroed: the host's text is long */
    seeker.request = request;
    seeker.resolved = false;
    if (!becalm__path_read(request->path, &path) || (path.climbs && !table->as_is)) {
        return (struct route){.service = ROUTE_NONE, .endpoint = ROUTE_NONE, .bad_path = true};
    }
    seeker.path = becalm__path_normalize(&path, normal);
    if (!table->by_host || !host_read(request->host, &seeker.host)) {
        seeker.host.length = 0; /* no service has this name; a service for any host takes it, too */
    }
    if (!table->by_host || seeker.host.port == NO_PORT) {
        seeker.host.port = HTTP_PORT;
    }
    struct route route = find(table, &seeker);
    if (path.odd && !table->as_is) {
        route.ambiguous = leads_elsewhere(table, &seeker, &path, &route);
    }
    return route;
}
