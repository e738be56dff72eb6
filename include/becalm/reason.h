/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REASON_H
#define BECALM_REASON_H

/* Why: one enum for every decision of the engine. The word is the same in logs, metric labels, headers and pages. */

#include <becalm/base.h>

BECALM_BEGIN_DECLS

/* clang-format off */
/* X(name, word, sentence). The sentence describes the end of the call; docs/reason.md gives the remedy. */
#define BECALM_REASONS(X) \
    X(BECALM_WHY_NONE,             "none",             "the engine has decided nothing yet") \
    X(BECALM_WHY_OK,               "ok",               "the call succeeded") \
    X(BECALM_WHY_BACKOFF,          "backoff",          "a retry waits for its backoff") \
    X(BECALM_WHY_HINT,             "hint",             "a retry waits for the time that the server asked for") \
    X(BECALM_WHY_HEDGE,            "hedge",            "an attempt was slow, so a second attempt was sent beside it") \
    X(BECALM_WHY_QUEUED,           "queued",           "the call waits in the gate for a free slot") \
    X(BECALM_WHY_RATE,             "rate",             "the client-side rate limit holds the call back") \
    X(BECALM_WHY_ATTEMPTS_SPENT,   "attempts_spent",   "every attempt that the policy allows was made") \
    X(BECALM_WHY_BUDGET_EMPTY,     "budget_empty",     "the budget could not pay for another retry") \
    X(BECALM_WHY_BREAKER_OPEN,     "breaker_open",     "the circuit breaker is open") \
    X(BECALM_WHY_PROBE_FAILED,     "probe_failed",     "a half-open probe failed, and probes are not retried") \
    X(BECALM_WHY_DEADLINE,         "deadline",         "there is not enough time left before the deadline") \
    X(BECALM_WHY_NOT_IDEMPOTENT,   "not_idempotent",   "the request may have been executed, and a repeat may not be safe") \
    X(BECALM_WHY_NOT_REPLAYABLE,   "not_replayable",   "the request's body can't be sent again") \
    X(BECALM_WHY_NOT_LISTED,       "not_listed",       "the policy does not list this failure as one to retry") \
    X(BECALM_WHY_PERMANENT,        "permanent",        "a retry would get the same answer") \
    X(BECALM_WHY_ANSWER_DELIVERED, "answer_delivered", "part of the answer had already reached the caller") \
    X(BECALM_WHY_THROTTLED,        "throttled",        "the adaptive throttle rejected the call before it was sent") \
    X(BECALM_WHY_SHED,             "shed",             "the gate dropped the call to keep its queue short") \
    X(BECALM_WHY_LIMIT,            "limit",            "the limit of attempts in flight is reached") \
    X(BECALM_WHY_ANSWERS,          "answers",          "as many answers are in progress as the policy allows") \
    X(BECALM_WHY_STOPPED,          "stopped",          "the server asked not to retry") \
    X(BECALM_WHY_CANCELLED,        "cancelled",        "the caller gave up") \
    X(BECALM_WHY_RETRIES_OFF,      "retries_off",      "the policy does not retry") \
    X(BECALM_WHY_NO_HOST,          "no_host",          "no host accepts connections; the call waits for one, or has waited in vain") \
    X(BECALM_WHY_NO_CONNECTION,    "no_connection",    "no connection to the host became free before the call's time was over")
/* clang-format on */

enum becalm_reason {
#define BECALM_REASON_ENUM(name, word, sentence) name,
    BECALM_REASONS(BECALM_REASON_ENUM)
#undef BECALM_REASON_ENUM
};

#define BECALM_REASON_ONE(name, word, sentence) +1
enum { BECALM_REASON_COUNT = 0 BECALM_REASONS(BECALM_REASON_ONE) };
#undef BECALM_REASON_ONE

/* "budget_empty". Never NULL; "unknown" for a number that is no reason. */
BECALM_API const char *becalm_reason_word(enum becalm_reason);

/* One sentence without a full stop. Never NULL. */
BECALM_API const char *becalm_reason_sentence(enum becalm_reason);

BECALM_END_DECLS

#endif
