/* SPDX-License-Identifier: MIT */
#include "curl/client.h"

#include "check.h"

#include <becalm/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No process listens there: an attempt ends at once. */
#define NOBODY "http://127.0.0.1:1/"

static struct becalm_client *parse(const char *text)
{
    struct becalm_client *client = becalm_client_parse(text, strlen(text), NULL, NULL);
    assert_non_null(client);
    return client;
}

static void test_client__a_file_that_is_wrong_or_absent_says_so(void **state)
{
    (void)state;
    static struct becalm_diags diags;
    assert_null(becalm_client_load("/nonexistent/becalm.yaml", NULL, &diags));
    check_true(diags.errors > 0);
    assert_null(becalm_client_load("/nonexistent/becalm.yaml", NULL, NULL));
    memset(&diags, 0, sizeof diags);
    assert_null(becalm_client_parse("services: 3", 11, NULL, &diags));
    check_true(diags.errors > 0);
    becalm_client_free(NULL);
}

/* A program that goes on with a NULL client gets an error from every call, and does not crash. */
static void test_client__where_there_is_none_libcurl_does_its_part(void **state)
{
    (void)state;
    struct becalm_record record;
    CURL *easy = curl_easy_init();
    char *url = NULL;
    check_eq_u64(becalm_curl_setopt(easy, NULL, CURLOPT_URL, NOBODY), CURLE_OK);
    check_eq_u64(becalm_curl_setopt(easy, NULL, CURLOPT_NOBODY, 1L), CURLE_OK);
    check_eq_u64(becalm_curl_setopt(easy, NULL, CURLOPT_WRITEFUNCTION, NULL), CURLE_OK);
    check_eq_u64(becalm_curl_setopt(easy, NULL, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)1), CURLE_OK);
    check_eq_u64(curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url), CURLE_OK);
    assert_string_equal(url, NOBODY);
    check_eq_u64(becalm_curl_idempotency_key(easy, NULL), CURLE_BAD_FUNCTION_ARGUMENT);
    check_eq_u64(becalm_curl_operation(easy, NULL, "pay"), CURLE_BAD_FUNCTION_ARGUMENT);
    check_eq_u64(becalm_curl_deadline(easy, NULL, 1), CURLE_BAD_FUNCTION_ARGUMENT);
    check_eq_u64(becalm_curl_perform(easy, NULL), CURLE_BAD_FUNCTION_ARGUMENT);
    check_true(!becalm_curl_record(easy, NULL, &record));
    check_true(!becalm_curl_cancel(easy, NULL));
    check_eq_u64(becalm_curl_pause(easy, NULL, CURLPAUSE_CONT), CURLE_BAD_FUNCTION_ARGUMENT); /* as libcurl says */
    assert_null(becalm_client_metrics(NULL));
    assert_null(becalm_client_target(NULL, "s", NULL));
    becalm_curl_reset(easy, NULL);
    becalm_curl_cleanup(easy, NULL);
}

static void test_client__where_there_is_no_multi_a_loop_ends(void **state)
{
    (void)state;
    CURLM *curl = curl_multi_init();
    CURL *easy = curl_easy_init();
    int running = 1;
    int left = 1;
    long ms;
    assert_null(becalm_curl_multi_new(curl, NULL));
    assert_int_equal(becalm_curl_multi_setopt(NULL, CURLMOPT_MAXCONNECTS, 1L), CURLM_BAD_HANDLE);
    assert_int_equal(becalm_curl_multi_add_handle(NULL, easy), CURLM_BAD_HANDLE);
    while (running > 0) {
        assert_int_equal(becalm_curl_multi_perform(NULL, &running), CURLM_BAD_HANDLE);
        assert_int_equal(becalm_curl_multi_poll(NULL, NULL, 0, 1000, NULL), CURLM_BAD_HANDLE);
    }
    running = 1;
    assert_int_equal(becalm_curl_multi_socket_action(NULL, CURL_SOCKET_TIMEOUT, 0, &running), CURLM_BAD_HANDLE);
    check_eq_u64((uint64_t)running, 0);
    assert_int_equal(becalm_curl_multi_timeout(NULL, &ms), CURLM_BAD_HANDLE);
    assert_null(becalm_curl_multi_info_read(NULL, &left));
    check_eq_u64((uint64_t)left, 0);
    assert_null(becalm_curl_multi_record(NULL, easy));
    assert_null(becalm_curl_multi_answered(NULL, easy));
    assert_int_equal(becalm_curl_multi_remove_handle(NULL, easy), CURLM_BAD_HANDLE);
    becalm_curl_multi_free(NULL);
    curl_easy_cleanup(easy);
    (void)curl_multi_cleanup(curl);
}

