/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_EXPLAIN_HEADER_H
#define BECALM_JOURNAL_EXPLAIN_HEADER_H

/* A call's decision record for people: as the answer header Becalm-Explain (a list of RFC 8941, one line of at most
 * EXPLAIN_HEADER_MAX bytes), and as JSON for /api/decisions. docs/gateway-explain.md has the words. */

#include "meter/buffer.h"

#include <becalm/call.h>

#define EXPLAIN_HEADER_MAX 1024u

struct explain {
    const struct becalm_record *record;
    const char *const *hosts; /* names by the record's numbers; may be NULL */
    uint32_t host_count;
    /* While the answer is being passed on, the record has no reason and no end yet: then use the action's, and now. */
    enum becalm_reason why;
    becalm_ns now;
    /* JSON only; absent values are left out. */
    uint64_t wall; /* of its beginning, nanoseconds since 1970 */
    struct becalm_text service;
    struct becalm_text endpoint;
    struct becalm_text method;
    struct becalm_text target;
    struct becalm_text request_id;
    struct becalm_text asked;    /* the host that the request names, where the service has none of its own */
    struct becalm_text fallback; /* the fallback that answered */
    struct becalm_text fault;    /* the injected fault that hit it */
    uint32_t status;             /* of the answer to the client; 0: there was none */
};

/* The header's value, not zero-terminated. Returns the length. Attempts that do not fit are left out. */
size_t explain_header(const struct explain *, char text[EXPLAIN_HEADER_MAX]);

/* Adds the record as one JSON object on one line, as a member of `key` or, with NULL, an element. */
void record_json(struct buffer *, const char *key, const struct explain *);

#endif
