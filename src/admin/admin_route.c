/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "http/text_internal.h"
#include "message/phrase.h"
#include "proxy/gateway_shared.h"

#include <becalm/version.h>

#include <stdio.h>

/* ---- small pages ---- */

void admin_problem(struct admin_answer *answer, uint32_t status, const char *sentence)
{
    answer->status = status;
    answer->type = "application/problem+json";
    buffer_json_open(&answer->page, NULL, '{');
    buffer_json_chars(&answer->page, "title", status_phrase(status));
    buffer_json_chars(&answer->page, "detail", sentence);
    buffer_json_number(&answer->page, "status", status);
    buffer_json_close(&answer->page, '}');
    buffer_chars(&answer->page, "\n");
}

static void healthz(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)admin;
    (void)request;
    buffer_chars(&answer->page, "ok\n");
}

/* Never asks how services or their hosts are: a gateway that is not ready because of them takes all others with it. */
static void readyz(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)request;
    if (atomic_load_explicit(&admin->place.gateway->draining, memory_order_relaxed)) {
        answer->status = 503;
        buffer_chars(&answer->page, "draining: the gateway shuts down and wants no new connections\n");
    } else {
        buffer_chars(&answer->page, "ready\n");
    }
}

/* A browser gets the dashboard, and curl this list. */
static void front(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    if (admin_wants_html(request)) {
        admin_dashboard(admin, request, answer);
        return;
    }
    buffer_chars(&answer->page, "becalm ");
    buffer_chars(&answer->page, becalm_version());
    buffer_chars(&answer->page,
                 "\n\n"
                 "GET  /                            this list; in a browser the dashboard\n"
                 "GET  /healthz                     200 while the process lives\n"
                 "GET  /readyz                      503 while the gateway drains\n"
                 "GET  /metrics                     for Prometheus\n"
                 "GET  /api/state                   services, hosts, budgets, breakers, limits, counts\n"
                 "       ?service=NAME\n"
                 "GET  /api/events                  the counts of each second, as server-sent events\n"
                 "GET  /api/fleet                   the processes that share the gateway's store\n"
                 "GET  /api/sample                  the latest event of /api/events\n"
                 "GET  /api/history                 a minute of all services, or up to a day of one\n"
                 "       ?service=NAME&endpoint=NAME&range=5m|1h|6h|24h\n"
                 "GET  /api/decisions               the latest calls and the reasons of their ends\n"
                 "       ?service=NAME&limit=N\n"
                 "GET  /api/policy                  every value in force and its source\n"
                 "       ?service=NAME\n"
                 "GET  /api/keys                    idempotency keys that are held, the oldest first\n"
                 "DELETE /api/keys/ID               release a key, so that its request may be sent again\n"
                 "POST /api/reload                  reload the policy; 422 and the errors if it is bad\n"
                 "GET  /api/faults                  the injected faults that are in force\n"
                 "POST /api/faults                  inject a fault: \"service\", \"for\", and its kind\n"
                 "DELETE /api/faults                end all faults; /api/faults/NAME ends one\n"
                 "POST /api/services/NAME/breaker   {\"state\": \"forced_open\"}, or disabled, metrics_only,\n"
                 "                                  closed, reset; \"endpoint\": \"NAME\" for one endpoint\n");
}

/* ---- which page ---- */

/* Those of every gateway. */
static const struct admin_route gateway_routes[] = {
    {"/", NULL, false, "text/plain; charset=utf-8", front},
    {"/assets/*", NULL, true, NULL, admin_asset}, /* says its type itself */
    {"/healthz", NULL, true, "text/plain; charset=utf-8", healthz},
    {"/readyz", NULL, true, "text/plain; charset=utf-8", readyz},
    {"/metrics", NULL, false, NULL, admin_metrics}, /* says its type itself */
    {"/api/state", NULL, false, "application/json", admin_state},
    {"/api/events", NULL, false, "text/event-stream", admin_events},
    {"/api/sample", NULL, false, "application/json", admin_sample},
    {"/api/history", NULL, false, "application/json", admin_history},
    {"/api/decisions", NULL, false, "application/json", admin_decisions},
    {"/api/fleet", NULL, false, "application/json", admin_fleet},
    {"/api/policy", NULL, false, "application/json", admin_policy},
    {"/api/keys", NULL, false, "application/json", admin_keys},
    {"/api/keys/*", "DELETE", false, "application/json", admin_key_release},
    {"/api/reload", "POST", false, "application/json", admin_reload},
    {"/api/faults", NULL, false, "application/json", admin_faults},
    {"/api/faults", "POST", false, "application/json", admin_fault_inject},
    {"/api/faults", "DELETE", false, "application/json", admin_fault_clear},
    {"/api/faults/*", "DELETE", false, "application/json", admin_fault_clear},
    {"/api/services/*/breaker", "POST", false, "application/json", admin_breaker},
    {NULL, NULL, false, NULL, NULL},
};

