/* SPDX-License-Identifier: MIT */
#include "curl/handle.h"

#include "check.h"

#include <becalm/curl.h>

#include <stdatomic.h>
#include <stdio.h>

/* Addresses of handles that are never touched. */
static CURL *easy(size_t number)
{
    return (CURL *)(uintptr_t)(4096 + 16 * number);
}

static void test_handle__nobody_is_known_at_first(void **state)
{
    (void)state;
    struct handles handles = {0};
    assert_null(handles_find(&handles, easy(0)));
    handles_free(&handles);
}

static void test_handle__each_of_a_thousand_is_found_and_forgotten(void **state)
{
    (void)state;
    struct handles handles = {0};
    for (size_t i = 0; i < 1000; i++) {
        struct handle *handle = handles_add(&handles, easy(i), 0);
        assert_non_null(handle);
        handle->recorded = true;
        handle->deadline_at = i;
    }
    for (size_t i = 0; i < 1000; i += 3) {
        handles_forget(&handles, handles_find(&handles, easy(i)));
    }
    for (size_t i = 0; i < 1000; i++) {
        struct handle *handle = handles_find(&handles, easy(i));
        check_true((handle == NULL) == (i % 3 == 0));
        check_true(handle == NULL || handle->deadline_at == i);
    }
    handles_free(&handles);
}

#define NOW (BECALM_S * 1000)

/* A plain one that was in a call at this time. */
static struct handle *plain_called(struct handles *handles, size_t number, becalm_ns at)
{
    struct handle *handle = handles_add(handles, easy(number), NOW);
    assert_non_null(handle);
    handle->called_at = at;
    handles_use(handles, handle);
    return handle;
}

static void test_handle__a_quarter_of_the_descriptors_is_for_plain_ones(void **state)
{
    (void)state;
    check_eq_u64(handles_plain_max(0), HANDLES_PLAIN_KEPT);
    check_eq_u64(handles_plain_max(1024), 85);
    check_eq_u64(handles_plain_max(UINT64_MAX), HANDLES_PLAIN_MOST);
}

static void test_handle__plain_ones_that_are_used_by_turns_are_all_kept(void **state)
{
    (void)state;
    struct handles handles = {.plain_max = 85};
    for (size_t i = 0; i < 85; i++) {
        (void)plain_called(&handles, i, NOW - 59 * BECALM_S);
    }
    for (size_t i = 0; i < 85; i++) {
        assert_non_null(handles_find(&handles, easy(i)));
    }
    (void)plain_called(&handles, 85, NOW);
    assert_null(handles_find(&handles, easy(0)));
    check_eq_u64(handles.by_address.count, 85);
    handles_free(&handles);
}

static void test_handle__plain_ones_make_room_the_longest_idle_first(void **state)
{
    (void)state;
    struct handles handles = {.plain_max = 85};
    for (size_t i = 0; i < HANDLES_PLAIN_KEPT; i++) {
        (void)plain_called(&handles, i, NOW - 60 * BECALM_S);
    }
    struct handle *used = handles_find(&handles, easy(0));
    handles_use(&handles, used); /* so 1 is the oldest */
    struct handle *second = handles_find(&handles, easy(1));
    assert_ptr_equal(plain_called(&handles, 5000, NOW), second);
    assert_null(handles_find(&handles, easy(1)));
    assert_ptr_equal(handles_find(&handles, easy(0)), used);
    check_eq_u64(handles.by_address.count, HANDLES_PLAIN_KEPT);
    handles_free(&handles);
}

static void test_handle__a_crowd_of_plain_ones_that_is_gone_is_forgotten(void **state)
{
    (void)state;
    struct handles handles = {.plain_max = 200};
    for (size_t i = 0; i < 200; i++) {
        (void)plain_called(&handles, i, NOW - 30 * BECALM_S);
    }
    for (size_t i = 0; i < 200; i++) {
        handles_find(&handles, easy(i))->called_at = NOW - 60 * BECALM_S;
    }
    for (size_t i = 1000; i < 1000 + 200; i++) {
        (void)plain_called(&handles, i, NOW - 60 * BECALM_S);
    }
    check_eq_u64(handles.by_address.count, HANDLES_PLAIN_KEPT);
    handles_free(&handles);
}

static void test_handle__who_is_in_a_call_is_never_forgotten_by_itself(void **state)
{
    (void)state;
    struct handles handles = {.plain_max = HANDLES_PLAIN_KEPT};
    struct handle *busy = plain_called(&handles, 0, 0);
    atomic_store_explicit(&busy->busy, true, memory_order_relaxed);
    for (size_t i = 1; i < 2 * HANDLES_PLAIN_KEPT; i++) {
        (void)plain_called(&handles, i, NOW);
    }
    assert_ptr_equal(handles_find(&handles, easy(0)), busy);
    check_eq_u64(handles.by_address.count, HANDLES_PLAIN_KEPT);
    handles_free(&handles);
}

