/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_EXCHANGE_H
#define BECALM_PROXY_EXCHANGE_H

/* One request of a client and its answer: the driver of one becalm_call. The engine decides; the exchange acts.
 *
 *   exchange_open.c     a new request: its route, and immediate refusals
 *   exchange_body.c     the body of the request
 *   exchange.c          events in, actions out; memory, and the end
 *   exchange_log.c      access log, retries in the log, decisions
 *   exchange_request.c  the client's request, and the request that is written to a host
 *   exchange_answer.c   a host's answer, and the answer that is written to the client
 *   attempt.c           one attempt on a connection
 *   attempt_fault.c injected faults that delay or end attempts
 *   attempt_passing.c   attempts to hosts that no service names
 *   exchange_fallback.c fallbacks: another service, or a fixed answer of the policy
 *   exchange_fault.c    injected faults that hit calls
 *   exchange_key.c      idempotency keys and stored answers
 *   exchange_join.c     joins a program's outgoing calls to its incoming requests
 *   exchange_trace.c    traceparent, and the spans of a call
 *   exchange_expect.c   Expect: 100-continue
 *   exchange_tunnel.c   places for tunnels, and the answer that opens one
 *   exchange_grpc.c     the special rules of gRPC */

#include "proxy/host/upstream.h"
#include "proxy/stream.h"
#include "proxy/worker.h"

#include "fault/fault_book.h"
#include "join/join.h"
#include "keys/store.h"
#include "message/draft.h"
#include "message/pieces.h"
#include "meter/step.h"
#include "origin/request_id.h"
#include "origin/trace_context.h"

#define EXCHANGE_BYTES     4096u  /* a request's head and small body live in the exchange itself */
#define EXCHANGE_BODY_STEP 16384u /* bytes of a body that must arrive in each bodyTimeout; else it is too slow */
#define KEEP_BYTES         4096u  /* of a failed answer's body, while a retry may still bring a better one */

enum attempt_state {
    ATTEMPT_NONE,
    ATTEMPT_CONNECTING, /* or in line for a connection */
    ATTEMPT_SENT,       /* the request is being sent, or has been: waits for the answer's head */
    ATTEMPT_AWAITING,   /* has the head of a gRPC answer: the next bytes decide whether it is passed on */
    ATTEMPT_HOLDING,    /* has a failed answer: its body is held back while it is small */
    ATTEMPT_PASSING     /* its answer is passed on to the client */
};

struct attempt {
    struct exchange *exchange;
    struct upstream_host *host;
    uint32_t slot;
    uint32_t number;
    becalm_ns timeout_at;
    becalm_ns leave_at; /* of a streamed request: when it leaves the queue for a connection; 0: it is in none */
    enum attempt_state state;
    bool tunnel_place;             /* one of maxTunnelsPerHost, of the host with tunnel_key */
    bool asked_in_vain;            /* its host refuses Expect: 100-continue, and got the request again without it */
    bool probe;                    /* probes whether a host accepts connections again */
    bool redone;                   /* was sent again on a new connection, because the pooled one was dead */
    bool reached;                  /* its host may have read the request, or part of it */
    bool through;                  /* the request is written to its end */
    bool body_gone;                /* part of a streamed body was handed to it, which no other attempt can get */
    bool answers;                  /* its answer has begun: counted as one in progress */
    bool borrowed;                 /* its host is not in the view, and is used for this attempt only */
    bool names_fields;             /* of the answer: none of its trailers is passed on */
    bool grpc;                     /* a gRPC answer: its end has the status */
    uint32_t body_given;           /* of a recorded body: bytes that were handed to this attempt */
    uint32_t status;               /* of the answer */
    struct bytes buffer;           /* HOLDING: the answer's phrase, fields and body */
    struct early *early;           /* AWAITING: the head */
    struct attempt *unnamed_next;  /* list of the worker's attempts that wait for DNS ... */
    struct attempt **unnamed_link; /* ... NULL: not in it */
    struct ask *ask; /* expectContinue: the body waits until the host asks for it; NULL: it does not wait (any more) */

    /* From here on nothing is zeroed: it is filled before it is read. */
    uint64_t tunnel_key;
    struct becalm_outcome held; /* HOLDING: the outcome of the answer */
    size_t fields_length;       /* HOLDING: how much of `buffer` are phrase and fields */
    uint64_t content_length;    /* of the answer */
    enum body_framing framing;  /* of the answer */
    struct host_stream stream;  /* the host's side */
};

