/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "status_internal.h"
#include "text_internal.h"

static const struct {
    const char *word;
    const char *token;
} codes[] = {
#define CODE_ROW(name, word, token) [name] = {word, token},
    BECALM_GRPC_CODES(CODE_ROW)
#undef CODE_ROW
};

const char *becalm_grpc_word(uint32_t code)
{
    return code < BECALM_GRPC_COUNT ? codes[code].word : "unknown code";
}

const char *becalm__grpc_token(uint32_t code)
{
    return code < BECALM_GRPC_COUNT ? codes[code].token : NULL;
}

static bool same_word(struct becalm_text text, const char *token)
{
    if (text.length != strlen(token)) {
        return false;
    }
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i] == '_' ? '-' : to_lower(text.at[i]);
        if (c != token[i]) {
            return false;
        }
    }
    return true;
}

int becalm_grpc_code(struct becalm_text word)
{
    for (int code = 0; code < (int)BECALM_GRPC_COUNT; code++) {
        if (same_word(word, codes[code].token)) {
            return code;
        }
    }
    return -1;
}

static enum becalm_outcome_kind code_kind(uint32_t code, bool named)
{
    switch (code) {
    case BECALM_GRPC_OK:
        return BECALM_OUTCOME_OK;
    case BECALM_GRPC_UNAVAILABLE:
    case BECALM_GRPC_RESOURCE_EXHAUSTED:
        return BECALM_OUTCOME_REJECTED;
    case BECALM_GRPC_DEADLINE_EXCEEDED:
        return BECALM_OUTCOME_LATE;
    case BECALM_GRPC_ABORTED:
        /* A conflict is retried only with an idempotency key, which gRPC does not have: naming the code is how a gRPC
         * policy declares a method safe to repeat. */
        return named ? BECALM_OUTCOME_RATE_LIMITED : BECALM_OUTCOME_CONFLICT;
    case BECALM_GRPC_CANCELLED: /* as the 499 of proxies: a layer above gave up, and the service is well */
    case BECALM_GRPC_INVALID_ARGUMENT:
    case BECALM_GRPC_NOT_FOUND:
    case BECALM_GRPC_ALREADY_EXISTS:
    case BECALM_GRPC_PERMISSION_DENIED:
    case BECALM_GRPC_FAILED_PRECONDITION:
    case BECALM_GRPC_OUT_OF_RANGE:
    case BECALM_GRPC_UNIMPLEMENTED:
    case BECALM_GRPC_UNAUTHENTICATED:
        return named ? BECALM_OUTCOME_RATE_LIMITED : BECALM_OUTCOME_PERMANENT; /* as a listed 4xx: see status.c */
    default: /* UNKNOWN, INTERNAL, DATA_LOSS, and numbers that are no code */
        return BECALM_OUTCOME_FAILED;
    }
}

void becalm__grpc_classify(const struct becalm_retry_on *on, const struct becalm_http_answer *answer,
                           struct becalm_outcome *outcome)
{
    uint32_t code = answer->grpc_status;
    bool named = becalm__retry_on_has_grpc(on, code);
    outcome->kind = code_kind(code, named);
    outcome->listed = becalm__listed(named);
    outcome->safe = named; /* gRPC is POST throughout: a policy that lists the code allows the retry */
    if (code == BECALM_GRPC_OK || answer->pushback.at == NULL) {
        return;
    }
    struct becalm_pushback pushback = becalm_pushback_parse(answer->pushback);
    outcome->stop = pushback.stop;
    outcome->has_hint = !pushback.stop;
    outcome->hint = pushback.wait;
    outcome->own_hint =
        outcome->has_hint && code != BECALM_GRPC_UNAVAILABLE; /* RESOURCE_EXHAUSTED: "a per-user quota" */
    if (code == BECALM_GRPC_RESOURCE_EXHAUSTED && !pushback.stop) {
        outcome->listed = BECALM_LISTED_YES; /* the server said when to retry */
    }
}

uint32_t becalm_grpc_status_for(enum becalm_reason reason)
{
    switch (reason) {
    case BECALM_WHY_OK:
        return BECALM_GRPC_OK;
    case BECALM_WHY_DEADLINE:
        return BECALM_GRPC_DEADLINE_EXCEEDED;
    case BECALM_WHY_CANCELLED:
        return BECALM_GRPC_CANCELLED;
    case BECALM_WHY_THROTTLED: /* ours to bear: the caller sends more than may go to this service now */
    case BECALM_WHY_LIMIT:
    case BECALM_WHY_ANSWERS:
    case BECALM_WHY_NO_CONNECTION:
    case BECALM_WHY_RATE:
        return BECALM_GRPC_RESOURCE_EXHAUSTED;
    case BECALM_WHY_SHED: /* another instance may well have room; a gate that is overloaded says so by its mark */
    case BECALM_WHY_ATTEMPTS_SPENT:
    case BECALM_WHY_BUDGET_EMPTY:
    case BECALM_WHY_BREAKER_OPEN:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_NO_HOST:
    case BECALM_WHY_NOT_IDEMPOTENT: /* from here on: the attempt failed without an answer, and that is all we know */
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_PERMANENT: /* TLS */
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_STOPPED:
    case BECALM_WHY_RETRIES_OFF:
        return BECALM_GRPC_UNAVAILABLE;
    case BECALM_WHY_NONE: /* no end of a call */
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
        return BECALM_GRPC_INTERNAL;
    }
    BECALM_UNREACHABLE();
}
