/* SPDX-License-Identifier: MIT */
#include "resolve.h"

#include <sys/select.h> /* ares.h needs its fd_set */

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#define RETRY_BASE (500 * BECALM_MS)
#define RETRY_CAP  (30 * BECALM_S)
#define EVENTS     16
#define ROUNDS_MAX 16 /* of reading events in one run; more come in the next */

struct resolve {
    struct resolve *next;
    struct resolver *resolver;
    char name[ADDRESS_NAME_MAX + 1];
    uint16_t port;
    resolve_fn *each;
    void *data;
    becalm_ns ask_at;  /* NEVER while a question is in flight */
    uint32_t failures; /* in a row */
    bool asking;       /* c-ares has a pointer to this */
    bool stopped;      /* to be freed as soon as nobody has one */
    uint32_t count;
    union address_socket *addresses;
};

struct resolver {
    ares_channel channel;
    int epoll;
    struct resolve *names;
    becalm_ns now; /* of the present run */
    becalm_ns wake_at;
    uint64_t random;
    struct becalm_backoff_policy backoff;
};

/* c-ares tells which of its sockets to watch, and for what; none: it is about to close it. */
static void socket_watch(void *data, ares_socket_t socket, int readable, int writable)
{
    const struct resolver *resolver = data;
    struct epoll_event event = {.events = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0),
                                .data.fd = socket};
    if (event.events == 0) {
        (void)epoll_ctl(resolver->epoll, EPOLL_CTL_DEL, socket, NULL);
    } else if (epoll_ctl(resolver->epoll, EPOLL_CTL_MOD, socket, &event) != 0) {
        /* Should the kernel refuse, the question times out, and is asked again. */
        (void)epoll_ctl(resolver->epoll, EPOLL_CTL_ADD, socket, &event);
    }
}

struct resolver *resolver_make(const struct resolver_options *options)
{
    char files_then_dns[] = "fb";
    struct resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL) {
        return NULL;
    }
    resolver->wake_at = BECALM_NEVER;
    resolver->random = options->seed;
    becalm_backoff_defaults(&resolver->backoff);
    resolver->backoff.base = RETRY_BASE;
    resolver->backoff.cap = RETRY_CAP;
    resolver->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct ares_options ares = {.lookups = files_then_dns,
                                .sock_state_cb = socket_watch,
                                .sock_state_cb_data = resolver,
                                .timeout = (int)options->timeout_ms,
                                .tries = 2};
    int mask = ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
    mask |= options->timeout_ms == 0 ? 0 : ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES;
    if (resolver->epoll < 0 || ares_init_options(&resolver->channel, &ares, mask) != ARES_SUCCESS) {
        resolver->channel = NULL;
        goto fail;
    }
    if (options->servers != NULL && ares_set_servers_ports_csv(resolver->channel, options->servers) != ARES_SUCCESS) {
        goto fail;
    }
    return resolver;
fail:
    resolver_free(resolver);
    return NULL;
}

static void resolve_free(struct resolve *resolve)
{
    struct resolve **place = &resolve->resolver->names;
    while (*place != resolve) {
        place = &(*place)->next;
    }
    *place = resolve->next;
    free(resolve->addresses);
    free(resolve);
}

void resolver_free(struct resolver *resolver)
{
    if (resolver == NULL) {
        return;
    }
    for (struct resolve *resolve = resolver->names; resolve != NULL; resolve = resolve->next) {
        resolve->stopped = true; /* its question is ended by ares_destroy(), and nobody wants to hear */
    }
    if (resolver->channel != NULL) {
        ares_destroy(resolver->channel);
    }
    while (resolver->names != NULL) {
        resolve_free(resolver->names);
    }
    if (resolver->epoll >= 0) {
        (void)close(resolver->epoll);
    }
    free(resolver);
}

int resolver_fd(const struct resolver *resolver)
{
    return resolver->epoll;
}

becalm_ns resolver_wake_at(const struct resolver *resolver)
{
    return resolver->wake_at;
}

/* ---- an answer ---- */

static int socket_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(union address_socket));
}