/* The one writer of its state. */
static inline void attempt_enter(struct attempt *attempt, enum attempt_state state)
{
    attempt->state = state;
}

/* An answer that the engine decides about: with the host's head or, if it was held back, with the fields that
 * answer_fields() made. */
struct offer {
    struct attempt *attempt;
    const struct head *head; /* NULL: `fields` */
    struct becalm_text fields;
    const struct pieces *pieces;
    bool ended; /* the pieces are all of its body */
};

/* The latest failed answer, in case that no retry succeeds. */
struct kept {
    uint32_t status;
    bool whole; /* its body is here in full */
    size_t fields_length;
    struct bytes bytes;    /* as answer_fields() made them, then the body */
    struct bytes trailers; /* of gRPC, as HTTP/1 writes them */
};

/* The progress of an exchange. Only exchange_enter() changes it, and only forwards; but a fallback starts again. */
enum exchange_phase {
    EXCHANGE_OPEN,    /* its request is being read and checked; there is no call yet */
    EXCHANGE_ASKING,  /* the store is asked about its key, over a network; there is no call yet */
    EXCHANGE_HELD,    /* an injected fault delays it; there is no call yet */
    EXCHANGE_CALLING, /* the engine has its call */
    EXCHANGE_OVER     /* the call has finished: the exchange ends after the present step */
};

/* Is the client still there? Only exchange_client_enter() changes it, and only forwards. */
enum client_phase {
    CLIENT_THERE,
    CLIENT_LEFT, /* has sent its FIN: no retry is made for it */
    CLIENT_GONE  /* the call goes on for the key store alone */
};

/* Has the whole request arrived? Only exchange_request_whole() changes it. */
enum request_phase { REQUEST_COMING, REQUEST_WHOLE };

/* In a gateway that joins calls to requests (join.h): is this an incoming request of the program, or its outgoing call?
 */
enum exchange_join { EXCHANGE_JOIN_NONE, EXCHANGE_JOIN_IN, EXCHANGE_JOIN_OUT };

/* How traceparent is handled. With tracing off the field is passed on unchanged. */
enum exchange_trace {
    EXCHANGE_TRACE_PASSES,
    EXCHANGE_TRACE_CONTINUED, /* the client's trace is sampled: each attempt is a span of the gateway */
    EXCHANGE_TRACE_BEGUN      /* a trace begins with this call, sampled or not; request_id is its id */
};
struct exchange_span;

/* The progress of the answer to the client. Only answer_enter() changes it, and only forwards. */
enum answer_phase {
    ANSWER_NONE,  /* nothing of it was written; 1xx don't count */
    ANSWER_BEGUN, /* its head was written: if the exchange ends now, the client's connection is cut */
    ANSWER_ENDED, /* all of it was written */
    ANSWER_TUNNEL /* the answer was 101, or the 2xx to CONNECT: from now on bytes go both ways, and the exchange ends */
};

/* The fallback for a service that could not answer. */
enum fallback {
    FALLBACK_NONE,
    FALLBACK_SERVICE, /* another service is called */
    FALLBACK_ANSWER   /* the policy has the answer */
};

struct exchange {
    struct timer timer; /* of the call; first, because it stays armed while the rest is zeroed */
    struct exchange *next;
    struct exchange **orphan_link; /* list of the worker's calls that go on without their client; NULL: not in it */
    struct client_stream *stream;  /* the client's side; stream_nobody: it has gone */
    struct worker *worker;
    struct view *view;
    const struct snapshot_target *target;
    struct meter *meter;
    bool in_step;     /* the engine's actions are being carried out: failures meanwhile are fed to it afterwards */
    uint32_t pending; /* bit n: slot n is over, with the outcome end[n] */
    enum exchange_phase phase;
    enum client_phase client;
    enum request_phase request;
    bool client_broke; /* a write to the client failed in the middle of a step */
    becalm_ns timer_at;
    bool grpc;                        /* the request is a gRPC call */
    uint32_t grpc_status;             /* of the latest answer; BECALM_GRPC_NONE: none */
    uint32_t grpc_previous;           /* attempts of a layer above, before this one */
    bool tunnel_place;                /* one of maxTunnels */
    bool host_full;                   /* the host has maxTunnelsPerHost already */
    bool no_means;                    /* no descriptor or memory of our own was left for a connection */
    bool connect_late;                /* the latest attempt timed out while it connected */
    enum becalm_http_failure failure; /* of the latest attempt that had no whole answer */
    const char *rule;                 /* the HTTP/1 rule that its host broke, or why DNS failed; NULL: none */
    becalm_ns arrived_at;
    uint64_t arrived_wall;