static void test_client__no_text_and_no_name_are_errors(void **state)
{
    (void)state;
    static struct becalm_diags diags;
    struct becalm_complaint complaint;
    assert_null(becalm_client_parse(NULL, 7, NULL, &diags));
    check_eq_str(diags.diag[0].code, "empty");
    memset(&diags, 0, sizeof diags);
    assert_null(becalm_client_load(NULL, NULL, &diags));
    check_true(diags.errors > 0);
    assert_null(becalm_client_new(NULL, NULL, NULL, &complaint));
    check_eq_str(complaint.part, "service");
    assert_null(becalm_client_new(NULL, NULL, NULL, NULL));
    struct becalm_client *client = becalm_client_new("s", NULL, NULL, NULL);
    assert_null(becalm_client_target(client, NULL, NULL));
    becalm_client_free(client);
}

static void test_client__a_policy_that_is_wrong_is_named(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_complaint complaint;
    becalm_policy_defaults(&policy);
    policy.attempt_timeout = 0;
    assert_null(becalm_client_new("x", &policy, NULL, &complaint));
    assert_non_null(strstr(complaint.sentence, "attempt_timeout"));
    becalm_policy_defaults(&policy);
    policy.lease.enabled = true;
    assert_null(becalm_client_new("x", &policy, NULL, &complaint));
    check_eq_str(complaint.part, "lease");
    static const char shared[] = "store: {redis: \"redis://s\", passwordEnv: BECALM_TEST_UNSET}\n"
                                 "services: {s: {budget: {shared: {percent: 5}}}}\n";
    static struct becalm_diags diags;
    assert_null(becalm_client_parse(shared, strlen(shared), NULL, &diags));
    check_eq_str(diags.diag[0].code, "store");
}

static const struct client_target *find(struct becalm_client *client, const char *url, const char *method)
{
    return client_find(client, (struct becalm_text){url, strlen(url)}, (struct becalm_text){method, strlen(method)},
                       NULL);
}

static void test_client__services_are_found_by_host_port_and_path(void **state)
{
    (void)state;
    struct becalm_client *client = parse("services:\n"
                                         "  pay: {match: {host: pay.local, prefix: /pay},"
                                         " endpoints: {post: {match: {method: POST}}}}\n"
                                         "  tls: {match: {host: \"tls.local:443\"}}\n");
    check_eq_str(find(client, "http://pay.local/pay/1", "GET")->service, "pay");
    check_eq_str(find(client, "https://PAY.local:99/pay", "POST")->endpoint, "post");
    check_eq_str(find(client, "https://tls.local/x", "GET")->service, "tls");
    check_eq_str(find(client, "http://tls.local:443", "GET")->service, "tls");
    const struct client_target *nobody = find(client, "http://pay.local/other", "GET");
    check_eq_u64(nobody->policy.max_retries, 0);
    assert_ptr_equal(find(client, "http://tls.local/", "GET"), nobody);
    assert_ptr_equal(find(client, "ftp://pay.local/pay", "GET"), nobody);
    assert_ptr_equal(find(client, "http://pay.local/pay/../x", "GET"), nobody);
    assert_non_null(becalm_client_target(client, "pay", "post"));
    assert_null(becalm_client_target(client, "pay", "get"));
    assert_null(becalm_client_target(client, "unrouted", NULL));
    becalm_client_free(client);
}

