/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* barriers */

#include "outlier_lab.h"

#include <becalm/rand.h>

#include <pthread.h>

static uint64_t ejected_recount(const struct becalm_hosts *hosts)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < hosts->count; i++) {
        count += atomic_load_explicit(&hosts->host[i].ejected_until, memory_order_relaxed) != 0;
    }
    return count;
}

/* How long host 0 is still out. */
static becalm_ns out_for(const struct world *w)
{
    return becalm_ns_left(w->now, atomic_load_explicit(&w->hosts->host[0].ejected_until, memory_order_relaxed));
}

/* --- policies --- */

static void test_outlier__defaults_and_istio_pass_their_check(void **state)
{
    (void)state;
    struct becalm_outlier_policy p;
    const char *why = "untouched";
    becalm_outlier_defaults(&p);
    assert_int_equal(becalm_outlier_check(&p, &why), 0);
    check_eq_u64(p.failure_share_ppm, 500000);
    check_eq_u64(p.min_calls, 5);
    check_eq_u64(p.window, 10 * BECALM_S);
    check_eq_u64(p.base_ejection, 5 * BECALM_S);
    becalm_outlier_istio(&p);
    assert_int_equal(becalm_outlier_check(&p, &why), 0);
    check_eq_u64(p.consecutive, 5);
    check_eq_u64(p.interval, 30 * BECALM_S);
    check_eq_u64(p.base_ejection, 30 * BECALM_S);
    check_eq_u64(p.max_ejection, 300 * BECALM_S);
    check_eq_u64(p.max_ejected_ppm, 100000);
    check_true(why == NULL);
}

static void check_refused(const struct becalm_outlier_policy *p, const char *field)
{
    const char *why = NULL;
    assert_int_equal(becalm_outlier_check(p, &why), BECALM_EINVAL);
    assert_int_equal(becalm_outlier_check(p, NULL), BECALM_EINVAL);
    assert_non_null(why);
    if (strncmp(why, field, strlen(field)) != 0) {
        fail_msg("\"%s\" does not begin with the field %s", why, field);
    }
}

#define CHECK_REFUSES(field, value)      \
    do {                                 \
        struct becalm_outlier_policy p_; \
        becalm_outlier_defaults(&p_);    \
        p_.field = (value);              \
        check_refused(&p_, #field);      \
    } while (0)

static void test_outlier__bad_parameters_are_refused_by_name(void **state)
{
    (void)state;
    CHECK_REFUSES(failure_share_ppm, 0);
    CHECK_REFUSES(failure_share_ppm, 1000001);
    CHECK_REFUSES(min_calls, 0);
    CHECK_REFUSES(min_calls, UINT32_MAX);
    CHECK_REFUSES(window, 0);
    CHECK_REFUSES(window, 100 * BECALM_MS - 1);
    CHECK_REFUSES(window, BECALM_NEVER);
    CHECK_REFUSES(consecutive, 1000001);
    CHECK_REFUSES(interval, 0);
    CHECK_REFUSES(interval, BECALM_NEVER);
    CHECK_REFUSES(base_ejection, 0);
    CHECK_REFUSES(max_ejection, 0);
    CHECK_REFUSES(max_ejection, 5 * BECALM_S - 1);
    CHECK_REFUSES(max_ejection, BECALM_NEVER);
    CHECK_REFUSES(max_ejected_ppm, 1000001);
}

static void test_outlier__a_policy_that_is_off_is_not_looked_at_and_ejects_nobody(void **state)
{
    (void)state;
    struct world w = {.now = 0};
    memset(&w.policy, 0, sizeof w.policy);
    assert_int_equal(becalm_outlier_check(&w.policy, NULL), 0);
    w.hosts = hosts_new(&w.policy, 2, 1);
    attempts(&w, 0, 100, BECALM_OUTCOME_REFUSED);
    assert_true(usable(&w, 0));
    check_eq_u64(ejected_count(w.hosts), 0);
    world_end(&w);

    w = world_rate(2); /* and switching it off ends all ejections */
    attempts(&w, 0, 5, BECALM_OUTCOME_REFUSED);
    assert_false(usable(&w, 0));
    w.policy.enabled = false;
    assert_true(usable(&w, 0));
    world_end(&w);
}

/* --- memory --- */

static void test_outlier__no_hosts_need_one_line(void **state)
{
    (void)state;
    struct world w = world_rate(0);
    check_eq_u64(becalm_hosts_bytes(&w.policy, 0, 1), 64);
    check_eq_u64(w.hosts->count, 0);
    attempts(&w, BECALM_NO_HOST, 3, BECALM_OUTCOME_REFUSED);
    check_eq_u64(becalm_hosts_hint(w.hosts, BECALM_NO_HOST, 0), 0);
    assert_false(becalm_hosts_ignored(w.hosts, &w.policy));
    world_end(&w);
}

static void test_outlier__every_host_has_its_own_lines_and_windows_only_when_rates_count(void **state)
{
    (void)state;
    struct world w = world_rate(3);
    for (uint32_t i = 0; i < 3; i++) {
        check_eq_u64((uintptr_t)&w.hosts->host[i] % 64, 0);
        check_eq_u64((uintptr_t)w.hosts->host[i].window % 64, 0);
        assert_non_null(w.hosts->host[i].window);
    }
    world_end(&w);
    w = world_istio(3);
    check_eq_u64(becalm_hosts_bytes(&w.policy, 3, 64), 64 + 3 * 64);
    assert_null(w.hosts->host[0].window);
    world_end(&w);
}

/* --- by rate --- */

static void test_outlier__a_fresh_host_is_usable_from_time_zero(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    assert_true(usable(&w, 0));
    assert_true(usable(&w, 1));
    assert_false(becalm_host_ejected(w.hosts, 0, 0));
    world_end(&w);
}

static void test_outlier__counts_attempts_in_flight(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    becalm_hosts_sent(w.hosts, 1, 0);
    becalm_hosts_sent(w.hosts, 1, 0);
    check_eq_u64(atomic_load_explicit(&w.hosts->host[1].in_flight, memory_order_relaxed), 2);
    note_outcome(&w, 1, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK});
    note_outcome(&w, 1, &(struct becalm_outcome){.kind = BECALM_OUTCOME_CANCELLED});
    check_eq_u64(atomic_load_explicit(&w.hosts->host[1].in_flight, memory_order_relaxed), 0);
    world_end(&w);
}

