/* SPDX-License-Identifier: MIT */
#include <becalm/policy.h>

#include "http_lab.h"

static void test_retry_on__an_empty_list_lists_nothing(void **state)
{
    struct becalm_retry_on on = retry_on("");
    (void)state;
    for (uint32_t status = 0; status < 1000; status++) {
        check_true(!becalm_retry_on_has_status(&on, status));
    }
    check_eq_u64(becalm_retry_on_outcomes(&on), 0);
}

static void test_retry_on__the_defaults_are_the_documented_tokens(void **state)
{
    struct becalm_retry_on on;
    struct becalm_retry_on written = retry_on(DEFAULTS);
    (void)state;
    becalm_retry_on_defaults(&on);
    assert_memory_equal(&on, &written, sizeof on);
}

static void test_retry_on__the_defaults_stand_for_the_engines_default_outcomes(void **state)
{
    struct becalm_retry_on on;
    struct becalm_policy policy;
    (void)state;
    becalm_retry_on_defaults(&on);
    becalm_policy_defaults(&policy);
    check_eq_u64(becalm_retry_on_outcomes(&on), policy.retry_on);
}

#define BIT(kind) BECALM_OUTCOME_BIT(BECALM_OUTCOME_##kind)

static void test_retry_on__each_token_lists_its_statuses_and_outcomes(void **state)
{
    static const struct {
        const char *token;
        uint32_t status[4]; /* of those below; 0 ends */
        uint32_t outcomes;
    } rows[] = {
        {"5xx",
         {500, 502, 503, 504},
         BIT(FAILED) | BIT(BROKEN) | BIT(LATE) | BIT(REJECTED) | BIT(REFUSED) | BIT(TIMED_OUT)},
        {"gateway-error", {502, 503, 504}, BIT(BROKEN) | BIT(REJECTED) | BIT(LATE)},
        {"reset", {0}, BIT(BROKEN)},
        {"reset-before-request", {0}, BIT(REFUSED)},
        {"connect-failure", {0}, BIT(REFUSED)},
        {"refused-stream", {0}, BIT(REFUSED)},
        {"timeout", {0}, BIT(TIMED_OUT)},
        {"retriable-4xx", {409}, BIT(CONFLICT)},
        {"rate-limited", {429}, BIT(RATE_LIMITED)},
        {"envoy-ratelimited", {429}, BIT(RATE_LIMITED)},
        {"retriable-status-codes", {0}, 0},
        {"408", {408}, 0},
        {"409", {409}, BIT(CONFLICT)},
        {"425", {425}, 0},
        {"429", {429}, BIT(RATE_LIMITED)},
        {"500", {500}, BIT(FAILED)},
        {"502", {502}, BIT(BROKEN)},
        {"503", {503}, BIT(REJECTED)},
        {"504", {504}, BIT(LATE)},
        {"400", {400}, 0},
        {"599", {599}, 0},
        {"unavailable", {0}, BIT(REJECTED)},
        {"resource-exhausted", {0}, 0},
        {"deadline-exceeded", {0}, BIT(LATE)},
        {"unknown", {0}, BIT(FAILED)},
        {"internal", {0}, BIT(FAILED)},
        {"not-found", {0}, 0},
    };
    static const uint32_t statuses[] = {400, 404, 408, 409, 425, 429, 500, 502, 503, 504};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_retry_on on = retry_on(rows[i].token);
        for (size_t j = 0; j < COUNT(statuses); j++) {
            bool expected = false;
            for (size_t k = 0; k < COUNT(rows[i].status); k++) {
                expected |= rows[i].status[k] == statuses[j];
            }
            if (becalm_retry_on_has_status(&on, statuses[j]) != expected) {
                fail_msg("%s and %u", rows[i].token, (unsigned)statuses[j]);
            }
        }
        if (becalm_retry_on_outcomes(&on) != rows[i].outcomes) {
            fail_msg("%s stands for %x", rows[i].token, (unsigned)becalm_retry_on_outcomes(&on));
        }
    }
}

static void test_retry_on__5xx_lists_every_5xx_and_a_number_only_itself(void **state)
{
    struct becalm_retry_on all = retry_on("5xx");
    (void)state;
    for (uint32_t status = 0; status < 1000; status++) {
        check_eq_u64(becalm_retry_on_has_status(&all, status), status >= 500 && status <= 599);
    }
    for (uint32_t status = 400; status <= 599; status++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%u", (unsigned)status);
        struct becalm_retry_on one = retry_on(number);
        for (uint32_t other = 0; other < 1000; other++) {
            check_eq_u64(becalm_retry_on_has_status(&one, other), other == status);
        }
    }
}

static void test_retry_on__a_grpc_code_is_known_in_upper_and_lower_case(void **state)
{
    static const char *const spellings[] = {"deadline-exceeded", "deadline_exceeded", "DEADLINE_EXCEEDED",
                                            "DEADLINE-EXCEEDED", "Deadline-Exceeded"};
    (void)state;
    for (size_t i = 0; i < COUNT(spellings); i++) {
        check_eq_u64(retry_on(spellings[i]).grpc, 1u << 4);
    }
    check_eq_u64(retry_on("unavailable ABORTED").grpc, 1u << 14 | 1u << 10);
}

static void test_retry_on__what_is_no_token_is_refused_and_changes_nothing(void **state)
{
    static const char *const wrong[] = {
        "",
        "ok",
        "OK",
        "200",
        "302",
        "399",
        "600",
        "4040",
        "50",
        "5XX",
        "503 ",
        " 503",
        "+503",
        "0503",
        "503x",
        "4xx",
        "gateway_error",
        "Gateway-Error",
        "resets",
        "unavail",
        "unknown code",
        "retriable-headers",
        "\xff",
        "reset,",
        "http3-post-connect-failure",
    };
    struct becalm_retry_on on = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct becalm_text token = text_bare(wrong[i]);
        if (becalm_retry_on_add(&on, token) != BECALM_EINVAL) {
            fail_msg("\"%s\" was taken", wrong[i]);
        }
        text_drop(token);
    }
    check_eq_u64(becalm_retry_on_add(&on, text(NULL)) == BECALM_EINVAL, true);
    assert_memory_equal(&on, &(struct becalm_retry_on){0}, sizeof on);
}

static void test_retry_on__every_name_can_be_added(void **state)
{
    unsigned names = 0;
    (void)state;
    for (const char *name; (name = becalm_retry_on_name(names)) != NULL; names++) {
        struct becalm_retry_on on = retry_on(name);
        check_true(on.tokens != 0 || on.grpc != 0);
    }
    check_eq_u64(names, 11 + 16);
    check_true(becalm_retry_on_name(UINT_MAX) == NULL);
}

BECALM_TESTS(cmocka_unit_test(test_retry_on__an_empty_list_lists_nothing),
             cmocka_unit_test(test_retry_on__the_defaults_are_the_documented_tokens),
             cmocka_unit_test(test_retry_on__the_defaults_stand_for_the_engines_default_outcomes),
             cmocka_unit_test(test_retry_on__each_token_lists_its_statuses_and_outcomes),
             cmocka_unit_test(test_retry_on__5xx_lists_every_5xx_and_a_number_only_itself),
             cmocka_unit_test(test_retry_on__a_grpc_code_is_known_in_upper_and_lower_case),
             cmocka_unit_test(test_retry_on__what_is_no_token_is_refused_and_changes_nothing),
             cmocka_unit_test(test_retry_on__every_name_can_be_added))
