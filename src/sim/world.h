/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_WORLD_H
#define BECALM_SIM_WORLD_H

/* Runs a scenario in virtual time. The world is a driver like the gateway: it feeds the engine events and carries out
 * its actions. There is no policy arithmetic in this folder. */

#include <becalm/call.h>

#include "scenario/scenario.h"

/* The operations that a service with effects executed: each should have been executed once. */
struct world_effects {
    uint64_t operations; /* executed at least once */
    uint64_t executed;   /* in all */
    uint64_t repeated;   /* operations executed more than once */
    uint64_t most;       /* the most often that one was */
};

/* A service is up again, and its former clients reconnect. */
struct world_recovery {
    becalm_ns at;
    uint64_t worst_100ms; /* the most connections that reached it in 100 ms */
    becalm_ns fell_at;    /* under them; BECALM_NEVER: it did not */
};

/* The retries that all callers together leased from a service's shared budget. */
struct world_shared {
    uint64_t instances; /* instances that ever leased; 0: there is no shared budget */
    uint64_t asked;     /* requests to the store, and answers that were in time */
    uint64_t answered;
    becalm_ns degraded; /* time without a lease, added up over the instances */
};

/* Attempts sent: first ones, and retries. */
struct world_sent {
    uint64_t first;
    uint64_t retries;
};

/* The counts of a service in each second. */
struct world_service {
    uint64_t *arrivals; /* attempts that a host accepted */
    uint64_t *refused;  /* attempts whose connection was refused: no process listened, so no request was sent */
    uint64_t *retried;  /* retries sent to it */
    uint64_t *good;     /* attempts whose callers got a good answer, by the time of the answer; `failed`: attempts that
                           ended with a failure */
    uint64_t *failed;
    /* At the end of each second: */
    uint64_t *queue;            /* requests that wait, in its own queues and in the gate */
    uint64_t *budget_ppm;       /* how full the budgets of its callers are, in the mean */
    uint64_t *breaker_open_ppm; /* the share of its callers whose breaker is not closed */
    uint64_t *limit;            /* the gate's, or else the mean of its callers'; UINT32_MAX: none */
    uint64_t *degraded;         /* instances without a lease of its shared budget */
    uint64_t *answers;          /* answers in progress: their heads have come, their bodies not yet to the end */
    uint64_t arrivals_fault; /* caused by calls begun from 1 s after the fault's start to its end; without a fault, by
                                all calls */
    uint64_t refused_fault;  /* the same for refused attempts */
    uint64_t first;          /* first attempts sent to it, and retries */
    uint64_t retries;
    struct world_sent *endpoint; /* the same for each of its endpoints, then for calls that belong to no endpoint */
    uint64_t ended[BECALM_REASON_COUNT]; /* calls to it, by reason */
    uint64_t limited;                    /* requests that it answered with 429: their client's quota was used up */
    uint64_t connected_most; /* the most connections to it at once; `waited`: attempts that waited for a connection */
    uint64_t waited;
    uint64_t answers_most;                    /* the most answers in progress at once */
    uint64_t gate_ended[BECALM_REASON_COUNT]; /* the same for the gate in front of it; calls of the gate are parts of
                                                 the callers' calls */
    struct world_shared shared;
    struct world_effects effects;    /* all 0 if the service has no effects */
    struct world_recovery *recovery; /* of a service that clients keep connections to */
    uint32_t recovery_count;
};

/* When a call began: before the fault, in it, in the 60 s after it, or even later; see scenario_fault_span(). */
enum world_phase { WORLD_BEFORE, WORLD_IN_FAULT, WORLD_AFTER, WORLD_LATER };
#define WORLD_PHASES    4
#define WORLD_AFTER_FOR (60 * BECALM_S)

struct world_tally {
    uint64_t begun;
    uint64_t good;
};

#define WORLD_LATENCIES 2048u /* buckets of a histogram */

/* Of client calls that succeeded. */
struct world_latency {
    uint64_t sum_us;
    uint64_t count;
    uint64_t most_us;
    uint64_t bucket[WORLD_LATENCIES]; /* read it by world_latency_us() */
};