static void test_handle__who_is_recorded_is_never_forgotten_by_itself(void **state)
{
    (void)state;
    struct handles handles = {.plain_max = HANDLES_PLAIN_KEPT};
    struct handle *recorded = handles_add(&handles, easy(9999), NOW);
    handles_keep(&handles, recorded);
    handles_use(&handles, recorded);
    for (size_t i = 0; i < 2 * HANDLES_PLAIN_KEPT; i++) {
        (void)plain_called(&handles, i, 0);
    }
    assert_ptr_equal(handles_find(&handles, easy(9999)), recorded);
    handles_free(&handles);
}

static void record_number(struct handle *handle, CURLoption option, long value)
{
    check_true(handle_record(handle, option, &value));
}

static void record_pointer(struct handle *handle, CURLoption option, const void *value)
{
    check_true(handle_record(handle, option, &value));
}

static void test_handle__the_method_is_what_the_latest_option_says(void **state)
{
    (void)state;
    struct handles handles = {0};
    struct handle *handle = handles_add(&handles, easy(0), 0);
    assert_null(handle->option.method);
    record_number(handle, CURLOPT_POST, 1);
    check_eq_str(handle->option.method, "POST");
    check_eq_u64(handle->option.body, BODY_CALLBACK);
    record_pointer(handle, CURLOPT_POSTFIELDS, "a=1");
    check_eq_u64(handle->option.body, BODY_MEMORY);
    record_number(handle, CURLOPT_UPLOAD, 1);
    check_eq_str(handle->option.method, "PUT");
    record_number(handle, CURLOPT_HTTPGET, 1);
    check_eq_str(handle->option.method, "GET");
    check_eq_u64(handle->option.body, BODY_NONE);
    record_number(handle, CURLOPT_NOBODY, 1);
    check_eq_str(handle->option.method, "HEAD");
    record_pointer(handle, CURLOPT_CUSTOMREQUEST, "PATCH");
    check_eq_str(handle->option.custom, "PATCH");
    record_pointer(handle, CURLOPT_CUSTOMREQUEST, NULL);
    assert_null(handle->option.custom);
    handles_free(&handles);
}

/* The behaviour of libcurl itself after these options, in this order: tests/curl checks it. */
static void test_handle__options_that_unset_a_method_leave_the_others_alone(void **state)
{
    (void)state;
    struct handles handles = {0};
    struct handle *handle = handles_add(&handles, easy(0), 0);
    record_number(handle, CURLOPT_NOBODY, 0);
    assert_null(handle->option.method);
    record_pointer(handle, CURLOPT_POSTFIELDS, "pay");
    record_number(handle, CURLOPT_NOBODY, 0);
    check_eq_str(handle->option.method, "POST");
    check_eq_u64(handle->option.body, BODY_MEMORY);
    record_number(handle, CURLOPT_NOBODY, 1);
    record_number(handle, CURLOPT_NOBODY, 0);
    check_eq_str(handle->option.method, "GET");
    record_number(handle, CURLOPT_POST, 1); /* the fields are still there */
    check_eq_u64(handle->option.body, BODY_MEMORY);
    record_number(handle, CURLOPT_HTTPGET, 1);
    record_pointer(handle, CURLOPT_COPYPOSTFIELDS, NULL);
    check_eq_str(handle->option.method, "POST");
    check_eq_u64(handle->option.body, BODY_CALLBACK);
    record_pointer(handle, CURLOPT_MIMEPOST, NULL);
    check_eq_str(handle->option.method, "POST");
    check_eq_u64(handle->option.body, BODY_FORM);
    handles_free(&handles);
}

static void test_handle__only_what_was_recorded_is_known(void **state)
{
    (void)state;
    struct handles handles = {0};
    struct handle *handle = handles_add(&handles, easy(0), 0);
    record_pointer(handle, CURLOPT_URL, "http://a.example/");
    record_number(handle, CURLOPT_VERBOSE, 0);
    check_eq_u64(handle->option.recorded, 0);
    record_pointer(handle, CURLOPT_WRITEDATA, stdout);
    check_eq_u64(handle->option.recorded, RECORDED_WRITE_DATA);
    check_true(!handle_recorded(&handle->option, RECORDED_ALL_WRITE)); /* whose data? */
    record_pointer(handle, CURLOPT_HTTPHEADER, NULL);                  /* none is something to be recorded, too */
    check_eq_u64(handle->option.recorded, RECORDED_WRITE_DATA | RECORDED_HEADERS);
    record_number(handle, CURLOPT_CONNECTTIMEOUT, 0);
    check_eq_u64(handle->option.recorded, RECORDED_WRITE_DATA | RECORDED_HEADERS | RECORDED_CONNECT);
    check_true(!handle->option.connect_timeout);
    handles_free(&handles);
}

