/* SPDX-License-Identifier: MIT */
#include "exec/codes.h"

#include "lib/check.h"

static unsigned count(const struct codes *codes)
{
    unsigned n = 0;
    for (int code = 0; code < 256; code++) {
        n += codes_has(codes, code);
    }
    return n;
}

static void test_codes__an_empty_set_has_none(void **state)
{
    (void)state;
    struct codes codes = {{0}};
    check_eq_u64(count(&codes), 0);
    check_true(!codes_has(&codes, -1));
    check_true(!codes_has(&codes, 256));
}

static void test_codes__reads_numbers_ranges_and_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned members;
        int has;
    } rows[] = {
        {"0", 1, 0},
        {"255", 1, 255},
        {"1,75", 2, 75},
        {"2-4", 3, 3},
        {"7-7", 1, 7},
        {"fail", 255, 1},
        {"success", 1, 0},
        {"false", 255, 1},
        {"true", 1, 0},
        {"success,fail", 256, 0},
        {"63-64,128-255", 130, 64},
        {"007", 1, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct codes codes;
        check_true(codes_parse(&codes, rows[i].text));
        check_eq_u64(count(&codes), rows[i].members);
        check_true(codes_has(&codes, rows[i].has));
    }
}

static void test_codes__refuses_the_rest_and_leaves_the_set_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"",    ",",     "1,",    ",1",  "256",  "5-2", "1-",          "-1",
                                        "1 2", "fails", "1-2-3", "0x1", "1--2", "+1",  "99999999999", "1.0"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct codes codes = {{0}};
        codes_add(&codes, 9, 9);
        check_true(!codes_parse(&codes, texts[i]));
        check_eq_u64(count(&codes), 1);
    }
}

static void test_codes__one_may_be_taken_out(void **state)
{
    (void)state;
    struct codes codes = {{0}};
    codes_add(&codes, 0, 255);
    codes_remove(&codes, 127);
    check_eq_u64(count(&codes), 255);
    check_true(!codes_has(&codes, 127));
}

BECALM_TESTS(cmocka_unit_test(test_codes__an_empty_set_has_none),
             cmocka_unit_test(test_codes__reads_numbers_ranges_and_words),
             cmocka_unit_test(test_codes__refuses_the_rest_and_leaves_the_set_alone),
             cmocka_unit_test(test_codes__one_may_be_taken_out))
