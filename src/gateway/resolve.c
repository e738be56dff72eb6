/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* strdup() */
#include "resolve.h"

#include <sys/select.h> /* ares.h needs its fd_set */

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#define RETRY_BASE (500 * BECALM_MS)
#define RETRY_CAP  (30 * BECALM_S)
#define EVENTS     16
#define ROUNDS_MAX 16 /* of reading events in one run; more come in the next */

/* Where a service is, by one of its SRV records. */
struct whereabouts {
    struct resolve *resolve;
    char *host;
    uint16_t port;
    uint16_t priority; /* the lower comes first */
    uint16_t weight;
};

struct resolve {
    struct resolve *next;
    struct resolver *resolver;
    char name[ADDRESS_NAME_MAX + 1];
    uint16_t port;
    resolve_fn *each;
    void *data;
    becalm_ns ask_at;            /* NEVER while a question is in flight */
    uint32_t failures;           /* in a row */
    bool asking;                 /* a question is in progress: c-ares has a pointer to this object */
    bool stopped;                /* to be freed as soon as c-ares has no pointer to it */
    struct whereabouts *records; /* of SRV, while their hosts are asked for; sorted by priority */
    uint32_t record_count;
    uint32_t record_next; /* the first record whose host has not been resolved yet */
    uint32_t open;        /* questions about hosts that are in flight */
    becalm_ns ttl;        /* the shortest TTL of the records that have come */
    uint32_t found_count;
    union address_socket *found;
    uint32_t count;
    union address_socket *addresses;
};

struct resolver {
    ares_channel channel; /* NULL until it is needed */
    char *servers;        /* NULL: those of the system */
    uint32_t timeout_ms;
    int epoll;
    struct resolve *names;
    becalm_ns now; /* of the present run */
    becalm_ns wake_at;
    uint64_t random;
    struct becalm_backoff_policy backoff;
};

/* c-ares tells which of its sockets to watch, and for which events; no events: c-ares is about to close the socket. */
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
    struct resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL) {
        return NULL;
    }
    resolver->wake_at = BECALM_NEVER;
    resolver->random = options->seed;
    resolver->timeout_ms = options->timeout_ms;
    becalm_backoff_defaults(&resolver->backoff);
    resolver->backoff.base = RETRY_BASE;
    resolver->backoff.cap = RETRY_CAP;
    resolver->epoll = epoll_create1(EPOLL_CLOEXEC);
    resolver->servers = options->servers == NULL ? NULL : strdup(options->servers);
    if (resolver->epoll < 0 || (resolver->servers == NULL) != (options->servers == NULL)) {
        resolver_free(resolver);
        return NULL;
    }
    return resolver;
}

/* Can the list of name servers be opened? A list that is missing counts as one. */
static bool has_descriptor(void)
{
    int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    }
    (void)close(fd);
    return true;
}

/* The channel of c-ares takes 74 KB, so it is made only if a policy may have names: most have addresses only. c-ares
 * reads the list of name servers now and never again, and takes 127.0.0.1 without a word where it has no descriptor
 * for that. So the list is opened once more behind it: a descriptor that another thread took meanwhile is missed then,
 * too. False: no memory, or the system refused. */
static bool channel_open(struct resolver *resolver)
{
    char files_then_dns[] = "fb";
    struct ares_options ares = {.lookups = files_then_dns,
                                .sock_state_cb = socket_watch,
                                .sock_state_cb_data = resolver,
                                .timeout = (int)resolver->timeout_ms,
                                .tries = 2};
    int mask = ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
    mask |= resolver->timeout_ms == 0 ? 0 : ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES;
    if (resolver->channel != NULL) {
        return true;
    }
    if (ares_init_options(&resolver->channel, &ares, mask) != ARES_SUCCESS) {
        resolver->channel = NULL;
        return false;
    }
    if (!has_descriptor() || (resolver->servers != NULL &&
                              ares_set_servers_ports_csv(resolver->channel, resolver->servers) != ARES_SUCCESS)) {
        ares_destroy(resolver->channel);
        resolver->channel = NULL;
    }
    return resolver->channel != NULL;
}

