/* SPDX-License-Identifier: MIT */
#include "h1_lab.h"
#include "message/date.h"
#include "message/phrase.h"

#include <time.h>

static void check_out(const struct text_sink *out, const char *expected)
{
    check_text((struct becalm_text){out->at, out->length}, expected);
    check_true(!out->full);
}

static void test_h1_put__texts_numbers_and_fields(void **state)
{
    char bytes[128];
    struct text_sink out = {.at = bytes, .size = sizeof bytes};
    (void)state;
    check_out(&out, "");
    text_put(&out, text(NULL));
    text_put_chars(&out, "");
    check_out(&out, "");
    text_put(&out, text("a"));
    text_put_chars(&out, "bc ");
    text_put_number(&out, 0);
    text_put_chars(&out, " ");
    text_put_number(&out, UINT64_MAX);
    h1_put_field(&out, "", text(""));
    h1_put_field(&out, "X", text(NULL));
    h1_put_field(&out, "Y", text("z"));
    check_out(&out, "abc 0 18446744073709551615: \r\nX: \r\nY: z\r\n");
}

static void test_h1_put__what_does_not_fit_is_left_out_and_said(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 6; size++) {
        char *bytes = malloc(size + 1);
        assert_non_null(bytes);
        struct text_sink out = {.at = bytes, .size = size};
        h1_put_field(&out, "X", text("y"));
        check_eq_u64(out.full, size < 6);
        check_eq_u64(out.length, size < 6 ? 0 : 6);
        out = (struct text_sink){.at = bytes, .size = size};
        text_put_chars(&out, "123456");
        check_eq_u64(out.full, size < 6);
        free(bytes);
    }
}

static void test_h1_put_status__every_number_from_100_to_999(void **state)
{
    (void)state;
    for (uint32_t status = 100; status <= 999; status++) {
        struct lab lab;
        char bytes[64];
        struct text_sink out = {.at = bytes, .size = sizeof bytes - 1};
        h1_put_status(&out, status);
        text_put_chars(&out, "\r\n");
        bytes[out.length] = '\0';
        answer_of(&lab, bytes);
        check_eq_u64(lab.head.status, status);
        lab_drop(&lab);
    }
    char bytes[64];
    struct text_sink out = {.at = bytes, .size = sizeof bytes};
    h1_put_status(&out, 200);
    h1_put_status(&out, 299);
    check_out(&out, "HTTP/1.1 200 OK\r\nHTTP/1.1 299 \r\n");
}

static void test_h1_status_phrase__is_empty_for_unknown_ones(void **state)
{
    (void)state;
    check_eq_str(status_phrase(503), "Service Unavailable");
    check_eq_str(status_phrase(511), "Network Authentication Required");
    check_eq_str(status_phrase(100), "Continue");
    check_eq_str(status_phrase(299), "");
    check_eq_str(status_phrase(0), "");
    check_eq_str(status_phrase(99), "");
    check_eq_str(status_phrase(512), "");
    check_eq_str(status_phrase(UINT32_MAX), "");
}

static void test_h1_put_fields__rebuilds_what_is_passed_on(void **state)
{
    struct lab lab;
    char bytes[256];
    struct text_sink out = {.at = bytes, .size = sizeof bytes};
    (void)state;
    request_of(
        &lab,
        "GET / HTTP/1.1\r\nHost:a\r\nX-A:\t1  \r\nConnection: x-b\r\nX-B: 2\r\nTE: x\r\nx-EMPTY:\r\nVia: v\r\n\r\n");
    h1_put_fields(&out, &lab.head, UINT64_C(1) << FIELD_VIA);
    check_out(&out, "Host: a\r\nX-A: 1\r\nx-EMPTY: \r\n");
    lab_drop(&lab);
}

/* All orders of four lines, of which some are as they are written, some have other blanks and some are left out. */
static void test_h1_put_fields__is_the_same_in_any_order(void **state)
{
    static const struct {
        const char *came;
        const char *goes;
    } rows[] = {
        {"A-Name: one\r\n", "A-Name: one\r\n"},
        {"B: a value that is longer than sixteen bytes\r\n", "B: a value that is longer than sixteen bytes\r\n"},
        {"C:two\r\n", "C: two\r\n"},
        {"D:\tthree\r\n", "D: three\r\n"},
        {"E: four \r\n", "E: four\r\n"},
        {"Via: five\r\n", ""},
        {"TE: six\r\n", ""},
        {"F:\r\n", "F: \r\n"},
        {"G: \r\n", "G: \r\n"},
    };
    (void)state;
    for (size_t order = 0; order < COUNT(rows) * COUNT(rows) * COUNT(rows) * COUNT(rows); order++) {
        char came[512] = "GET / HTTP/1.1\r\nHost: a\r\n";
        char goes[512] = "Host: a\r\n";
        char bytes[512];
        struct text_sink out = {.at = bytes, .size = sizeof bytes};
        struct lab lab;
        size_t rest = order;
        for (int line = 0; line < 4; line++, rest /= COUNT(rows)) {
            strcat(came, rows[rest % COUNT(rows)].came);
            strcat(goes, rows[rest % COUNT(rows)].goes);
        }
        strcat(came, "\r\n");
        request_of(&lab, came);
        h1_put_fields(&out, &lab.head, FIELD_BIT(FIELD_VIA));
        check_out(&out, goes);
        out.length = 0;
        h1_put_fields(&out, &lab.head, FIELD_BIT(FIELD_VIA) | FIELD_BIT(FIELD_HOST));
        check_out(&out, goes + strlen("Host: a\r\n"));
        lab_drop(&lab);
    }
}

