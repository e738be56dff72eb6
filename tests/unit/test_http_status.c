/* SPDX-License-Identifier: MIT */
#include "http_lab.h"

#define KIND(name) BECALM_OUTCOME_##name
#define YES        BECALM_LISTED_YES
#define NO         BECALM_LISTED_NO

static void check_outcome(const char *what, struct becalm_outcome outcome, enum becalm_outcome_kind kind,
                          enum becalm_listed listed)
{
    if (outcome.kind != kind || outcome.listed != listed) {
        fail_msg("%s is %s, listed %d; expected %s, %d", what, becalm_outcome_word(outcome.kind), (int)outcome.listed,
                 becalm_outcome_word(kind), (int)listed);
    }
}

static void test_status__success_is_a_plain_success(void **state)
{
    struct becalm_outcome outcome = classify_status(DEFAULTS, 200);
    (void)state;
    check_outcome("200", outcome, KIND(OK), NO);
    check_eq_u64(outcome.status, 200);
    check_eq_u64(outcome.mark, BECALM_MARK_NONE);
    check_true(!outcome.stop && !outcome.delivered && !outcome.has_hint);
    check_eq_u64(outcome.hint, 0);
}

/* The table of docs/http.md: each row of statuses, under five lists. */
static void test_status__each_row_of_the_table_is_as_documented(void **state)
{
    static const char *const lists[] = {"", DEFAULTS, "5xx", "gateway-error retriable-4xx", NULL}; /* NULL: itself */
    static const struct {
        uint32_t from;
        uint32_t to;
        enum becalm_outcome_kind kind;
        enum becalm_outcome_kind if_listed;
        enum becalm_listed listed[4];
    } rows[] = {
        {400, 408, KIND(PERMANENT), KIND(RATE_LIMITED), {NO, NO, NO, NO}},
        {409, 409, KIND(CONFLICT), KIND(CONFLICT), {NO, NO, NO, YES}},
        {410, 428, KIND(PERMANENT), KIND(RATE_LIMITED), {NO, NO, NO, NO}},
        {429, 429, KIND(RATE_LIMITED), KIND(RATE_LIMITED), {NO, YES, NO, NO}},
        {430, 499, KIND(PERMANENT), KIND(RATE_LIMITED), {NO, NO, NO, NO}},
        {500, 501, KIND(FAILED), KIND(FAILED), {NO, NO, YES, NO}},
        {502, 502, KIND(BROKEN), KIND(BROKEN), {NO, YES, YES, YES}},
        {503, 503, KIND(REJECTED), KIND(REJECTED), {NO, YES, YES, YES}},
        {504, 504, KIND(LATE), KIND(LATE), {NO, YES, YES, YES}},
        {505, 599, KIND(FAILED), KIND(FAILED), {NO, NO, YES, NO}},
    };
    uint32_t next = 400;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_eq_u64(rows[i].from, next);
        next = rows[i].to + 1;
        for (uint32_t status = rows[i].from; status <= rows[i].to; status++) {
            char number[16];
            (void)snprintf(number, sizeof number, "%u", (unsigned)status);
            for (size_t j = 0; j < COUNT(lists); j++) {
                enum becalm_listed listed = lists[j] == NULL ? YES : rows[i].listed[j];
                struct becalm_outcome outcome = classify_status(lists[j] == NULL ? number : lists[j], status);
                check_outcome(number, outcome, listed == YES ? rows[i].if_listed : rows[i].kind, listed);
                check_eq_u64(outcome.status, status);
            }
        }
    }
    check_eq_u64(next, 600);
}

static void test_status__100_to_399_are_fine_whatever_is_listed(void **state)
{
    (void)state;
    for (uint32_t status = 100; status < 400; status++) {
        check_outcome("below 400", classify_status("5xx retriable-4xx rate-limited reset", status), KIND(OK), NO);
    }
}

static void test_status__a_number_that_is_no_status_is_read_as_500(void **state)
{
    static const uint32_t numbers[] = {0, 1, 99, 600, 999, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        check_outcome("no status", classify_status(DEFAULTS, numbers[i]), KIND(FAILED), NO);
        check_outcome("no status", classify_status("5xx", numbers[i]), KIND(FAILED), YES);
        check_eq_u64(classify_status("", numbers[i]).status, numbers[i]);
    }
}

/* Only these answers ask for a wait that we keep. A 3xx with a Retry-After is the caller's to read. */
static void test_status__retry_after_counts_on_429_and_503_only(void **state)
{
    (void)state;
    for (uint32_t status = 100; status < 600; status++) {
        struct becalm_outcome outcome = classify(DEFAULTS, (struct becalm_http_answer){
                                                               .status = status,
                                                               .grpc_status = BECALM_GRPC_NONE,
                                                               .retry_after = text("7"),
                                                               .pushback = text("-1"), /* not for HTTP */
                                                           });
        check_eq_u64(outcome.has_hint, status == 429 || status == 503);
        check_eq_u64(outcome.hint, status == 429 || status == 503 ? 7 * BECALM_S : 0);
        check_eq_u64(outcome.own_hint, status == 429); /* a 503 speaks to all */
        check_true(!outcome.stop);
    }
}

