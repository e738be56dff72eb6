/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_WORLD_INTERNAL_H
#define BECALM_SIM_WORLD_INTERNAL_H

/* Types and functions that the files of the world share. Each file has one concept: clock.c (the event queue), pool.c
 * (memory for calls and attempts), hop.c (calls and their policy), server.c (services, hosts, queues), client.c
 * (callers), fault.c (faults), effect.c (effects that must not happen twice), connection.c (clients that stay
 * connected), budget_store.c (leases of shared budgets), pooled.c (connections of calls), series.c (statistics),
 * world.c (all of it together). */

#include "world.h"

#include <becalm/call.h>

#define NOTHING UINT32_MAX

/* ---- clock.c ---- */

enum event_kind {
    CLIENT_CALLS,
    CALLER_CALLS,
    ATTEMPT_ARRIVES,
    ATTEMPT_SERVED,
    ATTEMPT_ANSWERED,
    ATTEMPT_ENDED,
    ATTEMPT_LEFT,
    ATTEMPT_ACCEPTED,
    ATTEMPT_DIALS,
    ATTEMPT_CONNECTED,
    ATTEMPT_NOT_CONNECTED,
    POOLED_SERVES,
    LINE_WAKES,
    CALL_WAKES,
    FAULT_TURNS,
    CONNECTION_TRIES,
    CONNECTION_ARRIVES,
    CONNECTION_ANSWERED,
    SERVICE_RISES,
    TENANT_ASKS,
    STORE_ASKED,
    TENANT_ANSWERED,
    TENANT_CONNECTS,
    TENANT_LINKED,
    TENANT_LOSES,
    STORE_SAVES
};

struct event {
    becalm_ns at;
    uint64_t order; /* the earlier of two events at the same instant is the one that was planned first */
    enum event_kind kind;
    uint32_t id;
    uint32_t generation; /* of the object that the id names: an event of an older generation is void. CALLER_CALLS,
                            CONNECTION_*: the client */
};

/* A FIFO of events with one fixed delay. Their numbers begin with 0 and never wrap. */
struct clock_ring {
    becalm_ns ahead;
    uint64_t first, end;
    uint64_t size; /* a power of two */
    struct event *event;
};

#define CLOCK_RINGS_MAX 8u

struct clock {
    becalm_ns now;
    becalm_ns end_at;
    uint64_t order;
    struct clock_ring ring[CLOCK_RINGS_MAX];
    uint32_t rings;
    const struct clock_ring *latest; /* from where the latest event was taken; NULL: from the heap */
    struct event *heap;              /* events before slot `next_slot` */
    size_t count, size;
    uint64_t next_slot; /* from 0 on, as long as the run */
    uint64_t second;    /* of the first level: next_slot is in it, or at its end */
    uint32_t *fine;     /* the slots of both levels: their latest block */
    uint32_t *coarse;
    uint64_t *fine_bits; /* which of them have any */
    uint64_t *coarse_bits;
    struct block *block;
    uint32_t blocks, block_size;
    uint32_t free; /* the first block that may be used again */
    bool no_memory;
};

/* False: no memory; clock_free() in both cases. */
bool clock_make(struct clock *, becalm_ns end_at);
/* Many events will be planned with this delay. Any number of delays may be named; only the first few get a ring, and
 * rings only change the speed. */
void clock_expect(struct clock *, becalm_ns ahead);
/* The event must not be before `now`; an event beyond the end of the run is dropped. */
void clock_plan(struct clock *, struct event);
/* Takes the next event and moves `now` to it. False: there is none. */
bool clock_next(struct clock *, struct event *);
/* Looks ahead in the ring or heap that the latest event came from. Ring: 0 is the next event, 1 the one after it, and
 * so on. Heap: 0 is the next event, and one of 1 to 4 follows it. NULL: not known. */
const struct event *clock_peek(const struct clock *, size_t at);
void clock_free(struct clock *);

/* ---- pool.c ---- */

/* Asks for memory that will be used soon. */
static inline void fetch(const void *from, size_t bytes)
{
    for (size_t line = 0; line < bytes; line += 64) {
        __builtin_prefetch((const unsigned char *)from + line, 1);
    }
}

struct pool {
    size_t item;
    void **chunk;
    uint32_t chunks;
    uint32_t used; /* ever; below that, those in `free` are free again */
    uint32_t *free;
    uint32_t free_count;
};

