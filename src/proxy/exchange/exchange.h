/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_EXCHANGE_H
#define BECALM_PROXY_EXCHANGE_H

/* One request of a client and its answer: the driver of one becalm_call. The engine says what to do; this does it.
 *
 *   exchange_open.c     a request has come: where it goes, and what is refused at once
 *   exchange_body.c     its body
 *   exchange.c          events in, actions out; memory, and the end
 *   exchange_log.c      what is written down about it
 *   exchange_request.c  what a client asked, and what is written to a host
 *   exchange_answer.c   what a host answered, and what is passed on
 *   attempt.c           one attempt on a connection
 *   attempt_fault.c     faults on order: what is held by them, and attempts that are hit
 *   attempt_passing.c   attempts to hosts that no service names
 *   exchange_fallback.c what is answered in place of a service that can't
 *   exchange_fault.c    calls that are hit by them
 *   exchange_key.c      idempotency keys and stored answers
 *   exchange_join.c     calls of a program, joined to the requests that it got
 *   exchange_trace.c    traceparent, and the spans of a call
 *   exchange_expect.c   Expect: 100-continue
 *   exchange_tunnel.c   places for tunnels, and the answer that opens one
 *   exchange_grpc.c     what is different with gRPC */

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
#define EXCHANGE_BODY_STEP 16384u /* so much of a body comes in each bodyTimeout, or it is too slow */
#define KEEP_BYTES         4096u  /* of a failed answer's body, while a retry may still bring a better one */

enum attempt_state {
    ATTEMPT_NONE,
    ATTEMPT_CONNECTING, /* or in line for a connection */
    ATTEMPT_SENT,       /* the request is on its way, or through: waits for the answer's head */
    ATTEMPT_AWAITING,   /* the head of a gRPC answer: what comes next tells whether it is passed on */
    ATTEMPT_HOLDING,    /* a failed answer: its body is kept back while it is small */
    ATTEMPT_PASSING     /* its answer goes to the client */
};

struct attempt {
    struct exchange *exchange;
    struct upstream_host *host;
    uint32_t slot;
    uint32_t number;
    becalm_ns timeout_at;
    becalm_ns leave_at; /* of a request that streams: the line for a connection; 0: it is in none */
    enum attempt_state state;
    bool tunnel_place;             /* one of maxTunnelsPerHost, of the host with tunnel_key */
    bool asked_in_vain;            /* its host refuses Expect: 100-continue, and got the request again without it */
    bool probe;                    /* asks whether a host is back that refused everybody */
    bool redone;                   /* on a fresh connection, because the pooled one was dead */
    bool reached;                  /* its host may have read the request, or part of it */
    bool through;                  /* the request is written to its end */
    bool body_gone;                /* part of a body that streams was given to it: no other attempt could have that */
    bool answers;                  /* its answer has begun: counted as one in progress */
    bool borrowed;                 /* its host is none of the view's, and was taken into use for it */
    bool names_fields;             /* of the answer: none of its trailers is passed on */
    bool grpc;                     /* the answer is one of gRPC: its end tells how it went */
    uint32_t body_given;           /* of a body that is recorded: so much of it */
    uint32_t status;               /* of the answer */
    struct bytes buffer;           /* HOLDING: the answer's phrase, fields and body */
    struct early *early;           /* AWAITING: the head */
    struct attempt *unnamed_next;  /* among the worker's that wait for a name to be resolved ... */
    struct attempt **unnamed_link; /* ... NULL: it does not */
    struct ask *ask; /* the body waits until the host wants it (expectContinue); NULL: it does not, or not any more */

