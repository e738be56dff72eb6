/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "client.h"

#include "engine/apart_internal.h"
#include "http/text_internal.h"
#include "http/url.h"
#include "http/utf8.h"
#include "policy/share.h"
#include "run/cell.h"
#include "run/entropy.h"

#include <becalm/run.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define HOST_MAX  300u
#define NO_LIMIT  (24 * 3600 * BECALM_S) /* the longest that a policy may say */
#define NOT_OURS  "unrouted"
#define AS_CALLER "role=sidecar" /* the role in which `limit: auto` is aimd, and gatewayRetries does not count */

struct becalm_moment client_moment(const struct becalm_client *client, uint64_t stream)
{
    becalm_ns now = becalm_run_now();
    uint64_t random = client->seed + stream * UINT64_C(0x9e3779b97f4a7c15);
    return (struct becalm_moment){
        .now = now,
        /* Not mixed: the code that draws does that. The children of a fork have the same seed and streams, but not the
         * same nanosecond. */
        .random = random ^ now << 20,
        .cell = cell_here(),
    };
}

/* ---- names ---- */

static const char unreadable[] = "\xef\xbf\xbd"; /* U+FFFD */

/* A copy of a name for the page of metrics, which a single byte that is no UTF-8 would make unreadable as a whole: it
 * is replaced. NULL: no memory. */
static char *name_copy(const char *name)
{
    char *copy = malloc(strlen(name) * (sizeof unreadable - 1) + 1);
    char *end = copy;
    while (copy != NULL && *name != '\0') {
        size_t length = utf8_length(name, 4); /* the zero at its end continues nothing */
        const char *from = length == 0 ? unreadable : name;
        size_t taken = length == 0 ? sizeof unreadable - 1 : length;
        memcpy(end, from, taken);
        end += taken;
        name += length == 0 ? 1 : length;
    }
    if (copy != NULL) {
        *end = '\0';
    }
    return copy;
}

/* ---- making ---- */

static bool target_make(struct client_target *target)
{
    becalm_gate_for_caller(&target->policy.gate);
    target->memory = aligned_alloc(64, becalm_target_bytes(&target->policy, 0, CELL_COUNT));
    target->sites = site_make(NULL);
    if (target->memory == NULL || target->sites == NULL) {
        return false;
    }
    return becalm_target_init(&target->target, target->memory, &target->policy, 0, CELL_COUNT) == 0;
}

/* Lines of its own, or the service's, in which the endpoint waits for the same slots. */
static bool lines_make(struct client_target *target, struct client_target *of_service)
{
    if (of_service != NULL && target->target.gate == of_service->target.gate) {
        target->lines = of_service->lines;
        return true;
    }
    bool made = lines_init(&target->own_lines, &target->target);
    target->lines = made ? &target->own_lines : NULL;
    return made;
}

static bool rules_make(struct becalm_client *client, const struct becalm_service *service,
                       const struct becalm_endpoint *endpoint, struct client_target *of_service)
{
    struct client_target *target = &client->target[client->target_count++];
    const struct becalm_rules *rules = endpoint == NULL ? &service->rules : &endpoint->rules;
    target->service = service->name;
    target->rules = rules;
    target->endpoint = endpoint == NULL ? NULL : endpoint->name;
    target->retry_on = rules->retry_on;
    target->connect_timeout = rules->connect_timeout;
    target->keys_count = rules->key == BECALM_KEY_OPTIONAL || rules->key == BECALM_KEY_REQUIRED;
    becalm_rules_policy(client->config, rules, &target->policy);
    if (!target_make(target)) {
        return false;
    }
    if (endpoint != NULL) {
        share_with_service((struct share){&target->target, &target->policy},
                           (struct share){&of_service->target, &of_service->policy}, rules->level);
    }
    return lines_make(target, of_service);
}

