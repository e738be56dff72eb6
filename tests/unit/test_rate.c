/* SPDX-License-Identifier: MIT */
#include <becalm/rand.h>
#include <becalm/rate.h>

#include <pthread.h>

#include "lib/check.h"

#define START   (1000 * BECALM_S) /* on the boundary of a half second */
#define THREADS 8

static void note(struct becalm_rate *rate, becalm_ns now, enum becalm_outcome_kind kind)
{
    struct becalm_outcome outcome = {.kind = kind};
    becalm_rate_note(rate, now, &outcome);
}

static uint64_t measured_of(const struct becalm_rate *rate)
{
    return atomic_load_explicit(&rate->measured, memory_order_relaxed);
}

/* Answers `per_second` times a second for `seconds`, from `from` on; the last one falls on the end. */
static void answers(struct becalm_rate *rate, becalm_ns from, unsigned per_second, unsigned seconds)
{
    for (unsigned i = 1; i <= per_second * seconds; i++) {
        note(rate, from + i * (BECALM_S / per_second), BECALM_OUTCOME_OK);
    }
}

/* A caller of 100 a second for ten seconds that is throttled at START + 10 s: 70 a second from there. */
static becalm_ns throttled_at_100(struct becalm_rate *rate)
{
    becalm_rate_init(rate);
    answers(rate, START, 100, 10);
    note(rate, START + 10 * BECALM_S, BECALM_OUTCOME_RATE_LIMITED);
    return START + 10 * BECALM_S;
}

/* ----------------------------------------------------------------------------------------------------------- CUBIC */

static void test_rate__k_of_ten_a_second_is_1957_ms(void **state)
{
    (void)state;
    check_eq_u64(becalm_rate_k_ms(0), 0);
    check_eq_u64(becalm_rate_k_ms(10000), 1957); /* cbrt(10 * 0.3 / 0.4) = 1.9574338 s */
    check_eq_u64(becalm_rate_k_ms(1000), 909);   /* 0.9085603 s: to the nearest */
}

/* K^3 = w_max * 0.75: K is the nearest whole number of ms, so the cube lies between those of K - 1/2 and K + 1/2. */
static void test_rate__k_is_the_nearest_cube_root_at_every_size(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t max = becalm_rand_next(&seed) >> (32 + i % 32);
        uint64_t k = becalm_rate_k_ms(max);
        uint64_t cube = 8 * UINT64_C(750000) * (max < 4000000000 ? max : 4000000000);
        uint64_t below = k == 0 ? 0 : 2 * k - 1;
        uint64_t above = 2 * k + 1;
        if (below * below * below > cube || above * above * above <= cube) {
            print_error("seed 5, round %u: K of %" PRIu64 " is %" PRIu64 "\n", i, max, k);
            fail();
        }
    }
}

/* 0.4 * (t - 1.9574338)^3 + 10, t = 0 to 6 s. K is rounded to a ms, which costs up to 1.2 * (t - K)^2 * 0.5 ms. */
static void test_rate__cubic_after_a_throttle_at_ten_a_second(void **state)
{
    (void)state;
    static const uint64_t expected[] = {7000, 9649, 10000, 10453, 13409, 21266, 36426};
    for (uint64_t second = 0; second <= 6; second++) {
        check_between_u64(becalm_rate_cubic(10000, second * BECALM_S), expected[second] - 10, expected[second] + 10);
    }
}

/* As above from 5 s to 6 s; then two throttles in a row, each to 0.7 of the rate before; then
 * 0.4 * (t - 1.7174321)^3 + 6.754255, t = 1 to 4 s, since the latter throttled a rate of 6.754255. */
static void test_rate__cubic_after_two_throttles_in_a_row(void **state)
{
    (void)state;
    uint64_t first = becalm_rate_cubic(10000, BECALM_S);
    uint64_t second = first * 7 / 10;
    check_between_u64(second, 6754 - 2, 6754 + 2);
    check_between_u64(second * 7 / 10, 4728 - 2, 4728 + 2);
    static const uint64_t expected[] = {4728, 6607, 6763, 7598, 11511};
    for (uint64_t t = 0; t <= 4; t++) {
        check_between_u64(becalm_rate_cubic(second, t * BECALM_S), expected[t] - 5, expected[t] + 5);
    }
}