/* Is there a route? Connecting a datagram socket asks the routing table and sends nothing. */
static bool has_route(const union address_socket *to)
{
    int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno != EAFNOSUPPORT; /* whatever else it is, it says nothing about the address */
    }
    bool routed = connect(fd, &to->any, address_length(to)) == 0 || (errno != ENETUNREACH && errno != EADDRNOTAVAIL);
    (void)close(fd);
    return routed;
}

/* Removes what this machine can't reach, if anything is left then. */
static uint32_t keep_routed(union address_socket *list, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (has_route(&list[i])) {
            union address_socket other = list[kept];
            list[kept++] = list[i];
            list[i] = other;
        }
    }
    return kept == 0 ? count : kept;
}

/* The addresses of an answer: sorted, each once. */
static uint32_t addresses_read(const struct ares_addrinfo *info, uint16_t port, union address_socket *list)
{
    uint32_t count = 0;
    for (const struct ares_addrinfo_node *node = info->nodes; node != NULL; node = node->ai_next) {
        union address_socket one;
        memset(&one, 0, sizeof one);
        one.any.sa_family = (sa_family_t)node->ai_family;
        if (node->ai_family == AF_INET) {
            one.v4.sin_addr = ((const struct sockaddr_in *)(const void *)node->ai_addr)->sin_addr;
            one.v4.sin_port = htons(port);
        } else if (node->ai_family == AF_INET6) {
            one.v6.sin6_addr = ((const struct sockaddr_in6 *)(const void *)node->ai_addr)->sin6_addr;
            one.v6.sin6_port = htons(port);
        } else {
            continue;
        }
        if (count < RESOLVE_ADDRESSES_MAX) {
            list[count++] = one;
        }
    }
    qsort(list, count, sizeof *list, socket_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || !address_equal(&list[kept - 1], &list[i])) {
            list[kept++] = list[i];
        }
    }
    kept = keep_routed(list, kept);
    qsort(list, kept, sizeof *list, socket_compare);
    return kept;
}

/* The shortest of all that the answer rests on, within the bounds. */
static becalm_ns ttl_read(const struct ares_addrinfo *info)
{
    becalm_ns ttl = RESOLVE_TTL_MAX;
    for (const struct ares_addrinfo_node *node = info->nodes; node != NULL; node = node->ai_next) {
        ttl = becalm_ns_min(ttl, node->ai_ttl < 0 ? 0 : (becalm_ns)node->ai_ttl * BECALM_S);
    }
    for (const struct ares_addrinfo_cname *cname = info->cnames; cname != NULL; cname = cname->next) {
        ttl = becalm_ns_min(ttl, cname->ttl < 0 ? 0 : (becalm_ns)cname->ttl * BECALM_S);
    }
    return becalm_ns_max(ttl, RESOLVE_TTL_MIN);
}

/* Takes the answer's addresses. Returns why it could not, or NULL. */
static const char *resolve_take(struct resolve *resolve, const struct ares_addrinfo *info, bool *changed)
{
    union address_socket list[RESOLVE_ADDRESSES_MAX];
    uint32_t count = addresses_read(info, resolve->port, list);
    if (count == 0) {
        return "the name has no addresses";
    }
    *changed = count != resolve->count || memcmp(list, resolve->addresses, count * sizeof *list) != 0;
    if (*changed) {
        union address_socket *copy = malloc(count * sizeof *copy);
        if (copy == NULL) {
            *changed = false;
            return "no memory";
        }
        memcpy(copy, list, count * sizeof *copy);
        free(resolve->addresses);
        resolve->addresses = copy;
        resolve->count = count;
    }
    return NULL;
}

static becalm_ns retry_wait(struct resolve *resolve)
{
    struct becalm_wait wait;
    resolve->failures += resolve->failures < UINT32_MAX;
    becalm_backoff_wait(&resolve->resolver->backoff,
                        &(struct becalm_backoff_draw){.n = resolve->failures,
                                                      .hint = BECALM_NEVER,
                                                      .random = becalm_rand_next(&resolve->resolver->random)},
                        &wait);
    return wait.wait;
}

