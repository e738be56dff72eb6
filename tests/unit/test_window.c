/* SPDX-License-Identifier: MIT */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* pthread_barrier_t */
#endif

#include <becalm/window.h>

#include <becalm/rand.h>

#include <pthread.h>

#include "engine/window_internal.h"
#include "lib/check.h"

#define THREADS 8

static struct becalm_window *window_new(const struct becalm_window_shape *shape)
{
    size_t bytes = becalm_window_bytes(shape);
    check_true(bytes > 0 && bytes % 64 == 0);
    void *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0xa5, bytes); /* init may not rely on zeroed memory */
    return becalm_window_init(memory, shape);
}

static struct becalm_window *count_new(uint32_t size)
{
    struct becalm_window_shape shape = {.kind = BECALM_WINDOW_COUNT, .size = size, .lanes = 4};
    return window_new(&shape);
}

static struct becalm_window *time_new(becalm_ns span, uint32_t slices, uint32_t cells)
{
    struct becalm_window_shape shape = {
        .kind = BECALM_WINDOW_TIME, .span = span, .slices = slices, .lanes = 4, .cells = cells};
    return window_new(&shape);
}

static uint64_t note(struct becalm_window *w, becalm_ns now, unsigned lanes)
{
    struct becalm_moment at = {.now = now};
    return becalm_window_note(w, &at, lanes);
}

static void amend(struct becalm_window *w, uint64_t number, unsigned lanes)
{
    struct becalm_moment at = {.now = 0};
    becalm_window_amend(w, &at, number, lanes);
}

#define check_sums(w, now, a, b, c, d) check_sums_at(w, now, (const uint64_t[4]){a, b, c, d}, __LINE__)

static void check_sums_at(const struct becalm_window *w, becalm_ns now, const uint64_t *expected, int line)
{
    struct becalm_window_sums sums;
    becalm_window_read(w, now, &sums);
    for (unsigned lane = 0; lane < w->shape.lanes; lane++) {
        check_eq_u64_at(sums.lane[lane], expected[lane], "lane of the sums", __FILE__, line);
        check_eq_u64_at(becalm_window_sum(w, now, lane), expected[lane], "sum of a lane", __FILE__, line);
    }
}

/* ---- shapes ---- */

static void check_refused(const struct becalm_window_shape *shape, const char *sentence)
{
    const char *why = NULL;
    check_true(becalm_window_check(shape, &why) == BECALM_EINVAL);
    check_eq_str(why, sentence);
    check_true(becalm_window_check(shape, NULL) == BECALM_EINVAL);
    check_eq_u64(becalm_window_bytes(shape), 0);
}

static void test_window__bad_shapes_are_refused_by_name(void **state)
{
    (void)state;
    struct becalm_window_shape count = {.kind = BECALM_WINDOW_COUNT, .size = 100, .lanes = 3};
    check_true(becalm_window_check(&count, NULL) == 0);
    struct becalm_window_shape bad = count;
    bad.size = 0;
    check_refused(&bad, "size must be from 1 to 1000000");
    bad.size = BECALM_WINDOW_SIZE_MAX + 1;
    check_refused(&bad, "size must be from 1 to 1000000");
    bad.size = UINT32_MAX;
    check_refused(&bad, "size must be from 1 to 1000000");
    bad = count;
    bad.lanes = 0;
    check_refused(&bad, "lanes must be from 1 to 4");
    bad.lanes = 5;
    check_refused(&bad, "lanes must be from 1 to 4");
    bad = count;
    bad.kind = (enum becalm_window_kind)2;
    check_refused(&bad, "kind must be COUNT or TIME");
    struct becalm_window_shape span = {
        .kind = BECALM_WINDOW_TIME, .span = 10 * BECALM_S, .slices = 10, .lanes = 3, .cells = 1};
    check_true(becalm_window_check(&span, NULL) == 0);
    bad = span;
    bad.slices = 0;
    check_refused(&bad, "slices must be from 1 to 128");
    bad.slices = BECALM_WINDOW_SLICES_MAX + 1;
    check_refused(&bad, "slices must be from 1 to 128");
    bad = span;
    bad.span = 0;
    check_refused(&bad, "span must be at least 1 us per slice");
    bad.span = 10 * BECALM_US - 1;
    check_refused(&bad, "span must be at least 1 us per slice");
    bad = span;
    bad.cells = 0;
    check_refused(&bad, "cells must be from 1 to 64");
    bad.cells = BECALM_WINDOW_CELLS_MAX + 1;
    check_refused(&bad, "cells must be from 1 to 64");
}

