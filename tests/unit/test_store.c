/* SPDX-License-Identifier: MIT */
#include "unit/store_lab.h"

static void test_store__an_empty_one_begins_and_can_be_freed(void **state)
{
    (void)state;
    struct store *store = store_memory_make(&wide);
    struct store_key key = key_of("k", "x");
    check_eq_u64(counts_of(store).entries, 0);
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    check_eq_u64(counts_of(store).entries, 1);
    store_free(store); /* with a key in flight */
    store_free(NULL);
    store_answer_free(NULL);
}

static void test_store__a_key_in_flight_is_refused_and_then_answered(void **state)
{
    (void)state;
    struct store *store = store_memory_make(&wide);
    struct store_key first = key_of("k", "x");
    struct store_key second = key_of("k", "x");
    struct store_ask ask;
    check_eq_u64(begin(store, &first, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &second, 0), STORE_IN_FLIGHT);
    end(store, &first, 1, "done");
    check_eq_u64(store_begin(store, &second, 2, &ask), STORE_ANSWERED);
    store_free(store); /* a key with an answer keeps it */
    check_eq_u64(ask.answer->status, 201);
    check_eq_u64(ask.answer->fields_length, 6);
    check_eq_u64(ask.answer->body_length, 4);
    assert_memory_equal(ask.answer->bytes, "a: b\r\ndone", 10);
    store_answer_free(ask.answer);
}

static void test_store__another_payload_is_a_mismatch_in_flight_or_not(void **state)
{
    (void)state;
    struct store *store = store_memory_make(&wide);
    struct store_key key = key_of("k", "x");
    struct store_key other = key_of("k", "y");
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &other, 0), STORE_MISMATCH);
    end(store, &key, 0, "");
    check_eq_u64(begin(store, &other, 0), STORE_MISMATCH);
    check_eq_u64(begin(store, &key, 0), STORE_ANSWERED);
    check_eq_u64(counts_of(store).mismatch, 2);
    store_free(store);
}

static void test_store__a_released_key_can_begin_again_with_any_payload(void **state)
{
    (void)state;
    struct store *store = store_memory_make(&wide);
    struct store_key key = key_of("k", "x");
    struct store_key other = key_of("k", "y");
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    store_end(store, &key, 0, &released);
    check_eq_u64(counts_of(store).entries, 0);
    check_eq_u64(counts_of(store).released, 1);
    check_eq_u64(begin(store, &other, 0), STORE_BEGUN);
    store_free(store);
}

static void test_store__only_answers_worth_it_are_kept(void **state)
{
    (void)state;
    static const uint32_t kept[] = {200, 201, 204, 301, 400, 402, 404, 409, 422, 499};
    static const uint32_t dropped[] = {401, 403, 429, 500, 502, 503, 504, 599};
    for (size_t i = 0; i < COUNT(kept); i++) {
        check_true(store_keeps(kept[i], false) && store_keeps(kept[i], true));
    }
    for (size_t i = 0; i < COUNT(dropped); i++) {
        check_true(!store_keeps(dropped[i], false));
    }
}

