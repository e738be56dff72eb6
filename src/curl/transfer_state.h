/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_TRANSFER_STATE_H
#define BECALM_CURL_TRANSFER_STATE_H

/* The structs of a call and its attempts. transfer.h and attempt.h have their functions. */

#include "body.h"
#include "client.h"
#include "outcome.h"

#include "meter/buffer.h"

struct becalm_curl_multi;
struct transfer;

/* One attempt of a call: a handle inside of the multi handle, its request headers, and the part of its answer that the
 * caller has not got yet. */

enum attempt_state {
    ATTEMPT_FREE,
    ATTEMPT_FLYING, /* sent, not judged */
    ATTEMPT_PASSED, /* its answer goes to the caller as it comes */
    ATTEMPT_KEPT,   /* the attempt failed and a retry waits: its answer is kept, because it may become the final one */
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
    bool added;                 /* `easy` is in the multi handle */
    bool busy;                  /* and libcurl has not reported its end */
    bool counted;               /* among those in flight */
    bool unsent;                /* at the last look it had no connection, and libcurl was not making one */
    bool paused;                /* its answer is kept, and no more of it fits */
    bool held;                  /* the caller paused before it had taken the kept bytes: they are still in `body` */
    bool refused;               /* the caller's write function refused bytes */
    bool judged;                /* its head was seen and reported to the engine */
    bool ended;                 /* the attempt is over, with the result `code` */
    uint32_t status;            /* of its answer; 0: none */
    CURLcode code;
    uint32_t number;
    uint32_t due_number; /* of the one to be sent, once the former attempt in this slot is gone */
    becalm_ns due_at;    /* when that was decided */
    becalm_ns timeout_at;
    curl_off_t uploaded;                      /* of the request's body, when it was looked at */
    struct buffer head;                       /* lines that the caller has not seen */
    size_t head_given;                        /* of them, by now */
    size_t head_end;                          /* the lines before the body; the lines after this are trailers */
    struct buffer body;                       /* and bytes */
    struct curl_slist line[ATTEMPT_HEADERS];  /* in front of the caller's headers, whose list is not touched */
    char text[ATTEMPT_HEADERS][HEADER_BYTES]; /* of the lines; the first two are most often the same in the next call */
    becalm_ns said_left;
    uint32_t said_number;
    struct curl_slist *copy; /* of some lines of the caller's, if one is said anew; on the heap */
    size_t copy_max;
};

/* One call of a program. */

/* The progress of a call. It only moves forward, and most calls skip PASSING. A callback of libcurl may set ENDED. A
 * call that is OVER has no handle inside libcurl any more, so only multi_settle_one() sets that, outside of callbacks.
 */
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
    void (*headed)(struct attempt *); /* called when an attempt's answer has a head: transfer.c */
    CURL *easy;
    struct handle *handle; /* the record of `easy` */
    struct client_target *target;
    struct client_origin *origin; /* NULL: it does not wait for a host */
    struct site *site;
    struct becalm_call call;
    uint64_t steps;         /* so far, for the random bits */
    uint32_t top;           /* from here on slots were not used in this call: most need only the first */
    uint32_t gone;          /* bit n: the attempt in slot n is to be removed */
    uint32_t due;           /* bit n: one is to be sent there */
    struct attempt *untold; /* its head is not reported to the engine yet; NULL: none, see headed() of transfer.c */
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
    CURL *answered;        /* the handle that has the answer */
    struct seen seen;      /* how the latest attempt ended */
    char retry_after[40];  /* its copy: the handle that it lies in goes on */
    becalm_ns engine_at;   /* when the engine wants to be woken */
    becalm_ns look_at;     /* when to look at the progress of attempts in flight that have no callback */
    becalm_ns wake_at;
    uint32_t timer; /* its place among the timers */
    bool dirty;     /* in the list of those to be settled */
    struct transfer *next;
    struct line_owner owner;      /* in a line: how it is called */
    struct transfer *next_called; /* of those of its multi that were */
    bool lined;                   /* the call waits in a line, and is counted so */
    bool lined_once;              /* or has waited */
    struct meter_steps counted;   /* the steps that were counted */
};

#endif
