/* SPDX-License-Identifier: MIT */
#include "keys/key_memory.h"

#include "lib/check.h"

#include <string.h>

/* The keys that a process has ended and remembers, for a store that loses them. */

static struct key_done done_of(uint64_t number, becalm_ns until)
{
    struct key_done done = {.status = 201, .number = number, .until = until, .where = "pay/charge"};
    memcpy(done.id, &number, sizeof number);
    return done;
}

static struct key_stamp stamp_of(struct key_memory *memory)
{
    unsigned char name[STORE_ID];
    return key_memory_stamp(memory, name);
}

static void add(struct key_memory *memory, uint64_t number, becalm_ns now, becalm_ns until)
{
    struct key_done done = done_of(number, until);
    struct key_stamp stamp = stamp_of(memory);
    key_memory_add(memory, &done, &stamp, now);
}

static bool misses(struct key_memory *memory, uint64_t count)
{
    struct key_stamp stamp = stamp_of(memory);
    return key_memory_misses(memory, &stamp, count);
}

/* Which keys are to be told, by the numbers that they had; each is told and counted from `count` on. */
static uint32_t tell_all(struct key_memory *memory, becalm_ns now, uint64_t *number, uint64_t count)
{
    struct key_done done;
    char where[STORE_WHERE];
    uint64_t which;
    uint64_t from = 0;
    uint32_t told = 0;
    while (key_memory_next(memory, &from, now, &done, &which, where)) {
        struct key_stamp stamp = stamp_of(memory);
        memcpy(&number[told++], done.id, sizeof *number);
        key_memory_told(memory, which, &stamp, ++count);
    }
    return told;
}

static void test_key_memory__what_the_store_has_lost_is_told_once(void **state)
{
    uint64_t number[200];
    struct key_memory *memory = key_memory_make(1000);
    (void)state;
    for (uint64_t i = 1; i <= 150; i++) {
        add(memory, i, 0, 100);
    }
    check_true(!misses(memory, 150) && !misses(memory, 151));
    check_eq_u64(tell_all(memory, 0, number, 0), 0);
    check_true(misses(memory, 149));
    check_eq_u64(key_memory_lost(memory, 0), 150);
    check_true(!misses(memory, 0));
    check_eq_u64(tell_all(memory, 0, number, 0), 150);
    check_eq_u64(number[0], 1);
    check_eq_u64(number[149], 150);
    check_eq_u64(tell_all(memory, 0, number, 150), 0);
    check_true(!misses(memory, 150) && misses(memory, 149));
    key_memory_drop(memory);
}

static void test_key_memory__a_number_that_was_there_before_tells_a_loss(void **state)
{
    struct key_memory *memory = key_memory_make(1000);
    (void)state;
    add(memory, 1, 0, 100);
    add(memory, 2, 0, 100);
    check_true(!misses(memory, 2));
    add(memory, 2, 0, 100); /* it has lost one, and counts from there: its count alone would not tell */
    check_true(misses(memory, 2));
    key_memory_drop(memory);
}

static void test_key_memory__answers_under_an_older_name_are_told_again(void **state)
{
    uint64_t number[10];
    unsigned char name[STORE_ID];
    unsigned char other[STORE_ID];
    struct key_done done = done_of(7, 100);
    struct key_memory *memory = key_memory_make(1000);
    struct key_stamp before = key_memory_stamp(memory, name);
    (void)state;
    check_eq_u64(key_memory_lost(memory, 0), 0);
    (void)key_memory_stamp(memory, other);
    check_true(memcmp(name, other, STORE_ID) != 0); /* a store may have any count of the older one */
    key_memory_add(memory, &done, &before, 0);
    check_true(!key_memory_misses(memory, &before, 0) && !misses(memory, 0));
    check_eq_u64(tell_all(memory, 0, number, 0), 1);
    check_eq_u64(number[0], 7);
    add(memory, 5, 0, 100);
    struct key_stamp counted = stamp_of(memory);
    (void)key_memory_lost(memory, 0);
    check_true(!key_memory_misses(memory, &counted, 0)); /* a count by the name before says nothing of this one */
    key_memory_drop(memory);
}

static void test_key_memory__keys_are_forgotten_at_the_end_of_their_time_and_beyond_the_bound(void **state)
{
    uint64_t number[200];
    struct key_memory *memory = key_memory_make(100);
    (void)state;
    for (uint64_t i = 1; i <= 130; i++) {
        add(memory, i, i, i + 60);
    }
    check_eq_u64(key_memory_lost(memory, 130), 60); /* 71 to 130: the others' time is over */
    check_eq_u64(tell_all(memory, 150, number, 0), 40);
    check_eq_u64(number[0], 91);
    for (uint64_t i = 131; i <= 330; i++) {
        add(memory, i, 150, 1000);
    }
    check_eq_u64(key_memory_lost(memory, 150), 100);
    check_eq_u64(tell_all(memory, 150, number, 0), 100);
    check_eq_u64(number[0], 231);
    check_eq_u64(number[99], 330);
    key_memory_drop(memory);
}

static void test_key_memory__where_a_key_is_held_is_remembered(void **state)
{
    struct key_done done = done_of(1, 100);
    struct key_done next;
    struct key_memory *memory = key_memory_make(10);
    struct key_stamp stamp = stamp_of(memory);
    uint64_t which;
    uint64_t from = 0;
    char where[STORE_WHERE];
    (void)state;
    key_memory_add(memory, &done, &stamp, 0);
    done.status = 0;
    done.number = 2;
    key_memory_add(memory, &done, &stamp, 0);
    (void)key_memory_lost(memory, 0);
    check_true(key_memory_next(memory, &from, 0, &next, &which, where));
    check_eq_u64(next.status, 201);
    check_eq_str(next.where, "");
    check_true(key_memory_next(memory, &from, 0, &next, &which, where));
    check_eq_u64(next.status, 0);
    check_eq_str(next.where, "pay/charge");
    check_true(!key_memory_next(memory, &from, 0, &next, &which, where));
    stamp = stamp_of(memory);
    key_memory_told(memory, 77, &stamp, 5); /* one that was forgotten meanwhile */
    check_true(misses(memory, 4));
    key_memory_drop(memory);
}

static void test_key_memory__each_process_has_a_name_of_its_own(void **state)
{
    unsigned char one[STORE_ID];
    unsigned char other[STORE_ID];
    struct key_memory *a = key_memory_make(1);
    struct key_memory *b = key_memory_make(1);
    (void)state;
    (void)key_memory_stamp(a, one);
    (void)key_memory_stamp(b, other);
    check_true(memcmp(one, other, STORE_ID) != 0);
    check_true(key_memory_use(a) == a && key_memory_use(NULL) == NULL);
    key_memory_drop(a);
    key_memory_drop(a);
    key_memory_drop(b);
    key_memory_drop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_memory__what_the_store_has_lost_is_told_once),
        cmocka_unit_test(test_key_memory__a_number_that_was_there_before_tells_a_loss),
        cmocka_unit_test(test_key_memory__answers_under_an_older_name_are_told_again),
        cmocka_unit_test(test_key_memory__keys_are_forgotten_at_the_end_of_their_time_and_beyond_the_bound),
        cmocka_unit_test(test_key_memory__where_a_key_is_held_is_remembered),
        cmocka_unit_test(test_key_memory__each_process_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
