/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_H
#define BECALM_HTTP_H

/* Translates HTTP and gRPC for the engine: which outcome a method, a status or a header field gives. No sockets, no
 * allocation. Text is a pointer and a length and need not end with a zero byte. Every parser accepts any bytes, and
 * blanks (spaces and tabs) around a value. docs/http.md has the tables. */

#include <becalm/call.h>

BECALM_BEGIN_DECLS

/* A piece of text that is owned elsewhere. Zeroed: absent; an empty text that is there has a pointer. */
struct becalm_text {
    const char *at;
    size_t length;
};

/* ---- method.c ---- */

/* GET, HEAD, PUT, DELETE, OPTIONS and TRACE may be repeated (RFC 9110, 9.2.2). Methods are case-sensitive. */
BECALM_API bool becalm_http_idempotent(struct becalm_text method);

/* ---- grpc.c, the codes ---- */

/* clang-format off */
/* X(name, word, token): the number is the position; the token is how a policy writes it. */
#define BECALM_GRPC_CODES(X) \
    X(BECALM_GRPC_OK,                  "OK",                  "ok") \
    X(BECALM_GRPC_CANCELLED,           "CANCELLED",           "cancelled") \
    X(BECALM_GRPC_UNKNOWN,             "UNKNOWN",             "unknown") \
    X(BECALM_GRPC_INVALID_ARGUMENT,    "INVALID_ARGUMENT",    "invalid-argument") \
    X(BECALM_GRPC_DEADLINE_EXCEEDED,   "DEADLINE_EXCEEDED",   "deadline-exceeded") \
    X(BECALM_GRPC_NOT_FOUND,           "NOT_FOUND",           "not-found") \
    X(BECALM_GRPC_ALREADY_EXISTS,      "ALREADY_EXISTS",      "already-exists") \
    X(BECALM_GRPC_PERMISSION_DENIED,   "PERMISSION_DENIED",   "permission-denied") \
    X(BECALM_GRPC_RESOURCE_EXHAUSTED,  "RESOURCE_EXHAUSTED",  "resource-exhausted") \
    X(BECALM_GRPC_FAILED_PRECONDITION, "FAILED_PRECONDITION", "failed-precondition") \
    X(BECALM_GRPC_ABORTED,             "ABORTED",             "aborted") \
    X(BECALM_GRPC_OUT_OF_RANGE,        "OUT_OF_RANGE",        "out-of-range") \
    X(BECALM_GRPC_UNIMPLEMENTED,       "UNIMPLEMENTED",       "unimplemented") \
    X(BECALM_GRPC_INTERNAL,            "INTERNAL",            "internal") \
    X(BECALM_GRPC_UNAVAILABLE,         "UNAVAILABLE",         "unavailable") \
    X(BECALM_GRPC_DATA_LOSS,           "DATA_LOSS",           "data-loss") \
    X(BECALM_GRPC_UNAUTHENTICATED,     "UNAUTHENTICATED",     "unauthenticated")
/* clang-format on */

enum becalm_grpc {
#define BECALM_GRPC_ENUM(name, word, token) name,
    BECALM_GRPC_CODES(BECALM_GRPC_ENUM)
#undef BECALM_GRPC_ENUM
};

enum { BECALM_GRPC_COUNT = BECALM_GRPC_UNAUTHENTICATED + 1 };

/* "UNAVAILABLE" for 14; "unknown code" for other numbers. And back, in upper or lower case, with - or _: -1 if the word
 * is no code. */
BECALM_API const char *becalm_grpc_word(uint32_t code);
BECALM_API int becalm_grpc_code(struct becalm_text word);

/* ---- retry_on.c: the policy's retryOn, in Envoy's words ---- */

enum becalm_retry_token {                                   /* bits */
                          BECALM_ON_5XX = 1 << 0,           /* every 5xx, and no answer at all, as in Envoy */
                          BECALM_ON_GATEWAY_ERROR = 1 << 1, /* 502, 503, 504 */
                          BECALM_ON_RESET = 1 << 2,
                          BECALM_ON_RESET_BEFORE_REQUEST = 1 << 3,
                          BECALM_ON_CONNECT_FAILURE = 1 << 4, /* and DNS */
                          BECALM_ON_REFUSED_STREAM = 1 << 5,
                          BECALM_ON_TIMEOUT = 1 << 6,
                          BECALM_ON_RETRIABLE_4XX = 1 << 7,         /* 409 */
                          BECALM_ON_RATE_LIMITED = 1 << 8,          /* 429; alias envoy-ratelimited */
                          BECALM_ON_RETRIABLE_STATUS_CODES = 1 << 9 /* the numbers that are listed beside it */
};

