/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATE_H
#define BECALM_GATE_H

/* The admission queue in front of a target; its slots are those of the target's limit. When the limit is reached, a
 * first attempt waits here and a retry is refused: "retries are shed first". A call whose deadline has passed is
 * dropped. A call that waited longer than half of its own timeout (a quarter, if it entered a standing queue), or
 * longer than max_wait, is refused. CoDel (Nichols, Jacobson 2012) drops calls that waited longer than target_wait
 * while the queue has been non-empty for `interval`, but never while fewer than min_queue wait. While more than a tenth
 * of the gate's decisions are to shed, answers are marked "overloaded" (mark.h).
 *
 * Clients are served in turn (stochastic fair queueing, McKenney 1990). A ticket names a flow, 64 bits that stand for
 * a client. Each flow that waits has a line of its own and gets one call served per turn, so that a loud client delays
 * only itself. There are BECALM_FLOWS lines; clients share a line only when more than that wait at once. Without a name
 * (flow 0) all calls are one flow, first come, first served.
 *
 * A single caller (a sidecar, libbecalm-curl, run) has the same queue with other rules, becalm_gate_for_caller(): it
 * sees a small part of a service's traffic, and the calls in its queue are most often one page or one batch. There
 * CoDel drops nothing, no decision counts towards the mark "overloaded", and a refused call gets the reason `limit`.
 * A call that an open breaker would refuse waits for a random time below the backoff's base first, so that a client in
 * a loop does not make a refusal of every call that it has.
 * While its limit is calm (becalm_limit_calm(): not cut for a minute) a call may wait until its deadline, in a queue of
 * any length; otherwise as in a gate.
 *
 * There are two structs. `struct becalm_gate` belongs to the target; all threads share its atomic words, which count
 * the flows that wait and whose turn it is. `struct becalm_queue` belongs to one worker thread and links the tickets of
 * that worker's waiting calls: the driver holds the requests, the queue only says which to serve or drop. A freed slot
 * serves its own worker first; when that worker's queue is empty and becalm_gate_waiting() is not 0, the driver wakes
 * another. Workers that call becalm_queue_share() also keep the turns between each other, so that no worker's calls
 * wait for ever because another worker always has a waiting call of its own. */

#include <becalm/limit.h>
#include <becalm/reason.h>

BECALM_BEGIN_DECLS

#define BECALM_QUEUE_MAX 1000000u /* of min_queue and max_queue */
#define BECALM_FLOWS     64u      /* the number of lines of a gate, and the most workers that can share one in turn */

/* The times are 1 us to 1 h; retry_after may be 0. */
struct becalm_gate_policy {
    becalm_ns target_wait;  /* 20 ms */
    becalm_ns interval;     /* CoDel's: 3/4 of the call's timeout, but at least this: 100 ms, */
    becalm_ns max_interval; /* and at most this, unless the call is unhurried: 750 ms; at least `interval` */
    becalm_ns max_wait;     /* 1 s; below target_wait it decides alone. In a gate the default is raised to half of a
                               call's timeout if that is longer */
    uint32_t min_queue;     /* 30 waiting over all workers; above max_queue: CoDel never drops */
    uint32_t max_queue; /* 1,000 waiting calls over all workers; 0: no call waits. While several flows wait, each may
                           have max(min_queue, max_queue / flows that wait) of these calls */
    uint32_t cpu_threshold_ppm; /* 0: off; else shed above this share of the machine */
    uint32_t calm_queue;        /* caller, and the limit is calm: instead of max_queue */
    becalm_ns retry_after;      /* 5 s: the Retry-After of a call that was shed */
    becalm_ns calm_wait; /* caller, and the limit is calm: instead of patience and max_wait; NEVER: the deadline */
    bool caller;         /* false: a gate in front of a service; true: the queue of one of its callers */
};

/* The state of one flow that all workers share. Touched only while calls wait. */
struct becalm_flow {
    BECALM_ATOMIC(uint64_t) owner; /* the client that has this flow, or had it when a call last waited */
    BECALM_ATOMIC(uint64_t) word;  /* {the turn in which it is next:32, waiting:32} */
};

