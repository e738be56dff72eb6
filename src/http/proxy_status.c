/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "text_internal.h"

struct status_and_error {
    uint32_t status;
    const char *error;
};

/* Status and error by the last attempt. An answer of the service is here only if it was discarded for a retry: then its
 * status is kept, because another status would make the layer above decide differently. */
static struct status_and_error by_outcome(enum becalm_outcome_kind last)
{
    switch (last) {
    case BECALM_OUTCOME_OK:
    case BECALM_OUTCOME_PERMANENT:
        return (struct status_and_error){502, "http_response_incomplete"};
    case BECALM_OUTCOME_FAILED:
        return (struct status_and_error){500, "http_response_incomplete"};
    case BECALM_OUTCOME_BROKEN:
        return (struct status_and_error){502, "connection_terminated"};
    case BECALM_OUTCOME_REJECTED:
        return (struct status_and_error){503, "destination_unavailable"};
    case BECALM_OUTCOME_RATE_LIMITED:
        return (struct status_and_error){429, "http_response_incomplete"};
    case BECALM_OUTCOME_CONFLICT:
        return (struct status_and_error){409, "http_response_incomplete"};
    case BECALM_OUTCOME_REFUSED:
        return (struct status_and_error){502, "connection_refused"};
    case BECALM_OUTCOME_TLS:
        return (struct status_and_error){502, "tls_protocol_error"};
    case BECALM_OUTCOME_LATE:
    case BECALM_OUTCOME_TIMED_OUT:
    case BECALM_OUTCOME_CANCELLED:
        return (struct status_and_error){504, "http_response_timeout"};
    }
    BECALM_UNREACHABLE();
}

/* Always 504; the error says where the time went. OK means no attempt at all: the call arrived too late. */
static struct status_and_error by_deadline(enum becalm_outcome_kind last)
{
    return (struct status_and_error){
        504,
        last == BECALM_OUTCOME_OK ? "proxy_internal_response" : by_outcome(last).error,
    };
}

static struct status_and_error by_reason(enum becalm_reason reason, enum becalm_outcome_kind last)
{
    switch (reason) {
    case BECALM_WHY_BREAKER_OPEN:
    case BECALM_WHY_THROTTLED:
    case BECALM_WHY_NO_HOST:
        return (struct status_and_error){503, "destination_unavailable"};
    case BECALM_WHY_SHED:
    case BECALM_WHY_LIMIT:
    case BECALM_WHY_ANSWERS:
    case BECALM_WHY_NO_CONNECTION:
        return (struct status_and_error){503, "connection_limit_reached"};
    case BECALM_WHY_RATE: /* the service asked this caller to send less, and so does the gateway */
        return (struct status_and_error){429, "proxy_internal_response"};
    case BECALM_WHY_DEADLINE:
        return by_deadline(last);
    case BECALM_WHY_CANCELLED: /* seen by a caller that closed only its own side, or if the gateway gave up */
        return last == BECALM_OUTCOME_OK || last == BECALM_OUTCOME_CANCELLED
                   ? (struct status_and_error){503, "proxy_internal_response"}
                   : by_outcome(last);
    case BECALM_WHY_ATTEMPTS_SPENT:
    case BECALM_WHY_BUDGET_EMPTY:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_NOT_IDEMPOTENT:
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_PERMANENT:
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_STOPPED:
    case BECALM_WHY_RETRIES_OFF:
        return by_outcome(last);
    case BECALM_WHY_OK: /* calls with these reasons always have an answer */
    case BECALM_WHY_NONE:
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
        return (struct status_and_error){500, "proxy_internal_error"};
    }
    BECALM_UNREACHABLE();
}

void becalm_own_answer_for(enum becalm_reason reason, enum becalm_outcome_kind last, struct becalm_own_answer *answer)
{
    struct status_and_error found = by_reason(reason, last);
    answer->status = found.status;
    answer->error = found.error;
    answer->title = becalm_reason_sentence(reason);
}

size_t becalm_proxy_status_write(const struct becalm_own_answer *answer, enum becalm_reason reason, char *text,
                                 size_t size)
{
    struct text_out out = {text, size, 0};
    BECALM_ASSERT(size >= 128);
    out_add(&out, "becalm; error=");
    out_add(&out, answer->error);
    out_add(&out, "; details=\"");
    out_add(&out, becalm_reason_word(reason));
    out_add(&out, "\"");
    return out.length;
}
