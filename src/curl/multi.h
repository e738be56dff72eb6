/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_MULTI_H
#define BECALM_CURL_MULTI_H

/* Drives the transfers of a multi handle. */

#include "multi_table.h"
#include "transfer.h"

/* ---- multi.c ---- */

/* Begins a call in memory that is new, or that another call has left. */
void multi_begin(struct becalm_curl_multi *, struct transfer *, CURL *, struct handle *);

/* Carries out the actions that the steps of a call have marked. True: the call is over after this. */
bool multi_settle_one(struct transfer *);

/* Rounded up, so that no thread wakes up too early and finds nothing to do. */
long multi_ms_until(becalm_ns now, becalm_ns at);

/* For easy.c, with the client's mutex: a handle in this multi is to be cancelled by the thread that drives it. */
void multi_cancel_later(struct becalm_curl_multi *, struct handle *);

/* For easy.c, in the thread of the call: the one that this handle is in and that has not ended; NULL: none. */
struct transfer *multi_call_of(const struct handle *);

/* For easy.c: pauses the handle that has the call's answer, or continues it. */
CURLcode multi_pause(struct transfer *, int bitmask);

/* Goes on with those that lines have called. True: there were some. */
bool multi_called_run(struct becalm_curl_multi *);

/* ---- multi_only.c ---- */

/* For easy.c: with memory for one transfer at a time, and without the tables for several. NULL: no memory. */
struct becalm_curl_multi *multi_only_new(CURLM *, struct becalm_client *);

/* The whole call of this handle, of which everything that was recorded is in `handle`. */
CURLcode multi_only_perform(struct becalm_curl_multi *, CURL *, struct handle *);

#endif