static void test_rate__cubic_begins_at_seven_tenths_and_never_falls(void **state)
{
    (void)state;
    static const uint64_t max[] = {0, 1, 500, 10000, 1000000, 100000000, 4000000000};
    for (size_t i = 0; i < sizeof max / sizeof max[0]; i++) {
        uint64_t last = becalm_rate_cubic(max[i], 0);
        /* K is off by half a ms at most: 1.2 * K^2 * 0.5 ms. */
        uint64_t k = becalm_rate_k_ms(max[i]);
        uint64_t slack = 2 + k * k * 6 / 10000000;
        check_between_u64(last + slack, max[i] * 7 / 10, max[i] * 7 / 10 + 2 * slack);
        for (becalm_ns since = 0; since <= 70 * BECALM_S; since += 100 * BECALM_MS) {
            uint64_t now = becalm_rate_cubic(max[i], since);
            check_true(now >= last);
            last = now;
        }
    }
}

static void test_rate__nothing_overflows_at_the_ends(void **state)
{
    (void)state;
    check_eq_u64(becalm_rate_k_ms(UINT64_MAX), 144225);
    check_eq_u64(becalm_rate_cubic(10000, BECALM_NEVER), becalm_rate_cubic(10000, 60 * BECALM_S));
    check_eq_u64(becalm_rate_cubic(UINT64_MAX, 0), becalm_rate_cubic(4000000000, 0));
    check_eq_u64(becalm_rate_cubic(0, BECALM_NEVER), 86400000); /* 0.4 * 60^3 */
    check_eq_u64(becalm_rate_cubic(0, 0), 0);
}

/* ------------------------------------------------------------------------------------------------------ the measure */

static void test_rate__off_until_somebody_throttles(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_rate_init(&rate);
    check_eq_u64(becalm_rate_now(&rate), 0);
    check_eq_u64(becalm_rate_peek(&rate, START), 0);
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        if (kind != BECALM_OUTCOME_RATE_LIMITED && kind != BECALM_OUTCOME_REJECTED) {
            note(&rate, START + kind * BECALM_S, (enum becalm_outcome_kind)kind);
        }
    }
    check_eq_u64(becalm_rate_now(&rate), 0);
    for (unsigned i = 0; i < 1000; i++) {
        check_eq_u64(becalm_rate_take(&rate, START + 60 * BECALM_S), 0);
    }
    becalm_rate_give(&rate, START);
    check_eq_u64(becalm_rate_peek(&rate, START + 60 * BECALM_S), 0);
}

/* One answer every 0.2 s, the tenth and the sixteenth throttled: the measured rate is 0.8 of the last half second's
 * plus 0.2 of the average before; the rate is 0.7 of it after the first throttle, then 0.4 * (t - 1.4804576)^3
 * + 4.3264; at the second throttle it is 0.7 * min(4.333056, 4.282037). The original calculates a rate before the first
 * throttle too, and does not use it; here it is 0. */
static void test_rate__the_originals_table_of_answers_and_rates(void **state)
{
    (void)state;
    static const struct {
        uint64_t measured, rate;
    } rows[] = {
        {0, 0},       {0, 0},       {4800, 0},    {4800, 0},    {4160, 0},    {4160, 0},
        {4160, 0},    {5632, 0},    {5632, 0},    {4326, 3028}, {4326, 3487}, {4326, 3822},
        {5665, 4053}, {5665, 4200}, {4333, 4282}, {4333, 2997}, {4333, 3452},
    };
    struct becalm_rate rate;
    becalm_rate_init(&rate);
    for (uint64_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool throttled = i == 9 || i == 15;
        note(&rate, START + (i + 1) * 200 * BECALM_MS, throttled ? BECALM_OUTCOME_RATE_LIMITED : BECALM_OUTCOME_OK);
        check_between_u64(measured_of(&rate) + 2, rows[i].measured, rows[i].measured + 4);
        check_between_u64(becalm_rate_now(&rate) + 2, rows[i].rate, rows[i].rate + 4);
    }
}

