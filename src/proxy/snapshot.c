/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "snapshot.h"

#include "origin/trace_context.h"
#include "policy/share.h"
#include "policy/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64u

static bool last_user(void *users)
{
    BECALM_ATOMIC(uint32_t) *count = users;
    return atomic_fetch_sub_explicit(count, 1, memory_order_acq_rel) == 1;
}

static void add_user(void *users)
{
    BECALM_ATOMIC(uint32_t) *count = users;
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed); /* the adder has one already, so it can't go away */
}

static uint32_t targets_of(const struct becalm_config *config)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < becalm_config_services(config); i++) {
        count += 1 + becalm_config_service(config, i)->endpoint_count;
    }
    return count;
}

static bool timeout_unwritten(const struct becalm_rules *rules)
{
    return becalm_rules_origin(rules, "attemptTimeout").level == BECALM_FROM_BUILT_IN;
}

static void find_unwritten_timeouts(struct shared_config *shared)
{
    uint32_t target = 0;
    for (uint32_t i = 0; i < becalm_config_services(shared->config); i++) {
        const struct becalm_service *service = becalm_config_service(shared->config, i);
        atomic_init(&shared->unwritten_timeout[target++], timeout_unwritten(&service->rules));
        for (uint32_t e = 0; e < service->endpoint_count; e++) {
            atomic_init(&shared->unwritten_timeout[target++], timeout_unwritten(&service->endpoints[e].rules));
        }
    }
}

bool snapshot_tells_timeout(const struct snapshot *snapshot, const struct snapshot_target *target)
{
    BECALM_ATOMIC(bool) *unwritten = &snapshot->shared->unwritten_timeout[target - snapshot->target];
    return atomic_load_explicit(unwritten, memory_order_relaxed) &&
           atomic_exchange_explicit(unwritten, false, memory_order_relaxed);
}

struct shared_config *shared_config_make(struct becalm_config *config)
{
    struct shared_config *shared = malloc(sizeof *shared + targets_of(config) * sizeof shared->unwritten_timeout[0]);
    if (shared == NULL) {
        becalm_config_free(config);
        return NULL;
    }
    atomic_init(&shared->users, 1);
    shared->config = config;
    find_unwritten_timeouts(shared);
    return shared;
}

void shared_config_drop(struct shared_config *shared)
{
    if (shared != NULL && last_user(&shared->users)) {
        becalm_config_free(shared->config);
        free(shared);
    }
}

void state_use(struct state *state)
{
    add_user(&state->users);
}

void state_drop(struct state *state)
{
    if (state != NULL && last_user(&state->users)) {
        if (state->whole == NULL && (state->service == NULL || state->waiting != state->service->waiting)) {
            free(state->waiting);
        }
        state_drop(state->service);
        state_drop(state->whole);
        free(state->memory);
        free(state);
    }
}

static void meters_drop(struct meters *meters)
{
    if (meters != NULL && last_user(&meters->users)) {
        for (uint32_t i = 0; i < meters->count; i++) {
            free(meters->meter[i]);
        }
        free(meters);
    }
}

static struct meters *meters_make(uint32_t workers)
{
    struct meters *meters = calloc(1, sizeof *meters + workers * sizeof meters->meter[0]);
    if (meters == NULL) {
        return NULL;
    }
    atomic_init(&meters->users, 1);
    meters->count = workers;
    for (uint32_t i = 0; i < workers; i++) {
        size_t bytes = (sizeof(struct meter) + LINE - 1) / LINE * LINE;
        meters->meter[i] = aligned_alloc(LINE, bytes);
        if (meters->meter[i] == NULL) {
            meters_drop(meters);
            return NULL;
        }
        memset(meters->meter[i], 0, bytes);
    }
    return meters;
}

struct state_plan {
    const struct becalm_rules *rules;
    const struct becalm_policy *policy;
    struct state *service; /* NULL: this is a service's own */
    struct state *before;  /* of the same name in the snapshot before; NULL: none */
    const struct snapshot_service *hosts;
    const struct snapshot_service *hosts_before; /* NULL: none */
    uint32_t workers;
    becalm_ns now;
};

