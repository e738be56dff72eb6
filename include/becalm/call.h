/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CALL_H
#define BECALM_CALL_H

/* One logical request of a caller, from its beginning to its one end. The call combines budget, breaker, limit and all
 * other parts: it decides when to send an attempt, wait, hedge or give up, and gives the reason. It never acts: the
 * driver feeds it events and carries out the actions.
 *
 *   struct becalm_call call;
 *   becalm_call_init(&call, &policy, &target, &request);
 *   step(BEGIN)  -> SEND slot 0, attempt 0, wake_at the attempt's timeout
 *   step(HEAD)   -> ANSWER: pass it on; or CANCEL and wake_at: a retry waits
 *   step(TIMER)  -> SEND slot 0, attempt 1
 *   step(DONE)   -> FINISH
 *
 * A call belongs to one thread; the target behind it may be shared by many. */

#include <becalm/target.h>

BECALM_BEGIN_DECLS

#define BECALM_SLOTS      5u /* attempts of one call that may be in flight at once: the first and four hedges */
#define BECALM_RECORD_MAX 8u /* attempts that the record keeps: the first seven and the latest */

enum becalm_event_kind {
    BECALM_EVENT_BEGIN,  /* the call arrives */
    BECALM_EVENT_SERVE,  /* becalm_queue_next() returned its ticket, or becalm_parking_next() its berth */
    BECALM_EVENT_HEAD,   /* an answer's head has arrived, and nothing has reached the caller yet. With a provisional
                            outcome the answer is passed on, and DONE judges the attempt; or it counts as OK, when the
                            answer goes on for long */
    BECALM_EVENT_DONE,   /* an attempt is over: answered to the end, or failed */
    BECALM_EVENT_TIMER,  /* wake_at has come; a TIMER that is too early does no harm */
    BECALM_EVENT_CANCEL, /* the caller is gone */
    BECALM_EVENT_LEFT, /* the caller may be gone: attempts in flight may still answer it, no retry or hedge is begun */
    BECALM_EVENT_SENT, /* a streamed request has been sent to its end: the attempt's time begins */
    BECALM_EVENT_HELD, /* a failed answer's head has arrived, and the driver holds it back until it has more of it: HEAD
                          or DONE comes later, but for the limit the attempt is answered now */
    BECALM_EVENT_LINE_UP /* after BECALM_DO_LINE_UP, with the lock of the shared queues held */
};

struct becalm_event {
    enum becalm_event_kind kind;
    struct becalm_moment at;
    uint32_t slot;                 /* HEAD, DONE, SENT, HELD: which attempt in flight, < BECALM_SLOTS */
    struct becalm_outcome outcome; /* HEAD, DONE, HELD: the outcome that the driver saw */
};

/* Bits of action.flags. Carry them out in this order. */
enum becalm_do {
    BECALM_DO_CANCEL = 1,  /* abandon the attempts in action.cancel; the driver reports no more events for them */
    BECALM_DO_SEND = 2,    /* send attempt action.attempt to action.host; it may take until action.timeout_at */
    BECALM_DO_ANSWER = 4,  /* pass the answer in action.slot on to the caller as it comes */
    BECALM_DO_FINISH = 8,  /* the call is over, for the reason `why` */
    BECALM_DO_SERVE = 16,  /* a slot of the limit was freed: call becalm_queue_next() until NULL */
    BECALM_DO_PARK = 32,   /* the call was parked: call becalm_parking_next() until NULL */
    BECALM_DO_LINE_UP = 64 /* the call must wait in a queue that threads share: take its lock and feed it LINE_UP */
};

struct becalm_action {
    unsigned flags;
    uint32_t slot;                          /* SEND: the slot to fill; ANSWER: the slot of the answer */
    uint32_t cancel;                        /* CANCEL: bit n is slot n */
    uint32_t attempt;                       /* SEND: its number, 0 for the first, unbounded */
    enum becalm_reason why;                 /* the decision in one word */
    enum becalm_mark_kind mark;             /* ANSWER, FINISH: the mark to write on the answer */
    enum becalm_breaker_state breaker_from; /* a state change that this step made; from == to: none */
    enum becalm_breaker_state breaker_to;
    struct becalm_wait wait; /* why is BACKOFF or HINT: how the wait was computed */
    bool last_answer;        /* FINISH without ANSWER: give the caller the last real answer, if one was kept */
    uint32_t host;           /* SEND: which host, or BECALM_NO_HOST if the target has none */
    becalm_ns timeout_at;    /* SEND: tell the service the time left until then; the engine enforces it itself */
    becalm_ns retry_after;   /* ANSWER, FINISH: the Retry-After for the caller; NEVER: none */
    becalm_ns wake_at;       /* always set: re-arm the call's one timer after every step; BECALM_NEVER for none */
};

