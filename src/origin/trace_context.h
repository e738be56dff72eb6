/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_TRACE_CONTEXT_H
#define BECALM_ORIGIN_TRACE_CONTEXT_H

/* W3C Trace Context: `traceparent`, which says to which trace a request belongs, and which span it was sent by. */

#include "message/head.h"

#include <string.h>

#define TRACE_ID_LENGTH    32u
#define SPAN_ID_LENGTH     16u
#define TRACEPARENT_LENGTH 55u

/* Flags. Unknown flags are not passed on. */
#define TRACE_FLAG_SAMPLED 1u
#define TRACE_FLAG_RANDOM  2u /* of level 2: the right half of the trace id is random */
#define TRACE_FLAGS        (TRACE_FLAG_SAMPLED | TRACE_FLAG_RANDOM)

/* Digits, without an end. */
struct trace_parent {
    char trace_id[TRACE_ID_LENGTH];
    char span_id[SPAN_ID_LENGTH];
    unsigned flags;
};

/* False: the value is none, and nothing was changed. A version that is not known yet is read as far as it is known. */
bool trace_parent_read(struct becalm_text value, struct trace_parent *);

/* That of a request; false: it has none, or several, or none that is one. */
bool trace_parent_find(const struct head *, struct trace_parent *);

static inline void trace_parent_write(char text[TRACEPARENT_LENGTH], const char *trace_id, const char *span_id,
                                      unsigned flags)
{
    memcpy(text, "00-", 3);
    memcpy(text + 3, trace_id, TRACE_ID_LENGTH);
    text[35] = '-';
    memcpy(text + 36, span_id, SPAN_ID_LENGTH);
    memcpy(text + 52, "-0", 2);
    text[54] = (char)('0' + flags);
}

/* The nth span of a call: 0 is the call's own, then come its attempts. `seed` is random, and the call's. Never 0. */
uint64_t trace_span(uint64_t seed, uint32_t n);

/* Is a trace that begins sampled, by the random half of its id? `least` is the result of trace_least() for the share.
 * All programs with the same share decide alike about one trace. */
#define TRACE_RANDOM_BITS 56u
static inline bool trace_sampled(uint64_t bits, uint64_t least)
{
    return (bits & ((UINT64_C(1) << TRACE_RANDOM_BITS) - 1)) >= least;
}
uint64_t trace_least(uint32_t share_ppm);

#endif
