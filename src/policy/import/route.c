/* SPDX-License-Identifier: MIT */
#include "route.h"

#include "../value.h"
#include "dialect.h"
#include "policy/routing/match.h"

#include <stdlib.h>
#include <string.h>

static bool is_absent(const char *text)
{
    return text == NULL || text[0] == '\0';
}

bool match_is_possible(const struct route_match *m)
{
    const char *path = m->path != NULL ? m->path : m->prefix != NULL ? m->prefix : m->start;
    return !m->impossible && (is_absent(m->host) || value_match_host(m->host)) &&
           (is_absent(path) || value_path(path)) && (is_absent(m->method) || value_method(m->method));
}

bool match_is_everything(const struct route_match *m)
{
    const char *begin = m->prefix != NULL ? m->prefix : m->start;
    bool any_path = m->path == NULL && (begin == NULL || strcmp(begin, "/") == 0);
    return any_path && m->method == NULL && m->header == NULL && m->host == NULL && !m->impossible;
}

void match_put(struct source *s, struct emit_target *target, const struct route_match *m, const struct from *from)
{
    const char *const pairs[][2] = {{"match.host", m->host},
                                    {"match.prefix", m->path == NULL ? m->prefix : NULL},
                                    {"match.start", m->path == NULL && m->prefix == NULL ? m->start : NULL},
                                    {"match.path", m->path},
                                    {"match.method", m->method}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i][1] != NULL && pairs[i][1][0] != '\0') {
            source_put_text(s, target, pairs[i][0], pairs[i][1], from);
        }
    }
    if (m->header != NULL && m->header[0] != '\0') {
        source_put_word(s, target, "match.header",
                        emit_text(s->emit, "{%s: %s}", emit_quote(s->emit, m->header), emit_quote(s->emit, m->value)),
                        from);
    }
}

const char *match_name(struct source *s, const struct route_match *m)
{
    const char *begin = m->prefix != NULL ? m->prefix : m->start != NULL ? m->start : "";
    const char *path = m->path != NULL ? m->path : begin;
    const char *method = m->method != NULL ? m->method : "";
    const char *header = m->header != NULL ? m->header : "";
    return emit_text(s->emit, "%s%s%s%s%s", method, method[0] != '\0' && path[0] != '\0' ? "-" : "",
                     path[0] == '/' ? path + 1 : path, header[0] != '\0' ? "-" : "", header);
}

void match_begins_with(struct route_match *m, const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);
    *(length > 0 && text[length - 1] != '/' ? &m->start : &m->prefix) = length == 0 ? NULL : text;
}

/* ---- routes ---- */

struct place { /* a match, and where it stood */
    struct place *next;
    struct route_match match;
    struct from from;
};

struct route {
    struct route *next;
    const struct dialect *dialect;
    const char *file;
    struct emit_target *service;
    struct emit_target *rules;
    const char *name; /* NULL: it has none */
    struct from from;
    struct source_list hosts;
    struct place *first;
    struct place *last;
    bool written; /* the route's endpoint has been written */
    bool unsaid;  /* the route has a host that a policy can't express */
};

struct route *route_add(struct source *s, struct emit_target *service, const char *name, const struct from *from)
{
    struct route *route = emit_take(s->emit, sizeof *route);
    if (route != NULL) {
        *route = (struct route){.dialect = s->dialect,
                                .file = s->file,
                                .service = service,
                                .rules = emit_loose(s->emit, source_where(s, from)),
                                .name = name,
                                .from = *from,
                                .hosts = {.emit = s->emit}};
        emit_set_called(service);
        *(s->last_route == NULL ? &s->first_route : &s->last_route->next) = route;
        s->last_route = route;
    }
    return route;
}

void route_add_host(struct source *s, struct route *route, const char *host, const struct from *from)
{
    if (route == NULL || host == NULL || strcmp(host, "*") == 0) {
        return;
    }
    const struct from named = {from->node, emit_text(s->emit, "%s \"%s\"", from->path, host), NULL};
    if (!value_match_host(host)) {
        route->unsaid = true;
        source_no_equal(s, route->service, &named, "a host is matched whole, or by the part after *.");
    } else {
        source_list_add(&route->hosts, host);
    }
}

void route_add_match(struct source *s, struct route *route, const struct route_match *match, const struct from *from)
{
    struct place *place = route == NULL ? NULL : emit_take(s->emit, sizeof *place);
    if (place != NULL) {
        *place = (struct place){NULL, *match, *from};
        *(route->last == NULL ? &route->first : &route->last->next) = place;
        route->last = place;
    }
}