static void test_h1_put_fields__leaves_host_out_wherever_it_is(void **state)
{
    static const char *const came[] = {"Host: a\r\nX: 1\r\nY: 2\r\n", "X: 1\r\nHost: a\r\nY: 2\r\n",
                                       "X: 1\r\nY: 2\r\nHost: a\r\n"};
    (void)state;
    for (size_t i = 0; i < COUNT(came); i++) {
        char head[128] = "GET / HTTP/1.1\r\n";
        char bytes[128];
        struct text_sink out = {.at = bytes, .size = sizeof bytes};
        struct lab lab;
        strcat(head, came[i]);
        strcat(head, "\r\n");
        request_of(&lab, head);
        h1_put_fields(&out, &lab.head, FIELD_BIT(FIELD_HOST));
        check_out(&out, "X: 1\r\nY: 2\r\n");
        lab_drop(&lab);
    }
    struct lab lab;
    char bytes[16];
    struct text_sink out = {.at = bytes, .size = sizeof bytes};
    request_of(&lab, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    h1_put_fields(&out, &lab.head, FIELD_BIT(FIELD_HOST));
    check_out(&out, "");
    lab_drop(&lab);
}

/* The gateway writes its own status line, whatever the host's looks like. */
static void test_h1_put_answer__has_our_status_line_and_the_fields_that_pass(void **state)
{
    static const struct {
        const char *came;
        const char *goes;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n"},
        {"HTTP/1.1 200 \r\nA: 1\r\nB: 2\r\n\r\n", "HTTP/1.1 200 \r\nA: 1\r\nB: 2\r\n\r\n"},
        {"HTTP/1.1 200\r\nA: 1\r\nB: 2\r\n\r\n", "HTTP/1.1 200 \r\nA: 1\r\nB: 2\r\n\r\n"},
        {"HTTP/1.0 200 OK\r\nA: 1\r\nB: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n"},
        {"HTTP/1.1 404 So so\r\nA:1\r\nB: 2\r\n\r\n", "HTTP/1.1 404 So so\r\nA: 1\r\nB: 2\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nVia: x\r\nB: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nB: 2\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nA: 1\r\nConnection: a\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"},
        {"HTTP/1.1 204 None\r\nContent-Length: 0\r\nB: 2\r\n\r\n", "HTTP/1.1 204 None\r\nB: 2\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nB: 2\r\nContent-Length: 0\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nB: 2\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        struct draft draft;
        char bytes[128];
        struct text_sink out = {.at = bytes, .size = sizeof bytes};
        answer_of(&lab, rows[i].came);
        draft_begin(&draft, NULL, 0);
        draft.status = lab.head.status;
        draft.phrase = head_phrase(&lab.head);
        draft.passed = &lab.head;
        draft.skip = FIELD_BIT(FIELD_VIA);
        h1_put_answer(&out, &draft, HTTP_1_1);
        check_out(&out, rows[i].goes);
        lab_drop(&lab);
    }
}

static void test_h1_chunk_head__is_read_back(void **state)
{
    static const struct {
        size_t length;
        const char *text;
    } rows[] = {
        {1, "1\r\n"},     {15, "f\r\n"},        {16, "10\r\n"},
        {500, "1f4\r\n"}, {65536, "10000\r\n"}, {SIZE_MAX, "ffffffffffffffff\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char bytes[20];
        check_text((struct becalm_text){bytes, h1_chunk_head(bytes, rows[i].length)}, rows[i].text);
    }
}

static void test_h1_date__agrees_with_the_c_library(void **state)
{
    char ours[30];
    char theirs[40];
    (void)state;
    date_write(ours, 784111777);
    check_eq_str(ours, "Sun, 06 Nov 1994 08:49:37 GMT");
    date_write(ours, -1);
    check_eq_str(ours, "Thu, 01 Jan 1970 00:00:00 GMT");
    date_write(ours, INT64_MAX);
    check_eq_str(ours, "Fri, 31 Dec 9999 23:59:59 GMT");
    for (int64_t seconds = 0; seconds < INT64_C(253402300800); seconds += 86399 * 17) {
        time_t when = (time_t)seconds;
        strftime(theirs, sizeof theirs, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&when));
        date_write(ours, seconds);
        check_eq_str(ours, theirs);
    }
}

BECALM_TESTS(cmocka_unit_test(test_h1_put__texts_numbers_and_fields),
             cmocka_unit_test(test_h1_put__what_does_not_fit_is_left_out_and_said),
             cmocka_unit_test(test_h1_put_status__every_number_from_100_to_999),
             cmocka_unit_test(test_h1_status_phrase__is_empty_for_unknown_ones),
             cmocka_unit_test(test_h1_put_fields__rebuilds_what_is_passed_on),
             cmocka_unit_test(test_h1_put_fields__is_the_same_in_any_order),
             cmocka_unit_test(test_h1_put_fields__leaves_host_out_wherever_it_is),
             cmocka_unit_test(test_h1_put_answer__has_our_status_line_and_the_fields_that_pass),
             cmocka_unit_test(test_h1_chunk_head__is_read_back),
             cmocka_unit_test(test_h1_date__agrees_with_the_c_library))