static size_t take(char *at, size_t size, size_t count, void *data)
{
    (void)at, (void)data;
    return size * count;
}

static void test_handle__values_are_found_where_they_are_looked_for(void **state)
{
    (void)state;
    struct handles handles = {0};
    struct handle *handle = handles_add(&handles, easy(0), 0);
    curl_write_callback function = take;
    int data;
    check_true(handle_record(handle, CURLOPT_HEADERFUNCTION, &function));
    record_pointer(handle, CURLOPT_HEADERDATA, &data);
    record_number(handle, CURLOPT_MAXCONNECTS, 7);
    record_number(handle, CURLOPT_NOPROGRESS, 0);
    check_true(handle->option.header == take && handle->option.header_data == &data);
    check_true(handle_recorded(&handle->option, RECORDED_ALL_HEADER));
    check_true(handle->option.connections == 7 && handle->option.progresses);
    handles_free(&handles);
}

/* Their names in libcurl's header warn. */
static void test_handle__options_that_are_deprecated_count_too(void **state)
{
    (void)state;
    struct handles handles = {0};
    struct handle *handle = handles_add(&handles, easy(0), 0);
    record_number(handle, curl_easy_option_by_name("PUT")->id, 1);
    check_eq_str(handle->option.method, "PUT");
    record_pointer(handle, curl_easy_option_by_name("HTTPPOST")->id, NULL);
    check_eq_str(handle->option.method, "POST");
    check_eq_u64(handle->option.body, BODY_FORM);
    handles_free(&handles);
}

static void test_handle__who_was_reset_is_plain_and_keeps_its_connections(void **state)
{
    (void)state;
    struct handles handles = {.plain_max = HANDLES_PLAIN_KEPT};
    struct handle *reset = handles_add(&handles, easy(0), NOW);
    handles_keep(&handles, reset);
    handles_reset(&handles, reset); /* it was in no call, and so there is nothing to keep */
    assert_null(handles_find(&handles, easy(0)));

    reset = handles_add(&handles, easy(0), NOW);
    CURLM *own = curl_multi_init();
    reset->own = own;
    reset->multi = becalm_curl_multi_new(own, (struct becalm_client *)&handles); /* any that is not NULL */
    handles_keep(&handles, reset);
    record_pointer(reset, CURLOPT_URL, "http://a.example/");
    record_pointer(reset, CURLOPT_HTTPHEADER, NULL);
    reset->keyed = true;
    reset->operation = "pay";
    reset->deadline_at = NOW;
    reset->called_at = NOW;
    handles_reset(&handles, reset);
    assert_ptr_equal(handles_find(&handles, easy(0)), reset);
    assert_ptr_equal(reset->own, own);
    check_eq_u64(reset->called_at, NOW);
    assert_null(reset->option.url);
    check_true(reset->option.recorded == 0 && !reset->keyed && reset->operation == NULL && reset->deadline_at == 0);
    check_true(!reset->recorded && handles.plain_count == 1);
    handles_free(&handles);
}

BECALM_TESTS(cmocka_unit_test(test_handle__nobody_is_known_at_first),
             cmocka_unit_test(test_handle__each_of_a_thousand_is_found_and_forgotten),
             cmocka_unit_test(test_handle__a_quarter_of_the_descriptors_is_for_plain_ones),
             cmocka_unit_test(test_handle__plain_ones_that_are_used_by_turns_are_all_kept),
             cmocka_unit_test(test_handle__plain_ones_make_room_the_longest_idle_first),
             cmocka_unit_test(test_handle__a_crowd_of_plain_ones_that_is_gone_is_forgotten),
             cmocka_unit_test(test_handle__who_is_in_a_call_is_never_forgotten_by_itself),
             cmocka_unit_test(test_handle__who_is_recorded_is_never_forgotten_by_itself),
             cmocka_unit_test(test_handle__the_method_is_what_the_latest_option_says),
             cmocka_unit_test(test_handle__options_that_unset_a_method_leave_the_others_alone),
             cmocka_unit_test(test_handle__only_what_was_recorded_is_known),
             cmocka_unit_test(test_handle__values_are_found_where_they_are_looked_for),
             cmocka_unit_test(test_handle__options_that_are_deprecated_count_too),
             cmocka_unit_test(test_handle__who_was_reset_is_plain_and_keeps_its_connections))
