/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_OUTCOME_H
#define BECALM_CURL_OUTCOME_H

/* How an attempt of libcurl's ended, in the engine's words. libcurl is asked for the answer's status and headers, so
 * that no callback of the caller's is in the way. */

#include "handle.h"

#include <becalm/http.h>

#include <curl/curl.h>

/* The properties of the request on which the meaning of an answer depends. */
struct asked {
    const struct becalm_retry_on *retry_on;
    const struct handle *handle;
};

/* The outcome of an attempt, and further values for the log. The text is in the handle and valid until its next
 * transfer. */
struct seen {
    struct becalm_outcome outcome;
    uint32_t grpc_status;
    struct becalm_text retry_after;
    bool grpc; /* its end may say something else than its head */
};

/* The head of an answer has come. */
void outcome_of_head(CURL *, const struct asked *, struct seen *);

/* The transfer is over with this code, which is not CURLE_OK. */
void outcome_of_failure(CURL *, CURLcode, const struct asked *, struct seen *);

/* Has the head of the answer come that the caller will see? Known for sure if it says how long the body is, or if some
 * of that has come. Of a head that says no length its first line after the status has to do. */
bool outcome_headed(CURL *);

/* Where is the request's body? */
enum upload {
    UPLOAD_STANDS, /* there is none, it is through (at once, perhaps), or no more of it has gone out */
    UPLOAD_WAITS,  /* its beginning is not out yet */
    UPLOAD_MOVES   /* more of it is out than `before`, which is then so much */
};
enum upload outcome_uploads(CURL *, curl_off_t *before);

/* Have bytes of a body been delivered, and of a body sent? */
bool outcome_delivered(CURL *);
bool outcome_sent_body(CURL *);

/* Was it a connection of its own, and not one that was there before? */
bool outcome_fresh(CURL *);

/* Was there a connection, so that libcurl may have begun to read a body? */
/* Has libcurl not even looked for its host yet? It waits in libcurl's own line for a connection, or for the name. */
bool outcome_in_line(CURL *);

/* How long it is in libcurl's own hands, once it is out of that line: until its first byte, if that has come. */
becalm_ns outcome_began(CURL *);

/* How long it took, all of it. */
becalm_ns outcome_lasted(CURL *);

bool outcome_connected(CURL *);

#endif