bool route_leads_to(const struct emit_target *service)
{
    return emit_is_called(service);
}

struct emit_target *route_rules(struct route *route)
{
    return route == NULL ? NULL : route->rules;
}

struct emit_target *shares_pick(struct source *s, const struct share *share, size_t count, const struct from *from)
{
    uint64_t all = 0;
    const struct share *most = NULL;
    const char *list = "";
    bool split = false;
    for (size_t i = 0; i < count; i++) {
        all += share[i].weight;
        most = share[i].weight > (most == NULL ? 0 : most->weight) ? &share[i] : most;
    }
    for (size_t i = 0; most != NULL && i < count; i++) {
        if (share[i].weight > 0) {
            split = split || share[i].service != most->service;
            list = emit_text(s->emit, "%s%s%llu of %llu to %s", list, list[0] == '\0' ? "" : ", ",
                             (unsigned long long)share[i].weight, (unsigned long long)all, share[i].name);
        }
    }
    if (split) {
        source_no_equal(s, most->service, from,
                        emit_text(s->emit, "requests are not split (%s): all of them go to %s", list, most->name));
    }
    return most == NULL ? NULL : most->service;
}

/* ---- writing them ---- */

#define UNWRITTEN    "not written: "
#define ROWS_MAX     20000u     /* more make a policy that is too large */
#define PAIRS_MAX    50000000ul /* pairs of routes that are compared: about a second */
#define FALLS_MAX    4000u      /* rows; with more, requests that fall through are not looked for */
#define GROUP_TIDIED 400u       /* of the matches of one service; more are written as they are */

/* One match of one route for one host: the unit of the written policy. */
struct row {
    struct route *route;
    struct becalm_match match;
    struct from from;
    bool dead; /* another row takes all of its requests */
};

struct rows {
    struct row *at;
    size_t count;
    size_t space;
};

static void row_add(struct source *s, struct rows *rows, struct route *route, const struct becalm_match *match,
                    const struct from *from)
{
    if (rows->count == rows->space) {
        size_t space = rows->space == 0 ? 256 : rows->space * 2;
        struct row *more = emit_take(s->emit, space * sizeof *more);
        if (more == NULL) {
            return;
        }
        if (rows->count > 0) {
            memcpy(more, rows->at, rows->count * sizeof *more);
        }
        rows->at = more;
        rows->space = space;
    }
    rows->at[rows->count++] = (struct row){route, *match, *from, false};
}

static const char *text_or_null(const char *text)
{
    return is_absent(text) ? NULL : text;
}

static void place_rows(struct source *s, struct rows *rows, struct route *route, const struct place *place)
{
    const struct route_match *m = &place->match;
    const char *begin = text_or_null(m->prefix);
    struct becalm_match match = {.host = text_or_null(m->host),
                                 .prefix = m->path == NULL ? begin : NULL,
                                 .start = m->path == NULL && begin == NULL ? text_or_null(m->start) : NULL,
                                 .path = m->path,
                                 .method = text_or_null(m->method),
                                 .header_name = text_or_null(m->header),
                                 .header_value = m->value};
    if (!match_is_possible(m)) {
        emit_note(s->emit, route->service,
                  emit_text(s->emit, "The route at %s:%u is left out: a policy can't express its match.", s->file,
                            (unsigned)place->from.node->line));
        return;
    }
    if (match.host == NULL && route->hosts.first == NULL && route->unsaid) {
        return; /* without its host the route would take the requests of all hosts */
    }
    if (match.host != NULL || route->hosts.first == NULL) {
        row_add(s, rows, route, &match, &place->from);
        return;
    }
    for (const struct source_item *host = route->hosts.first; host != NULL; host = host->next) {
        match.host = host->text;
        row_add(s, rows, route, &match, &place->from);
    }
}

/* In the source each route stands for itself; in Becalm an endpoint inherits from its service, and a service from the
 * defaults. So values that a route does not set are written explicitly. */
static void unwritten_put(struct source *s, const struct route *route)
{
    for (const struct unwritten *u = route->dialect->unwritten; u != NULL && u->key != NULL; u++) {
        emit_put(route->rules, u->key, u->value, emit_text(s->emit, UNWRITTEN "%s", u->remark));
    }
}

