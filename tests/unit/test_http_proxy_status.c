/* SPDX-License-Identifier: MIT */
#include "http_lab.h"

static void check_answer(enum becalm_reason reason, enum becalm_outcome_kind last, uint32_t status, const char *error)
{
    struct becalm_own_answer answer;
    becalm_own_answer_for(reason, last, &answer);
    if (answer.status != status || strcmp(answer.error, error) != 0) {
        fail_msg("%s after %s is %u %s", becalm_reason_word(reason), becalm_outcome_word(last), (unsigned)answer.status,
                 answer.error);
    }
    check_eq_str(answer.title, becalm_reason_sentence(reason));
}

/* In these the reason says it all. */
static void test_own_answer__a_refusal_goes_by_its_reason(void **state)
{
    static const struct {
        enum becalm_reason reason;
        uint32_t status;
        const char *error;
    } rows[] = {
        {BECALM_WHY_BREAKER_OPEN, 503, "destination_unavailable"},
        {BECALM_WHY_THROTTLED, 503, "destination_unavailable"},
        {BECALM_WHY_NO_HOST, 503, "destination_unavailable"},
        {BECALM_WHY_SHED, 503, "connection_limit_reached"},
        {BECALM_WHY_LIMIT, 503, "connection_limit_reached"},
        {BECALM_WHY_ANSWERS, 503, "connection_limit_reached"},
        {BECALM_WHY_NO_CONNECTION, 503, "connection_limit_reached"},
        {BECALM_WHY_RATE, 429, "proxy_internal_response"},
        {BECALM_WHY_OK, 500, "proxy_internal_error"},
        {BECALM_WHY_NONE, 500, "proxy_internal_error"},
        {BECALM_WHY_BACKOFF, 500, "proxy_internal_error"},
        {BECALM_WHY_HINT, 500, "proxy_internal_error"},
        {BECALM_WHY_HEDGE, 500, "proxy_internal_error"},
        {BECALM_WHY_QUEUED, 500, "proxy_internal_error"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (unsigned last = 0; last < BECALM_OUTCOME_COUNT; last++) {
            check_answer(rows[i].reason, (enum becalm_outcome_kind)last, rows[i].status, rows[i].error);
        }
    }
}

/* In the others the attempt does; after the deadline only its error. */
static void test_own_answer__a_failure_goes_by_its_last_attempt(void **state)
{
    static const enum becalm_reason reasons[] = {
        BECALM_WHY_ATTEMPTS_SPENT, BECALM_WHY_BUDGET_EMPTY, BECALM_WHY_PROBE_FAILED, BECALM_WHY_NOT_IDEMPOTENT,
        BECALM_WHY_NOT_REPLAYABLE, BECALM_WHY_NOT_LISTED,   BECALM_WHY_PERMANENT,    BECALM_WHY_ANSWER_DELIVERED,
        BECALM_WHY_STOPPED,        BECALM_WHY_RETRIES_OFF,
    };
    static const struct {
        enum becalm_outcome_kind last;
        uint32_t status;
        const char *error;
    } rows[] = {
        {BECALM_OUTCOME_OK, 502, "http_response_incomplete"},
        {BECALM_OUTCOME_PERMANENT, 502, "http_response_incomplete"},
        {BECALM_OUTCOME_FAILED, 500, "http_response_incomplete"},
        {BECALM_OUTCOME_BROKEN, 502, "connection_terminated"},
        {BECALM_OUTCOME_LATE, 504, "http_response_timeout"},
        {BECALM_OUTCOME_REJECTED, 503, "destination_unavailable"},
        {BECALM_OUTCOME_RATE_LIMITED, 429, "http_response_incomplete"},
        {BECALM_OUTCOME_CONFLICT, 409, "http_response_incomplete"},
        {BECALM_OUTCOME_REFUSED, 502, "connection_refused"},
        {BECALM_OUTCOME_TLS, 502, "tls_protocol_error"},
        {BECALM_OUTCOME_TIMED_OUT, 504, "http_response_timeout"},
        {BECALM_OUTCOME_CANCELLED, 504, "http_response_timeout"},
    };
    (void)state;
    check_eq_u64(COUNT(rows), BECALM_OUTCOME_COUNT);
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t j = 0; j < COUNT(reasons); j++) {
            check_answer(reasons[j], rows[i].last, rows[i].status, rows[i].error);
        }
        check_answer(BECALM_WHY_DEADLINE, rows[i].last, 504,
                     rows[i].last == BECALM_OUTCOME_OK ? "proxy_internal_response" : rows[i].error);
        bool ours = rows[i].last == BECALM_OUTCOME_OK || rows[i].last == BECALM_OUTCOME_CANCELLED;
        check_answer(BECALM_WHY_CANCELLED, rows[i].last, ours ? 503 : rows[i].status,
                     ours ? "proxy_internal_response" : rows[i].error);
    }
}

static void test_proxy_status__has_the_error_and_the_reason(void **state)
{
    struct becalm_own_answer answer;
    char value[128];
    (void)state;
    becalm_own_answer_for(BECALM_WHY_BREAKER_OPEN, BECALM_OUTCOME_OK, &answer);
    (void)becalm_proxy_status_write(&answer, BECALM_WHY_BREAKER_OPEN, value, sizeof value);
    check_eq_str(value, "becalm; error=destination_unavailable; details=\"breaker_open\"");
    for (unsigned reason = 0; reason < BECALM_REASON_COUNT; reason++) {
        for (unsigned last = 0; last < BECALM_OUTCOME_COUNT; last++) {
            becalm_own_answer_for((enum becalm_reason)reason, (enum becalm_outcome_kind)last, &answer);
            size_t length = becalm_proxy_status_write(&answer, (enum becalm_reason)reason, value, sizeof value);
            check_eq_u64(length, strlen(value));
        }
    }
}

BECALM_TESTS(cmocka_unit_test(test_own_answer__a_refusal_goes_by_its_reason),
             cmocka_unit_test(test_own_answer__a_failure_goes_by_its_last_attempt),
             cmocka_unit_test(test_proxy_status__has_the_error_and_the_reason))