static void test_store__every_part_of_a_key_counts_and_absent_is_not_empty(void **state)
{
    (void)state;
    static const char *const rows[][8] = {
        {"t", NULL, "k", NULL, NULL, "POST", "/", "b"},  {"u", NULL, "k", NULL, NULL, "POST", "/", "b"},
        {"t", NULL, "l", NULL, NULL, "POST", "/", "b"},  {"t", NULL, "k", "a", NULL, "POST", "/", "b"},
        {"t", NULL, "k", NULL, "a", "POST", "/", "b"},   {"t", NULL, "k", "", NULL, "POST", "/", "b"},
        {"tk", NULL, "", NULL, NULL, "POST", "/", "b"},  {"t", NULL, "k", NULL, NULL, "PUT", "/", "b"},
        {"t", NULL, "k", NULL, NULL, "POST", "/x", "b"}, {"t", NULL, "k", NULL, NULL, "POST", "/", "c"},
        {"t", NULL, "k", NULL, NULL, "POST", "/b", ""},  {"t", "", "k", NULL, NULL, "POST", "/", "b"},
        {"t", "k", "k", NULL, NULL, "POST", "/", "b"},   {"t", NULL, "k", "a", "b", "POST", "/", "b"},
        {"t", NULL, "k", "ab", "", "POST", "/", "b"}};
    struct store_key keys[COUNT(rows)];
    struct key_hash *hash = hash_of("");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const *r = rows[i];
        const struct becalm_text scope[] = {text(r[3]), text(r[4])};
        struct store_request request = {.hash = hash,
                                        .service = text(r[0]),
                                        .endpoint = text(r[1]),
                                        .key = text(r[2]),
                                        .scope = scope,
                                        .scope_count = COUNT(scope),
                                        .peer = i,
                                        .method = text(r[5]),
                                        .path = text(r[6]),
                                        .body = text(r[7])};
        check_true(store_key_make(&keys[i], &request));
        for (size_t j = 0; j < i; j++) {
            bool same_id = memcmp(keys[i].id, keys[j].id, STORE_HASH) == 0;
            bool same_payload = memcmp(keys[i].fingerprint, keys[j].fingerprint, STORE_HASH) == 0;
            check_true(!same_id || !same_payload);
            check_true(i != 1 || (!same_id && same_payload));
            check_true(i != 9 || j != 0 || (same_id && !same_payload));
        }
    }
    key_hash_free(hash);
}

static void test_store__an_answer_lives_for_its_ttl_from_its_end(void **state)
{
    (void)state;
    struct store *store = store_of(10 * BECALM_S, 100, 1 << 20);
    struct store_key key = key_of("k", "x");
    check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    end(store, &key, 5 * BECALM_S, "");
    check_eq_u64(begin(store, &key, 15 * BECALM_S - 1), STORE_ANSWERED);
    check_eq_u64(begin(store, &key, 15 * BECALM_S), STORE_BEGUN);
    check_eq_u64(counts_of(store).expired, 1);
    store_free(store);
}

static void test_store__a_key_in_flight_expires_too_and_its_late_end_harms_nobody(void **state)
{
    (void)state;
    struct store *store = store_of(10 * BECALM_S, 100, 1 << 20);
    struct store_key lost = key_of("k", "x");
    struct store_key next = key_of("k", "x");
    check_eq_u64(begin(store, &lost, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &next, 10 * BECALM_S), STORE_BEGUN);
    store_end(store, &lost, 11 * BECALM_S, &released); /* it has been given to another call */
    struct store_key third = key_of("k", "x");
    check_eq_u64(begin(store, &third, 11 * BECALM_S), STORE_IN_FLIGHT);
    end(store, &lost, 11 * BECALM_S, "old");
    check_eq_u64(begin(store, &third, 11 * BECALM_S), STORE_IN_FLIGHT);
    end(store, &next, 12 * BECALM_S, "new");
    check_eq_u64(begin(store, &third, 12 * BECALM_S), STORE_ANSWERED);
    struct store_key gone = key_of("gone", "x");
    check_eq_u64(begin(store, &gone, 12 * BECALM_S), STORE_BEGUN);
    check_eq_u64(begin(store, &third, 30 * BECALM_S), STORE_BEGUN); /* which sweeps */
    end(store, &gone, 30 * BECALM_S, "nobody has it");
    check_eq_u64(counts_of(store).entries, 1);
    store_free(store);
}

static void test_store__expired_entries_leave_without_being_asked_for(void **state)
{
    (void)state;
    struct store *store = store_of(10 * BECALM_S, 100, 1 << 20);
    for (unsigned i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        struct store_key key = key_of(name, "x");
        check_eq_u64(begin(store, &key, i), STORE_BEGUN);
        end(store, &key, i, "");
    }
    struct store_key other = key_of("z", "x");
    check_eq_u64(begin(store, &other, 20 * BECALM_S), STORE_BEGUN);
    check_eq_u64(counts_of(store).entries, 1);
    check_eq_u64(counts_of(store).bytes, 0);
    store_free(store);
}