static void test_window__the_largest_shapes_work(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(BECALM_WINDOW_SIZE_MAX);
    for (uint32_t i = 0; i < BECALM_WINDOW_SIZE_MAX + 10; i++) {
        note(w, 0, 15);
    }
    check_sums(w, 0, BECALM_WINDOW_SIZE_MAX, BECALM_WINDOW_SIZE_MAX, BECALM_WINDOW_SIZE_MAX, BECALM_WINDOW_SIZE_MAX);
    free(w);
    w = time_new(UINT64_MAX, BECALM_WINDOW_SLICES_MAX, BECALM_WINDOW_CELLS_MAX);
    note(w, 0, 1);
    note(w, BECALM_NEVER, 3);
    check_sums(w, BECALM_NEVER, 1, 1, 0, 0); /* 2^64 ns are one slice more than the span, which is rounded down */
    free(w);
}

/* ---- COUNT ---- */

static void test_window__count_starts_empty(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(3);
    check_sums(w, 0, 0, 0, 0, 0);
    becalm_window_clear(w);
    check_sums(w, 0, 0, 0, 0, 0);
    free(w);
}

static void test_window__count_forgets_the_oldest_note(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(3);
    note(w, 0, 3);
    check_sums(w, 0, 1, 1, 0, 0);
    note(w, 0, 7);
    note(w, 0, 9);
    check_sums(w, 0, 3, 2, 1, 1);
    note(w, 0, 1); /* the first leaves */
    check_sums(w, 0, 3, 1, 1, 1);
    note(w, 0, 1);
    check_sums(w, 0, 3, 0, 0, 1);
    note(w, 0, 1);
    check_sums(w, 0, 3, 0, 0, 0);
    free(w);
}

static void test_window__count_of_one_is_the_latest_note(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(1);
    note(w, 0, 15);
    check_sums(w, 0, 1, 1, 1, 1);
    note(w, 0, 5);
    check_sums(w, 0, 1, 0, 1, 0);
    note(w, 0, 1);
    check_sums(w, 0, 1, 0, 0, 0);
    free(w);
}

static void test_window__a_healthy_count_window_is_not_written(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(100);
    size_t bytes = becalm_window_bytes(&w->shape);
    void *before = malloc(bytes);
    assert_non_null(before);
    for (int i = 0; i < 99; i++) {
        note(w, 0, 1);
    }
    memcpy(before, w, bytes);
    note(w, 0, 1); /* the hundredth fills it */
    check_true(memcmp(before, w, bytes) != 0);
    memcpy(before, w, bytes);
    for (int i = 0; i < 1000; i++) {
        note(w, (becalm_ns)i, 1);
    }
    check_true(memcmp(before, w, bytes) == 0);
    note(w, 0, 3);
    check_sums(w, 0, 100, 1, 0, 0);
    for (int i = 0; i < 99; i++) {
        note(w, 0, 1);
    }
    check_sums(w, 0, 100, 1, 0, 0);
    note(w, 0, 1);
    check_sums(w, 0, 100, 0, 0, 0);
    memcpy(before, w, bytes);
    note(w, 0, 1);
    check_true(memcmp(before, w, bytes) == 0);
    free(before);
    free(w);
}

static void test_window__amend_adds_lanes_to_that_very_note(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(4);
    uint64_t slow = note(w, 0, 5);
    note(w, 0, 1);
    amend(w, slow, 2);
    check_sums(w, 0, 2, 1, 1, 0);
    amend(w, slow, 7); /* counted notes are not counted twice */
    check_sums(w, 0, 2, 1, 1, 0);
    note(w, 0, 1);
    note(w, 0, 1);
    check_sums(w, 0, 4, 1, 1, 0);
    note(w, 0, 1); /* it leaves with all its lanes */
    check_sums(w, 0, 4, 0, 0, 0);
    free(w);
}

static void test_window__amend_leaves_a_note_alone_that_has_left(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(2);
    uint64_t old = note(w, 0, 3);
    note(w, 0, 3);
    amend(w, old, 4);
    check_sums(w, 0, 2, 2, 1, 0);
    note(w, 0, 3);
    amend(w, old, 4);
    check_sums(w, 0, 2, 2, 0, 0);
    uint64_t cleared = note(w, 0, 3);
    becalm_window_clear(w);
    amend(w, cleared, 4);
    amend(w, cleared + 1, 4); /* nor one that was never made */
    amend(w, 12345, 4);
    check_sums(w, 0, 0, 0, 0, 0);
    free(w);
}

static void test_window__amend_of_an_unwritten_note_makes_a_new_one(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(3);
    for (int i = 0; i < 3; i++) {
        note(w, 0, 1);
    }
    uint64_t a = note(w, 0, 1);
    uint64_t b = note(w, 0, 1);
    amend(w, a, 0);
    amend(w, a, 1);
    check_sums(w, 0, 3, 0, 0, 0);
    amend(w, a, 2);
    amend(w, b, 2);
    check_sums(w, 0, 3, 2, 0, 0);
    becalm_window_clear(w);
    amend(w, b, 2);
    check_sums(w, 0, 0, 0, 0, 0);
    free(w);
}

