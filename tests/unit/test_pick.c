/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* barriers */

#include <becalm/pick.h>

#include <pthread.h>

#include "../lib/check.h"
#include "engine/outlier_internal.h"

/* Hosts that one failure ejects, so that a test can say which are out; all but one may be. */
struct world {
    struct becalm_outlier_policy policy;
    struct becalm_hosts *hosts;
    uint64_t random;
    becalm_ns now;
};

static struct world world_new(uint32_t count, uint64_t seed)
{
    struct world w = {.random = seed};
    becalm_outlier_istio(&w.policy);
    w.policy.consecutive = 1;
    w.policy.max_ejected_ppm = 1000000;
    void *memory = aligned_alloc(64, becalm_hosts_bytes(&w.policy, count, 1));
    assert_non_null(memory);
    w.hosts = becalm_hosts_init(memory, &w.policy, count, 1);
    return w;
}

static void world_end(struct world *w)
{
    free(w->hosts);
}

static void attempt(struct world *w, uint32_t host, const struct becalm_outcome *outcome)
{
    struct becalm_moment at = {.now = w->now};
    becalm_hosts_sent(w->hosts, host, w->now);
    becalm_hosts_note(w->hosts, &w->policy, &at, host, outcome);
}

static void eject(struct world *w, uint32_t host)
{
    attempt(w, host, &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED});
}

static void hint(struct world *w, uint32_t host)
{
    attempt(w, host,
            &(struct becalm_outcome){.kind = BECALM_OUTCOME_RATE_LIMITED, .has_hint = true, .hint = 30 * BECALM_S});
}

static uint32_t pick(struct world *w, const struct becalm_tried *tried)
{
    struct becalm_moment at = {.now = w->now, .random = becalm_rand_next(&w->random)};
    return becalm_pick(w->hosts, &w->policy, &at, tried);
}

static uint64_t in_flight(const struct world *w, uint32_t host)
{
    return atomic_load_explicit(&w->hosts->host[host].in_flight, memory_order_relaxed);
}

/* Picks 10000 times per host, with all equally idle, and checks that each host of `expected` (a set, host n is bit n)
 * comes up as often as the others, to 6 standard deviations, and the rest never. */
static void check_even(struct world *w, const struct becalm_tried *tried, uint64_t expected, uint64_t seed)
{
    uint32_t count = w->hosts->count;
    uint64_t hits[64] = {0};
    uint64_t fit = 0;
    w->random = seed;
    assert_true(count <= 64);
    for (uint32_t i = 0; i < count; i++) {
        fit += expected >> i & 1;
    }
    for (uint64_t i = 0; i < 10000 * fit; i++) {
        uint32_t host = pick(w, tried);
        assert_true(host < count);
        hits[host]++;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool wanted = expected >> i & 1;
        if (wanted ? hits[i] < 9400 || hits[i] > 10600 : hits[i] != 0) {
            fail_msg("seed %llu: host %u of %u picked %llu times", (unsigned long long)seed, i, count,
                     (unsigned long long)hits[i]);
        }
    }
}

static void test_pick__without_hosts_there_is_none(void **state)
{
    (void)state;
    struct world w = world_new(0, 1);
    check_eq_u64(pick(&w, NULL), BECALM_NO_HOST);
    world_end(&w);
}

static void test_pick__the_only_host_is_always_it(void **state)
{
    (void)state;
    struct world w = world_new(1, 2);
    const uint32_t host[] = {0};
    struct becalm_tried tried = {host, 1};
    check_eq_u64(pick(&w, NULL), 0);
    check_eq_u64(pick(&w, &tried), 0);
    eject(&w, 0);
    hint(&w, 0);
    check_eq_u64(pick(&w, NULL), 0);
    check_eq_u64(pick(&w, &tried), 0);
    world_end(&w);
}

static void test_pick__idle_hosts_come_up_equally_often(void **state)
{
    (void)state;
    struct becalm_tried none = {NULL, 0};
    static const uint32_t counts[] = {2, 3, 10, 40};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct world w = world_new(counts[i], 0);
        check_even(&w, i % 2 == 0 ? NULL : &none, (UINT64_C(1) << counts[i]) - 1, 30 + i);
        world_end(&w);
    }
}

