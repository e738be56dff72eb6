/* SPDX-License-Identifier: MIT */
#ifndef BECALM_OUTCOME_H
#define BECALM_OUTCOME_H

/* How an attempt ended, in the engine's words. Drivers translate HTTP statuses, libcurl codes and exit codes into them;
 * the table below says how the breaker, the limit and the other parts count each word. */

#include <becalm/ns.h>

BECALM_BEGIN_DECLS

/* May this outcome be retried, if the policy lists it? */
enum becalm_retry_rule {
    BECALM_RETRY_NEVER,
    BECALM_RETRY_ANY,        /* any method: the request was never sent */
    BECALM_RETRY_IDEMPOTENT, /* if executing the request twice is safe */
    BECALM_RETRY_ONCE,       /* idempotent, and once only */
    BECALM_RETRY_IF_TIME,    /* idempotent, and only if at least as much time is left as this attempt took */
    BECALM_RETRY_WITH_KEY    /* with an idempotency key */
};

enum becalm_verdict { /* for the breaker */
                      BECALM_VERDICT_OK,
                      BECALM_VERDICT_FAILED,
                      BECALM_VERDICT_NEUTRAL
};

enum becalm_evidence { /* for the limit */
                       BECALM_EVIDENCE_NONE,
                       BECALM_EVIDENCE_ANSWER, /* answered, but not with success: only its latency counts */
                       BECALM_EVIDENCE_SUCCESS,
                       BECALM_EVIDENCE_TIMEOUT,
                       BECALM_EVIDENCE_REJECTED, /* an answer, too: the service could not take the attempt */
                       /* These two are not in the table below. */
                       BECALM_EVIDENCE_GIVEN_UP, /* the caller waits no longer; the loser of a hedge is also cancelled,
                                                    but is no evidence */
                       BECALM_EVIDENCE_OVERDUE   /* a timeout that was learned and not written: the attempt goes on */
};

enum becalm_health { /* for the host, see outlier.h */
                     BECALM_HEALTH_NONE,
                     BECALM_HEALTH_OK,
                     BECALM_HEALTH_FAILED,
                     BECALM_HEALTH_REJECTED /* failed, unless a mark says that the whole service is meant */
};

enum becalm_acceptance { /* for the throttle */
                         BECALM_ACCEPTANCE_NONE,
                         BECALM_ACCEPTANCE_YES,
                         BECALM_ACCEPTANCE_NO
};

/* clang-format off */
/* X(name, word, listed, retry, earns, verdict, evidence, health, acceptance, sentence)
 * listed: in retryOn by default. earns: deposits into the budgets that successes pay into, and refunds the price of the
 * retry that ended so. The rest: one of the enums above. */
#define BECALM_OUTCOMES(X) \
    X(BECALM_OUTCOME_OK,          "ok",          no,  NEVER,      yes, OK,      SUCCESS, OK,       YES,   \
      "answered with success (1xx to 3xx)") \
    X(BECALM_OUTCOME_PERMANENT,   "permanent",   no,  NEVER,      yes, OK,      SUCCESS, OK,       YES,   \
      "answered with an error that stays (most 4xx)") \
    X(BECALM_OUTCOME_FAILED,      "failed",      no,  ONCE,       no,  FAILED,  ANSWER,  FAILED,   YES,   \
      "answered with an error of the application (500)") \
    X(BECALM_OUTCOME_BROKEN,      "broken",      yes, IDEMPOTENT, no,  FAILED,  ANSWER,  FAILED,   NO,    \
      "broke off, or a proxy said so (reset, cut answer, 502)") \
    X(BECALM_OUTCOME_LATE,        "late",        yes, IF_TIME,    no,  FAILED,  ANSWER,  FAILED,   NO,    \
      "a proxy waited in vain (504)") \
    X(BECALM_OUTCOME_REJECTED,    "rejected",    yes, IDEMPOTENT, no,  FAILED,  REJECTED, REJECTED, NO,   \
      "turned away as overloaded (503, RESOURCE_EXHAUSTED)") \
    X(BECALM_OUTCOME_RATE_LIMITED, "rate_limited", yes, IDEMPOTENT, no,  NEUTRAL, ANSWER,  NONE,     NO,    \
      "turned away by a rate limit (429; 408, 425 when listed)") \
    X(BECALM_OUTCOME_CONFLICT,    "conflict",    no,  WITH_KEY,   no,  NEUTRAL, ANSWER,  NONE,     YES,   \
      "in conflict with another request (409)") \
    X(BECALM_OUTCOME_REFUSED,     "refused",     yes, ANY,        no,  FAILED,  NONE,    FAILED,   NO,    \
      "never sent (connection refused, no DNS, REFUSED_STREAM)") \
    X(BECALM_OUTCOME_TLS,         "tls",         no,  NEVER,      no,  FAILED,  NONE,    FAILED,   NO,    \
      "never sent: the TLS handshake failed") \
    X(BECALM_OUTCOME_TIMED_OUT,   "timed_out",   yes, IDEMPOTENT, no,  FAILED,  TIMEOUT, FAILED,   NO,    \
      "no answer within the attempt's timeout") \
    X(BECALM_OUTCOME_CANCELLED,   "cancelled",   no,  NEVER,      no,  NEUTRAL, NONE,    NONE,     NONE,  \
      "given up: the caller, its deadline, or the loser of a hedge")