    /* From here on nothing is zeroed: it is filled before it is read. */
    uint64_t tunnel_key;
    struct becalm_outcome held; /* HOLDING: what the answer means */
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

/* An answer that the engine is asked about: its head as it came or, of one that was held back, as answer_fields() made
 * it. */
struct offer {
    struct attempt *attempt;
    const struct head *head; /* NULL: `fields` */
    struct becalm_text fields;
    const struct pieces *pieces;
    bool ended; /* the pieces are all of its body */
};

/* The latest failed answer, for the case that no better one comes. */
struct kept {
    uint32_t status;
    bool whole; /* its body is here in full */
    size_t fields_length;
    struct bytes bytes;    /* as answer_fields() made them, then the body */
    struct bytes trailers; /* of gRPC, as HTTP/1 writes them */
};

/* How far an exchange has come. exchange_enter() alone moves it, forwards; but a fallback begins anew. */
enum exchange_phase {
    EXCHANGE_OPEN,    /* its request is being read and checked; there is no call yet */
    EXCHANGE_ASKING,  /* the store is asked about its key, over a network; there is no call yet */
    EXCHANGE_HELD,    /* a fault on order delays it; there is no call yet */
    EXCHANGE_CALLING, /* the engine has its call */
    EXCHANGE_OVER     /* the call has finished: the exchange ends with the step that it is in */
};

/* Is anybody there to be answered? exchange_client_enter() alone moves it, forwards. */
enum client_phase {
    CLIENT_THERE,
    CLIENT_LEFT, /* has sent its last byte: nothing is done again for it */
    CLIENT_GONE  /* the call goes on for the store alone */
};

/* Has all of the request come? exchange_request_whole() alone says so. */
enum request_phase { REQUEST_COMING, REQUEST_WHOLE };

/* Is it a request that came in, or a call that its program makes, of a gateway that joins them (join.h)? */
enum exchange_join { EXCHANGE_JOIN_NONE, EXCHANGE_JOIN_IN, EXCHANGE_JOIN_OUT };

/* What becomes of traceparent: with tracing off it passes as it came. */
enum exchange_trace {
    EXCHANGE_TRACE_PASSES,
    EXCHANGE_TRACE_CONTINUED, /* it is sampled: each attempt is a span of ours */
    EXCHANGE_TRACE_BEGUN      /* a trace begins with this call, sampled or not; request_id is its id */
};
struct exchange_span;

/* How far the answer has come. answer_enter() alone moves it, forwards. */
enum answer_phase {
    ANSWER_NONE,  /* nothing of it was written; 1xx don't count */
    ANSWER_BEGUN, /* its head was written: if it ends so, the client's connection is cut */
    ANSWER_ENDED, /* all of it was written */
    ANSWER_TUNNEL /* it was 101, or CONNECT's: from now on bytes go both ways, and the exchange ends */
};

/* What is answered in place of a service that can't. */
enum fallback {
    FALLBACK_NONE,
    FALLBACK_SERVICE, /* another service is asked */
    FALLBACK_ANSWER   /* the policy has the answer */
};

struct exchange {
    struct timer timer; /* the call's; first, since it stays armed while the rest is zeroed */
    struct exchange *next;
    struct exchange **orphan_link; /* among its worker's calls that go on without their client; NULL: none of them */
    struct client_stream *stream;  /* the client's side; stream_nobody: it has gone */
    struct worker *worker;
    struct view *view;
    const struct snapshot_target *target;
    struct meter *meter;
    bool in_step;     /* failures that arise while the engine's actions are done wait their turn */
    uint32_t pending; /* bit n: slot n is over, as end[n] says */
    enum exchange_phase phase;
    enum client_phase client;
    enum request_phase request;
    bool client_broke; /* in the middle of a step, by what was written to it */
    becalm_ns timer_at;
    bool grpc;                        /* it is a call of gRPC */
    uint32_t grpc_status;             /* of the latest answer; BECALM_GRPC_NONE: none */
    uint32_t grpc_previous;           /* attempts of a layer above, before this one */
    bool tunnel_place;                /* one of maxTunnels */
    bool host_full;                   /* the host has maxTunnelsPerHost already */
    bool no_means;                    /* no descriptor or memory of our own was left for a connection */
    bool connect_late;                /* it was the latest attempt's connect that timed out */
    enum becalm_http_failure failure; /* of the latest attempt that had no whole answer */
    const char *rule;                 /* of HTTP/1 that its host broke, or why its name leads nowhere; NULL: none */
    becalm_ns arrived_at;
    uint64_t arrived_wall;

