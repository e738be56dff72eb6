/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_NOTE_H
#define BECALM_CURL_NOTE_H

/* Reports of a call: the counts of its site, and the program's own callbacks. */

#include "transfer_state.h"

/* Counts a step of the engine, reports a change of the circuit breaker, and returns the meaning of the step:
 * METER_STEP_... */
unsigned note_step(struct transfer *, const struct becalm_event *, const struct becalm_action *);

/* A retry or a hedge is sent. */
void note_retry(struct transfer *, const struct becalm_action *);

/* An attempt is in flight, or not any more; counts of a step are not repeated. */
void note_sent(struct attempt *);
void note_end(struct attempt *);

#endif