    /* The request. */
    struct head *head; /* as long as its fields */
    struct becalm_text path;
    struct becalm_text host_name;
    size_t prefix;          /* length of the part of the path that is replaced for hosts: see replacePrefix */
    struct bytes body;      /* collected, without chunk framing */
    struct h1_body body_in; /* decoder state of the HTTP/1 client side; used by that side only */
    struct bytes trailers;  /* after the body, as they came */
    bool body_streams;      /* is sent on while it arrives: too large to keep, or its end is not known */
    bool body_recorded;     /* of a streamed body: all that has arrived is kept, for another attempt */
    struct expect *expect;  /* set while a 100 from the host is awaited, because Expect was sent to it; else NULL */
    size_t body_reserved;   /* of replay.total */
    size_t body_buffered;   /* of a streamed body: bytes that maxBuffered counts */
    uint64_t body_bytes;    /* that have arrived */
    becalm_ns body_at;      /* since when the next EXCHANGE_BODY_STEP bytes of it are awaited ... */
    uint32_t body_step;     /* ... and how many of them have come */
    unsigned dialects;      /* of the deadline in the request */
    struct origin origin;   /* where it came from, also when the client has gone */
    enum exchange_join join;
    enum exchange_trace trace;
    struct exchange_span *span;              /* the spans of this call; NULL: they are not exported */
    const struct snapshot_target *fell_from; /* the target that could not answer; NULL: no fallback so far */
    enum fallback fallback;                  /* the fallback that was used */
    bool falls;                              /* the call is over, and another service is about to be called */
    bool named;                              /* unlisted: match.host has the very name of its host */
    bool is_head;
    bool is_connect;
    bool upgrades; /* to one protocol, and that is allowed */
    bool login;    /* by the connection: see login.h */
    bool keyed;
    bool faulted;     /* an injected fault has hit it: `fault` names the latest */
    bool wants_close; /* the client or the gateway wants to close the connection after this request */

    /* The answer. */
    uint32_t status;  /* written to the client; 0: not yet */
    uint32_t interim; /* how many 1xx were passed on */
    enum answer_phase answer;
    bool event_stream; /* an event stream, which may be silent for longer than other answers; known once its head is
                          written */
    uint64_t answer_bytes;
    struct attempt *passing;
    const struct offer *offer; /* while the engine is asked about it */
    struct kept kept;

    /* The idempotency key that it holds in the store, and the answer that will be stored. */
    struct store *store; /* the store that is asked for the key, or holds it */
    bool asking;         /* the store's answer is awaited */
    bool holds_key;
    bool storing;
    bool reached;     /* a host may have read the request of an attempt that is over */
    bool answer_lost; /* too large to be stored, or there was no memory for it */
    struct bytes stored;
    size_t stored_fields;

    struct attempt *attempt[BECALM_SLOTS];
    void *large; /* a request's head that does not fit into `space`; NULL: it does */

    /* From here on nothing is zeroed: it is filled before it is read, and there is much of it. */
    struct becalm_call call;
    struct becalm_outcome end[BECALM_SLOTS];
    char fault[FAULT_NAME_MAX];         /* if it is `faulted` */
    struct meter_steps steps;           /* the counted steps of the call */
    char request_id[REQUEST_ID_LENGTH]; /* the id that was made for a request that came without one */
    char retry_after[32];               /* of the latest failed answer, as it came; its first byte is zeroed */
    struct store_key key;
    struct store_ask ask;
    struct fault_hold *hold; /* HELD: by which fault; NULL: not any more */
    struct join_keys joined; /* its ids, if it is joined */
    struct timer silence;    /* without a client: ends the call if too little of the answer arrives */
    uint64_t silence_bytes;  /* bytes of the answer that had arrived when it was armed */
    struct attempt first;    /* everything but its state */
    char space[];            /* up to EXCHANGE_BYTES in all */
};

