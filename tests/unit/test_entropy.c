/* SPDX-License-Identifier: MIT */
#include "run/entropy.h"

#include "check.h"

#include <string.h>

static void test_entropy__draws_differ_in_every_byte(void **state)
{
    (void)state;
    /* Of 16 draws some byte would be the same in all only if it was not written: once in 2^113. */
    unsigned char bytes[16][8];
    memset(bytes, 0, sizeof bytes);
    for (int i = 0; i < 16; i++) {
        check_true(i % 2 == 0 ? entropy_fill(bytes[i], 8) : entropy_fill_now(bytes[i], 8));
    }
    for (int at = 0; at < 8; at++) {
        bool differs = false;
        for (int i = 1; i < 16; i++) {
            differs = differs || bytes[i][at] != bytes[0][at];
        }
        check_true(differs);
    }
}

static void test_entropy__two_seeds_differ(void **state)
{
    (void)state;
    check_true(entropy_seed() != entropy_seed());
}

BECALM_TESTS(cmocka_unit_test(test_entropy__draws_differ_in_every_byte),
             cmocka_unit_test(test_entropy__two_seeds_differ))