static void test_rate__rejections_throttle_as_rate_limits_do(void **state)
{
    (void)state;
    static const enum becalm_outcome_kind kinds[] = {BECALM_OUTCOME_RATE_LIMITED, BECALM_OUTCOME_REJECTED};
    for (size_t i = 0; i < 2; i++) {
        struct becalm_rate rate;
        becalm_rate_init(&rate);
        answers(&rate, START, 100, 10);
        note(&rate, START + 10 * BECALM_S, kinds[i]);
        check_between_u64(becalm_rate_now(&rate), 69000, 71000);
    }
}

static void test_rate__other_answers_raise_it_and_silence_leaves_it(void **state)
{
    (void)state;
    static const bool answered[BECALM_OUTCOME_COUNT] = {
        [BECALM_OUTCOME_OK] = true,     [BECALM_OUTCOME_PERMANENT] = true, [BECALM_OUTCOME_FAILED] = true,
        [BECALM_OUTCOME_BROKEN] = true, [BECALM_OUTCOME_LATE] = true,      [BECALM_OUTCOME_CONFLICT] = true,
    };
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        if (kind == BECALM_OUTCOME_RATE_LIMITED || kind == BECALM_OUTCOME_REJECTED) {
            continue;
        }
        struct becalm_rate rate;
        becalm_ns now = throttled_at_100(&rate);
        uint64_t before = becalm_rate_now(&rate);
        note(&rate, now + 100 * BECALM_MS, (enum becalm_outcome_kind)kind);
        if (answered[kind]) {
            check_true(becalm_rate_now(&rate) > before);
        } else {
            check_eq_u64(becalm_rate_now(&rate), before);
        }
    }
}

/* Otherwise an outage of connections would look like traffic. */
static void test_rate__what_was_never_sent_is_not_measured(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_rate_init(&rate);
    for (unsigned i = 0; i < 100; i++) {
        note(&rate, START + i * 100 * BECALM_MS, i % 2 == 0 ? BECALM_OUTCOME_REFUSED : BECALM_OUTCOME_TLS);
    }
    check_eq_u64(measured_of(&rate), 0);
    for (unsigned i = 0; i < 100; i++) {
        note(&rate, START + i * 100 * BECALM_MS, i % 2 == 0 ? BECALM_OUTCOME_TIMED_OUT : BECALM_OUTCOME_CANCELLED);
    }
    check_between_u64(measured_of(&rate), 9000, 11000);
}

static void test_rate__never_more_than_twice_what_was_measured(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    note(&rate, now + 60 * BECALM_S,
         BECALM_OUTCOME_OK); /* a minute of silence: CUBIC alone would say 66,000 a second */
    check_eq_u64(becalm_rate_now(&rate), 2 * measured_of(&rate));
    check_between_u64(becalm_rate_now(&rate), 35000, 45000);
}

static void test_rate__never_less_than_one_request_in_two_seconds(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_rate_init(&rate);
    for (unsigned i = 0; i < 100; i++) {
        note(&rate, START + i * BECALM_MS, BECALM_OUTCOME_RATE_LIMITED);
        check_eq_u64(becalm_rate_now(&rate), 500);
    }
}

static void test_rate__an_older_now_never_ends_a_half_second(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_rate_init(&rate);
    note(&rate, START, BECALM_OUTCOME_OK);
    note(&rate, START - 2 * BECALM_S, BECALM_OUTCOME_OK);
    note(&rate, START, BECALM_OUTCOME_OK);
    check_eq_u64(measured_of(&rate), 0);
    note(&rate, START + BECALM_S / 2, BECALM_OUTCOME_OK); /* 4 in half a second, weight 0.8 */
    check_eq_u64(measured_of(&rate), 6400);
}

/* ------------------------------------------------------------------------------------------------------- the bucket */

static void test_rate__the_slowest_bucket_holds_one_token_and_refills_in_two_seconds(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_rate_init(&rate);
    note(&rate, START, BECALM_OUTCOME_RATE_LIMITED);
    check_eq_u64(becalm_rate_take(&rate, START), 0);
    check_eq_u64(becalm_rate_peek(&rate, START), 2 * BECALM_S);
    check_eq_u64(becalm_rate_take(&rate, START), 2 * BECALM_S);
    check_eq_u64(becalm_rate_take(&rate, START), 4 * BECALM_S);
    check_eq_u64(becalm_rate_take(&rate, START + BECALM_S), 5 * BECALM_S);
    check_eq_u64(becalm_rate_take(&rate, START + 60 * BECALM_S), 0);
    check_eq_u64(becalm_rate_take(&rate, START + 60 * BECALM_S), 2 * BECALM_S);
}