static bool same_host(const struct snapshot_host *a, const struct snapshot_host *b)
{
    return a->known == b->known && (a->known ? address_equal(&a->address, &b->address) : strcmp(a->name, b->name) == 0);
}

/* The index that a host had before, most often the same or one near it; BECALM_NO_HOST: it is new. */
static uint32_t host_before(const struct state_plan *plan, uint32_t index)
{
    const struct snapshot_service *before = plan->hosts_before;
    uint32_t count = before == NULL ? 0 : before->host_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (index + i) % count;
        if (same_host(&before->host[at], &plan->hosts->host[index])) {
            return at;
        }
    }
    return BECALM_NO_HOST;
}

static bool same_hosts(const struct state_plan *plan)
{
    bool same = plan->hosts_before != NULL && plan->hosts_before->host_count == plan->hosts->host_count;
    for (uint32_t i = 0; same && i < plan->hosts->host_count; i++) {
        same = same_host(&plan->hosts_before->host[i], &plan->hosts->host[i]);
    }
    return same;
}

static bool state_fits(const struct state_plan *plan)
{
    const struct state *before = plan->before;
    return before != NULL && before->service == plan->service &&
           memcmp(&before->policy, plan->policy, sizeof *plan->policy) == 0 && same_hosts(plan);
}

static struct state *whole_of(struct state *state)
{
    return state != NULL && state->whole != NULL ? state->whole : state;
}

/* The state before can be reused, except for its hosts, which belong to the service. */
static bool state_fits_but_hosts(const struct state_plan *plan)
{
    const struct state *before = plan->before;
    return before != NULL && whole_of(before->service) == whole_of(plan->service) &&
           memcmp(&before->policy, plan->policy, sizeof *plan->policy) == 0;
}

static void share(struct state *state, const struct state_plan *plan)
{
    if (plan->service != NULL) {
        state->service = plan->service;
        state_use(plan->service);
        share_with_service((struct share){&state->target, &state->policy},
                           (struct share){&plan->service->target, &plan->service->policy}, plan->rules->level);
    }
}

/* Makes the hosts of a service in `target`. A host that stays keeps its ejection, even if its index changes. If a host
 * was added, it must be found out anew whether all hosts refuse connections. */
