/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_STORY_H
#define BECALM_SIM_STORY_H

/* What happens to a call, one step a line: when, what came, and what the engine said and why. Golden stories in the
 * tests are told in these words, and so are the timelines of `becalm sim --trace`:
 *
 *   [60.0012s] call 1 users > api begins -> send 0
 *   [61.0012s] call 1 users > api wakes -> cancel slot 0, wait 85ms (backoff)
 */

#include "world.h"

#include <stdio.h>

/* What came: "got rejected 503 on 0". Cut at `size`; both return the length. */
size_t story_event(const struct becalm_event *, uint32_t attempt, char *text, size_t size);

/* What is done about it: " -> wait 85ms (backoff)". */
size_t story_action(const struct becalm_action *, char *text, size_t size);

#define STORY_CALLS_MAX 1000u

/* Tells of the first client calls from an instant on, and of every call that services make for them. */
struct story;

/* NULL: no memory. */
struct story *story_new(FILE *out, becalm_ns from, uint32_t calls);
void story_free(struct story *);

/* For world_options.trace; `self` is a struct story. */
void story_step(void *self, const struct world_trace *);

/* Was there enough memory to tell all of it? */
bool story_whole(const struct story *);

#endif
