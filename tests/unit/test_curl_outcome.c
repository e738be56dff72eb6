/* SPDX-License-Identifier: MIT */
#include "curl/outcome.h"

#include "check.h"

/* The outcome of a handle that has sent and received no bytes. tests/curl has the other cases. */
static enum becalm_outcome_kind unsent(CURLcode code)
{
    struct becalm_retry_on retry_on;
    struct seen seen;
    CURL *easy = curl_easy_init();
    becalm_retry_on_defaults(&retry_on);
    outcome_of_failure(easy, code, &(struct asked){.retry_on = &retry_on}, &seen);
    curl_easy_cleanup(easy);
    return seen.outcome.kind;
}

static void test_outcome__what_was_never_sent_is_refused(void **state)
{
    (void)state;
    check_eq_u64(unsent(CURLE_COULDNT_RESOLVE_HOST), BECALM_OUTCOME_REFUSED);
    check_eq_u64(unsent(CURLE_COULDNT_CONNECT), BECALM_OUTCOME_REFUSED);
    check_eq_u64(unsent(CURLE_SEND_ERROR), BECALM_OUTCOME_REFUSED);
    check_eq_u64(unsent(CURLE_RECV_ERROR), BECALM_OUTCOME_REFUSED);
    check_eq_u64(unsent(CURLE_HTTP2), BECALM_OUTCOME_REFUSED);
    check_eq_u64(unsent(CURLE_OPERATION_TIMEDOUT), BECALM_OUTCOME_REFUSED); /* before there was a connection */
}

static void test_outcome__tls_that_failed_is_tls(void **state)
{
    (void)state;
    check_eq_u64(unsent(CURLE_SSL_CONNECT_ERROR), BECALM_OUTCOME_TLS);
    check_eq_u64(unsent(CURLE_PEER_FAILED_VERIFICATION), BECALM_OUTCOME_TLS);
}

static void test_outcome__what_came_and_was_wrong_is_broken(void **state)
{
    (void)state;
    check_eq_u64(unsent(CURLE_PARTIAL_FILE), BECALM_OUTCOME_BROKEN);
    check_eq_u64(unsent(CURLE_WEIRD_SERVER_REPLY), BECALM_OUTCOME_BROKEN);
    check_eq_u64(unsent(CURLE_BAD_CONTENT_ENCODING), BECALM_OUTCOME_BROKEN);
}

static void test_outcome__what_the_caller_did_is_nobody_s_failure(void **state)
{
    (void)state;
    check_eq_u64(unsent(CURLE_WRITE_ERROR), BECALM_OUTCOME_CANCELLED);
    check_eq_u64(unsent(CURLE_URL_MALFORMAT), BECALM_OUTCOME_CANCELLED);
    check_eq_u64(unsent(CURLE_UNSUPPORTED_PROTOCOL), BECALM_OUTCOME_CANCELLED);
    check_eq_u64(unsent(CURLE_OUT_OF_MEMORY), BECALM_OUTCOME_CANCELLED);
}

BECALM_TESTS(cmocka_unit_test(test_outcome__what_was_never_sent_is_refused),
             cmocka_unit_test(test_outcome__tls_that_failed_is_tls),
             cmocka_unit_test(test_outcome__what_came_and_was_wrong_is_broken),
             cmocka_unit_test(test_outcome__what_the_caller_did_is_nobody_s_failure))
