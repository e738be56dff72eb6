/* SPDX-License-Identifier: MIT */
#include <becalm/restart.h>

#include <pthread.h>

#include "lib/check.h"

#define T       (5 * BECALM_S) /* the attempt's timeout of these tests */
#define NOW     (100 * BECALM_S)
#define MANY    64u
#define THREADS 8u

/* A service of some hosts, and one worker's line. */
struct scene {
    struct becalm_restart *restart;
    struct becalm_hosts *hosts;
    struct becalm_outlier_policy outlier;
    struct becalm_parking line;
    struct becalm_berth berth[MANY];
    void *memory;
    void *hosts_memory;
};

static void scene_open(struct scene *scene, uint32_t hosts)
{
    memset(scene, 0, sizeof *scene);
    becalm_outlier_defaults(&scene->outlier);
    scene->memory = aligned_alloc(64, (becalm_restart_bytes(hosts) + 63) / 64 * 64);
    assert_non_null(scene->memory);
    scene->restart = becalm_restart_init(scene->memory, hosts);
    if (hosts > 0) {
        scene->hosts_memory = aligned_alloc(64, becalm_hosts_bytes(&scene->outlier, hosts, 1));
        assert_non_null(scene->hosts_memory);
        scene->hosts = becalm_hosts_init(scene->hosts_memory, &scene->outlier, hosts, 1);
    }
    becalm_parking_init(&scene->line, scene->restart);
}

static void scene_close(struct scene *scene)
{
    free(scene->memory);
    free(scene->hosts_memory);
}

static void refuse(struct scene *scene, uint32_t host, becalm_ns now)
{
    becalm_restart_refused(scene->restart, scene->hosts, &scene->outlier, host, now);
}

static bool park(struct scene *scene, unsigned number, becalm_ns entered_at)
{
    struct becalm_berth *berth = &scene->berth[number];
    berth->owner = berth;
    berth->entered_at = entered_at;
    berth->leave_at = becalm_ns_after(entered_at, T - T / 4);
    return becalm_parking_enter(&scene->line, 10, entered_at, berth);
}

static struct becalm_berth *next(struct scene *scene, becalm_ns now)
{
    return becalm_parking_next(&scene->line, T, now);
}

static void test_restart__is_up_with_nobody_in_line_at_first(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 0);
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW), BECALM_RESTART_UP);
    check_eq_u64(becalm_restart_parked(s.restart), 0);
    assert_null(next(&s, NOW));
    check_eq_u64(becalm_parking_wake_at(&s.line, T, NOW), BECALM_NEVER);
    check_true(!becalm_restart_accepted(s.restart, BECALM_NO_HOST));
    scene_close(&s);
}

static void test_restart__is_down_from_the_first_refusal_and_up_with_the_first_acceptance(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 0);
    refuse(&s, BECALM_NO_HOST, NOW);
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW), BECALM_RESTART_DOWN);
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW - BECALM_MS), BECALM_RESTART_DOWN); /* a clock behind */
    check_true(becalm_restart_accepted(s.restart, BECALM_NO_HOST));
    check_true(!becalm_restart_accepted(s.restart, BECALM_NO_HOST)); /* one thread lets the lines go */
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW), BECALM_RESTART_UP);
    scene_close(&s);
}

static void test_restart__is_gone_after_the_timeout_but_not_before_1_s_nor_after_5_s(void **state)
{
    (void)state;
    static const struct {
        becalm_ns timeout, gone_after;
    } rows[] = {
        {BECALM_MS, BECALM_S}, {BECALM_S, BECALM_S}, {3 * BECALM_S, 3 * BECALM_S}, {60 * BECALM_S, 5 * BECALM_S}};
    struct scene s;
    scene_open(&s, 0);
    refuse(&s, BECALM_NO_HOST, NOW);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        becalm_ns gone_at = NOW + rows[i].gone_after;
        assert_int_equal(becalm_restart_peek(s.restart, rows[i].timeout, gone_at - 1), BECALM_RESTART_DOWN);
        assert_int_equal(becalm_restart_peek(s.restart, rows[i].timeout, gone_at), BECALM_RESTART_GONE);
    }
    refuse(&s, BECALM_NO_HOST, NOW + 9 * BECALM_S); /* refusals do not make it younger */
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW + 9 * BECALM_S), BECALM_RESTART_GONE);
    check_true(becalm_restart_accepted(s.restart, BECALM_NO_HOST));
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW + 9 * BECALM_S), BECALM_RESTART_UP);
    scene_close(&s);
}

