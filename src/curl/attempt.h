/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_ATTEMPT_H
#define BECALM_CURL_ATTEMPT_H

/* One attempt of a call: a handle inside of the multi handle, what it is sent with, and what of its answer the caller
 * has not got yet. What becomes of it is decided in transfer.c. */

#include "meter/buffer.h"

#include <becalm/ns.h>

#include <curl/curl.h>

struct transfer;

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
    bool unsent;                /* when it was looked at last, it had no connection yet, nor did libcurl make one */
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

/* Sends it, with callbacks and headers of ours on a recorded handle; false: `code` says why not. Removes it again. */
bool attempt_send(struct attempt *);
void attempt_remove(struct attempt *);

/* Gives the caller's handle its own options again. */
void attempt_restore(struct transfer *);

/* Other headers were recorded: those in flight send them next, if libcurl follows anything. */
void attempt_headers_again(struct transfer *);

/* Some of a body may have been read by now. */
void attempt_body_read(const struct attempt *);

/* Gives the caller what was kept back; further bytes go straight to it. */
void attempt_release(struct attempt *);

/* Once more, if it was `held`. True: the caller has it all. */
bool attempt_give(struct attempt *);

#endif