static void test_pick__of_two_hosts_the_one_with_less_in_flight_is_taken(void **state)
{
    (void)state;
    struct world w = world_new(2, 4);
    becalm_hosts_sent(w.hosts, 0, 0);
    for (int i = 0; i < 100; i++) {
        check_eq_u64(pick(&w, NULL), 1);
    }
    becalm_hosts_sent(w.hosts, 1, 0);
    becalm_hosts_sent(w.hosts, 1, 0);
    for (int i = 0; i < 100; i++) {
        check_eq_u64(pick(&w, NULL), 0);
    }
    world_end(&w);
}

static uint64_t most_loaded(const struct world *w)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < w->hosts->count; i++) {
        most = in_flight(w, i) > most ? in_flight(w, i) : most;
    }
    return most;
}

/* Nothing is ever in flight on a host that refuses at once: being idle must not make it the favourite. */
static void test_pick__a_host_that_has_just_failed_is_no_favourite_for_being_idle(void **state)
{
    (void)state;
    struct world w = world_new(2, 5);
    w.policy.consecutive = 1000; /* too bad to be liked, not bad enough to be ejected */
    w.now = 20 * BECALM_S;
    becalm_hosts_sent(w.hosts, 0, w.now);
    for (int i = 0; i < 2; i++) {
        attempt(&w, 1, &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED});
    }
    for (int i = 0; i < 100; i++) {
        check_eq_u64(pick(&w, NULL), 0);
    }
    w.now += BECALM_S - 1;
    check_eq_u64(pick(&w, NULL), 0);
    w.now += 1; /* long enough ago: it may be well again, and it is the idle one */
    check_eq_u64(pick(&w, NULL), 1);
    attempt(&w, 1, &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED});
    check_eq_u64(pick(&w, NULL), 0);
    attempt(&w, 1, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK}); /* one success is enough */
    check_eq_u64(pick(&w, NULL), 1);
    world_end(&w);
}

static void attempt_of(struct world *w, uint32_t host, enum becalm_outcome_kind kind, becalm_ns took)
{
    const struct becalm_outcome outcome = {.kind = kind};
    struct becalm_moment at = {.now = w->now};
    becalm_hosts_sent(w->hosts, host, w->now);
    becalm__hosts_note(w->hosts, &w->policy, &at, host, &(struct becalm__result){.outcome = &outcome, .took = took});
}

/* An attempt that timed out was in flight all the time, so its host was no favourite. */
static void test_pick__a_timeout_makes_its_host_a_second_choice_for_twice_as_long_as_it_took(void **state)
{
    (void)state;
    static const struct {
        enum becalm_outcome_kind kind;
        becalm_ns took, fresh;
    } rows[] = {
        {BECALM_OUTCOME_TIMED_OUT, 50 * BECALM_MS, 100 * BECALM_MS},
        {BECALM_OUTCOME_TIMED_OUT, BECALM_MS, 2 * BECALM_MS},
        {BECALM_OUTCOME_TIMED_OUT, 500 * BECALM_MS, BECALM_S},
        {BECALM_OUTCOME_TIMED_OUT, 30 * BECALM_S, BECALM_S},
        {BECALM_OUTCOME_TIMED_OUT, BECALM_NEVER, BECALM_S},
        {BECALM_OUTCOME_TIMED_OUT, 0, BECALM_S}, /* not known */
        {BECALM_OUTCOME_FAILED, 50 * BECALM_MS, BECALM_S},
        {BECALM_OUTCOME_REFUSED, 0, BECALM_S},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_new(2, 5);
        w.policy.consecutive = 1000;
        w.now = 20 * BECALM_S;
        becalm_hosts_sent(w.hosts, 0, w.now);
        attempt_of(&w, 1, BECALM_OUTCOME_REFUSED, 0); /* the last failure counts */
        attempt_of(&w, 1, rows[i].kind, rows[i].took);
        w.now += rows[i].fresh - 1;
        check_eq_u64(pick(&w, NULL), 0);
        w.now += 1;
        check_eq_u64(pick(&w, NULL), 1);
        world_end(&w);
    }
}