static void test_store__the_least_used_answer_makes_room_and_those_in_flight_stay(void **state)
{
    (void)state;
    struct store *store = store_of(60 * BECALM_S, 3, 1 << 20);
    struct store_key a = key_by("a", 1, "k", "x");
    struct store_key b = key_by("b", 2, "k", "x");
    struct store_key c = key_by("c", 3, "k", "x");
    struct store_key d = key_by("d", 4, "k", "x");
    struct store_key e = key_by("e", 5, "k", "x");
    check_eq_u64(begin(store, &a, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &b, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &c, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &d, 0), STORE_FULL);
    end(store, &b, 1, "");
    end(store, &c, 2, "");
    check_eq_u64(begin(store, &b, 3), STORE_ANSWERED); /* now c is the least recently used */
    check_eq_u64(begin(store, &d, 4), STORE_BEGUN);
    check_eq_u64(begin(store, &b, 5), STORE_ANSWERED);
    check_eq_u64(begin(store, &a, 5), STORE_IN_FLIGHT);
    check_eq_u64(begin(store, &e, 6), STORE_BEGUN); /* in b's place */
    check_eq_u64(begin(store, &b, 7), STORE_FULL);
    check_eq_u64(counts_of(store).evicted, 2);
    check_eq_u64(counts_of(store).full, 2);
    check_eq_u64(counts_of(store).entries, 3);
    store_free(store);
}

static void test_store__bytes_are_bounded_and_a_too_large_answer_is_released(void **state)
{
    (void)state;
    const size_t one = sizeof(struct store_answer) + 6 + 10;
    struct store *store = store_of(60 * BECALM_S, 100, 2 * one);
    struct store_key a = key_of("a", "x");
    struct store_key b = key_of("b", "x");
    struct store_key c = key_of("c", "x");
    check_eq_u64(begin(store, &a, 0), STORE_BEGUN);
    end(store, &a, 0, "0123456789");
    check_eq_u64(begin(store, &b, 0), STORE_BEGUN);
    end(store, &b, 0, "0123456789");
    check_eq_u64(counts_of(store).bytes, 2 * one);
    check_eq_u64(begin(store, &c, 0), STORE_BEGUN);
    end(store, &c, 0, "0");
    check_eq_u64(counts_of(store).bytes, 2 * one - 9); /* a is gone */
    check_eq_u64(begin(store, &a, 0), STORE_BEGUN);
    char large[256];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    end(store, &a, 0, large);
    check_eq_u64(counts_of(store).too_large, 1);
    check_eq_u64(begin(store, &a, 0), STORE_BEGUN);
    check_eq_u64(begin(store, &b, 0), STORE_ANSWERED); /* and displaced no key */
    store_free(store);
}

static void test_store__a_reload_forgets_the_oldest_beyond_the_new_bounds(void **state)
{
    (void)state;
    struct store *store = store_memory_make(&wide);
    struct store_key keys[4];
    for (unsigned i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        keys[i] = key_of(name, "x");
        check_eq_u64(begin(store, &keys[i], i), STORE_BEGUN);
        if (i > 0) {
            end(store, &keys[i], i, "");
        }
    }
    store_resize(store, &(struct store_settings){.ttl = BECALM_S, .max_entries = 2, .max_bytes = 1 << 20});
    check_eq_u64(counts_of(store).entries, 2);
    check_eq_u64(begin(store, &keys[0], 5), STORE_IN_FLIGHT);
    check_eq_u64(begin(store, &keys[3], 5), STORE_ANSWERED);
    end(store, &keys[0], 5, "");
    check_eq_u64(begin(store, &keys[0], 5 + BECALM_S), STORE_BEGUN); /* by the new ttl */
    store_resize(store, &wide);
    check_eq_u64(begin(store, &keys[1], 6), STORE_BEGUN);
    store_free(store);
}

/* A call with a key, from its beginning to its stored answer. */
static enum store_verdict call(struct store *store, struct store_key key, becalm_ns now, const char *body)
{
    enum store_verdict verdict = begin(store, &key, now);
    if (verdict == STORE_BEGUN) {
        end(store, &key, now, body);
    }
    return verdict;
}

static struct store_key numbered(const char *scope, uint64_t peer, unsigned number)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%u", number);
    return key_by(scope, peer, name, "x");
}