static void test_client__it_is_a_caller_whatever_the_file_s_role(void **state)
{
    (void)state;
    struct becalm_client *client = parse("role: gateway\ngatewayRetries: false\nservices: {s: {maxRetries: 2}}");
    const struct client_target *target = find(client, "http://s/", "GET");
    check_eq_u64(target->policy.max_retries, 2);
    check_eq_u64(target->policy.limit.kind, BECALM_LIMIT_AIMD);
    becalm_client_free(client);
}

static void test_client__operations_are_labels_and_there_are_not_too_many(void **state)
{
    (void)state;
    struct becalm_client *client = parse("services: {s: {match: {prefix: /}, maxRetries: 0}}");
    CURL *easy = curl_easy_init();
    char name[16];
    (void)curl_easy_setopt(easy, CURLOPT_URL, NOBODY);
    for (int i = 0; i < (int)BECALM_OPERATIONS_MAX + 5; i++) {
        (void)snprintf(name, sizeof name, "op-%d", i);
        check_true(becalm_curl_operation(easy, client, name) == CURLE_OK);
        check_true(becalm_curl_perform(easy, client) == CURLE_COULDNT_CONNECT);
    }
    char *page = becalm_client_metrics(client);
    assert_non_null(strstr(page, "becalm_arrivals_total{service=\"s\",endpoint=\"default\"} 5\n"));
    assert_non_null(strstr(page, "becalm_arrivals_total{service=\"s\",endpoint=\"default\",operation=\"op-0\"} 1\n"));
    assert_non_null(strstr(page, "operation=\"op-63\""));
    assert_null(strstr(page, "operation=\"op-64\""));
    const char *state_line = strstr(page, "\ncircuit_breaker_state{");
    assert_non_null(state_line);
    assert_null(strstr(state_line + 1, "\ncircuit_breaker_state{")); /* one breaker, however many operations */
    free(page);
    becalm_curl_cleanup(easy, client);
    becalm_client_free(client);
}

/* One such byte, and Prometheus drops the whole page. */
static void test_client__names_that_are_no_utf8_are_made_readable(void **state)
{
    (void)state;
    struct becalm_client *client = becalm_client_new("s\xff", NULL, NULL, NULL);
    CURL *easy = curl_easy_init();
    (void)curl_easy_setopt(easy, CURLOPT_URL, NOBODY);
    for (int i = 0; i < 2; i++) { /* the second time it is the same one */
        check_true(becalm_curl_operation(easy, client, "gr\xc3\xbc\xc3 \xe2\x82") == CURLE_OK);
        (void)becalm_curl_perform(easy, client);
    }
    check_eq_u64(client->operation_count, 1);
    char *page = becalm_client_metrics(client);
    assert_non_null(strstr(page, "becalm_arrivals_total{service=\"s\xef\xbf\xbd\",endpoint=\"default\","
                                 "operation=\"gr\xc3\xbc\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\"} 2\n"));
    free(page);
    becalm_curl_cleanup(easy, client);
    becalm_client_free(client);
}

static void test_client__bad_arguments_are_refused(void **state)
{
    (void)state;
    struct becalm_client *client = parse("services: {s: {match: {prefix: /}}}");
    struct becalm_record record;
    CURL *easy = curl_easy_init();
    CURLM *multi = curl_multi_init();
    check_true(becalm_curl_perform(NULL, client) == CURLE_BAD_FUNCTION_ARGUMENT);
    check_true(becalm_curl_perform(easy, NULL) == CURLE_BAD_FUNCTION_ARGUMENT);
    check_true(!becalm_curl_record(easy, client, &record) && !becalm_curl_cancel(easy, client));
    check_true(becalm_curl_perform(easy, client) == CURLE_URL_MALFORMAT); /* without a URL, as libcurl says */
    check_true(becalm_curl_record(easy, client, &record));
    check_eq_u64(record.reason, BECALM_WHY_CANCELLED);
    check_true(curl_multi_add_handle(multi, easy) == CURLM_OK);
    check_true(becalm_curl_perform(easy, client) == CURLE_FAILED_INIT); /* it is in use elsewhere */
    check_true(curl_multi_remove_handle(multi, easy) == CURLM_OK);
    check_true(curl_multi_cleanup(multi) == CURLM_OK);
    becalm_curl_cleanup(easy, client);
    becalm_client_free(client);
}

