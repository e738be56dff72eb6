/* SPDX-License-Identifier: MIT */
#include <becalm/config.h>

#include "check.h"

static struct becalm_diags diags; /* 80 KiB */

static int start(void **state)
{
    (void)state;
    memset(&diags, 0, sizeof diags);
    return 0;
}

static void check_line(const struct becalm_diag *diag, const char *expected)
{
    char text[1024];
    check_eq_u64(becalm_diag_write(diag, text, sizeof text), strlen(expected));
    check_eq_str(text, expected);
}

static void test_diag__a_zeroed_list_is_empty(void **state)
{
    (void)state;
    check_eq_u64(diags.count, 0);
    check_eq_u64(diags.errors, 0);
}

static void test_diag__is_one_line_with_place_severity_message_and_code(void **state)
{
    (void)state;
    becalm_diag_add(&diags, BECALM_ERROR, "a.yaml", 3, 7, "unknown-key", "there is no %s; is it %s?", "maxRetry",
                    "maxRetries");
    becalm_diag_add(&diags, BECALM_WARNING, "a.yaml", 4, 1, "no-jitter", "no jitter");
    check_eq_u64(diags.count, 2);
    check_eq_u64(diags.errors, 1);
    check_eq_u64(diags.warnings, 1);
    check_line(&diags.diag[0], "a.yaml:3:7: error: there is no maxRetry; is it maxRetries? [unknown-key]");
    check_line(&diags.diag[1], "a.yaml:4:1: warning: no jitter [no-jitter]");
}

static void test_diag__without_a_line_or_a_code_leaves_them_out(void **state)
{
    (void)state;
    becalm_diag_add(&diags, BECALM_ERROR, "a.yaml", 0, 0, "io", "can't read it");
    becalm_diag_add(&diags, BECALM_ERROR, "a.yaml", 1, 1, NULL, "empty");
    becalm_diag_add(&diags, BECALM_ERROR, NULL, 0, 0, NULL, "empty");
    check_line(&diags.diag[0], "a.yaml: error: can't read it [io]");
    check_line(&diags.diag[1], "a.yaml:1:1: error: empty");
    check_line(&diags.diag[2], ": error: empty");
}

static void test_diag__past_the_maximum_only_counts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BECALM_DIAGS_MAX + 7; i++) {
        becalm_diag_add(&diags, BECALM_ERROR, "f", i + 1, 1, "c", "number %u", (unsigned)i);
    }
    becalm_diag_add(&diags, BECALM_WARNING, "f", 1, 1, "c", "late");
    check_eq_u64(diags.count, BECALM_DIAGS_MAX);
    check_eq_u64(diags.errors, BECALM_DIAGS_MAX + 7);
    check_eq_u64(diags.warnings, 1);
    check_line(&diags.diag[99], "f:100:1: error: number 99 [c]");
}

static void test_diag__cuts_a_long_message_between_characters(void **state)
{
    (void)state;
    char text[2000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2) {
        memcpy(text + i, "\xc3\xa9", 3);
    }
    becalm_diag_add(&diags, BECALM_ERROR, text, 1, 1, "c", "%s", text);
    becalm_diag_add(&diags, BECALM_ERROR, text, 1, 1, "c", "x%s", text);
    for (uint32_t i = 0; i < 2; i++) {
        const char *message = diags.diag[i].message;
        size_t length = strlen(message);
        check_between_u64(length, sizeof diags.diag[i].message - 3, sizeof diags.diag[i].message - 1);
        check_eq_str(message + length - 3, "...");
        check_true((unsigned char)message[length - 4] == 0xa9);
    }
    check_between_u64(strlen(diags.diag[0].file), 250, 255);
}

static void test_diag__escapes_control_characters(void **state)
{
    (void)state;
    becalm_diag_add(&diags, BECALM_ERROR, "a\x1b[31m.yaml", 1, 1, "c", "%s",
                    "x\x1b]0;\a\n\x7f\xc2\x9b"
                    "31m \xc3\xa9\xc2");
    check_line(&diags.diag[0], "a\\x1b[31m.yaml:1:1: error: x\\x1b]0;\\x07\\x0a\\x7f\\u009b31m \xc3\xa9\xc2 [c]");
}

static void test_diag__escapes_what_turns_or_hides_text(void **state)
{
    (void)state;
    /* A mark that turns the direction, one that isolates, a blank without width, a separator of lines, a tag. */
    becalm_diag_add(&diags, BECALM_ERROR, "a.yaml", 1, 1, "c", "%s",
                    "a\xe2\x80\xae"
                    "b\xe2\x81\xa6"
                    "c\xe2\x80\x8b"
                    "d\xe2\x80\xa8"
                    "e\xf3\xa0\x81\x81"
                    "f\xe2\x80\x94\xf0\x9f\x90\x98");
    check_line(&diags.diag[0], "a.yaml:1:1: error: a\\u202eb\\u2066c\\u200bd\\u2028e\\U000e0041f"
                               "\xe2\x80\x94\xf0\x9f\x90\x98 [c]");
}

static void test_diag__cuts_no_escape(void **state)
{
    (void)state;
    char text[sizeof diags.diag[0].message];
    for (size_t before = 0; before < 6; before++) { /* each way in which an escape may cross the end */
        memset(&diags, 0, sizeof diags);
        memset(text, 'x', before);
        memset(text + before, '\a', sizeof text - 1 - before);
        text[sizeof text - 1] = '\0';
        becalm_diag_add(&diags, BECALM_ERROR, "a.yaml", 1, 1, "c", "%s", text);
        const char *message = diags.diag[0].message;
        size_t length = strlen(message);
        check_between_u64(length, sizeof text - 4 - 3, sizeof text - 1);
        check_eq_str(message + length - 7, "\\x07...");
    }
}

static void test_diag__write_is_cut_at_the_size(void **state)
{
    (void)state;
    char text[9] = "xxxxxxxx";
    becalm_diag_add(&diags, BECALM_ERROR, "a.yaml", 3, 7, "c", "m");
    check_eq_u64(becalm_diag_write(&diags.diag[0], text, 0), 0);
    check_eq_str(text, "xxxxxxxx");
    check_eq_u64(becalm_diag_write(&diags.diag[0], text, sizeof text), 8);
    check_eq_str(text, "a.yaml:3");
    check_eq_u64(becalm_diag_write(&diags.diag[0], text, 1), 0);
    check_eq_str(text, "");
}

BECALM_TESTS(cmocka_unit_test_setup(test_diag__a_zeroed_list_is_empty, start),
             cmocka_unit_test_setup(test_diag__is_one_line_with_place_severity_message_and_code, start),
             cmocka_unit_test_setup(test_diag__without_a_line_or_a_code_leaves_them_out, start),
             cmocka_unit_test_setup(test_diag__past_the_maximum_only_counts, start),
             cmocka_unit_test_setup(test_diag__cuts_a_long_message_between_characters, start),
             cmocka_unit_test_setup(test_diag__escapes_control_characters, start),
             cmocka_unit_test_setup(test_diag__escapes_what_turns_or_hides_text, start),
             cmocka_unit_test_setup(test_diag__cuts_no_escape, start),
             cmocka_unit_test_setup(test_diag__write_is_cut_at_the_size, start))
