/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_OTLP_H
#define BECALM_JOURNAL_OTLP_H

/* Spans as OTLP has them in JSON (opentelemetry-proto 1, trace/v1/trace.proto): one of kind server for a call, and one
 * of kind client for each attempt, by the semantic conventions for HTTP and gRPC. */

#include "span.h"

#include "meter/buffer.h"

/* The process that the spans come from. */
struct otlp_resource {
    const char *service;
    const char *instance; /* this process */
};

/* An ExportTraceServiceRequest: begin, notes, end. */
void otlp_begin(struct buffer *, const struct otlp_resource *);
void otlp_note(struct buffer *, const struct span_note *);
void otlp_end(struct buffer *);

/* How many spans an ExportTraceServiceResponse says that it refused; 0: none. */
uint64_t otlp_rejected(struct becalm_text answer);

#endif
