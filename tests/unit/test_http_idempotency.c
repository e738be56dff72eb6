/* SPDX-License-Identifier: MIT */
#include "http_lab.h"

#include "http/key.h"

static void check_key(const char *literal, const char *expected) /* NULL: not a key */
{
    struct becalm_text value = text_bare(literal);
    struct becalm_text key = text("unchanged");
    bool read = becalm_key_parse(value, &key);
    const char *wanted = expected == NULL ? "unchanged" : expected;
    if (read != (expected != NULL) || key.length != strlen(wanted) || memcmp(key.at, wanted, key.length) != 0) {
        fail_msg("\"%s\" is %d \"%.*s\"", literal, read, (int)key.length, key.at);
    }
    text_drop(value);
}

static void test_key__nothing_is_no_key(void **state)
{
    struct becalm_text key;
    (void)state;
    check_true(!becalm_key_parse(text(NULL), &key));
    check_key("", NULL);
    check_key("  ", NULL);
    check_key("\"\"", NULL);
}

static void test_key__a_quoted_string_or_bare(void **state)
{
    (void)state;
    check_key("\"8e03978e-40d5-43e8-bc93-6894a57f9324\"", "8e03978e-40d5-43e8-bc93-6894a57f9324");
    check_key("8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324");
    check_key(" \t\"a b\" ", "a b");
    check_key(" a ", "a");
    check_key("\"a,b;c=d\"", "a,b;c=d");
    check_key("\"a\\\"b\\\\c\"", "a\\\"b\\\\c"); /* backslashes are kept: the same text is the same key */
    check_key("YWJj+/9=", "YWJj+/9=");
    check_key("order:42/charge@eu", "order:42/charge@eu");
    check_key("~!#$%&'()*<>?[]^_`{|}", "~!#$%&'()*<>?[]^_`{|}");
}

static void test_key__what_could_be_two_keys_or_none_is_refused(void **state)
{
    static const char *const wrong[] = {
        "a b",          "a,b",      "a, b",      "\"a\", \"b\"", "\"a\"b", "a\"b",     "\"a",      "a\"",
        "\"a\\\"",      "\"a\\b\"", "\"a\";p=1", "a;p=1",        "a\\b",   "\"a\nb\"", "\"a\tb\"", "a\x01",
        "\"\xc3\xa4\"", "\xc3\xa4", "\x7f",      "\"\x7f\"",     "\"",     "\"\\",     "a\tb",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        check_key(wrong[i], NULL);
    }
    struct becalm_text key;
    check_true(!becalm_key_parse((struct becalm_text){"a\0b", 3}, &key));
    check_true(!becalm_key_parse((struct becalm_text){"\"a\0b\"", 5}, &key));
}

static void test_key__has_at_most_255_bytes(void **state)
{
    char longest[BECALM_KEY_MAX + 3];
    struct becalm_text key;
    (void)state;
    memset(longest, 'k', sizeof longest);
    check_true(becalm_key_parse((struct becalm_text){longest, BECALM_KEY_MAX}, &key));
    check_eq_u64(key.length, BECALM_KEY_MAX);
    check_true(!becalm_key_parse((struct becalm_text){longest, BECALM_KEY_MAX + 1}, &key));
    longest[0] = '"';
    longest[BECALM_KEY_MAX + 1] = '"';
    check_true(becalm_key_parse((struct becalm_text){longest, BECALM_KEY_MAX + 2}, &key));
    check_eq_u64(key.length, BECALM_KEY_MAX);
    longest[BECALM_KEY_MAX + 1] = 'k';
    longest[BECALM_KEY_MAX + 2] = '"';
    check_true(!becalm_key_parse((struct becalm_text){longest, BECALM_KEY_MAX + 3}, &key));
}

static void test_key__a_fresh_one_is_a_uuid_of_version_4(void **state)
{
    (void)state;
    unsigned char random[BECALM__KEY_RANDOM];
    char key[BECALM__KEY_TEXT];
    struct becalm_text read;
    for (unsigned i = 0; i < sizeof random; i++) {
        random[i] = (unsigned char)(0x11 * i);
    }
    becalm__key_write(random, key);
    check_eq_str(key, "00112233-4455-4677-8899-aabbccddeeff");
    memset(random, 0, sizeof random);
    becalm__key_write(random, key);
    check_eq_str(key, "00000000-0000-4000-8000-000000000000");
    memset(random, 0xff, sizeof random);
    becalm__key_write(random, key);
    check_eq_str(key, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    check_true(becalm_key_parse((struct becalm_text){key, strlen(key)}, &read) && read.length == strlen(key));
}

BECALM_TESTS(cmocka_unit_test(test_key__nothing_is_no_key), cmocka_unit_test(test_key__a_quoted_string_or_bare),
             cmocka_unit_test(test_key__what_could_be_two_keys_or_none_is_refused),
             cmocka_unit_test(test_key__has_at_most_255_bytes),
             cmocka_unit_test(test_key__a_fresh_one_is_a_uuid_of_version_4))
