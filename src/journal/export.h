/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_EXPORT_H
#define BECALM_JOURNAL_EXPORT_H

/* One POST to a collector at a time, by libcurl, for one thread. It never waits longer than it is told to: a collector
 * that hangs or is gone is nothing special. */

#include <becalm/config.h>

struct export;

/* Where to, copied from a policy, which may go meanwhile. */
struct export_place {
    char *url; /* ends with /v1/traces */
    char **headers;
    char *ca;
    char *cert;
    char *key;
    bool verify;
    becalm_ns timeout;
};
bool export_place_make(struct export_place *,
                       const struct becalm_tracing *); /* false: no memory, and nothing is kept */
void export_place_free(struct export_place *);

enum export_end {
    EXPORT_NONE,    /* it goes on, or there is none */
    EXPORT_TAKEN,   /* with 2xx */
    EXPORT_AGAIN,   /* by what OTLP calls retryable, or no answer came */
    EXPORT_REFUSED, /* the same again would be refused again */
};

/* How one ended. */
struct export_news {
    enum export_end end;
    uint32_t status;       /* 0: no answer */
    becalm_ns retry_after; /* what the collector asked for; 0: nothing */
    uint64_t rejected;     /* TAKEN: spans that it does not want all the same */
    char why[128];         /* AGAIN, REFUSED */
};

/* NULL: there is no libcurl, or no memory; *why says it. */
struct export *export_make(const char **why);
void export_free(struct export *);

/* Begins one; the body stays the caller's, until its end. False: no memory. */
bool export_begin(struct export *, const struct export_place *, struct becalm_text body);
void export_cancel(struct export *);

/* Goes on with it, and waits for at most so long until something happens there or at the descriptor. */
void export_move(struct export *, int wake_fd, becalm_ns most, struct export_news *);

#endif
