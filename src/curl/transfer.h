/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_TRANSFER_H
#define BECALM_CURL_TRANSFER_H

/* One call of a program, from becalm_curl_multi_add_handle() to its one result: the engine's call, and the attempts in
 * flight, each a handle inside of the multi handle.
 *
 * libcurl's callbacks run inside of libcurl, where handles can be neither added nor removed. So a step of the engine
 * only marks what is to be done, and transfer_settle() does it outside. What a callback can do at once, it does: an
 * answer that is passed on is passed on from its first byte. */

#include "attempt.h"
#include "body.h"
#include "client.h"
#include "outcome.h"

struct becalm_curl_multi;

/* How far a call is. It only goes forward, and most leave out PASSING. A callback of libcurl's may bring it to ENDED;
 * what is OVER has no handle in libcurl's hands any more, so that only multi_settle_one() says it, outside. */
enum transfer_state {
    TRANSFER_DECIDING, /* the engine is at work: attempts fly, an answer is passed on, or a retry waits */
    TRANSFER_PASSING,  /* the engine has done its part, and an answer that was kept is still on its way */
    TRANSFER_ENDED,    /* its result is `code` */
    TRANSFER_OVER      /* and the caller was told */
};

struct transfer {
    enum transfer_state state;
    struct becalm_curl_multi *multi;
    struct becalm_client *client;
    CURL *easy;
    struct handle *handle; /* what was recorded of it */
    struct client_target *target;
    struct client_origin *origin; /* NULL: it does not wait for a host */
    struct site *site;
    struct becalm_call call;
    uint64_t steps;         /* so far, for the random bits */
    uint32_t top;           /* from here on slots were not used in this call: most need only the first */
    uint32_t gone;          /* bit n: the attempt in slot n is to be removed */
    uint32_t due;           /* bit n: one is to be sent there */
    struct attempt *untold; /* whose head the engine has not been told of; NULL: none, see transfer_headed() */
    becalm_ns headed_at;    /* when that has come */
    struct attempt attempt[BECALM_SLOTS];
    char key[HEADER_BYTES]; /* "Idempotency-Key: ..."; "": none */
    bool takes_body; /* our callback is there for the answer's body: nothing reaches the caller before it is judged */
    bool takes_head; /* and for its head */
    bool takes_headers; /* the request's headers are known: ours stand in front of them */
    bool takes_connect; /* the policy's timeout for connecting counts */
    bool recorded;      /* something was: else there is nothing of these to take or to restore */
    bool grpc;          /* the request's headers say that it is gRPC */
    struct body body;
    becalm_ns must_end_at; /* the caller's own deadline, which ends even an answer that is on its way */
    bool cut;              /* its latest attempt was ended by us, not by libcurl */
    CURLcode code;         /* of the call, or of the latest attempt */
    CURL *answered;        /* who has the answer */
    struct seen seen;      /* how the latest attempt ended */
    char retry_after[40];  /* its copy: the handle that it lies in goes on */
    becalm_ns engine_at;   /* when the engine wants to be woken */
    becalm_ns look_at;     /* when to see how far the attempts in flight are, of which nobody tells */
    becalm_ns wake_at;
    uint32_t timer; /* its place among the timers */
    bool dirty;     /* in the list of those to be settled */
    struct transfer *next;
    struct line_owner owner;      /* in a line: by whom it is called */
    struct transfer *next_called; /* of those of its multi that were */
    bool lined;                   /* it waits in a line, and is counted as such */
    bool lined_once;              /* or has waited */
    struct meter_steps counted;   /* what was counted of its steps */
};

/* Memory for one call after the other; NULL: there is none. */
struct transfer *transfer_make(void);
void transfer_free(struct transfer *);

/* Begins the call: the first attempt is marked to be sent, or it is refused. */
void transfer_begin(struct transfer *);

/* Its timer has come; the caller gave up; one of its handles is over. */
void transfer_timer(struct transfer *);
void transfer_cancel(struct transfer *);
void transfer_done(struct transfer *, CURL *, CURLcode);

/* It was called by the line that it has waited in. */
void transfer_called(struct transfer *);

/* Outside of callbacks: removes, adds, and ends. True: it has ended by this. */
bool transfer_settle(struct transfer *);

/* Takes all its handles back, and gives the caller's its own options again. */
void transfer_detach(struct transfer *);
void transfer_forget(struct transfer *); /* and the copy that it kept to be asked */

/* Has this call taken the option over, so that libcurl has ours in its place? */
bool transfer_takes(const struct transfer *, CURLoption);

/* For attempt.c: an answer's head has come. If it is good the answer is passed on at once; and since most are whole in
 * the same turn of libcurl's, the engine is told when that is over, of its head or of its end: but with the time at
 * which the head came. */
void transfer_headed(struct attempt *);
void transfer_tell(struct transfer *);

#endif