/* The number of a client's first `count` keys that are still answered. */
static unsigned kept_of(struct store *store, const char *scope, uint64_t peer, unsigned count, becalm_ns now)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        struct store_key key = numbered(scope, peer, i);
        struct store_ask ask;
        kept += store_begin(store, &key, now, &ask) == STORE_ANSWERED;
        if (ask.verdict == STORE_BEGUN) {
            store_end(store, &key, now, &released); /* it may have displaced no key: the client has the fewest keys */
        }
        store_answer_free(ask.answer);
    }
    return kept;
}

static void test_store__a_flood_of_one_scope_leaves_the_others_their_half(void **state)
{
    (void)state;
    for (unsigned behind_one_address = 0; behind_one_address < 2; behind_one_address++) {
        struct store *store = store_of(BECALM_S, 100, 1 << 20);
        uint64_t mallory = behind_one_address ? 1 : 2;
        for (unsigned i = 0; i < 50; i++) {
            check_eq_u64(call(store, numbered("alice", 1, i), 0, ""), STORE_BEGUN);
        }
        for (unsigned i = 0; i < 1000; i++) {
            check_eq_u64(call(store, numbered("mallory", mallory, i), 1, ""), STORE_BEGUN);
        }
        check_eq_u64(counts_of(store).entries, 100);
        check_eq_u64(kept_of(store, "alice", 1, 50, 2), 50);
        store_free(store);
    }
}

static void test_store__what_nobody_wants_is_taken_and_given_back(void **state)
{
    (void)state;
    struct store *store = store_of(BECALM_S, 100, 1 << 20);
    for (unsigned i = 0; i < 1000; i++) {
        check_eq_u64(call(store, numbered("mallory", 2, i), 0, ""), STORE_BEGUN);
    }
    check_eq_u64(counts_of(store).entries, 100);
    for (unsigned i = 0; i < 50; i++) { /* each of them is new: none pushes out another */
        char name[16];
        (void)snprintf(name, sizeof name, "user %u", i);
        check_eq_u64(call(store, numbered(name, 3 + i, 0), 1, ""), STORE_BEGUN);
    }
    for (unsigned i = 0; i < 50; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "user %u", i);
        check_eq_u64(kept_of(store, name, 3 + i, 1, 1), 1);
    }
    store_free(store);
}

static void test_store__scopes_that_one_peer_invents_share_the_room_of_that_peer(void **state)
{
    (void)state;
    struct store *store = store_of(BECALM_S, 100, 1 << 20);
    for (unsigned i = 0; i < 40; i++) {
        check_eq_u64(call(store, numbered("alice", 1, i), 0, ""), STORE_BEGUN);
    }
    for (unsigned i = 0; i < 1000; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "invented %u", i);
        check_eq_u64(call(store, numbered(name, 2, 0), 1, ""), STORE_BEGUN);
    }
    check_eq_u64(kept_of(store, "alice", 1, 40, 2), 40);
    store_free(store);
}

static void test_store__many_who_flood_push_out_nobody_who_has_less(void **state)
{
    (void)state;
    struct store *store = store_of(BECALM_S, 100, 1 << 20);
    for (unsigned i = 0; i < 10; i++) {
        check_eq_u64(call(store, numbered("alice", 1, i), 0, ""), STORE_BEGUN);
    }
    for (unsigned i = 0; i < 1000; i++) {
        for (uint64_t peer = 2; peer < 7; peer++) {
            char name[2] = {(char)('A' + peer), '\0'};
            check_eq_u64(call(store, numbered(name, peer, i), 1, ""), STORE_BEGUN);
        }
    }
    check_eq_u64(kept_of(store, "alice", 1, 10, 2), 10);
    store_free(store);
}

