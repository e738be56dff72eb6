/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_SPAN_H
#define BECALM_JOURNAL_SPAN_H

/* A worker's note of a traced call, made once, when the call is over: enough for the span of the call and for a span of
 * each attempt. A note is bytes in a ring, so that a worker neither waits nor allocates; the exporter turns them into
 * text (otlp.h). */

#include "origin/origin.h"
#include "origin/trace_context.h"

#include <becalm/call.h>

#define SPAN_TEXT_MAX 512u /* bytes of one text; longer texts are cut */

/* How the call came into its trace. */
enum span_from {
    SPAN_ROOT,  /* the trace begins with it */
    SPAN_CHILD, /* `from` is its parent */
    SPAN_LINKED /* the trace begins with it, and `from` is the client's span, in a trace that was not continued */
};

/* Texts of a call. */
enum span_text {
    SPAN_METHOD,
    SPAN_PATH,
    SPAN_QUERY,
    SPAN_AUTHORITY,
    SPAN_USER_AGENT,
    SPAN_REQUEST_ID,
    SPAN_TRACE_STATE, /* left out if it is too long */
    SPAN_SERVICE,
    SPAN_ENDPOINT,
    SPAN_ROUTE,
    SPAN_TEXTS
};

struct span_attempt {
    uint64_t span;
    becalm_ns sent; /* since the call began */
    becalm_ns took;
    becalm_ns waited;
    uint32_t number;
    uint32_t status;      /* 0: no answer */
    uint32_t grpc_status; /* BECALM_GRPC_NONE: none */
    enum becalm_outcome_kind outcome;
    bool hedge;
    uint16_t host; /* the length of its name: "10.0.0.1:80" */
};

/* In memory it is followed by the attempts that the record kept, then the texts of the call, then the names of the
 * attempts' hosts. */
struct span_note {
    uint32_t bytes;    /* of all of it; a multiple of 8, so that the next one is aligned */
    uint32_t spans;    /* 1 + the attempts that are here */
    uint32_t attempts; /* all that there were */
    uint32_t status;   /* 0: the client did not wait for one */
    uint32_t grpc_status;
    enum becalm_reason reason;
    enum span_from from_what;
    unsigned flags; /* of traceparent */
    bool grpc;
    bool tls; /* the client's side */
    bool host_tls;
    enum http_version version; /* the client's side */
    char trace_id[TRACE_ID_LENGTH];
    struct trace_parent from;
    struct origin_ip client;
    uint64_t span;
    uint64_t wall; /* when it began, ns since 1970 */
    becalm_ns took;
    becalm_ns gated;
    becalm_ns parked;
    uint16_t text[SPAN_TEXTS]; /* lengths */
    struct span_attempt attempt[];
};

/* Room for the largest. */
union span_room {
    struct span_note note;
    char bytes[sizeof(struct span_note) + BECALM_RECORD_MAX * sizeof(struct span_attempt) +
               (SPAN_TEXTS + BECALM_RECORD_MAX) * SPAN_TEXT_MAX + 8];
};

/* Making one: all numbers first, attempts too; then each text, in the order of enum span_text; then each attempt's
 * host; then the end. */
void span_begin(union span_room *);
void span_add_text(union span_room *, enum span_text, struct becalm_text);
void span_add_host(union span_room *, uint32_t attempt, struct becalm_text);
void span_end(union span_room *);

/* Taking it apart. */
struct becalm_text span_text(const struct span_note *, enum span_text);
struct becalm_text span_host(const struct span_note *, uint32_t attempt);

#endif