struct becalm_gate {
    BECALM_ATOMIC(uint64_t) waiting;
    BECALM_ATOMIC(uint64_t) shed_ppm; /* share of decisions that were to shed: EWMA, weight 1/100 per decision */
    BECALM_ATOMIC(uint64_t) cpu_ppm;  /* as the driver last measured it */
    BECALM_ATOMIC(uint64_t) turn;     /* the present one: each flow that waits is served once in it */
    BECALM_ATOMIC(uint64_t) served;   /* calls that waited and were served, ever */
    BECALM_ATOMIC(uint64_t) workers;  /* bit n: calls wait at worker n */
    BECALM_ATOMIC(uint64_t) awaiting; /* calls that wait for news of the service, outside of the queue */
    struct becalm_flow flow[BECALM_FLOWS];
};

/* One waiting call. Embedded in struct becalm_call; belongs to the queue while it is linked. */
struct becalm_ticket {
    struct becalm_queue *queue; /* NULL: not waiting */
    struct becalm_slot slot;    /* held when the verdict is OK */
    struct becalm_ticket *next;
    struct becalm_ticket *previous;
    void *owner;   /* for the driver: which call this is */
    uint64_t flow; /* which client calls; 0: no client is known */
    becalm_ns queued_at;
    becalm_ns leave_at;   /* when it leaves by itself, unless it may stay on */
    becalm_ns expires_at; /* the call's deadline */
    becalm_ns patience;   /* the longest it may wait: half of its timeout; a quarter, in a gate's queue that has
                             been non-empty for longer than half of it */
    becalm_ns usual_wait; /* in a caller's line: it may wait for so long in any case, unless max_wait was set; 0 if
                             the usual time of an answer is not known */
    bool patient;         /* it waited for a host that restarts: neither max_wait nor CoDel applies to it */
    bool unhurried;       /* the policy has no timeout, so the call may wait for a quarter of the time to its
                             deadline, even beyond its patience, and CoDel waits for longer; cleared if
                             too many calls of a caller wait already */
    becalm_ns timeout;    /* how long its attempt may take once sent: the slot is judged by it */
    enum becalm_reason verdict; /* set by becalm_queue_next: OK to send, or why not */
    uint32_t line;              /* private to the queue */
};

/* Tickets of one flow at one worker, in the order of their arrival. */
struct becalm_line {
    struct becalm_ticket *first;
    struct becalm_ticket *last;
    becalm_ns first_at; /* when the first of them came */
    uint64_t flow;      /* the client that entered last */
    uint64_t interval;  /* the latest interval in which CoDel has dropped from this line, */
    uint32_t dropped;   /* and how many calls; drops of earlier intervals weigh less and less */
    uint32_t length;
};

/* The waiting calls of one worker. */
struct becalm_queue {
    struct becalm_gate *gate;
    struct becalm_limit *limit;
    uint64_t busy;        /* bit n: calls wait in line n */
    uint64_t worker;      /* this worker's bit among the gate's workers; 0: becalm_queue_share() was not called */
    uint32_t length;      /* of all lines */
    becalm_ns busy_since; /* when the queue last became non-empty */
    uint64_t served;      /* calls of the gate that this worker has served */
    uint64_t others; /* calls that other workers had served when that number last changed while this worker left a slot
                        to them */
    becalm_ns since; /* at this time */
    bool yields;     /* the latest becalm_queue_next() left a slot to another worker */
    bool called;     /* another worker has left a slot to this one */
    struct becalm_line line[BECALM_FLOWS + 1]; /* one line for each flow; the last: calls that were dropped to make room
                                                  and do not know it yet */
};

BECALM_API void becalm_gate_defaults(struct becalm_gate_policy *);

/* Turns the rules of a gate into those of a single caller's queue. Values that the policy sets stay: a max_queue or
 * max_wait other than the default also applies while the limit is calm. A second call changes nothing. */
BECALM_API void becalm_gate_for_caller(struct becalm_gate_policy *);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_gate_check(const struct becalm_gate_policy *, const char **why);

BECALM_API void becalm_gate_init(struct becalm_gate *);
/* A reload: gives `to`, fresh from init, the shed share of `from`. */
BECALM_API void becalm_gate_carry(struct becalm_gate *to, const struct becalm_gate *from);
BECALM_API void becalm_queue_init(struct becalm_queue *, struct becalm_gate *, struct becalm_limit *);

/* Says that several workers have queues at this gate, and which worker this queue belongs to: a number below
 * BECALM_FLOWS, with one queue for each worker. Then becalm_queue_next() may leave a slot to another worker, and the
 * driver must wake the workers that becalm_queue_others() returns. */