struct world_client {
    uint64_t *begun;
    uint64_t *good;                         /* by the second in which the call began */
    struct world_tally phase[WORLD_PHASES]; /* by the instant; all are WORLD_BEFORE where there is no fault */
    uint64_t calls;
    uint64_t calls_fault; /* begun in that same window */
    uint64_t local_fault; /* of these, those that failed before any attempt was sent, by the caller's own rules */
    uint64_t ended;       /* calls that have, well or not, and when the last of them did */
    becalm_ns ended_at;
    struct world_sent sent;       /* attempts of its callers */
    struct world_latency latency; /* of its calls that succeeded */
};

struct world_result {
    uint32_t seconds;
    uint64_t events;
    becalm_ns stuck_at; /* BECALM_NEVER: it was not */
    struct world_latency latency;
    struct world_latency latency_fault; /* of calls begun in the window of the fault */
    struct world_service *service;
    struct world_client *client;
};

/* One step of one call: the event and the engine's action. The pointers are valid until the callback returns. */
struct world_trace {
    uint64_t call;                    /* the client's call that it is part of, the n-th of the run */
    uint64_t part;                    /* the call itself, the n-th on all hops */
    const char *from;                 /* a client or a service */
    const char *to;                   /* a service */
    const char *endpoint;             /* NULL: the service itself */
    bool is_gate;                     /* the call belongs to the gate in front of `to` */
    uint32_t attempt;                 /* HEAD, DONE: which one */
    const struct becalm_event *event; /* event->at.now is the instant */
    const struct becalm_action *action;
    const struct becalm_record *record;
};

/* Every hop runs `policy`, or that of the service it leads to; hops that must not retry get it with retries off; gates
 * get `gate_policy`. */
struct world_options {
    const struct becalm_policy *policy;
    const struct becalm_policy *const *policy_to; /* by world_target(); NULL, also one of them: `policy` */
    const struct becalm_policy *gate_policy;
    const struct becalm_policy *const *gate_policy_to; /* by world_target(); NULL, also one of them: `gate_policy` */
    bool auto_limit;                          /* the limit's kind is not set: it is slots for callers in role gateway */
    const bool *auto_limit_to;                /* by world_target(); NULL: `auto_limit` */
    enum becalm_budget_level level;           /* whether endpoints share their service's budget */
    const enum becalm_budget_level *level_to; /* by world_target(); NULL: `level` */
    bool carries_deadlines; /* deadlines are passed down the graph and marks up, which only Becalm does */
    bool carries_marks;
    bool joins;        /* sidecars join calls to requests by trace ids, where applications pass on nothing else */
    bool marks_always; /* every mark stops retries as a mark of overload does; Becalm does not do this */
    uint64_t seed;
    uint32_t instant_max; /* events in one instant, then time stands still; 0: WORLD_INSTANT_MAX */
    void (*trace)(void *self, const struct world_trace *); /* NULL: none; called for every step of every call */
    void *trace_self;
    bool (*progress)(void *self, becalm_ns now); /* NULL: none; called once for every virtual second; false: stop */
    void *progress_self;
};

/* Clients call until the scenario's length; then the calls in progress end, within WORLD_DRAIN, while faults stay as
 * they are. Events in that time count in no second, but in every sum. */
#define WORLD_DRAIN (60 * BECALM_S)

/* Services and their endpoints in one row: the number of one of them; endpoint 0 is the service itself, and the number
 * behind the last service is how many there are. */
uint32_t world_target(const struct scenario *, uint32_t service, uint32_t endpoint);

/* The latency that `ppm` of the calls that succeeded do not exceed, or up to 1/64 more; 0 without any. */
uint64_t world_latency_us(const struct world_latency *, uint32_t ppm);

/* So much happens in one instant only if nothing that goes round takes any time: callers that think for 0s and are
 * refused at once, or reconnections that wait for 0s. Then the world stops. */
#define WORLD_INSTANT_MAX 10000000u

/* 0, BECALM_ENOMEM, or BECALM_EINVAL if time stands still (result->stuck_at is when) or progress() said to stop. */
int world_run(const struct scenario *, const struct world_options *, struct world_result *);
void world_result_free(const struct scenario *, struct world_result *);

#endif