static void test_status__a_retry_after_date_is_read_against_the_answers_own_date(void **state)
{
    struct becalm_http_answer answer = {
        .status = 503,
        .grpc_status = BECALM_GRPC_NONE,
        .retry_after = text("Sun, 06 Nov 1994 08:50:07 GMT"),
        .date = text("Sun, 06 Nov 1994 08:49:37 GMT"),
        .wall = 1700000000, /* our clock is years ahead */
    };
    (void)state;
    check_eq_u64(classify(DEFAULTS, answer).hint, 30 * BECALM_S);
    answer.date = text(NULL);
    check_true(classify(DEFAULTS, answer).has_hint);
    check_eq_u64(classify(DEFAULTS, answer).hint, 0);
    answer.wall = 784111777 - 5; /* 5 s before that Date */
    check_eq_u64(classify(DEFAULTS, answer).hint, 35 * BECALM_S);
}

static void test_status__an_unreadable_retry_after_is_no_hint(void **state)
{
    struct becalm_http_answer answer = {.status = 503, .grpc_status = BECALM_GRPC_NONE, .retry_after = text("soon")};
    (void)state;
    check_true(!classify(DEFAULTS, answer).has_hint);
    answer.retry_after = text("5, 6");
    check_true(!classify(DEFAULTS, answer).has_hint);
}

static void test_status__an_answer_carries_the_mark_that_it_came_with(void **state)
{
    static const struct {
        const char *mark;
        const char *overloaded;
        enum becalm_mark_kind expected;
    } rows[] = {
        {NULL, NULL, BECALM_MARK_NONE},
        {"overloaded; scope=service; reason=shed", NULL, BECALM_MARK_OVERLOADED},
        {"spent; scope=service; reason=budget_empty", NULL, BECALM_MARK_SPENT},
        {"spent; scope=service; unasked; reason=limit", NULL, BECALM_MARK_UNASKED},
        {NULL, "true", BECALM_MARK_OVERLOADED_HOST},
        {NULL, "", BECALM_MARK_OVERLOADED_HOST},
        {"overloaded; scope=service", "true", BECALM_MARK_OVERLOADED},
        {"spent", "true", BECALM_MARK_SPENT},
        {"nonsense", "true", BECALM_MARK_OVERLOADED_HOST},
        {"nonsense", NULL, BECALM_MARK_NONE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_http_answer answer = {
            .status = 503,
            .grpc_status = BECALM_GRPC_NONE,
            .mark = text(rows[i].mark),
            .overloaded = text(rows[i].overloaded),
        };
        check_eq_u64(classify(DEFAULTS, answer).mark, rows[i].expected);
        answer.grpc_status = BECALM_GRPC_UNAVAILABLE;
        check_eq_u64(classify(DEFAULTS, answer).mark, rows[i].expected);
    }
}

/* Each failure without an answer: which word it becomes and which tokens list it. */
static void test_status__each_failure_is_listed_by_its_tokens(void **state)
{
    static const struct {
        const char *what;
        enum becalm_http_failure failure;
        enum becalm_outcome_kind kind;
        const char *listed_by; /* of those below */
    } rows[] = {
        {"connect", BECALM_HTTP_CONNECT, KIND(REFUSED), "5xx connect-failure"},
        {"dns", BECALM_HTTP_DNS, KIND(REFUSED), "5xx connect-failure"},
        {"tls", BECALM_HTTP_TLS, KIND(TLS), ""},
        {"refused stream", BECALM_HTTP_REFUSED_STREAM, KIND(REFUSED), "5xx refused-stream"},
        {"reset before request", BECALM_HTTP_RESET_BEFORE_REQUEST, KIND(REFUSED),
         "5xx reset reset-before-request connect-failure"},
        {"reset", BECALM_HTTP_RESET, KIND(BROKEN), "5xx reset"},
        {"cut", BECALM_HTTP_CUT, KIND(BROKEN), "5xx reset"},
        {"bad answer", BECALM_HTTP_BAD_ANSWER, KIND(BROKEN), "5xx reset"},
        {"timeout", BECALM_HTTP_TIMEOUT, KIND(TIMED_OUT), "5xx timeout"},
        {"overloaded", BECALM_HTTP_OVERLOADED, KIND(REJECTED), "5xx gateway-error"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *name;
        for (unsigned j = 0; (name = becalm_retry_on_name(j)) != NULL; j++) {
            struct becalm_retry_on on = retry_on(name);
            struct becalm_retry_on expected = retry_on(rows[i].listed_by);
            struct becalm_outcome outcome;
            memset(&outcome, 0xa5, sizeof outcome);
            becalm_http_fail(&on, rows[i].failure, &outcome);
            check_outcome(rows[i].what, outcome, rows[i].kind, (expected.tokens & on.tokens) != 0 ? YES : NO);
            check_eq_u64(outcome.status, 0);
            check_eq_u64(outcome.mark, BECALM_MARK_NONE);
            check_true(!outcome.stop && !outcome.delivered && !outcome.has_hint);
        }
    }
}

BECALM_TESTS(cmocka_unit_test(test_status__success_is_a_plain_success),
             cmocka_unit_test(test_status__each_row_of_the_table_is_as_documented),
             cmocka_unit_test(test_status__100_to_399_are_fine_whatever_is_listed),
             cmocka_unit_test(test_status__a_number_that_is_no_status_is_read_as_500),
             cmocka_unit_test(test_status__retry_after_counts_on_429_and_503_only),
             cmocka_unit_test(test_status__a_retry_after_date_is_read_against_the_answers_own_date),
             cmocka_unit_test(test_status__an_unreadable_retry_after_is_no_hint),
             cmocka_unit_test(test_status__an_answer_carries_the_mark_that_it_came_with),
             cmocka_unit_test(test_status__each_failure_is_listed_by_its_tokens))