/* libcurl reads CURLOPT_RESOLVE once, into a cache of the multi handle. */
static void test_client__a_plain_handle_that_comes_back_has_lost_nothing(void **state)
{
    (void)state;
    struct becalm_client *client = parse("services: {s: {match: {prefix: /}, maxRetries: 0}}");
    struct curl_slist *address = curl_slist_append(NULL, "a.test:1:127.0.0.1");
    struct becalm_record record;
    CURL *easy[2 * HANDLES_PLAIN_KEPT];
    client->handles.plain_max = HANDLES_PLAIN_MOST; /* with any limit of this machine */
    for (size_t i = 0; i < sizeof easy / sizeof easy[0]; i++) {
        easy[i] = curl_easy_init();
        (void)curl_easy_setopt(easy[i], CURLOPT_URL, "http://a.test:1/");
        (void)curl_easy_setopt(easy[i], CURLOPT_RESOLVE, address);
        check_true(becalm_curl_perform(easy[i], client) == CURLE_COULDNT_CONNECT);
    }
    check_true(becalm_curl_record(easy[0], client, &record));
    check_true(becalm_curl_perform(easy[0], client) == CURLE_COULDNT_CONNECT);
    for (size_t i = 0; i < sizeof easy / sizeof easy[0]; i++) {
        curl_easy_cleanup(easy[i]);
    }
    becalm_client_free(client);
    curl_slist_free_all(address);
}

static CURLMsg *run_until_message(struct becalm_curl_multi *multi)
{
    CURLMsg *message = NULL;
    int running = 1;
    int left;
    for (int i = 0; i < 1000 && message == NULL; i++) {
        check_true(becalm_curl_multi_perform(multi, &running) == CURLM_OK);
        message = becalm_curl_multi_info_read(multi, &left);
        if (message == NULL) {
            check_true(becalm_curl_multi_poll(multi, NULL, 0, 100, NULL) == CURLM_OK);
        }
    }
    assert_non_null(message);
    return message;
}

static void test_client__a_multi_handle_may_have_others_too(void **state)
{
    (void)state;
    struct becalm_client *client =
        parse("services: {s: {match: {prefix: /}, maxRetries: 0, restart: {enabled: false}}}");
    CURLM *curl = curl_multi_init();
    struct becalm_curl_multi *multi = becalm_curl_multi_new(curl, client);
    CURL *ours = curl_easy_init();
    CURL *other = curl_easy_init();
    (void)curl_easy_setopt(ours, CURLOPT_URL, NOBODY);
    (void)curl_easy_setopt(other, CURLOPT_URL, NOBODY);
    check_true(curl_multi_add_handle(curl, other) == CURLM_OK);
    CURLMsg *message = run_until_message(multi);
    assert_ptr_equal(message->easy_handle, other);
    check_true(message->data.result == CURLE_COULDNT_CONNECT);
    check_true(becalm_curl_multi_remove_handle(multi, other) == CURLM_BAD_EASY_HANDLE);
    check_true(becalm_curl_multi_add_handle(multi, ours) == CURLM_OK);
    check_true(becalm_curl_multi_add_handle(multi, ours) == CURLM_ADDED_ALREADY);
    message = run_until_message(multi);
    assert_ptr_equal(message->easy_handle, ours);
    check_eq_u64(becalm_curl_multi_record(multi, ours)->attempts, 1);
    assert_ptr_equal(becalm_curl_multi_answered(multi, ours), ours);
    check_true(becalm_curl_multi_remove_handle(multi, ours) == CURLM_OK);
    assert_null(becalm_curl_multi_record(multi, ours));
    (void)curl_multi_remove_handle(curl, other);
    becalm_curl_multi_free(multi);
    (void)curl_multi_cleanup(curl);
    curl_easy_cleanup(ours);
    curl_easy_cleanup(other);
    becalm_client_free(client);
}

