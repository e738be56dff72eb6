/* SPDX-License-Identifier: MIT */
#include "curl/map.h"

#include "allocator.h"
#include "check.h"

#if BECALM_OWN_ALLOCATOR
static bool out_of_memory;

BECALM_VISIBLE void *calloc(size_t count, size_t size)
{
    return out_of_memory ? NULL : __libc_calloc(count, size);
}
#endif

enum { MANY = 3000 };

static char key[MANY];       /* never looked into */
static uint32_t value[MANY]; /* of each, its number */

static void fill(struct map *map, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        value[i] = i;
        assert_true(map_add(map, &key[i], &value[i]));
    }
}

static void test_map__knows_nothing_at_first(void **state)
{
    (void)state;
    struct map map = {0};
    uint32_t at = 0;
    assert_null(map_find(&map, &key[0]));
    assert_null(map_left(&map, &at));
    map_free(&map);
}

static void test_map__grows_and_stays_at_most_half_full(void **state)
{
    (void)state;
    struct map map = {0};
    for (uint32_t i = 0; i < MANY; i++) {
        value[i] = i;
        assert_true(map_add(&map, &key[i], &value[i]));
        check_eq_u64(map.count, i + 1);
        check_true(2 * map.count < map.place_count);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        assert_ptr_equal(map_find(&map, &key[i]), &value[i]);
    }
    map_free(&map);
    assert_null(map_find(&map, &key[0]));
}

/* An entry behind a removed one is still found, wherever its run of places began. */
static void test_map__finds_who_has_moved(void **state)
{
    (void)state;
    struct map map = {0};
    fill(&map, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t removed = i * 7919 % MANY; /* a prime: each once */
        map_remove(&map, &key[removed]);
        assert_null(map_find(&map, &key[removed]));
        for (uint32_t j = i + 1; j < i + 20 && j < MANY; j++) { /* a few of the remaining entries */
            uint32_t left = j * 7919 % MANY;
            assert_ptr_equal(map_find(&map, &key[left]), &value[left]);
        }
    }
    check_eq_u64(map.count, 0);
    map_free(&map);
}

/* In a table this small and full, runs of places go around its end. */
static void test_map__finds_who_has_moved_around_the_end(void **state)
{
    (void)state;
    for (uint32_t first = 0; first + 7 <= MANY; first++) {
        struct map map = {0};
        for (uint32_t i = first; i < first + 7; i++) {
            assert_true(map_add(&map, &key[i], &value[i]));
        }
        check_eq_u64(map.place_count, 16);
        for (uint32_t i = first; i < first + 7; i++) {
            map_remove(&map, &key[i]);
            for (uint32_t j = first; j < first + 7; j++) {
                assert_ptr_equal(map_find(&map, &key[j]), j > i ? &value[j] : NULL);
            }
        }
        map_free(&map);
    }
}

static void test_map__gives_out_each_that_is_left_once(void **state)
{
    (void)state;
    struct map map = {0};
    static bool seen[MANY];
    uint32_t at = 0;
    fill(&map, MANY);
    for (uint32_t *left; (left = map_left(&map, &at)) != NULL;) {
        check_true(!seen[*left]);
        seen[*left] = true;
        map_remove(&map, &key[*left]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        check_true(seen[i]);
    }
    map_free(&map);
}

static void test_map__without_memory_keeps_what_it_has(void **state)
{
    (void)state;
#if BECALM_OWN_ALLOCATOR
    struct map map = {0};
    out_of_memory = true;
    check_true(!map_add(&map, &key[0], &value[0]));
    out_of_memory = false;
    fill(&map, 7);
    out_of_memory = true;
    check_true(!map_add(&map, &key[7], &value[7]));
    check_eq_u64(map.count, 7);
    assert_null(map_find(&map, &key[7]));
    for (uint32_t i = 0; i < 7; i++) {
        assert_ptr_equal(map_find(&map, &key[i]), &value[i]);
    }
    map_remove(&map, &key[3]);
    check_true(map_add(&map, &key[7], &value[7])); /* whose room it was */
    out_of_memory = false;
    map_free(&map);
#else
    skip();
#endif
}

BECALM_TESTS(cmocka_unit_test(test_map__knows_nothing_at_first),
             cmocka_unit_test(test_map__grows_and_stays_at_most_half_full),
             cmocka_unit_test(test_map__finds_who_has_moved),
             cmocka_unit_test(test_map__finds_who_has_moved_around_the_end),
             cmocka_unit_test(test_map__gives_out_each_that_is_left_once),
             cmocka_unit_test(test_map__without_memory_keeps_what_it_has))