/* Did this step decide on a retry, which now waits? action.wait says how long and why so long. */
static inline bool becalm_action_delays_retry(const struct becalm_action *action)
{
    return action->why == BECALM_WHY_BACKOFF || action->why == BECALM_WHY_HINT;
}

/* Did this step change the state of the circuit breaker? */
static inline bool becalm_action_moves_breaker(const struct becalm_action *action)
{
    return action->breaker_from != action->breaker_to;
}

/* The request, as far as the engine must know it. Zeroed: a request that must not be repeated once sent. */
struct becalm_request {
    becalm_ns deadline_at;   /* the caller's deadline, absolute; 0 or BECALM_NEVER: none */
    bool idempotent;         /* its method says that executing it twice is safe */
    bool keyed;              /* it carries an idempotency key */
    bool once;               /* once sent it is never repeated, even if method, key and policy would allow it */
    bool not_replayable;     /* its body can be sent only once */
    bool streams;            /* its body is sent while the caller is still sending it: until SENT only the caller's own
                                deadline counts, because a slow caller says nothing about the service */
    bool alone;              /* one attempt at a time: neither a hedge nor a retry beside an overdue attempt, for a
                                driver that has room for only one answer or one body */
    bool retry_from_above;   /* it is itself a retry of a layer above */
    bool attempt_from_above; /* it is a counted attempt of a layer above: where no timeout is written, that layer is the
                                first to send another attempt beside it if it is overdue */
    struct becalm_queue *queue;     /* this worker's queue at the target's gate; NULL: can't wait */
    uint64_t flow;                  /* which client calls, for the parts that clients share; 0: no client is known */
    struct becalm_parking *parking; /* this worker's parked calls of the target; NULL: can't wait for a host */
    bool lines_shared;              /* threads share both under a lock of the driver; see becalm_call_in_line() */
    void *owner;                    /* for the driver: copied to becalm_ticket.owner and becalm_berth.owner */
};

/* One attempt in the record. */
struct becalm_record_attempt {
    uint32_t number;
    uint32_t host;
    uint32_t status;
    enum becalm_outcome_kind outcome; /* meaningless while `open` */
    bool open;                        /* not over yet */
    bool hedge;
    becalm_ns waited; /* before it was sent, since the attempt before it ended; 0 beside another one */
    becalm_ns sent_at;
    becalm_ns took;
};

/* The attempts of a call and why it ended; of fixed size, for logs, headers and pages. */
struct becalm_record {
    becalm_ns began_at;
    becalm_ns ended_at;
    becalm_ns gated;  /* time spent in the gate */
    becalm_ns parked; /* time spent waiting for a host to accept connections */
    uint32_t attempts;
    uint32_t hedges;
    enum becalm_reason reason; /* why the call ended */
    enum becalm_reason would;  /* shadow: the reason with which the policy would have ended the call; NONE: the policy
                                  changes nothing */
    /* The numbers behind the reason: `have` was available, `need` was needed. budget_empty: millionths of a retry;
     * deadline, breaker_open, no_host, no_connection: ns; attempts_spent, answers: a count; throttled: ppm; limit,
     * shed: ns if the call waited (`gated`), else attempts in flight, or calls that wait. Both are 0 for other reasons.
     */
    uint64_t have;
    uint64_t need;
    struct becalm_record_attempt attempt[BECALM_RECORD_MAX]; /* entries from `attempts` on are not set */
};

/* How many attempts the record has kept, in attempt[0] and so on. */
static inline uint32_t becalm_record_kept(const struct becalm_record *record)
{
    return record->attempts < BECALM_RECORD_MAX ? record->attempts : BECALM_RECORD_MAX;
}

/* The index of the attempt of this number. All attempts beyond the record's room share the last entry, which describes
 * the latest of them. */
static inline uint32_t becalm_record_place(uint32_t number)
{
    return number < BECALM_RECORD_MAX ? number : BECALM_RECORD_MAX - 1;
}

