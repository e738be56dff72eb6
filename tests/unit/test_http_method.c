/* SPDX-License-Identifier: MIT */
#include "http_lab.h"

static void test_method__nothing_is_not_idempotent(void **state)
{
    (void)state;
    check_true(!becalm_http_idempotent(text(NULL)));
    check_true(!becalm_http_idempotent(text("")));
}

static void test_method__six_methods_may_be_repeated_and_no_other(void **state)
{
    static const struct {
        const char *method;
        bool idempotent;
    } rows[] = {
        {"GET", true},   {"HEAD", true},   {"PUT", true},      {"DELETE", true},  {"OPTIONS", true}, {"TRACE", true},
        {"POST", false}, {"PATCH", false}, {"CONNECT", false}, {"QUERY", false},  {"get", false},    {"Get", false},
        {"GETT", false}, {"GE", false},    {" GET", false},    {"OPTION", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_text method = text_bare(rows[i].method);
        if (becalm_http_idempotent(method) != rows[i].idempotent) {
            fail_msg("%s", rows[i].method);
        }
        text_drop(method);
    }
}

BECALM_TESTS(cmocka_unit_test(test_method__nothing_is_not_idempotent),
             cmocka_unit_test(test_method__six_methods_may_be_repeated_and_no_other))
