/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TLS_TLS_COUNT_H
#define BECALM_TLS_TLS_COUNT_H

/* How handshakes end, for metrics. */

#include <becalm/base.h>

enum tls_side { TLS_CLIENTS, TLS_HOSTS };
#define TLS_SIDES 2u

enum tls_result {
    TLS_FULL,            /* well, with certificates */
    TLS_RESUMED,         /* well, from a session before */
    TLS_NO_CERTIFICATE,  /* the client has none, and needs one */
    TLS_BAD_CERTIFICATE, /* the peer's is not believed: its authority, name, date or signature */
    TLS_UNKNOWN_NAME,    /* the client asks for a name that no certificate has, and strictSni says that it needs one */
    TLS_NO_COMMON,       /* no version, cipher or protocol that both speak */
    TLS_ALERT,           /* the peer broke it off, and said so */
    TLS_PLAIN,           /* the peer does not speak TLS */
    TLS_TIMEOUT,
    TLS_CLOSED, /* the peer went away */
    TLS_BROKEN  /* anything else */
};
#define TLS_RESULTS 11u

struct tls_counts {
    BECALM_ATOMIC(uint64_t) count[TLS_SIDES][TLS_RESULTS];
};

static inline void tls_count(struct tls_counts *counts, enum tls_side side, enum tls_result result)
{
    atomic_fetch_add_explicit(&counts->count[side][result], 1, memory_order_relaxed); /* guards no memory */
}

/* "clients", "hosts"; "full", "no_certificate". */
const char *tls_side_word(enum tls_side);
const char *tls_result_word(enum tls_result);

#endif
