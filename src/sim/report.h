/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_REPORT_H
#define BECALM_SIM_REPORT_H

/* What a run showed, as a page that a person understands at once: 80 columns, figures first, charts below. */

#include "measure.h"

#include <stdio.h>

/* Empty strings: no colours. */
struct report_style {
    bool utf8;
    const char *bold, *dim, *red, *green, *reset;
};

/* One run. */
struct report_run {
    const char *policy; /* a name, or a file's */
    uint64_t seed;
    const struct world_result *result;
    const struct measure *measure;
};

void report_summary(FILE *, const struct report_style *, const struct scenario *, const struct report_run *);

/* Is there a whole second before the first fault, or after it? */
bool report_has_before(const struct scenario *);
bool report_has_after(const struct scenario *);

/* The figures of a run that are compared; those of a load are of the service that report_focus() names. */
struct report_figures {
    uint64_t mean_ppm;
    uint64_t peak_5s_ppm;
    uint64_t peak_1s_ppm;
    uint64_t success_ppm;
    uint64_t before_ppm;
    uint64_t in_fault_ppm;
    uint64_t after_ppm;
    uint32_t recovered_after_s; /* or MEASURE_NEVER */
};

/* The service where the trouble is: that of the first fault, or else the last. */
uint32_t report_focus(const struct scenario *);
void report_figures_take(const struct scenario *, const struct measure *, struct report_figures *);

/* One row per policy; with several seeds the mean, and below it the lowest and the highest. */
struct report_table {
    const char *const *policy;
    uint32_t policy_count;
    const struct report_figures *figures; /* policy_count * seeds of them, those of a policy together */
    uint64_t first_seed;
    uint32_t seeds;
};

void report_compare(FILE *, const struct report_style *, const struct scenario *, const struct report_table *);

/* Words, each with its sentence, wrapped at 80 columns: what may be typed. */
void report_term(FILE *, const struct report_style *, const char *word, const char *sentence);

#endif