struct clash {
    struct source *s;
    struct emit_target *target; /* which keeps its own values */
    const struct route *route;
};

static void route_clash(void *data, const char *key, const char *value, const char *comment, const char *had)
{
    const struct clash *clash = data;
    (void)comment;
    source_conflict(clash->s, clash->target, &clash->route->from, key, value, had);
}

/* A piece of a file: it holds for every service. */
static void defaults_write(struct source *s, struct route *route)
{
    for (const struct place *place = route->first; place != NULL; place = place->next) {
        if (!match_is_everything(&place->match)) {
            source_no_equal(s, route->service, &place->from,
                            "a route with a match is an endpoint of a service, and no host is named");
            return;
        }
    }
    emit_copy(route->service, route->rules, route_clash, &(struct clash){s, route->service, route});
}

static struct rows rows_make(struct source *s)
{
    struct rows rows = {0};
    for (struct route *route = s->first_route; route != NULL; route = route->next) {
        const struct place everything = {.from = route->from};
        s->file = route->file;
        s->product = route->dialect->product;
        if (route->service == emit_defaults(s->emit)) {
            defaults_write(s, route);
            continue;
        }
        unwritten_put(s, route);
        for (const struct place *place = route->first == NULL ? &everything : route->first; place != NULL;
             place = place->next) {
            place_rows(s, &rows, route, place);
        }
    }
    return rows;
}

static bool same_host(const struct becalm_match *a, const struct becalm_match *b)
{
    return a->host == NULL || b->host == NULL ? a->host == b->host : strcmp(a->host, b->host) == 0;
}

/* The later of two routes for requests that both fit, where the first one takes them: the later route is never used, or
 * the first needs a match of its own for these requests, because Becalm would take the more specific route. */
static void later_settle(struct source *s, struct rows *rows, size_t first, size_t later)
{
    struct row *a = &rows->at[first];
    struct row *b = &rows->at[later];
    struct becalm_match common;
    s->file = b->route->file;
    if (match_covers(&a->match, &b->match)) {
        bool twice = match_covers(&b->match, &a->match) &&
                     (a->route->service != b->route->service || !emit_same(a->route->rules, b->route->rules));
        b->dead = true;
        if (twice && a->route->service == b->route->service) {
            emit_copy(a->route->rules, b->route->rules, route_clash, &(struct clash){s, a->route->rules, b->route});
        } else if (a->route != b->route) {
            source_aside(s, b->route->service, &b->from,
                         emit_text(s->emit, "no request comes to it: the route at line %u takes them first",
                                   (unsigned)a->from.node->line));
        }
    } else if (match_meets(&a->match, &b->match) && match_compare(&b->match, &a->match) <= 0 && a->route != b->route) {
        if (match_common(&a->match, &b->match, &common)) {
            struct from from = a->from;
            row_add(s, rows, a->route, &common, &from);
        } else {
            source_no_equal(s, b->route->service, &b->from,
                            emit_text(s->emit,
                                      "the route at line %u takes requests that fit both, and here this one does",
                                      (unsigned)a->from.node->line));
        }
    }
}

/* Is the first of two routes taken, where a request fits both? */
static bool first_wins(const struct row *a, const struct row *b)
{
    if (a->dead || a->route->dialect != b->route->dialect) {
        return false;
    }
    switch (a->route->dialect->order) {
    case ORDER_SPECIFIC:
        return false;
    case ORDER_FIRST:
        return same_host(&a->match, &b->match);
    case ORDER_FIRST_OF_ALL:
        return true;
    }
    BECALM_UNREACHABLE();
}

/* A row among those of its host: these stand side by side, in the order of the file. */
struct place_of_row {
    const char *host; /* "" is any */
    size_t index;
};

static int place_compare(const void *a, const void *b)
{
    const struct place_of_row *x = a;
    const struct place_of_row *y = b;
    int order = strcmp(x->host, y->host);
    return order != 0 ? order : x->index < y->index ? -1 : x->index > y->index;
}

static bool pairs_are_too_many(struct source *s, const struct rows *rows, uint64_t pairs)
{
    if (rows->count <= ROWS_MAX && pairs <= PAIRS_MAX) {
        return false;
    }
    s->file = rows->at[0].route->file;
    source_error(s, rows->at[0].from.node, "too-many",
                 "%zu matches of routes are more than a policy has room for; import the files in parts", rows->count);
    return true;
}