/* NOTHING: no memory. Places never move: a gate's queue links the calls themselves. */
uint32_t pool_take(struct pool *);
void pool_give(struct pool *, uint32_t id);
void *pool_at(const struct pool *, uint32_t id);
void pool_free(struct pool *);

/* Memory that is given out in pieces of any size, 64-aligned, and freed all at once. */
struct slab {
    void *chunk;  /* the latest; each begins with a pointer to the one before */
    size_t used;  /* of that */
    size_t given; /* of all of them */
};

/* NULL: no memory. At most SLAB_MAX bytes. */
#define SLAB_MAX (UINT64_C(1) << 24)
void *slab_take(struct slab *, size_t bytes);
void slab_free(struct slab *);

/* ---- hop.c ---- */

struct link {
    struct dist latency; /* one way */
    uint32_t loss_ppm;
    bool cut; /* a partition: nothing comes through */
};

/* The rules of a caller for a service, or for one endpoint of it. */
struct rules {
    struct becalm_policy policy;
    enum becalm_budget_level level;
};

/* A caller's state of a target. */
struct state {
    struct becalm_target target;
    struct becalm_limit limit;
    struct becalm_mark mark;
    struct becalm_queue *queue; /* NULL: no call has had to wait yet, or none may */
    struct state *limited;      /* the state whose limit and queue are used: this one, or that of its service */
    struct becalm_parking line; /* calls that wait for a host that restarts; unused if the target has no `restart` */
    becalm_ns line_at;          /* when the calls in `line` are looked at again */
    bool refused; /* a host has refused a connection: the next accepted one must be reported to the engine */
    bool used;    /* a call has begun with this state; else other states only borrow its parts */
};

/* A place from which a service is called: a client group, an instance group of another service, or a gate. */
struct hop {
    uint32_t to;
    uint32_t callers;
    bool is_gate;
    bool is_told;     /* each caller has a proxy of its own, and sends it the time left in a header */
    const char *from; /* the client's or service's name */
    struct link link;
    bool may_refuse;       /* a fault makes hosts refuse connections: callers may have to wait for one that restarts */
    struct pooled *pooled; /* by caller, then by host: its connections; NULL: they are not modelled */
    bool is_proxy;         /* and these have the bounds and the line of a proxy; each call has room for two attempts */
    uint32_t hosts;        /* that its callers choose from; 0: they have no choice */
    uint32_t kinds;        /* of requests: of the service itself, then of its endpoints */
    struct rules *rules;   /* by kind */
    struct state **state;  /* by caller, then by kind; NULL: not used yet */
    size_t state_bytes;    /* the bytes of a state that are worth prefetching */
};

/* An effect that a caller wants exactly once, with any number of calls and attempts: see effect.c. */
struct operation {
    uint32_t id;
    bool keyed; /* its requests carry an idempotency key */
};

/* One logical call on one hop. */
struct call {
    struct becalm_call engine;
    uint64_t number; /* the n-th of the run, from 1 */
    uint64_t root;   /* the client's call that it is part of, from 1 */
    uint32_t generation;
    uint32_t hop;
    uint32_t caller;
    uint32_t attempt; /* the attempt that made this call; NOTHING: a client made it */
    uint32_t client;
    uint32_t tenant;   /* the client whose call it is part of */
    uint32_t endpoint; /* 0: the service itself */
    becalm_ns hint;    /* of a gate: the wait that the latest answer asked for; 0: none */
    becalm_ns root_at; /* when the client's call began */
    becalm_ns wake_at;
    bool answered; /* an answer's head has come, and its body is on its way */
    struct operation operation;
    uint32_t flight[BECALM_SLOTS]; /* attempts; NOTHING: lost */
};

struct call_origin {
    uint32_t hop;
    uint32_t caller;
    uint32_t client;
    uint32_t endpoint;
    uint32_t attempt; /* NOTHING: a client's call */
};

struct world;

bool hops_make(struct world *);
void hops_free(struct world *);
/* With many callers their states are not in the cache, and most of the time would be spent waiting for memory. So the
 * memory is prefetched, in steps, because each step reads the address that the next one needs. */