/* The head of a request has been parsed: answers it at once, or makes an exchange that collects the body and begins the
 * call. */
void exchange_open(struct worker *, struct client_stream *, const struct head *);

/* A piece of the request's body has arrived, or a piece of its trailers as HTTP/1 writes them. False: the request is
 * refused, and the stream has no exchange any more. */
bool exchange_body(struct exchange *, struct becalm_text piece);
bool exchange_trailers(struct exchange *, struct becalm_text piece);
/* No more pieces of the body for now: the exchange goes on with those it has. `ended`: the body is complete. False: as
 * above; true: the exchange may or may not be there. */
bool exchange_body_came(struct exchange *, bool ended);
/* Shall the side give all pieces of one wake-up together, even if there are none? */
bool exchange_gathers(const struct exchange *);
/* Ends the recording of a streamed body: from now on only this attempt has it, and no other can be made. */
void exchange_record_end(struct exchange *, struct attempt *);
/* The body is malformed. */
void exchange_body_wrong(struct exchange *, const char *what);
/* A streamed body is on its way: which side does it wait for? */
enum upload { UPLOAD_NONE, UPLOAD_CLIENT, UPLOAD_HOST };
enum upload exchange_upload(const struct exchange *);
/* May more of the body be read from the client now? */
bool exchange_wants_body(const struct exchange *);
/* Does the client send its body more slowly than bodyTimeout allows, as far as it has arrived? */
bool exchange_body_slow(const struct exchange *);
/* When the body is too late if no more of it arrives; BECALM_NEVER: nothing is awaited from the client. */
becalm_ns exchange_body_due(const struct exchange *);
/* How long the exchange may go without progress on either side; BECALM_NEVER: the engine times the call. */
becalm_ns exchange_patience(const struct exchange *);
/* There was no progress for that long, and no bytes wait for the client to read. False: the exchange only waits for the
 * client's body, and is unchanged. */
bool exchange_stalled(struct exchange *);
/* The idle timeout of event streams and tunnels, which are often silent: `written`, or if the policy sets none, the
 * usual value of other proxies. */
becalm_ns exchange_silence_or(becalm_ns written, becalm_ns usual, const struct becalm_settings *);
becalm_ns exchange_stream_idle(const struct becalm_settings *);
/* The host takes more of the body: the time that the host needed does not count against the client. */
void exchange_body_resumes(struct exchange *);

/* The client is gone. The call ends, unless it holds an idempotency key: a client that repeats the request gets its
 * answer. */
void exchange_cancel(struct exchange *);
/* Would the call go on if the client were gone? */
bool exchange_outlives(const struct exchange *);
/* Without a client: more of the answer has arrived. False: it will not be stored, and the exchange must be cancelled.
 */
bool exchange_orphan_moves(struct exchange *);
/* The client has sent its FIN after the request: it may be gone, or have closed its sending side only. Its answer is
 * still delivered, but no retry is made for it. May end the exchange. */
void exchange_left(struct exchange *);
/* The client's socket takes bytes again. */
void exchange_unblocked(struct exchange *);
/* The host takes more of a streamed body: it is read from the client again. */
void exchange_feed(struct exchange *);
/* The gate serves this call. */
void exchange_serve(struct exchange *);

/* Feeds an event to the engine. False: the exchange is over, and freed with all its attempts. */
bool exchange_event(struct exchange *, enum becalm_event_kind, uint32_t slot, const struct becalm_outcome *);
/* An attempt ended without an answer to be passed on. In the middle of a step, the engine is told after the step. */
void exchange_attempt_ended(struct exchange *, uint32_t slot, const struct becalm_outcome *);
void exchange_discard(struct exchange *, bool keep);            /* before there is a call: it is answered */
void exchange_log(const struct exchange *, const char *reason); /* its line in the access log */
void exchange_log_broken(const struct exchange *, struct upstream_host *, const struct host_failure *);

/* Shared by the files of the exchange. Makes one for a client's stream; NULL: no memory. */
struct exchange *exchange_make(struct worker *, struct client_stream *);
void exchange_free(struct exchange *);
void exchange_enter(struct exchange *, enum exchange_phase);
void exchange_request_whole(struct exchange *);