/* Where the first route of all is taken that fits: each is compared with all before it. */
static bool all_settle(struct source *s, struct rows *rows, size_t count)
{
    if (pairs_are_too_many(s, rows, (uint64_t)count * count / 2)) {
        return false;
    }
    for (size_t later = 0; later < count; later++) {
        for (size_t first = 0; first < later && !rows->at[later].dead; first++) {
            if (first_wins(&rows->at[first], &rows->at[later])) {
                later_settle(s, rows, first, later);
            }
        }
    }
    return true;
}

/* Where the first route of a host is taken. */
static bool hosts_settle(struct source *s, struct rows *rows, size_t count)
{
    struct place_of_row *place = emit_take(s->emit, (count + 1) * sizeof *place);
    uint64_t pairs = 0;
    size_t start = 0;
    for (size_t i = 0; place != NULL && i < count; i++) {
        place[i] = (struct place_of_row){rows->at[i].match.host == NULL ? "" : rows->at[i].match.host, i};
    }
    if (place == NULL) {
        return false;
    }
    qsort(place, count, sizeof *place, place_compare);
    for (size_t i = 0; i < count; i++) {
        start = i > 0 && strcmp(place[i].host, place[i - 1].host) == 0 ? start : i;
        pairs += i - start;
    }
    if (pairs_are_too_many(s, rows, pairs)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        start = i > 0 && strcmp(place[i].host, place[i - 1].host) == 0 ? start : i;
        for (size_t k = start; k < i && !rows->at[place[i].index].dead; k++) {
            if (first_wins(&rows->at[place[k].index], &rows->at[place[i].index])) {
                later_settle(s, rows, place[k].index, place[i].index);
            }
        }
    }
    return true;
}

/* Where the first route is taken that fits. False: there are too many, which was told. */
static bool rows_settle(struct source *s, struct rows *rows)
{
    size_t count = rows->count;
    bool of_all = false;
    for (size_t i = 0; i < count; i++) {
        of_all = of_all || rows->at[i].route->dialect->order == ORDER_FIRST_OF_ALL;
    }
    return of_all ? all_settle(s, rows, count) : count == 0 || hosts_settle(s, rows, count);
}

/* ---- requests that fit no route of their host ---- */

static bool takes_all(const struct becalm_match *m)
{
    const char *begin = m->prefix != NULL ? m->prefix : m->start;
    return m->path == NULL && (begin == NULL || strcmp(begin, "/") == 0) && m->method == NULL && m->header_name == NULL;
}

/* For the first row of a host none of whose rows takes all requests: the row of a wider host that takes the rest. NULL:
 * none. */
static const struct row *wider_of(const struct rows *rows, const struct row *row)
{
    const struct row *wider = NULL;
    const struct becalm_match host = {.host = row->match.host};
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *other = &rows->at[i];
        bool same = same_host(&other->match, &row->match);
        if (other->dead || (same && i < (size_t)(row - rows->at))) {
            continue;
        }
        if (same && takes_all(&other->match)) {
            return NULL;
        }
        const struct becalm_match theirs = {.host = other->match.host};
        if (!same && wider == NULL && match_covers(&theirs, &host)) {
            wider = other;
        }
    }
    return wider;
}

static bool is_first_of_host(const struct rows *rows, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (!rows->at[i].dead && same_host(&rows->at[i].match, &rows->at[index].match)) {
            return false;
        }
    }
    return true;
}

/* The source refuses these requests; in Becalm a route with a wider host takes them. */
static void falls_tell(struct source *s, const struct rows *rows)
{
    for (size_t i = 0; i < rows->count && rows->count <= FALLS_MAX; i++) {
        const struct row *row = &rows->at[i];
        const struct row *wider =
            row->dead || row->match.host == NULL || !row->route->dialect->host_decides || !is_first_of_host(rows, i)
                ? NULL
                : wider_of(rows, row);
        if (wider != NULL) {
            s->file = row->route->file;
            source_no_equal(s, row->route->service, &row->from,
                            emit_text(s->emit,
                                      "a request to %s that none of its routes fits is refused there, and here "
                                      "goes to %s",
                                      row->match.host, emit_name(wider->route->service)));
        }
    }
}

/* ---- services and endpoints ---- */

/* The rows of one service side by side, in the order of the routes. */
struct group {
    struct emit_target *service;
    struct row **row;
    size_t count;
};

