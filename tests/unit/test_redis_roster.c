/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis/roster.h"

#include "lib/check.h"

static void test_redis_roster__a_line_is_read_field_by_field(void **state)
{
    (void)state;
    static const char line[] = "0a1b 1234 pod-7 0.1.0 89abcdef 50000 9500 3 1 77 40000 8000";
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
    check_eq_u64(entry.shared_calls_milli, 40000);
    check_eq_u64(entry.shared_retries_milli, 8000);
}

/* A fleet has instances of two versions while it is renewed, and all of them are to be seen. */
static void test_redis_roster__other_versions_tell_less_or_more(void **state)
{
    (void)state;
    static const char older[] = "0a1b 1234 pod-7 0.1.0 89abcdef 50000 9500 3 1 77";
    static const char newer[] = "0a1b 1234 pod-7 0.9.0 89abcdef 50000 9500 3 1 77 40000 8000 what=else \"?";
    struct roster_entry entry;
    check_true(roster_parse(older, sizeof older - 1, &entry));
    check_eq_u64(entry.shared_calls_milli, 50000);
    check_eq_u64(entry.shared_retries_milli, 9500);
    check_true(roster_parse(newer, sizeof newer - 1, &entry));
    check_eq_str(entry.version, "0.9.0");
    check_eq_u64(entry.shared_calls_milli, 40000);
    check_eq_u64(entry.shared_retries_milli, 8000);
}

static void test_redis_roster__rates_are_those_since_the_last_time(void **state)
{
    (void)state;
    struct roster_rates rates = {.begun_at = BECALM_S, .told_at = BECALM_S};
    struct roster_totals totals = {.calls = 0};
    struct roster_entry entry = {.budgets = 0};
    roster_count(&totals, 100, 20, true);
    roster_count(&totals, 50, 30, false);
    roster_rates(&rates, 3 * BECALM_S, &totals, &entry);
    check_eq_u64(entry.calls_milli, 75000);
    check_eq_u64(entry.retries_milli, 25000);
    check_eq_u64(entry.shared_calls_milli, 50000);
    check_eq_u64(entry.shared_retries_milli, 10000);
    check_eq_u64(entry.up_seconds, 2);
    roster_rates(&rates, 5 * BECALM_S, &totals, &entry);
    check_eq_u64(entry.calls_milli, 0);
    /* Another policy with more shared budgets: earlier counts do not belong to these seconds. */
    roster_count(&totals, 7000, 900, true);
    roster_rates_begin(&rates, 6 * BECALM_S, &totals);
    roster_count(&totals, 10, 1, true);
    roster_rates(&rates, 7 * BECALM_S, &totals, &entry);
    check_eq_u64(entry.shared_calls_milli, 10000);
    check_eq_u64(entry.shared_retries_milli, 1000);
    /* And one in which a target is gone. */
    totals = (struct roster_totals){.calls = 5};
    roster_rates(&rates, 8 * BECALM_S, &totals, &entry);
    check_eq_u64(entry.calls_milli, 0);
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
        "a 1 b c d 1 2 3 4 5 6 x",
        "a 1 b c d 1 2 3 4 5 6 1234567890123456 8",
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
             cmocka_unit_test(test_redis_roster__other_versions_tell_less_or_more),
             cmocka_unit_test(test_redis_roster__rates_are_those_since_the_last_time),
             cmocka_unit_test(test_redis_roster__what_nobody_of_us_would_tell_is_left_out))