static void test_store__bytes_are_shared_as_entries_are(void **state)
{
    (void)state;
    char body[1001];
    memset(body, 'x', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    const size_t one = sizeof(struct store_answer) + 6 + sizeof body - 1;
    struct store *store = store_of(BECALM_S, 1000, 20 * one);
    for (unsigned i = 0; i < 10; i++) {
        check_eq_u64(call(store, numbered("alice", 1, i), 0, body), STORE_BEGUN);
    }
    for (unsigned i = 0; i < 100; i++) {
        check_eq_u64(call(store, numbered("mallory", 1, i), 1, body), STORE_BEGUN);
    }
    check_eq_u64(counts_of(store).bytes, 20 * one);
    check_eq_u64(kept_of(store, "alice", 1, 10, 2), 10);
    store_free(store);
}

static void test_store__keys_in_flight_of_one_scope_or_peer_take_half_and_leave_the_rest(void **state)
{
    (void)state;
    struct store *store = store_of(BECALM_S, 100, 1 << 20);
    struct store_key first = numbered("mallory", 2, 0);
    check_eq_u64(begin(store, &first, 0), STORE_BEGUN);
    for (unsigned i = 1; i < 60; i++) {
        struct store_key key = numbered("mallory", 2, i);
        check_eq_u64(begin(store, &key, 0), i < 50 ? STORE_BEGUN : STORE_FULL);
    }
    for (unsigned i = 0; i < 30; i++) { /* with another name from the same address */
        char name[24];
        (void)snprintf(name, sizeof name, "invented %u", i);
        struct store_key key = numbered(name, 2, 0);
        check_eq_u64(begin(store, &key, 0), STORE_FULL);
    }
    for (unsigned i = 0; i < 25; i++) { /* the next one has half of the rest */
        struct store_key key = numbered("eve", 3, i);
        check_eq_u64(begin(store, &key, 0), STORE_BEGUN);
    }
    struct store_key eve = numbered("eve", 3, 25);
    check_eq_u64(begin(store, &eve, 0), STORE_FULL);
    check_eq_u64(call(store, numbered("alice", 1, 0), 0, ""), STORE_BEGUN);
    check_eq_u64(kept_of(store, "alice", 1, 1, 0), 1);
    end(store, &first, 1, "");
    check_eq_u64(counts_of(store).entries, 76);
    store_free(store);
}

static void test_store__a_smaller_room_is_shared_anew(void **state)
{
    (void)state;
    struct store *store = store_of(BECALM_S, 100, 1 << 20);
    for (unsigned i = 0; i < 5; i++) {
        check_eq_u64(call(store, numbered("alice", 1, i), 0, ""), STORE_BEGUN);
    }
    for (unsigned i = 0; i < 40; i++) {
        check_eq_u64(call(store, numbered("mallory", 2, i), 1, ""), STORE_BEGUN);
    }
    store_resize(store, &(struct store_settings){.ttl = BECALM_S, .max_entries = 10, .max_bytes = 1 << 20});
    check_eq_u64(counts_of(store).entries, 10);
    check_eq_u64(kept_of(store, "alice", 1, 5, 2), 5);
    store_free(store);
}

BECALM_TESTS(cmocka_unit_test(test_store__an_empty_one_begins_and_can_be_freed),
             cmocka_unit_test(test_store__a_key_in_flight_is_refused_and_then_answered),
             cmocka_unit_test(test_store__another_payload_is_a_mismatch_in_flight_or_not),
             cmocka_unit_test(test_store__a_released_key_can_begin_again_with_any_payload),
             cmocka_unit_test(test_store__only_answers_worth_it_are_kept),
             cmocka_unit_test(test_store__every_part_of_a_key_counts_and_absent_is_not_empty),
             cmocka_unit_test(test_store__an_answer_lives_for_its_ttl_from_its_end),
             cmocka_unit_test(test_store__a_key_in_flight_expires_too_and_its_late_end_harms_nobody),
             cmocka_unit_test(test_store__expired_entries_leave_without_being_asked_for),
             cmocka_unit_test(test_store__the_least_used_answer_makes_room_and_those_in_flight_stay),
             cmocka_unit_test(test_store__bytes_are_bounded_and_a_too_large_answer_is_released),
             cmocka_unit_test(test_store__a_reload_forgets_the_oldest_beyond_the_new_bounds),
             cmocka_unit_test(test_store__a_flood_of_one_scope_leaves_the_others_their_half),
             cmocka_unit_test(test_store__what_nobody_wants_is_taken_and_given_back),
             cmocka_unit_test(test_store__scopes_that_one_peer_invents_share_the_room_of_that_peer),
             cmocka_unit_test(test_store__many_who_flood_push_out_nobody_who_has_less),
             cmocka_unit_test(test_store__bytes_are_shared_as_entries_are),
             cmocka_unit_test(test_store__keys_in_flight_of_one_scope_or_peer_take_half_and_leave_the_rest),
             cmocka_unit_test(test_store__a_smaller_room_is_shared_anew))