static void test_restart__is_down_only_when_every_host_that_may_be_picked_refuses(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 70); /* more than a word's worth of hosts */
    for (uint32_t host = 0; host < 69; host++) {
        refuse(&s, host, NOW);
        assert_int_equal(becalm_restart_peek(s.restart, T, NOW), BECALM_RESTART_UP);
    }
    check_true(!becalm_restart_accepted(s.restart, 3)); /* one comes back: no call was waiting */
    refuse(&s, 69, NOW);
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW), BECALM_RESTART_UP);
    refuse(&s, 3, NOW);
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW), BECALM_RESTART_DOWN);
    check_true(becalm_restart_accepted(s.restart, 40));
    scene_close(&s);
}

static void test_restart__does_not_wait_for_a_host_that_is_ejected(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 2);
    const struct becalm_moment at = {.now = NOW};
    const struct becalm_outcome failed = {.kind = BECALM_OUTCOME_FAILED, .status = 500};
    for (int i = 0; i < 10; i++) {
        becalm_hosts_sent(s.hosts, 0, NOW);
        becalm_hosts_note(s.hosts, &s.outlier, &at, 0, &failed);
    }
    check_true(!becalm_host_usable(s.hosts, &s.outlier, 0, NOW));
    refuse(&s, 1, NOW);
    assert_int_equal(becalm_restart_peek(s.restart, T, NOW), BECALM_RESTART_DOWN);
    for (int i = 0; i < 4; i++) {
        check_eq_u64(becalm_restart_turn(s.restart, s.hosts, &s.outlier, NOW), 1);
    }
    scene_close(&s);
}

static void test_restart__asks_each_host_in_turn(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 3);
    for (uint32_t host = 0; host < 3; host++) {
        refuse(&s, host, NOW);
    }
    for (uint32_t i = 0; i < 9; i++) {
        check_eq_u64(becalm_restart_turn(s.restart, s.hosts, &s.outlier, NOW), i % 3);
    }
    scene_close(&s);
}

/* Two hosts restarted one after the other: the first one is back when the second refuses, but no call has noticed
 * yet. */
static void test_restart__with_several_hosts_another_one_is_asked_at_once(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 2);
    refuse(&s, 0, NOW);
    refuse(&s, 1, NOW + 4 * BECALM_S);
    check_true(park(&s, 0, NOW + 4 * BECALM_S));
    check_true(park(&s, 1, NOW + 4 * BECALM_S));
    struct becalm_berth *berth = next(&s, NOW + 4 * BECALM_S);
    assert_non_null(berth);
    assert_int_equal(berth->verdict, BECALM_BERTH_PROBE);
    check_eq_u64(becalm_restart_turn(s.restart, s.hosts, &s.outlier, NOW + 4 * BECALM_S), 0);
    assert_null(next(&s, NOW + 4 * BECALM_S)); /* one of them is enough */
    scene_close(&s);
}

static void test_restart__one_call_probes_every_100_ms_and_the_others_wait(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 0);
    refuse(&s, BECALM_NO_HOST, NOW);
    check_true(park(&s, 0, NOW));
    check_true(park(&s, 1, NOW + BECALM_MS));
    check_eq_u64(becalm_restart_parked(s.restart), 2);
    assert_null(next(&s, NOW)); /* the refused attempt has just asked */
    check_eq_u64(becalm_parking_wake_at(&s.line, T, NOW), NOW + 100 * BECALM_MS);
    assert_null(next(&s, NOW + 99 * BECALM_MS));
    for (unsigned i = 1; i <= 9; i++) {
        becalm_ns now = NOW + i * 100 * BECALM_MS;
        struct becalm_berth *berth = next(&s, now);
        assert_ptr_equal(berth, &s.berth[0]); /* it always goes back to the head */
        assert_int_equal(berth->verdict, BECALM_BERTH_PROBE);
        assert_null(next(&s, now));
        check_eq_u64(becalm_restart_parked(s.restart), 1);
        check_true(becalm_parking_enter(&s.line, 0, now, berth)); /* there is room for calls that waited before */
    }
    scene_close(&s);
}

