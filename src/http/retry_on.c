/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "status_internal.h"
#include "text_internal.h"

#define STATUS_FIRST 100u /* bit 0 of the set */
#define STATUS_LEAST 400u /* below it nothing has failed */
#define STATUS_MOST  599u

static const struct {
    const char *name;
    enum becalm_retry_token token;
} tokens[] = {
    {"5xx", BECALM_ON_5XX},
    {"gateway-error", BECALM_ON_GATEWAY_ERROR},
    {"reset", BECALM_ON_RESET},
    {"reset-before-request", BECALM_ON_RESET_BEFORE_REQUEST},
    {"connect-failure", BECALM_ON_CONNECT_FAILURE},
    {"refused-stream", BECALM_ON_REFUSED_STREAM},
    {"timeout", BECALM_ON_TIMEOUT},
    {"retriable-4xx", BECALM_ON_RETRIABLE_4XX},
    {"rate-limited", BECALM_ON_RATE_LIMITED},
    {"envoy-ratelimited", BECALM_ON_RATE_LIMITED},
    {"retriable-status-codes", BECALM_ON_RETRIABLE_STATUS_CODES},
};

enum { TOKENS = sizeof tokens / sizeof *tokens };

static void status_add(struct becalm_retry_on *on, uint32_t status)
{
    uint32_t bit = status - STATUS_FIRST;
    on->status[bit / 64] |= UINT64_C(1) << bit % 64;
}

static bool status_named(const struct becalm_retry_on *on, uint32_t status)
{
    if (status < STATUS_LEAST || status > STATUS_MOST) {
        return false;
    }
    uint32_t bit = status - STATUS_FIRST;
    return (on->status[bit / 64] >> bit % 64 & 1) != 0;
}

void becalm_retry_on_defaults(struct becalm_retry_on *on)
{
    memset(on, 0, sizeof *on);
    on->tokens = BECALM_ON_CONNECT_FAILURE | BECALM_ON_REFUSED_STREAM | BECALM_ON_RESET | BECALM_ON_TIMEOUT |
                 BECALM_ON_GATEWAY_ERROR;
    on->grpc = 1u << BECALM_GRPC_UNAVAILABLE;
    status_add(on, 429);
}

int becalm_retry_on_add(struct becalm_retry_on *on, struct becalm_text token)
{
    for (size_t i = 0; i < TOKENS; i++) {
        if (text_is(token, tokens[i].name)) {
            on->tokens |= (uint32_t)tokens[i].token;
            return 0;
        }
    }
    int code = becalm_grpc_code(token);
    if (code > BECALM_GRPC_OK) {
        on->grpc |= 1u << code;
        return 0;
    }
    uint64_t status;
    if (text_take_number(&token, &status) == 3 && text_ended(token) && status >= STATUS_LEAST &&
        status <= STATUS_MOST) {
        status_add(on, (uint32_t)status);
        return 0;
    }
    return BECALM_EINVAL;
}

const char *becalm_retry_on_name(unsigned index)
{
    if (index < TOKENS) {
        return tokens[index].name;
    }
    return becalm__grpc_token(index - TOKENS + 1); /* + 1: OK is nothing to retry on */
}

bool becalm__retry_on_any(const struct becalm_retry_on *on, unsigned wanted)
{
    return (on->tokens & wanted) != 0;
}

bool becalm__retry_on_has_grpc(const struct becalm_retry_on *on, uint32_t code)
{
    return (on->grpc >> (code < BECALM_GRPC_COUNT ? code : BECALM_GRPC_UNKNOWN) & 1) != 0;
}

bool becalm_retry_on_has_status(const struct becalm_retry_on *on, uint32_t status)
{
    unsigned listed_by = 0;
    if (status == 409) {
        listed_by = BECALM_ON_RETRIABLE_4XX;
    } else if (status == 429) {
        listed_by = BECALM_ON_RATE_LIMITED;
    } else if (status >= 502 && status <= 504) {
        listed_by = BECALM_ON_5XX | BECALM_ON_GATEWAY_ERROR;
    } else if (status >= 500 && status <= STATUS_MOST) {
        listed_by = BECALM_ON_5XX;
    }
    return becalm__retry_on_any(on, listed_by) || status_named(on, status);
}

/* Each kind is listed here with the status, the code or the failure that it was made for; a listed 507 does not make
 * every failure of an application one to retry. */
uint32_t becalm_retry_on_outcomes(const struct becalm_retry_on *on)
{
    const struct {
        enum becalm_outcome_kind kind;
        bool listed;
    } kinds[] = {
        {BECALM_OUTCOME_FAILED, becalm_retry_on_has_status(on, 500) ||
                                    becalm__retry_on_has_grpc(on, BECALM_GRPC_UNKNOWN) ||
                                    becalm__retry_on_has_grpc(on, BECALM_GRPC_INTERNAL)},
        {BECALM_OUTCOME_BROKEN,
         becalm_retry_on_has_status(on, 502) || becalm__retry_on_any(on, BECALM_ON_RESET | BECALM_ON_5XX)},
        {BECALM_OUTCOME_LATE,
         becalm_retry_on_has_status(on, 504) || becalm__retry_on_has_grpc(on, BECALM_GRPC_DEADLINE_EXCEEDED)},
        {BECALM_OUTCOME_REJECTED,
         becalm_retry_on_has_status(on, 503) || becalm__retry_on_has_grpc(on, BECALM_GRPC_UNAVAILABLE)},
        {BECALM_OUTCOME_RATE_LIMITED, becalm_retry_on_has_status(on, 429)},
        {BECALM_OUTCOME_CONFLICT, becalm_retry_on_has_status(on, 409)},
        {BECALM_OUTCOME_REFUSED, becalm__retry_on_any(on, BECALM_ON_CONNECT_FAILURE | BECALM_ON_REFUSED_STREAM |
                                                              BECALM_ON_RESET_BEFORE_REQUEST | BECALM_ON_5XX)},
        {BECALM_OUTCOME_TIMED_OUT, becalm__retry_on_any(on, BECALM_ON_TIMEOUT | BECALM_ON_5XX)},
    };
    uint32_t set = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        set |= kinds[i].listed ? BECALM_OUTCOME_BIT(kinds[i].kind) : 0;
    }
    return set;
}