static int row_compare(const void *a, const void *b)
{
    const struct row *x = *(struct row *const *)a;
    const struct row *y = *(struct row *const *)b;
    uintptr_t one = (uintptr_t)x->route->service;
    uintptr_t other = (uintptr_t)y->route->service;
    return one != other ? (one < other ? -1 : 1) : x < y ? -1 : x > y;
}

/* All rows that are asked, service by service. */
static struct group rows_sort(struct source *s, const struct rows *rows)
{
    struct group all = {NULL, emit_take(s->emit, (rows->count + 1) * sizeof *all.row), 0};
    for (size_t i = 0; all.row != NULL && i < rows->count; i++) {
        if (!rows->at[i].dead) {
            all.row[all.count++] = &rows->at[i];
        }
    }
    if (all.count > 0) {
        qsort(all.row, all.count, sizeof *all.row, row_compare);
    }
    return all;
}

static struct group group_find(const struct group *all, struct emit_target *service)
{
    size_t low = 0;
    size_t high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        *((uintptr_t)all->row[middle]->route->service < (uintptr_t)service ? &low : &high) =
            (uintptr_t)all->row[middle]->route->service < (uintptr_t)service ? middle + 1 : middle;
    }
    struct group group = {service, all->row + low, 0};
    while (low + group.count < all->count && group.row[group.count]->route->service == service) {
        group.count++;
    }
    return group;
}

/* Does one of the route's rows take all that the row takes? */
static bool route_covers(const struct group *g, const struct route *route, const struct row *row)
{
    size_t i = 0;
    while (i < g->count && (g->row[i]->route != route || !match_covers(&g->row[i]->match, &row->match))) {
        i++;
    }
    return i < g->count;
}

/* The route whose rules are the service's own: a route that takes all requests of the service, or any route if all have
 * the same rules; else NULL. */
static struct route *group_own(const struct group *g)
{
    bool same = true;
    for (size_t i = 1; i < g->count; i++) {
        same = same && emit_same(g->row[0]->route->rules, g->row[i]->route->rules);
    }
    if (same && g->count > 0) {
        return g->row[0]->route;
    }
    for (size_t i = 0; i < g->count && g->count <= GROUP_TIDIED; i++) {
        size_t k = 0;
        while (k < g->count && route_covers(g, g->row[i]->route, g->row[k])) {
            k++;
        }
        if (k == g->count) {
            return g->row[i]->route;
        }
    }
    return NULL;
}

/* Is a match of the service no more than another one of it says already? Not if a third service comes between them. */
static bool is_spare(const struct rows *rows, const struct group *g, size_t index)
{
    const struct row *row = g->row[index];
    for (size_t i = 0; i < g->count && g->count <= GROUP_TIDIED; i++) {
        const struct row *wide = g->row[i];
        bool again = match_covers(&row->match, &wide->match) && i > index; /* of equals the first stays */
        if (i == index || again || !match_covers(&wide->match, &row->match)) {
            continue;
        }
        size_t k = 0;
        while (k < rows->count &&
               (rows->at[k].dead || rows->at[k].route->service == g->service ||
                !match_meets(&rows->at[k].match, &row->match) || match_compare(&wide->match, &rows->at[k].match) < 0)) {
            k++;
        }
        if (k == rows->count) {
            return true;
        }
    }
    return false;
}

static struct route_match shown(const struct becalm_match *m)
{
    return (struct route_match){.path = m->path,
                                .prefix = m->prefix,
                                .start = m->start,
                                .method = m->method,
                                .header = m->header_name,
                                .value = m->header_value,
                                .host = m->host};
}

static const char *match_flow(struct source *s, const struct becalm_match *m)
{
    const char *const parts[][2] = {
        {"host", m->host}, {"prefix", m->prefix}, {"start", m->start}, {"path", m->path}, {"method", m->method}};
    const char *text = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i][1] != NULL) {
            text = emit_text(s->emit, "%s%s%s: %s", text, text[0] == '\0' ? "" : ", ", parts[i][0],
                             emit_quote(s->emit, parts[i][1]));
        }
    }
    if (m->header_name != NULL) {
        text = emit_text(s->emit, "%s%sheader: {%s: %s}", text, text[0] == '\0' ? "" : ", ",
                         emit_quote(s->emit, m->header_name), emit_quote(s->emit, m->header_value));
    }
    return emit_text(s->emit, "{%s}", text[0] == '\0' ? "prefix: /" : text);
}

