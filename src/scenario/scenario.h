/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_SCENARIO_H
#define BECALM_SIM_SCENARIO_H

/* A scenario: the description of a simulated world. It is a YAML file, checked as strictly as a policy;
 * docs/simulation.md explains its keys. */

#include <becalm/config.h>

#include "dist.h"

#define SCENARIO_NONE         UINT32_MAX
#define SCENARIO_SERVICES_MAX 1000u
#define SCENARIO_CLIENTS_MAX  1000u

/* Which host of the engine a caller is. */
enum scenario_role {
    ROLE_LIBRARY, /* libbecalm-curl, run, exec: limit and queue are those of a single caller; no second attempt is sent
                     beside an overdue one, unless the policy hedges */
    ROLE_SIDECAR, /* `becalm proxy` with role: sidecar: limit and queue are the same */
    ROLE_GATEWAY  /* `becalm proxy` with role: gateway: the limit is slots, the queue is a gate */
};

/* Which headers an application passes on, from a request to its own calls and back. */
enum scenario_passes {
    PASSES_ALL,   /* deadlines down, marks up */
    PASSES_TRACE, /* a trace id down and nothing up: sidecars may join by it */
    PASSES_NOTHING
};

/* A part of a service whose requests differ from the rest. */
struct scenario_endpoint {
    const char *name;
    uint32_t share_ppm; /* of the requests to its service */
    struct dist time;
    struct dist body; /* how long its answers go on after their head; always 0: they come whole */
    uint32_t error_ppm;
    uint32_t hang_ppm;
    bool hang_first;
    becalm_ns hang;
};

struct scenario_service {
    const char *name;
    uint32_t workers;   /* per host; 0: any number */
    uint32_t hosts;     /* behind a balancer */
    uint32_t queue_max; /* per host; UINT32_MAX: no bound */
    bool expiry;        /* a request that its caller has given up is not served */
    bool lifo;          /* the latest first */
    bool codel; /* a request that has waited for over 20 ms is refused while the queue has lasted for over 100 ms; else
                   for over 1 s */
    bool gate;  /* a Becalm gateway stands in front of the service */
    bool gate_retries;       /* that gateway retries, as the policy says */
    uint32_t instances;      /* as a caller: each with an engine state of its own */
    enum scenario_role role; /* of these callers */
    enum scenario_passes passes;
    struct dist time;
    struct dist body;   /* how long its answers go on after their head; always 0: they come whole */
    uint32_t error_ppm; /* of its own answers */
    uint32_t hang_ppm;  /* of the attempts that reach it: `hang` is added */
    bool hang_first;    /* only first attempts hang */
    becalm_ns hang;
    uint64_t quota_milli;     /* requests per second that it takes of each client, in thousandths; 0: any number */
    uint32_t quota_burst;     /* the most requests at once */
    becalm_ns quota_after;    /* the Retry-After of its answers with 429; 0: none */
    bool row;                 /* one versioned row: an attempt reads it, then writes with the version that it saw */
    uint32_t accept_max;      /* connections that it accepts in 100 ms; with more it fails; SCENARIO_NONE: any number */
    becalm_ns restart;        /* how long it is down after that */
    bool effect;              /* its requests have an effect that must not happen twice */
    const char *const *calls; /* services that it calls for each request, all at once; ends with NULL; may be NULL */
    uint32_t fan_out;         /* how often it calls each */
    const struct scenario_endpoint *endpoints; /* the rest of the requests is as the service itself says */
    uint32_t endpoint_count;
};

struct scenario_client {
    const char *name;
    const char *to;
    /* Calls per second of all callers, in thousandths, Poisson; 0: each has a loop, or connections. */
    uint64_t rate_milli;
    struct dist think; /* loop: from an answer to the same caller's next call */
    uint32_t calls;    /* of each caller, then it stops (with a rate: as many in all); 0: no end */
    uint32_t callers;  /* instances, chosen at random */
    enum scenario_role role;
    const uint32_t *share_ppm; /* of its calls to each endpoint of the service; NULL: as the service says */
    becalm_ns timeout;         /* of its attempts, in place of the policy's; 0: as the policy says */
    bool retries;              /* false: this hop makes one attempt, with any policy */
    uint32_t connections;      /* that each caller keeps open, instead of calling; 0: it calls */
    bool key;                  /* its requests carry an idempotency key, one for each operation */
    bool repeats; /* a caller's next call after a failed one is the same operation; false: each is its own */
};

/* Where the messages of one link differ from the rest. */
struct scenario_link {
    const char *name;
    const char *from; /* a client or a service */
    const char *to;   /* a service */
    becalm_ns latency;
    uint32_t loss_ppm;
};

