/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_TRANSFER_H
#define BECALM_CURL_TRANSFER_H

/* One call of a program, from becalm_curl_multi_add_handle() to its one result: the engine's call, and the attempts in
 * flight, each a handle inside of the multi handle.
 *
 * libcurl's callbacks run inside of libcurl, where handles can be neither added nor removed. So a step of the engine
 * only marks the actions, and transfer_settle() carries them out outside. Actions that are possible inside a callback
 * happen at once: an answer is passed on from its first byte. */

#include "transfer_state.h"

/* Memory for one call after the other; NULL: there is none. */
struct transfer *transfer_make(void);
void transfer_free(struct transfer *);

/* Begins the call: the first attempt is marked to be sent, or it is refused. */
void transfer_begin(struct transfer *);

/* Its timer has come; the caller gave up; one of its handles is over. */
void transfer_timer(struct transfer *);
void transfer_cancel(struct transfer *);
void transfer_done(struct transfer *, CURL *, CURLcode);

/* The transfer's turn in the queue has come. */
void transfer_called(struct transfer *);

/* Outside of callbacks: removes, adds, and ends. True: it has ended by this. */
bool transfer_settle(struct transfer *);

/* Takes all its handles back, and gives the caller's its own options again. */
void transfer_detach(struct transfer *);
void transfer_forget(struct transfer *); /* and the copy that it kept to be asked */

/* Has this call taken the option over, so that libcurl has ours in its place? */
bool transfer_takes(const struct transfer *, CURLoption);

/* The engine is told of the head of an answer that was passed on at once, if it was not told yet. */
void transfer_tell(struct transfer *);

#endif
