/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_CLIENT_H
#define BECALM_CURL_CLIENT_H

/* The struct of a client. Targets never change after the client was made. Handles and sites come and go under its
 * mutex, which is never held while anything waits. */

#include "client_store.h"
#include "handle.h"
#include "site.h"

#include "policy/routing/route.h"
#include "run/lines.h"

#include <becalm/curl.h>

#include <pthread.h>

/* Where calls to a target go: scheme, host and port of their URLs. Most targets have one origin. A target may have
 * many, and if the host of one restarts, calls to the others must not wait. */
struct client_origin {
    struct client_origin *next;
    bool https;
    char *host;
    struct becalm_target target; /* the target's, with a restart of its own */
    struct line_parking line;
    void *memory;
};

#define CLIENT_ORIGINS_MAX 64u /* of a target; calls to others do not wait for a host */

/* A service's own rules, or one endpoint of it. */
struct client_target {
    const char *service;
    const char *endpoint;             /* NULL: the service's own rules */
    const struct becalm_rules *rules; /* of the policy; NULL: of none */
    struct becalm_retry_on retry_on;
    becalm_ns connect_timeout;
    bool keys_count; /* an idempotency key allows retries */
    struct becalm_policy policy;
    struct becalm_target target;
    void *memory;
    struct lines *lines; /* its own, or those of its service, if it has its service's limit */
    struct lines own_lines;
    struct client_origin *origins; /* with the client's mutex */
    uint32_t origin_count;
    struct site *sites; /* the first is the one without an operation */
};

struct becalm_client {
    struct becalm_client_options options;
    struct becalm_config *config; /* NULL: built in code */
    struct route_table *routes;   /* NULL in that case, too */
    struct client_target *target; /* in the file's order; the last is for requests that belong to no service */
    uint32_t target_count;
    uint32_t *service_target; /* a service's own; its endpoints follow */
    char *service_name;       /* built in code: its copy */
    bool by_method;           /* the target of a request depends on its method */
    uint64_t seed;
    struct client_store *store; /* that it shares budgets in; NULL: none */
    pthread_mutex_t mutex;      /* for all below */
    struct handles handles;
    char *operation[BECALM_OPERATIONS_MAX];
    uint32_t operation_count;
};

/* The time, random bits, and a number for this thread. `stream` is a number that no other caller uses at the same time.
 */
struct becalm_moment client_moment(const struct becalm_client *, uint64_t stream);

/* Is this the target of requests that belong to no service? */
bool client_is_unrouted(const struct becalm_client *, const struct client_target *);

/* The record of a handle; a new one is made if there is none. NULL: out of memory. Call it with the mutex held. */
struct handle *client_handle(struct becalm_client *, CURL *);

/* The target that a request belongs to. */
struct client_target *client_find(const struct becalm_client *, struct becalm_text url, struct becalm_text method,
                                  const struct curl_slist *headers);

/* Where the call to this target goes, for the line in which it waits for a host; NULL: it does not wait for one. */
struct client_origin *client_origin_of(struct becalm_client *, struct client_target *, struct becalm_text url);

/* The counts of calls with this operation (one of the client's own, or NULL) to the target. The one without an
 * operation if there is no memory for another. */
struct site *client_site(struct becalm_client *, struct client_target *, const char *operation);

/* The client's copy of an operation's name; NULL if it has too many already, or no memory. With the mutex. */
const char *client_operation(struct becalm_client *, const char *operation);

#endif