static void test_rate__the_bucket_holds_one_second_of_the_rate(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    uint64_t per_second = becalm_rate_now(&rate) / 1000;
    unsigned at_once = 0;
    while (becalm_rate_take(&rate, now) == 0) {
        at_once++;
    }
    check_eq_u64(at_once, per_second);
}

/* Only callers that need not wait send, at random instants: never more than the rate allows plus one bucket. */
static void test_rate__sends_stay_below_rate_times_time_plus_one_bucket(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns begin = throttled_at_100(&rate);
    becalm_ns now = begin;
    uint64_t per_second = becalm_rate_now(&rate) / 1000;
    uint64_t seed = 6;
    uint64_t sent = 0;
    for (unsigned i = 0; i < 20000; i++) {
        now += becalm_rand_below(becalm_rand_next(&seed), 10 * BECALM_MS);
        if (becalm_rate_peek(&rate, now) == 0) {
            check_eq_u64(becalm_rate_take(&rate, now), 0);
            sent++;
        }
        uint64_t bound = per_second + 1 + (per_second + 1) * (now - begin) / BECALM_S + 1;
        if (sent > bound) {
            print_error("seed 6, round %u: %" PRIu64 " sent, at most %" PRIu64 "\n", i, sent, bound);
            fail();
        }
    }
    check_true(sent > per_second * ((now - begin) / BECALM_S)); /* and the demand of 200 a second is met */
}

static void test_rate__those_who_wait_are_spaced_by_the_interval(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    becalm_ns interval = UINT64_C(1000000000000) / becalm_rate_now(&rate);
    while (becalm_rate_take(&rate, now) == 0) {
    }
    becalm_ns last = becalm_rate_take(&rate, now);
    for (unsigned i = 0; i < 100; i++) {
        becalm_ns wait = becalm_rate_take(&rate, now);
        check_eq_u64(wait - last, interval);
        last = wait;
    }
}

static void test_rate__a_token_given_back_is_there_again_and_a_full_bucket_takes_none(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    while (becalm_rate_take(&rate, now) == 0) {
    }
    becalm_ns wait = becalm_rate_peek(&rate, now);
    for (unsigned i = 0; i < 50; i++) {
        becalm_rate_take(&rate, now);
    }
    for (unsigned i = 0; i < 50; i++) {
        becalm_rate_give(&rate, now);
    }
    check_eq_u64(becalm_rate_peek(&rate, now), wait);
    for (unsigned i = 0; i < 1000; i++) {
        becalm_rate_give(&rate, now);
    }
    unsigned at_once = 0;
    while (becalm_rate_take(&rate, now) == 0) {
        at_once++;
    }
    check_eq_u64(at_once, becalm_rate_now(&rate) / 1000);
}

static void test_rate__a_lower_rate_keeps_the_tokens_up_to_its_smaller_bucket(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    for (unsigned i = 0; i < 40; i++) {
        becalm_rate_take(&rate, now); /* 70 - 40: 30 tokens are left */
    }
    note(&rate, now, BECALM_OUTCOME_RATE_LIMITED); /* 49 a second: room for them */
    check_between_u64(becalm_rate_now(&rate), 48000, 50000);
    unsigned at_once = 0;
    while (becalm_rate_take(&rate, now) == 0) {
        at_once++;
    }
    check_between_u64(at_once, 29, 30);
}

static void test_rate__who_is_owed_a_token_is_served_sooner_when_the_rate_rises(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    for (unsigned i = 0; i < 1000; i++) {
        becalm_rate_take(&rate, now);
    }
    uint64_t before = becalm_rate_now(&rate);
    becalm_ns wait = becalm_rate_peek(&rate, now);
    note(&rate, now + 100 * BECALM_MS, BECALM_OUTCOME_OK);
    uint64_t after = becalm_rate_now(&rate);
    check_true(after > before);
    becalm_ns expected = (wait - 100 * BECALM_MS) / after * before;
    check_between_u64(becalm_rate_peek(&rate, now + 100 * BECALM_MS), expected - BECALM_MS * 10,
                      expected + BECALM_MS * 10);
}

