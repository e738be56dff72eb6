/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "top/json_reader.h"

static struct json_reader of(const char *text)
{
    struct json_reader r;
    json_reader_init(&r, text, strlen(text));
    return r;
}

static bool is_json(const char *text)
{
    struct json_reader r = of(text);
    json_reader_skip(&r);
    return json_reader_done(&r);
}

static uint64_t number(const char *text)
{
    struct json_reader r = of(text);
    uint64_t value = json_reader_number(&r);
    check_true(json_reader_done(&r));
    return value;
}

static const char *string(const char *text, char *out, size_t size)
{
    struct json_reader r = of(text);
    json_reader_text(&r, out, size);
    check_true(json_reader_done(&r));
    return out;
}

static void test_json_reader__accepts_json_and_nothing_else(void **state)
{
    static const char *const good[] = {
        "{}", "[]", " [ 1 , -2.5e+3, true,false , null, \"a\" ] ", "{\"a\":{\"b\":[[]]}}", "0", "\"\"", "-0.0E-2",
    };
    static const char *const bad[] = {
        "",      " ",       "{",           "}",      "[1",    "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
        "{1:2}", "[1 2]",   "01",          "+1",     "1.",    ".5",   "1e",   "-",       "tru",      "nul",
        "\"a",   "\"\\x\"", "\"\\u12g4\"", "\"\n\"", "[] []", "{]",   "[}",   "'a'",     "[1] x",    "NaN",
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        check_true_at(is_json(good[i]), good[i], __FILE__, __LINE__);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_true_at(!is_json(bad[i]), bad[i], __FILE__, __LINE__);
    }
}

static void test_json_reader__numbers_are_in_millionths(void **state)
{
    (void)state;
    check_eq_u64(number("0"), 0);
    check_eq_u64(number("12"), 12000000);
    check_eq_u64(number("0.5"), 500000);
    check_eq_u64(number("1.2345678"), 1234567);
    check_eq_u64(number("1.5e2"), 150000000);
    check_eq_u64(number("15e-1"), 1500000);
    check_eq_u64(number("-3"), 0);
    check_eq_u64(number("18446744073709551615"), UINT64_MAX);
    check_eq_u64(number("1e999999999999999999999"), UINT64_MAX);
    check_eq_u64(number("1e-999999999999999999999"), 0);
}

static void test_json_reader__strings_do_nothing_to_a_terminal(void **state)
{
    char out[32];
    (void)state;
    check_eq_str(string("\"a\\\"\\\\\\/\"", out, sizeof out), "a\"\\/");
    check_eq_str(string("\"\\u001b[2J\\n\\u007f\\u009b\\u0000x\"", out, sizeof out), "?[2J????x");
    check_eq_str(string("\"\\u00e9\\u20ac\\ud83d\\ude00\"", out, sizeof out), "\u00e9\u20ac\U0001f600");
    check_eq_str(string("\"\\ud83d\\ude00\"", out, 4), "");
    check_eq_str(string("\"\\ud800x\"", out, sizeof out), "?x");
    check_eq_str(string("\"\xff\xc0z\"", out, sizeof out), "??z");
    check_eq_str(string("\"\u00e9\u00e9\u00e9\"", out, 6), "\u00e9\u00e9");
    check_eq_str(string("\"abcdef\"", out, 4), "abc");
}

static void test_json_reader__steps_through_objects_and_arrays(void **state)
{
    struct json_reader r = of("{\"a\": [1, 2], \"b\": {\"c\": true}, \"long\": 7}");
    char key[4];
    uint64_t sum = 0;
    (void)state;
    json_reader_object(&r);
    check_true(json_reader_key(&r, key, sizeof key));
    check_eq_str(key, "a");
    json_reader_array(&r);
    while (json_reader_item(&r)) {
        sum += json_reader_number(&r);
    }
    check_eq_u64(sum, 3000000);
    check_true(json_reader_key(&r, key, sizeof key));
    json_reader_skip(&r);
    check_true(json_reader_key(&r, key, sizeof key));
    check_eq_str(key, "lon");
    check_eq_u64(json_reader_number(&r), 7000000);
    check_true(!json_reader_key(&r, key, sizeof key));
    check_true(json_reader_done(&r));
}

static void test_json_reader__nesting_has_a_bound(void **state)
{
    char text[2 * JSON_READER_DEPTH + 3] = "";
    (void)state;
    memset(text, '[', JSON_READER_DEPTH);
    memset(text + JSON_READER_DEPTH, ']', JSON_READER_DEPTH);
    check_true(is_json(text));
    memset(text, '[', JSON_READER_DEPTH + 1);
    memset(text + JSON_READER_DEPTH + 1, ']', JSON_READER_DEPTH + 1);
    check_true(!is_json(text));
}

static void test_json_reader__the_first_mistake_is_the_last(void **state)
{
    struct json_reader r = of("[1, x, 2]");
    char text[4] = "old";
    (void)state;
    json_reader_array(&r);
    check_true(json_reader_item(&r));
    check_eq_u64(json_reader_number(&r), 1000000);
    check_true(json_reader_item(&r));
    check_true(!json_reader_bool(&r));
    check_true(r.failed);
    check_true(!json_reader_item(&r));
    json_reader_text(&r, text, sizeof text);
    check_eq_str(text, "");
    check_true(!json_reader_done(&r));
}

BECALM_TESTS(cmocka_unit_test(test_json_reader__accepts_json_and_nothing_else),
             cmocka_unit_test(test_json_reader__numbers_are_in_millionths),
             cmocka_unit_test(test_json_reader__strings_do_nothing_to_a_terminal),
             cmocka_unit_test(test_json_reader__steps_through_objects_and_arrays),
             cmocka_unit_test(test_json_reader__nesting_has_a_bound),
             cmocka_unit_test(test_json_reader__the_first_mistake_is_the_last))