struct becalm_retry_on {
    uint32_t tokens;
    uint32_t grpc;      /* bit n: gRPC code n */
    uint64_t status[8]; /* bit n of word w: status 100 + 64 w + n */
};

/* connect-failure, refused-stream, reset, timeout, gateway-error, 429, unavailable */
BECALM_API void becalm_retry_on_defaults(struct becalm_retry_on *);

/* Adds one token to a zeroed list: a name of the list above as written in a policy ("5xx", "gateway-error",
 * "rate-limited"), a gRPC code's name ("unavailable", "UNAVAILABLE", "deadline-exceeded") but OK, or a status from 400
 * to 599 ("503"). BECALM_EINVAL if it is none. */
BECALM_API int becalm_retry_on_add(struct becalm_retry_on *, struct becalm_text token);

/* The names that _add knows, for suggestions and help: NULL after the last. */
BECALM_API const char *becalm_retry_on_name(unsigned index);

/* Is the status listed, by its number or by a token? */
BECALM_API bool becalm_retry_on_has_status(const struct becalm_retry_on *, uint32_t status);

/* The set of outcome kinds that this list stands for, for becalm_policy.retry_on. The set decides about outcomes that
 * have neither LISTED_YES nor LISTED_NO. The functions below always set one of these two, so the set mainly decides
 * about the engine's own timeout. */
BECALM_API uint32_t becalm_retry_on_outcomes(const struct becalm_retry_on *);

/* ---- status.c, grpc.c: an answer or a failure becomes an outcome ---- */

enum becalm_http_failure {
    BECALM_HTTP_CONNECT, /* connection refused, unreachable, timed out while connecting */
    BECALM_HTTP_DNS,
    BECALM_HTTP_TLS,                  /* handshake */
    BECALM_HTTP_REFUSED_STREAM,       /* or an unprocessed GOAWAY */
    BECALM_HTTP_RESET_BEFORE_REQUEST, /* before a byte of the request was sent */
    BECALM_HTTP_RESET,                /* after, before the answer's head */
    BECALM_HTTP_CUT,                  /* after the head */
    BECALM_HTTP_BAD_ANSWER,           /* not HTTP, or ambiguous */
    BECALM_HTTP_TIMEOUT,              /* the attempt's own timeout */
    BECALM_HTTP_OVERLOADED            /* HTTP/2: ENHANCE_YOUR_CALM, before the answer's head */
};

/* No answer. Fills *outcome completely. */
BECALM_API void becalm_http_fail(const struct becalm_retry_on *, enum becalm_http_failure, struct becalm_outcome *);

#define BECALM_GRPC_NONE UINT32_MAX

/* The head of an answer, as far as the engine cares. Zero the rest. */
struct becalm_http_answer {
    uint32_t status;
    uint32_t grpc_status; /* from grpc-status; BECALM_GRPC_NONE: not gRPC, or its status has not come yet */
    struct becalm_text retry_after;
    struct becalm_text date;       /* the answer's own Date, against which a Retry-After date is read */
    struct becalm_text pushback;   /* grpc-retry-pushback-ms */
    struct becalm_text mark;       /* Becalm-Retry */
    struct becalm_text overloaded; /* x-envoy-overloaded, with any value */
    int64_t wall;                  /* seconds since 1970, if the answer has no Date */
};

/* An answer. Fills *outcome completely: kind, listed, hint, stop, mark, status (the gRPC code has no place in it:
 * docs/http.md). */
BECALM_API void becalm_http_classify(const struct becalm_retry_on *, const struct becalm_http_answer *,
                                     struct becalm_outcome *);

/* The gRPC status of a driver's own answer to a call that ended with this reason: 14, 4, 8, 1 ... */
BECALM_API uint32_t becalm_grpc_status_for(enum becalm_reason);

/* ---- retry_after.c ---- */

/* Seconds, or one of the three date formats of RFC 9110 5.6.7, read against `date` (the answer's own Date) or, without
 * one that can be read, `wall`. Past: 0. True if it could be read. At most a year (365 days). */