static void test_pick__two_choices_beat_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world two = world_new(100, seed);
        struct world one = world_new(100, seed);
        for (int i = 0; i < 10000; i++) {
            becalm_hosts_sent(two.hosts, pick(&two, NULL), 0);
            uint32_t host = (uint32_t)becalm_rand_below(becalm_rand_next(&one.random), 100);
            becalm_hosts_sent(one.hosts, host, 0);
        }
        /* The mean is 100. One choice leaves the fullest about sqrt(2 * 100 * ln 100) = 30 above it, two about 3. */
        if (most_loaded(&two) > 104 || most_loaded(&one) < 115) {
            fail_msg("seed %llu: fullest %llu with two choices, %llu with one", (unsigned long long)seed,
                     (unsigned long long)most_loaded(&two), (unsigned long long)most_loaded(&one));
        }
        world_end(&two);
        world_end(&one);
    }
}

static void test_pick__balance_holds_with_hosts_ejected_and_tried(void **state)
{
    (void)state;
    struct world w = world_new(100, 6);
    for (uint32_t i = 0; i < 50; i++) {
        eject(&w, i * 2);
    }
    const uint32_t host[] = {1, 3};
    struct becalm_tried tried = {host, 2};
    for (int i = 0; i < 4800; i++) { /* 48 hosts are left */
        becalm_hosts_sent(w.hosts, pick(&w, &tried), 0);
    }
    for (uint32_t i = 0; i < 100; i++) {
        if (i % 2 == 0 || i < 4) {
            check_eq_u64(in_flight(&w, i), 0);
        } else {
            check_between_u64(in_flight(&w, i), 90, 105);
        }
    }
    world_end(&w);
}

static void test_pick__the_two_choices_are_never_the_same_host(void **state)
{
    (void)state;
    struct world w = world_new(20, 5);
    for (uint32_t i = 2; i < 20; i++) {
        eject(&w, i);
    }
    becalm_hosts_sent(w.hosts, 0, 0);
    for (int i = 0; i < 10000; i++) { /* so of the two that are left it is always the idle one */
        check_eq_u64(pick(&w, NULL), 1);
    }
    world_end(&w);
}

static void test_pick__a_retry_avoids_every_host_tried(void **state)
{
    (void)state;
    struct world w = world_new(12, 0);
    const uint32_t host[] = {0, 5, 11, 5, BECALM_NO_HOST, 99};
    struct becalm_tried tried = {host, 6};
    check_even(&w, &tried, 0x7de, 7);
    world_end(&w);
    w = world_new(40, 0); /* by guesses instead of a look at each */
    check_even(&w, &tried, 0xfffffff7de, 8);
    world_end(&w);
}

static void test_pick__busy_hosts_that_were_not_tried_come_before_an_idle_one_that_was(void **state)
{
    (void)state;
    struct world w = world_new(3, 9);
    const uint32_t host[] = {2};
    struct becalm_tried tried = {host, 1};
    for (int i = 0; i < 10; i++) {
        becalm_hosts_sent(w.hosts, 0, 0);
        becalm_hosts_sent(w.hosts, 1, 0);
    }
    for (int i = 0; i < 1000; i++) {
        assert_true(pick(&w, &tried) != 2);
    }
    world_end(&w);
}

static void test_pick__ejected_hosts_are_avoided(void **state)
{
    (void)state;
    struct world w = world_new(3, 0);
    eject(&w, 1);
    check_even(&w, NULL, 0x5, 10);
    world_end(&w);
    w = world_new(40, 0);
    for (uint32_t i = 0; i < 40; i += 2) {
        eject(&w, i);
    }
    check_even(&w, NULL, 0xaaaaaaaaaa, 11);
    world_end(&w);
}

static void test_pick__a_host_whose_ejection_is_over_gets_one_probe(void **state)
{
    (void)state;
    struct world w = world_new(4, 12);
    eject(&w, 3);
    w.now += 30 * BECALM_S;
    uint64_t probes = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t host = pick(&w, NULL);
        becalm_hosts_sent(w.hosts, host, w.now);
        probes += host == 3;
    }
    check_eq_u64(probes, 1);
    world_end(&w);
}