BECALM_API void becalm_queue_share(struct becalm_queue *, uint32_t worker);

/* The driver's measurement, about once a second: the share of the machine's or cgroup's CPU time in use. */
BECALM_API void becalm_gate_note_cpu(struct becalm_gate *, uint32_t cpu_ppm);

/* Asked for an arriving call before it takes a slot: false if the CPU is too busy. Above the threshold a retry
 * (`retry`: the layer above has sent it before) is refused, and a first attempt is refused with a probability that
 * rises from 0 at the threshold to 9 of 10 at a full CPU. */
BECALM_API bool becalm_gate_admit(struct becalm_gate *, const struct becalm_gate_policy *, const struct becalm_moment *,
                                  bool retry);

/* The limit is reached: queues the ticket. False if the queue is full, or has as many calls of this flow as it may
 * have. In a full queue the latest call of a longer line makes room for a flow that has less than its share. Set owner,
 * flow, expires_at, patience, usual_wait, patient, unhurried and timeout before, and queue first attempts only. After
 * true call becalm_queue_next() until NULL: a slot may have come free between the refusal by the limit and this, and no
 * other worker would notice; and a call that was dropped to make room must get its verdict. */
BECALM_API bool becalm_queue_enter(struct becalm_queue *, const struct becalm_gate_policy *, becalm_ns now,
                                   struct becalm_ticket *);

/* Does a call of this worker wait? */
BECALM_API bool becalm_queue_busy(const struct becalm_queue *);

/* How many calls of this flow wait at all workers together, and in *most, if it is not NULL, how many may. */
BECALM_API uint32_t becalm_queue_held(const struct becalm_queue *, const struct becalm_gate_policy *, becalm_ns now,
                                      uint64_t flow, uint32_t *most);

/* A slot may be free: returns the next ticket, unlinked, with its verdict: OK and a held slot, or DEADLINE, SHED, or
 * LIMIT for a caller. NULL when no call waits, no slot is free, it is another worker's turn, or the limit's pacing says
 * no.
 * Call it until NULL, and feed each owner a SERVE event. Then wake the workers that becalm_queue_others() names to do
 * the same; or, with workers that did not call becalm_queue_share(): if becalm_queue_busy() is false and
 * becalm_gate_waiting() is not 0, wake another. */
BECALM_API struct becalm_ticket *becalm_queue_next(struct becalm_queue *, const struct becalm_gate_policy *,
                                                   const struct becalm_limit_policy *, const struct becalm_moment *);

/* After becalm_queue_next() has returned NULL: the workers that must serve their queues now, as bits; 0: none. Each of
 * them calls becalm_queue_call() on its own queue first, and then becalm_queue_next(). */
BECALM_API uint64_t becalm_queue_others(const struct becalm_queue *);
BECALM_API void becalm_queue_call(struct becalm_queue *);

/* When to ask whether the ticket must leave: its patience or deadline ends. */
BECALM_API becalm_ns becalm_ticket_leave_at(const struct becalm_ticket *);

/* The time of becalm_ticket_leave_at() has come. True: the ticket may stay, and this is asked again later; only in a
 * caller's queue while the limit is calm. */
BECALM_API bool becalm_ticket_stays(struct becalm_ticket *, const struct becalm_gate_policy *, becalm_ns now);

/* The call leaves by itself (its timer, or cancelled). A ticket that is not waiting is left alone. */
BECALM_API void becalm_queue_leave(struct becalm_ticket *);

/* A decision was made about an arriving or waiting call: counts it towards the mark. The queue does not do it by
 * itself, because it does not see the calls that found a slot at once. Writes nothing while nothing is shed. */
BECALM_API void becalm_gate_note(struct becalm_gate *, bool shed);

BECALM_API uint64_t becalm_gate_waiting(const struct becalm_gate *);
BECALM_API uint32_t becalm_gate_flows(const struct becalm_gate *); /* how many flows they are of */

/* The share of the latest hundred or so decisions that were to shed, for display; and whether it is above a tenth. */
BECALM_API uint32_t becalm_gate_shed_ppm(const struct becalm_gate *);
BECALM_API bool becalm_gate_overloaded(const struct becalm_gate *);

BECALM_END_DECLS

#endif