static void test_client__who_is_removed_is_cancelled_and_heard_of_no_more(void **state)
{
    (void)state;
    struct becalm_client *client = parse("services: {s: {match: {prefix: /}, budget: {kind: none}, initialDelay: 60s,"
                                         " maxDelay: 60s, deadline: 200s, jitter: none, restart: {enabled: false}}}");
    CURLM *curl = curl_multi_init();
    struct becalm_curl_multi *multi = becalm_curl_multi_new(curl, client);
    CURL *easy = curl_easy_init();
    int running = 0;
    int left;
    long ms = 0;
    (void)curl_easy_setopt(easy, CURLOPT_URL, NOBODY);
    check_true(becalm_curl_multi_add_handle(multi, easy) == CURLM_OK);
    for (int i = 0; i < 1000 && becalm_curl_multi_record(multi, easy)->attempt[0].open; i++) {
        check_true(becalm_curl_multi_perform(multi, &running) == CURLM_OK);
        (void)curl_multi_poll(curl, NULL, 0, 10, NULL);
    }
    check_true(running == 1); /* it waits to retry */
    check_true(becalm_curl_multi_timeout(multi, &ms) == CURLM_OK);
    check_true(ms > 50000 && ms <= 60000);
    check_true(becalm_curl_multi_remove_handle(multi, easy) == CURLM_OK);
    check_true(becalm_curl_multi_perform(multi, &running) == CURLM_OK);
    check_true(running == 0);
    assert_null(becalm_curl_multi_info_read(multi, &left));
    char *page = becalm_client_metrics(client);
    assert_non_null(strstr(page, "result=\"failed\",reason=\"cancelled\"} 1\n"));
    free(page);
    becalm_curl_multi_free(multi);
    (void)curl_multi_cleanup(curl);
    curl_easy_cleanup(easy);
    becalm_client_free(client);
}

static void test_client__who_has_ended_can_t_be_cancelled(void **state)
{
    (void)state;
    struct becalm_client *client = parse("services: {s: {match: {prefix: /}, maxRetries: 0}}");
    CURLM *curl = curl_multi_init();
    struct becalm_curl_multi *multi = becalm_curl_multi_new(curl, client);
    CURL *easy = curl_easy_init();
    (void)curl_easy_setopt(easy, CURLOPT_URL, NOBODY);
    for (int i = 0; i < 2; i++) { /* the second time it is in another call */
        check_true(!becalm_curl_cancel(easy, client));
        check_true(becalm_curl_multi_add_handle(multi, easy) == CURLM_OK);
        check_true(becalm_curl_cancel(easy, client));
        check_true(run_until_message(multi)->data.result != CURLE_OK);
        check_true(!becalm_curl_cancel(easy, client));
        check_true(becalm_curl_multi_remove_handle(multi, easy) == CURLM_OK);
    }
    becalm_curl_multi_free(multi);
    (void)curl_multi_cleanup(curl);
    curl_easy_cleanup(easy);
    becalm_client_free(client);
}

BECALM_TESTS(cmocka_unit_test(test_client__a_file_that_is_wrong_or_absent_says_so),
             cmocka_unit_test(test_client__where_there_is_none_libcurl_does_its_part),
             cmocka_unit_test(test_client__where_there_is_no_multi_a_loop_ends),
             cmocka_unit_test(test_client__no_text_and_no_name_are_errors),
             cmocka_unit_test(test_client__a_policy_that_is_wrong_is_named),
             cmocka_unit_test(test_client__services_are_found_by_host_port_and_path),
             cmocka_unit_test(test_client__it_is_a_caller_whatever_the_file_s_role),
             cmocka_unit_test(test_client__operations_are_labels_and_there_are_not_too_many),
             cmocka_unit_test(test_client__names_that_are_no_utf8_are_made_readable),
             cmocka_unit_test(test_client__bad_arguments_are_refused),
             cmocka_unit_test(test_client__a_plain_handle_that_comes_back_has_lost_nothing),
             cmocka_unit_test(test_client__a_multi_handle_may_have_others_too),
             cmocka_unit_test(test_client__who_is_removed_is_cancelled_and_heard_of_no_more),
             cmocka_unit_test(test_client__who_has_ended_can_t_be_cancelled))