static void test_window__undo_does_nothing_to_a_count_window(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(3);
    note(w, 0, 3);
    becalm_window_undo(w, 0, 0, 3);
    check_sums(w, 0, 1, 1, 0, 0);
    free(w);
}

/* ---- COUNT against a list of notes ---- */

struct model_count {
    unsigned *lanes; /* of every note ever made */
    uint64_t made;
    uint64_t first; /* after the last clear */
};

static void model_count_check(const struct model_count *m, const struct becalm_window *w, uint64_t seed)
{
    struct becalm_window_sums sums;
    becalm_window_read(w, 0, &sums);
    uint64_t from = m->made - m->first > w->shape.size ? m->made - w->shape.size : m->first;
    struct becalm_window_sums expected = {{0}};
    for (uint64_t i = from; i < m->made; i++) {
        for (unsigned lane = 0; lane < 4; lane++) {
            expected.lane[lane] += m->lanes[i] >> lane & 1;
        }
    }
    if (memcmp(&sums, &expected, sizeof sums) != 0) {
        print_error("seed %" PRIu64 ", size %" PRIu32 ", after %" PRIu64 " notes: ", seed, w->shape.size, m->made);
        check_sums(w, 0, expected.lane[0], expected.lane[1], expected.lane[2], expected.lane[3]);
    }
}

static void model_count_run(uint32_t size, uint32_t marked_ppm, uint64_t seed)
{
    enum { OPERATIONS = RUNS_OF(250000) };
    uint64_t random = seed;
    struct becalm_window *w = count_new(size);
    struct model_count m = {.lanes = calloc(OPERATIONS, sizeof *m.lanes)};
    uint64_t *numbers = calloc(OPERATIONS, sizeof *numbers);
    assert_true(m.lanes != NULL && numbers != NULL);
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t dice = becalm_rand_below(becalm_rand_next(&random), 1000);
        if (dice == 0 && becalm_rand_chance(becalm_rand_next(&random), 100000)) {
            becalm_window_clear(w);
            m.first = m.made;
        } else if (dice < 100 && m.made > m.first) {
            /* Only marked notes: a plain one has no exact place in a window that does not write them. */
            uint64_t back = becalm_rand_below(becalm_rand_next(&random), 2 * (uint64_t)size);
            uint64_t which = back < m.made - m.first ? m.made - 1 - back : m.made - 1;
            unsigned lanes = (unsigned)becalm_rand_below(becalm_rand_next(&random), 16);
            if (m.lanes[which] > 1) {
                amend(w, numbers[which], lanes);
                m.lanes[which] |= lanes;
            }
        } else {
            bool marked = becalm_rand_chance(becalm_rand_next(&random), marked_ppm);
            unsigned lanes = marked ? 1 | (unsigned)becalm_rand_below(becalm_rand_next(&random), 16) : 1;
            numbers[m.made] = note(w, 0, lanes);
            m.lanes[m.made++] = lanes;
        }
        if (size <= 16 || i % 64 == 0) {
            model_count_check(&m, w, seed);
        }
    }
    free(m.lanes);
    free(numbers);
    free(w);
}

static void test_window__count_agrees_with_a_list_over_a_million_operations(void **state)
{
    (void)state;
    model_count_run(1, 300000, 1);
    model_count_run(7, 50000, 2);
    model_count_run(16, 900000, 3);
    model_count_run(100, 2000, 4);
    model_count_run(128, 50000, 5);
    model_count_run(1000, 300000, 6);
}

/* ---- COUNT and threads ---- */

struct crowd {
    struct becalm_window *window;
    uint64_t seed;
    uint32_t notes;
    bool clears;
    pthread_barrier_t *barrier; /* all begin together: a thread that is done before the next one begins tests nothing */
    void *(*run)(void *);
    pthread_t thread;
};

/* `marked` is at most the notes in the ring and those that eight threads are about to write: a borrow would be seen
 * here. */
static void check_no_borrow(const struct becalm_window *w)
{
    uint64_t marked = atomic_load_explicit(&becalm__window_ring(w)->marked, memory_order_relaxed);
    for (unsigned lane = 0; lane < 3; lane++) {
        uint64_t sum = marked >> lane * 21 & ((1 << 21) - 1);
        BECALM_ASSERT(sum <= w->shape.size + 2 * THREADS);
    }
}

static void *count_crowd_run(void *argument)
{
    struct crowd *c = argument;
    uint64_t random = c->seed;
    struct becalm_moment at = {.now = 0};
    uint64_t last = 0;
    bool noted = false;
    for (uint32_t i = 0; i < c->notes; i++) {
        uint64_t bits = becalm_rand_next(&random);
        unsigned lanes = (bits & 7) == 0 ? 1 | (unsigned)(bits >> 8 & 15) : 1;
        uint64_t number = becalm_window_note(c->window, &at, lanes);
        if (lanes > 1) {
            last = number;
            noted = true;
        } else if (noted && (bits >> 16 & 15) == 0) {
            becalm_window_amend(c->window, &at, last, (unsigned)(bits >> 24 & 15));
        }
        if (c->clears && i % 5000 == 0) {
            becalm_window_clear(c->window);
        }
        check_no_borrow(c->window);
    }
    return NULL;
}