static void test_outlier__half_of_at_least_five_results_failed_ejects_for_five_seconds(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 4, BECALM_OUTCOME_FAILED);
    assert_true(usable(&w, 0)); /* four results are too few */
    attempts(&w, 0, 1, BECALM_OUTCOME_FAILED);
    assert_false(usable(&w, 0));
    assert_true(usable(&w, 1));
    assert_true(becalm_host_ejected(w.hosts, 0, w.now));
    check_eq_u64(out_for(&w), 5 * BECALM_S);
    world_end(&w);
}

static void test_outlier__the_share_is_reached_at_exactly_one_half(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 10, BECALM_OUTCOME_OK);
    attempts(&w, 0, 9, BECALM_OUTCOME_BROKEN); /* 9 of 19 */
    assert_true(usable(&w, 0));
    attempts(&w, 0, 1, BECALM_OUTCOME_BROKEN); /* 10 of 20 */
    assert_false(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__failures_older_than_the_window_are_forgotten(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    w.now = 100 * BECALM_S;
    attempts(&w, 0, 4, BECALM_OUTCOME_FAILED);
    w.now += 12 * BECALM_S;
    attempts(&w, 0, 4, BECALM_OUTCOME_FAILED);
    assert_true(usable(&w, 0));
    attempts(&w, 0, 1, BECALM_OUTCOME_FAILED);
    assert_false(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__which_outcomes_count_against_a_host(void **state)
{
    (void)state;
    static const struct {
        enum becalm_outcome_kind kind;
        bool counts;
    } rows[] = {
        {BECALM_OUTCOME_OK, false},           {BECALM_OUTCOME_PERMANENT, false}, {BECALM_OUTCOME_FAILED, true},
        {BECALM_OUTCOME_BROKEN, true},        {BECALM_OUTCOME_LATE, true},       {BECALM_OUTCOME_REJECTED, true},
        {BECALM_OUTCOME_RATE_LIMITED, false}, {BECALM_OUTCOME_CONFLICT, false},  {BECALM_OUTCOME_REFUSED, true},
        {BECALM_OUTCOME_TLS, true},           {BECALM_OUTCOME_TIMED_OUT, true},  {BECALM_OUTCOME_CANCELLED, false},
    };
    check_eq_u64(sizeof rows / sizeof rows[0], BECALM_OUTCOME_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_rate(2);
        attempts(&w, 0, 20, rows[i].kind);
        if (usable(&w, 0) == rows[i].counts) {
            fail_msg("%s: wrong", becalm_outcome_word(rows[i].kind));
        }
        world_end(&w);
    }
}

static void test_outlier__a_rejection_marked_for_the_service_does_not_count(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    struct becalm_outcome marked = {.kind = BECALM_OUTCOME_REJECTED, .mark = BECALM_MARK_OVERLOADED};
    for (int i = 0; i < 50; i++) {
        attempt(&w, 0, &marked);
    }
    assert_true(usable(&w, 0));
    check_eq_u64(becalm_window_sum(w.hosts->host[0].window, w.now, 0), 0);

    marked.mark = BECALM_MARK_SPENT; /* says nothing about overload: an ordinary rejection */
    for (int i = 0; i < 5; i++) {
        attempt(&w, 0, &marked);
    }
    assert_false(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__a_mark_for_the_service_excuses_no_other_failure(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    struct becalm_outcome reset = {.kind = BECALM_OUTCOME_BROKEN, .mark = BECALM_MARK_OVERLOADED};
    for (int i = 0; i < 5; i++) {
        attempt(&w, 0, &reset);
    }
    assert_false(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__a_host_that_says_it_is_overloaded_fails_and_is_left_alone_for_a_second(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    struct becalm_outcome marked = {.kind = BECALM_OUTCOME_RATE_LIMITED, .mark = BECALM_MARK_OVERLOADED_HOST};
    attempt(&w, 0, &marked);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 1 * BECALM_S);
    check_eq_u64(becalm_window_sum(w.hosts->host[0].window, w.now, 1), 1);

    marked.kind = BECALM_OUTCOME_OK; /* the host still did its work */
    attempt(&w, 1, &marked);
    check_eq_u64(becalm_window_sum(w.hosts->host[1].window, w.now, 1), 0);
    check_eq_u64(becalm_hosts_hint(w.hosts, 1, w.now), 1 * BECALM_S);

    marked = (struct becalm_outcome){.kind = BECALM_OUTCOME_CANCELLED, .mark = BECALM_MARK_OVERLOADED_HOST};
    attempt(&w, 1, &marked);
    check_eq_u64(becalm_window_sum(w.hosts->host[1].window, w.now, 1), 0);
    world_end(&w);
}

/* --- Istio's way --- */

static void test_outlier__istio_five_in_a_row_and_thirty_seconds_times_the_times(void **state)
{
    (void)state;
    struct world w = world_istio(10);
    attempts(&w, 0, 4, BECALM_OUTCOME_FAILED);
    attempts(&w, 0, 1, BECALM_OUTCOME_OK); /* breaks the row */
    attempts(&w, 0, 4, BECALM_OUTCOME_FAILED);
    assert_true(usable(&w, 0));
    attempts(&w, 0, 1, BECALM_OUTCOME_FAILED);
    assert_false(usable(&w, 0));
    check_eq_u64(out_for(&w), 30 * BECALM_S);
    for (uint64_t times = 2; times <= 12; times++) {
        w.now += out_for(&w);
        assert_true(usable(&w, 0));
        attempts(&w, 0, 1, BECALM_OUTCOME_FAILED); /* the probe */
        assert_false(usable(&w, 0));
        check_eq_u64(out_for(&w), times < 10 ? times * 30 * BECALM_S : 300 * BECALM_S);
    }
    world_end(&w);
}

static void test_outlier__times_are_counted_down_by_one_for_each_calm_interval(void **state)
{
    (void)state;
    struct world w = world_istio(10);
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    for (int i = 0; i < 3; i++) { /* four times ejected in all */
        w.now += out_for(&w);
        attempts(&w, 0, 1, BECALM_OUTCOME_FAILED);
    }
    w.now += out_for(&w) + 1000 * BECALM_S; /* a long wait for its probe does not count as calm */
    attempts(&w, 0, 1, BECALM_OUTCOME_OK);
    w.now += 60 * BECALM_S; /* two intervals; four times become two, and this is the third */
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    check_eq_u64(out_for(&w), 3 * 30 * BECALM_S);

    w.now += out_for(&w);
    attempts(&w, 0, 1, BECALM_OUTCOME_OK);
    w.now += 29 * BECALM_S; /* not a whole interval */
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    check_eq_u64(out_for(&w), 4 * 30 * BECALM_S);

    w.now += out_for(&w);
    attempts(&w, 0, 1, BECALM_OUTCOME_OK);
    w.now += 100000 * BECALM_S;
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    check_eq_u64(out_for(&w), 30 * BECALM_S);
    world_end(&w);
}

/* --- a maximum, and never the last host --- */

static void test_outlier__five_of_ten_dead_are_out_and_six_of_ten_are_all_used(void **state)
{
    (void)state;
    struct world w = world_rate(10);
    for (uint32_t host = 0; host < 5; host++) {
        attempts(&w, host, 5, BECALM_OUTCOME_REFUSED);
    }
    check_eq_u64(usable_count(&w), 5);
    assert_false(becalm_hosts_ignored(w.hosts, &w.policy));
    attempts(&w, 5, 5, BECALM_OUTCOME_REFUSED);
    check_eq_u64(usable_count(&w), 10);
    assert_true(becalm_hosts_ignored(w.hosts, &w.policy));
    check_eq_u64(ejected_count(w.hosts), 6);
    world_end(&w);
}

static void test_outlier__what_all_hosts_share_ejects_none_of_them(void **state)
{
    (void)state;
    struct world w = world_rate(10);
    for (uint32_t i = 0; i < 100; i++) { /* 60 % fail everywhere: beyond the share that ejects */
        for (uint32_t host = 0; host < 10; host++) {
            attempts(&w, host, 1, (i + host) % 5 < 3 ? BECALM_OUTCOME_FAILED : BECALM_OUTCOME_OK);
        }
        w.now += 10 * BECALM_MS;
    }
    check_eq_u64(usable_count(&w), 10);
    check_eq_u64(ejected_count(w.hosts), 0);
    world_end(&w);
}

/* The others fail by a quarter, then by half: twice that is a half, and all. */
static void test_outlier__a_host_goes_if_it_fails_twice_as_often_as_the_others_that_are_in(void **state)
{
    (void)state;
    static const struct {
        uint32_t others_failed; /* of 4 */
        uint32_t failed;        /* of 100 */
        bool out;
    } rows[] = {{0, 50, true}, {1, 49, false}, {1, 50, true}, {2, 99, false}, {2, 100, true}, {3, 100, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_rate(100); /* of which the next 64 are asked */
        for (uint32_t host = 1; host < 100; host++) {
            attempts(&w, host, 4 - rows[i].others_failed,
                     BECALM_OUTCOME_OK); /* fewer than are enough for a judgement */
            attempts(&w, host, rows[i].others_failed, BECALM_OUTCOME_FAILED);
        }
        attempts(&w, 0, 100 - rows[i].failed, BECALM_OUTCOME_OK);
        attempts(&w, 0, rows[i].failed, BECALM_OUTCOME_FAILED);
        check_eq_u64(usable(&w, 0), !rows[i].out);
        world_end(&w);
    }
}

/* For all rates: of hosts with the same failure rate, a few are ejected by chance at a time, never half of the
 * service. */
static void test_outlier__hosts_that_fail_alike_stay_in(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS_OF(20); seed++) {
        uint64_t rand = seed;
        struct world w = world_rate(10);
        uint32_t share = 300000 + (uint32_t)(becalm_rand_next(&rand) % 600000);
        uint64_t out = 0;
        for (uint32_t i = 0; i < 20000; i++) { /* 6.5 results a second of each host */
            uint32_t host = (uint32_t)(becalm_rand_next(&rand) % 10);
            w.now += 15 * BECALM_MS;
            if (usable(&w, host)) {
                bool fails = becalm_rand_chance(becalm_rand_next(&rand), share);
                attempts(&w, host, 1, fails ? BECALM_OUTCOME_FAILED : BECALM_OUTCOME_OK);
            }
            out += 10 - usable_count(&w);
        }
        check_true(out < 20000); /* less than one on average */
        world_end(&w);
    }
}

static void test_outlier__a_host_that_is_used_all_the_same_is_seen_to_fail(void **state)
{
    (void)state;
    uint64_t results;
    uint64_t failed;
    struct world w = world_rate(1);
    assert_true(becalm_host_read(w.hosts, 0, w.now, &results, &failed));
    check_eq_u64(results, 0);
    attempts(&w, 0, 5, BECALM_OUTCOME_REFUSED);
    assert_true(becalm_host_usable(w.hosts, &w.policy, 0, w.now));
    assert_true(becalm_host_read(w.hosts, 0, w.now, &results, &failed));
    check_eq_u64(results, 5);
    check_eq_u64(failed, 5);
    world_end(&w);
}

static void test_outlier__the_maximum_is_rounded_down_and_spares_the_last_host(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        uint32_t max_ejected_ppm;
        uint32_t out_max;
    } rows[] = {
        {1, 500000, 0},  {1, 1000000, 0}, {2, 500000, 1},  {2, 1000000, 1}, {3, 500000, 1},   {5, 100000, 0},
        {10, 100000, 1}, {10, 0, 0},      {19, 100000, 1}, {20, 100000, 2}, {10, 1000000, 9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_rate(rows[i].count);
        w.policy.max_ejected_ppm = rows[i].max_ejected_ppm;
        uint32_t most = 0;
        for (uint32_t host = 0; host < rows[i].count; host++) {
            attempts(&w, host, 5, BECALM_OUTCOME_TIMED_OUT);
            uint32_t out = rows[i].count - usable_count(&w);
            most = out > most ? out : most;
            check_eq_u64(out, host + 1 <= rows[i].out_max ? host + 1 : 0);
        }
        check_eq_u64(most, rows[i].out_max);
        world_end(&w);
    }
}

static void test_outlier__while_ejections_are_ignored_results_readmit_and_times_do_not_grow(void **state)
{
    (void)state;
    struct world w = world_rate(4);
    for (uint32_t host = 0; host < 4; host++) {
        attempts(&w, host, 5, BECALM_OUTCOME_REFUSED);
    }
    check_eq_u64(ejected_count(w.hosts), 4);
    for (int i = 0; i < 20; i++) { /* long dead: the probe of each ejection fails, but no stay gets longer */
        w.now += 5 * BECALM_S;
        for (uint32_t host = 0; host < 4; host++) {
            attempts(&w, host, 5, BECALM_OUTCOME_REFUSED);
        }
        check_eq_u64(out_for(&w), 5 * BECALM_S);
        check_eq_u64(usable_count(&w), 4);
    }
    attempts(&w, 3, 4, BECALM_OUTCOME_OK); /* 4 of 14 in the window are fine: not well yet */
    check_eq_u64(ejected_count(w.hosts), 4);
    attempts(&w, 3, 7, BECALM_OUTCOME_OK); /* below one half failed: well, and without waiting for a probe */
    check_eq_u64(ejected_count(w.hosts), 3);
    attempts(&w, 2, 11, BECALM_OUTCOME_OK);
    check_eq_u64(ejected_count(w.hosts), 2); /* that many may be out, so from here on ejection is meant again */
    check_eq_u64(usable_count(&w), 2);
    attempts(&w, 1, 11, BECALM_OUTCOME_OK); /* now only its probe brings a host back */
    assert_false(usable(&w, 1));
    w.now += 5 * BECALM_S;
    attempts(&w, 1, 1, BECALM_OUTCOME_OK);
    attempts(&w, 0, 1, BECALM_OUTCOME_OK);
    check_eq_u64(ejected_count(w.hosts), 0);
    world_end(&w);
}

/* --- the probe --- */

static void test_outlier__after_its_time_one_probe_and_a_good_one_brings_the_host_back(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    w.now += 5 * BECALM_S - 1;
    assert_false(usable(&w, 0));
    w.now += 1;
    assert_true(usable(&w, 0));
    assert_false(becalm_host_ejected(w.hosts, 0, w.now));
    becalm_hosts_sent(w.hosts, 0, w.now);
    assert_false(usable(&w, 0)); /* the probe is out */
    w.now += 20 * BECALM_MS;
    note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK});
    assert_true(usable(&w, 0));
    check_eq_u64(ejected_count(w.hosts), 0);
    check_eq_u64(becalm_window_sum(w.hosts->host[0].window, w.now, 1), 0); /* the past is forgotten */
    attempts(&w, 0, 4, BECALM_OUTCOME_FAILED);
    assert_true(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__a_failed_probe_ejects_again_for_longer(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    w.now += 5 * BECALM_S;
    attempts(&w, 0, 1, BECALM_OUTCOME_TIMED_OUT);
    check_eq_u64(out_for(&w), 10 * BECALM_S);
    check_eq_u64(ejected_count(w.hosts), 1);
    w.now += 10 * BECALM_S;
    attempts(&w, 0, 1, BECALM_OUTCOME_TIMED_OUT);
    check_eq_u64(out_for(&w), 15 * BECALM_S);
    world_end(&w);
}

static void test_outlier__each_ejection_has_a_probe_of_its_own(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    w.policy.max_ejection = 5 * BECALM_S; /* shorter than the lease of a probe */
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    for (int i = 0; i < 3; i++) {
        w.now += 5 * BECALM_S;
        assert_true(usable(&w, 0));
        attempts(&w, 0, 1, BECALM_OUTCOME_FAILED);
        check_eq_u64(out_for(&w), 5 * BECALM_S);
    }
    world_end(&w);
}

static void test_outlier__a_probe_without_a_verdict_is_given_back(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    w.now += 5 * BECALM_S;
    becalm_hosts_sent(w.hosts, 0, w.now);
    assert_false(usable(&w, 0));
    note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_CANCELLED});
    assert_true(usable(&w, 0));
    check_eq_u64(ejected_count(w.hosts), 1); /* it has proved nothing */
    attempts(&w, 0, 1, BECALM_OUTCOME_OK);
    check_eq_u64(ejected_count(w.hosts), 0);
    world_end(&w);
}

static void test_outlier__a_lost_probe_is_replaced_when_its_lease_ends(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    w.now += 5 * BECALM_S;
    becalm_hosts_sent(w.hosts, 0, w.now); /* and is never heard of again */
    w.now += BECALM_PROBE_LEASE - 1;
    assert_false(usable(&w, 0));
    w.now += 1;
    assert_true(usable(&w, 0));
    becalm_hosts_sent(w.hosts, 0, w.now);
    assert_false(usable(&w, 0));
    note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK});
    assert_true(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__stragglers_neither_shorten_nor_lengthen_an_ejection(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    for (int i = 0; i < 20; i++) {
        becalm_hosts_sent(w.hosts, 0, w.now);
    }
    for (int i = 0; i < 5; i++) {
        note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_TIMED_OUT});
    }
    check_eq_u64(out_for(&w), 5 * BECALM_S);
    w.now += 2 * BECALM_S;
    for (int i = 0; i < 5; i++) {
        note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_TIMED_OUT});
        note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK});
    }
    check_eq_u64(out_for(&w), 3 * BECALM_S);
    w.now += 3 * BECALM_S; /* over, but no probe was sent: there is no verdict yet */
    note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_TIMED_OUT});
    note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK});
    check_eq_u64(ejected_count(w.hosts), 1);
    assert_true(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__an_older_clock_sends_no_probe_and_counts_nothing_down(void **state)
{
    (void)state;
    struct world w = world_istio(10);
    w.now = 1000 * BECALM_S;
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    w.now = 10 * BECALM_S;
    assert_false(usable(&w, 0));
    attempts(&w, 0, 1, BECALM_OUTCOME_OK);
    attempts(&w, 0, 1, BECALM_OUTCOME_FAILED);
    check_eq_u64(ejected_count(w.hosts), 1);
    check_eq_u64(out_for(&w), 1020 * BECALM_S);
    w.now = 1030 * BECALM_S;
    becalm_hosts_sent(w.hosts, 0, w.now); /* the probe, and a result from a worker that is not there yet */
    becalm_hosts_sent(w.hosts, 0, w.now);
    w.now = 1029 * BECALM_S;
    note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK});
    check_eq_u64(ejected_count(w.hosts), 1);
    w.now = 1030 * BECALM_S;
    note_outcome(&w, 0, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK});
    check_eq_u64(ejected_count(w.hosts), 0);
    w.now = 1000 * BECALM_S; /* must not make the calm look longer than it was */
    attempts(&w, 0, 4, BECALM_OUTCOME_FAILED);
    w.now = 1031 * BECALM_S;
    attempts(&w, 0, 1, BECALM_OUTCOME_FAILED);
    check_eq_u64(out_for(&w), 60 * BECALM_S);
    world_end(&w);
}

