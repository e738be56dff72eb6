/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_TIMELINE_H
#define BECALM_SIM_TIMELINE_H

/* Tells of the first client calls from an instant on, and of every call that services make for them, as the world goes:
 *
 *   [60.0012s] call 1 users > front begins -> send 0
 *   [60.0032s] call 1.2 front > back begins -> send 0
 *   [60.0052s] call 1.2 front > back got broken 503 on 0 -> wait 52ms (backoff) */

#include "sim/world.h"

#include <stdio.h>

#define TIMELINE_CALLS_MAX 1000u

struct timeline;

/* NULL: no memory. */
struct timeline *timeline_new(FILE *out, becalm_ns from, uint32_t calls);
void timeline_free(struct timeline *);

/* For world_options.trace; `self` is a struct timeline. */
void timeline_step(void *self, const struct world_trace *);

/* Was there enough memory to tell all of it; and was there nothing to tell? */
bool timeline_whole(const struct timeline *);
bool timeline_empty(const struct timeline *);

#endif
