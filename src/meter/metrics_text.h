/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_METRICS_TEXT_H
#define BECALM_METER_METRICS_TEXT_H

/* The exposition formats: families of samples with labels. The two formats differ in the name of a counter's family,
 * and in the end of the page. */

#include "buffer.h"

struct metrics_text {
    struct buffer *out;
    bool open_metrics;
    const char *name; /* of the present family */
    bool labelled;    /* the present sample has a label already */
};

/* "counter", "gauge" or "histogram". The name is the samples': a counter's ends with _total. */
void metrics_family(struct metrics_text *, const char *name, const char *type, const char *help);

/* A sample: begin, labels, one of the values. */
void metrics_sample(struct metrics_text *, const char *suffix); /* "", "_bucket", "_sum", "_count" */
void metrics_label(struct metrics_text *, const char *name, const char *value);
void metrics_number(struct metrics_text *, uint64_t);
void metrics_decimal(struct metrics_text *, uint64_t value, unsigned decimals);
/* A count that has an example: which trace, its value in millionths, and when, in milliseconds since 1970. OpenMetrics
 * alone has these. */
void metrics_exemplar(struct metrics_text *, uint64_t count, const char *trace_id, uint64_t value_us, uint64_t wall_ms);
void metrics_infinity(struct metrics_text *);

/* A family of one sample without labels. */
void metrics_single(struct metrics_text *, const char *name, const char *type, const char *help, uint64_t value);

void metrics_end(struct metrics_text *);

#endif
