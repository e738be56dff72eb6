/* SPDX-License-Identifier: MIT */
#include "proxy/tally.h"

#include "check.h"

static void test_tally__counts_each_key_up_to_its_maximum(void **state)
{
    (void)state;
    struct tally tally;
    tally_init(&tally);
    check_eq_u64(tally_take(&tally, 1, 0), false);
    check_eq_u64(tally_take(&tally, 1, 2), true);
    check_eq_u64(tally_take(&tally, 1, 2), true);
    check_eq_u64(tally_take(&tally, 1, 2), false);
    check_eq_u64(tally_take(&tally, 65, 1), true); /* the same place of the table */
    check_eq_u64(tally_take(&tally, 65, 1), false);
    tally_give(&tally, 1);
    check_eq_u64(tally_take(&tally, 1, 2), true);
    tally_give(&tally, 1);
    tally_give(&tally, 1);
    tally_give(&tally, 65);
    check_eq_u64(tally.table.count, 0);
    tally_free(&tally);
}

static void test_tally__takes_memory_only_for_what_is_counted(void **state)
{
    (void)state;
    struct tally tally;
    tally_init(&tally);
    for (uint64_t key = 0; key < 10000; key++) {
        check_eq_u64(tally_take(&tally, key * 3, 1), true);
    }
    check_eq_u64(tally.table.count, 10000);
    for (uint64_t key = 0; key < 10000; key++) {
        check_eq_u64(tally_take(&tally, key * 3, 1), false);
        tally_give(&tally, key * 3);
    }
    check_eq_u64(tally.table.count, 0);
    tally_free(&tally);
}

BECALM_TESTS(cmocka_unit_test(test_tally__counts_each_key_up_to_its_maximum),
             cmocka_unit_test(test_tally__takes_memory_only_for_what_is_counted))
