/* SPDX-License-Identifier: MIT */
#include <becalm/sketch.h>

#include <becalm/rand.h>

#include <pthread.h>

#include "lib/check.h"

#define THREADS 8

static struct becalm_sketch *sketch_new(void)
{
    struct becalm_sketch *s = malloc(sizeof *s);
    assert_non_null(s);
    memset(s, 0xa5, sizeof *s); /* init may not rely on zeroed memory */
    becalm_sketch_init(s);
    return s;
}

/* The promise of the header: 1/64 of the latency, or half a microsecond. */
static bool close_to(becalm_ns found, becalm_ns exact)
{
    becalm_ns off = found > exact ? found - exact : exact - found;
    return off <= BECALM_US / 2 || off <= exact / 64 + (exact % 64 != 0);
}

static void test_sketch__without_notes_there_is_no_quantile(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    check_eq_u64(becalm_sketch_count(s, 0), 0);
    check_eq_u64(becalm_sketch_quantile(s, 0, 500000), 0);
    check_eq_u64(becalm_sketch_typical(s, 0), 0);
    check_eq_u64(becalm_sketch_live(s, 0, 950000), 0);
    check_eq_u64(becalm_sketch_quantile(s, BECALM_NEVER, 1000000), 0);
    free(s);
}

static void test_sketch__one_note_is_every_quantile(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_sketch_note(s, 0, 20 * BECALM_MS);
    check_eq_u64(becalm_sketch_count(s, 0), 1);
    static const uint32_t ppms[] = {0, 1, 500000, 999999, 1000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof ppms / sizeof ppms[0]; i++) {
        check_true(close_to(becalm_sketch_quantile(s, 0, ppms[i]), 20 * BECALM_MS));
    }
    free(s);
}

static void test_sketch__a_latency_of_zero_is_a_note(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_sketch_note(s, 0, 0);
    check_eq_u64(becalm_sketch_count(s, 0), 1);
    check_eq_u64(becalm_sketch_quantile(s, 0, 500000), 500);
    free(s);
}

/* Every bucket's first and last nanosecond, and its middle: no gap, no overlap, no error above the promised one. */
static void test_sketch__every_bucket_keeps_the_error_bound(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_ns first = 0;
    becalm_ns before = 0;
    for (int bucket = 0; bucket < BECALM_SKETCH_BUCKETS; bucket++) {
        becalm_ns us = first / BECALM_US;
        becalm_ns width = BECALM_US;
        while (us >= 64) {
            us /= 2;
            width *= 2;
        }
        for (becalm_ns at = first; at < first + width; at += width / 2 - 1) {
            becalm_sketch_init(s);
            becalm_sketch_note(s, 0, at);
            becalm_ns found = becalm_sketch_quantile(s, 0, 500000);
            check_eq_u64(found, first + width / 2);
            check_true(close_to(found, at));
            check_true(found > before);
        }
        before = first + width / 2;
        first += width;
    }
    check_eq_u64(first, (UINT64_C(1) << 30) * BECALM_US);
    free(s);
}

static void test_sketch__what_is_too_long_is_in_the_last_bucket(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_sketch_note(s, 0, 1073 * BECALM_S);
    becalm_ns last = becalm_sketch_quantile(s, 0, 1000000);
    check_true(close_to(last, 1073 * BECALM_S));
    static const becalm_ns longer[] = {1074 * BECALM_S, 100000 * BECALM_S, BECALM_NEVER};
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        becalm_sketch_init(s);
        becalm_sketch_note(s, 0, longer[i]);
        check_eq_u64(becalm_sketch_quantile(s, 0, 500000), last);
    }
    free(s);
}

static void test_sketch__a_quantile_is_the_latency_at_its_rank(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    for (becalm_ns us = 1; us <= 20; us++) {
        becalm_sketch_note(s, 0, us * BECALM_US);
    }
    check_eq_u64(becalm_sketch_quantile(s, 0, 0), 1500);       /* rank 1, at least */
    check_eq_u64(becalm_sketch_quantile(s, 0, 50000), 1500);   /* rank 1, exactly */
    check_eq_u64(becalm_sketch_quantile(s, 0, 50001), 2500);   /* rank 2, rounded up */
    check_eq_u64(becalm_sketch_quantile(s, 0, 500000), 10500); /* rank 10 */
    check_eq_u64(becalm_sketch_quantile(s, 0, 950000), 19500); /* rank 19 */
    check_eq_u64(becalm_sketch_quantile(s, 0, 950001), 20500);
    check_eq_u64(becalm_sketch_quantile(s, 0, 1000000), 20500);
    free(s);
}

/* ---- against sorted lists ---- */

typedef becalm_ns draw(uint64_t *random);