static void hosts_follow(struct becalm_target *target, const struct state_plan *plan)
{
    uint32_t count = plan->hosts->host_count;
    target->hosts = becalm_hosts_init(target->hosts, &plan->policy->outlier, count, plan->workers);
    target->restart = becalm_restart_init(target->restart, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = host_before(plan, i);
        if (before != BECALM_NO_HOST) {
            becalm_host_carry(target->hosts, i, plan->before->target.hosts, before);
        }
    }
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* A state with all parts of the one before, but for its hosts. NULL: no memory. */
static struct state *state_with_other_hosts(const struct state_plan *plan)
{
    struct state *whole = whole_of(plan->before);
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    atomic_init(&state->users, 1);
    state->policy = *plan->policy;
    state->target = whole->target;
    state->waiting = whole->waiting;
    state->whole = whole;
    state_use(whole);
    share(state, plan);
    if (plan->service == NULL) {
        uint32_t count = plan->hosts->host_count;
        size_t bytes = whole_lines(becalm_hosts_bytes(&plan->policy->outlier, count, plan->workers));
        state->memory = aligned_alloc(LINE, bytes + whole_lines(becalm_restart_bytes(count)));
        if (state->memory == NULL) {
            state_drop(state);
            return NULL;
        }
        state->target.hosts = state->memory;
        state->target.restart = (void *)((char *)state->memory + bytes);
        hosts_follow(&state->target, plan);
    }
    return state;
}

/* A gate has one queue for each worker, for the calls of all its endpoints: no endpoint waits for another. */
static bool waiting_make(struct state *state, uint32_t workers)
{
    const struct becalm_target *target = &state->target;
    if (state->service != NULL && state->service->target.gate == target->gate) {
        state->waiting = state->service->waiting;
        return true;
    }
    state->waiting = aligned_alloc(LINE, workers * sizeof *state->waiting);
    for (uint32_t i = 0; state->waiting != NULL && i < workers; i++) {
        state->waiting[i] = (struct waiting){.state = state};
        becalm_queue_init(&state->waiting[i].queue, target->gate, target->limit);
        becalm_queue_share(&state->waiting[i].queue, i);
    }
    return state->waiting != NULL;
}

/* The state of before if nothing changed, else a new one that goes on from there. NULL: no memory. */
static struct state *state_make(const struct state_plan *plan)
{
    if (state_fits(plan)) {
        state_use(plan->before);
        return plan->before;
    }
    if (state_fits_but_hosts(plan)) {
        return state_with_other_hosts(plan);
    }
    struct state *state = calloc(1, sizeof *state);
    size_t bytes = becalm_target_bytes(plan->policy, plan->hosts->host_count, plan->workers);
    void *memory = aligned_alloc(LINE, bytes);
    if (state == NULL || memory == NULL) {
        free(state);
        free(memory);
        return NULL;
    }
    atomic_init(&state->users, 1);
    state->memory = memory;
    state->policy = *plan->policy;
    int rc = becalm_target_init(&state->target, memory, plan->policy, plan->hosts->host_count, plan->workers);
    BECALM_ASSERT(rc == 0); /* the loader checked the policy */
    if (plan->before != NULL) {
        becalm_target_carry(&state->target, plan->policy, &plan->before->target, &plan->before->policy, plan->now);
        if (!same_hosts(plan)) {
            hosts_follow(&state->target, plan);
        }
    }
    share(state, plan);
    if (!waiting_make(state, plan->workers)) {
        state_drop(state);
        return NULL;
    }
    return state;
}

static const struct snapshot_target *target_before(const struct snapshot *before, const char *service,
                                                   const char *endpoint)
{
    for (uint32_t i = 0; before != NULL && i < before->target_count; i++) {
        const struct snapshot_target *target = &before->target[i];
        const char *name = target->endpoint == NULL ? NULL : target->endpoint->name;
        if (strcmp(target->service->name, service) == 0 &&
            (name == NULL ? endpoint == NULL : endpoint != NULL && strcmp(name, endpoint) == 0)) {
            return target;
        }
    }
    return NULL;
}

static const struct snapshot_service *service_before(const struct snapshot *before, const char *name)
{
    for (uint32_t i = 0; before != NULL && i < before->service_count; i++) {
        if (strcmp(before->service[i].service->name, name) == 0) {
            return &before->service[i];
        }
    }
    return NULL;
}

static bool target_make(const struct snapshot_plan *plan, struct snapshot *snapshot, uint32_t service_index,
                        const struct becalm_endpoint *endpoint)
{
    struct snapshot_service *service = &snapshot->service[service_index];
    struct snapshot_target *target = &snapshot->target[snapshot->target_count];
    const struct snapshot_target *before =
        target_before(plan->before, service->service->name, endpoint == NULL ? NULL : endpoint->name);
    struct becalm_policy policy;
    target->service = service->service;
    target->endpoint = endpoint;
    target->rules = endpoint == NULL ? &service->service->rules : &endpoint->rules;
    target->service_index = service_index;
    memset(&policy, 0, sizeof policy);
    becalm_rules_policy(snapshot->config, target->rules, &policy);
    target->state = state_make(&(struct state_plan){
        .rules = target->rules,
        .policy = &policy,
        .service = endpoint == NULL ? NULL : snapshot->target[service->first_target].state,
        .before = before == NULL ? NULL : before->state,
        .hosts = service,
        .hosts_before = service_before(plan->before, service->service->name),
        .workers = plan->workers,
        .now = plan->now,
    });
    if (before != NULL) {
        target->meters = before->meters;
        add_user(&target->meters->users);
    } else {
        target->meters = meters_make(plan->workers);
    }
    snapshot->target_count++; /* from here on freed with the snapshot */
    return target->state != NULL && target->meters != NULL;
}

static bool host_add(struct snapshot_service *service, uint32_t *size, const struct snapshot_host *host)
{
    if (service->host_count == BECALM_HOSTS_MAX) {
        return true; /* more are left out */
    }
    if (service->host_count == *size) {
        *size = *size == 0 ? 4 : *size * 2;
        struct snapshot_host *larger = realloc(service->host, *size * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        service->host = larger;
    }
    service->host[service->host_count++] = *host;
    return true;
}

/* A host that is a name becomes as many hosts as it has addresses; unknown yet, it holds its place. */
static bool hosts_make(const struct snapshot_plan *plan, struct snapshot_service *service)
{
    uint32_t size = 0;
    if (service->service->unlisted && !host_add(service, &size, &(struct snapshot_host){.name = "*"})) {
        return false;
    }
    for (uint32_t i = 0; !service->service->unlisted && i < service->service->host_count; i++) {
        struct snapshot_host host = {.name = service->service->hosts[i]};
        struct address address;
        bool parsed = address_parse(host.name, &address);
        BECALM_ASSERT(parsed); /* the loader checked it */
        const union address_socket *list = &address.socket;
        uint32_t count = 1;
        if (address.kind == ADDRESS_NAME) {
            count = plan->names.find(plan->names.self, address.name, address.port, &list);
        }
        host.known = count > 0;
        for (uint32_t k = 0; k < count || k == 0; k++) {
            if (count > 0) {
                host.address = list[k];
            }
            if (!host_add(service, &size, &host)) {
                return false;
            }
        }
    }
    service->host_name = calloc(service->host_count, sizeof *service->host_name);
    for (uint32_t i = 0; service->host_name != NULL && i < service->host_count; i++) {
        service->host_name[i] = service->host[i].name;
    }
    return service->host_name != NULL;
}

static bool service_make(const struct snapshot_plan *plan, struct snapshot *snapshot, uint32_t index)
{
    struct snapshot_service *service = &snapshot->service[index];
    service->service = becalm_config_service(snapshot->config, index);
    service->first_target = snapshot->target_count;
    snapshot->service_count = index + 1;
    if (!hosts_make(plan, service) || !target_make(plan, snapshot, index, NULL)) {
        return false;
    }
    for (uint32_t i = 0; i < service->service->endpoint_count; i++) {
        if (!target_make(plan, snapshot, index, &service->service->endpoints[i])) {
            return false;
        }
    }
    return true;
}

/* Sets the fallback target of each target. A service is never its own fallback, even if `defaults:` name it. */
static void fallbacks_find(struct snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        struct snapshot_target *target = &snapshot->target[i];
        const char *name = target->rules->fallback.service;
        for (uint32_t k = 0; name != NULL && k < snapshot->service_count; k++) {
            if (k != target->service_index && strcmp(snapshot->service[k].service->name, name) == 0) {
                target->fallback = &snapshot->target[snapshot->service[k].first_target];
            }
        }
    }
}

/* Workers connect to the store of keys by themselves: names are resolved for them. */
static bool key_hosts_make(const struct snapshot_plan *plan, struct snapshot *snapshot)
{
    const struct redis_place *place = plan->keyring == NULL ? NULL : &plan->keyring->site.place;
    snapshot->keyring = keyring_use(plan->keyring);
    for (uint32_t i = 0; place != NULL && i < place->host_count; i++) {
        struct address address;
        const union address_socket *list = NULL;
        if (!address_parse(place->host[i], &address) || address.kind != ADDRESS_NAME) {
            continue;
        }
        uint32_t count = plan->names.find(plan->names.self, address.name, address.port, &list);
        size_t size = (size_t)snapshot->key_host_count + count;
        struct snapshot_host *more = realloc(snapshot->key_host, (size + 1) * sizeof *more);
        if (more == NULL) {
            return false;
        }
        snapshot->key_host = more;
        for (uint32_t k = 0; k < count; k++) {
            more[snapshot->key_host_count++] =
                (struct snapshot_host){.address = list[k], .known = true, .name = place->host[i]};
        }
    }
    return true;
}

static bool is_certificate(const char *client_key)
{
    return client_key != NULL && strcmp(client_key, "certificate") == 0;
}

/* The name in "header:NAME". */
static struct becalm_text field_of(const char *client_key)
{
    const char *name = client_key == NULL || is_certificate(client_key) ? NULL : client_key + sizeof "header:" - 1;
    return (struct becalm_text){name, name == NULL ? 0 : strlen(name)};
}

/* ---- doors ---- */

uint16_t snapshot_door_of(const struct snapshot *snapshot, const char *address)
{
    uint32_t door = 0;
    while (door < snapshot->door_count && strcmp(snapshot->door[door].text, address) != 0) {
        door++;
    }
    BECALM_ASSERT(door < snapshot->door_count);
    return (uint16_t)door;
}

static bool door_add(struct snapshot *snapshot, const struct snapshot_door *like)
{
    struct snapshot_door *door = &snapshot->door[snapshot->door_count];
    *door = *like;
    door->text = strdup(like->text);
    door->name = like->name == NULL ? NULL : strdup(like->name);
    door->service = ROUTE_NONE;
    snapshot->door_count += door->text != NULL; /* from here on freed with the snapshot */
    return door->text != NULL && (like->name == NULL || door->name != NULL);
}

/* Sets the service behind a listener now; clients that it accepted before stay with their service. */
static bool door_settle(struct snapshot *snapshot, const struct becalm_listener *listener)
{
    const struct becalm_service *service = becalm_config_service(snapshot->config, listener->service);
    const char *name = service == NULL ? NULL : service->name;
    struct snapshot_door fresh = {.text = (char *)(uintptr_t)listener->address,
                                  .name = (char *)(uintptr_t)name,
                                  .role = listener->role,
                                  .passes = listener->passes_unlisted};
    for (uint32_t i = 0; i < snapshot->door_count; i++) {
        struct snapshot_door *door = &snapshot->door[i];
        if (strcmp(door->text, listener->address) == 0) {
            free(door->name);
            door->name = name == NULL ? NULL : strdup(name);
            door->role = listener->role;
            door->passes = listener->passes_unlisted;
            return name == NULL || door->name != NULL;
        }
    }
    return snapshot->door_count < UINT16_MAX && door_add(snapshot, &fresh);
}

static bool doors_make(struct snapshot *snapshot, const struct snapshot *before)
{
    const struct becalm_settings *settings = snapshot->settings;
    uint32_t old = before == NULL ? 0 : before->door_count;
    bool made = true;
    snapshot->door = calloc((size_t)old + settings->listener_count + 1, sizeof *snapshot->door);
    if (snapshot->door == NULL) {
        return false;
    }
    for (uint32_t i = 0; made && i < old; i++) {
        made = door_add(snapshot, &before->door[i]);
    }
    bool roles[2] = {false, false};
    for (uint32_t i = 0; made && i < settings->listener_count; i++) {
        made = door_settle(snapshot, &settings->listeners[i]);
        roles[settings->listeners[i].role] = true;
    }
    snapshot->joins = settings->join != 0 && roles[BECALM_ROLE_GATEWAY] && roles[BECALM_ROLE_SIDECAR];
    for (uint32_t i = 0; made && i < snapshot->door_count; i++) {
        struct snapshot_door *door = &snapshot->door[i];
        for (uint32_t k = 0; door->name != NULL && k < becalm_config_services(snapshot->config); k++) {
            bool it = strcmp(becalm_config_service(snapshot->config, k)->name, door->name) == 0;
            door->service = it ? k : door->service;
        }
    }
    return made;
}

struct snapshot *snapshot_make(const struct snapshot_plan *plan)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL) {
        return NULL;
    }
    atomic_init(&snapshot->users, 1);
    add_user(&plan->config->users);
    snapshot->shared = plan->config;
    snapshot->config = plan->config->config;
    snapshot->tls = plan->tls == NULL ? NULL : tls_set_use(plan->tls);
    snapshot->settings = becalm_config_settings(snapshot->config);
    snapshot->traces = snapshot->settings->tracing.endpoint != NULL;
    snapshot->trace_least = trace_least(snapshot->settings->tracing.share_ppm);
    snapshot->number = plan->before == NULL ? 1 : plan->before->number + 1;
    uint32_t services = becalm_config_services(snapshot->config);
    size_t targets = services;
    for (uint32_t i = 0; i < services; i++) {
        targets += becalm_config_service(snapshot->config, i)->endpoint_count;
    }
    snapshot->service = calloc(services > 0 ? services : 1, sizeof *snapshot->service);
    snapshot->target = calloc(targets > 0 ? targets : 1, sizeof *snapshot->target);
    snapshot->routes = route_table_make(snapshot->config);
    snapshot->trust[BECALM_ROLE_GATEWAY] = trust_make(snapshot->settings->trust_by_role[BECALM_ROLE_GATEWAY]);
    snapshot->trust[BECALM_ROLE_SIDECAR] = trust_make(snapshot->settings->trust_by_role[BECALM_ROLE_SIDECAR]);
    snapshot->client_field = field_of(snapshot->settings->client_key);
    snapshot->client_certificate = is_certificate(snapshot->settings->client_key);
    bool made = snapshot->service != NULL && snapshot->target != NULL && snapshot->routes != NULL &&
                snapshot->trust[BECALM_ROLE_GATEWAY] != NULL && snapshot->trust[BECALM_ROLE_SIDECAR] != NULL &&
                doors_make(snapshot, plan->before) && key_hosts_make(plan, snapshot);
    for (uint32_t i = 0; made && i < services; i++) {
        made = service_make(plan, snapshot, i);
    }
    if (!made) {
        snapshot_drop(snapshot);
        return NULL;
    }
    fallbacks_find(snapshot);
    return snapshot;
}

