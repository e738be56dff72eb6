/* SPDX-License-Identifier: MIT */
#include <becalm/losses.h>

#include "lib/check.h"

#define TOKEN UINT64_C(1000000)
#define CAP   (10 * TOKEN)
#define BAD   UINT64_C(7)
#define GOOD  UINT64_C(8)

static struct becalm_losses losses;
static becalm_ns now;

static void begin(void)
{
    becalm_losses_init(&losses);
    now = 1000 * BECALM_S;
}

static bool may(uint64_t flow, uint64_t left)
{
    return becalm_losses_admit(&losses, flow, now, left, CAP, TOKEN);
}

static void lose(uint64_t flow, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        becalm_losses_take(&losses, flow, now);
    }
}

static void test_losses__one_client_alone_may_have_everything(void **state)
{
    (void)state;
    begin();
    lose(BAD, 100);
    check_true(may(BAD, TOKEN));
}

static void test_losses__half_is_kept_from_who_lost_most_while_others_want_retries(void **state)
{
    (void)state;
    begin();
    lose(BAD, 100);
    check_true(may(GOOD, TOKEN));
    check_true(!may(BAD, TOKEN));
    check_true(!may(BAD, 6 * TOKEN - 1));
    check_true(may(BAD, 6 * TOKEN)); /* half of it stays */
    check_true(may(GOOD, TOKEN));
}

static void test_losses__what_succeeds_is_not_lost(void **state)
{
    (void)state;
    begin();
    check_true(may(GOOD, TOKEN));
    for (unsigned i = 0; i < 100; i++) {
        check_true(may(BAD, TOKEN));
        becalm_losses_take(&losses, BAD, now);
        becalm_losses_give(&losses, BAD, now);
    }
    becalm_losses_give(&losses, BAD, now); /* not below 0 */
    check_true(may(BAD, TOKEN));
}

static void test_losses__few_of_them_say_nothing(void **state)
{
    (void)state;
    begin();
    check_true(may(GOOD, TOKEN));
    lose(BAD, 2);
    check_true(may(BAD, TOKEN));
    lose(BAD, 1);
    check_true(!may(BAD, TOKEN));
}

static void test_losses__a_client_of_many_addresses_is_all_of_them(void **state)
{
    (void)state;
    begin();
    for (uint64_t i = 0; i < 40; i++) {
        lose(100 + i, 10);
    }
    lose(GOOD, 4);
    check_true(may(GOOD, TOKEN));
    for (uint64_t i = 0; i < 40; i++) {
        check_true(!may(100 + i, TOKEN));
    }
}

static void test_losses__are_forgotten(void **state)
{
    (void)state;
    begin();
    lose(BAD, 16);
    check_true(may(GOOD, TOKEN));
    check_true(!may(BAD, TOKEN));
    now += 5 * (UINT64_C(1) << 33);
    check_true(may(GOOD, TOKEN));
    check_true(may(BAD, TOKEN)); /* half of half of ... */
    now -= 10 * BECALM_S;        /* an older clock */
    check_true(may(GOOD, TOKEN));
}

static void test_losses__an_unlimited_budget_refuses_nobody(void **state)
{
    (void)state;
    begin();
    lose(BAD, 100);
    check_true(may(GOOD, TOKEN));
    check_true(becalm_losses_admit(&losses, BAD, now, UINT64_MAX, UINT64_MAX, 0));
}

BECALM_TESTS(cmocka_unit_test(test_losses__one_client_alone_may_have_everything),
             cmocka_unit_test(test_losses__half_is_kept_from_who_lost_most_while_others_want_retries),
             cmocka_unit_test(test_losses__what_succeeds_is_not_lost),
             cmocka_unit_test(test_losses__few_of_them_say_nothing),
             cmocka_unit_test(test_losses__a_client_of_many_addresses_is_all_of_them),
             cmocka_unit_test(test_losses__are_forgotten),
             cmocka_unit_test(test_losses__an_unlimited_budget_refuses_nobody))
