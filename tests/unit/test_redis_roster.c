/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis/roster.h"

#include "lib/check.h"

static void test_redis_roster__a_line_is_read_field_by_field(void **state)
{
    (void)state;
    static const char line[] = "0a1b 1234 pod-7 0.1.0 89abcdef 50000 9500 3 1 77";
    struct roster_entry entry;
    check_true(roster_parse(line, sizeof line - 1, &entry));
    check_eq_str(entry.id, "0a1b");
    check_eq_u64(entry.age_ms, 1234);
    check_eq_str(entry.name, "pod-7");
    check_eq_str(entry.version, "0.1.0");
    check_eq_str(entry.policy, "89abcdef");
    check_eq_u64(entry.calls_milli, 50000);
    check_eq_u64(entry.retries_milli, 9500);
    check_eq_u64(entry.budgets, 3);
    check_eq_u64(entry.degraded, 1);
    check_eq_u64(entry.up_seconds, 77);
}

static void test_redis_roster__what_nobody_of_us_would_tell_is_left_out(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "a",
        "a 1 b c d 1 2 3 4",
        "a 1 b c d 1 2 3 4 5 6",
        "a 1 b c d 1 2 3 4 5 ",
        "a x b c d 1 2 3 4 5",
        "a -1 b c d 1 2 3 4 5",
        "a 1 \"b\" c d 1 2 3 4 5",
        "a 1 \033[2J c d 1 2 3 4 5",
        "a 1  c d 1 2 3 4 5",
        "a 1 b c d 1 2 3 4 1234567890123456",
        "a 1 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb c d 1 2 3 4 5",
    };
    struct roster_entry entry;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (roster_parse(wrong[i], strlen(wrong[i]), &entry)) {
            print_error("%s is taken\n", wrong[i]);
            fail();
        }
    }
}

BECALM_TESTS(cmocka_unit_test(test_redis_roster__a_line_is_read_field_by_field),
             cmocka_unit_test(test_redis_roster__what_nobody_of_us_would_tell_is_left_out))
