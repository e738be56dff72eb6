/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "meter/buffer.h"

/* The content of a buffer, for comparisons. */
static const char *text_in(struct buffer *b)
{
    buffer_bytes(b, "", 1);
    check_true(!b->full);
    b->length--;
    return b->at;
}

static void test_buffer__numbers_are_written_as_people_write_them(void **state)
{
    (void)state;
    char memory[128];
    struct buffer b = {.at = memory, .size = sizeof memory};
    buffer_number(&b, 0);
    buffer_chars(&b, " ");
    buffer_number(&b, UINT64_MAX);
    buffer_chars(&b, " ");
    buffer_padded(&b, 7, 3);
    buffer_chars(&b, " ");
    buffer_decimal(&b, 1234, 3);
    buffer_chars(&b, " ");
    buffer_decimal(&b, 5, 6);
    buffer_chars(&b, " ");
    buffer_decimal(&b, 5, 0);
    check_eq_str(text_in(&b), "0 18446744073709551615 007 1.234 0.000005 5");
}

static void test_buffer__a_fixed_one_is_full_and_stays_so(void **state)
{
    (void)state;
    char memory[4] = "....";
    struct buffer b = {.at = memory, .size = 3};
    buffer_chars(&b, "ab");
    check_eq_u64(buffer_room(&b), 1);
    buffer_chars(&b, "cd"); /* all or nothing */
    buffer_chars(&b, "e");  /* and nothing after it, although it would fit */
    check_true(b.full);
    check_eq_u64(b.length, 2);
    check_true(memcmp(memory, "ab..", 4) == 0);
}

static void test_buffer__one_that_grows_ends_at_its_bound(void **state)
{
    (void)state;
    struct buffer b = {.bytes_max = 10000};
    for (int i = 0; i < 1000; i++) {
        buffer_chars(&b, "0123456789");
    }
    check_true(!b.full);
    check_eq_u64(b.length, 10000);
    buffer_chars(&b, "x");
    check_true(b.full);
    check_eq_u64(b.length, 10000);
    check_true(memcmp(b.at + 9990, "0123456789", 10) == 0);
    buffer_free(&b);
    check_true(b.at == NULL && !b.full);
}

static void check_json(const char *bytes, size_t length, const char *expected)
{
    char memory[256];
    struct buffer b = {.at = memory, .size = sizeof memory};
    buffer_json_text(&b, (struct becalm_text){bytes, length}, 200);
    check_eq_str(text_in(&b), expected);
}

static void test_buffer__json_strings_are_escaped(void **state)
{
    (void)state;
    check_json("", 0, "\"\"");
    check_json("plain", 5, "\"plain\"");
    check_json("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    check_json("\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"");
    check_json("\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\"");
    check_json("gr\xc3\xbc\xc3\x9f", 6, "\"gr\xc3\xbc\xc3\x9f\"");
    check_json("\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\"");
    /* C1 controls, line separator, right-to-left override */
    check_json("\xc2\x85\xe2\x80\xa8\xe2\x80\xae", 8, "\"\\u0085\\u2028\\u202e\"");
}

static void test_buffer__invalid_utf8_is_replaced_byte_by_byte(void **state)
{
    (void)state;
    check_json("a\xff"
               "b",
               3, "\"a\\ufffdb\"");
    check_json("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");                       /* overlong */
    check_json("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");            /* surrogate */
    check_json("\xe2\x82", 2, "\"\\ufffd\\ufffd\"");                       /* cut off, and no byte behind it is read */
    check_json("\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* beyond U+10FFFF */
}

static void test_buffer__what_is_too_long_is_cut_between_characters(void **state)
{
    (void)state;
    char memory[64];
    for (size_t room = 8; room < 20; room++) {
        struct buffer b = {.at = memory, .size = sizeof memory};
        buffer_json_text(&b, text_of("ab\xc3\xbc\n\x01xyz0123456789"), room);
        check_true(!b.full && b.length <= room);
        check_true(b.length >= 5 && memcmp(b.at + b.length - 4, "...\"", 4) == 0);
    }
    struct buffer b = {.at = memory, .size = sizeof memory};
    buffer_json_text(&b, text_of("abcdef"), 8); /* exactly */
    check_eq_str(text_in(&b), "\"abcdef\"");
    b.length = 0;
    buffer_json_text(&b, text_of("abcdefg"), 8);
    check_eq_str(text_in(&b), "\"abc...\"");
}

static void test_buffer__json_members_have_commas_between_them(void **state)
{
    (void)state;
    struct buffer b = {.bytes_max = 1000};
    buffer_json_open(&b, NULL, '{');
    buffer_json_chars(&b, "absent", NULL);
    buffer_json_chars(&b, "text", "[");
    buffer_json_number(&b, "number", 3);
    buffer_json_open(&b, "list", '[');
    buffer_json_open(&b, NULL, '{');
    buffer_json_close(&b, '}');
    buffer_json_bool(&b, NULL, true);
    buffer_json_decimal(&b, NULL, 15, 1);
    buffer_json_close(&b, ']');
    buffer_json_string(&b, "empty", (struct becalm_text){"", 0});
    buffer_json_close(&b, '}');
    check_eq_str(text_in(&b), "{\"text\":\"[\",\"number\":3,\"list\":[{},true,1.5],\"empty\":\"\"}");
    buffer_free(&b);
}

BECALM_TESTS(cmocka_unit_test(test_buffer__numbers_are_written_as_people_write_them),
             cmocka_unit_test(test_buffer__a_fixed_one_is_full_and_stays_so),
             cmocka_unit_test(test_buffer__one_that_grows_ends_at_its_bound),
             cmocka_unit_test(test_buffer__json_strings_are_escaped),
             cmocka_unit_test(test_buffer__invalid_utf8_is_replaced_byte_by_byte),
             cmocka_unit_test(test_buffer__what_is_too_long_is_cut_between_characters),
             cmocka_unit_test(test_buffer__json_members_have_commas_between_them))