/* A request that belongs to no service is sent once, with any result, as plain libcurl would. */
static bool unrouted_make(struct becalm_client *client)
{
    struct client_target *target = &client->target[client->target_count++];
    target->service = NOT_OURS;
    target->connect_timeout = 0;
    becalm_retry_on_defaults(&target->retry_on);
    becalm_policy_defaults(&target->policy);
    target->policy.max_retries = 0;
    target->policy.attempt_timeout = NO_LIMIT;
    target->policy.deadline = BECALM_NEVER;
    target->policy.budget.kind = BECALM_BUDGET_NONE;
    target->policy.limit.kind = BECALM_LIMIT_NONE;
    target->policy.breaker.enabled = false;
    target->policy.restart.enabled = false;
    return target_make(target) && lines_make(target, NULL);
}

bool client_is_unrouted(const struct becalm_client *client, const struct client_target *target)
{
    return client->config != NULL && target == &client->target[client->target_count - 1];
}

static bool services_make(struct becalm_client *client)
{
    uint32_t services = becalm_config_services(client->config);
    size_t targets = services;
    for (uint32_t i = 0; i < services; i++) {
        targets += becalm_config_service(client->config, i)->endpoint_count;
    }
    client->target = calloc(targets + 1, sizeof *client->target);
    client->service_target = calloc((size_t)services + 1, sizeof *client->service_target);
    client->routes = route_table_make(client->config);
    bool made = client->target != NULL && client->service_target != NULL && client->routes != NULL;
    for (uint32_t i = 0; made && i < services; i++) {
        const struct becalm_service *service = becalm_config_service(client->config, i);
        struct client_target *own = &client->target[client->target_count];
        client->service_target[i] = client->target_count;
        made = rules_make(client, service, NULL, NULL);
        for (uint32_t k = 0; made && k < service->endpoint_count; k++) {
            made = rules_make(client, service, &service->endpoints[k], own);
        }
    }
    client->by_method = made && route_table_by_method(client->routes);
    return made && unrouted_make(client);
}

/* Of which each plain handle may have some. */
static uint64_t descriptors_max(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

/* The common part of all ways to make a client. */
static struct becalm_client *client_make(const struct becalm_client_options *options)
{
    struct becalm_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&client->mutex, NULL) != 0) {
        free(client);
        return NULL;
    }
    if (options != NULL) {
        client->options = *options;
    }
    client->seed = entropy_seed();
    client->handles.plain_max = handles_plain_max(descriptors_max());
    return client;
}

static void calls_count(void *self, struct roster_totals *totals)
{
    struct becalm_client *client = self;
    (void)pthread_mutex_lock(&client->mutex); /* sites may be added */
    for (uint32_t i = 0; i < client->target_count; i++) {
        uint64_t calls = 0;
        uint64_t retries = 0;
        for (const struct site *site = client->target[i].sites; site != NULL; site = site->next) {
            for (uint32_t k = 0; k < SITE_LANES; k++) {
                meter_totals(&site->lane[k].meter, &calls, &retries);
            }
        }
        roster_count(totals, calls, retries, client->target[i].target.lease != NULL);
    }
    (void)pthread_mutex_unlock(&client->mutex);
}

/* Only a client that shares a budget needs this. */
static bool store_make(struct becalm_client *client)
{
    struct redis_stores_budget *budget = calloc(client->target_count, sizeof *budget);
    uint32_t count = 0;
    for (uint32_t i = 0; budget != NULL && i < client->target_count; i++) {
        struct client_target *target = &client->target[i];
        if (target->rules != NULL && target->target.lease != NULL) {
            budget[count++] = (struct redis_stores_budget){.config = client->config,
                                                           .rules = target->rules,
                                                           .service = target->service,
                                                           .endpoint = target->endpoint,
                                                           .lease = target->target.lease,
                                                           .policy = &target->policy.lease};
        }
    }
    if (count > 0) {
        client->store = client_store_make(&(struct client_store_options){
            .config = client->config, .budget = budget, .budget_count = count, .count = calls_count, .self = client});
    }
    bool made = budget != NULL && (count == 0 || client->store != NULL);
    free(budget);
    return made;
}

