/* SPDX-License-Identifier: MIT */
#include "http/keep_alive.h"

#include "unit/http_lab.h"

#define NONE UINT32_MAX

static void test_keep_alive__reads_what_the_server_says_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool fine;
        uint32_t timeout;
        bool spent;
    } rows[] = {
        {"timeout=5", true, 5, false},
        {"timeout=5, max=100", true, 5, false},
        {"max=100,timeout=15", true, 15, false},
        {"Timeout=5,MAX=0", true, 5, true},
        {"timeout=\"5\"", true, 5, false},
        {"timeout=7, timeout=3", true, 3, false},
        {"timeout=3, timeout=7", true, 3, false},
        {"timeout=0", true, 0, false},
        {"timeout=00005", true, 5, false},
        {"timeout=99999999999999999999999", true, BECALM__KEEP_ALIVE_MAX, false},
        {"max=5, x=y, z", true, NONE, false},
        {" timeout=5 ", true, 5, false},
        {"", false, NONE, false},
        {"timeout", false, NONE, false},
        {"timeout=", false, NONE, false},
        {"timeout=-1", false, NONE, false},
        {"timeout=5s", false, NONE, false},
        {"timeout=5.5", false, NONE, false},
        {"timeout = 5", false, NONE, false},
        {"timeout=5 max=0", false, NONE, false},
        {"timeout=5;max=0", false, NONE, false},
        {"timeout=5,", false, NONE, false},
        {",timeout=5", false, NONE, false},
        {"max=0, timeout=x", false, NONE, false},
        {"300", true, NONE, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm__keep_alive keep = {0};
        struct becalm_text bare = text_bare(rows[i].line);
        bool fine = becalm__keep_alive_read(bare, &keep);
        text_drop(bare);
        if (fine != rows[i].fine || (keep.has_timeout ? keep.timeout : NONE) != rows[i].timeout ||
            keep.spent != rows[i].spent) {
            fail_msg("%s: %d, %u, %d", rows[i].line, fine, keep.timeout, keep.spent);
        }
    }
}

static void test_keep_alive__lines_add_up(void **state)
{
    (void)state;
    struct becalm__keep_alive keep = {0};
    check_true(becalm__keep_alive_read(text("timeout=9"), &keep));
    check_true(becalm__keep_alive_read(text("timeout=4, max=0"), &keep));
    check_true(!becalm__keep_alive_read(text("timeout=1, timeout=x"), &keep));
    check_eq_u64(keep.timeout, 4);
    check_true(keep.spent);
}

BECALM_TESTS(cmocka_unit_test(test_keep_alive__reads_what_the_server_says_and_nothing_else),
             cmocka_unit_test(test_keep_alive__lines_add_up))
