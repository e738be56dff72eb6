/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* barriers */
#include "keys/store.h"

#include <pthread.h>
#include <stdio.h>

#include "check.h"

#define THREADS 8u
#define KEYS    500u

struct race {
    struct store *store;
    pthread_barrier_t start;
    BECALM_ATOMIC(uint32_t) begun[KEYS];
    BECALM_ATOMIC(uint32_t) answered;
    BECALM_ATOMIC(uint32_t) wrong;
};

static struct store_key key_number(unsigned number)
{
    char name[16];
    struct store_key key;
    int length = snprintf(name, sizeof name, "key-%u", number);
    static const struct store_secret secret;
    struct key_hash *hash = key_hash_make(&secret);
    struct store_request request = {.hash = hash, .key = {name, (size_t)length}};
    bool made = hash != NULL && store_key_make(&key, &request);
    key_hash_free(hash);
    BECALM_ASSERT(made);
    return key;
}

/* An answer carries its key's id, so that a mixed-up one shows. */
static void race_one(struct race *race, unsigned number)
{
    struct store_key key = key_number(number);
    struct store_ask ask;
    switch (store_begin(race->store, &key, number, &ask)) {
    case STORE_BEGUN: {
        struct store_end end = {.result = {.status = 200, .body = {(const char *)key.id, STORE_HASH}}};
        (void)atomic_fetch_add_explicit(&race->begun[number], 1, memory_order_relaxed);
        store_end(race->store, &key, number, &end);
        return;
    }
    case STORE_ANSWERED:
        (void)atomic_fetch_add_explicit(&race->answered, 1, memory_order_relaxed);
        if (memcmp(ask.answer->bytes, key.id, STORE_HASH) != 0) {
            (void)atomic_fetch_add_explicit(&race->wrong, 1, memory_order_relaxed);
        }
        store_answer_free(ask.answer);
        return;
    case STORE_IN_FLIGHT:
        return;
    case STORE_HELD:
    case STORE_ANSWER_LOST:
    case STORE_MISMATCH:
    case STORE_OTHER_SCOPE:
    case STORE_FULL:
    case STORE_AWAY:
    case STORE_FORGOT:
    case STORE_PASSED:
    case STORE_LATER:
        (void)atomic_fetch_add_explicit(&race->wrong, 1, memory_order_relaxed);
        return;
    }
}

static void *race_run(void *data)
{
    struct race *race = data;
    (void)pthread_barrier_wait(&race->start);
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < KEYS; i++) {
            race_one(race, i);
        }
    }
    return NULL;
}

static void race_all(struct race *race, uint32_t max_entries)
{
    pthread_t threads[THREADS];
    race->store = store_memory_make(
        &(struct store_settings){.ttl = 3600 * BECALM_S, .max_entries = max_entries, .max_bytes = 1 << 24});
    assert_non_null(race->store);
    assert_int_equal(pthread_barrier_init(&race->start, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race_run, race), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    (void)pthread_barrier_destroy(&race->start);
}

static void test_store_threads__eight_begin_each_key_exactly_once(void **state)
{
    (void)state;
    static struct race race;
    struct store_counts counts;
    race_all(&race, KEYS);
    for (unsigned i = 0; i < KEYS; i++) {
        check_eq_u64(race.begun[i], 1);
    }
    check_eq_u64(race.wrong, 0);
    store_count(race.store, &counts);
    check_eq_u64(counts.begun, KEYS);
    check_eq_u64(counts.entries, KEYS);
    check_eq_u64(counts.answered, race.answered);
    check_eq_u64(counts.begun + counts.answered + counts.in_flight, (uint64_t)THREADS * KEYS * 4);
    store_free(race.store);
}

/* With room for a fifth of them, answers are forgotten while others hold them. */
static void test_store_threads__no_answer_is_mixed_up_while_others_are_evicted(void **state)
{
    (void)state;
    static struct race race;
    struct store_counts counts;
    race_all(&race, KEYS / 5);
    check_eq_u64(race.wrong, 0);
    store_count(race.store, &counts);
    check_between_u64(counts.entries, 1, KEYS / 5);
    check_between_u64(counts.evicted, 1, UINT64_MAX);
    store_free(race.store);
}

BECALM_TESTS(cmocka_unit_test(test_store_threads__eight_begin_each_key_exactly_once),
             cmocka_unit_test(test_store_threads__no_answer_is_mixed_up_while_others_are_evicted))
