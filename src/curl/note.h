/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_NOTE_H
#define BECALM_CURL_NOTE_H

/* What others learn of a call: the counts of its site, and the program's own callbacks. */

#include "transfer_state.h"

/* Counts what a step of the engine has done, tells of a circuit breaker that has changed, and returns what the step
 * means: METER_STEP_... */
unsigned note_step(struct transfer *, const struct becalm_event *, const struct becalm_action *);

/* A retry or a hedge is sent. */
void note_retry(struct transfer *, const struct becalm_action *);

/* An attempt is in flight, or no more; what a step has counted is not counted again. */
void note_sent(struct attempt *);
void note_end(struct attempt *);

#endif