/* A queue of sends at one in two seconds, all given up, must not bar the way when the rate is high again. */
static void test_rate__tokens_given_back_at_another_rate_leave_no_debt(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_rate_init(&rate);
    note(&rate, START, BECALM_OUTCOME_RATE_LIMITED);
    for (unsigned i = 0; i < 100; i++) {
        becalm_rate_take(&rate, START); /* 200 s of debt */
    }
    answers(&rate, START, 10, 8);
    becalm_ns now = START + 8 * BECALM_S;
    check_true(becalm_rate_now(&rate) > 10000);
    for (unsigned i = 0; i < 100; i++) {
        becalm_rate_give(&rate, now);
    }
    check_eq_u64(becalm_rate_peek(&rate, now), 0);
}

static void test_rate__an_older_now_refills_nothing(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    while (becalm_rate_take(&rate, now) == 0) {
    }
    becalm_ns wait = becalm_rate_peek(&rate, now);
    check_eq_u64(becalm_rate_peek(&rate, now - 5 * BECALM_MS), wait + 5 * BECALM_MS);
    becalm_rate_take(&rate, now - 5 * BECALM_MS);
    becalm_rate_give(&rate, now - 5 * BECALM_MS);
    check_eq_u64(becalm_rate_peek(&rate, now), wait);
}

static void test_rate__the_ends_of_the_clock_do_no_harm(void **state)
{
    (void)state;
    static const becalm_ns ends[] = {0, 1, BECALM_NEVER - 1, BECALM_NEVER};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct becalm_rate rate;
        becalm_rate_init(&rate);
        note(&rate, ends[i], BECALM_OUTCOME_RATE_LIMITED);
        note(&rate, ends[i], BECALM_OUTCOME_OK);
        check_eq_u64(becalm_rate_now(&rate), 500);
        becalm_rate_take(&rate, ends[i]);
        becalm_rate_take(&rate, 0);
        becalm_rate_give(&rate, ends[i]);
        note(&rate, 0, BECALM_OUTCOME_OK);
        check_eq_u64(becalm_rate_now(&rate), 500);
    }
}

static void test_rate__a_reload_carries_rate_and_bucket(void **state)
{
    (void)state;
    struct becalm_rate from;
    becalm_ns now = throttled_at_100(&from);
    for (unsigned i = 0; i < 100; i++) {
        becalm_rate_take(&from, now);
    }
    struct becalm_rate to;
    becalm_rate_init(&to);
    becalm_rate_carry(&to, &from);
    check_true(becalm_rate_peek(&from, now) > 0);
    check_eq_u64(becalm_rate_peek(&to, now), becalm_rate_peek(&from, now));
    note(&from, now + 100 * BECALM_MS, BECALM_OUTCOME_OK);
    note(&to, now + 100 * BECALM_MS, BECALM_OUTCOME_OK);
    check_eq_u64(becalm_rate_now(&to), becalm_rate_now(&from));
    check_eq_u64(measured_of(&to), measured_of(&from));
}

/* ---------------------------------------------------------------------------------------------------------- threads */

struct worker {
    struct becalm_rate *rate;
    becalm_ns now;
    uint64_t number;
    uint64_t at_once;
};

static void *worker_take(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < 2000; i++) {
        worker->at_once += becalm_rate_take(worker->rate, worker->now) == 0;
    }
    return NULL;
}

static void *worker_give(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < 2000; i++) {
        becalm_rate_give(worker->rate, worker->now);
    }
    return NULL;
}

/* Everything at once, at clocks that differ. */
static void *worker_mix(void *argument)
{
    struct worker *worker = argument;
    uint64_t seed = worker->number;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t random = becalm_rand_next(&seed);
        becalm_ns now = worker->now + i * BECALM_MS - random % (3 * BECALM_MS);
        if (random >> 32 & 1) {
            becalm_rate_take(worker->rate, now);
        }
        if ((random >> 40 & 3) == 0) {
            becalm_rate_give(worker->rate, now);
        }
        note(worker->rate, now, (random >> 48) % 100 == 0 ? BECALM_OUTCOME_RATE_LIMITED : BECALM_OUTCOME_OK);
        worker->at_once += becalm_rate_now(worker->rate) < 500;
    }
    return NULL;
}

