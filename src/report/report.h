/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_REPORT_H
#define BECALM_SIM_REPORT_H

/* The results of a run as a text page for people: 80 columns, figures first, charts below. */

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
    const char *const *set; /* overrides such as "length=62s"; ends with NULL */
    uint64_t seed;
    const struct world_options *options;
    const struct world_result *result;
    const struct measure *measure;
};

void report_summary(FILE *, const struct report_style *, const struct scenario *, const struct report_run *);

/* The heading of a timeline of calls from an instant on. */
void report_timeline_title(FILE *, const struct report_style *, const struct scenario *, const char *policy,
                           becalm_ns from);

/* Names and sentences come from files: control characters become question marks. */
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

/* A word that may be typed, with its sentence, wrapped at 80 columns. */
void report_term(FILE *, const struct report_style *, const char *word, const char *sentence);

#endif