static void test_pick__when_all_hosts_are_bad_all_are_used(void **state)
{
    (void)state;
    struct world w = world_new(4, 0);
    for (uint32_t i = 0; i < 4; i++) {
        eject(&w, i);
    }
    check_even(&w, NULL, 0xf, 13);
    const uint32_t host[] = {1, 2};
    check_even(&w, &(struct becalm_tried){host, 2}, 0x9, 14);
    world_end(&w);
}

static void test_pick__a_host_that_failed_the_call_once_comes_before_one_that_is_ejected(void **state)
{
    (void)state;
    struct world w = world_new(4, 0);
    eject(&w, 0);
    eject(&w, 1);
    const uint32_t host[] = {2, 3, 0, 1};
    check_even(&w, &(struct becalm_tried){host, 1}, 0x8, 15); /* 3 is left */
    check_even(&w, &(struct becalm_tried){host, 2}, 0xc, 16); /* none is left: again one that works for other calls */
    check_even(&w, &(struct becalm_tried){host, 4}, 0xc, 17);
    hint(&w, 2);
    check_even(&w, &(struct becalm_tried){host, 2}, 0x8, 18);
    hint(&w, 3);
    check_even(&w, &(struct becalm_tried){host, 2}, 0xc, 19); /* quiet for a while is not out */
    world_end(&w);
}

/* Ejections are ignored, so the dead host is in use: idle as it is, it must not become the favourite again. */
static void test_pick__a_host_that_fails_while_ejections_are_ignored_is_no_favourite_either(void **state)
{
    (void)state;
    struct world w = world_new(2, 27);
    w.now = 20 * BECALM_S;
    eject(&w, 0);
    eject(&w, 1);
    assert_true(becalm_hosts_ignored(w.hosts, &w.policy));
    becalm_hosts_sent(w.hosts, 1, w.now); /* the live one is busy */
    w.now += 3 * BECALM_S;
    eject(&w, 0);
    eject(&w, 0);
    assert_true(becalm_hosts_ignored(w.hosts, &w.policy));
    for (int i = 0; i < 100; i++) {
        check_eq_u64(pick(&w, NULL), 1);
    }
    world_end(&w);
}

static void test_pick__a_probe_of_the_breaker_goes_to_the_host_with_the_fewest_failures_in_a_row(void **state)
{
    (void)state;
    struct world w = world_new(4, 28);
    struct becalm_moment at = {.now = 0};
    uint32_t hits[4] = {0};
    w.policy.consecutive = 3;
    for (uint32_t host = 0; host < 2; host++) {
        attempt(&w, host, &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED});
    }
    for (int i = 0; i < 3; i++) {
        eject(&w, 3);
    }
    at.now = 20 * BECALM_S; /* long ago, but there is no newer result */
    for (int i = 0; i < 100; i++) {
        at.random = becalm_rand_next(&w.random);
        check_eq_u64(becalm_pick_probe(w.hosts, &w.policy, &at), 2);
    }
    attempt(&w, 2, &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED});
    for (int i = 0; i < 300; i++) {
        at.random = becalm_rand_next(&w.random);
        hits[becalm_pick_probe(w.hosts, &w.policy, &at)]++;
    }
    for (uint32_t host = 0; host < 3; host++) {
        assert_true(hits[host] >= 50); /* the one behind the ejected host has its turn too */
    }
    check_eq_u64(hits[3], 0);
    world_end(&w);
    w = world_new(0, 29);
    check_eq_u64(becalm_pick_probe(w.hosts, &w.policy, &at), BECALM_NO_HOST);
    world_end(&w);
}

static void test_pick__a_probe_of_the_breaker_does_not_ask_how_long_an_attempt_took(void **state)
{
    (void)state;
    struct world w = world_new(2, 30);
    struct becalm_moment at = {.now = 0};
    w.policy.consecutive = 1000;
    attempt_of(&w, 0, BECALM_OUTCOME_REFUSED, 0);
    attempt_of(&w, 1, BECALM_OUTCOME_TIMED_OUT, BECALM_MS);
    attempt_of(&w, 1, BECALM_OUTCOME_TIMED_OUT, BECALM_MS);
    for (int i = 0; i < 100; i++) {
        at.random = becalm_rand_next(&w.random);
        check_eq_u64(becalm_pick_probe(w.hosts, &w.policy, &at), 0);
    }
    world_end(&w);
}

