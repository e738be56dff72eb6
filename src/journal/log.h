/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_LOG_H
#define BECALM_JOURNAL_LOG_H

/* The log. Workers never wait for a disk: each has a ring of bytes of its own, one thread writes them out, and lines
 * that do not fit are dropped and counted. Text ("2026-01-02T03:04:05.678Z info  message key=value") or JSON, one
 * object a line; values are escaped, so that a client's header can't forge a line. Only whole lines are written, each
 * in one piece, at most LOG_LINE_MAX bytes: longer values are cut and end with "...".
 *
 * A file that can't be written (a full disk, a closed pipe) stops nothing: lines are dropped and counted, each new line
 * tries again, and when one gets through, another says how many were lost. docs/log.md has the keys. */

#include <becalm/call.h>
#include <becalm/config.h>

#include "log_text.h"

struct log;        /* the gateway's: one writer thread, one or two files */
struct log_source; /* one thread's rings */

struct log_settings {
    enum becalm_log_level level;
    enum becalm_log_format format;
    enum becalm_log_access access;
    int fd;        /* where lines go: usually 2 */
    int access_fd; /* where access lines go: usually 1 */
};

/* NULL: no memory or thread. The descriptors stay the caller's, and open until log_free(). */
struct log *log_make(const struct log_settings *, uint32_t sources);
void log_free(struct log *); /* writes the remaining lines, within a second; the sources must have stopped before */
struct log_source *log_source_of(struct log *, uint32_t index);
/* Settings may change at a reload; any thread. Lines that wait go where the new ones say. */
void log_change(struct log *, const struct log_settings *);
/* Lines that were dropped, of both kinds. */
uint64_t log_dropped(const struct log *);

bool log_wants(const struct log_source *, enum becalm_log_level);
bool log_wants_access(const struct log_source *);

/* `wall` is nanoseconds since 1970. The message is a constant. Never blocks. Lines below the log level are not written.
 */
void log_line(struct log_source *, enum becalm_log_level, uint64_t wall, const char *message,
              const struct log_pair *pairs, size_t count);

/* One retry, logged at level info when it is sent, because only then the length of its wait is known. */
struct log_retry {
    uint64_t wall;
    struct becalm_text method; /* these three are the operation: "POST payment/charge" */
    struct becalm_text service;
    struct becalm_text endpoint;
    struct becalm_text host; /* of the attempt that failed: "10.0.0.2:9001" */
    struct becalm_text to;   /* the host of the retry */
    uint32_t retry;          /* 1 is the first ... */
    uint32_t of;             /* how many retries the policy allows */
    struct becalm_wait wait; /* as the action had it */
    becalm_ns slept;
    enum becalm_outcome_kind outcome; /* of the attempt before: why there is a retry */
    uint32_t status;                  /* its answer's; 0: there was none */
    uint32_t grpc_status;             /* BECALM_GRPC_NONE: there was none */
    struct becalm_text retry_after;   /* the answer's header, as it came; absent: none */
    struct becalm_text request_id;
    enum becalm_reason reason; /* backoff or hint */
};
void log_retry(struct log_source *, const struct log_retry *);

/* One request, in the form that the settings say. */
void log_access_line(struct log_source *, const struct log_access *);

#endif