/* Prefetches the state of the caller that calls after this many other calls. */
#define HOP_FORESEEN 2u
void hop_foresee(const struct hop *, uint32_t caller, uint32_t calls);
/* Prefetches the memory of a call whose answer arrives soon; and a little later that of its caller's state. */
void call_foresee(const struct world *, uint32_t id);
void call_foresee_target(const struct world *, uint32_t id);
void call_begin(struct world *, const struct call_origin *);
void call_wakes(struct world *, uint32_t id, uint32_t generation);

/* The distribution of a message's time on a link with this latency. */
struct dist latency_dist(const struct scenario *, becalm_ns mean);

/* The time of an event, and random bits for it. */
struct becalm_moment world_moment(struct world *);

/* A message on a link: does it vanish? */
bool link_loses(struct world *, const struct link *);
/* If not: how long is it on its way? */
becalm_ns link_takes(struct world *, const struct link *);

/* How many of a gate's calls wait. */
uint32_t gate_waiting(const struct hop *);

/* The limit of a caller; NULL: none, or no memory. */
struct becalm_limit *hop_limit(struct world *, struct hop *, uint32_t caller);

/* A connection for the attempt in this slot was made; the line of a caller's target is looked at. */
void call_accepted(struct world *, uint32_t id, uint32_t slot);
bool call_wants_accepted(const struct world *, uint32_t id);
void line_wakes(struct world *, uint32_t hop, uint32_t state);

/* Does its target wait for a host that restarts? Then attempts that are in line for a connection are not sent. */
bool call_has_no_host(const struct world *, uint32_t id);

/* The caller of a gate has gone. */
void call_left(struct world *, uint32_t id);

/* The head of an answer to an attempt has come, and its body will take time. */
void call_head(struct world *, uint32_t id, uint32_t slot, uint32_t number, const struct becalm_outcome *);
/* The caller that waited for the answer has gone while it was on its way. */
void call_cancel(struct world *, uint32_t id);

/* An attempt of it is over. */
void call_done(struct world *, uint32_t id, uint32_t slot, uint32_t number, const struct becalm_outcome *);

/* ---- server.c ---- */

enum attempt_stage {
    ATTEMPT_NONE,
    ATTEMPT_IN_LINE,  /* waits for a connection */
    ATTEMPT_CONNECTS, /* its connection is being made; the connect goes on even if no attempt needs it any more */
    ATTEMPT_VANISHED, /* lost on its way, with the connection that it holds */
    ATTEMPT_TRAVELS,
    ATTEMPT_AT_GATE,
    ATTEMPT_WAITS,
    ATTEMPT_SERVED_NOW,
    ATTEMPT_CALLS,
    ATTEMPT_RETURNS,
    ATTEMPT_STREAMS,  /* the head of its answer has arrived, the body is on its way */
    ATTEMPT_FORGOTTEN /* it ended when its host was killed, but its own calls go on */
};

/* One attempt at a service. */
struct attempt {
    uint32_t generation;
    uint32_t call; /* NOTHING: no call waits for it any more */
    uint32_t slot;
    uint32_t number; /* of the call's attempts, from 0 */
    uint32_t hop;
    uint32_t service;
    uint32_t endpoint;
    uint32_t host;
    uint32_t tenant;    /* the client whose call it is part of */
    uint32_t caller;    /* of the hop */
    uint32_t next;      /* IN_LINE: the next attempt in the line */
    uint32_t pending;   /* calls of its own */
    uint32_t gate_call; /* AT_GATE: the call of the gate */
    bool left;          /* its caller has given it up, and the gate was told */
    bool connected;     /* the attempt holds a connection */
    bool fresh;         /* it needs a new connection, because it is a probe */
    bool doomed;        /* its connection is about to be lost */
    uint32_t stream_of; /* the index of its connection among the shared ones */
    bool cut;           /* its answer is cut in the body */
    bool joined;        /* the attempt is in its host's table of requests */
    enum attempt_stage stage;
    bool failed;
    bool through_gate;
    bool has_read; /* it has read the row; `version` is the version that it saw */
    uint64_t version;
    struct operation operation;
    enum becalm_mark_kind mark;
    uint64_t root;
    becalm_ns root_at;
    becalm_ns timeout_at; /* of the attempt */
    becalm_ns deadline_at;
    becalm_ns queued_at;
    becalm_ns body; /* from the answer's head to its end; 0: it comes whole; BECALM_NEVER: as the gate's call says */
    struct becalm_outcome outcome;
};

