/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_OWN_H
#define BECALM_PROXY_OWN_H

/* Answers that the gateway gives by itself: a problem document (RFC 9457) that says why, Proxy-Status (RFC 9209), and a
 * Retry-After on every 503 and 429. For gRPC an answer of trailers only. */

#include "h1/h1.h"

struct own {
    uint32_t status;
    const char *error;  /* of Proxy-Status */
    const char *reason; /* the word in details and the document; "breaker_open" */
    const char *title;
    const char *detail;   /* a sentence more; NULL: none */
    uint32_t last_status; /* of the service's last answer; 0: none */
    uint32_t attempts;
    becalm_ns retry_after; /* 503, 429: at least this long; BECALM_NEVER: the usual */
    uint64_t random;       /* for its jitter */
    enum becalm_mark_kind mark;
    enum becalm_reason mark_reason;
    uint32_t grpc_status;       /* BECALM_GRPC_NONE: not a gRPC call */
    struct becalm_text explain; /* the value of Becalm-Explain; absent: none */
    struct becalm_text date;
    bool close;
    bool head_only; /* the request was HEAD */
};

/* The whole answer. Returns how many bytes of it are its body. */
size_t own_write(struct h1_out *, const struct own *);

#endif