static void test_outlier__the_end_of_time_wraps_nothing(void **state)
{
    (void)state;
    struct world w = world_istio(10);
    w.now = BECALM_NEVER - BECALM_S;
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    assert_false(usable(&w, 0));
    struct becalm_outcome hint = {.kind = BECALM_OUTCOME_RATE_LIMITED, .has_hint = true, .hint = BECALM_NEVER};
    attempt(&w, 1, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 1, w.now), BECALM_HINT_MAX);
    world_end(&w);
}

/* --- hints --- */

static void test_outlier__without_a_hint_nobody_waits(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 1, BECALM_OUTCOME_RATE_LIMITED);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, 0), 0);
    world_end(&w);
}

static void test_outlier__a_hint_holds_for_its_time_and_for_its_host_only(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    w.now = 50 * BECALM_S;
    struct becalm_outcome hint = {.kind = BECALM_OUTCOME_REJECTED, .has_hint = true, .hint = 7 * BECALM_S};
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 7 * BECALM_S);
    check_eq_u64(becalm_hosts_hint(w.hosts, 1, w.now), 0);
    assert_true(usable(&w, 0)); /* first attempts still go there */
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now + 6 * BECALM_S), 1 * BECALM_S);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now + 7 * BECALM_S), 0);

    hint.hint = 2 * BECALM_S; /* a shorter one takes nothing back */
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 7 * BECALM_S);
    hint.kind = BECALM_OUTCOME_OK; /* a success that says when to come again is not a refusal */
    hint.hint = 30 * BECALM_S;
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 7 * BECALM_S);
    world_end(&w);
}