struct ring {
    uint32_t *attempt;
    uint32_t size; /* a power of two */
    uint32_t first;
    uint32_t count;
};

struct host {
    uint32_t busy;
    struct ring queue;
    becalm_ns waited_since;  /* since when an attempt waits */
    struct join_table *join; /* of its sidecar; NULL: it joins nothing */
};

struct service {
    const struct scenario_service *plan;
    struct host *host;
    uint32_t first_hop; /* its own calls: hops first_hop .. first_hop + hop_count */
    uint32_t hop_count;
    uint32_t gate;                      /* the hop of its gate; NOTHING: none */
    struct scenario_endpoint *endpoint; /* the service itself, then its endpoints */
    /* Changed by faults: */
    uint32_t capacity_ppm;
    uint32_t error_ppm; /* NOTHING: as planned */
    uint32_t hang_ppm;  /* the same for hangs */
    uint32_t bad_hosts;
    uint32_t killed_hosts;
    uint32_t rolling_host; /* the one that is down; NOTHING: none */
    uint32_t cut_ppm;
    bool cut_silent;
    becalm_ns latency;
    bool store_dead;         /* the store of its shared budget: connections to it are broken, and refused */
    bool store_hangs;        /* or nothing is done */
    becalm_ns store_latency; /* added to messages to and from the store of its shared budget; BECALM_NEVER: away */
    bool dead;
    bool refuses;
    bool swallows;
    /* Changed by connections, see connection.c: */
    bool fallen;
    uint32_t falls;
    uint32_t accepted; /* so far, in the 100 ms that are being counted */
    uint64_t accept_bin;
    uint64_t connected;     /* connections to it */
    uint64_t answers;       /* in progress */
    becalm_ns *quota_at;    /* by client: when its quota is whole again; NULL: there is none */
    uint64_t version;       /* of a row: how often it was written */
    bool has_effect;        /* itself, or a service that it calls */
    uint32_t *executed;     /* by operation, so often; only where plan->effect */
    uint32_t executed_size; /* operations beyond have none */
};

bool services_make(struct world *);
void services_free(struct world *);

/* Free workers of all hosts take the next requests: after a fault has turned. */
void service_work(struct world *, struct service *);

/* Which of its endpoints a request is for, by the shares of the requests; NULL: as the service says. */
uint32_t endpoint_draw(const struct service *, const uint32_t *share_ppm, uint64_t *state);

/* The host is killed: requests that it has are lost. */
void host_killed(struct world *, uint32_t service, uint32_t host);

/* So many connections to the service break, drawn at random, with all that is on them. */
void connections_lost(struct world *, uint32_t service, uint32_t count);

/* An attempt of this number is taken back: no host took it. */
void attempt_unsent(struct world *, const struct call *, uint32_t number);

/* The time left until an instant, as it is written on the wire: in whole milliseconds, rounded down, but never 0. */
becalm_ns deadline_written(const struct world *, becalm_ns at);

/* Sends an attempt. It may be refused at once. */
void attempt_send(struct world *, uint32_t call, const struct becalm_action *);
void attempt_arrives(struct world *, uint32_t id);
void attempt_served(struct world *, uint32_t id);
void attempt_answered(struct world *, uint32_t id);
void attempt_ended(struct world *, uint32_t id);
/* The gate's call has an answer that goes on: so goes the answer to this attempt. */
void attempt_pass(struct world *, uint32_t id);
/* Its caller gives it up; and the gate in front of the service hears of that, as of a connection that was closed. */
void attempt_give_up(struct world *, uint32_t id);
void attempt_left(struct world *, uint32_t id);
void attempt_hears_accepted(struct world *, uint32_t id);

/* How a call that this attempt made has ended; or the gate's call, whose result is the answer to the attempt. */
struct child_end {
    enum becalm_outcome_kind kind;
    enum becalm_mark_kind mark;
    becalm_ns hint; /* of a 429 that a gate passes on; 0: none */
};
void attempt_child_done(struct world *, uint32_t id, const struct child_end *);

/* ---- joined.c: deadlines and marks of applications that pass on only a trace id, joined by their sidecars ---- */

