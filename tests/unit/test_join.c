/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "join/join.h"

#include <pthread.h>
#include <string.h>

#define SECOND BECALM_S

static const struct join_keys one = {1, {7}};
static const struct join_keys other = {1, {7 + 1024}}; /* in the same row */
static const struct join_keys both = {2, {99, 7}};
static const struct join_mark spent = {BECALM_MARK_SPENT, BECALM_WHY_BUDGET_EMPTY};

static void enter(struct join_table *table, const struct join_keys *keys, uint64_t peer, becalm_ns deadline_at)
{
    join_enter(table, keys, &(struct join_request){.peer = peer, .deadline_at = deadline_at}, SECOND);
}

static void test_join__an_empty_table_knows_nothing(void **state)
{
    (void)state;
    struct join_table *table = join_table_make();
    check_eq_u64(join_deadline(table, &one, SECOND), BECALM_NEVER);
    check_eq_u64(join_mark(table, &one, SECOND).kind, BECALM_MARK_NONE);
    join_note(table, &one, spent, SECOND);
    join_leave(table, &one);
    check_eq_u64(join_mark(table, &one, SECOND).kind, BECALM_MARK_NONE);
    join_table_free(table);
}

static void test_join__a_call_inherits_the_deadline_and_leaves_its_mark(void **state)
{
    (void)state;
    struct join_table *table = join_table_make();
    enter(table, &one, 1, 5 * SECOND);
    check_eq_u64(join_deadline(table, &other, SECOND), BECALM_NEVER);
    check_eq_u64(join_deadline(table, &both, 2 * SECOND), 5 * SECOND); /* by any of its ids */
    join_note(table, &both, spent, 2 * SECOND);
    check_eq_u64(join_mark(table, &one, 2 * SECOND).kind, BECALM_MARK_SPENT);
    check_eq_u64(join_mark(table, &one, 2 * SECOND).reason, BECALM_WHY_BUDGET_EMPTY);
    join_leave(table, &one);
    check_eq_u64(join_deadline(table, &one, 2 * SECOND), BECALM_NEVER);
    enter(table, &one, 1, 5 * SECOND); /* the next request inherits none of it */
    check_eq_u64(join_mark(table, &one, 2 * SECOND).kind, BECALM_MARK_NONE);
    join_table_free(table);
}

static void test_join__an_entry_ends_with_its_deadline_and_without_one_after_a_minute(void **state)
{
    (void)state;
    struct join_table *table = join_table_make();
    enter(table, &one, 1, 5 * SECOND);
    check_eq_u64(join_deadline(table, &one, 5 * SECOND), BECALM_NEVER);
    enter(table, &other, 1, BECALM_NEVER);
    join_note(table, &other, spent, 60 * SECOND);
    check_eq_u64(join_mark(table, &other, 60 * SECOND).kind, BECALM_MARK_SPENT);
    check_eq_u64(join_mark(table, &other, 61 * SECOND).kind, BECALM_MARK_NONE);
    join_table_free(table);
}

static void test_join__several_requests_have_the_latest_deadline_and_no_mark(void **state)
{
    (void)state;
    struct join_table *table = join_table_make();
    enter(table, &one, 1, 9 * SECOND);
    enter(table, &one, 1, 5 * SECOND);
    check_eq_u64(join_deadline(table, &one, 2 * SECOND), 9 * SECOND);
    join_note(table, &one, spent, 2 * SECOND);
    check_eq_u64(join_mark(table, &one, 2 * SECOND).kind, BECALM_MARK_NONE);
    join_leave(table, &one);
    check_eq_u64(join_deadline(table, &one, 2 * SECOND), 9 * SECOND); /* the other entry is still there */
    join_leave(table, &one);
    check_eq_u64(join_deadline(table, &one, 2 * SECOND), BECALM_NEVER);
    join_table_free(table);
}

static void test_join__an_id_that_strangers_share_proves_nothing(void **state)
{
    (void)state;
    struct join_table *table = join_table_make();
    enter(table, &one, 1, 5 * SECOND);
    /* a caller that claims more time than it has, or tries to stop retries of another call */
    enter(table, &one, 2, 500 * SECOND);
    check_eq_u64(join_deadline(table, &one, 2 * SECOND), BECALM_NEVER);
    join_note(table, &one, spent, 2 * SECOND);
    check_eq_u64(join_mark(table, &one, 2 * SECOND).kind, BECALM_MARK_NONE);
    join_enter(table, &other, &(struct join_request){1, true, 5 * SECOND}, SECOND);
    join_enter(table, &other, &(struct join_request){2, true, 6 * SECOND}, SECOND); /* two of our own gateways */
    check_eq_u64(join_deadline(table, &other, 2 * SECOND), 6 * SECOND);
    join_enter(table, &other, &(struct join_request){3, false, 7 * SECOND}, SECOND);
    check_eq_u64(join_deadline(table, &other, 2 * SECOND), BECALM_NEVER);
    join_table_free(table);
}

