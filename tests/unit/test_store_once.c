/* SPDX-License-Identifier: MIT */
#include "unit/store_lab.h"

#include <becalm/rand.h>

#include <stdio.h>

/* Keys that are `once`: their request is executed at most once in their time. */

static struct store_key once_by(const char *scope, uint64_t peer, const char *key, const char *body)
{
    struct store_key made = key_by(scope, peer, key, body);
    made.once = true;
    return made;
}

static struct store_key once_numbered(const char *scope, uint64_t peer, char letter, unsigned number)
{
    char name[16];
    snprintf(name, sizeof name, "%c%u", letter, number);
    return once_by(scope, peer, name, "x");
}

static void finish(struct store *store, const struct store_key *key, becalm_ns now, enum store_ending kind)
{
    struct store_end how = {.kind = kind, .result = {.status = 201, .body = text("12345678")}};
    store_end(store, key, now, &how);
}

static void test_store_once__an_unknown_outcome_holds_its_key_for_its_ttl(void **state)
{
    (void)state;
    struct store *store = store_of(10 * BECALM_S, 100, 1 << 20);
    struct store_key key = once_by("alice", 1, "k", "x");
    struct store_key other = once_by("alice", 1, "k", "y");
    struct store_held held[2];
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    check_eq_u64(store_held(store, 0, held, 2), 0);
    finish(store, &key, 5 * BECALM_S, STORE_END_UNKNOWN);
    check_eq_u64(begin(store, &key, 6 * BECALM_S), STORE_HELD);
    check_eq_u64(begin(store, &other, 6 * BECALM_S), STORE_MISMATCH);
    check_eq_u64(store_held(store, 6 * BECALM_S, held, 2), 1);
    check_eq_u64(held[0].since, 5 * BECALM_S);
    check_eq_u64(held[0].until, 15 * BECALM_S);
    assert_string_equal(held[0].where, "pay/charge");
    assert_memory_equal(held[0].id, key.id, STORE_ID);
    check_eq_u64(counts_of(store).held, 1);
    check_eq_u64(counts_of(store).unknown, 1);
    check_eq_u64(store_held(store, 15 * BECALM_S, held, 2), 0);
    check_eq_u64(begin(store, &key, 15 * BECALM_S), STORE_BEGUN);
    check_eq_u64(counts_of(store).held, 0);
    store_free(store);
}

static void test_store_once__only_what_is_held_can_be_released_by_order(void **state)
{
    (void)state;
    struct store *store = store_memory_make(&wide);
    struct store_key key = once_by("alice", 1, "k", "x");
    check_eq_u64(store_release(store, key.id, 0), STORE_NOT_FOUND);
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    check_eq_u64(store_release(store, key.id, 0), STORE_NOT_HELD);
    finish(store, &key, 0, STORE_END_UNKNOWN);
    check_eq_u64(store_release(store, key.id, 0), STORE_RELEASED);
    check_eq_u64(counts_of(store).held, 0);
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    end(store, &key, 0, "done");
    check_eq_u64(store_release(store, key.id, 0), STORE_NOT_HELD);
    check_eq_u64(begin(store, &key, 0), STORE_ANSWERED);
    store_free(store);
}

static void test_store_once__the_same_request_of_another_scope_is_not_begun(void **state)
{
    (void)state;
    static const enum store_ending ends[] = {STORE_END_ANSWER, STORE_END_LOST, STORE_END_UNKNOWN};
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct store *store = store_of(10 * BECALM_S, 100, 1 << 20);
        struct store_key key = once_by("alice", 1, "k", "x");
        struct store_key token = once_by("alice, later", 1, "k", "x");
        struct store_key tenant = once_by("bob", 1, "k", "y");
        check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
        check_eq_u64(begin(store, &token, 0), STORE_OTHER_SCOPE);
        finish(store, &key, 0, ends[i]);
        check_eq_u64(begin(store, &token, 1), STORE_OTHER_SCOPE);
        check_eq_u64(begin(store, &tenant, 1), STORE_BEGUN); /* another payload is another's own business */
        check_eq_u64(counts_of(store).other_scope, 2);
        check_eq_u64(begin(store, &token, 10 * BECALM_S), STORE_BEGUN);
        store_free(store);
    }
}

static void test_store_once__a_released_key_leaves_no_guard(void **state)
{
    (void)state;
    struct store *store = store_memory_make(&wide);
    struct store_key key = once_by("alice", 1, "k", "x");
    struct store_key token = once_by("bob", 1, "k", "x");
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    store_end(store, &key, 0, &released);
    check_eq_u64(begin(store, &token, 0), STORE_BEGUN);
    store_free(store);
}

static void test_store_once__an_answer_that_is_too_large_leaves_its_status(void **state)
{
    (void)state;
    struct store *store = store_of(60 * BECALM_S, 100, sizeof(struct store_answer) + 10);
    struct store_key key = once_by("alice", 1, "k", "x");
    struct store_ask ask;
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    end(store, &key, 0, "more than there is room for");
    check_eq_u64(store_begin(store, &key, 0, &ask), STORE_ANSWER_LOST);
    check_eq_u64(ask.status, 201);
    check_eq_u64(counts_of(store).bytes, 0);
    store_free(store);
}