/* exchange_open.c: the request has arrived completely: its key is looked up, and the call begins. */
void exchange_asked(struct exchange *);
void exchange_begin_again(struct exchange *); /* the call to the fallback service */
void exchange_begin(struct exchange *);       /* the call, also before all of the body is here */
/* An answer of the gateway's own, before there is a call. */
struct refusal {
    uint32_t status;
    const char *error; /* of Proxy-Status */
    const char *reason;
    const char *detail;
    uint32_t last_status;  /* of the service's earlier answer; 0: none */
    becalm_ns retry_after; /* of 409: when a retry may help; 0: unknown */
};
void exchange_refuse(struct exchange *, uint32_t status, const char *error, const char *reason, const char *detail);
void exchange_refuse_as(struct exchange *, const struct refusal *);

void exchange_refuse_body(struct exchange *); /* as larger than maxBody */

/* exchange_join.c: the call is about to begin, and may get an earlier deadline; its answer has this mark; the mark that
 * joined calls put on the answer, as text in `room`; the exchange is over. */
void exchange_join_begin(struct exchange *, struct becalm_request *);
void exchange_join_told(struct exchange *, enum becalm_mark_kind, enum becalm_reason);
#define EXCHANGE_MARK_ROOM 96u
struct becalm_text exchange_join_mark(struct exchange *, char room[EXCHANGE_MARK_ROOM]);
void exchange_join_end(struct exchange *);

/* exchange_trace.c. The call is about to begin, in a gateway that traces: makes its ids. */
void exchange_trace_begin(struct exchange *);
/* The value of traceparent for an attempt; `text` has one already, of zeroes, not sampled. */
void exchange_trace_write(struct draft *, char text[TRACEPARENT_LENGTH], const struct exchange *,
                          const struct attempt *);
void exchange_trace_retry(struct exchange *, uint32_t number); /* another attempt will be sent after this one */
void exchange_trace_end(struct exchange *);                    /* the call is over, and has a span */
/* The trace id that its host gets, from the client or made here; absent: none. */
struct becalm_text exchange_trace_id(const struct exchange *, char room[TRACE_ID_LENGTH]);
void exchange_trace_again(struct exchange *); /* a second call, to the fallback service, for the same request */

/* exchange_log.c */
void exchange_log_end(struct exchange *);                        /* the call is over */
void exchange_log_fell(struct exchange *);                       /* the call is over, and a fallback call follows */
struct becalm_text exchange_request_id(const struct exchange *); /* from the client, or made by the gateway */
void exchange_log_retry(struct exchange *, const struct becalm_action *);

/* The role of the gateway towards the client of this exchange. */
static inline enum becalm_role exchange_role(const struct exchange *exchange)
{
    return exchange->view->snapshot->door[exchange->origin.door].role;
}

/* The connection to a host that belongs to its client by a login; NULL: none. */
static inline struct upstream *exchange_login(struct exchange *exchange)
{
    struct host_owner owner = exchange->stream->ops->owner(exchange->stream);
    return owner.own == NULL || *owner.own == NULL ? NULL : upstream_login(&owner);
}

/* exchange_request.c */
bool exchange_copy_request(struct exchange *, const struct head *);
/* The head for a host; its values are made in the worker's buffer. */
void exchange_draft_request(struct exchange *, const struct attempt *, struct draft *);
bool exchange_may_repeat(const struct exchange *);
bool exchange_sends_chunks(const struct exchange *); /* to hosts */
/* NULL, or why a host's 101 does not answer this request. */
const char *exchange_switch_wrong(const struct exchange *, const struct head *);
bool exchange_loops(const struct exchange *);           /* by Via: it has passed this very gateway before */
bool exchange_route(struct exchange *, struct route *); /* false: its target is malformed */
bool exchange_route_at(struct exchange *, uint32_t service, struct route *); /* which endpoint of this one it is for */
/* How much of the path is match.prefix of the route, and is replaced for hosts; 0: nothing is. */
size_t exchange_prefix(const struct exchange *, const struct route *);
bool exchange_port_fits(const struct exchange *, const struct route *); /* of a URL, by http_proxy */
uint32_t exchange_number(const struct exchange *, enum field_id);       /* of a field of the request; 0: none */
uint32_t exchange_attempt_from_above(const struct exchange *);          /* x-envoy-attempt-count; 0: none */
struct becalm_text exchange_method(const struct exchange *);
void exchange_release_body(struct exchange *);
void exchange_drop_body(struct exchange *);      /* the part that was sent on */
void exchange_unreserve_body(struct exchange *); /* gives its share of replay.total back */
uint64_t exchange_held(const struct exchange *); /* bytes of its buffers that maxBuffered counts */

