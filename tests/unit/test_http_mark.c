/* SPDX-License-Identifier: MIT */
#include "http_lab.h"

#define MARK(name) BECALM_MARK_##name

static void test_mark_header__nothing_is_no_mark(void **state)
{
    char value[96] = "left over";
    (void)state;
    check_eq_u64(becalm_mark_parse(text(NULL)), MARK(NONE));
    check_eq_u64(becalm_mark_parse(text("")), MARK(NONE));
    check_eq_u64(becalm_mark_write(MARK(NONE), BECALM_WHY_SHED, value, sizeof value), 0);
    check_eq_str(value, "");
}

static void test_mark_header__reads_what_is_documented_and_ignores_what_is_new(void **state)
{
    static const struct {
        const char *value;
        enum becalm_mark_kind mark;
    } rows[] = {
        {"overloaded", MARK(OVERLOADED)},
        {"spent", MARK(SPENT)},
        {"overloaded; scope=service; reason=shed", MARK(OVERLOADED)},
        {"overloaded; scope=host; reason=shed", MARK(OVERLOADED_HOST)},
        {"overloaded; scope=zone", MARK(OVERLOADED_HOST)}, /* unknown: at least that host */
        {"overloaded; scope", MARK(OVERLOADED_HOST)},
        {"spent; scope=service; reason=budget_empty", MARK(SPENT)},
        {"spent; scope=host", MARK(SPENT)},
        {"OVERLOADED; Scope=HOST", MARK(OVERLOADED_HOST)},
        {" Spent ", MARK(SPENT)},
        {"overloaded;scope=host", MARK(OVERLOADED_HOST)},
        {"overloaded ;\tscope=host ; reason=shed", MARK(OVERLOADED_HOST)},
        {"overloaded; scope=\"host\"", MARK(OVERLOADED_HOST)},
        {"overloaded; scope=\"service\"", MARK(OVERLOADED)},
        {"overloaded; load=97; who=\"a; scope=host, \\\"b\\\"\"; fresh", MARK(OVERLOADED)},
        {"overloaded; reason=shed; scope=host", MARK(OVERLOADED_HOST)},
        {"overloaded; scope=host; scope=service", MARK(OVERLOADED)}, /* the last one, as in RFC 8941 */
        {"calm; scope=service", MARK(NONE)},
        {"overload", MARK(NONE)},
        {"overloadedd", MARK(NONE)},
        {"overloaded, spent", MARK(NONE)},
        {"overloaded spent", MARK(NONE)},
        {"overloaded;", MARK(NONE)},
        {"overloaded; ", MARK(NONE)},
        {"overloaded;; scope=host", MARK(NONE)},
        {"overloaded; =host", MARK(NONE)},
        {"overloaded; scope=", MARK(NONE)},
        {"overloaded; scope = host", MARK(NONE)},
        {"overloaded; scope=\"host", MARK(NONE)},
        {"overloaded; scope=\"ho\\st\"", MARK(NONE)},
        {"overloaded; scope=\"host\\", MARK(NONE)},
        {"overloaded; scope=host,", MARK(NONE)},
        {"; scope=host", MARK(NONE)},
        {"\"overloaded\"", MARK(NONE)},
        {"overloaded\xff", MARK(NONE)},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_text value = text_bare(rows[i].value);
        enum becalm_mark_kind mark = becalm_mark_parse(value);
        text_drop(value);
        if (mark != rows[i].mark) {
            fail_msg("\"%s\" is %d", rows[i].value, (int)mark);
        }
    }
}

static void test_mark_header__writes_the_scope_and_the_reason(void **state)
{
    char value[96];
    (void)state;
    (void)becalm_mark_write(MARK(OVERLOADED), BECALM_WHY_SHED, value, sizeof value);
    check_eq_str(value, "overloaded; scope=service; reason=shed");
    (void)becalm_mark_write(MARK(OVERLOADED_HOST), BECALM_WHY_LIMIT, value, sizeof value);
    check_eq_str(value, "overloaded; scope=host; reason=limit");
    (void)becalm_mark_write(MARK(SPENT), BECALM_WHY_BUDGET_EMPTY, value, sizeof value);
    check_eq_str(value, "spent; scope=service; reason=budget_empty");
    (void)becalm_mark_write(MARK(UNASKED), BECALM_WHY_BREAKER_OPEN, value, sizeof value);
    check_eq_str(value, "spent; scope=service; unasked; reason=breaker_open");
}

static void test_mark_header__what_is_written_is_read_back(void **state)
{
    static const enum becalm_mark_kind marks[] = {MARK(OVERLOADED_HOST), MARK(OVERLOADED), MARK(SPENT), MARK(UNASKED)};
    (void)state;
    for (unsigned reason = 0; reason < BECALM_REASON_COUNT; reason++) {
        for (size_t i = 0; i < COUNT(marks); i++) {
            char value[96];
            size_t length = becalm_mark_write(marks[i], (enum becalm_reason)reason, value, sizeof value);
            check_eq_u64(length, strlen(value));
            check_eq_u64(becalm_mark_parse((struct becalm_text){value, length}), marks[i]);
        }
    }
}

BECALM_TESTS(cmocka_unit_test(test_mark_header__nothing_is_no_mark),
             cmocka_unit_test(test_mark_header__reads_what_is_documented_and_ignores_what_is_new),
             cmocka_unit_test(test_mark_header__writes_the_scope_and_the_reason),
             cmocka_unit_test(test_mark_header__what_is_written_is_read_back))