static void test_restart__the_line_goes_at_once_and_in_order_when_a_host_is_back(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 0);
    refuse(&s, BECALM_NO_HOST, NOW);
    check_true(park(&s, 2, NOW + 2));
    check_true(park(&s, 4, NOW + 4));
    check_true(park(&s, 3, NOW + 3)); /* was in flight, and is refused only now */
    check_true(park(&s, 1, NOW + 1));
    check_true(becalm_restart_accepted(s.restart, BECALM_NO_HOST));
    check_eq_u64(becalm_parking_wake_at(&s.line, T, NOW + 5), NOW + 5);
    for (unsigned i = 1; i <= 4; i++) {
        struct becalm_berth *berth = next(&s, NOW + 5);
        assert_ptr_equal(berth, &s.berth[i]);
        assert_int_equal(berth->verdict, BECALM_BERTH_GO);
    }
    assert_null(next(&s, NOW + 5));
    check_eq_u64(becalm_restart_parked(s.restart), 0);
    scene_close(&s);
}

static void test_restart__the_line_ends_when_the_service_is_gone(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 0);
    refuse(&s, BECALM_NO_HOST, NOW);
    check_true(park(&s, 0, NOW) && park(&s, 1, NOW + 1));
    becalm_ns gone_at = NOW + 5 * BECALM_S;
    atomic_store_explicit(&s.restart->probe_at, gone_at + BECALM_S, memory_order_relaxed);
    check_eq_u64(becalm_parking_wake_at(&s.line, T, NOW), gone_at);
    for (unsigned i = 0; i < 2; i++) {
        struct becalm_berth *berth = next(&s, gone_at);
        assert_ptr_equal(berth, &s.berth[i]);
        assert_int_equal(berth->verdict, BECALM_BERTH_END);
    }
    scene_close(&s);
}

static void test_restart__parks_no_more_calls_than_there_is_room(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 0);
    refuse(&s, BECALM_NO_HOST, NOW);
    for (unsigned i = 0; i < 10; i++) {
        check_true(park(&s, i, NOW + i));
    }
    check_true(!park(&s, 10, NOW + 10));
    check_eq_u64(becalm_restart_parked(s.restart), 10);
    becalm_parking_leave(&s.berth[0]);
    becalm_parking_leave(&s.berth[5]);
    becalm_parking_leave(&s.berth[9]);
    becalm_parking_leave(&s.berth[9]); /* not parked any more: nothing happens */
    check_eq_u64(becalm_restart_parked(s.restart), 7);
    check_true(park(&s, 10, NOW + 10));
    check_true(becalm_restart_accepted(s.restart, BECALM_NO_HOST));
    static const unsigned order[] = {1, 2, 3, 4, 6, 7, 8, 10};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        assert_ptr_equal(next(&s, NOW), &s.berth[order[i]]);
    }
    assert_null(next(&s, NOW));
    scene_close(&s);
}

static void test_restart__a_reload_goes_on_from_where_it_was(void **state)
{
    (void)state;
    struct scene old;
    struct scene fresh;
    struct scene other;
    scene_open(&old, 2);
    scene_open(&fresh, 2);
    scene_open(&other, 3);
    refuse(&old, 0, NOW);
    refuse(&old, 1, NOW);
    check_true(park(&old, 0, NOW));
    becalm_restart_carry(fresh.restart, old.restart);
    becalm_restart_carry(other.restart, old.restart);
    assert_int_equal(becalm_restart_peek(fresh.restart, T, NOW + 5 * BECALM_S), BECALM_RESTART_GONE);
    check_eq_u64(becalm_restart_parked(fresh.restart), 0); /* waiting calls stay in the old queue */
    assert_int_equal(becalm_restart_peek(other.restart, T, NOW), BECALM_RESTART_UP);
    scene_close(&old);
    scene_close(&fresh);
    scene_close(&other);
}

/* Threads. */