static void test_outlier__a_hint_to_one_caller_alone_is_not_its_hosts(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    struct becalm_outcome hint = {
        .kind = BECALM_OUTCOME_RATE_LIMITED, .has_hint = true, .own_hint = true, .hint = 7 * BECALM_S};
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 0);
    hint.kind = BECALM_OUTCOME_REJECTED; /* RESOURCE_EXHAUSTED */
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 0);
    hint.mark = BECALM_MARK_OVERLOADED_HOST; /* which the host means */
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), BECALM_HINT_MARKED);
    world_end(&w);
}

static void test_outlier__no_hint_is_remembered_for_more_than_a_minute(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    w.now = 100 * BECALM_S;
    struct becalm_outcome hint = {.kind = BECALM_OUTCOME_RATE_LIMITED, .has_hint = true, .hint = BECALM_NEVER};
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 60 * BECALM_S);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, 0), 60 * BECALM_S); /* also for a clock that lags */
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now + 60 * BECALM_S), 0);
    world_end(&w);
}

static void test_outlier__hints_are_remembered_with_ejection_off(void **state)
{
    (void)state;
    struct world w = world_rate(1);
    w.policy.enabled = false;
    struct becalm_outcome hint = {.kind = BECALM_OUTCOME_RATE_LIMITED, .has_hint = true, .hint = 3 * BECALM_S};
    attempt(&w, 0, &hint);
    check_eq_u64(becalm_hosts_hint(w.hosts, 0, w.now), 3 * BECALM_S);
    world_end(&w);
}