static becalm_ns draw_uniform(uint64_t *random)
{
    return becalm_rand_below(becalm_rand_next(random), 100 * BECALM_MS);
}

static becalm_ns draw_constant(uint64_t *random)
{
    (void)random;
    return 33 * BECALM_MS;
}

/* As an exponential distribution, in integers: each doubling is half as likely. */
static becalm_ns draw_long_tail(uint64_t *random)
{
    unsigned doublings = (unsigned)__builtin_ctzll(becalm_rand_next(random) | UINT64_C(1) << 13);
    return (BECALM_MS << doublings) + becalm_rand_below(becalm_rand_next(random), BECALM_MS << doublings);
}

/* Nine of ten from a cache, one from a disk. */
static becalm_ns draw_two_modes(uint64_t *random)
{
    bool disk = becalm_rand_chance(becalm_rand_next(random), 100000);
    return disk ? becalm_rand_between(becalm_rand_next(random), 40 * BECALM_MS, 60 * BECALM_MS)
                : becalm_rand_between(becalm_rand_next(random), 100 * BECALM_US, 300 * BECALM_US);
}

static becalm_ns draw_tiny(uint64_t *random)
{
    return becalm_rand_below(becalm_rand_next(random), 40 * BECALM_US);
}

static becalm_ns draw_all_magnitudes(uint64_t *random)
{
    uint64_t bits = becalm_rand_next(random);
    return becalm_rand_next(random) % (UINT64_C(1) << 30) * BECALM_US >> (bits % 30);
}

static int ascending(const void *a, const void *b)
{
    const becalm_ns *x = a;
    const becalm_ns *y = b;
    return (*x > *y) - (*x < *y);
}

static void check_distribution(const char *name, draw *next, size_t notes, uint64_t seed)
{
    static const uint32_t ppms[] = {1, 10000, 250000, 500000, 900000, 950000, 990000, 999000, 1000000};
    struct becalm_sketch *s = sketch_new();
    becalm_ns *list = calloc(notes, sizeof *list);
    assert_non_null(list);
    uint64_t random = seed;
    for (size_t i = 0; i < notes; i++) {
        list[i] = next(&random);
        becalm_sketch_note(s, i % 2 == 0 ? 0 : BECALM_SKETCH_SPAN, list[i]); /* half in either generation */
    }
    qsort(list, notes, sizeof *list, ascending);
    check_eq_u64(becalm_sketch_count(s, BECALM_SKETCH_SPAN), notes);
    for (size_t i = 0; i < sizeof ppms / sizeof ppms[0]; i++) {
        becalm_ns exact = list[(notes * ppms[i] + 999999) / 1000000 - 1];
        becalm_ns found = becalm_sketch_quantile(s, BECALM_SKETCH_SPAN, ppms[i]);
        if (!close_to(found, exact)) {
            print_error("seed %" PRIu64 ", %s, %" PRIu32 " ppm of %zu: found %" PRIu64 ", exact %" PRIu64 "\n", seed,
                        name, ppms[i], notes, found, exact);
            fail();
        }
    }
    free(list);
    free(s);
}

static void test_sketch__quantiles_are_close_to_those_of_the_sorted_list(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 19, 1000, 50000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_distribution("uniform", draw_uniform, sizes[i], 1);
        check_distribution("constant", draw_constant, sizes[i], 2);
        check_distribution("long tail", draw_long_tail, sizes[i], 3);
        check_distribution("two modes", draw_two_modes, sizes[i], 4);
        check_distribution("tiny", draw_tiny, sizes[i], 5);
        check_distribution("all magnitudes", draw_all_magnitudes, sizes[i], 6);
    }
}

/* ---- generations ---- */

static void test_sketch__a_span_later_the_old_notes_still_count_and_two_later_they_do_not(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    for (int i = 0; i < 10; i++) {
        becalm_sketch_note(s, BECALM_S, BECALM_MS);
    }
    check_eq_u64(becalm_sketch_count(s, BECALM_SKETCH_SPAN - 1), 10);
    for (int i = 0; i < 30; i++) {
        becalm_sketch_note(s, BECALM_SKETCH_SPAN, 4 * BECALM_MS);
    }
    check_eq_u64(becalm_sketch_count(s, BECALM_SKETCH_SPAN), 40);
    check_true(close_to(becalm_sketch_quantile(s, BECALM_SKETCH_SPAN, 250000), BECALM_MS));
    check_true(close_to(becalm_sketch_quantile(s, BECALM_SKETCH_SPAN, 250001), 4 * BECALM_MS));
    becalm_sketch_note(s, 2 * BECALM_SKETCH_SPAN, 16 * BECALM_MS);
    check_eq_u64(becalm_sketch_count(s, 2 * BECALM_SKETCH_SPAN), 31);
    check_true(close_to(becalm_sketch_quantile(s, 2 * BECALM_SKETCH_SPAN, 0), 4 * BECALM_MS));
    check_true(close_to(becalm_sketch_quantile(s, 2 * BECALM_SKETCH_SPAN, 1000000), 16 * BECALM_MS));
    free(s);
}

