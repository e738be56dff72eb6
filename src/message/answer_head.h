/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_ANSWER_HEAD_H
#define BECALM_MESSAGE_ANSWER_HEAD_H

/* The header fields that the gateway adds to an answer: to a host's answer that is passed on, to one that was kept or
 * stored, and to its own. No other place adds fields. */

#include "draft.h"

/* Fields of a host's answer that are not passed on: those that the gateway writes itself, and those meant for it alone.
 */
#define ANSWER_HEAD_OURS                                                                                 \
    (FIELD_BIT(FIELD_CONTENT_LENGTH) | FIELD_BIT(FIELD_BECALM_RETRY) | FIELD_BIT(FIELD_BECALM_EXPLAIN) | \
     FIELD_BIT(FIELD_ENVOY_OVERLOADED))

/* The fields of an answer that are not passed on. `describes`: the answer has no body (to HEAD, 304) and its
 * Content-Length describes one, so that field is passed on. For other answers the gateway writes it. */
static inline uint64_t answer_head_skip(bool describes)
{
    return describes ? ANSWER_HEAD_OURS & ~FIELD_BIT(FIELD_CONTENT_LENGTH) : ANSWER_HEAD_OURS;
}

/* The content of Proxy-Status (RFC 9209), with the reason in its details. */
enum answer_note {
    ANSWER_NOTE_NONE,
    ANSWER_NOTE_RECEIVED, /* a host's answer with the status `received`, of a call that failed */
    ANSWER_NOTE_ERROR,    /* `error`: there is no answer of a host */
    ANSWER_NOTE_REPLAYED  /* a stored answer */
};

struct answer_head {
    struct becalm_text date;  /* absent: the answer has one */
    bool passes;              /* through this proxy, which says so in Via (RFC 9110, 7.6.3) ... */
    enum http_version passed; /* ... and the host's version */
    const char *type;         /* NULL: the answer has one, or no body */
    bool length_known;
    uint64_t length;
    bool grpc; /* an answer of trailers only */
    uint32_t grpc_status;
    enum answer_note note;
    uint32_t received;
    const char *error;
    const char *reason;
    uint64_t retry_after; /* seconds; 0: none */
    enum becalm_mark_kind mark;
    enum becalm_reason mark_reason;
    struct becalm_text explain; /* absent: none */
};

void answer_head_add(struct draft *, const struct answer_head *);

/* The value of Via for a message of this version, with our name. */
const char *answer_head_via(enum http_version);

#endif
