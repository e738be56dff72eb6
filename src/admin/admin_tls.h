/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ADMIN_ADMIN_TLS_H
#define BECALM_ADMIN_ADMIN_TLS_H

/* TLS on the pages. */

#include "meter/metrics.h"
#include "proxy/gateway_shared.h"

#define ADMIN_CERTIFICATES 256u /* further certificates are not shown */

struct admin_tls {
    struct metrics_handshakes handshakes[TLS_SIDES * TLS_RESULTS];
    uint32_t handshakes_count; /* 0: there is no TLS */
    struct metrics_certificate certificate[ADMIN_CERTIFICATES];
    uint32_t certificate_count;
};

/* Points into the snapshot. */
void admin_tls_collect(struct admin_tls *, const struct gateway *, const struct snapshot *);
/* As a member "tls" of the object that is being written; nothing without TLS. */
void admin_tls_state(struct buffer *, const struct gateway *, const struct snapshot *);

#endif
