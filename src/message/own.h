/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_OWN_H
#define BECALM_MESSAGE_OWN_H

/* Answers that the gateway gives by itself: a problem document (RFC 9457) that says why, Proxy-Status (RFC 9209), and a
 * Retry-After on every 503 and 429, and where it is known on 409. For gRPC an answer of trailers only. */

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

/* The answer's head, with its values in `room`, and its body, which is made in `room`, too: OWN_ROOM bytes. Whoever
 * writes it says whether the connection goes on, and leaves the body out of an answer to HEAD. */
#define OWN_ROOM 2048u
struct becalm_text own_draft(struct draft *, const struct own *, char *room);

#endif