static void *crowd_begin(void *argument)
{
    struct crowd *c = argument;
    pthread_barrier_wait(c->barrier);
    return c->run(c);
}

static void crowd_run(struct crowd *crowd, void *(*run)(void *))
{
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        crowd[i].barrier = &barrier;
        crowd[i].run = run;
        assert_int_equal(pthread_create(&crowd[i].thread, NULL, crowd_begin, &crowd[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
    }
    pthread_barrier_destroy(&barrier);
}

/* Do the sums of the window equal the content of its ring? */
static void check_ring(const struct becalm_window *w)
{
    const struct becalm__window_ring *ring = becalm__window_ring(w);
    uint64_t lanes[3] = {0};
    for (uint32_t i = 0; i < w->shape.size; i++) {
        for (unsigned lane = 0; lane < 3; lane++) {
            lanes[lane] += ring->slot[i] >> lane & 1;
        }
    }
    uint64_t marked = atomic_load_explicit(&becalm__window_ring(w)->marked, memory_order_relaxed);
    check_eq_u64(marked, lanes[0] | lanes[1] << 21 | lanes[2] << 42);
}

static void count_crowd_test(uint32_t size, bool clears)
{
    struct becalm_window *w = count_new(size);
    struct crowd crowd[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowd[i] =
            (struct crowd){.window = w, .seed = (uint64_t)i, .notes = RUNS_OF(26000), .clears = clears && i == 0};
    }
    crowd_run(crowd, count_crowd_run);
    check_ring(w);
    check_true(becalm_window_sum(w, 0, 0) <= size);
    if (!clears) {
        check_eq_u64(becalm_window_sum(w, 0, 0), size);
    }
    for (uint32_t i = 0; i < size; i++) {
        note(w, 0, 1);
    }
    check_ring(w);
    check_sums(w, 0, size, 0, 0, 0);
    free(w);
}

static void test_window__count_does_not_drift_under_eight_threads(void **state)
{
    (void)state;
    count_crowd_test(1, false);
    count_crowd_test(3, false);
    count_crowd_test(100, false);
    count_crowd_test(3, true);
    count_crowd_test(100, true);
}

static void *plain_crowd_run(void *argument)
{
    struct crowd *c = argument;
    struct becalm_moment at = {.now = 0};
    for (uint32_t i = 0; i < c->notes; i++) {
        becalm_window_note(c->window, &at, i % 4 == 0 ? 3 : 1);
    }
    return NULL;
}

static void test_window__count_is_exact_after_eight_threads_that_fit(void **state)
{
    (void)state;
    struct becalm_window *w = count_new(THREADS * RUNS_OF(20000) + 1);
    struct crowd crowd[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){.window = w, .notes = RUNS_OF(20000)};
    }
    crowd_run(crowd, plain_crowd_run);
    check_ring(w);
    check_sums(w, 0, THREADS * RUNS_OF(20000), THREADS * RUNS_OF(5000), 0, 0);
    free(w);
}

/* ---- TIME ---- */

static void test_window__time_starts_empty_at_any_instant(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 1);
    check_sums(w, 0, 0, 0, 0, 0);
    check_sums(w, 5 * BECALM_S, 0, 0, 0, 0);
    check_sums(w, BECALM_NEVER, 0, 0, 0, 0);
    becalm_window_clear(w);
    becalm_window_undo(w, 0, 0, 15);
    check_sums(w, 0, 0, 0, 0, 0);
    free(w);
}

static void test_window__time_counts_from_instant_zero(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 1);
    note(w, 0, 3);
    check_sums(w, 0, 1, 1, 0, 0);
    note(w, 1, 8);
    check_sums(w, 1, 1, 1, 0, 1);
    check_sums(w, 10 * BECALM_S - 1, 1, 1, 0, 1);
    check_sums(w, 10 * BECALM_S, 0, 0, 0, 0);
    free(w);
}

static void test_window__time_forgets_slice_by_slice(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 1);
    for (becalm_ns s = 0; s < 25; s++) {
        note(w, s * BECALM_S + BECALM_MS, 1);
        check_eq_u64(becalm_window_sum(w, s * BECALM_S + 999 * BECALM_MS, 0), s < 10 ? s + 1 : 10);
    }
    for (becalm_ns s = 25; s < 40; s++) {
        check_eq_u64(becalm_window_sum(w, s * BECALM_S - 1, 0), s <= 34 ? 35 - s : 0);
    }
    free(w);
}