static void test_sketch__idling_empties_it_without_a_note(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_sketch_note(s, 0, BECALM_MS);
    becalm_sketch_note(s, BECALM_SKETCH_SPAN, BECALM_MS);
    check_eq_u64(becalm_sketch_count(s, 2 * BECALM_SKETCH_SPAN - 1), 2);
    check_eq_u64(becalm_sketch_count(s, 2 * BECALM_SKETCH_SPAN), 1);
    check_true(becalm_sketch_quantile(s, 3 * BECALM_SKETCH_SPAN - 1, 500000) != 0);
    check_eq_u64(becalm_sketch_count(s, 3 * BECALM_SKETCH_SPAN), 0);
    check_eq_u64(becalm_sketch_quantile(s, 3 * BECALM_SKETCH_SPAN, 500000), 0);
    free(s);
}

static void test_sketch__after_idling_only_new_notes_count(void **state)
{
    (void)state;
    for (becalm_ns spans = 3; spans < 9; spans++) { /* either parity: both generations are stale */
        struct becalm_sketch *s = sketch_new();
        becalm_sketch_note(s, 0, BECALM_MS);
        becalm_sketch_note(s, BECALM_SKETCH_SPAN, BECALM_MS);
        becalm_sketch_note(s, spans * BECALM_SKETCH_SPAN, BECALM_S);
        check_eq_u64(becalm_sketch_count(s, spans * BECALM_SKETCH_SPAN), 1);
        check_true(close_to(becalm_sketch_quantile(s, spans * BECALM_SKETCH_SPAN, 0), BECALM_S));
        free(s);
    }
}

static void test_sketch__an_older_now_turns_nothing_back(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_sketch_note(s, 5 * BECALM_SKETCH_SPAN, BECALM_MS);
    becalm_sketch_note(s, 5 * BECALM_SKETCH_SPAN - 1, BECALM_MS);
    becalm_sketch_note(s, 0, BECALM_MS);
    check_eq_u64(becalm_sketch_count(s, 5 * BECALM_SKETCH_SPAN), 3);
    check_eq_u64(becalm_sketch_count(s, 0), 3);
    free(s);
}

static void test_sketch__follows_a_change_within_two_spans(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_ns now = 0;
    for (; now < 95 * BECALM_S; now += 10 * BECALM_MS) {
        becalm_sketch_note(s, now, 20 * BECALM_MS);
    }
    for (; now < 115 * BECALM_S; now += 10 * BECALM_MS) {
        becalm_sketch_note(s, now, 80 * BECALM_MS);
    }
    check_true(close_to(becalm_sketch_quantile(s, now, 10000), 80 * BECALM_MS));
    free(s);
}

/* ---- the cached quantiles ---- */

static void test_sketch__a_cached_quantile_is_taken_anew_every_quarter_of_a_second(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    check_eq_u64(becalm_sketch_typical(s, 0), 0);
    becalm_sketch_note(s, 0, BECALM_MS);
    /* That it was empty is not remembered. */
    check_true(close_to(becalm_sketch_typical(s, 0), BECALM_MS));
    check_true(close_to(becalm_sketch_live(s, 0, 1000000), BECALM_MS));
    for (int i = 0; i < 9; i++) {
        becalm_sketch_note(s, 0, 8 * BECALM_MS);
    }
    check_true(close_to(becalm_sketch_typical(s, BECALM_SKETCH_REFRESH - 1), BECALM_MS));
    check_true(close_to(becalm_sketch_live(s, BECALM_SKETCH_REFRESH - 1, 1000000), BECALM_MS));
    check_true(close_to(becalm_sketch_typical(s, BECALM_SKETCH_REFRESH), 8 * BECALM_MS));
    check_true(close_to(becalm_sketch_live(s, BECALM_SKETCH_REFRESH, 1000000), 8 * BECALM_MS));
    /* An older now is content with it. */
    check_true(close_to(becalm_sketch_typical(s, 0), 8 * BECALM_MS));
    check_eq_u64(becalm_sketch_typical(s, BECALM_SKETCH_REFRESH), becalm_sketch_quantile(s, 0, 500000));
    free(s);
}

static void test_sketch__a_cached_quantile_forgets_with_the_sketch(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    becalm_sketch_note(s, 0, BECALM_MS);
    check_true(becalm_sketch_typical(s, 0) != 0);
    check_true(becalm_sketch_live(s, 0, 950000) != 0);
    check_eq_u64(becalm_sketch_typical(s, 2 * BECALM_SKETCH_SPAN), 0);
    check_eq_u64(becalm_sketch_live(s, 2 * BECALM_SKETCH_SPAN, 950000), 0);
    check_eq_u64(becalm_sketch_live(s, BECALM_NEVER, 950000), 0);
    free(s);
}

