/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_TRANSFER_H
#define BECALM_CURL_TRANSFER_H

/* One call of a program, from becalm_curl_multi_add_handle() to its one result: the engine's call, and the attempts in
 * flight, each a handle inside of the multi handle.
 *
 * libcurl's callbacks run inside of libcurl, where handles can be neither added nor removed. So a step of the engine
 * only marks what is to be done, and transfer_settle() does it outside. What a callback can do at once, it does: an
 * answer that is passed on is passed on from its first byte. */

#include "body.h"
#include "client.h"
#include "outcome.h"

#include "meter/buffer.h"

struct becalm_curl_multi;

enum attempt_state {
    ATTEMPT_FREE,
    ATTEMPT_FLYING, /* sent, not judged */
    ATTEMPT_PASSED, /* its answer goes to the caller as it comes */
    ATTEMPT_KEPT,   /* it failed and a retry waits: its answer is kept, for it may become the final one */
    ATTEMPT_GONE    /* to be removed */
};

#define HEADER_BYTES 64u

/* Lines of ours in front of the caller's. */
enum attempt_header {
    HEADER_DEADLINE,
    HEADER_NUMBER,
    HEADER_GRPC_TIMEOUT,
    HEADER_GRPC_NUMBER,
    HEADER_KEY,
    ATTEMPT_HEADERS
};

struct attempt {
    struct transfer *transfer;
    uint32_t slot; /* its number there */
    enum attempt_state state;
    CURL *easy;                 /* the caller's, or a copy of it for a hedge */
    bool copied;                /* the latter */
    struct curl_slist *cookies; /* that the copy was given */
    bool added;                 /* it is in the multi handle */
    bool busy;                  /* and libcurl has not said that it is over */
    bool counted;               /* among those in flight */
    bool paused;                /* it is kept, and no more of it fits */
    bool held;                  /* the caller has paused before it took what was kept: `body` still has it */
    bool refused;               /* the caller did not take what was given to it */
    bool judged;                /* its head was seen, and is told to the engine */
    bool ended;                 /* it is over, with the result `code` */
    uint32_t status;            /* of its answer; 0: none */
    CURLcode code;
    uint32_t number;
    uint32_t due_number; /* of the one to be sent, once who was here before is gone */
    becalm_ns due_at;    /* when that was decided */
    becalm_ns timeout_at;
    curl_off_t uploaded;                      /* of the request's body, when it was looked at */
    struct buffer head;                       /* lines that the caller has not seen */
    size_t head_given;                        /* of them, by now */
    size_t head_end;                          /* of them, before the body: what is behind are trailers */
    struct buffer body;                       /* and bytes */
    struct curl_slist line[ATTEMPT_HEADERS];  /* in front of the caller's headers, whose list is not touched */
    char text[ATTEMPT_HEADERS][HEADER_BYTES]; /* of the lines; the first two are most often the same in the next call */
    becalm_ns said_left;
    uint32_t said_number;
    struct curl_slist *copy; /* of some lines of the caller's, if one is said anew; on the heap */
    size_t copy_max;
};

struct transfer {
    struct becalm_curl_multi *multi;
    struct becalm_client *client;
    CURL *easy;
    struct handle *handle; /* what was told of it */
    struct client_target *target;
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
    bool learned;       /* the method is known, not guessed */
    struct body body;
    becalm_ns must_end_at; /* the caller's own deadline, which ends even an answer that is on its way */
    bool retries;          /* counted as one that retries */
    bool cut;              /* its latest attempt was ended by us, not by libcurl */
    bool passing;          /* the engine has done its part, and an answer is still on its way */
    bool ended;
    bool over;           /* and the caller was told */
    CURLcode code;       /* of the call, or of the latest attempt */
    CURL *answered;      /* who has the answer */
    becalm_ns waited;    /* before the retry that is due */
    becalm_ns failed_at; /* when its wait began */
    struct becalm_wait wait;
    struct seen seen;     /* how the latest attempt ended */
    char retry_after[40]; /* its copy: the handle that it lies in goes on */
    enum becalm_reason why;
    becalm_ns engine_at; /* when the engine wants to be woken */
    becalm_ns look_at;   /* when to see how far the attempts in flight are, of which nobody tells */
    becalm_ns wake_at;
    uint32_t timer; /* its place among the timers */
    bool dirty;     /* in the list of those to be settled */
    struct transfer *next;
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

/* Outside of callbacks: removes, adds, and ends. True: it has ended by this. */
bool transfer_settle(struct transfer *);

/* Takes all its handles back, and gives the caller's its own options again. */
void transfer_detach(struct transfer *);
void transfer_forget(struct transfer *); /* and the copy that it kept to be asked */

/* Has this call taken the option over, so that libcurl has ours in its place? */
bool transfer_takes(const struct transfer *, CURLoption);

/* attempt.c: sends, with callbacks and headers of ours on a recorded handle; removes again. */
bool attempt_send(struct attempt *);
void attempt_remove(struct attempt *);
void attempt_restore(struct transfer *);

/* The caller has told other headers: those in flight send them next, if libcurl follows anything. */
void attempt_headers_again(struct transfer *);

/* Some of a body may have been read by now. */
void attempt_body_read(const struct attempt *);

/* Gives the caller what was kept back; further bytes go straight to it. */
void attempt_release(struct attempt *);

/* Once more, if it was `held`. True: the caller has it all. */
bool attempt_give(struct attempt *);

/* transfer.c, for attempt.c: an answer's head has come. If it is good the answer is passed on at once; and since most
 * are whole in the same turn of libcurl's, the engine is told when that is over, of its head or of its end: but with
 * the time at which the head came. */
void transfer_headed(struct attempt *);
void transfer_tell(struct transfer *);

#endif