static void test_join__the_table_never_grows_and_who_ends_first_makes_room(void **state)
{
    (void)state;
    struct join_table *table = join_table_make();
    for (uint64_t i = 1; i <= 20; i++) { /* all in one row */
        enter(table, &(struct join_keys){1, {7 + 1024 * i}}, 1, (1 + i) * SECOND);
    }
    for (uint64_t i = 1; i <= 20; i++) {
        becalm_ns found = join_deadline(table, &(struct join_keys){1, {7 + 1024 * i}}, SECOND);
        check_eq_u64(found, i <= 12 ? BECALM_NEVER : (1 + i) * SECOND);
    }
    join_table_free(table);
}

static void check_id(enum join_field field, const char *value, const char *id)
{
    struct becalm_text found = join_id(field, (struct becalm_text){value, strlen(value)});
    check_eq_u64(found.length, strlen(id));
    assert_memory_equal(found.length == 0 ? "" : found.at, id, found.length);
}

static void test_join__what_was_found_is_counted(void **state)
{
    (void)state;
    static const struct join_keys none = {0, {0}};
    struct join_table *table = join_table_make();
    uint64_t counts[JOIN_COUNTS];
    (void)join_deadline(table, &none, SECOND);
    (void)join_deadline(table, &one, SECOND); /* unknown */
    enter(table, &one, 1, 3 * SECOND);
    (void)join_deadline(table, &one, 2 * SECOND);
    (void)join_deadline(table, &both, 2 * SECOND); /* by the second of its ids */
    (void)join_deadline(table, &one, 3 * SECOND);  /* expired */
    enter(table, &one, 1, 9 * SECOND);
    enter(table, &one, 2, 9 * SECOND);
    (void)join_deadline(table, &one, 2 * SECOND); /* strange */
    for (uint64_t i = 1; i <= 8; i++) {           /* the row has room for seven more */
        enter(table, &(struct join_keys){1, {7 + 1024 * i}}, 1, 9 * SECOND);
    }
    for (uint32_t i = 0; i < JOIN_COUNTS; i++) {
        counts[i] = join_count(table, (enum join_count)i);
    }
    assert_int_equal(counts[JOIN_NO_ID], 1);
    assert_int_equal(counts[JOIN_UNKNOWN], 1);
    assert_int_equal(counts[JOIN_JOINED], 2);
    assert_int_equal(counts[JOIN_EXPIRED], 1);
    assert_int_equal(counts[JOIN_STRANGE], 1);
    assert_int_equal(counts[JOIN_PUSHED_OUT], 1);
    join_table_free(table);
}

static void test_join__what_of_a_field_is_the_id(void **state)
{
    (void)state;
    static const char trace[] = "0af7651916cd43dd8448eb211c80319c";
    check_id(JOIN_TRACEPARENT, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", trace);
    check_id(JOIN_TRACEPARENT, "00-00000000000000000000000000000000-b7ad6b7169203331-01", "");
    check_id(JOIN_TRACEPARENT, "00-0af7651916cd43dd8448eb211c80319c", "");
    check_id(JOIN_TRACEPARENT, "00+0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "");
    check_id(JOIN_TRACEPARENT, "", "");
    check_id(JOIN_B3, "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1", trace);
    check_id(JOIN_B3, trace, trace); /* X-B3-TraceId */
    check_id(JOIN_B3, "0", "");
    check_id(JOIN_CLOUD_TRACE, "0af7651916cd43dd8448eb211c80319c/123;o=1", trace);
    check_id(JOIN_REQUEST_ID, "any-thing", "any-thing");
}

/* Eight threads in few rows: no entry outlives its requests, and every deadline that is found is one that was given. */
static void *busy(void *data)
{
    struct join_table *table = data;
    for (uint64_t i = 0; i < 20000; i++) {
        struct join_keys keys = {1, {1 + i % 5}};
        join_enter(table, &keys, &(struct join_request){1, true, 100 * SECOND}, SECOND);
        becalm_ns found = join_deadline(table, &keys, SECOND);
        assert_true(found == BECALM_NEVER || found == 100 * SECOND);
        join_note(table, &keys, spent, SECOND);
        (void)join_mark(table, &keys, SECOND);
        join_leave(table, &keys);
    }
    return NULL;
}

static void test_join__threads_share_it_and_none_waits(void **state)
{
    (void)state;
    pthread_t thread[8];
    struct join_table *table = join_table_make();
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, busy, table), 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        pthread_join(thread[i], NULL);
    }
    join_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join__an_empty_table_knows_nothing),
        cmocka_unit_test(test_join__a_call_inherits_the_deadline_and_leaves_its_mark),
        cmocka_unit_test(test_join__an_entry_ends_with_its_deadline_and_without_one_after_a_minute),
        cmocka_unit_test(test_join__several_requests_have_the_latest_deadline_and_no_mark),
        cmocka_unit_test(test_join__an_id_that_strangers_share_proves_nothing),
        cmocka_unit_test(test_join__the_table_never_grows_and_who_ends_first_makes_room),
        cmocka_unit_test(test_join__what_was_found_is_counted),
        cmocka_unit_test(test_join__what_of_a_field_is_the_id),
        cmocka_unit_test(test_join__threads_share_it_and_none_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
