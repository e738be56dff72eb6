/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "status_internal.h"
#include "text_internal.h"

/* The tokens that list a failure without an answer. 5xx is always among them, because in Envoy it means
 * a 5xx or no answer at all. */
static unsigned failure_tokens(enum becalm_http_failure failure)
{
    switch (failure) {
    case BECALM_HTTP_CONNECT:
    case BECALM_HTTP_DNS:
        return BECALM_ON_CONNECT_FAILURE | BECALM_ON_5XX;
    case BECALM_HTTP_TLS:
        return 0;
    case BECALM_HTTP_REFUSED_STREAM:
        return BECALM_ON_REFUSED_STREAM | BECALM_ON_5XX;
    case BECALM_HTTP_RESET_BEFORE_REQUEST:
        return BECALM_ON_RESET | BECALM_ON_RESET_BEFORE_REQUEST | BECALM_ON_CONNECT_FAILURE | BECALM_ON_5XX;
    case BECALM_HTTP_RESET:
    case BECALM_HTTP_CUT:
    case BECALM_HTTP_BAD_ANSWER:
        return BECALM_ON_RESET | BECALM_ON_5XX;
    case BECALM_HTTP_TIMEOUT:
        return BECALM_ON_TIMEOUT | BECALM_ON_5XX;
    case BECALM_HTTP_OVERLOADED: /* as a 503 */
        return BECALM_ON_GATEWAY_ERROR | BECALM_ON_5XX;
    }
    BECALM_UNREACHABLE();
}

static enum becalm_outcome_kind failure_kind(enum becalm_http_failure failure)
{
    switch (failure) {
    case BECALM_HTTP_CONNECT:
    case BECALM_HTTP_DNS:
    case BECALM_HTTP_REFUSED_STREAM:
    case BECALM_HTTP_RESET_BEFORE_REQUEST:
        return BECALM_OUTCOME_REFUSED;
    case BECALM_HTTP_TLS:
        return BECALM_OUTCOME_TLS;
    case BECALM_HTTP_RESET:
    case BECALM_HTTP_CUT:
    case BECALM_HTTP_BAD_ANSWER:
        return BECALM_OUTCOME_BROKEN;
    case BECALM_HTTP_TIMEOUT:
        return BECALM_OUTCOME_TIMED_OUT;
    case BECALM_HTTP_OVERLOADED:
        return BECALM_OUTCOME_REJECTED;
    }
    BECALM_UNREACHABLE();
}

void becalm_http_fail(const struct becalm_retry_on *on, enum becalm_http_failure failure,
                      struct becalm_outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    outcome->kind = failure_kind(failure);
    outcome->listed = becalm__listed(becalm__retry_on_any(on, failure_tokens(failure)));
}

static enum becalm_outcome_kind status_kind(uint32_t status, bool listed)
{
    if (status >= 100 && status < 400) {
        return BECALM_OUTCOME_OK;
    }
    switch (status) {
    case 409:
        return BECALM_OUTCOME_CONFLICT;
    case 429:
        return BECALM_OUTCOME_RATE_LIMITED;
    case 502:
        return BECALM_OUTCOME_BROKEN;
    case 503:
        return BECALM_OUTCOME_REJECTED;
    case 504:
        return BECALM_OUTCOME_LATE;
    default:
        break;
    }
    if (status >= 400 && status < 500) {
        /* A policy that lists a 404 expects that it will change. RATE_LIMITED is retried like other answers and blames
         * neither the host nor the service for it. */
        return listed ? BECALM_OUTCOME_RATE_LIMITED : BECALM_OUTCOME_PERMANENT;
    }
    return BECALM_OUTCOME_FAILED; /* also for numbers that are no status: RFC 9110, 15 */
}

static void http_classify(const struct becalm_retry_on *on, const struct becalm_http_answer *answer,
                          struct becalm_outcome *outcome)
{
    uint32_t status = answer->status;
    bool is_status = status >= 100 && status <= 599;
    bool listed = becalm_retry_on_has_status(on, is_status ? status : 500);
    outcome->kind = status_kind(status, listed);
    outcome->listed = becalm__listed(listed);
    if (status == 429 || status == 503) {
        outcome->has_hint = becalm_retry_after_parse(answer->retry_after, answer->date, answer->wall, &outcome->hint);
        outcome->own_hint = outcome->has_hint && status == 429; /* RFC 6585: "the user has sent too many requests" */
    }
}

static enum becalm_mark_kind answer_mark(const struct becalm_http_answer *answer)
{
    enum becalm_mark_kind mark = becalm_mark_parse(answer->mark);
    if (mark == BECALM_MARK_NONE && answer->overloaded.at != NULL) {
        return BECALM_MARK_OVERLOADED_HOST;
    }
    return mark;
}

/* An error without a gRPC status comes from a proxy in between. An error with grpc-status 0 contradicts itself;
 * more likely the driver forgot to set BECALM_GRPC_NONE: the error counts. */
static bool answer_is_grpc(const struct becalm_http_answer *answer)
{
    return answer->grpc_status != BECALM_GRPC_NONE &&
           (answer->grpc_status != BECALM_GRPC_OK || (answer->status >= 100 && answer->status < 400));
}

void becalm_http_classify(const struct becalm_retry_on *on, const struct becalm_http_answer *answer,
                          struct becalm_outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    if (answer_is_grpc(answer)) {
        becalm__grpc_classify(on, answer, outcome);
    } else {
        http_classify(on, answer, outcome);
    }
    outcome->mark = answer_mark(answer);
    outcome->status = answer->status;
}
