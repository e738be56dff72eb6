/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_LINE_H
#define BECALM_CURL_LINE_H

/* A call that waits in line, for a slot of the limit or for a host that restarts. It is called by any thread: by
 * the thread that frees a slot, or finds the host back. That thread puts it into the list of called transfers of its
 * multi and wakes the thread that drives the multi, which goes on with it. */

#include "transfer_state.h"

/* A call begins: it can wait in the lines of its target. */
void line_ready(struct transfer *, struct becalm_request *);

/* A step asks for it: calls transfers that need not wait any longer. */
void line_serve(struct transfer *, unsigned flags, const struct becalm_moment *);

/* After a step: does it wait in a line now, and when is that to be looked at? */
void line_note(struct transfer *);

/* The attempt has had a connection: transfers that wait for its host go on. */
void line_host_back(struct transfer *, const struct attempt *);

/* Its time has come: asks whether the host is back, if it waits for one. */
void line_look(struct transfer *, becalm_ns now);

/* Its call is over: after this no other thread uses it. */
void line_end(struct transfer *);

/* Those of this multi that were called, in that order, by `next_called`; NULL: none. */
struct transfer *line_take_called(struct becalm_curl_multi *);

#endif