/* The matches of a service or an endpoint: keys if there is one, else a list. */
static void matches_put(struct source *s, struct emit_target *target, struct row *const *row, size_t count)
{
    if (count == 1) {
        struct route_match one = shown(&row[0]->match);
        if (match_is_everything(&one)) {
            one.prefix = "/";
        } else if (one.host != NULL && one.prefix != NULL && strcmp(one.prefix, "/") == 0) {
            one.prefix = NULL;
        }
        s->file = row[0]->route->file;
        match_put(s, target, &one, &row[0]->from);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        s->file = row[i]->route->file;
        emit_match(target, match_flow(s, &row[i]->match), source_where(s, &row[i]->from));
    }
}

static void service_matches(struct source *s, const struct rows *rows, const struct group *g)
{
    struct row **kept = emit_take(s->emit, (g->count + 1) * sizeof *kept);
    size_t count = 0;
    for (size_t i = 0; kept != NULL && i < g->count; i++) {
        if (!is_spare(rows, g, i)) {
            kept[count++] = g->row[i];
        }
    }
    const struct becalm_match by_name = {.host = emit_name(g->service)};
    bool named = count == 1 && match_covers(&by_name, &kept[0]->match) && match_covers(&kept[0]->match, &by_name);
    if (kept != NULL && !named) { /* a service without a match is found by its name */
        matches_put(s, g->service, kept, count);
    }
}

/* Does a row with other rules than the service's come in the way of this one? `others` are all of these. */
static bool needs_endpoint(const struct group *others, const struct row *row, const struct route *own)
{
    if (own == NULL || !emit_same(own->rules, row->route->rules)) {
        return true;
    }
    for (size_t i = 0; i < others->count && row->route != own; i++) {
        if (match_meets(&others->row[i]->match, &row->match)) {
            return true;
        }
    }
    return false;
}

/* The rows of a group that have other rules than the service. */
static struct group others_of(struct source *s, const struct group *g, const struct route *own)
{
    struct group others = {g->service, emit_take(s->emit, (g->count + 1) * sizeof *others.row), 0};
    for (size_t i = 0; others.row != NULL && own != NULL && i < g->count; i++) {
        if (!emit_same(own->rules, g->row[i]->route->rules)) {
            others.row[others.count++] = g->row[i];
        }
    }
    return others;
}

static void group_write(struct source *s, const struct rows *rows, const struct group *g)
{
    struct route *own = group_own(g);
    struct row **of_route = emit_take(s->emit, (g->count + 1) * sizeof *of_route);
    const struct group others = others_of(s, g, own);
    service_matches(s, rows, g);
    if (own != NULL) {
        emit_copy(g->service, own->rules, route_clash, &(struct clash){s, g->service, own});
    }
    for (size_t i = 0; of_route != NULL && i < g->count; i++) {
        struct route *route = g->row[i]->route;
        size_t count = 0;
        if (route->written || !needs_endpoint(&others, g->row[i], own)) {
            continue;
        }
        for (size_t k = i; k < g->count; k++) {
            if (g->row[k]->route == route) {
                of_route[count++] = g->row[k];
            }
        }
        const struct route_match first = shown(&of_route[0]->match);
        s->file = route->file;
        struct emit_target *endpoint = emit_endpoint(
            g->service, route->name != NULL ? route->name : match_name(s, &first), source_where(s, &of_route[0]->from));
        route->written = true;
        matches_put(s, endpoint, of_route, count);
        emit_copy(endpoint, route->rules, NULL, NULL);
    }
}

/* ---- values that no route sets ---- */

static void inherited_drop(struct emit_target *target, const struct emit_target *outer, const struct unwritten *u)
{
    const char *value = emit_get(target, u->key);
    if (value != NULL && strcmp(value, u->value) == 0 && emit_get(outer, u->key) == NULL &&
        strncmp(emit_comment(target, u->key), UNWRITTEN, strlen(UNWRITTEN)) == 0) {
        emit_drop(target, u->key);
    }
}

/* The dialect of all routes; NULL if there are several, or none. */
static const struct dialect *only_dialect(const struct source *s)
{
    const struct route *route = s->first_route;
    while (route != NULL && route->dialect == s->first_route->dialect) {
        route = route->next;
    }
    return route == NULL && s->first_route != NULL ? s->first_route->dialect : NULL;
}

