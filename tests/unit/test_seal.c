/* SPDX-License-Identifier: MIT */
#include "keys/seal.h"

#include "lib/check.h"

#include <stdio.h>
#include <string.h>

/* Answers that are encrypted for the key that they belong to. */

static const char two[] = "new 2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2A\r\n"
                          "\n"
                          "old 1717171717171717171717171717171717171717171717171717171717171717";

static struct becalm_text text(const char *of)
{
    return (struct becalm_text){of, strlen(of)};
}

static void test_seal__a_file_of_keys_is_read_or_refused_with_a_reason(void **state)
{
    struct seals seals;
    (void)state;
    check_true(seals_read(&seals, two) == NULL);
    check_eq_u64(seals.count, 2);
    check_eq_str(seals.seal[0].name, "new");
    check_eq_u64(seals.seal[0].key[31], 0x2a);
    check_eq_u64(seals.seal[1].key[0], 0x17);
    check_eq_str(seals_read(&seals, "\n"), "it has no key");
    static const char *const wrong[] = {"new", "new 17",
                                        " 1717171717171717171717171717171717171717171717171717171717171717",
                                        "a b 17171717171717171717171717171717171717171717171717171717171717",
                                        "x 17171717171717171717171717171717171717171717171717171717171717zz"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_eq_str(seals_read(&seals, wrong[i]),
                     "each line is a name of at most 32 characters, a space, and 64 digits of hexadecimal");
    }
}

static void test_seal__what_was_sealed_opens_for_the_same_id_alone(void **state)
{
    struct seals seals;
    struct seals old;
    struct bytes sealed = {.at = NULL};
    struct bytes again = {.at = NULL};
    struct bytes opened = {.at = NULL};
    static const char *const plain[] = {"", "x", "an answer that nobody else may read"};
    (void)state;
    check_true(seals_read(&seals, two) == NULL);
    check_true(seals_read(&old, strchr(two, '\n') + 2) == NULL);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        sealed.length = again.length = opened.length = 0;
        check_true(seal_close(&seals, text(plain[i]), text("id"), &sealed));
        check_true(seal_close(&seals, text(plain[i]), text("id"), &again));
        check_true(sealed.length == again.length && memcmp(sealed.at, again.at, sealed.length) != 0);
        struct becalm_text box = {sealed.at, sealed.length};
        check_true(seal_open(&seals, text("new"), box, text("id"), &opened));
        check_true(opened.length == strlen(plain[i]));
        check_true(opened.length == 0 || memcmp(opened.at, plain[i], opened.length) == 0);
        check_true(!seal_open(&seals, text("new"), box, text("ie"), &opened));
        check_true(!seal_open(&seals, text("old"), box, text("id"), &opened));
        check_true(!seal_open(&old, text("new"), box, text("id"), &opened));
        for (size_t at = 0; at < sealed.length; at++) {
            sealed.at[at] = (char)(sealed.at[at] ^ 1);
            check_true(!seal_open(&seals, text("new"), box, text("id"), &opened));
            sealed.at[at] = (char)(sealed.at[at] ^ 1);
        }
        for (size_t length = 0; length < sealed.length; length++) {
            struct becalm_text cut = {sealed.at, length};
            check_true(!seal_open(&seals, text("new"), cut, text("id"), &opened));
        }
    }
    bytes_free(&sealed);
    bytes_free(&again);
    bytes_free(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seal__a_file_of_keys_is_read_or_refused_with_a_reason),
        cmocka_unit_test(test_seal__what_was_sealed_opens_for_the_same_id_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