bool joined_make(const struct world *, struct service *); /* the tables of its hosts; false: no memory */
void joined_free(struct service *);
/* A request has come to its host; it is answered, or no caller waits for it any more. */
void joined_enter(const struct world *, struct attempt *);
void joined_leave(const struct world *, struct attempt *);
/* Until when its calls may take. */
becalm_ns joined_deadline(const struct world *, const struct attempt *);
/* One of the request's calls has failed with this mark; and the mark that its answer gets then. */
void joined_note(const struct world *, struct attempt *, enum becalm_mark_kind);
enum becalm_mark_kind joined_mark(const struct world *, const struct attempt *);

/* The attempt travels to its host, on a connection if connections are modelled. */
void attempt_travel(struct world *, uint32_t id);
/* Its place is free. */
void attempt_give(struct world *, uint32_t id);

/* How the attempt's host, or the gate in front of it, treats a new connection. */
enum listener { LISTENER_ACCEPTS, LISTENER_REFUSES, LISTENER_SWALLOWS };
enum listener attempt_listener(const struct world *, const struct attempt *);
/* A request has come there, or a connection that was refused. */
void arrival_count(struct world *, const struct attempt *, enum listener);
/* Are all messages of this attempt lost on the way? */
bool attempt_is_swallowed(struct world *, const struct attempt *);

/* ---- pooled.c ---- */

bool pooled_make(const struct world *, struct hop *);
void pooled_free(struct hop *);
/* Finds a connection for an attempt, makes one, or lines it up for one. */
void pooled_get(struct world *, uint32_t id);
/* The attempt no longer needs its connection, if it has one. CLEAN: the connection may be used again. LEFT: an answer
 * is still on its way, so only a connection that attempts share may be used again. BROKEN: the connection is gone. */
enum pooled_end { POOLED_CLEAN, POOLED_LEFT, POOLED_BROKEN };
void pooled_put(struct world *, struct attempt *, enum pooled_end);
/* A host closes idle connections; those that are shared take no new streams. */
void pooled_close(struct world *, uint32_t service, uint32_t host);
/* So many to a service are lost: attempts that hold one of them are `doomed`. */
void pooled_lose(struct world *, uint32_t service, uint32_t count);
void attempt_dials(struct world *, uint32_t id);
void attempt_is_connected(struct world *, uint32_t id);
void attempt_is_not_connected(struct world *, uint32_t id);
void pooled_serves(struct world *, uint32_t hop, uint32_t number);

/* ---- effect.c ---- */

/* The operations that callers want once, and how often each service has executed them. */
struct effects {
    bool any;           /* a service has effects; else nothing is kept here */
    uint32_t count;     /* operations so far */
    uint32_t **current; /* by client, by caller: the operation that has not succeeded yet, or NOTHING */
};

bool effects_make(struct world *); /* after the hops */
void effects_free(struct world *);

/* The operation that a client's call is part of. */
struct operation effect_begin(struct world *, uint32_t client, uint32_t caller);
/* A client's call of it has ended. */
void effect_end(struct world *, uint32_t client, uint32_t caller, const struct operation *, bool good);
/* The service executes the request's operation, unless it knows its key. */
void effect_happens(struct world *, uint32_t service, const struct operation *);

/* ---- connection.c ---- */

struct connection;

/* The connections of one client, grouped by caller. */
struct connections {
    struct connection *all;
    uint32_t count;
    struct line *line; /* by caller: connections that wait for a place under the limit */
};

bool connections_make(struct world *);
void connections_free(struct world *);

void connection_tries(struct world *, uint32_t client, uint32_t id);
void connection_arrives(struct world *, uint32_t client, uint32_t id);
void connection_answered(struct world *, uint32_t client, uint32_t id);

bool service_is_down(const struct service *);
/* The service was up and fails: its connections break. And it was down and is up again. */
void service_falls(struct world *, uint32_t service);
void service_rises(struct world *, uint32_t service);
void service_restarted(struct world *, uint32_t service);

/* Counts each connection at the end of a second as a call: good if it is connected. */
void connections_second(struct world *, uint32_t second);

/* ---- budget_store.c ---- */

/* Shared budgets and the instances that lease from them. Nothing is here unless a policy has one. */
struct stores {
    struct becalm_lease_store **budget; /* by world_target(); NULL: no instance has leased from it yet */
    struct becalm_lease_store **saved;  /* the same, as a file has them; NULL: none has */
    struct pool tenants;
    struct pool letters;
};

bool stores_make(struct world *);
void stores_free(struct world *);

