/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_OWN_H
#define BECALM_MESSAGE_OWN_H

/* The gateway's own answers: a problem document (RFC 9457) with the reason, Proxy-Status (RFC 9209), and a Retry-After
 * on every 503 and 429, and on 409 where it is known. For gRPC the answer has trailers only. */

#include "draft.h"

struct own {
    uint32_t status;
    const char *error;  /* of Proxy-Status */
    const char *reason; /* the word in details and the document; "breaker_open" */
    const char *title;
    const char *detail;   /* a sentence more; NULL: none */
    uint32_t last_status; /* of the service's last answer; 0: none */
    uint32_t attempts;
    becalm_ns retry_after; /* 503, 429, 409: at least this long; BECALM_NEVER: the usual, of 409 none */
    uint64_t random;       /* for its jitter */
    enum becalm_mark_kind mark;
    enum becalm_reason mark_reason;
    uint32_t grpc_status;       /* BECALM_GRPC_NONE: not a gRPC call */
    bool bare;                  /* of gRPC over HTTP/2, where fields are metadata: without a length */
    struct becalm_text explain; /* the value of Becalm-Explain; absent: none */
    struct becalm_text date;
};

/* Makes the head of the answer, and returns its body; values and body are in `room`, OWN_ROOM bytes. The caller decides
 * whether the connection is kept, and leaves the body out of an answer to HEAD. */
#define OWN_ROOM 2048u
struct becalm_text own_draft(struct draft *, const struct own *, char *room);

#endif
