/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_DIST_H
#define BECALM_SIM_DIST_H

/* Random durations, in integers only, so that a simulation is the same byte for byte on every machine. Logarithms and
 * powers come from tables that are computed by squaring when they are first needed by a world; their relative error is
 * below 1e-5. */

#include <becalm/ns.h>

enum dist_kind {
    DIST_CONSTANT,
    DIST_EXPONENTIAL,
    DIST_LOGNORMAL,
    DIST_PARETO,
    DIST_NORMAL,
    DIST_MIXTURE,
    DIST_SAMPLES
};

struct dist {
    enum dist_kind kind;
    becalm_ns mean; /* CONSTANT, EXPONENTIAL, NORMAL: the mean; LOGNORMAL: the median; PARETO: the least */
    uint32_t shape; /* LOGNORMAL: sigma; PARETO: alpha; in thousandths. NORMAL: the deviation as a share of the mean, in
                       ppm */
    const struct dist_part *parts; /* MIXTURE: `count` parts; a value is drawn from one of them */
    const becalm_ns *samples;      /* SAMPLES: `count` values, of which one is drawn */
    uint32_t count;
};

struct dist_part {
    uint64_t below; /* draw a number below the last part's `below`; the first part whose `below` is above the number is
                       used */
    struct dist dist; /* no mixture itself */
};

struct dist_tables {
    uint64_t log2[257]; /* log2(1 + i/256), 32 bits of fraction */
    uint64_t exp2[257]; /* 2^(i/256), 32 bits of fraction */
};

void dist_init(struct dist_tables *);

/* Is every draw 0? */
bool dist_is_zero(const struct dist *);

/* One draw. */
becalm_ns dist_draw(const struct dist_tables *, const struct dist *, uint64_t *state);

/* -ln(u / 2^64) for u > 0, with 32 bits of fraction. */
uint64_t dist_minus_ln(const struct dist_tables *, uint64_t u);

/* base * 2^x, x with 32 bits of fraction; saturates. */
uint64_t dist_scale_exp2(const struct dist_tables *, uint64_t base, int64_t x);

#endif
