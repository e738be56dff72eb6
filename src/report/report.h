/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_REPORT_H
#define BECALM_SIM_REPORT_H

/* What a run showed, as a page that a person understands at once: 80 columns, figures first, charts below. */

#include "figures.h"

#include <stdio.h>

/* Empty strings: no colours. */
struct report_style {
    bool utf8;
    const char *bold, *dim, *red, *green, *reset;
};

/* One run. */
struct report_run {
    const char *policy;     /* a name, or a file's */
    const char *const *set; /* what was changed, "length=62s" and the like; ends with NULL */
    uint64_t seed;
    const struct world_options *options;
    const struct world_result *result;
    const struct measure *measure;
};

void report_summary(FILE *, const struct report_style *, const struct scenario *, const struct report_run *);

/* What stands above a timeline of calls from an instant on. */
void report_timeline_title(FILE *, const struct report_style *, const struct scenario *, const char *policy,
                           becalm_ns from);

/* Names and sentences come from files: what would drive a terminal becomes a question mark. */
void report_plain(FILE *, const char *text);

/* One row per policy; with several seeds the mean, and below it the lowest and the highest. */
struct report_table {
    const char *const *policy;
    uint32_t policy_count;
    const struct figures *figures; /* policy_count * seeds of them, those of a policy together */
    uint64_t first_seed;
    uint32_t seeds;
    const char *const *set;                     /* as that of a run */
    const struct world_options *const *options; /* by policy */
};

void report_compare(FILE *, const struct report_style *, const struct scenario *, const struct report_table *);

/* Words, each with its sentence, wrapped at 80 columns: what may be typed. */
void report_term(FILE *, const struct report_style *, const char *word, const char *sentence);

#endif