static struct becalm_client *client_of(struct becalm_config *config, const struct becalm_client_options *options)
{
    struct becalm_client *client = config == NULL ? NULL : client_make(options);
    if (client == NULL) {
        becalm_config_free(config);
        return NULL;
    }
    client->config = config;
    if (!services_make(client) || !store_make(client)) {
        becalm_client_free(client);
        return NULL;
    }
    return client;
}

static const char *const as_caller[] = {AS_CALLER, NULL};
static const struct becalm_load_options load_options = {.substitute = true, .shared_budgets = true, .set = as_caller};

/* A program that gives no room for diagnostics should still be able to see them. */
static void diags_print(const struct becalm_diags *diags)
{
    char line[1024];
    for (uint32_t i = 0; i < diags->count; i++) {
        (void)becalm_diag_write(&diags->diag[i], line, sizeof line);
        (void)fprintf(stderr, "%s\n", line);
    }
}

/* From the file, or from the text if there is no file. */
static struct becalm_client *client_from(const char *path, struct becalm_text text,
                                         const struct becalm_client_options *options, struct becalm_diags *diags)
{
    struct becalm_config *config = NULL;
    struct becalm_diags *own = diags == NULL ? calloc(1, sizeof *own) : NULL;
    struct becalm_diags *used = diags == NULL ? own : diags;
    if (used != NULL && path != NULL) {
        (void)becalm_config_load(&config, path, &load_options, used);
    } else if (used != NULL) {
        (void)becalm_config_parse(&config, "policy", text.at, text.length, &load_options, used);
    }
    if (config != NULL && !redis_stores_check(config, used)) {
        becalm_config_free(config);
        config = NULL;
    }
    if (own != NULL && config == NULL) {
        diags_print(own);
    }
    free(own);
    return client_of(config, options);
}

struct becalm_client *becalm_client_load(const char *path, const struct becalm_client_options *options,
                                         struct becalm_diags *diags)
{
    return client_from(path == NULL ? "" : path, (struct becalm_text){0}, options, diags);
}

struct becalm_client *becalm_client_parse(const char *text, size_t length, const struct becalm_client_options *options,
                                          struct becalm_diags *diags)
{
    return client_from(NULL, text == NULL ? (struct becalm_text){"", 0} : (struct becalm_text){text, length}, options,
                       diags);
}

struct becalm_client *becalm_client_new(const char *service, const struct becalm_policy *policy,
                                        const struct becalm_client_options *options, struct becalm_complaint *complaint)
{
    struct becalm_complaint wrong = {NULL, NULL};
    struct becalm_client *client = client_make(options);
    if (client == NULL) {
        goto fail;
    }
    if (service == NULL) {
        wrong = (struct becalm_complaint){"service", "it must have a name"};
        goto fail;
    }
    client->service_name = name_copy(service);
    client->target = calloc(1, sizeof *client->target);
    if (client->service_name == NULL || client->target == NULL) {
        goto fail;
    }
    struct client_target *target = &client->target[client->target_count++];
    target->service = client->service_name;
    target->keys_count = true;
    target->connect_timeout = BECALM_S;
    becalm_retry_on_defaults(&target->retry_on);
    if (policy == NULL) {
        becalm_policy_defaults(&target->policy);
        target->policy.limit.kind = BECALM_LIMIT_AIMD; /* as for every single caller */
    } else {
        target->policy = *policy;
    }
    if (target->policy.lease.enabled) {
        wrong =
            (struct becalm_complaint){"lease", "enabled must be false: a client that is built in code asks no store"};
        goto fail;
    }
    if (becalm_policy_check(&target->policy, &wrong) != 0 || !target_make(target) || !lines_make(target, NULL)) {
        goto fail;
    }
    return client;
fail:
    if (complaint != NULL) {
        *complaint = wrong;
    }
    becalm_client_free(client);
    return NULL;
}