void resolver_prepare(struct resolver *resolver)
{
    (void)channel_open(resolver);
}

static void question_free(struct resolve *);

static void resolve_free(struct resolve *resolve)
{
    struct resolve **place = &resolve->resolver->names;
    while (*place != resolve) {
        place = &(*place)->next;
    }
    *place = resolve->next;
    question_free(resolve);
    free(resolve->addresses);
    free(resolve);
}

void resolver_free(struct resolver *resolver)
{
    if (resolver == NULL) {
        return;
    }
    for (struct resolve *resolve = resolver->names; resolve != NULL; resolve = resolve->next) {
        resolve->stopped = true; /* ares_destroy() ends its question; the result is ignored */
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
    free(resolver->servers);
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
        return errno != EAFNOSUPPORT; /* any other error says nothing about the address */
    }
    bool routed = connect(fd, &to->any, address_length(to)) == 0 || (errno != ENETUNREACH && errno != EADDRNOTAVAIL);
    (void)close(fd);
    return routed;
}

/* Removes addresses that this machine has no route to, unless none would be left. */
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

/* Adds the addresses of an answer to a list. */
static uint32_t addresses_add(const struct ares_addrinfo *info, uint16_t port, union address_socket *list,
                              uint32_t count)
{
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
    return count;
}