/* --- reload --- */

static void test_outlier__a_reload_keeps_ejections_times_and_hints_but_not_what_is_in_flight(void **state)
{
    (void)state;
    struct world w = world_rate(4);
    w.now = 20 * BECALM_S;
    attempts(&w, 0, 5, BECALM_OUTCOME_FAILED);
    struct becalm_outcome hint = {.kind = BECALM_OUTCOME_RATE_LIMITED, .has_hint = true, .hint = 9 * BECALM_S};
    attempt(&w, 1, &hint);
    becalm_hosts_sent(w.hosts, 2, w.now);
    w.now += 5 * BECALM_S;
    becalm_hosts_sent(w.hosts, 0, w.now); /* the probe reports to the old hosts */

    struct becalm_hosts *old = w.hosts;
    w.hosts = hosts_new(&w.policy, 4, 2);
    becalm_hosts_carry(w.hosts, old);
    check_eq_u64(ejected_count(w.hosts), 1);
    check_eq_u64(becalm_hosts_hint(w.hosts, 1, w.now), 4 * BECALM_S);
    check_eq_u64(atomic_load_explicit(&w.hosts->host[2].in_flight, memory_order_relaxed), 0);
    attempts(&w, 0, 1, BECALM_OUTCOME_FAILED); /* the new hosts send a probe of their own */
    check_eq_u64(out_for(&w), 10 * BECALM_S);
    world_end(&w);

    w.hosts = hosts_new(&w.policy, 3, 1); /* another number: they may be other hosts */
    becalm_hosts_carry(w.hosts, old);
    check_eq_u64(ejected_count(w.hosts), 0);
    check_eq_u64(becalm_hosts_hint(w.hosts, 1, w.now), 0);
    becalm_hosts_check(old, 3, false);
    becalm_host_carry(w.hosts, 1, old, 0); /* these two are known to be the same */
    becalm_host_carry(w.hosts, 0, old, 3);
    check_eq_u64(ejected_count(w.hosts), 1);
    check_eq_u64(atomic_load_explicit(&w.hosts->host[1].times, memory_order_relaxed), 1);
    assert_true(becalm_host_fails_checks(w.hosts, 0));
    assert_false(becalm_host_fails_checks(w.hosts, 1));
    world_end(&w);
    free(old);
}