static void test_pick__a_host_that_fails_its_checks_is_the_last_choice(void **state)
{
    (void)state;
    for (uint32_t count = 5; count <= 40; count += 35) { /* by a look at each, and by guesses */
        struct world w = world_new(count, 7);
        uint64_t all = (UINT64_C(1) << count) - 1;
        becalm_hosts_check(w.hosts, 0, false);
        check_even(&w, NULL, all & ~UINT64_C(1), 1);
        becalm_hosts_check(w.hosts, 0, true);
        check_even(&w, NULL, all, 2);
        world_end(&w);
    }
    struct world w = world_new(3, 7);
    const uint32_t been[] = {2};
    const struct becalm_tried tried = {been, 1};
    becalm_hosts_check(w.hosts, 0, false);
    eject(&w, 1);
    check_even(&w, NULL, 1 << 2, 3);
    check_even(&w, &tried, 1 << 2, 4); /* a host that failed this call may be well, those two are not */
    becalm_hosts_check(w.hosts, 2, false);
    check_even(&w, NULL, 1 << 1, 5); /* ejected for a while, which comes before failing now */
    for (uint64_t i = 0; i < 100; i++) {
        struct becalm_moment at = {.now = w.now, .random = i};
        check_eq_u64(becalm_pick_probe(w.hosts, &w.policy, &at), 1);
    }
    becalm_hosts_check(w.hosts, 1, false);
    check_even(&w, NULL, 1 << 0 | 1 << 2, 6); /* all fail, so that only the ejection counts */
    world_end(&w);
}

static void test_pick__a_retry_rather_goes_where_nobody_asked_for_quiet(void **state)
{
    (void)state;
    struct world w = world_new(4, 0);
    const uint32_t host[] = {0};
    struct becalm_tried tried = {host, 1};
    hint(&w, 1);
    check_even(&w, NULL, 0xf, 19); /* a first attempt does not care */
    check_even(&w, &tried, 0xc, 20);
    hint(&w, 2);
    hint(&w, 3);
    check_even(&w, &tried, 0xe, 21); /* the quiet gives way first */
    eject(&w, 2);
    check_even(&w, &tried, 0xa, 22); /* ejection does not yet */
    check_even(&w, NULL, 0xb, 26);   /* and a first attempt still does not care */
    w.now += 30 * BECALM_S;
    check_even(&w, &tried, 0xe, 23); /* hints and ejection are over */
    world_end(&w);
}

static void test_pick__the_same_bits_give_the_same_host(void **state)
{
    (void)state;
    struct world w = world_new(50, 24);
    const uint32_t host[] = {7};
    struct becalm_tried tried = {host, 1};
    for (uint32_t i = 0; i < 30; i++) {
        eject(&w, i);
    }
    for (int i = 0; i < 1000; i++) {
        struct becalm_moment at = {.random = becalm_rand_next(&w.random), .cell = 1};
        uint32_t first = becalm_pick(w.hosts, &w.policy, &at, &tried);
        at.cell = 5;
        check_eq_u64(becalm_pick(w.hosts, &w.policy, &at, &tried), first);
    }
    world_end(&w);
}

static void test_pick__finds_the_one_fit_host_of_4096(void **state)
{
    (void)state;
    struct world w = world_new(BECALM_HOSTS_MAX, 25);
    uint64_t spread = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t host = pick(&w, NULL);
        assert_true(host < BECALM_HOSTS_MAX);
        spread |= UINT64_C(1) << (host / 64);
    }
    check_eq_u64(spread, UINT64_MAX); /* every sixty-fourth of them was hit */
    for (uint32_t i = 0; i < BECALM_HOSTS_MAX; i++) {
        if (i != 4000) {
            eject(&w, i);
        }
    }
    for (int i = 0; i < 100; i++) {
        check_eq_u64(pick(&w, NULL), 4000);
    }
    const uint32_t host[] = {4000};
    for (int i = 0; i < 100; i++) {
        check_eq_u64(pick(&w, &(struct becalm_tried){host, 1}), 4000); /* it failed once; the others fail always */
    }
    world_end(&w);
}

enum { THREADS = 8, STEPS = 20000, SHARED_HOSTS = 24 };

