/* SPDX-License-Identifier: MIT */
#include <becalm/version.h>

#include <stdio.h>

#include "check.h"

static void test_version__string_numbers_and_function_agree(void **state)
{
    (void)state;
    char numbers[32];
    snprintf(numbers, sizeof numbers, "%d.%d.%d", BECALM_VERSION_MAJOR, BECALM_VERSION_MINOR, BECALM_VERSION_PATCH);
    check_eq_str(BECALM_VERSION, numbers);
    check_eq_str(becalm_version(), numbers);
}

static void test_version__number_orders_versions(void **state)
{
    (void)state;
    check_true(BECALM_VERSION_MINOR < 100 && BECALM_VERSION_PATCH < 100); /* else the next line would not hold */
    check_eq_u64(BECALM_VERSION_NUMBER,
                 BECALM_VERSION_MAJOR * 10000 + BECALM_VERSION_MINOR * 100 + BECALM_VERSION_PATCH);
}

BECALM_TESTS(cmocka_unit_test(test_version__string_numbers_and_function_agree),
             cmocka_unit_test(test_version__number_orders_versions))