/* c-ares has an answer, or none. */
static void resolve_answered(void *data, int status, int timeouts, struct ares_addrinfo *info)
{
    struct resolve *resolve = data;
    (void)timeouts;
    if (!resolve->stopped) {
        struct resolve_result result = {.name = resolve->name};
        result.why = status == ARES_SUCCESS ? resolve_take(resolve, info, &result.changed) : ares_strerror(status);
        if (result.why == NULL) {
            resolve->failures = 0;
            result.wait = ttl_read(info);
        } else {
            result.wait = retry_wait(resolve);
        }
        result.addresses = resolve->addresses;
        result.count = resolve->count;
        resolve->ask_at = becalm_ns_after(resolve->resolver->now, result.wait);
        resolve->each(&result, resolve->data);
    }
    resolve->asking = false;
    ares_freeaddrinfo(info);
}

/* ---- running ---- */

static void events_read(struct resolver *resolver)
{
    struct epoll_event events[EVENTS];
    int count = EVENTS;
    for (int round = 0; round < ROUNDS_MAX && count > 0; round++) {
        count = epoll_wait(resolver->epoll, events, EVENTS, 0);
        for (int i = 0; i < count; i++) {
            bool readable = (events[i].events & ~(uint32_t)EPOLLOUT) != 0; /* errors are read */
            bool writable = (events[i].events & EPOLLOUT) != 0;
            ares_process_fd(resolver->channel, readable ? events[i].data.fd : ARES_SOCKET_BAD,
                            writable ? events[i].data.fd : ARES_SOCKET_BAD);
        }
    }
    if (count > 0) {
        resolver->wake_at = resolver->now;
    }
}

static void names_ask(struct resolver *resolver)
{
    const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC};
    for (struct resolve *resolve = resolver->names; resolve != NULL; resolve = resolve->next) {
        if (!resolve->asking && !resolve->stopped && resolve->ask_at <= resolver->now) {
            resolve->asking = true;
            resolve->ask_at = BECALM_NEVER;
            ares_getaddrinfo(resolver->channel, resolve->name, NULL, &hints, resolve_answered, resolve);
        }
    }
}

/* Frees who was stopped; the next time to run is the first of all that are left. */
static void names_sweep(struct resolver *resolver)
{
    struct resolve *next;
    for (struct resolve *resolve = resolver->names; resolve != NULL; resolve = next) {
        next = resolve->next;
        if (resolve->stopped && !resolve->asking) {
            resolve_free(resolve);
        } else {
            resolver->wake_at = becalm_ns_min(resolver->wake_at, resolve->ask_at);
        }
    }
}

void resolver_run(struct resolver *resolver, becalm_ns now)
{
    struct timeval left;
    resolver->now = now;
    resolver->wake_at = BECALM_NEVER;
    events_read(resolver);
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* its own timeouts */
    names_ask(resolver);
    names_sweep(resolver);
    if (ares_timeout(resolver->channel, NULL, &left) != NULL) {
        becalm_ns wait = (becalm_ns)left.tv_sec * BECALM_S + ((becalm_ns)left.tv_usec + 1) * BECALM_US;
        resolver->wake_at = becalm_ns_min(resolver->wake_at, becalm_ns_after(now, wait));
    }
}

struct resolve *resolve_start(struct resolver *resolver, const struct resolve_request *request, becalm_ns now)
{
    struct resolve *resolve = calloc(1, sizeof *resolve);
    size_t length = strlen(request->name);
    BECALM_ASSERT(length <= ADDRESS_NAME_MAX);
    if (resolve == NULL) {
        return NULL;
    }
    memcpy(resolve->name, request->name, length);
    resolve->resolver = resolver;
    resolve->port = request->port;
    resolve->each = request->each;
    resolve->data = request->data;
    resolve->ask_at = now;
    resolve->next = resolver->names;
    resolver->names = resolve;
    resolver->wake_at = becalm_ns_min(resolver->wake_at, now);
    return resolve;
}

/* The run frees it: a question may be in flight, and a run may be walking over the names. */
void resolve_stop(struct resolver *resolver, struct resolve *resolve)
{
    resolve->stopped = true;
    resolve->ask_at = BECALM_NEVER;
    if (!resolve->asking) {
        resolver->wake_at = 0;
    }
}