    /* The request. */
    struct head *head; /* as long as its fields */
    struct becalm_text path;
    struct becalm_text host_name;
    size_t prefix;          /* so much of the path is replaced for hosts: see replacePrefix */
    struct bytes body;      /* collected, chunks undone */
    struct h1_body body_in; /* the side of HTTP/1 reads it by this; nobody else looks */
    struct bytes trailers;  /* behind it, as they came */
    bool body_streams;      /* goes on as it comes: too large to keep, or nobody knows when it ends */
    bool body_recorded;     /* of one that streams: all that came of it is kept, for another attempt */
    struct expect *expect;  /* Expect goes to the host, and its 100 is awaited; NULL: not, or not any more */
    size_t body_reserved;   /* of the gateway's total */
    size_t body_buffered;   /* of one that streams: what maxBuffered counts */
    uint64_t body_bytes;    /* that have come */
    becalm_ns body_at;      /* since when the next EXCHANGE_BODY_STEP bytes of it are awaited ... */
    uint32_t body_step;     /* ... and how many of them have come */
    unsigned dialects;      /* of the deadline that came in */
    struct origin origin;   /* where it came from, also when the client has gone */
    enum exchange_join join;
    enum exchange_trace trace;
    struct exchange_span *span;              /* of a call whose spans are exported; NULL: they are not */
    const struct snapshot_target *fell_from; /* who could not answer; NULL: there is no fallback so far */
    enum fallback fallback;                  /* what it has come to */
    bool falls;                              /* the call is over, and another service is about to be asked */
    bool named;                              /* unlisted: match.host has the very name of its host */
    bool is_head;
    bool is_connect;
    bool upgrades; /* to one protocol, and that is allowed */
    bool login;    /* by the connection: see login.h */
    bool keyed;
    bool faulted;     /* a fault on order has hit it: `fault` names the latest */
    bool wants_close; /* the client's wish, or our own: no further request on this connection */

    /* The answer. */
    uint32_t status;  /* told to the client; 0: not yet */
    uint32_t interim; /* how many 1xx were passed on */
    enum answer_phase answer;
    bool event_stream; /* it may be silent for longer than others; known once its head has gone */
    uint64_t answer_bytes;
    struct attempt *passing;
    const struct offer *offer; /* while the engine is asked about it */
    struct kept kept;