/* Writes the product's own defaults once, in `defaults:`, instead of in each service. Not if the source itself has
 * rules for all services. */
static void unwritten_hoist(struct source *s)
{
    struct emit_target *defaults = emit_defaults(s->emit);
    const struct dialect *dialect = only_dialect(s);
    const struct unwritten *table = dialect == NULL ? NULL : dialect->unwritten;
    for (const struct unwritten *u = table; u != NULL && u->key != NULL; u++) {
        if (emit_get(defaults, u->key) != NULL) {
            return;
        }
    }
    for (const struct unwritten *u = table; u != NULL && u->key != NULL; u++) {
        emit_put(defaults, u->key, u->value, emit_text(s->emit, UNWRITTEN "%s", u->remark));
        for (struct emit_target *service = emit_next(s->emit, NULL); service != NULL;
             service = emit_next(s->emit, service)) {
            inherited_drop(service, NULL, u);
            for (struct emit_target *endpoint = emit_next_endpoint(service, NULL); endpoint != NULL;
                 endpoint = emit_next_endpoint(service, endpoint)) {
                inherited_drop(endpoint, service, u);
            }
        }
    }
}

/* ---- retries beside an attempt ---- */

/* May Becalm send a retry beside an attempt of the target that takes long? Not if the import writes no retries, nor
 * with `attemptTimeout: none`. */
static bool goes_beside(const struct emit_target *target)
{
    const char *retries = emit_get_inherited(target, "maxRetries");
    const char *timeout = emit_get_inherited(target, "attemptTimeout");
    return retries != NULL && strcmp(retries, "0") != 0 && (timeout == NULL || strcmp(timeout, "none") != 0) &&
           emit_get_inherited(target, "retryOverdue") == NULL;
}

static bool hedges(const struct emit_target *target)
{
    const char *hedge = emit_get_inherited(target, "hedge.enabled");
    return hedge != NULL && strcmp(hedge, "true") == 0;
}

static void beside_forbid(struct emit *e, struct emit_target *target, const char *product)
{
    emit_put(
        target, "retryOverdue", "false",
        emit_text(e, UNWRITTEN "%s %s", product,
                  hedges(target) ? "sends only hedges beside an attempt" : "retries only after an attempt has ended"));
}

/* Does each service need the key, for the same reason? */
static bool all_go_beside(struct source *s)
{
    const struct emit_target *service = emit_next(s->emit, NULL);
    bool some = service != NULL;
    while (service != NULL && goes_beside(service) && !hedges(service)) {
        service = emit_next(s->emit, service);
    }
    return some && service == NULL;
}

/* In every product a retry is sent only after the attempt before it has ended. If all services of one product need the
 * key, it is written once, in `defaults:`, and a target doesn't repeat what it inherits. */
static void beside_write(struct source *s)
{
    struct emit_target *defaults = emit_defaults(s->emit);
    const struct dialect *dialect = only_dialect(s);
    const char *product = dialect == NULL ? "the source" : dialect->product;
    if (goes_beside(defaults) || (dialect != NULL && all_go_beside(s))) {
        beside_forbid(s->emit, defaults, product);
    }
    for (struct emit_target *service = emit_next(s->emit, NULL); service != NULL;
         service = emit_next(s->emit, service)) {
        if (goes_beside(service)) {
            beside_forbid(s->emit, service, product);
        }
        for (struct emit_target *endpoint = emit_next_endpoint(service, NULL); endpoint != NULL;
             endpoint = emit_next_endpoint(service, endpoint)) {
            if (goes_beside(endpoint)) {
                beside_forbid(s->emit, endpoint, product);
            }
        }
    }
}

bool routes_write(struct source *s, uint32_t *count)
{
    struct rows rows = rows_make(s);
    *count = 0;
    if (!rows_settle(s, &rows)) {
        return false;
    }
    falls_tell(s, &rows);
    const struct group all = rows_sort(s, &rows);
    for (struct emit_target *service = all.count == 0 ? NULL : emit_next(s->emit, NULL); service != NULL;
         service = emit_next(s->emit, service)) {
        const struct group group = group_find(&all, service);
        if (group.count > 0) {
            group_write(s, &rows, &group);
        }
    }
    if (rows.count > 0) {
        unwritten_hoist(s);
    }
    beside_write(s);
    for (const struct route *route = s->first_route; route != NULL; route = route->next) {
        *count += route->service != emit_defaults(s->emit);
    }
    return true;
}
