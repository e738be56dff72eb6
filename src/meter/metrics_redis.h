/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_METRICS_REDIS_H
#define BECALM_METER_METRICS_REDIS_H

/* The metrics of the stores that instances share. */

#include "metrics_text.h"

#include <becalm/base.h>

/* One Redis, as src/redis counts it. */
#define METRICS_REDIS_WHY    24u
#define METRICS_REDIS_BOUNDS 5u

/* How long answers took. */
struct metrics_waits {
    uint64_t within[METRICS_REDIS_BOUNDS]; /* at most so long, each with those before */
    becalm_ns bound[METRICS_REDIS_BOUNDS];
    uint64_t count;
    becalm_ns spent;
};

struct metrics_redis {
    char store[288]; /* host and port */
    bool up;
    uint64_t connects, answered, dropped;
    uint64_t lost[METRICS_REDIS_WHY];   /* connections that ended, by why ... */
    const char *why[METRICS_REDIS_WHY]; /* ... which is said so; NULL: no row */
    struct metrics_waits waits;
    becalm_ns age;     /* of the last answer; BECALM_NEVER: there was none */
    const char *error; /* why it was last lost; "": it never was */
};

/* The samples of a histogram; `store` is its label, NULL: it has none. */
void metrics_waits_write(struct metrics_text *, const char *store, const struct metrics_waits *);
void metrics_redis_write(struct metrics_text *, const struct metrics_redis *, uint32_t count);

#endif
