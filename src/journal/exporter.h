/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_EXPORTER_H
#define BECALM_JOURNAL_EXPORTER_H

/* Spans on their way to a collector. Each worker has a ring of its own, which it never waits for; one thread empties
 * them a few times a second, keeps a bounded queue, and exports it in batches, one at a time. What finds no room, and
 * what the collector does not take after some tries, is dropped and counted. docs/traces.md has the figures. */

#include "log.h"
#include "span.h"

#include "meter/metrics.h"

struct exporter;
struct span_source; /* one worker's */

/* NULL: no memory. Its thread begins with the first policy that names a collector. `instance` and `log` outlive it. */
struct exporter *exporter_make(uint32_t sources, const char *instance, struct log_source *log);
/* Exports what is left, within a second; the sources are silent by then. */
void exporter_free(struct exporter *);
struct span_source *exporter_source(struct exporter *, uint32_t index);

/* The policy's, at the start and at each reload; false: no memory or thread, and all is as before. */
bool exporter_change(struct exporter *, const struct becalm_tracing *);
void exporter_count(struct exporter *, struct metrics_spans *);

/* A worker's: all of it or nothing. */
void span_put(struct span_source *, const struct span_note *);

#endif