static void test_outlier__a_reload_keeps_failures_in_a_row_and_how_long_they_are_fresh(void **state)
{
    (void)state;
    struct world w = world_istio(2);
    const struct becalm_moment at = {.now = w.now};
    const struct becalm_outcome timed_out = {.kind = BECALM_OUTCOME_TIMED_OUT};
    struct becalm__result result = {.outcome = &timed_out, .took = 50 * BECALM_MS};
    for (int i = 0; i < 4; i++) {
        becalm_hosts_sent(w.hosts, 0, w.now);
        becalm__hosts_note(w.hosts, &w.policy, &at, 0, &result);
    }
    struct becalm_hosts *later = hosts_new(&w.policy, 2, 1);
    becalm_hosts_carry(later, w.hosts);
    check_eq_u64(becalm__streak_read(&later->host[0]).failures, 4);
    check_eq_u64(becalm__streak_read(&later->host[0]).fresh, 100 * BECALM_MS);
    check_eq_u64(becalm__streak_read(&later->host[1]).failures, 0);
    free(later);
    world_end(&w);
}

static void test_outlier__failures_in_a_row_stop_at_the_largest_number(void **state)
{
    (void)state;
    struct world w = world_istio(10);
    struct becalm__streak most = {.failures = UINT32_MAX - 1, .fresh = BECALM_S};
    atomic_store_explicit(&w.hosts->host[0].streak, becalm__streak_word(most), memory_order_relaxed);
    for (int i = 0; i < 2; i++) {
        attempts(&w, 0, 1, BECALM_OUTCOME_REFUSED);
        check_eq_u64(becalm__streak_read(&w.hosts->host[0]).failures, UINT32_MAX);
        check_eq_u64(becalm__streak_read(&w.hosts->host[0]).fresh, BECALM_S);
    }
    becalm_hosts_back(w.hosts, 0, w.now);
    check_eq_u64(becalm__streak_read(&w.hosts->host[0]).failures, 0);
    world_end(&w);
}

/* --- properties --- */

static enum becalm_outcome_kind random_kind(uint64_t random)
{
    return (enum becalm_outcome_kind)becalm_rand_below(random, BECALM_OUTCOME_COUNT);
}

/* At every moment: the count is the truth, and no more hosts are out than may be, never all. */
static void run_random(uint64_t seed, uint32_t count, bool by_rate)
{
    uint64_t random = seed;
    struct world w = by_rate ? world_rate(count) : world_istio(count);
    w.policy.max_ejected_ppm = (uint32_t)becalm_rand_below(becalm_rand_next(&random), 1000001);
    uint32_t out_max = (uint32_t)((uint64_t)count * w.policy.max_ejected_ppm / 1000000);
    out_max = out_max < count ? out_max : count - 1;
    for (int i = 0; i < RUNS_OF(20000); i++) {
        w.now += becalm_rand_below(becalm_rand_next(&random), 200 * BECALM_MS);
        uint32_t host = (uint32_t)becalm_rand_below(becalm_rand_next(&random), count);
        uint64_t bits = becalm_rand_next(&random);
        bool bad = (host + (uint64_t)i / 2000) % 3 == 0; /* a third of the hosts, other ones every 2000 steps */
        struct becalm_outcome outcome = {.kind = bad ? BECALM_OUTCOME_TIMED_OUT : random_kind(bits),
                                         .mark = (enum becalm_mark_kind)(bits % 4),
                                         .has_hint = bits & 1,
                                         .hint = bits};
        becalm_hosts_sent(w.hosts, host, w.now);
        if (i % 100 != 0) { /* one in a hundred is lost */
            note_outcome(&w, host, &outcome);
        }
        bool fine = ejected_count(w.hosts) == ejected_recount(w.hosts) && usable_count(&w) >= count - out_max &&
                    becalm_hosts_hint(w.hosts, host, w.now) <= BECALM_HINT_MAX;
        if (!fine) {
            fail_msg("seed %llu, %u hosts, step %d: ejected %llu, usable %u", (unsigned long long)seed, count, i,
                     (unsigned long long)ejected_count(w.hosts), usable_count(&w));
        }
    }
    world_end(&w);
}