static uint64_t run(struct becalm_rate *rate, becalm_ns now, void *(*work)(void *))
{
    pthread_t thread[THREADS];
    struct worker worker[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.rate = rate, .now = now, .number = i};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
    }
    uint64_t at_once = 0;
    for (uint64_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        at_once += worker[i].at_once;
    }
    return at_once;
}

static void test_rate__eight_threads_share_one_bucket_to_the_token(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    becalm_ns interval = UINT64_C(1000000000000) / becalm_rate_now(&rate);
    check_eq_u64(run(&rate, now, worker_take), becalm_rate_now(&rate) / 1000);
    check_eq_u64(becalm_rate_peek(&rate, now), (THREADS * 2000 + 1) * interval - BECALM_S);
    run(&rate, now, worker_give);
    check_eq_u64(becalm_rate_peek(&rate, now), 0);
    check_eq_u64(run(&rate, now, worker_take), becalm_rate_now(&rate) / 1000);
}

static void test_rate__eight_threads_keep_the_rate_within_its_bounds(void **state)
{
    (void)state;
    struct becalm_rate rate;
    becalm_ns now = throttled_at_100(&rate);
    check_eq_u64(run(&rate, now, worker_mix), 0);
    /* The effects of races heal: the rate with the next note, the bucket with time (80,000 tokens at most). */
    note(&rate, now + 30 * BECALM_S, BECALM_OUTCOME_OK);
    check_true(measured_of(&rate) > 0);
    check_between_u64(becalm_rate_now(&rate), 500, 2 * measured_of(&rate) + 500);
    check_eq_u64(becalm_rate_peek(&rate, now + 200000 * BECALM_S), 0);
}

BECALM_TESTS(cmocka_unit_test(test_rate__k_of_ten_a_second_is_1957_ms),
             cmocka_unit_test(test_rate__k_is_the_nearest_cube_root_at_every_size),
             cmocka_unit_test(test_rate__cubic_after_a_throttle_at_ten_a_second),
             cmocka_unit_test(test_rate__cubic_after_two_throttles_in_a_row),
             cmocka_unit_test(test_rate__cubic_begins_at_seven_tenths_and_never_falls),
             cmocka_unit_test(test_rate__nothing_overflows_at_the_ends),
             cmocka_unit_test(test_rate__off_until_somebody_throttles),
             cmocka_unit_test(test_rate__the_originals_table_of_answers_and_rates),
             cmocka_unit_test(test_rate__rejections_throttle_as_rate_limits_do),
             cmocka_unit_test(test_rate__other_answers_raise_it_and_silence_leaves_it),
             cmocka_unit_test(test_rate__what_was_never_sent_is_not_measured),
             cmocka_unit_test(test_rate__never_more_than_twice_what_was_measured),
             cmocka_unit_test(test_rate__never_less_than_one_request_in_two_seconds),
             cmocka_unit_test(test_rate__an_older_now_never_ends_a_half_second),
             cmocka_unit_test(test_rate__the_slowest_bucket_holds_one_token_and_refills_in_two_seconds),
             cmocka_unit_test(test_rate__the_bucket_holds_one_second_of_the_rate),
             cmocka_unit_test(test_rate__sends_stay_below_rate_times_time_plus_one_bucket),
             cmocka_unit_test(test_rate__those_who_wait_are_spaced_by_the_interval),
             cmocka_unit_test(test_rate__a_token_given_back_is_there_again_and_a_full_bucket_takes_none),
             cmocka_unit_test(test_rate__a_lower_rate_keeps_the_tokens_up_to_its_smaller_bucket),
             cmocka_unit_test(test_rate__who_is_owed_a_token_is_served_sooner_when_the_rate_rises),
             cmocka_unit_test(test_rate__tokens_given_back_at_another_rate_leave_no_debt),
             cmocka_unit_test(test_rate__an_older_now_refills_nothing),
             cmocka_unit_test(test_rate__the_ends_of_the_clock_do_no_harm),
             cmocka_unit_test(test_rate__a_reload_carries_rate_and_bucket),
             cmocka_unit_test(test_rate__eight_threads_share_one_bucket_to_the_token),
             cmocka_unit_test(test_rate__eight_threads_keep_the_rate_within_its_bounds))