static void test_window__slices_begin_exactly_on_their_boundary(void **state)
{
    (void)state;
    /* A width that no power of two divides, far from 0. */
    struct becalm_window *w = time_new(7 * 1234567, 7, 1);
    becalm_ns begin = UINT64_C(12345678901) * 1234567;
    note(w, begin - 1, 1);
    note(w, begin, 2);
    check_sums(w, begin + 6 * 1234567 - 1, 1, 1, 0, 0);
    check_sums(w, begin + 6 * 1234567, 0, 1, 0, 0);
    check_sums(w, begin + 7 * 1234567 - 1, 0, 1, 0, 0);
    check_sums(w, begin + 7 * 1234567, 0, 0, 0, 0);
    free(w);
}

static void test_window__an_older_now_turns_nothing_back(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 1);
    for (becalm_ns s = 100; s < 110; s++) {
        note(w, s * BECALM_S, 1);
    }
    note(w, 108 * BECALM_S, 1); /* a second late: into its own slice */
    check_sums(w, 109 * BECALM_S, 11, 0, 0, 0);
    note(w, 95 * BECALM_S, 1); /* its slice is gone: counted in the one that took its place */
    note(w, 0, 1);
    check_sums(w, 109 * BECALM_S, 13, 0, 0, 0);
    /* A reader whose clock is behind sees notes ahead of it, too. */
    check_sums(w, 108 * BECALM_S, 13, 0, 0, 0);
    check_sums(w, 90 * BECALM_S, 13, 0, 0, 0);
    free(w);
}

static void test_window__slices_may_be_more_than_32_bits_can_number(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_US, 10, 1);
    becalm_ns many = (UINT64_C(1) << 32) * BECALM_US;
    for (becalm_ns us = 0; us < 30; us++) {
        note(w, many - 15 * BECALM_US + us * BECALM_US, 1);
        check_eq_u64(becalm_window_sum(w, many - 15 * BECALM_US + us * BECALM_US, 0), us < 10 ? us + 1 : 10);
    }
    free(w);
}

static void test_window__after_any_silence_what_was_noted_before_is_gone(void **state)
{
    (void)state;
    for (becalm_ns width = BECALM_US; width <= BECALM_S; width *= 10) {
        struct becalm_window *w = time_new(10 * width, 10, 1);
        note(w, 5 * width, 1);
        for (unsigned bits = 10; bits < 64; bits++) {
            becalm_ns silence = UINT64_C(1) << bits;
            uint64_t expected = (5 * width + silence) / width < 15;
            check_sums(w, 5 * width + silence, expected, 0, 0, 0);
        }
        check_sums(w, BECALM_NEVER, 0, 0, 0, 0);
        note(w, BECALM_NEVER, 3);
        check_sums(w, BECALM_NEVER, 1, 1, 0, 0);
        free(w);
    }
}

static void test_window__undo_takes_one_back_from_its_own_slice(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 1);
    note(w, 5 * BECALM_S, 3);
    note(w, 5 * BECALM_S, 3);
    note(w, 6 * BECALM_S, 3);
    becalm_window_undo(w, 5 * BECALM_S + 1, 0, 2);
    check_sums(w, 6 * BECALM_S, 3, 2, 0, 0);
    becalm_window_undo(w, 5 * BECALM_S, 0, 3);
    becalm_window_undo(w, 5 * BECALM_S, 0, 2); /* never below 0 */
    check_sums(w, 6 * BECALM_S, 2, 1, 0, 0);
    note(w, 15 * BECALM_S, 1); /* the same row, the next lap */
    becalm_window_undo(w, 5 * BECALM_S, 0, 1);
    check_sums(w, 15 * BECALM_S, 2, 1, 0, 0);
    free(w);
}

static void test_window__every_cell_is_summed_and_any_hint_is_right(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 3);
    static const uint32_t hints[] = {0, 1, 2, 3, 4, 63, 64, 1000, UINT32_MAX};
    uint64_t expected = 0;
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        struct becalm_moment at = {.now = BECALM_S, .cell = hints[i]};
        becalm_window_note(w, &at, 1);
        becalm_window_note(w, &at, 2);
        becalm_window_undo(w, BECALM_S, hints[i], 2);
        check_sums(w, BECALM_S, ++expected, 0, 0, 0);
    }
    free(w);
}

static void test_window__amend_of_a_time_window_adds_now(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 1);
    uint64_t number = note(w, BECALM_S, 5);
    struct becalm_moment later = {.now = 9 * BECALM_S};
    becalm_window_amend(w, &later, number, 2);
    check_sums(w, 9 * BECALM_S, 1, 1, 1, 0);
    check_sums(w, 12 * BECALM_S, 0, 1, 0, 0);
    free(w);
}

