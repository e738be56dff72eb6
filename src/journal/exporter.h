/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_EXPORTER_H
#define BECALM_JOURNAL_EXPORTER_H

/* Exports spans to a collector. Each worker has a ring of its own and never waits for it; one thread empties the rings
 * a few times a second, keeps a bounded queue, and exports it in batches, one at a time. Spans that find no room, and
 * spans that the collector does not take after some tries, are dropped and counted. docs/traces.md has the figures. */

#include "log.h"
#include "span.h"

#include "meter/metrics.h"

struct exporter;
struct span_source; /* one worker's */

/* NULL: no memory. Its thread begins with the first policy that names a collector. `instance` and `log` outlive it. */
struct exporter *exporter_make(uint32_t sources, const char *instance, struct log_source *log);
/* Exports the remaining spans, within a second; the workers must have stopped before. */
void exporter_free(struct exporter *);
struct span_source *exporter_source(struct exporter *, uint32_t index);

/* Applies the policy's settings, at the start and at each reload. False: no memory or thread, and nothing has changed.
 */
bool exporter_change(struct exporter *, const struct becalm_tracing *);
void exporter_count(struct exporter *, struct metrics_spans *);

/* Called by a worker: puts the whole note, or drops it. */
void span_put(struct span_source *, const struct span_note *);

#endif