static void test_outlier__checks_and_ejections_do_not_count_for_each_other(void **state)
{
    (void)state;
    struct world w = world_rate(70); /* more than one word of bits */
    check_true(!becalm_hosts_all_fail(w.hosts));
    for (uint32_t i = 0; i < 70; i++) {
        check_true(!becalm_host_fails_checks(w.hosts, i));
        becalm_hosts_check(w.hosts, i, i != 69);
        becalm_hosts_check(w.hosts, i, i != 69); /* told twice, counted once */
    }
    check_true(becalm_host_fails_checks(w.hosts, 69) && !becalm_host_fails_checks(w.hosts, 5));
    check_true(!becalm_host_usable(w.hosts, &w.policy, 69, 0) && becalm_host_usable(w.hosts, &w.policy, 68, 0));
    check_true(!becalm_host_ejected(w.hosts, 69, 0) && !becalm_hosts_ignored(w.hosts, &w.policy));
    attempts(&w, 0, 5, BECALM_OUTCOME_REFUSED);
    check_true(becalm_host_ejected(w.hosts, 0, 0));
    check_eq_u64(ejected_count(w.hosts), 1);
    struct becalm_hosts *later = hosts_new(&w.policy, 70, 1);
    becalm_hosts_carry(later, w.hosts);
    check_true(becalm_host_fails_checks(later, 69) && !becalm_host_usable(later, &w.policy, 69, 0));
    check_eq_u64(ejected_count(later), 1);
    for (uint32_t i = 0; i < 70; i++) {
        becalm_hosts_check(later, i, false);
    }
    check_true(becalm_hosts_all_fail(later) && becalm_host_usable(later, &w.policy, 69, 0));
    check_true(!becalm_host_usable(later, &w.policy, 0, 0)); /* its ejection still counts */
    becalm_hosts_check(later, 69, true);
    check_true(!becalm_hosts_all_fail(later) && !becalm_host_usable(later, &w.policy, 1, 0));
    free(later);
    struct becalm_outlier_policy off = {.enabled = false};
    struct becalm_hosts *none = hosts_new(&off, 2, 1);
    becalm_hosts_check(none, 0, false);
    check_true(!becalm_host_usable(none, &off, 0, 0) && becalm_host_usable(none, &off, 1, 0));
    free(none);
    world_end(&w);
}

static void test_outlier__no_random_history_puts_more_out_than_the_maximum(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        run_random(seed, (uint32_t)seed, true);
        run_random(seed + 100, (uint32_t)seed, false);
    }
}

/* --- threads --- */

enum { THREADS = 8, STEPS = RUNS_OF(50000), SHARED_HOSTS = 6 };

struct worker {
    pthread_barrier_t *start; /* all at once, or the first would be done before the last begins */
    struct world *world;
    uint32_t number;
};

static void *worker_run(void *data)
{
    const struct worker *me = data;
    struct world *w = me->world;
    uint64_t random = 1000 + me->number;
    pthread_barrier_wait(me->start);
    struct becalm_moment at = {.now = me->number * BECALM_US, .cell = me->number};
    for (uint32_t i = 0; i < STEPS; i++) {
        at.now += becalm_rand_below(becalm_rand_next(&random), 5 * BECALM_MS);
        at.random = becalm_rand_next(&random);
        uint32_t host = (uint32_t)becalm_rand_below(at.random, SHARED_HOSTS);
        struct becalm_outcome outcome = {.kind = random_kind(becalm_rand_next(&random)), .has_hint = true, .hint = i};
        (void)becalm_host_usable(w->hosts, &w->policy, host, at.now);
        becalm_hosts_sent(w->hosts, host, at.now);
        becalm_hosts_note(w->hosts, &w->policy, &at, host, &outcome);
        (void)becalm_hosts_hint(w->hosts, host, at.now);
    }
    return NULL;
}

static void *worker_fail(void *data)
{
    const struct worker *me = data;
    struct world *w = me->world;
    const struct becalm_outcome timed_out = {.kind = BECALM_OUTCOME_TIMED_OUT};
    struct becalm__result result = {.outcome = &timed_out, .took = (me->number + 1) * BECALM_MS};
    struct becalm_moment at = {.now = BECALM_S, .cell = me->number};
    pthread_barrier_wait(me->start);
    for (uint32_t i = 0; i < STEPS; i++) {
        becalm_hosts_sent(w->hosts, 0, at.now);
        becalm__hosts_note(w->hosts, &w->policy, &at, 0, &result);
    }
    return NULL;
}