/* exchange_answer.c */
void answer_enter(struct exchange *, enum answer_phase);
void answer_classify(struct attempt *, const struct head *, struct becalm_outcome *);
void answer_keep(struct exchange *, const struct offer *); /* in case that no retry succeeds */
/* A 1xx before the answer. False: the write broke the client's connection, and the exchange is freed. */
bool answer_interim(struct exchange *, const struct head *);
/* Writes the head of an answer, and the part of its body that is here. */
void answer_begin(struct exchange *, const struct offer *, const struct becalm_action *);
/* More of its body. False: the client's connection is broken; close it. */
bool answer_more(struct exchange *, const struct pieces *, bool ended);
/* Writes a complete answer, with trailers as HTTP/1 writes them; notes whether the write broke the client's connection.
 */
void answer_whole(struct exchange *, const struct draft *, struct becalm_text body, const struct bytes *trailers);
/* The same without trailers. */
void exchange_answer(struct exchange *, const struct draft *, struct becalm_text body);
/* No attempt has an answer to be passed on: writes the policy's fallback, the kept answer, or the gateway's own. */
void answer_finish(struct exchange *, const struct becalm_action *, bool fallback);
/* Packs the answer's head for keeping or storing, with the gateway's added fields: see message/packed.h. */
bool answer_fields(struct worker *, const struct head *, struct bytes *);

/* The protocol under which it is counted, for a side that speaks HTTP/2 or not. */
static inline enum meter_protocol exchange_protocol(const struct exchange *exchange, bool h2)
{
    return exchange->grpc ? METER_GRPC : h2 ? METER_H2 : METER_H1;
}

/* exchange_grpc.c */
bool grpc_is_call(const struct head *);
/* Is the request a gRPC call whose client accepts trailers? */
static inline bool grpc_has_trailers(const struct exchange *exchange)
{
    return exchange->grpc && exchange->head->version == HTTP_2;
}
/* The outcome of a gRPC answer that is complete: by its trailers, or by its head if it has trailers only. */
void grpc_classify(struct attempt *, const struct head *, struct becalm_outcome *);
/* The outcome of a gRPC call whose host has reset the stream with this HTTP/2 code. */
void grpc_classify_reset(struct exchange *, uint32_t code, struct becalm_outcome *);
/* The gRPC code of the gateway's own answer with this HTTP status; BECALM_GRPC_NONE: it is no gRPC call. */
uint32_t grpc_refusal(struct exchange *, uint32_t status);
uint32_t grpc_as_http(uint32_t code);
/* The answer has begun and can't be completed: ends it with an error in its trailers. */
void grpc_end(struct exchange *, const struct becalm_action *);

/* attempt_fault.c: an exchange or attempt that an injected fault delays, until its time has come or the fault ends. */
struct fault_hold {
    struct timer timer;
    struct worker *worker;
    struct fault_hold *next;
    struct fault_hold **link;
    struct fault_hit hit;
    bool over; /* the fault has ended early */
    void (*then)(struct fault_hold *);
    void *data; /* the exchange or attempt */
};
/* NULL: no memory. `then` is called when `at` has come, or the fault has ended; the caller frees the hold. */
struct fault_hold *fault_hold(struct worker *, const struct fault_hit *, becalm_ns at,
                              void (*then)(struct fault_hold *), void *data);
void fault_hold_free(struct fault_hold *);
void fault_holds_end(struct worker *); /* ends the holds whose fault is over */
/* Is the exchange hit, by a fault of this kind? Notes it. */
bool fault_hits(struct exchange *, bool to_clients, uint32_t host, struct fault_hit *);
/* Is the attempt hit, which is about to begin? Then it ends by itself, or begins later. */
bool attempt_fault(struct attempt *, uint32_t host);