/* clang-format on */

enum becalm_outcome_kind {
#define BECALM_OUTCOME_ENUM(name, ...) name,
    BECALM_OUTCOMES(BECALM_OUTCOME_ENUM)
#undef BECALM_OUTCOME_ENUM
};

#define BECALM_OUTCOME_ONE(name, ...) +1
enum { BECALM_OUTCOME_COUNT = 0 BECALM_OUTCOMES(BECALM_OUTCOME_ONE) };
#undef BECALM_OUTCOME_ONE

/* A set of outcomes: policy.retry_on and the like. */
#define BECALM_OUTCOME_BIT(kind) (1u << (kind))

/* One row of the table as a value, for readers. */
struct becalm_outcome_traits {
    const char *word;
    const char *sentence;
    bool listed; /* in retryOn by default */
    enum becalm_retry_rule retry;
    bool earns;
    enum becalm_verdict verdict;
    enum becalm_evidence evidence;
    enum becalm_health health;
    enum becalm_acceptance acceptance;
};

BECALM_API extern const struct becalm_outcome_traits becalm_outcome_table[BECALM_OUTCOME_COUNT];

static inline const struct becalm_outcome_traits *becalm_outcome_traits(enum becalm_outcome_kind kind)
{
    BECALM_ASSERT((unsigned)kind < BECALM_OUTCOME_COUNT);
    return &becalm_outcome_table[kind];
}

/* "timed_out". Never NULL. */
BECALM_API const char *becalm_outcome_word(enum becalm_outcome_kind);

/* The mark "do not retry" on an answer; see mark.h. */
enum becalm_mark_kind {
    BECALM_MARK_NONE,
    BECALM_MARK_OVERLOADED_HOST, /* do not retry on that host; another host may be tried */
    BECALM_MARK_OVERLOADED,      /* the whole service: not at all */
    BECALM_MARK_SPENT,           /* a lower layer has retried already */
    BECALM_MARK_UNASKED /* as SPENT; but a lower layer refused the call, and the service itself was never asked */
};

/* Does the policy list this outcome? A driver that knows more than the kind, such as a status number, sets YES or NO.
 */
enum becalm_listed { BECALM_LISTED_BY_KIND, BECALM_LISTED_YES, BECALM_LISTED_NO };

/* How an attempt ended, as the driver saw it. Zeroed, it is a plain success. */
struct becalm_outcome {
    enum becalm_outcome_kind kind;
    enum becalm_listed listed;
    enum becalm_mark_kind mark;
    bool stop;      /* the server said: do not retry (a negative grpc-retry-pushback-ms) */
    bool delivered; /* a byte of the answer has reached the caller, so nothing can be taken back */
    bool safe;     /* the policy named this very failure as one after which any request may be repeated (a gRPC code) */
    bool has_hint; /* the server said how long to wait (Retry-After, grpc-retry-pushback-ms) */
    bool own_hint; /* the hint is meant for this client, not for all clients of the host: a rate limit (429). A driver
                      whose calls all belong to one client leaves it false */
    bool provisional; /* HEAD of an OK: the head is good, but only the end says whether it succeeded (a gRPC status) */
    bool no_listener; /* REFUSED because no process listens at that host: if no host has one, the call may wait, see
                         restart.h */
    bool impatient;  /* TIMED_OUT or REFUSED by the caller's own timeout, not by one of the policy's. If attempts to the
                        target usually take longer than that, it is retried and is no evidence against the service */
    becalm_ns hint;  /* has_hint: how long to wait */
    uint32_t status; /* the driver's own number (HTTP status, exit code); 0: there was no answer */
};

BECALM_END_DECLS

#endif