struct worker {
    pthread_t thread;
    struct becalm_restart *restart;
    struct becalm_parking line;
    struct becalm_berth berth[MANY];
    BECALM_ATOMIC(uint64_t) * probes;
    uint64_t gone;
};

static void *work(void *data)
{
    struct worker *w = data;
    for (becalm_ns now = NOW; now < NOW + 900 * BECALM_MS; now += BECALM_MS) {
        unsigned i = (unsigned)((now - NOW) / BECALM_MS % MANY);
        if (w->berth[i].parking == NULL) {
            w->berth[i].entered_at = now;
            becalm_parking_enter(&w->line, UINT64_MAX, now, &w->berth[i]);
        } else if (i % 5 == 0) {
            becalm_parking_leave(&w->berth[i]);
        }
        struct becalm_berth *berth;
        while ((berth = becalm_parking_next(&w->line, T, now)) != NULL) {
            assert_int_equal(berth->verdict, BECALM_BERTH_PROBE);
            atomic_fetch_add_explicit(w->probes, 1, memory_order_relaxed);
            becalm_restart_refused(w->restart, NULL, NULL, BECALM_NO_HOST, now);
            check_true(becalm_parking_enter(&w->line, 0, now, berth));
        }
    }
    return NULL;
}

static void *let_go(void *data)
{
    struct worker *w = data;
    becalm_restart_accepted(w->restart, BECALM_NO_HOST);
    struct becalm_berth *berth;
    while ((berth = becalm_parking_next(&w->line, T, NOW + BECALM_S)) != NULL) {
        w->gone += berth->verdict == BECALM_BERTH_GO;
    }
    return NULL;
}

static void run(struct worker *worker, void *(*what)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&worker[i].thread, NULL, what, &worker[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(worker[i].thread, NULL), 0);
    }
}

static void test_restart__eight_workers_make_one_probe_every_100_ms_and_let_all_go(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 0);
    BECALM_ATOMIC(uint64_t) probes;
    atomic_init(&probes, 0);
    struct worker *worker = calloc(THREADS, sizeof *worker);
    assert_non_null(worker);
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i].restart = s.restart;
        worker[i].probes = &probes;
        becalm_parking_init(&worker[i].line, s.restart);
    }
    refuse(&s, BECALM_NO_HOST, NOW);
    run(worker, work);
    check_between_u64(atomic_load_explicit(&probes, memory_order_relaxed), 1, 8); /* their clocks need not agree */
    uint64_t parked = becalm_restart_parked(s.restart);
    check_true(parked > 0);
    run(worker, let_go);
    for (unsigned i = 0; i < THREADS; i++) {
        parked -= worker[i].gone;
        assert_null(worker[i].line.first);
    }
    check_eq_u64(parked, 0);
    check_eq_u64(becalm_restart_parked(s.restart), 0);
    free(worker);
    scene_close(&s);
}

BECALM_TESTS(cmocka_unit_test(test_restart__is_up_with_nobody_in_line_at_first),
             cmocka_unit_test(test_restart__is_down_from_the_first_refusal_and_up_with_the_first_acceptance),
             cmocka_unit_test(test_restart__is_gone_after_the_timeout_but_not_before_1_s_nor_after_5_s),
             cmocka_unit_test(test_restart__is_down_only_when_every_host_that_may_be_picked_refuses),
             cmocka_unit_test(test_restart__does_not_wait_for_a_host_that_is_ejected),
             cmocka_unit_test(test_restart__asks_each_host_in_turn),
             cmocka_unit_test(test_restart__with_several_hosts_another_one_is_asked_at_once),
             cmocka_unit_test(test_restart__one_call_probes_every_100_ms_and_the_others_wait),
             cmocka_unit_test(test_restart__the_line_goes_at_once_and_in_order_when_a_host_is_back),
             cmocka_unit_test(test_restart__the_line_ends_when_the_service_is_gone),
             cmocka_unit_test(test_restart__parks_no_more_calls_than_there_is_room),
             cmocka_unit_test(test_restart__a_reload_goes_on_from_where_it_was),
             cmocka_unit_test(test_restart__eight_workers_make_one_probe_every_100_ms_and_let_all_go))
