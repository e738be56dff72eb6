/* SPDX-License-Identifier: MIT */
#include "http_lab.h"

#include "http/grpc_text.h"

#define KIND(name) BECALM_OUTCOME_##name

/* docs/http.md a second time by hand. */
static const struct {
    uint32_t code;
    const char *word;
    const char *token;
    enum becalm_outcome_kind kind;
    enum becalm_outcome_kind if_named;
} table[] = {
    {0, "OK", "ok", KIND(OK), KIND(OK)},
    {1, "CANCELLED", "cancelled", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {2, "UNKNOWN", "unknown", KIND(FAILED), KIND(FAILED)},
    {3, "INVALID_ARGUMENT", "invalid-argument", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {4, "DEADLINE_EXCEEDED", "deadline-exceeded", KIND(LATE), KIND(LATE)},
    {5, "NOT_FOUND", "not-found", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {6, "ALREADY_EXISTS", "already-exists", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {7, "PERMISSION_DENIED", "permission-denied", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {8, "RESOURCE_EXHAUSTED", "resource-exhausted", KIND(REJECTED), KIND(REJECTED)},
    {9, "FAILED_PRECONDITION", "failed-precondition", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {10, "ABORTED", "aborted", KIND(CONFLICT), KIND(RATE_LIMITED)},
    {11, "OUT_OF_RANGE", "out-of-range", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {12, "UNIMPLEMENTED", "unimplemented", KIND(PERMANENT), KIND(RATE_LIMITED)},
    {13, "INTERNAL", "internal", KIND(FAILED), KIND(FAILED)},
    {14, "UNAVAILABLE", "unavailable", KIND(REJECTED), KIND(REJECTED)},
    {15, "DATA_LOSS", "data-loss", KIND(FAILED), KIND(FAILED)},
    {16, "UNAUTHENTICATED", "unauthenticated", KIND(PERMANENT), KIND(RATE_LIMITED)},
};

static struct becalm_outcome grpc(const char *tokens, uint32_t code, const char *pushback)
{
    return classify(
        tokens,
        (struct becalm_http_answer){
            .status = 200, .grpc_status = code, .pushback = text(pushback), .retry_after = text("9"), /* not for gRPC */
        });
}

static void test_grpc__the_status_field_is_a_number_and_nothing_else(void **state)
{
    (void)state;
    check_eq_u64(becalm__grpc_status_read((struct becalm_text){0}), BECALM_GRPC_NONE);
    check_eq_u64(becalm__grpc_status_read(text("")), BECALM_GRPC_UNKNOWN);
    check_eq_u64(becalm__grpc_status_read(text("0")), BECALM_GRPC_OK);
    check_eq_u64(becalm__grpc_status_read(text("14")), BECALM_GRPC_UNAVAILABLE);
    check_eq_u64(becalm__grpc_status_both(BECALM_GRPC_NONE, BECALM_GRPC_NONE), BECALM_GRPC_NONE);
    check_eq_u64(becalm__grpc_status_both(BECALM_GRPC_NONE, BECALM_GRPC_OK), BECALM_GRPC_OK);
    check_eq_u64(becalm__grpc_status_both(BECALM_GRPC_OK, BECALM_GRPC_NONE), BECALM_GRPC_OK);
    check_eq_u64(becalm__grpc_status_both(BECALM_GRPC_ABORTED, BECALM_GRPC_ABORTED), BECALM_GRPC_ABORTED);
    check_eq_u64(becalm__grpc_status_both(BECALM_GRPC_OK, BECALM_GRPC_ABORTED), BECALM_GRPC_UNKNOWN);
    check_eq_u64(becalm__grpc_status_both(BECALM_GRPC_ABORTED, BECALM_GRPC_OK), BECALM_GRPC_UNKNOWN);
    check_eq_u64(becalm__grpc_status_read(text("014")), BECALM_GRPC_UNAVAILABLE);
    const char *const wrong[] = {":", "1:", "17", "99", "-1", "14 ", "x", "18446744073709551616"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        check_eq_u64(becalm__grpc_status_read(text(wrong[i])), BECALM_GRPC_UNKNOWN);
    }
}

static void test_grpc__a_content_type_is_known_by_how_it_begins(void **state)
{
    (void)state;
    check_true(becalm__grpc_is_type(text("application/grpc")));
    check_true(becalm__grpc_is_type(text("Application/gRPC+proto; charset=utf-8")));
    check_true(!becalm__grpc_is_type(text("")));
    check_true(!becalm__grpc_is_type(text("application/grp")));
    check_true(!becalm__grpc_is_type(text("application/grpc-web+proto"))); /* its trailers are in the body */
    check_true(!becalm__grpc_is_type(text("application/grpcs")));
    check_true(becalm__grpc_is_type(text("application/grpc;x=y")));
    check_true(!becalm__grpc_is_type(text("text/plain")));
}

static void test_grpc__ok_is_a_plain_success(void **state)
{
    struct becalm_outcome outcome = grpc(DEFAULTS, 0, "-1");
    (void)state;
    check_eq_u64(outcome.kind, KIND(OK));
    check_eq_u64(outcome.listed, BECALM_LISTED_NO);
    check_eq_u64(outcome.status, 200);
    check_true(!outcome.stop && !outcome.has_hint);
}

static void test_grpc__every_code_has_its_word_and_back(void **state)
{
    (void)state;
    check_eq_u64(COUNT(table), BECALM_GRPC_COUNT);
    for (size_t i = 0; i < COUNT(table); i++) {
        check_eq_u64(table[i].code, i);
        check_eq_str(becalm_grpc_word(table[i].code), table[i].word);
        check_eq_u64((uint64_t)becalm_grpc_code(text(table[i].word)), i);
        check_eq_u64((uint64_t)becalm_grpc_code(text(table[i].token)), i);
    }
    check_eq_str(becalm_grpc_word(17), "unknown code");
    check_eq_str(becalm_grpc_word(BECALM_GRPC_NONE), "unknown code");
    assert_int_equal(becalm_grpc_code(text("unknown code")), -1);
    assert_int_equal(becalm_grpc_code(text("UNAVAILABL")), -1);
    assert_int_equal(becalm_grpc_code(text("UNAVAILABLE ")), -1);
    assert_int_equal(becalm_grpc_code(text("14")), -1);
    assert_int_equal(becalm_grpc_code(text("")), -1);
    assert_int_equal(becalm_grpc_code(text(NULL)), -1);
}

static void test_grpc__each_row_of_the_table_is_as_documented(void **state)
{
    (void)state;
    for (size_t i = 1; i < COUNT(table); i++) {
        struct becalm_outcome bare = grpc("5xx gateway-error retriable-4xx rate-limited", table[i].code, NULL);
        struct becalm_outcome named = grpc(table[i].token, table[i].code, NULL);
        if (!named.safe || bare.safe || bare.kind != table[i].kind || bare.listed != BECALM_LISTED_NO ||
            named.kind != table[i].if_named || named.listed != BECALM_LISTED_YES) {
            fail_msg("%s: %s %d, named %s %d", table[i].word, becalm_outcome_word(bare.kind), (int)bare.listed,
                     becalm_outcome_word(named.kind), (int)named.listed);
        }
        check_true(!bare.has_hint && !bare.stop); /* a Retry-After is not for gRPC */
    }
}

static void test_grpc__by_default_only_unavailable_is_listed(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 20; code++) {
        check_eq_u64(grpc(DEFAULTS, code, NULL).listed, code == 14 ? BECALM_LISTED_YES : BECALM_LISTED_NO);
    }
}

static void test_grpc__a_number_that_is_no_code_is_unknown(void **state)
{
    (void)state;
    check_eq_u64(grpc("unknown", 17, NULL).kind, KIND(FAILED));
    check_eq_u64(grpc("unknown", 17, NULL).listed, BECALM_LISTED_YES);
    check_eq_u64(grpc("unavailable", 99999, NULL).kind, KIND(FAILED));
    check_eq_u64(grpc("unavailable", 99999, NULL).listed, BECALM_LISTED_NO);
}

static void test_grpc__resource_exhausted_is_retried_only_with_pushback_or_by_name(void **state)
{
    (void)state;
    check_eq_u64(grpc(DEFAULTS, 8, NULL).listed, BECALM_LISTED_NO);
    check_eq_u64(grpc(DEFAULTS, 8, "250").listed, BECALM_LISTED_YES);
    check_eq_u64(grpc(DEFAULTS, 8, "250").hint, 250 * BECALM_MS);
    check_eq_u64(grpc(DEFAULTS, 8, "-1").listed, BECALM_LISTED_NO);
    check_eq_u64(grpc("resource-exhausted", 8, NULL).listed, BECALM_LISTED_YES);
    check_eq_u64(grpc(DEFAULTS, 13, "250").listed, BECALM_LISTED_NO); /* no other code is listed by it */
}

static void test_grpc__a_pushback_is_for_all_only_if_the_service_is_unavailable(void **state)
{
    (void)state;
    for (uint32_t code = 1; code < 20; code++) {
        check_eq_u64(grpc(DEFAULTS, code, "250").own_hint, code != 14);
        check_true(!grpc(DEFAULTS, code, NULL).own_hint);
    }
}

static void test_grpc__pushback_is_a_hint_or_a_stop(void **state)
{
    struct becalm_outcome outcome = grpc(DEFAULTS, 14, "0");
    (void)state;
    check_true(outcome.has_hint && !outcome.stop && outcome.hint == 0);
    outcome = grpc(DEFAULTS, 14, "-1");
    check_true(!outcome.has_hint && outcome.stop && outcome.hint == 0);
    outcome = grpc(DEFAULTS, 14, "later");
    check_true(!outcome.has_hint && outcome.stop);
    outcome = grpc(DEFAULTS, 14, "");
    check_true(!outcome.has_hint && outcome.stop);
    outcome = grpc(DEFAULTS, 14, NULL);
    check_true(!outcome.has_hint && !outcome.stop);
}

static void test_grpc__an_error_status_with_grpc_ok_is_an_error(void **state)
{
    struct becalm_http_answer answer = {.status = 503}; /* a host that forgot BECALM_GRPC_NONE */
    (void)state;
    check_eq_u64(classify(DEFAULTS, answer).kind, KIND(REJECTED));
    answer.grpc_status = 5; /* but a real code is believed */
    check_eq_u64(classify(DEFAULTS, answer).kind, KIND(PERMANENT));
}

static void test_grpc__each_reason_has_its_status(void **state)
{
    static const struct {
        enum becalm_reason reason;
        uint32_t code;
    } rows[] = {
        {BECALM_WHY_OK, 0},
        {BECALM_WHY_CANCELLED, 1},
        {BECALM_WHY_DEADLINE, 4},
        {BECALM_WHY_THROTTLED, 8},
        {BECALM_WHY_LIMIT, 8},
        {BECALM_WHY_ANSWERS, 8},
        {BECALM_WHY_NO_CONNECTION, 8},
        {BECALM_WHY_RATE, 8},
        {BECALM_WHY_SHED, 14},
        {BECALM_WHY_ATTEMPTS_SPENT, 14},
        {BECALM_WHY_BUDGET_EMPTY, 14},
        {BECALM_WHY_BREAKER_OPEN, 14},
        {BECALM_WHY_PROBE_FAILED, 14},
        {BECALM_WHY_NOT_IDEMPOTENT, 14},
        {BECALM_WHY_NOT_REPLAYABLE, 14},
        {BECALM_WHY_NOT_LISTED, 14},
        {BECALM_WHY_PERMANENT, 14},
        {BECALM_WHY_ANSWER_DELIVERED, 14},
        {BECALM_WHY_STOPPED, 14},
        {BECALM_WHY_RETRIES_OFF, 14},
        {BECALM_WHY_NO_HOST, 14},
        {BECALM_WHY_NONE, 13},
        {BECALM_WHY_BACKOFF, 13},
        {BECALM_WHY_HINT, 13},
        {BECALM_WHY_HEDGE, 13},
        {BECALM_WHY_QUEUED, 13},
    };
    (void)state;
    check_eq_u64(COUNT(rows), BECALM_REASON_COUNT);
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_eq_u64(becalm_grpc_status_for(rows[i].reason), rows[i].code);
    }
}

BECALM_TESTS(cmocka_unit_test(test_grpc__the_status_field_is_a_number_and_nothing_else),
             cmocka_unit_test(test_grpc__a_content_type_is_known_by_how_it_begins),
             cmocka_unit_test(test_grpc__ok_is_a_plain_success),
             cmocka_unit_test(test_grpc__every_code_has_its_word_and_back),
             cmocka_unit_test(test_grpc__each_row_of_the_table_is_as_documented),
             cmocka_unit_test(test_grpc__by_default_only_unavailable_is_listed),
             cmocka_unit_test(test_grpc__a_number_that_is_no_code_is_unknown),
             cmocka_unit_test(test_grpc__resource_exhausted_is_retried_only_with_pushback_or_by_name),
             cmocka_unit_test(test_grpc__a_pushback_is_for_all_only_if_the_service_is_unavailable),
             cmocka_unit_test(test_grpc__pushback_is_a_hint_or_a_stop),
             cmocka_unit_test(test_grpc__an_error_status_with_grpc_ok_is_an_error),
             cmocka_unit_test(test_grpc__each_reason_has_its_status))