static bool matches(const char *pattern, struct becalm_text path)
{
    const char *star = strchr(pattern, '*');
    if (star == NULL) {
        return text_is(path, pattern);
    }
    size_t before = (size_t)(star - pattern);
    size_t behind = strlen(star + 1);
    return path.length > before + behind && memcmp(path.at, pattern, before) == 0 &&
           memcmp(path.at + path.length - behind, star + 1, behind) == 0 &&
           memchr(path.at + before, '/', path.length - before - behind) == NULL;
}

/* Whether the method is the page's. */
static bool takes(const struct admin_route *route, struct becalm_text method)
{
    bool reads = text_is(method, "GET") || text_is(method, "HEAD");
    return route->order != NULL ? text_is(method, route->order) : reads;
}

/* The page of this path and method; if the path has no such method, its page of another method. NULL: there is none. */
static const struct admin_route *find(const struct admin *admin, const struct admin_request *request)
{
    const struct admin_route *found = NULL;
    const struct admin_route *route = admin->place.routes == NULL ? gateway_routes : admin->place.routes;
    for (; route->path != NULL && request->path.at != NULL; route++) {
        if (matches(route->path, request->path) && (found == NULL || takes(route, request->method))) {
            found = route;
        }
    }
    return found;
}

bool admin_route_check(const struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    const struct admin_route *route = find(admin, request);
    bool is_page = text_is(request->path, "/") && admin_wants_html(request); /* this page asks the user for the token */
    bool is_open = is_page || (route != NULL && route->is_open);
    if (!admin_guard(admin, request, is_open, answer)) {
        return false;
    }
    answer->is_known = !is_open;
    if (route == NULL) {
        admin_problem(answer, 404, "There is no such page; / lists them.");
        return false;
    }
    if (!takes(route, request->method)) {
        admin_problem(answer, 405, NULL);
        answer->allow = route->answer == admin_faults ? "GET, HEAD, POST, DELETE"
                        : route->order != NULL        ? route->order
                                                      : "GET, HEAD";
        return false;
    }
    return true;
}

void admin_route_answer(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    const struct admin_route *route = find(admin, request);
    answer->status = 200;
    answer->type = route->type;
    route->answer(admin, request, answer);
}

/* ---- parameters ---- */

static int hex(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    c = to_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool admin_unescape(struct becalm_text from, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < from.length; i++) {
        char c = from.at[i];
        if (c == '%') {
            int high = i + 2 < from.length ? hex(from.at[i + 1]) : -1;
            int low = i + 2 < from.length ? hex(from.at[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0' || length + 1 >= size) {
            return false;
        }
        text[length++] = c;
    }
    text[length] = '\0';
    return true;
}

enum admin_value admin_query(struct becalm_text query, const char *name, char *text, size_t size)
{
    size_t name_length = strlen(name);
    text[0] = '\0';
    while (query.length > 0) {
        const char *end = memchr(query.at, '&', query.length);
        struct becalm_text pair = {query.at, end == NULL ? query.length : (size_t)(end - query.at)};
        text_skip(&query, pair.length + (end != NULL));
        if (pair.length > name_length && pair.at[name_length] == '=' && memcmp(pair.at, name, name_length) == 0) {
            text_skip(&pair, name_length + 1);
            if (admin_unescape(pair, text, size)) {
                return ADMIN_GIVEN;
            }
            text[0] = '\0';
            return ADMIN_BAD;
        }
    }
    return ADMIN_ABSENT;
}

bool admin_name(const struct admin_request *request, const char *name, char text[ADMIN_NAME_MAX],
                struct admin_answer *answer)
{
    char sentence[96];
    if (admin_query(request->query, name, text, ADMIN_NAME_MAX) != ADMIN_BAD) {
        return true;
    }
    snprintf(sentence, sizeof sentence, "%s is a name of at most %u bytes, with proper escapes.", name,
             ADMIN_NAME_MAX - 1);
    admin_problem(answer, 400, sentence);
    return false;
}