const char *snapshot_server_name(const struct becalm_service *service, const char *host, char name[256])
{
    if (value_srv(host) && service->tls.server_name == NULL) {
        return value_srv_domain(host);
    }
    const char *end = strrchr(host, ':');
    bool bracket = host[0] == '[';
    if (service->tls.server_name != NULL || end == NULL || strncmp(host, "unix:/", 6) == 0) {
        return service->tls.server_name != NULL ? service->tls.server_name : service->name;
    }
    snprintf(name, 256, "%.*s", (int)(end - host) - 2 * bracket, host + bracket);
    return name;
}

void snapshot_use(struct snapshot *snapshot)
{
    add_user(&snapshot->users);
}

void snapshot_drop(struct snapshot *snapshot)
{
    if (snapshot == NULL || !last_user(&snapshot->users)) {
        return;
    }
    for (uint32_t i = snapshot->target_count; i > 0; i--) {
        state_drop(snapshot->target[i - 1].state);
        meters_drop(snapshot->target[i - 1].meters);
    }
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        free(snapshot->service[i].host);
        free(snapshot->service[i].host_name);
    }
    free(snapshot->service);
    free(snapshot->target);
    route_table_free(snapshot->routes);
    for (uint32_t i = 0; i < snapshot->door_count; i++) {
        free(snapshot->door[i].text);
        free(snapshot->door[i].name);
    }
    free(snapshot->door);
    trust_free(snapshot->trust[BECALM_ROLE_GATEWAY]);
    trust_free(snapshot->trust[BECALM_ROLE_SIDECAR]);
    tls_set_drop(snapshot->tls);
    free(snapshot->key_host);
    keyring_drop(snapshot->keyring);
    shared_config_drop(snapshot->shared);
    free(snapshot);
}