static void test_window__clear_empties_a_time_window(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 2);
    note(w, BECALM_S, 15);
    struct becalm_moment at = {.now = 7 * BECALM_S, .cell = 1};
    becalm_window_note(w, &at, 15);
    becalm_window_clear(w);
    check_sums(w, 7 * BECALM_S, 0, 0, 0, 0);
    note(w, 7 * BECALM_S, 1);
    check_sums(w, 7 * BECALM_S, 1, 0, 0, 0);
    free(w);
}

static void test_window__a_full_slice_stays_full(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 1);
    note(w, BECALM_S, 1);
    /* Lane 0 of slice 1: of 1 s = 2^29.9 ns, hence 29 bits of count. */
    _Atomic(uint64_t) *word = (_Atomic(uint64_t) *)(w + 1) + 4;
    check_eq_u64(atomic_load(word), UINT64_C(1) << 29 | 1);
    uint64_t full = (UINT64_C(1) << 29) - 4096;
    atomic_store(word, UINT64_C(1) << 29 | (full - 2));
    for (int i = 0; i < 10000; i++) {
        note(w, BECALM_S, 1);
    }
    check_eq_u64(becalm_window_sum(w, BECALM_S, 0), full);
    note(w, 11 * BECALM_S, 1);
    check_eq_u64(becalm_window_sum(w, 11 * BECALM_S, 0), 1);
    free(w);
}

/* ---- TIME against a table of all slices ---- */

#define MODEL_SLICES 300000

struct model_time {
    uint64_t start; /* number of the first slice */
    int32_t (*count)[4];
};

static void model_time_check(const struct model_time *m, const struct becalm_window *w, becalm_ns now, uint64_t seed)
{
    uint64_t slice = now / w->width - m->start;
    struct becalm_window_sums expected = {{0}};
    for (uint64_t i = slice + 1 > w->shape.slices ? slice + 1 - w->shape.slices : 0; i <= slice; i++) {
        for (unsigned lane = 0; lane < 4; lane++) {
            expected.lane[lane] += (uint64_t)m->count[i][lane];
        }
    }
    struct becalm_window_sums sums;
    becalm_window_read(w, now, &sums);
    if (memcmp(&sums, &expected, sizeof sums) != 0) {
        print_error("seed %" PRIu64 ", %" PRIu32 " slices, now %" PRIu64 ": ", seed, w->shape.slices, now);
        check_sums(w, now, expected.lane[0], expected.lane[1], expected.lane[2], expected.lane[3]);
    }
}

struct model_note {
    becalm_ns at;
    uint32_t cell;
    unsigned lanes;
};

static void model_time_add(struct model_time *m, const struct becalm_window *w, const struct model_note *n, int32_t add)
{
    for (unsigned lane = 0; lane < 4; lane++) {
        m->count[n->at / w->width - m->start][lane] += n->lanes >> lane & 1 ? add : 0;
    }
}

static void model_time_run(becalm_ns start, becalm_ns width, uint32_t slices, uint32_t cells, uint64_t seed)
{
    enum { OPERATIONS = RUNS_OF(250000), KEPT = 64 };
    uint64_t random = seed;
    struct becalm_window *w = time_new(width * slices, slices, cells);
    struct model_time m = {.start = start / width, .count = calloc(MODEL_SLICES, sizeof *m.count)};
    assert_non_null(m.count);
    struct model_note kept[KEPT] = {{0}};
    becalm_ns now = start;
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t bits = becalm_rand_next(&random);
        struct model_note *one = &kept[bits >> 32 & (KEPT - 1)];
        if ((bits & 0xffff) == 0) {
            becalm_window_clear(w);
            memset(m.count, 0, MODEL_SLICES * sizeof *m.count);
            memset(kept, 0, sizeof kept);
        } else if ((bits & 0xff) < 30) {
            if (one->lanes != 0) {
                becalm_window_undo(w, one->at, one->cell, one->lanes);
                model_time_add(&m, w, one, -1);
                one->lanes = 0;
            }
        } else {
            /* A clock that is behind the latest, by less than the slices that are kept. */
            becalm_ns behind = becalm_rand_below(becalm_rand_next(&random), width * (slices > 4 ? 3 : 1));
            becalm_ns at = (bits >> 40 & 3) == 0 && slices > 1 ? becalm_ns_since(now, behind) : now;
            at = becalm_ns_max(at, start);
            *one = (struct model_note){.at = at, .cell = (uint32_t)(bits >> 48), .lanes = (unsigned)(bits >> 16 & 15)};
            struct becalm_moment moment = {.now = at, .cell = one->cell};
            becalm_window_note(w, &moment, one->lanes);
            model_time_add(&m, w, one, 1);
        }
        if (i % (slices <= 10 ? 7 : 61) == 0) {
            model_time_check(&m, w, now, seed);
        }
        /* Usually a part of a slice on, now and then many slices. */
        uint64_t step = becalm_rand_next(&random);
        now += (step & 255) == 0 ? becalm_rand_below(step, 3 * width * slices) : becalm_rand_below(step, width);
        if (now / width - m.start >= MODEL_SLICES - 1) {
            break;
        }
    }
    free(m.count);
    free(w);
}