/* A caller on this hop leases from the budget of one kind of requests. False: no memory. */
bool tenant_add(struct world *, const struct hop *, uint32_t kind, struct becalm_lease *);
void tenant_asks(struct world *, uint32_t id);
void store_asked(struct world *, uint32_t letter);
void tenant_answered(struct world *, uint32_t letter);

/* A connection to the store: made anew, made (both for the one of that number alone), and given up. */
void tenant_connects(struct world *, uint32_t id, uint32_t link);
void tenant_linked(struct world *, uint32_t id, uint32_t link);
void tenant_loses(struct world *, uint32_t id, uint32_t link);

/* Faults of a service's store. After a failure the store is empty, or has the state that was last saved. */
void store_saves(struct world *, uint32_t fault);
void store_killed(struct world *, uint32_t service, bool on, bool has_file);
void store_emptied(struct world *, uint32_t service);

/* Counts degraded instances at the end of a second. tenants_end() adds the time of those that are degraded at the end
 * of the run. */
void tenants_second(struct world *, uint32_t second);
void tenants_end(struct world *);

/* ---- client.c ---- */

struct client {
    uint32_t generation;   /* of its next call */
    uint32_t factor_milli; /* a surge: the factor of its rate */
    uint64_t made;         /* calls, of all callers */
    uint32_t *made_by;     /* the same by caller, if each is a loop with an end; else NULL */
};

bool clients_make(struct world *);
void clients_free(struct world *);
void clients_begin(struct world *);
void client_calls(struct world *, uint32_t id, uint32_t generation);
void caller_calls(struct world *, uint32_t id, uint32_t caller);

/* A call of this caller has ended. */
void caller_answered(struct world *, uint32_t id, uint32_t caller);

/* From now on the client calls this many times as often. */
void client_surges(struct world *, uint32_t id, uint32_t factor_milli);

/* ---- fault.c ---- */

void faults_begin(struct world *);
void fault_turns(struct world *, uint32_t id);

/* ---- series.c ---- */

bool series_make(const struct scenario *, struct world_result *);
void series_latency(struct world_latency *, becalm_ns latency);
/* Writes down how things stand at the end of a second. */
void series_second(struct world *, uint32_t second);

/* ---- world.c ---- */

struct world {
    const struct scenario *plan;
    const struct world_options *options;
    struct world_result *result;
    struct dist_tables tables;
    struct clock clock;
    becalm_ns fault_at;   /* BECALM_NEVER: there is none */
    becalm_ns fault_from; /* the window of the mean amplification */
    becalm_ns fault_to;
    uint64_t arrival_state; /* streams of their own, so that two policies meet the same calls */
    uint64_t service_state;
    uint64_t policy_state;
    uint64_t fault_state;
    uint64_t call_number;
    uint64_t root_number;
    struct pool calls;
    struct pool attempts;
    struct slab memory; /* of the engine's objects */
    struct hop *hop;    /* those of clients first, then those of services, then gates */
    uint32_t hop_count;
    struct service *service;
    struct client *client;
    struct effects effects;
    struct connections *connections; /* by client */
    struct stores stores;
    const struct becalm_queue *serving; /* the queue whose calls are being served; NULL: none */
    bool no_memory;
    bool stopped;
};

/* Is it worthwhile to prefetch memory? A small world is in the caches already, and prefetching only costs time. The
 * size is estimated from the memory of target states, and from the largest number of attempts at once. */
static inline bool world_is_large(const struct world *w)
{
    return w->memory.given > UINT64_C(1) << 20 || w->attempts.used > 4096;
}

static inline struct call *call_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->calls, id);
}

static inline struct attempt *attempt_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->attempts, id);
}

static inline uint32_t second_of(const struct world *w, becalm_ns at)
{
    uint32_t second = (uint32_t)(at / BECALM_S);
    return second < w->result->seconds ? second : w->result->seconds - 1;
}

static inline enum world_phase phase_of(const struct world *w, becalm_ns root_at)
{
    return root_at < w->fault_at                                     ? WORLD_BEFORE
           : root_at < w->fault_to                                   ? WORLD_IN_FAULT
           : root_at < becalm_ns_after(w->fault_to, WORLD_AFTER_FOR) ? WORLD_AFTER
                                                                     : WORLD_LATER;
}

static inline bool in_fault(const struct world *w, becalm_ns root_at)
{
    return root_at >= w->fault_from && root_at < w->fault_to;
}

#endif