BECALM_API bool becalm_retry_after_parse(struct becalm_text value, struct becalm_text date, int64_t wall,
                                         becalm_ns *wait);

/* An HTTP date, in any of the three formats, in seconds since 1970. `wall` is now, by which the century of a two-digit
 * year is guessed: the latest that is not more than 50 years ahead. */
BECALM_API bool becalm_http_date_parse(struct becalm_text, int64_t wall, int64_t *seconds);

/* grpc-retry-pushback-ms: a signed 32-bit number. Negative or unreadable means: do not retry. */
struct becalm_pushback {
    bool stop;
    becalm_ns wait;
};
BECALM_API struct becalm_pushback becalm_pushback_parse(struct becalm_text);

/* ---- deadline_header.c: the time that is left, in four dialects ---- */

enum becalm_deadline_dialect {                              /* bits */
                               BECALM_DEADLINE_GRPC = 1,    /* grpc-timeout: 1 to 8 digits and H M S m u n */
                               BECALM_DEADLINE_REQUEST = 2, /* X-Request-Deadline-Ms */
                               BECALM_DEADLINE_ENVOY = 4,   /* x-envoy-expected-rq-timeout-ms */
                               BECALM_DEADLINE_BAGGAGE = 8  /* the member deadline-ms of W3C baggage */
};

struct becalm_deadline_headers {
    struct becalm_text grpc_timeout;
    struct becalm_text request_deadline_ms;
    struct becalm_text envoy_expected_ms;
    struct becalm_text baggage;
};

/* The earliest of the deadlines that are present and valid; BECALM_NEVER if there is none. *dialects gets the bits of
 * the fields that are present. 0 means that no time is left. */
BECALM_API becalm_ns becalm_deadline_read(const struct becalm_deadline_headers *, unsigned *dialects);

/* Writes the time left in one dialect's value (for BAGGAGE only the number), zero-terminated. Rounds down to the
 * dialect's unit, but never to 0: at least 1. gRPC takes the finest unit that fits into 8 digits.
 * Returns the length; `size` at least 24. */
BECALM_API size_t becalm_deadline_write(enum becalm_deadline_dialect, becalm_ns left, char *text, size_t size);

/* ---- mark_header.c ---- */

/* Becalm-Retry: overloaded|spent; scope=service|host; reason=<word>, in upper or lower case. A missing scope means the
 * service, an unknown scope the host. Unknown parameters are ignored. Text that can't be parsed gives MARK_NONE. */
BECALM_API enum becalm_mark_kind becalm_mark_parse(struct becalm_text);

/* The value for a mark, zero-terminated; returns the length, 0 for MARK_NONE. The scope is in the kind: a gate in role
 * sidecar says OVERLOADED_HOST where becalm_mark_for() says OVERLOADED. `size` at least 96. */
BECALM_API size_t becalm_mark_write(enum becalm_mark_kind, enum becalm_reason, char *text, size_t size);

/* ---- idempotency.c ---- */

#define BECALM_KEY_MAX 255u

/* Idempotency-Key: a quoted string (RFC 8941), or bare: visible ASCII without " \\ , and ; (a UUID, base64). *key is
 * the text inside the quotes, 1 to BECALM_KEY_MAX bytes, backslashes kept. False: not a key, and *key is unchanged. */
BECALM_API bool becalm_key_parse(struct becalm_text value, struct becalm_text *key);

/* ---- proxy_status.c: RFC 9209 and RFC 9457 ---- */

/* A driver's own answer to a call, where no host's answer is passed on. */
struct becalm_own_answer {
    uint32_t status;   /* 503, 504, 502, 429, ... */
    const char *error; /* Proxy-Status error token: "destination_unavailable" ... */
    const char *title; /* for the problem document: the reason's sentence */
};

/* Fills in the answer for a call that ended with this reason and no answer of the service; `last` is the outcome of its
 * last attempt, OK if no attempt was sent. A driver that knows the error better (the connect timed out) may replace it.
 */
BECALM_API void becalm_own_answer_for(enum becalm_reason, enum becalm_outcome_kind last, struct becalm_own_answer *);

/* `becalm; error=...; details="..."`, zero-terminated. `size` at least 128. Returns the length. */
BECALM_API size_t becalm_proxy_status_write(const struct becalm_own_answer *, enum becalm_reason, char *text,
                                            size_t size);

BECALM_END_DECLS

#endif