/* The latest attempt; NULL: none was sent. */
static inline const struct becalm_record_attempt *becalm_record_last(const struct becalm_record *record)
{
    return record->attempts == 0 ? NULL : &record->attempt[becalm_record_kept(record) - 1];
}

enum becalm_second { /* private to the engine */
                     BECALM_SECOND_NONE,
                     BECALM_SECOND_SENT, /* another attempt was sent beside this one, because it took too long */
                     BECALM_SECOND_NEVER /* its answer has begun, and is a failure: a retry waits for its head */
};

/* An attempt in flight. Private to the engine. */
struct becalm_live {
    uint32_t number;
    uint32_t host;
    bool hedge;
    bool judged;    /* its head has arrived and was counted; only its end is missing */
    bool streams;   /* the request is not completely sent yet */
    bool unsent;    /* it waits for a connection in the driver's own queue */
    bool overdue;   /* limit and breaker have counted a timeout, and it may still be answered */
    bool probed;    /* overdue: it is the breaker's probe */
    uint8_t second; /* becalm_second: was another attempt sent beside this one because it took too long? */
    struct becalm_slot slot;
    becalm_ns sent_at;
    becalm_ns timeout_at;
    becalm_ns headed_at;           /* of a provisional head: when it came */
    becalm_ns beside_at;           /* overdue: when a second attempt may be sent beside it; NEVER: none, or not again */
    struct becalm_permit permit;   /* breaker per attempt only */
    struct becalm_outcome outcome; /* as judged, for its host */
};

enum becalm_phase { /* private to the engine */
                    BECALM_PHASE_NEW,
                    BECALM_PHASE_GATED,    /* waits in the gate */
                    BECALM_PHASE_PACED,    /* waits for the client-side rate limit, or for news: becalm_awaits */
                    BECALM_PHASE_PARKED,   /* no host accepts connections: waits for one that does */
                    BECALM_PHASE_OUTSIDE,  /* must wait, and its driver has not taken the lock of the queues yet */
                    BECALM_PHASE_FLYING,   /* one or more attempts are in flight */
                    BECALM_PHASE_WAITING,  /* waits to retry */
                    BECALM_PHASE_ANSWERED, /* the answer is on its way to the caller */
                    BECALM_PHASE_ENDED
};

enum becalm_awaits { /* PACED: the event that the call waits for; private to the engine */
                     BECALM_AWAITS_NOTHING,
                     BECALM_AWAITS_PROBE,  /* the answer to the breaker's probe */
                     BECALM_AWAITS_PACE,   /* the end of the limit's pacing, by the success of an admitted call */
                     BECALM_AWAITS_BREAKER /* its refusal by an open breaker, unless the breaker lets it go on before */
};

/* Touch it only through the functions below; `record` may be read at any time. Fields that a call without trouble uses
 * come first, and fields that begin with the same value stand together, so that init is a few wide stores. */
struct becalm_call {
    const struct becalm_policy *policy;
    const struct becalm_target *target;
    struct becalm_request request;
    enum becalm_phase phase;
    uint32_t live;    /* bit n: slot n is in flight */
    uint32_t retries; /* retries and hedges decided on */
    enum becalm_awaits awaits;
    enum becalm_reason verdict;    /* ANSWERED: the reason that the end will have */
    bool unasked;                  /* a layer below refused the latest attempt: the service itself was not called */
    bool begun;                    /* the budgets count this call as in progress */
    bool answered;                 /* some attempt ended with a real answer, which the driver may have kept */
    bool accepted;                 /* the throttle has counted this call as accepted */
    bool undecided;                /* the throttle counts this call as waiting for its answer */
    bool rate_held;                /* a token of the client-side rate limit is taken and not yet used */
    bool retried_once;             /* an outcome that may be retried only once was retried */
    bool leased;                   /* the retry that waits or is in flight is paid from the shared budget too */
    bool probing;                  /* the attempt that is sent next, or is in flight, probes whether a host is back */
    bool parks;                    /* OUTSIDE: it waits for a host, not in the gate */
    bool left;                     /* the caller may be gone: no retry or hedge is begun for it any more */
    bool late;                     /* ANSWERED: the head was provisional, so that the caller's deadline still counts */
    enum becalm_outcome_kind last; /* how the latest attempt ended */
    uint32_t answer;               /* ANSWERED: the slot whose answer goes to the caller */
    uint32_t next_host;
    becalm_ns flying_since; /* FLYING: since when */
    becalm_ns flown;        /* time spent in attempts before that */
    becalm_ns last_wait;    /* the jittered wait before, for decorrelated jitter */
    becalm_ns failed_at;    /* when the latest attempt ended */
    becalm_ns deadline_at;
    becalm_ns next_at; /* PACED, WAITING: when to send; FLYING: when to hedge, or to retry beside an overdue attempt */
    becalm_ns slow_at; /* when the call becomes slow; NEVER: it does not, or has */
    becalm_ns retry_after; /* the Retry-After for the caller; NEVER: none */
    becalm_ns refuse_at;   /* when an open breaker refuses the call at the latest; NEVER: not drawn yet */
    struct becalm_permit permit;
    struct becalm_spend spend; /* for the retry that waits or is in flight */
    struct becalm_spend service_spend;
    struct becalm_ticket ticket;
    struct becalm_berth berth;
    struct becalm_record record;
    struct becalm_live slot[BECALM_SLOTS];
};