/* attempt_passing.c: why a request to a service with `unlisted: pass` is not passed on; NULL: it is. */
const char *exchange_passing(struct exchange *, const struct route *);
/* Finds the host that the request names. */
enum attempt_place {
    ATTEMPT_PLACED,  /* attempt->host is set */
    ATTEMPT_UNNAMED, /* its name is being resolved: attempts_named() goes on */
    ATTEMPT_NOWHERE
};
enum attempt_place attempt_place(struct attempt *, const char **why); /* NOWHERE, if there is more to say */
void attempt_unplace(struct attempt *);                               /* the attempt ends */
void attempts_named(struct worker *);     /* some names have been resolved, or could not be */
void passing_hosts_drop(struct worker *); /* at the worker's end */

/* exchange_fallback.c: the fallback for a call that ends with this reason, of whose answer nothing was delivered. */
enum fallback fallback_of(const struct exchange *, enum becalm_reason);
void fallback_answer(struct exchange *, const struct becalm_action *); /* writes the fixed answer of the policy */
void fallback_begin(struct exchange *);                      /* from now on the call goes to the fallback's service */
void fallback_name(struct draft *, const struct exchange *); /* adds the field `becalm-fallback` */

/* exchange_fault.c: does a fault hit the call that is about to begin? Then the exchange ends, or goes on later. */
bool exchange_fault(struct exchange *);
void exchange_fault_end(struct exchange *); /* HELD: the exchange is cancelled */

/* Are there any faults? */
static inline bool exchange_faults(const struct exchange *exchange)
{
    return fault_book_any(exchange->worker->faults);
}

/* attempt.c */
void attempt_go(struct attempt *); /* to its host */
void attempt_start(struct exchange *, const struct becalm_action *);
void attempt_abandon(struct attempt *);
void attempt_free(struct attempt *);
void attempt_stalled(struct attempt *);        /* its answer, or the upload before it, makes no progress any more */
void attempt_resume(struct attempt *);         /* the client takes bytes again */
void attempt_body(struct attempt *);           /* there is more of the request's body */
bool attempt_blocked(const struct attempt *);  /* its host does not read the bytes that were written already */
uint64_t attempt_held(const struct attempt *); /* bytes of its buffers */

/* exchange_key.c: does the endpoint remember keys? */
static inline bool key_guards(const struct becalm_rules *rules)
{
    return rules->key == BECALM_KEY_REQUIRED || rules->key == BECALM_KEY_ENFORCED;
}
/* Begins the key of a request to an endpoint that remembers keys. True: the call may begin. False: the request was
 * answered or refused, and the exchange is freed; or the store is asked, and the exchange goes on by itself. */
bool key_begin(struct exchange *);
void key_forget(struct exchange *); /* ASKING: the exchange is cancelled */
void key_store_begin(struct exchange *, const struct offer *);
void key_store_more(struct exchange *, const struct pieces *);
/* All of the answer is here, with these trailers. */
void key_answered(struct exchange *, const struct bytes *trailers);
/* The call is over; if it still holds its key, there was no complete answer. */
void key_end(struct exchange *);

/* exchange_expect.c: the host is asked whether it wants the body. False: no memory. */
bool expect_begin(struct exchange *);
/* The same for an attempt whose body has arrived already (expectContinue). False: out of memory, or the host need not
 * be asked. */
bool ask_begin(struct attempt *);
void ask_drop(struct attempt *);     /* the host has answered, or its answer does not matter any more */
void expect_sent(struct exchange *); /* the head with Expect has just been written to the host */
/* The host wants the body, or has not answered for too long: the client gets a 100. False: the write broke the client's
 * connection, and the exchange is freed. */
bool expect_met(struct exchange *);
void expect_drop(struct exchange *);
void expect_answer(const struct exchange *); /* sends the 100 itself, because it collects the body first */

/* exchange_tunnel.c: places, at most maxTunnels in all and maxTunnelsPerHost. Taken when a request asks for a tunnel,
 * given back with its end or the tunnel's. False: there is none. */
bool tunnel_place_take(struct exchange *);
void tunnel_place_give(struct exchange *);
bool tunnel_host_take(struct attempt *);
void tunnel_host_give(struct attempt *);
/* The host has agreed: its connection and the client's become a tunnel, and the call is over. `head` is that of the
 * 101, and `behind` are bytes that came after it; NULL: the answer to a CONNECT. */
void exchange_tunnel(struct attempt *, const struct head *, struct becalm_text behind);

#endif
