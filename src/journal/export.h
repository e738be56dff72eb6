/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_EXPORT_H
#define BECALM_JOURNAL_EXPORT_H

/* One POST to a collector at a time, by libcurl, for one thread. An export never takes longer than its caller allows,
 * even if the collector hangs or is gone. */

#include <becalm/config.h>

struct export;

/* The collector's address and settings, copied from a policy, which may be freed meanwhile. */
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
    EXPORT_NONE,    /* an export is in progress, or none was begun */
    EXPORT_TAKEN,   /* with 2xx */
    EXPORT_AGAIN,   /* a status that OTLP calls retryable, or no answer */
    EXPORT_REFUSED, /* a retry would be refused again */
};

/* How an export ended. */
struct export_news {
    enum export_end end;
    uint32_t status;       /* 0: no answer */
    becalm_ns retry_after; /* the collector's Retry-After; 0: none */
    uint64_t rejected;     /* TAKEN: spans that the collector rejected nevertheless */
    char why[128];         /* AGAIN, REFUSED */
};

/* NULL: there is no libcurl, or no memory; *why says it. */
struct export *export_make(const char **why);
void export_free(struct export *);

/* Begins an export; the caller keeps the body valid until its end. False: no memory. */
bool export_begin(struct export *, const struct export_place *, struct becalm_text body);
void export_cancel(struct export *);

/* Continues the export; waits at most `most` for an event of it or of the descriptor. */
void export_move(struct export *, int wake_fd, becalm_ns most, struct export_news *);

#endif