static void test_window__time_agrees_with_a_table_over_a_million_operations(void **state)
{
    (void)state;
    model_time_run(0, BECALM_S, 10, 1, 1);
    model_time_run(0, 1000, 3, 5, 2);
    model_time_run(UINT64_C(31536000) * BECALM_S + 12345, 78125001, 10, 2, 3);
    model_time_run(0, 2 * BECALM_S, 60, 4, 4);
    /* Slice numbers beyond 32 bits come along here. */
    model_time_run(((UINT64_C(1) << 32) - 5000) * BECALM_US, BECALM_US, 7, 2, 5);
    model_time_run(5 * BECALM_MS, 10 * BECALM_MS, 128, 1, 6);
}

/* ---- TIME and threads ---- */

static void *time_crowd_run(void *argument)
{
    struct crowd *c = argument;
    uint64_t random = c->seed;
    for (uint32_t i = 0; i < c->notes; i++) {
        uint64_t bits = becalm_rand_next(&random);
        /* Time goes on through the ten slices, a little differently in each thread. */
        becalm_ns slice = 100 + becalm_ns_min(9, (uint64_t)i * 10 / c->notes + (bits & 1));
        struct becalm_moment at = {.now = slice * BECALM_S, .cell = (uint32_t)(bits >> 8 & 1)};
        becalm_window_note(c->window, &at, i % 4 == 0 ? 7 : 1);
        if (i % 8 == 0) {
            becalm_window_undo(c->window, at.now, at.cell, 4);
        }
    }
    return NULL;
}

static void test_window__time_is_exact_after_eight_threads(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 2);
    struct crowd crowd[THREADS];
    /* The first thread that arrives clears the slices of an earlier lap. */
    for (becalm_ns s = 50; s < 60; s++) {
        note(w, s * BECALM_S, 15);
    }
    for (int i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){.window = w, .seed = (uint64_t)i, .notes = RUNS_OF(48000)};
    }
    crowd_run(crowd, time_crowd_run);
    check_sums(w, 109 * BECALM_S, THREADS * RUNS_OF(48000), THREADS * RUNS_OF(12000), THREADS * RUNS_OF(6000), 0);
    free(w);
}

/* In each round all threads go through the slices of one lap, and meet in the turning of every word. */
static void *turn_crowd_run(void *argument)
{
    struct crowd *c = argument;
    uint32_t slices = c->window->shape.slices;
    for (uint32_t round = 1; round <= c->notes; round++) {
        struct becalm_moment at = {.now = 0};
        for (uint32_t i = 0; i < slices; i++) {
            at.now = (becalm_ns)(round * slices + i) * BECALM_MS;
            becalm_window_note(c->window, &at, 1);
        }
        pthread_barrier_wait(c->barrier);
        BECALM_ASSERT(becalm_window_sum(c->window, at.now, 0) == THREADS * slices);
        pthread_barrier_wait(c->barrier);
    }
    return NULL;
}

static void test_window__no_note_is_lost_when_eight_threads_turn_a_slice(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(128 * BECALM_MS, 128, 1);
    struct crowd crowd[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){.window = w, .notes = RUNS_OF(1000)};
    }
    crowd_run(crowd, turn_crowd_run);
    free(w);
}

static void *still_crowd_run(void *argument)
{
    struct crowd *c = argument;
    struct becalm_moment at = {.now = 42 * BECALM_S, .cell = (uint32_t)c->seed};
    for (uint32_t i = 0; i < c->notes; i++) {
        becalm_window_note(c->window, &at, 1);
        if (c->clears && i % 1000 == 0) {
            becalm_window_clear(c->window);
        }
    }
    return NULL;
}

static void test_window__time_is_exact_after_eight_threads_at_one_instant(void **state)
{
    (void)state;
    for (uint32_t cells = 1; cells <= 8; cells *= 2) {
        struct becalm_window *w = time_new(BECALM_S, 1, cells);
        struct crowd crowd[THREADS];
        for (int i = 0; i < THREADS; i++) {
            crowd[i] = (struct crowd){.window = w, .seed = (uint64_t)i, .notes = RUNS_OF(20000)};
        }
        crowd_run(crowd, still_crowd_run);
        check_sums(w, 42 * BECALM_S, THREADS * RUNS_OF(20000), 0, 0, 0);
        free(w);
    }
}

static void test_window__clear_amid_notes_keeps_no_more_than_was_noted(void **state)
{
    (void)state;
    struct becalm_window *w = time_new(10 * BECALM_S, 10, 2);
    struct crowd crowd[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){.window = w, .seed = (uint64_t)i, .notes = RUNS_OF(20000), .clears = i == 0};
    }
    crowd_run(crowd, still_crowd_run);
    check_between_u64(becalm_window_sum(w, 42 * BECALM_S, 0), 0, THREADS * RUNS_OF(20000));
    becalm_window_clear(w);
    check_sums(w, 42 * BECALM_S, 0, 0, 0, 0);
    free(w);
}

