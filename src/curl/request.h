/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_REQUEST_H
#define BECALM_CURL_REQUEST_H

/* The request of a call: from the recorded options of its handle, else from libcurl, which knows some values only once
 * it has begun to send. */

#include "transfer_state.h"

/* The recorded method; else the method that libcurl reports. */
struct becalm_text request_method(const struct transfer *);
bool request_knows_method(const struct transfer *); /* the former */

/* `made` is to be freed with curl_free(). */
struct becalm_text request_url(const struct transfer *, char **made);

/* The value of a header that was recorded; absent: none. */
struct becalm_text request_header(const struct transfer *, const char *name);

/* For the engine, when the call begins; the method is a guess if it is not known. */
struct becalm_request request_make(struct transfer *, struct becalm_text method);

/* Asks libcurl for the request that it has sent, before anything is sent again: when an attempt's time may be over, or
 * a hedge is due, and when it has failed. */
void request_learn(struct transfer *, CURL *);
void request_learn_failed(struct transfer *, const struct attempt *);

/* Some of a body may have been read by now. */
void request_body_read(const struct attempt *);

#endif