    /* The key that it holds in the store, and the answer that will be stored. */
    struct store *store; /* where the key is asked for, or held */
    bool asking;         /* its answer is awaited */
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
    struct meter_steps steps;           /* what was counted of the call's steps */
    char request_id[REQUEST_ID_LENGTH]; /* of a call whose request came without one */
    char retry_after[32];               /* of the latest failed answer, as it came; its first byte is zeroed */
    struct store_key key;
    struct store_ask ask;
    struct fault_hold *hold; /* HELD: by whom; NULL: not any more */
    struct join_keys joined; /* its ids, if it is joined */
    struct timer silence;    /* without a client: nothing more of the answer has come for too long */
    uint64_t silence_bytes;  /* of the answer that had come when it was armed */
    struct attempt first;    /* but its state */
    char space[];            /* up to EXCHANGE_BYTES in all */
};

/* A head has been parsed: answers it, or makes an exchange that collects its body and begins. */
void exchange_open(struct worker *, struct client_stream *, const struct head *);

/* A piece of the request's body has come, or a piece of its trailers as HTTP/1 writes them. False: it is refused, and
 * the stream has no exchange any more. */
bool exchange_body(struct exchange *, struct becalm_text piece);
bool exchange_trailers(struct exchange *, struct becalm_text piece);
/* That was all for now: the exchange goes on with it. `ended`: that was all. False: as above; true says nothing. */
bool exchange_body_came(struct exchange *, bool ended);
/* Shall all that comes of the body in one wake-up be given at once, also if that is nothing? */
bool exchange_gathers(const struct exchange *);
/* What was kept of a body that streams is not kept any more: another attempt would not be this one's. */
void exchange_record_end(struct exchange *, struct attempt *);
/* The body is malformed. */
void exchange_body_wrong(struct exchange *, const char *what);
/* A body that streams is on its way: whose turn is it? */
enum upload { UPLOAD_NONE, UPLOAD_CLIENT, UPLOAD_HOST };
enum upload exchange_upload(const struct exchange *);
/* May more of the body be read from the client now? */
bool exchange_wants_body(const struct exchange *);
/* Is the client slower with its body than bodyTimeout asks for, by what has come so far? */
bool exchange_body_slow(const struct exchange *);
/* When the body will be too late, if no more of it comes; BECALM_NEVER: nothing is awaited from the client. */
becalm_ns exchange_body_due(const struct exchange *);
/* How long nothing may move on either side; BECALM_NEVER: the engine times the call. */
becalm_ns exchange_patience(const struct exchange *);
/* So long nothing has moved, and nothing waits for the client to read. False: it is the client's body that does not
 * come, and the exchange is as it was. */
bool exchange_stalled(struct exchange *);
/* Event streams and tunnels are silent by nature: what is usual elsewhere, if nobody wrote it. */
becalm_ns exchange_silence_or(becalm_ns written, becalm_ns usual, const struct becalm_settings *);
becalm_ns exchange_stream_idle(const struct becalm_settings *);
/* The host takes more of it: the time that it needed was not the client's. */
void exchange_body_resumes(struct exchange *);

/* The client is gone. The call ends, unless it has a key: a client that repeats it will ask how it ended. */
void exchange_cancel(struct exchange *);
/* Would it go on then? */
bool exchange_outlives(const struct exchange *);
/* Without a client: more of the answer has come. False: nobody will want it, and the exchange is to be cancelled. */
bool exchange_orphan_moves(struct exchange *);
/* The client has sent its last byte, after its request: it may be gone, or have closed one side only. Its answer is
 * still delivered, but nothing is done again for it. May end the exchange. */
void exchange_left(struct exchange *);
/* The client's socket takes bytes again. */
void exchange_unblocked(struct exchange *);
/* The host takes more of a body that streams: it is read from the client again. */
void exchange_feed(struct exchange *);
/* The gate calls this one. */
void exchange_serve(struct exchange *);

/* For attempt.c: false: the exchange is over, and gone with all its attempts. */
bool exchange_event(struct exchange *, enum becalm_event_kind, uint32_t slot, const struct becalm_outcome *);
/* An attempt ended without an answer to be passed on. If the exchange is in the middle of a step, it is told
 * afterwards.
 */
void exchange_attempt_ended(struct exchange *, uint32_t slot, const struct becalm_outcome *);
void exchange_discard(struct exchange *, bool keep);            /* before there is a call: it is answered */
void exchange_log(const struct exchange *, const char *reason); /* its line in the access log */
void exchange_log_broken(const struct exchange *, struct upstream_host *, const struct host_failure *);

/* What the files of the exchange share: its memory, with the stream that asks, or NULL; the writer of its phase. */
struct exchange *exchange_make(struct worker *, struct client_stream *);
void exchange_free(struct exchange *);
void exchange_enter(struct exchange *, enum exchange_phase);
void exchange_request_whole(struct exchange *);

/* exchange_open.c: the request is here, with all of its body: its key is looked up, and the call begins. */
void exchange_asked(struct exchange *);
void exchange_begin_again(struct exchange *); /* the call to who stands in */
void exchange_begin(struct exchange *);       /* the call, also before all of the body is here */
/* An answer of our own, before there is a call. */
struct refusal {
    uint32_t status;
    const char *error; /* of Proxy-Status */
    const char *reason;
    const char *detail;
    uint32_t last_status;  /* what the service once said; 0: nothing */
    becalm_ns retry_after; /* of 409: when it may be worth another try; 0: nobody knows */
};
void exchange_refuse(struct exchange *, uint32_t status, const char *error, const char *reason, const char *detail);
void exchange_refuse_as(struct exchange *, const struct refusal *);

void exchange_refuse_body(struct exchange *); /* as larger than maxBody */

/* exchange_join.c: the call is about to begin, with this deadline; its answer has this mark; what a mark of a call that
 * it made says about it, as text in `room`; it is over. */
void exchange_join_begin(struct exchange *, struct becalm_request *);
void exchange_join_told(struct exchange *, enum becalm_mark_kind, enum becalm_reason);
#define EXCHANGE_MARK_ROOM 96u
struct becalm_text exchange_join_mark(struct exchange *, char room[EXCHANGE_MARK_ROOM]);
void exchange_join_end(struct exchange *);

/* exchange_trace.c: the call is about to begin, in a gateway that traces: makes its ids; the field of an attempt;
 * another attempt will be sent after this one; the call is over, and has a span. */
void exchange_trace_begin(struct exchange *);
/* The value of traceparent for an attempt; `text` has one already, of zeroes, not sampled. */
void exchange_trace_write(struct draft *, char text[TRACEPARENT_LENGTH], const struct exchange *,
                          const struct attempt *);
void exchange_trace_retry(struct exchange *, uint32_t number);
void exchange_trace_end(struct exchange *);
/* The trace that its host is told of, whoever began it; absent: none. */
struct becalm_text exchange_trace_id(const struct exchange *, char room[TRACE_ID_LENGTH]);
void exchange_trace_again(struct exchange *); /* there is another call for the same request */

/* exchange_log.c */
void exchange_log_end(struct exchange *);                        /* the call is over */
void exchange_log_fell(struct exchange *);                       /* so is this one, and there will be another */
struct becalm_text exchange_request_id(const struct exchange *); /* of a call: as it came, or as it was made */
void exchange_log_retry(struct exchange *, const struct becalm_action *);

/* What this gateway is to who asks. */
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
void exchange_drop_body(struct exchange *);      /* what of it was sent on */
void exchange_unreserve_body(struct exchange *); /* the gateway's total */
uint64_t exchange_held(const struct exchange *); /* bytes of the buffers that maxBuffered is about */

/* exchange_answer.c */
void answer_enter(struct exchange *, enum answer_phase);
void answer_classify(struct attempt *, const struct head *, struct becalm_outcome *);
void answer_keep(struct exchange *, const struct offer *); /* in case that no better one comes */
/* A 1xx before the answer. False: the client's connection broke by it, and the exchange is gone. */
bool answer_interim(struct exchange *, const struct head *);
/* Writes the head of an answer, and what there is of its body. */
void answer_begin(struct exchange *, const struct offer *, const struct becalm_action *);
/* More of its body. False: the client's connection is broken; close it. */
bool answer_more(struct exchange *, const struct pieces *, bool ended);
/* Writes an answer that is whole, with trailers as HTTP/1 writes them; notes whether the client broke by it. */
void answer_whole(struct exchange *, const struct draft *, struct becalm_text body, const struct bytes *trailers);
/* The same without trailers. */
void exchange_answer(struct exchange *, const struct draft *, struct becalm_text body);
/* Without an answer: the fallback of the policy, the kept one, or our own. */
void answer_finish(struct exchange *, const struct becalm_action *, bool fallback);
/* Packs the answer's head for keeping or storing, with what we add to one that passes: see message/packed.h. */
bool answer_fields(struct worker *, const struct head *, struct bytes *);

/* What it is counted as, on a side that speaks HTTP/2 or not. */
static inline enum meter_protocol exchange_protocol(const struct exchange *exchange, bool h2)
{
    return exchange->grpc ? METER_GRPC : h2 ? METER_H2 : METER_H1;
}

/* exchange_grpc.c */
bool grpc_is_call(const struct head *);
/* Is it one whose client takes trailers? */
static inline bool grpc_has_trailers(const struct exchange *exchange)
{
    return exchange->grpc && exchange->head->version == HTTP_2;
}
/* What an answer of gRPC means that has come to its end: by its trailers or, if they are all there is, its head. */
void grpc_classify(struct attempt *, const struct head *, struct becalm_outcome *);
/* What it means to a call of gRPC that its host has reset the stream with this code of HTTP/2. */
void grpc_classify_reset(struct exchange *, uint32_t code, struct becalm_outcome *);
/* The status of an answer of our own that would have this one of HTTP; BECALM_GRPC_NONE: it is no call of gRPC. */
uint32_t grpc_refusal(struct exchange *, uint32_t status);
uint32_t grpc_as_http(uint32_t code);
/* The answer has begun and can't go on: says so in its trailers. */
void grpc_end(struct exchange *, const struct becalm_action *);

/* attempt_fault.c: what a fault holds back, until it is over or its own time has come. */
struct fault_hold {
    struct timer timer;
    struct worker *worker;
    struct fault_hold *next;
    struct fault_hold **link;
    struct fault_hit hit;
    bool over; /* the fault is, before its time */
    void (*then)(struct fault_hold *);
    void *data; /* whom it holds */
};
/* NULL: no memory. `then` is called when `at` has come, or the fault is over; the hold is freed by who made it. */
struct fault_hold *fault_hold(struct worker *, const struct fault_hit *, becalm_ns at,
                              void (*then)(struct fault_hold *), void *data);
void fault_hold_free(struct fault_hold *);
void fault_holds_end(struct worker *); /* those whose fault is over */
/* Is the exchange hit, by a fault of this kind? Notes it. */
bool fault_hits(struct exchange *, bool to_clients, uint32_t host, struct fault_hit *);
/* Is the attempt hit, which is about to begin? Then it ends by itself, or begins later. */
bool attempt_fault(struct attempt *, uint32_t host);

/* attempt_passing.c: why a request whose service has no hosts of its own is not passed on; NULL: it is. */
const char *exchange_passing(struct exchange *, const struct route *);
/* Finds the host that the request names. */
enum attempt_place {
    ATTEMPT_PLACED,  /* attempt->host is set */
    ATTEMPT_UNNAMED, /* its name is being resolved: attempts_named() goes on */
    ATTEMPT_NOWHERE
};
enum attempt_place attempt_place(struct attempt *, const char **why); /* NOWHERE, if there is more to say */
void attempt_unplace(struct attempt *);                               /* it ends */
void attempts_named(struct worker *);     /* some names have been resolved, or could not be */
void passing_hosts_drop(struct worker *); /* at its end */

/* exchange_fallback.c: what is answered instead if a call ends so, and nothing of its answer was delivered? */
enum fallback fallback_of(const struct exchange *, enum becalm_reason);
void fallback_answer(struct exchange *, const struct becalm_action *); /* writes that of the policy */
void fallback_begin(struct exchange *);                      /* its target is the other service's from now on */
void fallback_name(struct draft *, const struct exchange *); /* tells the client */

/* exchange_fault.c: is the call hit, which is about to begin? Then the exchange ends, or goes on later. */
bool exchange_fault(struct exchange *);
void exchange_fault_end(struct exchange *); /* HELD: nobody wants it any more */

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
void attempt_stalled(struct attempt *);        /* nothing moves any more, of its answer or of the upload before it */
void attempt_resume(struct attempt *);         /* the client takes bytes again */
void attempt_body(struct attempt *);           /* there is more of the request's body */
bool attempt_blocked(const struct attempt *);  /* its host does not take what was written already */
uint64_t attempt_held(const struct attempt *); /* bytes of its buffers */

/* exchange_key.c: does the endpoint remember keys? */
static inline bool key_guards(const struct becalm_rules *rules)
{
    return rules->key == BECALM_KEY_REQUIRED || rules->key == BECALM_KEY_ENFORCED;
}
/* Begins the key of a request to such an endpoint. False: it was answered or refused, and the exchange is gone. */
bool key_begin(struct exchange *);  /* true: the call may begin. False: it was answered, or will go on by itself */
void key_forget(struct exchange *); /* ASKING: nobody wants to know any more */
void key_store_begin(struct exchange *, const struct offer *);
void key_store_more(struct exchange *, const struct pieces *);
/* All of the answer is here, with these trailers. */
void key_answered(struct exchange *, const struct bytes *trailers);
/* The call is over, without a whole answer if it holds its key still. */
void key_end(struct exchange *);

/* exchange_expect.c: the host shall say whether it wants the body. False: no memory for that. */
bool expect_begin(struct exchange *);
/* The same of an attempt whose body is here (expectContinue). False: no memory, or nothing is to be asked. */
bool ask_begin(struct attempt *);
void ask_drop(struct attempt *);     /* it is answered, or of no interest any more */
void expect_sent(struct exchange *); /* it has been asked, just now */
/* It does, or has said nothing for too long: the client is told. False: its connection broke, and the exchange is gone.
 */
bool expect_met(struct exchange *);
void expect_drop(struct exchange *);
void expect_answer(const struct exchange *); /* for the host, whose body is collected first */

/* exchange_tunnel.c: places, at most maxTunnels in all and maxTunnelsPerHost. Taken when a request asks for a tunnel,
 * given back with its end or the tunnel's. False: there is none. */
bool tunnel_place_take(struct exchange *);
void tunnel_place_give(struct exchange *);
bool tunnel_host_take(struct attempt *);
void tunnel_host_give(struct attempt *);
/* The host has agreed: its connection and the client's become a tunnel, and the call is over. `head` is a 101 answer's,
 * and `behind` came behind it; NULL: the answer to a CONNECT. */
void exchange_tunnel(struct attempt *, const struct head *, struct becalm_text behind);

#endif