/* ---- threads ---- */

struct crowd {
    struct becalm_sketch *sketch;
    uint64_t seed;
    becalm_ns step; /* between two notes */
    uint32_t notes;
    pthread_t thread;
};

static void *crowd_note(void *argument)
{
    struct crowd *c = argument;
    uint64_t random = c->seed;
    becalm_ns now = 0;
    for (uint32_t i = 0; i < c->notes; i++, now += c->step) {
        becalm_sketch_note(c->sketch, now, becalm_rand_below(becalm_rand_next(&random), 100 * BECALM_MS));
        if (i % 512 == 0) {
            becalm_ns found = becalm_sketch_live(c->sketch, now, 950000);
            BECALM_ASSERT(found <= 102 * BECALM_MS);
            found = becalm_sketch_quantile(c->sketch, now, 500000);
            BECALM_ASSERT(found <= 102 * BECALM_MS);
        }
    }
    return NULL;
}

static uint64_t crowd_run(struct becalm_sketch *s, becalm_ns step, uint32_t notes)
{
    struct crowd crowd[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){.sketch = s, .seed = (uint64_t)i, .step = step, .notes = notes};
        assert_int_equal(pthread_create(&crowd[i].thread, NULL, crowd_note, &crowd[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
    }
    uint64_t in_buckets = 0;
    for (int i = 0; i < BECALM_SKETCH_BUCKETS; i++) {
        in_buckets += atomic_load(&s->bucket[0][i]) + atomic_load(&s->bucket[1][i]);
    }
    return in_buckets;
}

static void test_sketch__loses_nothing_of_eight_threads(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    check_eq_u64(crowd_run(s, 0, 40000), THREADS * 40000);
    check_eq_u64(becalm_sketch_count(s, 0), THREADS * 40000);
    check_between_u64(becalm_sketch_quantile(s, 0, 500000), 48 * BECALM_MS, 52 * BECALM_MS);
    free(s);
}

static void test_sketch__turns_while_eight_threads_note(void **state)
{
    (void)state;
    struct becalm_sketch *s = sketch_new();
    enum { NOTES = 20000, TURNS = 100 };
    becalm_ns step = TURNS * BECALM_SKETCH_SPAN / NOTES;
    uint64_t in_buckets = crowd_run(s, step, NOTES);
    uint64_t count = becalm_sketch_count(s, (NOTES - 1) * step);
    check_true(count <= (uint64_t)THREADS * NOTES);
    /* A note whose thread was between its bucket and its count when the generation turned is in one of the two alone.
     */
    check_between_u64(in_buckets, count < 2 * THREADS ? 0 : count - 2 * THREADS, count + 2 * THREADS);
    /* Afterwards it is as good as new. */
    becalm_ns later = 1000 * BECALM_SKETCH_SPAN;
    becalm_sketch_note(s, later, BECALM_S);
    check_eq_u64(becalm_sketch_count(s, later), 1);
    check_true(close_to(becalm_sketch_quantile(s, later, 500000), BECALM_S));
    free(s);
}

BECALM_TESTS(cmocka_unit_test(test_sketch__without_notes_there_is_no_quantile),
             cmocka_unit_test(test_sketch__one_note_is_every_quantile),
             cmocka_unit_test(test_sketch__a_latency_of_zero_is_a_note),
             cmocka_unit_test(test_sketch__every_bucket_keeps_the_error_bound),
             cmocka_unit_test(test_sketch__what_is_too_long_is_in_the_last_bucket),
             cmocka_unit_test(test_sketch__a_quantile_is_the_latency_at_its_rank),
             cmocka_unit_test(test_sketch__quantiles_are_close_to_those_of_the_sorted_list),
             cmocka_unit_test(test_sketch__a_span_later_the_old_notes_still_count_and_two_later_they_do_not),
             cmocka_unit_test(test_sketch__idling_empties_it_without_a_note),
             cmocka_unit_test(test_sketch__after_idling_only_new_notes_count),
             cmocka_unit_test(test_sketch__an_older_now_turns_nothing_back),
             cmocka_unit_test(test_sketch__follows_a_change_within_two_spans),
             cmocka_unit_test(test_sketch__a_cached_quantile_is_taken_anew_every_quarter_of_a_second),
             cmocka_unit_test(test_sketch__a_cached_quantile_forgets_with_the_sketch),
             cmocka_unit_test(test_sketch__loses_nothing_of_eight_threads),
             cmocka_unit_test(test_sketch__turns_while_eight_threads_note))
