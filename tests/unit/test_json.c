/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "cli/json.h"

#include <math.h>

#include "lib/check.h"

/* A document in memory. */
struct paper {
    struct json json;
    FILE *out;
    char *text;
    size_t length;
};

static void paper_begin(struct paper *paper)
{
    *paper = (struct paper){.text = NULL};
    paper->out = open_memstream(&paper->text, &paper->length);
    assert_non_null(paper->out);
    json_begin(&paper->json, paper->out);
}

static void paper_expect(struct paper *paper, const char *expected)
{
    json_end(&paper->json);
    fclose(paper->out);
    check_eq_str(paper->text, expected);
    free(paper->text);
}

static void test_json__empty_object_and_array_stay_on_their_line(void **state)
{
    struct paper paper;
    (void)state;
    paper_begin(&paper);
    json_object(&paper.json, NULL);
    json_object_end(&paper.json);
    paper_expect(&paper, "{}\n");
    paper_begin(&paper);
    json_array(&paper.json, NULL);
    json_array_end(&paper.json);
    paper_expect(&paper, "[]\n");
}

static void test_json__a_single_value_is_a_document(void **state)
{
    struct paper paper;
    (void)state;
    paper_begin(&paper);
    json_integer(&paper.json, NULL, UINT64_MAX);
    paper_expect(&paper, "18446744073709551615\n");
}

static void test_json__members_are_in_order_with_commas_and_indentation(void **state)
{
    struct paper paper;
    (void)state;
    paper_begin(&paper);
    json_object(&paper.json, NULL);
    json_text(&paper.json, "a", "b");
    json_array(&paper.json, "list");
    json_integer(&paper.json, NULL, 1);
    json_object(&paper.json, NULL);
    json_boolean(&paper.json, "yes", true);
    json_boolean(&paper.json, "no", false);
    json_object_end(&paper.json);
    json_array(&paper.json, NULL);
    json_array_end(&paper.json);
    json_array_end(&paper.json);
    json_null(&paper.json, "none");
    json_text(&paper.json, "nothing", NULL);
    json_object_end(&paper.json);
    paper_expect(&paper, "{\n"
                         "  \"a\": \"b\",\n"
                         "  \"list\": [\n"
                         "    1,\n"
                         "    {\n"
                         "      \"yes\": true,\n"
                         "      \"no\": false\n"
                         "    },\n"
                         "    []\n"
                         "  ],\n"
                         "  \"none\": null,\n"
                         "  \"nothing\": null\n"
                         "}\n");
}

static void expect_text(const char *value, const char *expected)
{
    struct paper paper;
    paper_begin(&paper);
    json_text(&paper.json, NULL, value);
    paper_expect(&paper, expected);
}

static void test_json__text_is_escaped(void **state)
{
    (void)state;
    expect_text("", "\"\"\n");
    expect_text("\"\\/", "\"\\\"\\\\/\"\n");
    expect_text("\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"\n");
    expect_text("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"\n");
}

static void test_json__keys_are_escaped_too(void **state)
{
    struct paper paper;
    (void)state;
    paper_begin(&paper);
    json_object(&paper.json, NULL);
    json_integer(&paper.json, "a\"b", 0);
    json_object_end(&paper.json);
    paper_expect(&paper, "{\n  \"a\\\"b\": 0\n}\n");
}

#define REPLACED "\xef\xbf\xbd"

static void test_json__valid_utf8_passes(void **state)
{
    (void)state;
    expect_text("\xc2\x80", "\"\xc2\x80\"\n");
    expect_text("\xe2\x82\xac", "\"\xe2\x82\xac\"\n");
    expect_text("\xed\x9f\xbf\xee\x80\x80", "\"\xed\x9f\xbf\xee\x80\x80\"\n");
    expect_text("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"\n");
}

static void test_json__invalid_utf8_is_replaced(void **state)
{
    (void)state;
    expect_text("\x80z", "\"" REPLACED "z\"\n");                                      /* continues nothing */
    expect_text("\xc0\xaf", "\"" REPLACED REPLACED "\"\n");                           /* overlong */
    expect_text("\xe0\x80\x80", "\"" REPLACED REPLACED REPLACED "\"\n");              /* overlong */
    expect_text("\xf0\x80\x80\x80", "\"" REPLACED REPLACED REPLACED REPLACED "\"\n"); /* overlong */
    expect_text("\xed\xa0\x80", "\"" REPLACED REPLACED REPLACED "\"\n");              /* a surrogate */
    expect_text("\xf4\x90\x80\x80", "\"" REPLACED REPLACED REPLACED REPLACED "\"\n"); /* beyond U+10FFFF */
    expect_text("\xff", "\"" REPLACED "\"\n");
    expect_text("\xe2\x82", "\"" REPLACED REPLACED "\"\n"); /* cut */
    expect_text("\xe2", "\"" REPLACED "\"\n");
}

static void expect_number(double value, int decimals, const char *expected)
{
    struct paper paper;
    paper_begin(&paper);
    json_number(&paper.json, NULL, value, decimals);
    paper_expect(&paper, expected);
}

static void test_json__numbers_lose_trailing_zeros_only(void **state)
{
    (void)state;
    expect_number(0, 0, "0\n");
    expect_number(100, 0, "100\n");
    expect_number(100, 3, "100\n");
    expect_number(1.5, 3, "1.5\n");
    expect_number(1.25, 2, "1.25\n");
    expect_number(-0.004, 2, "0\n");
    expect_number(-2.5, 1, "-2.5\n");
    expect_number(NAN, 2, "null\n");
    expect_number(INFINITY, 2, "null\n");
    expect_number(-INFINITY, 0, "null\n");
}

static void test_json__the_largest_number_fits(void **state)
{
    struct paper paper;
    (void)state;
    paper_begin(&paper);
    json_number(&paper.json, NULL, -1.7976931348623157e308, 100);
    json_end(&paper.json);
    fclose(paper.out);
    check_eq_u64(paper.length, 311);
    free(paper.text);
}

BECALM_TESTS(cmocka_unit_test(test_json__empty_object_and_array_stay_on_their_line),
             cmocka_unit_test(test_json__a_single_value_is_a_document),
             cmocka_unit_test(test_json__members_are_in_order_with_commas_and_indentation),
             cmocka_unit_test(test_json__text_is_escaped), cmocka_unit_test(test_json__keys_are_escaped_too),
             cmocka_unit_test(test_json__valid_utf8_passes), cmocka_unit_test(test_json__invalid_utf8_is_replaced),
             cmocka_unit_test(test_json__numbers_lose_trailing_zeros_only),
             cmocka_unit_test(test_json__the_largest_number_fits))