struct worker {
    pthread_barrier_t *start; /* all at once, or the first would be done before the last begins */
    const struct world *world;
    uint64_t seed;
};

static void *worker_run(void *data)
{
    const struct worker *me = data;
    const struct world *w = me->world;
    uint64_t random = me->seed;
    pthread_barrier_wait(me->start);
    struct becalm_moment at = {.cell = (uint32_t)me->seed};
    for (int i = 0; i < STEPS; i++) {
        uint32_t host[2] = {BECALM_NO_HOST, BECALM_NO_HOST};
        for (uint32_t n = 0; n < 2; n++) {
            at.now += BECALM_MS;
            at.random = becalm_rand_next(&random);
            host[n] = becalm_pick(w->hosts, &w->policy, &at, &(struct becalm_tried){host, n});
            becalm_hosts_sent(w->hosts, host[n], at.now);
            struct becalm_outcome outcome = {.kind = at.random % 8 == 0 ? BECALM_OUTCOME_BROKEN : BECALM_OUTCOME_OK};
            becalm_hosts_note(w->hosts, &w->policy, &at, host[n], &outcome);
        }
        if (host[0] == host[1]) {
            return data; /* never: there are 24 */
        }
    }
    return NULL;
}

static void test_pick__eight_threads_always_get_a_host_and_another_for_the_retry(void **state)
{
    (void)state;
    struct world w = world_new(SHARED_HOSTS, 0);
    w.policy.max_ejected_ppm = 500000; /* so that there is always another that is usable */
    w.policy.base_ejection = 20 * BECALM_MS;
    w.policy.max_ejection = 100 * BECALM_MS;
    pthread_t thread[THREADS];
    struct worker worker[THREADS];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){&start, &w, i};
        assert_int_equal(pthread_create(&thread[i], NULL, worker_run, &worker[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        assert_null(wrong);
    }
    pthread_barrier_destroy(&start);
    check_eq_u64(most_loaded(&w), 0);
    world_end(&w);
}

BECALM_TESTS(cmocka_unit_test(test_pick__without_hosts_there_is_none),
             cmocka_unit_test(test_pick__the_only_host_is_always_it),
             cmocka_unit_test(test_pick__idle_hosts_come_up_equally_often),
             cmocka_unit_test(test_pick__of_two_hosts_the_one_with_less_in_flight_is_taken),
             cmocka_unit_test(test_pick__a_host_that_has_just_failed_is_no_favourite_for_being_idle),
             cmocka_unit_test(test_pick__a_timeout_makes_its_host_a_second_choice_for_twice_as_long_as_it_took),
             cmocka_unit_test(test_pick__two_choices_beat_one),
             cmocka_unit_test(test_pick__balance_holds_with_hosts_ejected_and_tried),
             cmocka_unit_test(test_pick__the_two_choices_are_never_the_same_host),
             cmocka_unit_test(test_pick__a_retry_avoids_every_host_tried),
             cmocka_unit_test(test_pick__busy_hosts_that_were_not_tried_come_before_an_idle_one_that_was),
             cmocka_unit_test(test_pick__ejected_hosts_are_avoided),
             cmocka_unit_test(test_pick__a_host_whose_ejection_is_over_gets_one_probe),
             cmocka_unit_test(test_pick__when_all_hosts_are_bad_all_are_used),
             cmocka_unit_test(test_pick__a_host_that_failed_the_call_once_comes_before_one_that_is_ejected),
             cmocka_unit_test(test_pick__a_host_that_fails_while_ejections_are_ignored_is_no_favourite_either),
             cmocka_unit_test(test_pick__a_probe_of_the_breaker_goes_to_the_host_with_the_fewest_failures_in_a_row),
             cmocka_unit_test(test_pick__a_probe_of_the_breaker_does_not_ask_how_long_an_attempt_took),
             cmocka_unit_test(test_pick__a_host_that_fails_its_checks_is_the_last_choice),
             cmocka_unit_test(test_pick__a_retry_rather_goes_where_nobody_asked_for_quiet),
             cmocka_unit_test(test_pick__the_same_bits_give_the_same_host),
             cmocka_unit_test(test_pick__finds_the_one_fit_host_of_4096),
             cmocka_unit_test(test_pick__eight_threads_always_get_a_host_and_another_for_the_retry))