/* Sorts the addresses, and removes duplicates and addresses without a route. */
static uint32_t addresses_settle(union address_socket *list, uint32_t count)
{
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

static becalm_ns seconds_of(int ttl)
{
    return ttl < 0 ? 0 : (becalm_ns)ttl * BECALM_S;
}

/* The shortest of all that the answer rests on. */
static becalm_ns ttl_read(const struct ares_addrinfo *info)
{
    becalm_ns ttl = RESOLVE_TTL_MAX;
    for (const struct ares_addrinfo_node *node = info->nodes; node != NULL; node = node->ai_next) {
        ttl = becalm_ns_min(ttl, seconds_of(node->ai_ttl));
    }
    for (const struct ares_addrinfo_cname *cname = info->cnames; cname != NULL; cname = cname->next) {
        ttl = becalm_ns_min(ttl, seconds_of(cname->ttl));
    }
    return ttl;
}

/* Takes the addresses that were found. Returns why it could not, or NULL. */
static const char *resolve_take(struct resolve *resolve, bool *changed)
{
    union address_socket *list = resolve->found;
    uint32_t count = addresses_settle(list, resolve->found_count);
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

/* Frees memory that only one question needs. */
static void question_free(struct resolve *resolve)
{
    for (uint32_t i = 0; i < resolve->record_count; i++) {
        free(resolve->records[i].host);
    }
    free(resolve->records);
    free(resolve->found);
    resolve->records = NULL;
    resolve->found = NULL;
    resolve->record_count = resolve->found_count = 0;
}

/* The question is over: it failed, or all that was found is the answer. */
static void resolve_end(struct resolve *resolve, const char *why)
{
    if (!resolve->stopped) {
        struct resolve_result result = {.name = resolve->name};
        result.why = why == NULL ? resolve_take(resolve, &result.changed) : why;
        if (result.why == NULL) {
            resolve->failures = 0;
            result.wait = becalm_ns_max(resolve->ttl, RESOLVE_TTL_MIN);
        } else {
            result.wait = retry_wait(resolve);
        }
        result.addresses = resolve->addresses;
        result.count = resolve->count;
        resolve->ask_at = becalm_ns_after(resolve->resolver->now, result.wait);
        resolve->each(&result, resolve->data);
    }
    question_free(resolve);
    resolve->asking = false;
}

/* Notes the addresses of one host. */
static void host_found(struct resolve *resolve, const struct ares_addrinfo *info, uint16_t port)
{
    resolve->found_count = addresses_add(info, port, resolve->found, resolve->found_count);
    resolve->ttl = becalm_ns_min(resolve->ttl, ttl_read(info));
}

/* c-ares has an answer, or none. */
static void resolve_answered(void *data, int status, int timeouts, struct ares_addrinfo *info)
{
    struct resolve *resolve = data;
    (void)timeouts;
    if (status == ARES_SUCCESS) {
        host_found(resolve, info, resolve->port);
    }
    resolve_end(resolve, status == ARES_SUCCESS ? NULL : ares_strerror(status));
    ares_freeaddrinfo(info);
}

/* ---- SRV ---- */

static void records_ask(struct resolve *);

/* The host of one record is resolved, or failed. After the last one the question is over, or the records of the next
 * priority follow. */
static void record_answered(void *data, int status, int timeouts, struct ares_addrinfo *info)
{
    const struct whereabouts *record = data;
    struct resolve *resolve = record->resolve;
    (void)timeouts;
    if (status == ARES_SUCCESS && !resolve->stopped) {
        host_found(resolve, info, record->port);
    }
    ares_freeaddrinfo(info);
    resolve->open--;
    if (resolve->open == 0) {
        records_ask(resolve);
    }
}

/* Resolves all hosts of the best priority that is left, until one has an address. A record of weight 0 counts only if
 * its priority has no other records. */
static void records_ask(struct resolve *resolve)
{
    const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC};
    uint32_t from = resolve->record_next;
    uint32_t to = from;
    bool weighs = false;
    if (resolve->stopped || resolve->found_count > 0 || from == resolve->record_count) {
        resolve_end(resolve, NULL);
        return;
    }
    while (to < resolve->record_count && resolve->records[to].priority == resolve->records[from].priority) {
        weighs |= resolve->records[to].weight > 0;
        to++;
    }
    resolve->record_next = to;
    resolve->open = 1; /* an answer may come at once, and must not be taken for the last */
    for (uint32_t i = from; i < to; i++) {
        struct whereabouts *record = &resolve->records[i];
        if (record->weight > 0 || !weighs) {
            resolve->open++;
            ares_getaddrinfo(resolve->resolver->channel, record->host, NULL, &hints, record_answered, record);
        }
    }
    resolve->open--;
    if (resolve->open == 0) {
        records_ask(resolve);
    }
}

/* Behind the name at `at`, or NULL. */
static const unsigned char *name_skip(const unsigned char *at, const unsigned char *end)
{
    while (at < end && *at != 0 && *at < 0xc0) {
        at += *at + 1;
    }
    at += at < end && *at >= 0xc0 ? 2 : 1;
    return at <= end ? at : NULL;
}

/* The shortest TTL of the records in an answer, which c-ares does not report. */
static becalm_ns answer_ttl(const unsigned char *bytes, size_t length)
{
    const unsigned char *end = bytes + length;
    const unsigned char *at = bytes + HFIXEDSZ;
    becalm_ns ttl = RESOLVE_TTL_MAX;
    if (length < HFIXEDSZ) {
        return 0;
    }
    uint32_t questions = (uint32_t)bytes[4] << 8 | bytes[5];
    uint32_t answers = (uint32_t)bytes[6] << 8 | bytes[7];
    for (uint32_t i = 0; i < questions && at != NULL; i++) {
        at = name_skip(at, end);
        at = at == NULL || end - at < QFIXEDSZ ? NULL : at + QFIXEDSZ;
    }
    for (uint32_t i = 0; i < answers && at != NULL; i++) {
        at = name_skip(at, end);
        if (at == NULL || end - at < RRFIXEDSZ) {
            return 0;
        }
        uint32_t seconds = (uint32_t)at[4] << 24 | (uint32_t)at[5] << 16 | (uint32_t)at[6] << 8 | at[7];
        uint32_t data = (uint32_t)at[8] << 8 | at[9];
        ttl = becalm_ns_min(ttl, seconds > INT32_MAX ? 0 : (becalm_ns)seconds * BECALM_S); /* RFC 2181, 8 */
        at = (size_t)(end - at) < RRFIXEDSZ + data ? NULL : at + RRFIXEDSZ + data;
    }
    return ttl;
}

static int priority_compare(const void *a, const void *b)
{
    const struct whereabouts *x = a;
    const struct whereabouts *y = b;
    return (x->priority > y->priority) - (x->priority < y->priority);
}

/* A target of "." says that the service does not exist at this domain. */
static bool is_somewhere(const struct ares_srv_reply *one)
{
    return one->port != 0 && one->host[0] != '\0' && strcmp(one->host, ".") != 0;
}

/* Returns why they could not be kept, or NULL. */
static const char *records_keep(struct resolve *resolve, const struct ares_srv_reply *list)
{
    for (const struct ares_srv_reply *one = list; one != NULL; one = one->next) {
        resolve->record_count += is_somewhere(one);
    }
    uint32_t count = resolve->record_count < RESOLVE_ADDRESSES_MAX ? resolve->record_count : RESOLVE_ADDRESSES_MAX;
    resolve->record_count = 0;
    resolve->records = calloc(count + 1, sizeof *resolve->records);
    if (resolve->records == NULL) {
        return "no memory";
    }
    for (const struct ares_srv_reply *one = list; one != NULL && resolve->record_count < count; one = one->next) {
        struct whereabouts *record = &resolve->records[resolve->record_count];
        if (!is_somewhere(one)) {
            continue;
        }
        *record = (struct whereabouts){resolve, strdup(one->host), one->port, one->priority, one->weight};
        if (record->host == NULL) {
            return "no memory";
        }
        resolve->record_count++;
    }
    qsort(resolve->records, resolve->record_count, sizeof *resolve->records, priority_compare);
    return NULL;
}

static void srv_answered(void *data, int status, int timeouts, unsigned char *bytes, int length)
{
    struct resolve *resolve = data;
    struct ares_srv_reply *list = NULL;
    (void)timeouts;
    const char *why = status == ARES_SUCCESS ? NULL : ares_strerror(status);
    if (why == NULL && (status = ares_parse_srv_reply(bytes, length, &list)) != ARES_SUCCESS) {
        why = ares_strerror(status);
    }
    if (why == NULL) {
        resolve->ttl = answer_ttl(bytes, (size_t)length);
        resolve->record_next = 0;
        why = records_keep(resolve, list);
    }
    ares_free_data(list);
    if (why == NULL) {
        records_ask(resolve);
    } else {
        resolve_end(resolve, why);
    }
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
            resolve->ttl = RESOLVE_TTL_MAX;
            resolve->found = malloc(RESOLVE_ADDRESSES_MAX * sizeof *resolve->found);
            if (resolve->found == NULL) {
                resolve_end(resolve, "no memory");
            } else if (!channel_open(resolver)) {
                resolve_end(resolve, RESOLVE_NO_CHANNEL);
            } else if (resolve->port == RESOLVE_SRV) {
                ares_search(resolver->channel, resolve->name, C_IN, T_SRV, srv_answered, resolve);
            } else {
                ares_getaddrinfo(resolver->channel, resolve->name, NULL, &hints, resolve_answered, resolve);
            }
        }
    }
}

/* Frees names that were stopped. The resolver runs next at the earliest time of the names that are left. */
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
    if (resolver->channel != NULL) {
        events_read(resolver);
        ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* its own timeouts */
    }
    names_ask(resolver);
    names_sweep(resolver);
    if (resolver->channel != NULL && ares_timeout(resolver->channel, NULL, &left) != NULL) {
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
    resolver_prepare(resolver); /* else each question tries it again */
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
