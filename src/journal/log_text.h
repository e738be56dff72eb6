/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_LOG_TEXT_H
#define BECALM_JOURNAL_LOG_TEXT_H

/* Formats lines of the log. Each line ends with a newline and has no other, with any values. */

#include <becalm/config.h>

#include "meter/buffer.h"

#define LOG_LINE_MAX 4096u /* PIPE_BUF: a pipe writes this much in one piece, even if several processes write to it */

/* One key and its value, for a line. */
enum log_type { LOG_TEXT, LOG_NUMBER, LOG_MS, LOG_BOOL };
struct log_pair {
    const char *key;
    enum log_type type;
    struct becalm_text text; /* LOG_TEXT; absent: the pair is left out */
    uint64_t number;         /* LOG_NUMBER, LOG_BOOL; LOG_MS: nanoseconds, written in ms with three decimals */
};

/* One request, for an access line: JSON, or Apache's "combined". */
struct log_access {
    uint64_t wall; /* of its beginning */
    struct becalm_text peer;
    struct becalm_text method;
    struct becalm_text target;
    struct becalm_text host;
    struct becalm_text referer;
    struct becalm_text user_agent;
    struct becalm_text request_id;
    struct becalm_text trace_id; /* absent: it is part of no trace */
    struct becalm_text service;
    struct becalm_text endpoint;
    uint32_t version; /* 0: HTTP/1.0, 1: HTTP/1.1, 2: HTTP/2 */
    uint32_t status;
    const char *grpc_status; /* its word; NULL: it was no call of gRPC, or not answered */
    uint64_t body_bytes;     /* sent to the client */
    uint64_t took;           /* ns */
    uint32_t attempts;
    const char *reason;          /* NULL: there was no call */
    const char *detail;          /* of a refusal: which rule; NULL: none */
    struct becalm_text fault;    /* the injected fault that hit it */
    struct becalm_text fallback; /* the fallback: "answer", or the service that was called instead */
};

/* These functions return the length, at most LOG_LINE_MAX. */
size_t log_text_line(char text[LOG_LINE_MAX], enum becalm_log_format, enum becalm_log_level, uint64_t wall,
                     const char *message, const struct log_pair *pairs, size_t count);
size_t log_text_access(char text[LOG_LINE_MAX], enum becalm_log_access, const struct log_access *);

/* 2026-01-02T03:04:05.678Z */
void log_text_time(struct buffer *, uint64_t wall);

#endif