static void test_store_once__a_call_that_is_longer_than_the_ttl_is_not_begun_again(void **state)
{
    (void)state;
    struct store *store = store_of(1 * BECALM_S, 100, 1 << 20);
    struct store_key key = once_by("alice", 1, "k", "x");
    struct store_key again = key;
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &again, 100 * BECALM_S), STORE_IN_FLIGHT);
    end(store, &key, 100 * BECALM_S, "late");
    check_eq_u64(begin(store, &again, 100 * BECALM_S), STORE_ANSWERED);
    check_eq_u64(begin(store, &again, 101 * BECALM_S), STORE_BEGUN);
    store_free(store); /* in flight */
}

/* Keys of other clients are refused instead, in any state. */
static void test_store_once__a_flood_pushes_no_key_out(void **state)
{
    (void)state;
    struct store *store = store_of(60 * BECALM_S, 100, 1 << 20);
    uint32_t full = 0;
    for (unsigned i = 0; i < 20; i++) {
        struct store_key key = once_numbered("alice", 1, 'k', i);
        check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
        end(store, &key, 0, "");
    }
    for (unsigned i = 0; i < 300; i++) {
        struct store_key key = once_numbered("mallory", 2, 'm', i);
        key.once = i % 2 == 0;
        enum store_verdict verdict = begin(store, &key, 0);
        full += verdict == STORE_FULL;
        if (verdict == STORE_BEGUN) {
            end(store, &key, 0, "");
        }
    }
    check_true(full > 0);
    struct store_key last = once_by("bob", 3, "k", "x");
    check_eq_u64(begin(store, &last, 0), STORE_BEGUN); /* there is room left for others */
    for (unsigned i = 0; i < 20; i++) {
        struct store_key key = once_numbered("alice", 1, 'k', i);
        check_eq_u64(begin(store, &key, 0), STORE_ANSWERED);
    }
    store_free(store);
}

/* The oldest first, and its state stays the same. */
static void test_store_once__for_want_of_bytes_a_key_loses_its_answer_alone(void **state)
{
    (void)state;
    struct store *store = store_of(60 * BECALM_S, 100, 4 * (sizeof(struct store_answer) + 14));
    for (unsigned i = 0; i < 8; i++) {
        struct store_key key = once_numbered("alice", 1, 'k', i);
        check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
        end(store, &key, 0, "12345678");
    }
    for (unsigned i = 0; i < 8; i++) {
        struct store_key key = once_numbered("alice", 1, 'k', i);
        check_eq_u64(begin(store, &key, 0), i < 4 ? STORE_ANSWER_LOST : STORE_ANSWERED);
    }
    check_eq_u64(counts_of(store).entries, 8);
    store_free(store);
}

/* Many keys at random, each several times, from several scopes, with every way to end, too little room and moving time:
 * within the time of a key nothing is begun twice, unless it ended as if it had never begun. */
static void test_store_once__no_key_begins_twice_in_its_time(void **state)
{
    (void)state;
    enum { KEYS = 64, STEPS = RUNS_OF(200000), TTL = 1000 };
    static const enum store_ending ends[] = {STORE_END_ANSWER, STORE_END_RELEASE, STORE_END_LOST, STORE_END_UNKNOWN};
    struct store *store = store_of(TTL, 50, 10 * (sizeof(struct store_answer) + 14));
    struct store_key flying[KEYS];
    bool flies[KEYS] = {false};
    becalm_ns bound[KEYS] = {0}; /* until when it may not begin again */
    uint64_t random = 4711;
    becalm_ns now = 1;
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t draw = becalm_rand_next(&random);
        unsigned n = (unsigned)(draw % KEYS);
        now += draw >> 8 & 7;
        if (flies[n] && (draw >> 16 & 1) != 0) {
            enum store_ending kind = ends[draw >> 20 & 3];
            finish(store, &flying[n], now, kind);
            flies[n] = false;
            bound[n] = kind == STORE_END_RELEASE ? now : now + TTL;
            continue;
        }
        struct store_key key = once_numbered((draw >> 24 & 3) == 0 ? "alice" : "bob", draw >> 32 & 3, 'k', n);
        if (begin(store, &key, now) == STORE_BEGUN) {
            check_true(!flies[n] && now >= bound[n]);
            flying[n] = key;
            flies[n] = true;
        }
        if ((draw >> 40 & 1023) == 0 && store_release(store, key.id, now) == STORE_RELEASED) {
            bound[n] = now;
        }
    }
    struct store_counts counts = counts_of(store);
    check_true(counts.begun > 1000 && counts.answered > 100 && counts.unknown > 100 && counts.other_scope > 100);
    check_true(counts.answer_lost > 100 && counts.full > 0 && counts.expired > 100);
    store_free(store);
}

BECALM_TESTS(cmocka_unit_test(test_store_once__an_unknown_outcome_holds_its_key_for_its_ttl),
             cmocka_unit_test(test_store_once__only_what_is_held_can_be_released_by_order),
             cmocka_unit_test(test_store_once__the_same_request_of_another_scope_is_not_begun),
             cmocka_unit_test(test_store_once__a_released_key_leaves_no_guard),
             cmocka_unit_test(test_store_once__an_answer_that_is_too_large_leaves_its_status),
             cmocka_unit_test(test_store_once__a_call_that_is_longer_than_the_ttl_is_not_begun_again),
             cmocka_unit_test(test_store_once__a_flood_pushes_no_key_out),
             cmocka_unit_test(test_store_once__for_want_of_bytes_a_key_loses_its_answer_alone),
             cmocka_unit_test(test_store_once__no_key_begins_twice_in_its_time))