static void run_workers(struct world *w, void *(*run)(void *))
{
    pthread_t thread[THREADS];
    struct worker worker[THREADS];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){&start, w, i};
        assert_int_equal(pthread_create(&thread[i], NULL, run, &worker[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    pthread_barrier_destroy(&start);
}

static void run_threads(struct world *w)
{
    run_workers(w, worker_run);
    check_eq_u64(ejected_count(w->hosts), ejected_recount(w->hosts));
    w->now = 10000 * BECALM_S;
    for (uint32_t host = 0; host < SHARED_HOSTS; host++) {
        check_eq_u64(atomic_load_explicit(&w->hosts->host[host].in_flight, memory_order_relaxed), 0);
        attempts(w, host, 1, BECALM_OUTCOME_OK);
        assert_true(usable(w, host));
    }
    check_eq_u64(ejected_count(w->hosts), 0);
}

static void test_outlier__eight_threads_lose_no_count_and_leave_no_host_behind(void **state)
{
    (void)state;
    struct world w = {.now = 0};
    becalm_outlier_defaults(&w.policy);
    w.policy.base_ejection = 20 * BECALM_MS; /* so that hosts go and come all the time */
    w.policy.max_ejection = BECALM_S;
    w.policy.max_ejected_ppm = 1000000;
    w.hosts = hosts_new(&w.policy, SHARED_HOSTS, 4);
    run_threads(&w);
    world_end(&w);
    w.policy.consecutive = 2;
    w.hosts = hosts_new(&w.policy, SHARED_HOSTS, 4);
    run_threads(&w);
    world_end(&w);
}

static void test_outlier__eight_threads_lose_no_failure_in_a_row(void **state)
{
    (void)state;
    struct world w = world_istio(2);
    w.policy.consecutive = 1000000;
    run_workers(&w, worker_fail);
    struct becalm__streak streak = becalm__streak_read(&w.hosts->host[0]);
    check_eq_u64(streak.failures, THREADS * STEPS);
    check_true(streak.fresh >= 2 * BECALM_MS && streak.fresh <= 2 * THREADS * BECALM_MS);
    world_end(&w);
}

BECALM_TESTS(cmocka_unit_test(test_outlier__defaults_and_istio_pass_their_check),
             cmocka_unit_test(test_outlier__bad_parameters_are_refused_by_name),
             cmocka_unit_test(test_outlier__a_policy_that_is_off_is_not_looked_at_and_ejects_nobody),
             cmocka_unit_test(test_outlier__no_hosts_need_one_line),
             cmocka_unit_test(test_outlier__every_host_has_its_own_lines_and_windows_only_when_rates_count),
             cmocka_unit_test(test_outlier__a_fresh_host_is_usable_from_time_zero),
             cmocka_unit_test(test_outlier__counts_attempts_in_flight),
             cmocka_unit_test(test_outlier__half_of_at_least_five_results_failed_ejects_for_five_seconds),
             cmocka_unit_test(test_outlier__the_share_is_reached_at_exactly_one_half),
             cmocka_unit_test(test_outlier__failures_older_than_the_window_are_forgotten),
             cmocka_unit_test(test_outlier__which_outcomes_count_against_a_host),
             cmocka_unit_test(test_outlier__a_rejection_marked_for_the_service_does_not_count),
             cmocka_unit_test(test_outlier__a_mark_for_the_service_excuses_no_other_failure),
             cmocka_unit_test(test_outlier__a_host_that_says_it_is_overloaded_fails_and_is_left_alone_for_a_second),
             cmocka_unit_test(test_outlier__istio_five_in_a_row_and_thirty_seconds_times_the_times),
             cmocka_unit_test(test_outlier__times_are_counted_down_by_one_for_each_calm_interval),
             cmocka_unit_test(test_outlier__five_of_ten_dead_are_out_and_six_of_ten_are_all_used),
             cmocka_unit_test(test_outlier__what_all_hosts_share_ejects_none_of_them),
             cmocka_unit_test(test_outlier__a_host_goes_if_it_fails_twice_as_often_as_the_others_that_are_in),
             cmocka_unit_test(test_outlier__hosts_that_fail_alike_stay_in),
             cmocka_unit_test(test_outlier__a_host_that_is_used_all_the_same_is_seen_to_fail),
             cmocka_unit_test(test_outlier__the_maximum_is_rounded_down_and_spares_the_last_host),
             cmocka_unit_test(test_outlier__while_ejections_are_ignored_results_readmit_and_times_do_not_grow),
             cmocka_unit_test(test_outlier__after_its_time_one_probe_and_a_good_one_brings_the_host_back),
             cmocka_unit_test(test_outlier__a_failed_probe_ejects_again_for_longer),
             cmocka_unit_test(test_outlier__each_ejection_has_a_probe_of_its_own),
             cmocka_unit_test(test_outlier__a_probe_without_a_verdict_is_given_back),
             cmocka_unit_test(test_outlier__a_lost_probe_is_replaced_when_its_lease_ends),
             cmocka_unit_test(test_outlier__stragglers_neither_shorten_nor_lengthen_an_ejection),
             cmocka_unit_test(test_outlier__an_older_clock_sends_no_probe_and_counts_nothing_down),
             cmocka_unit_test(test_outlier__the_end_of_time_wraps_nothing),
             cmocka_unit_test(test_outlier__without_a_hint_nobody_waits),
             cmocka_unit_test(test_outlier__a_hint_holds_for_its_time_and_for_its_host_only),
             cmocka_unit_test(test_outlier__a_hint_to_one_caller_alone_is_not_its_hosts),
             cmocka_unit_test(test_outlier__no_hint_is_remembered_for_more_than_a_minute),
             cmocka_unit_test(test_outlier__hints_are_remembered_with_ejection_off),
             cmocka_unit_test(test_outlier__a_reload_keeps_ejections_times_and_hints_but_not_what_is_in_flight),
             cmocka_unit_test(test_outlier__a_reload_keeps_failures_in_a_row_and_how_long_they_are_fresh),
             cmocka_unit_test(test_outlier__failures_in_a_row_stop_at_the_largest_number),
             cmocka_unit_test(test_outlier__checks_and_ejections_do_not_count_for_each_other),
             cmocka_unit_test(test_outlier__no_random_history_puts_more_out_than_the_maximum),
             cmocka_unit_test(test_outlier__eight_threads_lose_no_count_and_leave_no_host_behind),
             cmocka_unit_test(test_outlier__eight_threads_lose_no_failure_in_a_row))
