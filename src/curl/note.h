/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_NOTE_H
#define BECALM_CURL_NOTE_H

/* What others learn of a call: the counts of its site, and the program's own callbacks. */

#include "multi.h"

/* Counts what a step of the engine has done, and tells of a breaker that has changed. */
void note_step(struct transfer *, const struct becalm_event *, const struct becalm_action *);

/* A retry or a hedge is sent. */
void note_retry(struct transfer *, const struct becalm_action *, becalm_ns now);

/* An attempt is in flight, or no more; what a step has counted is not counted again. */
void note_sent(struct attempt *);
void note_end(struct attempt *);

#endif