/* Initialises a call in your memory. The policy, the target and the request's queue must outlive it. */
BECALM_API void becalm_call_init(struct becalm_call *, const struct becalm_policy *, const struct becalm_target *,
                                 const struct becalm_request *);

/* Feeds one event to one call. Never blocks, allocates or fails: a refusal is an action. Events after the end, and of
 * slots that are not in flight, do nothing. */
BECALM_API void becalm_call_step(struct becalm_call *, const struct becalm_event *, struct becalm_action *);

/* Tells the call that the request's body can't be sent again, for example because it is longer than the driver keeps.
 * From now on the call is not retried once it is sent. */
BECALM_API void becalm_call_not_replayable(struct becalm_call *);

/* Tells the call that the request in this slot is still being sent, like a streamed request: until SENT only the
 * caller's own deadline counts for it. Does nothing if its answer has come, or if no attempt is in flight there. */
BECALM_API void becalm_call_streams(struct becalm_call *, uint32_t slot);

/* A streamed request has arrived completely, and the driver keeps it: attempts that are sent from now on are timed from
 * their beginning, as usual. Attempts that are in flight are still timed from SENT. */
BECALM_API void becalm_call_streamed(struct becalm_call *, becalm_ns now);

/* The attempt in this slot got a new connection: its host accepts connections. True: no host did before, and calls are
 * parked for that: call becalm_parking_next() until NULL, on every worker. Only needed for new connections. */
BECALM_API bool becalm_call_accepted(struct becalm_call *, uint32_t slot, becalm_ns now);

/* The attempt in this slot goes to this host of the target instead of the one that the action named, say because it
 * needs a connection that leads there. It counts for this host from now on. */
BECALM_API void becalm_call_sent_to(struct becalm_call *, uint32_t slot, uint32_t host, becalm_ns now);

/* The attempt in this slot waits in the driver's own queue for a connection: nothing of it has reached its host, nor is
 * about to. At `leave_at`, or at the deadline if that comes before, the call ends with NO_CONNECTION (with DEADLINE, if
 * that is over and an attempt before this one was sent), or goes on without this attempt if other attempts are in
 * flight; it does not count as a timeout of the service. */
BECALM_API void becalm_call_unsent(struct becalm_call *, uint32_t slot, becalm_ns leave_at);

/* The attempt has got its connection: its own time begins now, within the deadline. Returns when that time is over, as
 * action.timeout_at did. For an attempt that did not wait nothing changes. */
BECALM_API becalm_ns becalm_call_goes(struct becalm_call *, uint32_t slot, becalm_ns now);

BECALM_API bool becalm_call_ended(const struct becalm_call *);

/* Does the call wait in the gate or for a host? With queues that threads share (request.lines_shared), hold their lock
 * to step such a call, as for becalm_queue_next() and becalm_parking_next(). Only SERVE needs no lock: by then the call
 * is out of the queue. A call that does not wait needs no lock either: if it must wait, the action says LINE_UP, and
 * the driver takes the lock and feeds that event at once. Ask this from the thread that the call belongs to. */
BECALM_API bool becalm_call_in_line(const struct becalm_call *);

BECALM_END_DECLS

#endif