static void target_free(struct client_target *target)
{
    while (target->origins != NULL) {
        struct client_origin *next = target->origins->next;
        free(target->origins->memory);
        free(target->origins->host);
        free(target->origins);
        target->origins = next;
    }
    if (target->lines == &target->own_lines) {
        lines_free(&target->own_lines);
    }
    sites_free(target->sites);
    free(target->memory);
}

void becalm_client_free(struct becalm_client *client)
{
    if (client == NULL) {
        return;
    }
    client_store_free(client->store); /* before the leases */
    handles_free(&client->handles);
    for (uint32_t i = 0; i < client->target_count; i++) {
        target_free(&client->target[i]);
    }
    for (uint32_t i = 0; i < client->operation_count; i++) {
        free(client->operation[i]);
    }
    free(client->target);
    free(client->service_target);
    free(client->service_name);
    route_table_free(client->routes);
    becalm_config_free(client->config);
    (void)pthread_mutex_destroy(&client->mutex);
    free(client);
}

/* ---- finding ---- */

static BECALM__COLD struct handle *handle_add(struct becalm_client *client, CURL *easy)
{
    return handles_add(&client->handles, easy, becalm_run_now());
}

struct handle *client_handle(struct becalm_client *client, CURL *easy)
{
    struct handle *handle = handles_find(&client->handles, easy);
    return handle == NULL ? handle_add(client, easy) : handle;
}