enum fault_kind {
    FAULT_CAPACITY,
    FAULT_ERRORS,
    FAULT_DEAD,
    FAULT_LATENCY,
    FAULT_HANG,
    FAULT_BAD_HOSTS,
    FAULT_CUT_CALLERS,
    FAULT_REFUSE,
    FAULT_KILL_HOSTS,
    FAULT_ROLLING,
    FAULT_PARTITION,
    FAULT_SURGE,
    FAULT_STORE,
    FAULT_SWALLOW,
    FAULT_LOSE_CONNECTIONS,
    FAULT_KILL_STORE,
    FAULT_HANG_STORE,
    FAULT_EMPTY_STORE
};
#define FAULT_KIND_COUNT (FAULT_EMPTY_STORE + 1)
extern const char *const scenario_fault_words[]; /* as files write them, in this order; ends with NULL */

struct scenario_fault {
    const char *name;
    const char *service;
    enum fault_kind kind;
    becalm_ns at;
    becalm_ns length;
    uint32_t ppm;          /* capacity left; share of errors, hangs, callers cut off */
    uint32_t count;        /* hosts: bad, or killed; connections that are lost */
    becalm_ns latency;     /* added; of a store, BECALM_NEVER: it is away */
    becalm_ns age;         /* of the file that a killed store comes back with; BECALM_NEVER: there is none */
    becalm_ns each;        /* rolling: how long each host is down */
    becalm_ns on, off;     /* the fault comes and goes in these periods; on is 0: it stays */
    bool silent;           /* callers cut off: their packets vanish, instead of being refused at once */
    const char *from;      /* partition: only from there; NULL: from everywhere */
    const char *client;    /* surge: the client whose calls increase */
    uint32_t factor_milli; /* surge: times so many */
};

/* A policy of the scenario itself, to be run by its name. The reference policies seldom differ in the point that a
 * scenario is about. */
struct scenario_policy {
    const char *name;
    struct becalm_policy policy;
    enum becalm_budget_level level;
    bool auto_limit;  /* the limit's kind is not written */
    bool has_timeout; /* the policy has a timeout; else the scenario's is used */
    bool has_deadline;
    bool carries;      /* deadlines travel down the graph, and marks up */
    bool joins;        /* also past applications that pass on a trace id alone, where they have sidecars */
    bool marks_always; /* every mark is obeyed, also one that says no more than that retries were spent */
};

struct scenario {
    const char *name;
    const char *about;
    becalm_ns length;
    uint32_t attempts; /* of the reference policies */
    becalm_ns timeout; /* of an attempt; BECALM_NEVER: none */
    becalm_ns link;    /* one way: the mean, and the standard deviation; 0: always the same */
    becalm_ns link_deviation;
    uint32_t loss_ppm; /* of all messages */
    uint32_t pool_max; /* connections of one proxy to one host; 0: connections are not modelled; UINT32_MAX: any */
    bool shared;       /* HTTP/2: attempts share them ... */
    uint32_t streams;  /* ... at most so many at once */
    const struct scenario_link *links;
    uint32_t link_count;
    const struct scenario_service *services;
    uint32_t service_count;
    const struct scenario_client *clients;
    uint32_t client_count;
    const struct scenario_fault *faults;
    uint32_t fault_count;
    const struct scenario_policy *policies;
    uint32_t policy_count;
    bool references; /* the reference policies are compared with these too; without any of its own they always are */
};

/* A loaded file, and the memory of the scenario in it. */
struct scenario_file;

/* Loads a file, or text that is already in memory (`name` is for the diagnostics). 0, BECALM_EPARSE with errors in
 * *diags, BECALM_EIO with errno and a diagnostic, or BECALM_ENOMEM. `options` may be NULL; its overrides are
 * "services.api.errors=30%" and the like. */
int scenario_load(struct scenario_file **, const char *path, const struct becalm_load_options *, struct becalm_diags *);
int scenario_parse(struct scenario_file **, const char *name, const char *text, size_t length,
                   const struct becalm_load_options *, struct becalm_diags *);
void scenario_free(struct scenario_file *);

/* Do some answers of the service, or of an endpoint of it, go on after their head? */
bool scenario_streams(const struct scenario_service *);

/* The number of a service; SCENARIO_NONE: there is none of that name. */
uint32_t scenario_find(const struct scenario *, const char *service);

/* The time that all figures call "the fault": the earliest fault, with all faults that touch or overlap it, and so on.
 */
struct fault_span {
    uint32_t first; /* the earliest; of several at the same instant the first of the file */
    uint32_t count; /* how many are part of it */
    becalm_ns at;
    becalm_ns over_at; /* may be behind the end of the run */
};

/* False: there is no fault. */
bool scenario_fault_span(const struct scenario *, struct fault_span *);
bool fault_span_has(const struct fault_span *, const struct scenario_fault *);

/* Valid as long as the file. */
const struct scenario *scenario_of(const struct scenario_file *);

#endif