static void check_notes_of_one_lane(struct becalm_window *one, struct becalm_window *other)
{
    uint64_t random = 7;
    becalm_ns now = 0;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t bits = becalm_rand_next(&random);
        unsigned lane = (bits >> 8) % 16 == 0 ? (unsigned)(bits >> 16) % 4 : 0; /* COUNT: most are plain */
        bool counts = one->shape.kind == BECALM_WINDOW_COUNT;
        now = bits % 64 == 0 ? becalm_ns_since(now, 30 * BECALM_MS) : now + bits % (4 * BECALM_MS);
        struct becalm_moment at = {.now = now, .cell = (uint32_t)(bits >> 24) % 5};
        becalm__window_note_one(one, &at, counts ? 0 : lane);
        (void)becalm_window_note(other, &at, counts ? 1u : 1u << lane);
        if (counts && lane != 0) {
            note(one, now, 1u | 1u << lane);
            note(other, now, 1u | 1u << lane);
        }
        struct becalm_window_sums sums;
        becalm_window_read(other, now, &sums);
        check_sums(one, now, sums.lane[0], sums.lane[1], sums.lane[2], sums.lane[3]);
    }
    free(one);
    free(other);
}

static void test_window__a_note_of_one_lane_is_the_same_inlined(void **unused)
{
    (void)unused;
    check_notes_of_one_lane(time_new(BECALM_S, 10, 3), time_new(BECALM_S, 10, 3));
    check_notes_of_one_lane(count_new(10), count_new(10));
}

static void test_window__of_counts_is_not_sound_with_slices(void **unused)
{
    (void)unused;
    struct becalm_window *w = count_new(10);
    const struct becalm_window_shape shape = w->shape;
    check_true(becalm_window_sound(w, &shape));
    w->width = BECALM_S;
    check_true(!becalm_window_sound(w, &shape));
    free(w);
}

BECALM_TESTS(cmocka_unit_test(test_window__bad_shapes_are_refused_by_name),
             cmocka_unit_test(test_window__a_note_of_one_lane_is_the_same_inlined),
             cmocka_unit_test(test_window__of_counts_is_not_sound_with_slices),
             cmocka_unit_test(test_window__the_largest_shapes_work), cmocka_unit_test(test_window__count_starts_empty),
             cmocka_unit_test(test_window__count_forgets_the_oldest_note),
             cmocka_unit_test(test_window__count_of_one_is_the_latest_note),
             cmocka_unit_test(test_window__a_healthy_count_window_is_not_written),
             cmocka_unit_test(test_window__amend_adds_lanes_to_that_very_note),
             cmocka_unit_test(test_window__amend_leaves_a_note_alone_that_has_left),
             cmocka_unit_test(test_window__amend_of_an_unwritten_note_makes_a_new_one),
             cmocka_unit_test(test_window__undo_does_nothing_to_a_count_window),
             cmocka_unit_test(test_window__count_agrees_with_a_list_over_a_million_operations),
             cmocka_unit_test(test_window__count_does_not_drift_under_eight_threads),
             cmocka_unit_test(test_window__count_is_exact_after_eight_threads_that_fit),
             cmocka_unit_test(test_window__time_starts_empty_at_any_instant),
             cmocka_unit_test(test_window__time_counts_from_instant_zero),
             cmocka_unit_test(test_window__time_forgets_slice_by_slice),
             cmocka_unit_test(test_window__slices_begin_exactly_on_their_boundary),
             cmocka_unit_test(test_window__an_older_now_turns_nothing_back),
             cmocka_unit_test(test_window__slices_may_be_more_than_32_bits_can_number),
             cmocka_unit_test(test_window__after_any_silence_what_was_noted_before_is_gone),
             cmocka_unit_test(test_window__undo_takes_one_back_from_its_own_slice),
             cmocka_unit_test(test_window__every_cell_is_summed_and_any_hint_is_right),
             cmocka_unit_test(test_window__amend_of_a_time_window_adds_now),
             cmocka_unit_test(test_window__clear_empties_a_time_window),
             cmocka_unit_test(test_window__a_full_slice_stays_full),
             cmocka_unit_test(test_window__time_agrees_with_a_table_over_a_million_operations),
             cmocka_unit_test(test_window__time_is_exact_after_eight_threads),
             cmocka_unit_test(test_window__time_is_exact_after_eight_threads_at_one_instant),
             cmocka_unit_test(test_window__no_note_is_lost_when_eight_threads_turn_a_slice),
             cmocka_unit_test(test_window__clear_amid_notes_keeps_no_more_than_was_noted))