static bool has_header(const void *headers, const char *name, struct becalm_text value)
{
    for (const struct curl_slist *line = headers; line != NULL; line = line->next) {
        struct becalm_text text = {line->data, strlen(line->data)};
        if (text_take_word(&text, name) && text_take(&text, ':')) {
            text = text_trim(text);
            if (text.length == value.length && memcmp(text.at, value.at, value.length) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* A port that is not written is 80 to the routes; https means another. */
static struct becalm_text host_with_port(const struct becalm__url *url, char memory[HOST_MAX])
{
    static const char port[] = ":443";
    const char *bracket = url->host.length == 0 ? NULL : memchr(url->host.at, ']', url->host.length);
    size_t name = bracket == NULL ? 0 : (size_t)(bracket - url->host.at);
    bool written = url->host.length > name && memchr(url->host.at + name, ':', url->host.length - name) != NULL;
    if (!url->https || written || url->host.length + sizeof port > HOST_MAX) {
        return url->host;
    }
    memcpy(memory, url->host.at, url->host.length);
    memcpy(memory + url->host.length, port, sizeof port);
    return (struct becalm_text){memory, url->host.length + sizeof port - 1};
}

struct client_target *client_find(const struct becalm_client *client, struct becalm_text url, struct becalm_text method,
                                  const struct curl_slist *headers)
{
    if (client->routes == NULL) {
        return &client->target[0];
    }
    struct client_target *unrouted = &client->target[client->target_count - 1];
    char memory[HOST_MAX];
    struct becalm__url parts = becalm__url_split(url);
    if (!parts.http) {
        return unrouted;
    }
    struct route route = route_find(client->routes, &(struct route_request){
                                                        .host = host_with_port(&parts, memory),
                                                        .path = parts.path,
                                                        .method = method,
                                                        .has_header = has_header,
                                                        .headers = headers,
                                                    });
    if (route.service == ROUTE_NONE) {
        return unrouted;
    }
    uint32_t own = client->service_target[route.service];
    return &client->target[own + (route.endpoint == ROUTE_NONE ? 0 : 1 + route.endpoint)];
}

static bool origin_is(const struct client_origin *origin, const struct becalm__url *url)
{
    return origin->https == url->https && strlen(origin->host) == url->host.length &&
           memcmp(origin->host, url->host.at, url->host.length) == 0;
}

/* The first has the restart that the target was made with, so that the page of metrics shows it; further origins have
 * their own. NULL: no memory. */
static struct client_origin *origin_make(struct client_target *target, const struct becalm__url *url)
{
    struct client_origin *origin = calloc(1, sizeof *origin);
    if (origin == NULL) {
        return NULL;
    }
    origin->host = calloc(url->host.length + 1, 1);
    origin->memory = target->origin_count == 0 ? NULL : aligned_alloc(64, 2 * 64);
    if (origin->host == NULL || (target->origin_count > 0 && origin->memory == NULL)) {
        free(origin->host);
        free(origin->memory);
        free(origin);
        return NULL;
    }
    memcpy(origin->host, url->host.at, url->host.length);
    origin->https = url->https;
    origin->target = target->target;
    if (origin->memory != NULL) {
        BECALM_ASSERT(becalm_restart_bytes(0) <= 2 * 64);
        origin->target.restart = becalm_restart_init(origin->memory, 0);
    }
    lines_parking_add(target->lines, &origin->line, origin->target.restart);
    origin->next = target->origins;
    target->origins = origin;
    target->origin_count++;
    return origin;
}

BECALM__COLD struct client_origin *client_origin_of(struct becalm_client *client, struct client_target *target,
                                                    struct becalm_text url)
{
    struct becalm__url parts = becalm__url_split(url);
    if (!target->policy.restart.enabled || parts.host.length == 0) {
        return NULL;
    }
    (void)pthread_mutex_lock(&client->mutex);
    struct client_origin *origin = target->origins;
    while (origin != NULL && !origin_is(origin, &parts)) {
        origin = origin->next;
    }
    if (origin == NULL && target->origin_count < CLIENT_ORIGINS_MAX) {
        origin = origin_make(target, &parts);
    }
    (void)pthread_mutex_unlock(&client->mutex);
    return origin;
}

const struct becalm_target *becalm_client_target(const struct becalm_client *client, const char *service,
                                                 const char *endpoint)
{
    if (client == NULL || service == NULL) {
        return NULL;
    }
    uint32_t count = client->routes == NULL ? client->target_count : client->target_count - 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct client_target *target = &client->target[i];
        bool same = endpoint == NULL ? target->endpoint == NULL
                                     : target->endpoint != NULL && strcmp(target->endpoint, endpoint) == 0;
        if (same && strcmp(target->service, service) == 0) {
            return &target->target;
        }
    }
    return NULL;
}

/* ---- operations ---- */

static const char *operation_find(const struct becalm_client *client, const char *operation)
{
    for (uint32_t i = 0; i < client->operation_count; i++) {
        if (strcmp(client->operation[i], operation) == 0) {
            return client->operation[i];
        }
    }
    return NULL;
}

const char *client_operation(struct becalm_client *client, const char *operation)
{
    const char *known = operation_find(client, operation);
    if (known != NULL) {
        return known;
    }
    char *copy = name_copy(operation);
    known = copy == NULL ? NULL : operation_find(client, copy); /* as it was made readable */
    if (copy == NULL || known != NULL || client->operation_count == BECALM_OPERATIONS_MAX) {
        free(copy);
        return known;
    }
    client->operation[client->operation_count++] = copy;
    return copy;
}

struct site *client_site(struct becalm_client *client, struct client_target *target, const char *operation)
{
    if (operation == NULL) {
        return target->sites; /* made with it, and never moved */
    }
    (void)pthread_mutex_lock(&client->mutex);
    struct site *site = target->sites;
    while (site->operation != operation && site->next != NULL) {
        site = site->next;
    }
    if (site->operation != operation) {
        site->next = site_make(operation);
        site = site->next == NULL ? target->sites : site->next;
    }
    (void)pthread_mutex_unlock(&client->mutex);
    return site;
}
