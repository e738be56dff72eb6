/* SPDX-License-Identifier: MIT */
#include "http/cookie.h"

#include "unit/http_lab.h"

/* "name=value|name=value", or "bad". */
static void check_cookies(const char *chars, const char *expected)
{
    char got[256] = "";
    struct becalm_text line = text(chars);
    struct becalm_text name;
    struct becalm_text value;
    enum becalm__cookie kind;
    while ((kind = becalm__cookie_take(&line, &name, &value)) == BECALM__COOKIE_PAIR) {
        size_t used = strlen(got);
        (void)snprintf(got + used, sizeof got - used, "%s%.*s=%.*s", used == 0 ? "" : "|", (int)name.length, name.at,
                       (int)value.length, value.at);
    }
    assert_string_equal(kind == BECALM__COOKIE_BAD ? "bad" : got, expected);
}

static void test_http_cookie__reads_pairs_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *line, *cookies;
    } rows[] = {
        {"", ""},
        {"a=1", "a=1"},
        {"a=1; b=2", "a=1|b=2"},
        {"a=1;b=2", "a=1|b=2"},
        {"a=1; \t b=2", "a=1|b=2"},
        {"a=", "a="},
        {"a=\"\"; b=\"x\"", "a=\"\"|b=\"x\""},
        {"a=b=c==", "a=b=c=="},
        {"a=1;", "bad"},
        {"a=1; ", "bad"},
        {";a=1", "bad"},
        {"a=1;;b=2", "bad"},
        {"a", "bad"},
        {"=1", "bad"},
        {"a =1", "bad"},
        {"a= 1", "bad"},
        {"a=1 ;b=2", "bad"},
        {"a=1,b=2", "bad"},
        {"a=1, b=2", "bad"},
        {"a=\"1; b=2\"", "bad"},
        {"a=\"1", "bad"},
        {"a=1\"", "bad"},
        {"a=\"1\"2", "bad"},
        {"a=\\1", "bad"},
        {"a=\x01", "bad"},
        {"a=\xc3\xa9", "bad"},
        {"a(b)=1", "bad"},
        {"$Version=1; a=2", "$Version=1|a=2"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_cookies(rows[i].line, rows[i].cookies);
    }
}

BECALM_TESTS(cmocka_unit_test(test_http_cookie__reads_pairs_and_nothing_else))
