/* SPDX-License-Identifier: MIT */
#include <becalm/limit.h>

#include <pthread.h>

#include "lib/check.h"

#define MANY 1000 /* slots that a scene may hold at once */

/* One limit, its policy, the time, and the attempts in flight. */
struct scene {
    struct becalm_limit limit;
    struct becalm_limit_policy policy;
    struct becalm_moment at;
    becalm_ns timeout;
    struct becalm_slot slot[MANY];
    uint32_t flying;
};

static void scene_init(struct scene *scene, enum becalm_limit_kind kind, becalm_ns timeout)
{
    memset(scene, 0, sizeof *scene);
    becalm_limit_defaults(&scene->policy, kind);
    becalm_limit_init(&scene->limit, &scene->policy);
    scene->at.now = 100 * BECALM_S;
    scene->timeout = timeout;
}

static uint32_t scene_limit(const struct scene *scene)
{
    return becalm_limit_now(&scene->limit, &scene->policy);
}

/* Sends attempts until `count` are in flight, as far as the limit allows. */
static void scene_send(struct scene *scene, uint32_t count)
{
    while (scene->flying < count &&
           becalm_limit_admit(&scene->limit, &scene->policy, &scene->at, scene->timeout, &scene->slot[scene->flying])) {
        scene->flying++;
    }
}

static void scene_note(struct scene *scene, uint32_t slot, enum becalm_evidence evidence)
{
    becalm_limit_note(&scene->limit, &scene->policy, &scene->at, &scene->slot[slot], evidence);
}

static void scene_give_all(struct scene *scene)
{
    while (scene->flying > 0) {
        becalm_limit_give(&scene->limit, &scene->slot[--scene->flying]);
    }
}

/* As if each of them had been sent while all the others were in flight: in a queue that stands. */
static void scene_stand(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->flying; i++) {
        becalm_limit_sent(&scene->limit, &scene->slot[i], scene->at.now);
        scene->slot[i].beside = (uint16_t)(scene->flying - 1);
    }
}

/* `in_flight` attempts are sent, and after `latency` the first `ended` of them end in the same way while all still hold
 * their places; the others end without evidence. */
static void scene_round(struct scene *scene, uint32_t in_flight, uint32_t ended, becalm_ns latency,
                        enum becalm_evidence evidence)
{
    scene_send(scene, in_flight);
    check_eq_u64(scene->flying, in_flight);
    scene_stand(scene);
    scene->at.now += latency;
    for (uint32_t i = 0; i < ended; i++) {
        scene_note(scene, i, evidence);
    }
    scene_give_all(scene);
}

/* How many of 10,000 admissions pass now. */
static uint64_t scene_passing(struct scene *scene)
{
    uint64_t seed = 42;
    uint64_t passing = 0;
    for (int i = 0; i < 10000; i++) {
        struct becalm_slot slot = {.held = false};
        scene->at.random = becalm_rand_next(&seed);
        passing += becalm_limit_admit(&scene->limit, &scene->policy, &scene->at, scene->timeout, &slot);
        becalm_limit_give(&scene->limit, &slot);
    }
    return passing;
}

static void test_limit__starts_empty_and_wide(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 0);
    check_eq_u64(scene_limit(&scene), 10000);
    scene_init(&scene, BECALM_LIMIT_AIMD, BECALM_S);
    check_eq_u64(scene_limit(&scene), 1000);
    scene_init(&scene, BECALM_LIMIT_FIXED, BECALM_S);
    check_eq_u64(scene_limit(&scene), 10000);
    scene_init(&scene, BECALM_LIMIT_NONE, BECALM_S);
    check_eq_u64(scene_limit(&scene), UINT32_MAX);
}

static void test_limit__aimd_starts_within_its_bounds(void **state)
{
    (void)state;
    struct becalm_limit limit;
    struct becalm_limit_policy policy = {.kind = BECALM_LIMIT_AIMD, .min = 1, .max = 50};
    becalm_limit_init(&limit, &policy);
    check_eq_u64(becalm_limit_now(&limit, &policy), 50);
    policy = (struct becalm_limit_policy){.kind = BECALM_LIMIT_AIMD, .min = 2000, .max = 9000};
    becalm_limit_init(&limit, &policy);
    check_eq_u64(becalm_limit_now(&limit, &policy), 2000);
}

static void check_refused(struct becalm_limit_policy policy, const char *expected)
{
    const char *why = NULL;
    check_true(becalm_limit_check(&policy, &why) == BECALM_EINVAL);
    check_eq_str(why, expected);
    check_true(becalm_limit_check(&policy, NULL) == BECALM_EINVAL);
}

static void test_limit__names_the_field_that_is_wrong(void **state)
{
    (void)state;
    struct becalm_limit_policy policy;
    for (int kind = BECALM_LIMIT_SLOTS; kind <= BECALM_LIMIT_NONE; kind++) {
        becalm_limit_defaults(&policy, (enum becalm_limit_kind)kind);
        check_true(becalm_limit_check(&policy, NULL) == 0);
    }
    policy = (struct becalm_limit_policy){BECALM_LIMIT_SLOTS, 1000000, 1000000, 0};
    check_true(becalm_limit_check(&policy, NULL) == 0);
    check_refused((struct becalm_limit_policy){(enum becalm_limit_kind)7, 1, 1, 0},
                  "kind must be slots, aimd, fixed or none");
    check_refused((struct becalm_limit_policy){BECALM_LIMIT_SLOTS, 0, 1, 0}, "min must be at least 1");
    check_refused((struct becalm_limit_policy){BECALM_LIMIT_SLOTS, 1, 0, 0}, "max must be 1 to 1000000");
    check_refused((struct becalm_limit_policy){BECALM_LIMIT_SLOTS, 1, 1000001, 0}, "max must be 1 to 1000000");
    check_refused((struct becalm_limit_policy){BECALM_LIMIT_AIMD, 1, UINT32_MAX, 0}, "max must be 1 to 1000000");
    check_refused((struct becalm_limit_policy){BECALM_LIMIT_FIXED, 11, 10, 0}, "min must not be above max");
    check_refused((struct becalm_limit_policy){BECALM_LIMIT_FIXED, 1, 10, 1000001},
                  "max_answers must be at most 1000000");
}

static void test_limit__fixed_admits_exactly_max_and_learns_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_FIXED, BECALM_S);
    scene.policy.max = 3;
    scene_send(&scene, MANY);
    check_eq_u64(scene.flying, 3);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 3);
    scene_give_all(&scene);
    for (int i = 0; i < 100; i++) {
        scene_round(&scene, 3, 3, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    }
    check_eq_u64(scene_limit(&scene), 3);
    check_eq_u64(scene_passing(&scene), 10000);
}

static void test_limit__none_only_counts(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_NONE, BECALM_S);
    scene.policy.max = 3;
    scene_send(&scene, MANY);
    check_eq_u64(scene.flying, MANY);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), MANY);
}

static void test_limit__a_slot_is_given_back_once(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_FIXED, BECALM_S);
    struct becalm_slot never = {.held = false};
    scene_send(&scene, 2);
    becalm_limit_give(&scene.limit, &never);
    becalm_limit_give(&scene.limit, &scene.slot[0]);
    becalm_limit_give(&scene.limit, &scene.slot[0]);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 1);
}

static void test_limit__slots_halves_what_is_in_flight_after_twenty_slow_answers(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 100, 19, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 10000);
    scene_round(&scene, 101, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 50); /* 4 * 101 / 2 = 202 quarters */
    check_eq_u64(scene.limit.units, 202);
}

/* The limit after 200 attempts were in flight and 20 slow ones are left, of which every second one may have timed
 * out. */
static uint32_t limit_after_a_tail(bool late)
{
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_send(&scene, 200);
    scene_stand(&scene);
    for (uint32_t i = 20; i < 200; i++) {
        becalm_limit_give(&scene.limit, &scene.slot[i]);
    }
    scene.at.now += 5 * BECALM_MS;
    for (uint32_t i = 0; i < 20; i++) {
        scene_note(&scene, i, late && i % 2 == 0 ? BECALM_EVIDENCE_TIMEOUT : BECALM_EVIDENCE_SUCCESS);
    }
    return scene_limit(&scene);
}

/* If callers stop, the longest answers are left, and that these are few does not say that the service bears no more. */
static void test_limit__slots_halves_what_was_in_flight_when_the_slow_ones_were_sent(void **state)
{
    (void)state;
    check_eq_u64(limit_after_a_tail(false), 64); /* the row of 128 to 255 */
    check_eq_u64(limit_after_a_tail(true), 10);  /* the service may still be busy with the late ones */
}

/* All that is in flight becomes answers in progress. */
static void scene_answer_all(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->flying; i++) {
        scene_note(scene, i, BECALM_EVIDENCE_SUCCESS);
        becalm_limit_answer(&scene->limit, &scene->slot[i]);
    }
}

static void test_limit__an_answer_in_progress_is_not_in_flight(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_FIXED, BECALM_S);
    scene.policy.max = 3;
    scene_send(&scene, 10);
    check_eq_u64(scene.flying, 3);
    scene_answer_all(&scene);
    scene_answer_all(&scene); /* once is enough */
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 0);
    check_eq_u64(becalm_limit_answers(&scene.limit), 3);
    scene_send(&scene, 10);
    check_eq_u64(scene.flying, 6);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 3);
    scene_give_all(&scene);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 0);
    check_eq_u64(becalm_limit_answers(&scene.limit), 0);
    becalm_limit_answer(&scene.limit, &scene.slot[0]); /* not held any more */
    check_eq_u64(becalm_limit_answers(&scene.limit), 0);
}

static void test_limit__answers_in_progress_are_neither_cut_nor_kept_by_a_cut(void **state)
{
    (void)state;
    for (int kind = BECALM_LIMIT_SLOTS; kind <= BECALM_LIMIT_AIMD; kind++) {
        struct scene scene;
        scene_init(&scene, (enum becalm_limit_kind)kind, BECALM_S);
        scene_send(&scene, 100);
        scene_answer_all(&scene);
        scene.at.now += 10 * BECALM_S;
        scene_send(&scene, 112);
        scene.at.now += BECALM_S;
        for (uint32_t i = 100; i < 112; i++) {
            scene_note(&scene, i, BECALM_EVIDENCE_TIMEOUT);
        }
        check_eq_u64(scene_limit(&scene), 6); /* of 12, not of 112 */
        while (scene.flying > 100) {
            becalm_limit_give(&scene.limit, &scene.slot[--scene.flying]);
        }
        scene_send(&scene, 200);
        check_eq_u64(scene.flying, 106); /* 100 streams keep no attempt out */
        scene_give_all(&scene);
        check_eq_u64(becalm_limit_answers(&scene.limit), 0);
    }
}

static void test_limit__attempts_and_answers_together_stay_within_max_answers(void **state)
{
    (void)state;
    struct scene scene;
    for (int kind = BECALM_LIMIT_SLOTS; kind <= BECALM_LIMIT_NONE; kind++) {
        scene_init(&scene, (enum becalm_limit_kind)kind, BECALM_S);
        scene.policy.max_answers = 5;
        scene_send(&scene, 3);
        check_true(!becalm_limit_answers_full(&scene.limit, &scene.policy));
        scene_answer_all(&scene);
        scene_send(&scene, 10);
        bool bound = kind != BECALM_LIMIT_NONE;
        check_eq_u64(scene.flying, bound ? 5 : 10);
        check_true(becalm_limit_answers_full(&scene.limit, &scene.policy) == bound);
        becalm_limit_give(&scene.limit, &scene.slot[0]);
        check_true(!becalm_limit_answers_full(&scene.limit, &scene.policy));
        scene_give_all(&scene);
    }
    scene_init(&scene, BECALM_LIMIT_FIXED, BECALM_S);
    scene.policy.max_answers = 0; /* no bound */
    scene_send(&scene, MANY);
    scene_answer_all(&scene);
    check_true(!becalm_limit_answers_full(&scene.limit, &scene.policy));
    scene_give_all(&scene);
}

static void test_limit__slots_halves_the_limit_if_less_than_that_is_in_flight(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_send(&scene, 500);
    scene_stand(&scene);
    scene.at.now += 5 * BECALM_MS;
    scene.limit.units = 400; /* as if many had been in flight before a cut */
    for (uint32_t i = 0; i < 20; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(scene_limit(&scene), 50);
}

static void test_limit__slots_wants_three_quarters_of_the_answers_slow(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 30, 5, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 30, 14, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 10000);
    scene_round(&scene, 30, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* 15 of 20 */
    check_eq_u64(scene_limit(&scene), 15);

    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 30, 6, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 30, 17, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* 14 of 20, ... 17 of 23 */
    check_eq_u64(scene_limit(&scene), 10000);
    scene_round(&scene, 30, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* 18 of 24 */
    check_eq_u64(scene_limit(&scene), 15);
}

static void test_limit__an_answer_at_a_quarter_of_its_timeout_is_not_slow(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 20 * BECALM_MS);
    for (int i = 0; i < 100; i++) {
        scene_round(&scene, 100, 100, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(scene_limit(&scene), 10000);
    scene.timeout = BECALM_NEVER;
    scene_round(&scene, 100, 100, 3600 * BECALM_S, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 10000);
}

static void test_limit__answered_errors_count_by_their_latency(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 40, 20, 5 * BECALM_MS, BECALM_EVIDENCE_ANSWER);
    check_eq_u64(scene_limit(&scene), 20);
}

static void test_limit__attempts_from_before_the_cut_are_no_evidence(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_send(&scene, 200);
    scene_stand(&scene);
    scene.at.now += 5 * BECALM_MS;
    for (uint32_t i = 0; i < 200; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(scene_limit(&scene), 100); /* cut by the twentieth, and only then */
    scene_give_all(&scene);
    scene_round(&scene, 100, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 50);
}

static void test_limit__an_attempt_counts_from_when_it_was_sent(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_send(&scene, 60);
    scene_stand(&scene);
    scene.at.now += 5 * BECALM_MS;
    for (uint32_t i = 0; i < 20; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(scene_limit(&scene), 30);
    for (uint32_t i = 20; i < 60; i++) {
        becalm_limit_sent(&scene.limit, &scene.slot[i], scene.at.now); /* so late that they are of the new epoch */
    }
    scene.at.now += 2 * BECALM_MS;
    for (uint32_t i = 20; i < 40; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_SUCCESS);
    }
    check_between_u64(scene_limit(&scene), 30, 36); /* 2 ms is not slow, although they were admitted 7 ms ago */
    scene.at.now += 3 * BECALM_MS;
    for (uint32_t i = 40; i < 60; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_SUCCESS);
    }
    check_between_u64(scene_limit(&scene), 30, 36); /* 20 of 40 are slow: not enough */
}

/* Two cuts of 100 attempts in flight, the answers taking 5 ms each time. */
static void scene_cut_twice(struct scene *scene)
{
    scene_init(scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(scene, 100, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(scene), 50);
    scene_round(scene, 50, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(scene), 25);
}

static void test_limit__two_cuts_that_did_not_shorten_the_answers_are_undone(void **state)
{
    (void)state;
    struct scene scene;
    scene_cut_twice(&scene);
    scene_round(&scene, 25, 19, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 25);
    scene_round(&scene, 25, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 100);
    for (int i = 0; i < 50; i++) { /* up to twice the reference nothing is slow any more */
        scene_round(&scene, 100, 100, 9 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    }
    check_true(scene_limit(&scene) > 100);
}

static void test_limit__cuts_that_shortened_the_answers_go_on(void **state)
{
    (void)state;
    struct scene scene;
    scene_cut_twice(&scene);
    scene_round(&scene, 25, 20, 3750 * BECALM_US, BECALM_EVIDENCE_SUCCESS); /* three quarters of before: shorter */
    check_eq_u64(scene_limit(&scene), 12);
    scene_round(&scene, 12, 12, 3750 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 12, 8, 3750 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 50); /* not shorter than last time: back to the limit before these two cuts */
}

/* With few in flight, at most a round at once: three rounds of `in_flight`, until 20 answers are noted and cut it. */
static void scene_cut_few(struct scene *scene, uint32_t in_flight, becalm_ns latency)
{
    scene_init(scene, BECALM_LIMIT_SLOTS, BECALM_S);
    uint32_t noted = 0;
    while (scene_limit(scene) > in_flight) {
        check_true(noted < 20);
        scene_round(scene, in_flight, in_flight, latency, BECALM_EVIDENCE_SUCCESS);
        noted += in_flight;
    }
    check_eq_u64(scene_limit(scene), in_flight / 2);
}

/* The limit after 20 more answers with half as many in flight. */
static uint32_t limit_after_half(uint32_t in_flight, becalm_ns latency)
{
    struct scene scene;
    scene_cut_few(&scene, in_flight, 400 * BECALM_MS);
    for (uint32_t noted = 0; noted < 20; noted += in_flight / 2) {
        scene_round(&scene, in_flight / 2, in_flight / 2, latency, BECALM_EVIDENCE_SUCCESS);
    }
    return scene_limit(&scene);
}

static void test_limit__with_few_in_flight_one_cut_that_shortened_nothing_is_undone(void **state)
{
    (void)state;
    check_eq_u64(limit_after_half(10, 400 * BECALM_MS), 10);
    check_eq_u64(limit_after_half(10, 340 * BECALM_MS), 10); /* 5/6 are 333 ms */
    check_eq_u64(limit_after_half(10, 320 * BECALM_MS), 2);  /* shorter */
    check_eq_u64(limit_after_half(20, 400 * BECALM_MS), 20);
    check_eq_u64(limit_after_half(40, 400 * BECALM_MS), 10); /* 16 and more: two cuts */
}

static void test_limit__cuts_are_not_undone_when_half_timed_out(void **state)
{
    (void)state;
    struct scene scene;
    scene_cut_twice(&scene);
    scene.at.now += BECALM_MS;
    scene_round(&scene, 25, 10, 10 * BECALM_MS, BECALM_EVIDENCE_TIMEOUT);
    scene_round(&scene, 25, 10, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 12);
}

static void test_limit__a_cut_by_timeouts_ends_a_series_of_cuts(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 100, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene.at.now += 600 * BECALM_MS;
    scene_round(&scene, 50, 5, 10 * BECALM_MS, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 25);
    scene_round(&scene, 25, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* the first of a new series, ... */
    check_eq_u64(scene_limit(&scene), 12);
    scene_round(&scene, 12, 10, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 12, 10, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* ... so that this is the second */
    check_eq_u64(scene_limit(&scene), 6);
}

static void test_limit__a_healthy_spell_ends_a_series_of_cuts(void **state)
{
    (void)state;
    struct scene scene;
    scene_cut_twice(&scene);
    scene_round(&scene, 10, 10, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 10, 10, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 10, 10, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 10, 10, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.previous, 0);
    uint32_t before = scene_limit(&scene);
    check_eq_u64(before, 25);
    scene_round(&scene, 25, 25, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 25, 25, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 12); /* a cut, no undo */
}

static void test_limit__the_reference_ends_when_answers_take_less_than_half_of_it(void **state)
{
    (void)state;
    struct scene scene;
    scene_cut_twice(&scene);
    scene_round(&scene, 25, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.reference, 5000);
    scene_round(&scene, 10, 10, 2500 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 10, 10, 2500 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 10, 10, 2500 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 10, 10, 2500 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.reference, 5000); /* exactly half */
    for (int i = 0; i < 4; i++) {
        scene_round(&scene, 10, 10, 2400 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(scene.limit.reference, 0);
}

static void test_limit__slots_grows_by_a_quarter_while_half_is_used(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 100, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 200);
    scene_round(&scene, 24, 24, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 200);
    scene_round(&scene, 25, 1, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 201);
    scene_round(&scene, 25, 1, BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* 8 * 25 < 201 */
    check_eq_u64(scene.limit.units, 201);
    scene_round(&scene, 50, 1, BECALM_MS, BECALM_EVIDENCE_ANSWER);      /* an error is no reason to grow */
    scene_round(&scene, 50, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* nor is a slow success */
    check_eq_u64(scene.limit.units, 201);
}

static void test_limit__slots_grows_by_a_whole_slot_when_answers_take_a_sixteenth_of_their_timeout(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 16 * BECALM_MS);
    scene.limit.units = 200;
    scene_round(&scene, 50, 1, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 204);
    scene_round(&scene, 25, 1, BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* less than half is used */
    check_eq_u64(scene.limit.units, 204);
    scene_round(&scene, 50, 1, BECALM_MS + BECALM_US, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 205);
}

static void test_limit__slots_grows_fast_from_one_and_stops_at_max(void **state)
{
    (void)state;
    static const uint64_t steps[] = {8, 10, 11, 12, 13, 14, 15, 16};
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene.policy.max = 4;
    scene.limit.units = 4;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        scene_round(&scene, scene_limit(&scene), 1, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
        check_eq_u64(scene.limit.units, steps[i]);
    }
    scene_round(&scene, 4, 4, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 16);
}

static void test_limit__aimd_grows_by_a_twentieth_at_least_once_it_was_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_AIMD, 10 * BECALM_MS);
    scene.limit.well = 1; /* it was cut, and nothing went well before */
    scene_round(&scene, 499, 10, 9 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 20000);
    scene_round(&scene, 501, 20, 9 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.units, 20020);
    check_eq_u64(scene_limit(&scene), 1001);
    scene.limit.units = 20;
    scene_round(&scene, 1, 1, BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* 1 / L is one */
    check_eq_u64(scene.limit.units, 40);
    scene_round(&scene, 2, 1, BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* a half */
    check_eq_u64(scene.limit.units, 50);
    scene.policy.max = 3;
    scene_round(&scene, 2, 2, BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* 8 and 6 twentieths */
    check_eq_u64(scene.limit.units, 60);
}

static void test_limit__aimd_is_not_cut_by_slow_answers(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_AIMD, 10 * BECALM_MS);
    scene_round(&scene, 400, 400, 9 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 400, 400, 9 * BECALM_MS, BECALM_EVIDENCE_ANSWER);
    check_eq_u64(scene_limit(&scene), 1000);
}

static void check_five_timeouts_cut(enum becalm_limit_kind kind)
{
    struct scene scene;
    scene_init(&scene, kind, BECALM_S);
    scene.limit.usual = kind == BECALM_LIMIT_AIMD ? 64 : 0; /* samples: it knows that calls do not time out */
    uint32_t start = scene_limit(&scene);
    scene_round(&scene, 16, 4, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    scene_round(&scene, 16, 1, 600 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* late: the service has not gone away */
    scene_round(&scene, 16, 4, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), start); /* four, a success, four: no five in a row */
    scene_round(&scene, 16, 3, BECALM_MS, BECALM_EVIDENCE_ANSWER);
    scene_round(&scene, 16, 1, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 8); /* an answered error is no success */
    scene_round(&scene, 8, 5, 500 * BECALM_MS, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 8); /* at most one cut in 500 ms */
    scene_round(&scene, 8, 8, BECALM_MS, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 4);
    scene_round(&scene, 1, 1, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 1);
    scene_round(&scene, 1, 1, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 1);
}

static void test_limit__five_timeouts_in_a_row_halve_what_is_in_flight(void **state)
{
    (void)state;
    check_five_timeouts_cut(BECALM_LIMIT_SLOTS);
    check_five_timeouts_cut(BECALM_LIMIT_AIMD);
}

static void check_quarter(enum becalm_limit_kind kind, becalm_ns after_success, bool cut)
{
    struct scene scene;
    scene_init(&scene, kind, BECALM_S);
    uint32_t start = scene_limit(&scene);
    scene_send(&scene, 1);
    scene.at.now += BECALM_MS;
    scene_send(&scene, 16); /* later than successful answers: with aimd only these can tell */
    scene.at.now += BECALM_S;
    scene_note(&scene, 0, BECALM_EVIDENCE_SUCCESS);
    scene.at.now += after_success;
    for (uint32_t i = 1; i < 10; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_TIMEOUT);
    }
    check_eq_u64(scene_limit(&scene), cut ? 8 : start);
}

static void test_limit__timeouts_in_a_row_are_not_enough_soon_after_a_success(void **state)
{
    (void)state;
    check_quarter(BECALM_LIMIT_SLOTS, 249 * BECALM_MS, false);
    check_quarter(BECALM_LIMIT_AIMD, 249 * BECALM_MS, false);
    check_quarter(BECALM_LIMIT_SLOTS, 250 * BECALM_MS, true);
    check_quarter(BECALM_LIMIT_AIMD, 250 * BECALM_MS, true);
}

static void test_limit__never_falls_below_min(void **state)
{
    (void)state;
    for (int kind = BECALM_LIMIT_SLOTS; kind <= BECALM_LIMIT_AIMD; kind++) {
        struct scene scene;
        scene_init(&scene, (enum becalm_limit_kind)kind, BECALM_S);
        scene.policy.min = 7;
        for (int i = 0; i < 20; i++) {
            scene.limit.pace = 1000000; /* so that every round can send */
            scene_round(&scene, 7, 7, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
        }
        check_eq_u64(scene_limit(&scene), 7);
    }
}

static uint64_t scene_pace(const struct scene *scene)
{
    return scene->limit.pace & ((1u << 20) - 1);
}

static void check_pacing(enum becalm_limit_kind kind)
{
    bool paces = kind == BECALM_LIMIT_AIMD;
    static const uint64_t expected[] = {300000, 90000, 27000, 20000, 20000};
    struct scene scene;
    scene_init(&scene, kind, BECALM_S);
    scene_send(&scene, 18);
    scene.at.now += BECALM_S;
    for (uint32_t i = 0; i < 12; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_TIMEOUT);
    }
    check_eq_u64(scene_limit(&scene), 9);
    check_eq_u64(scene_pace(&scene), 1000000); /* nothing is paced above the minimum */
    scene.limit.units = 4;                     /* one slot, or less */
    for (uint32_t i = 0; i < 5; i++) {
        scene_note(&scene, 12 + i, BECALM_EVIDENCE_TIMEOUT);
        check_eq_u64(scene_pace(&scene), paces ? expected[i] : 1000000);
    }
    scene_give_all(&scene);
    check_between_u64(scene_passing(&scene), paces ? 150 : 10000, paces ? 250 : 10000);
}

static void test_limit__aimd_at_its_minimum_paces_more_with_each_timeout(void **state)
{
    (void)state;
    check_pacing(BECALM_LIMIT_AIMD);
}

static void test_limit__slots_does_not_pace(void **state)
{
    (void)state;
    check_pacing(BECALM_LIMIT_SLOTS);
}

/* Down to one slot and a pace of 2 %. */
static void scene_paced(struct scene *scene)
{
    scene_init(scene, BECALM_LIMIT_AIMD, BECALM_S);
    scene_send(scene, 50);
    for (uint32_t i = 0; i < 50; i++) {
        scene->at.now += 600 * BECALM_MS;
        scene_note(scene, i, BECALM_EVIDENCE_TIMEOUT);
        becalm_limit_give(&scene->limit, &scene->slot[i]);
    }
    scene->flying = 0;
    check_eq_u64(scene_limit(scene), 1);
}

static void test_limit__the_pace_recovers_with_a_time_constant_of_five_seconds(void **state)
{
    (void)state;
    static const struct {
        becalm_ns after;
        uint64_t low, high; /* around 1 - 0.98 e^(-t / 5 s) */
    } table[] = {
        {0, 150, 250},
        {100 * BECALM_MS, 340, 450},    /* .0394 */
        {BECALM_S, 1850, 2110},         /* .1976 */
        {5 * BECALM_S, 6250, 6540},     /* .6395 */
        {20 * BECALM_S, 9770, 9860},    /* .9821 */
        {137 * BECALM_S, 10000, 10000}, /* the last step of the table */
        {1000 * 86400 * BECALM_S, 10000, 10000},
    };
    struct scene scene;
    scene_paced(&scene);
    /* The floor is reached from a recovering pace: bring it there at once. */
    scene.at.now += 600 * BECALM_MS;
    scene.limit.pace = (scene.at.now >> 20) << 20 | 20000;
    becalm_ns start = scene.at.now;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        scene.at.now = start + table[i].after;
        uint64_t passing = scene_passing(&scene);
        check_between_u64(passing, table[i].low, table[i].high);
    }
    scene.at.now = start - 50 * BECALM_S; /* an older now does not bring the pace back */
    check_between_u64(scene_passing(&scene), 150, 250);
}

/* Five seconds are a hundred timeouts of 50 ms: the pace recovers in as many timeouts as it does with one second. */
static void test_limit__the_pace_of_short_timeouts_recovers_as_many_times_sooner(void **state)
{
    (void)state;
    static const struct {
        becalm_ns timeout, after;
        uint64_t low, high; /* around 1 - 0.98 e^(-t / 5 T), with ticks of 1 ms */
    } table[] = {
        {50 * BECALM_MS, 50 * BECALM_MS, 1750, 2200},  {50 * BECALM_MS, 250 * BECALM_MS, 6150, 6640},
        {50 * BECALM_MS, 10 * BECALM_S, 10000, 10000}, {BECALM_MS, 5 * BECALM_MS, 5500, 7000},
        {BECALM_US, 5 * BECALM_MS, 5500, 7000}, /* no sooner than with 1 ms */
        {10 * BECALM_S, 5 * BECALM_S, 6250, 6540},     {10 * BECALM_S, BECALM_S, 1850, 2110},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene scene;
        scene_paced(&scene);
        scene.limit.reference = table[i].timeout;
        scene.at.now += 600 * BECALM_MS;
        scene.limit.pace = (scene.at.now >> 20) << 20 | 20000;
        scene.at.now += table[i].after;
        check_between_u64(scene_passing(&scene), table[i].low, table[i].high);
    }
}

static void test_limit__the_pace_goes_by_the_timeout_that_lowered_it(void **state)
{
    (void)state;
    struct scene scene;
    scene_paced(&scene);
    check_eq_u64(scene.limit.reference, BECALM_S);
    struct becalm_limit next;
    becalm_limit_init(&next, &scene.policy);
    becalm_limit_carry(&next, &scene.policy, &scene.limit, &scene.policy);
    check_eq_u64(next.pace, scene.limit.pace);
    check_eq_u64(next.reference, BECALM_S);
}

static void test_limit__one_success_ends_the_pacing(void **state)
{
    (void)state;
    struct scene scene;
    scene_paced(&scene);
    check_true(scene_passing(&scene) < 7000);
    struct becalm_slot slot = {.held = false};
    while (!becalm_limit_admit(&scene.limit, &scene.policy, &scene.at, BECALM_S, &slot)) {
        scene.at.random++;
    }
    becalm_limit_note(&scene.limit, &scene.policy, &scene.at, &slot, BECALM_EVIDENCE_SUCCESS);
    becalm_limit_give(&scene.limit, &slot);
    check_eq_u64(scene_passing(&scene), 10000);
}

/* A layer below paces already: two paces in a row would let the product of them through. */
static void test_limit__what_is_turned_away_below_ends_the_pacing(void **state)
{
    (void)state;
    struct scene scene;
    scene_paced(&scene);
    check_true(scene_passing(&scene) < 7000);
    becalm_limit_turned_away(&scene.limit);
    check_eq_u64(scene_passing(&scene), 10000);
    check_eq_u64(scene_limit(&scene), 1); /* but it proves no success */
}

static void test_limit__a_probe_of_a_breaker_is_not_paced(void **state)
{
    (void)state;
    struct scene scene;
    scene_paced(&scene);
    for (uint64_t i = 0; i < 100; i++) {
        struct becalm_slot slot = {.held = false};
        struct becalm_slot second = {.held = false};
        scene.at.random = i * 0x9e3779b97f4a7c15u;
        check_true(becalm_limit_probe(&scene.limit, &scene.policy, &scene.at, BECALM_S, &slot));
        check_true(
            !becalm_limit_probe(&scene.limit, &scene.policy, &scene.at, BECALM_S, &second)); /* the limit holds */
        becalm_limit_give(&scene.limit, &slot);
    }
}

static void test_limit__a_routine_success_ends_the_pacing_too(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_AIMD, BECALM_S);
    scene_round(&scene, 50, 50, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_send(&scene, 1);
    scene.limit.pace = (scene.at.now >> 20) << 20 | 20000; /* a timeout of another thread came in between */
    scene_note(&scene, 0, BECALM_EVIDENCE_SUCCESS);
    scene_give_all(&scene);
    check_eq_u64(scene_passing(&scene), 10000);
}

static void test_limit__an_older_now_does_not_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_AIMD, BECALM_S);
    scene.limit.usual = 64; /* samples: it knows that calls do not time out */
    scene_round(&scene, 40, 5, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 20);
    scene.at.now -= 10 * BECALM_S;
    scene_round(&scene, 20, 20, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene_limit(&scene), 20);
}

static void test_limit__an_older_now_does_not_raise_the_pace(void **state)
{
    (void)state;
    struct scene scene;
    scene_paced(&scene);
    scene.limit.pace = (scene.at.now >> 20) << 20 | 20000;
    struct becalm_slot slot = {.held = true, .timeout = BECALM_S}; /* as if sent before the last cut */
    atomic_fetch_add_explicit(&scene.limit.places, 1, memory_order_relaxed);
    scene.at.now -= 20 * BECALM_S;
    becalm_limit_note(&scene.limit, &scene.policy, &scene.at, &slot, BECALM_EVIDENCE_TIMEOUT);
    becalm_limit_give(&scene.limit, &slot);
    scene.at.now += 20 * BECALM_S;
    check_between_u64(scene_passing(&scene), 150, 250);
}

static void test_limit__only_the_first_note_of_a_held_slot_counts(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    struct becalm_slot never = {.held = false};
    scene_send(&scene, 1);
    scene.at.now += BECALM_S;
    struct becalm_limit before = scene.limit;
    scene_note(&scene, 0, BECALM_EVIDENCE_NONE);
    becalm_limit_note(&scene.limit, &scene.policy, &scene.at, &never, BECALM_EVIDENCE_TIMEOUT);
    check_true(memcmp(&before, &scene.limit, sizeof before) == 0);
    scene_note(&scene, 0, BECALM_EVIDENCE_TIMEOUT);
    before = scene.limit;
    for (int i = 0; i < 50; i++) {
        scene_note(&scene, 0, BECALM_EVIDENCE_TIMEOUT);
    }
    check_true(memcmp(&before, &scene.limit, sizeof before) == 0);
}

static void test_limit__a_healthy_service_is_not_written_at_all(void **state)
{
    (void)state;
    for (int kind = BECALM_LIMIT_SLOTS; kind <= BECALM_LIMIT_AIMD; kind++) {
        struct scene scene;
        scene_init(&scene, (enum becalm_limit_kind)kind, BECALM_S);
        scene_round(&scene, 100, 100, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
        struct becalm_limit before = scene.limit;
        for (int i = 0; i < 9; i++) {
            scene_round(&scene, 100, 100, 100 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
            scene_round(&scene, 100, 100, 0, BECALM_EVIDENCE_ANSWER);
        }
        check_true(memcmp(&before, &scene.limit, sizeof before) == 0);
        scene_round(&scene, 100, 100, 100 * BECALM_US, BECALM_EVIDENCE_SUCCESS); /* a millisecond is over */
        check_eq_u64(scene.limit.last_ok_at, scene.at.now);
    }
}

static void test_limit__forty_one_slow_answers_move_a_limit_that_rests(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    for (int i = 0; i < 100; i++) {
        scene_round(&scene, 100, 100, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    }
    scene_round(&scene, 100, 40, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 10000);
    scene_round(&scene, 100, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 50);
}

static void test_limit__slow_by_nature_is_what_took_as_long_with_few_in_flight(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 8, 3, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 17, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 10000);
    check_eq_u64(scene.limit.reference, 4850); /* and from now on answers of up to twice that are not slow */
    for (uint32_t i = 0; i < BECALM_AMONG; i++) {
        check_eq_u64(scene.limit.among[i], 0);
    }
    for (int i = 0; i < 10; i++) {
        scene_round(&scene, 40, 40, 9 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(scene_limit(&scene), 10000);

    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS); /* two are not enough */
    scene_round(&scene, 8, 2, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 18, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 20);

    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS); /* nor is half as many in flight */
    scene_round(&scene, 16, 10, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 10, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 20);

    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS); /* nor an answer that took half as long: a queue grew */
    scene_round(&scene, 8, 3, 3 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 17, 6 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 20);

    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS); /* nor if half are given up */
    scene_round(&scene, 8, 8, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 2, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 10, 10 * BECALM_MS, BECALM_EVIDENCE_GIVEN_UP);
    check_eq_u64(scene_limit(&scene), 20);
}

/* At the start of a service with few clients hardly any answer was sent with a quarter as many in flight. */
static void test_limit__slow_by_nature_is_what_took_as_long_with_half_of_few_in_flight(void **state)
{
    (void)state;
    static const struct {
        uint32_t low; /* in flight, and so many answers, */
        uint32_t low_notes;
        uint32_t high; /* and then */
        becalm_ns took;
        uint32_t limit;
    } all[] = {
        {7, 3, 15, 4800 * BECALM_US, 10000},                                 /* 5/6 of 4.8 ms are 4 ms */
        {7, 3, 15, 4820 * BECALM_US, 7},     {7, 2, 15, 4 * BECALM_MS, 7},   /* two are not enough */
        {16, 3, 32, 4 * BECALM_MS, 10000},   {32, 3, 64, 4 * BECALM_MS, 32}, /* 64 are not few */
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct scene scene;
        scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
        scene_round(&scene, all[i].low, all[i].low_notes, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
        for (uint32_t left = 20 - all[i].low_notes; left > 0;) {
            uint32_t some = left < all[i].high ? left : all[i].high;
            scene_round(&scene, all[i].high, some, all[i].took, BECALM_EVIDENCE_SUCCESS);
            left -= some;
        }
        check_eq_u64(scene_limit(&scene), all[i].limit);
        check_true((scene.limit.reference > 0) == (all[i].limit == 10000));
    }

    struct scene scene; /* after a cut that would keep what was cut, and two cuts may be taken back */
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 40, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 20);
    scene_round(&scene, 8, 3, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 20, 17, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 10);
}

/* The answer that is judged last was sent when two were in flight. That says nothing of the others. */
static void test_limit__most_slow_answers_say_what_few_in_flight_is(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 4, 3, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 16, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 2, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 10000);
    check_true(scene.limit.reference > 0);

    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS); /* nor does one that was sent when many were */
    scene_round(&scene, 24, 18, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 100, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 24, 1, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 12);
}

/* A service whose latencies spread around a quarter of the timeout. */
static void test_limit__slow_by_nature_needs_half_of_the_answers_with_few_in_flight(void **state)
{
    (void)state;
    for (uint32_t quick = 4; quick <= 5; quick++) {
        struct scene scene;
        scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
        scene_round(&scene, 8, 4, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
        scene_round(&scene, 8, quick, 2400 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
        scene_round(&scene, 40, 20, 4500 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
        check_eq_u64(scene_limit(&scene), quick == 4 ? 10000 : 20);
    }
}

static void test_limit__quick_answers_with_few_in_flight_say_that_others_queue(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 8, 3, 4 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 8, 2, BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 40, 15, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene_limit(&scene), 20);
}

static void test_limit__nothing_is_cut_while_some_answers_are_quick(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 12 * BECALM_MS);
    for (int i = 0; i < 50; i++) { /* one quick answer for four slow ones, at the same moment */
        scene_send(&scene, 50);
        scene_stand(&scene);
        scene.at.now += 5 * BECALM_MS;
        becalm_limit_sent(&scene.limit, &scene.slot[0], scene.at.now);
        scene.at.now += BECALM_MS;
        for (uint32_t j = 0; j < 5; j++) {
            scene_note(&scene, j, BECALM_EVIDENCE_SUCCESS);
        }
        scene_give_all(&scene);
    }
    check_eq_u64(scene_limit(&scene), 10000);
    scene_round(&scene, 50, 19, 6 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* none for more than a twelfth */
    check_eq_u64(scene_limit(&scene), 25);
}

static void test_limit__what_its_caller_gave_up_counts_when_it_had_become_slow(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 20 * BECALM_MS);
    struct becalm_limit before = scene.limit;
    scene_round(&scene, 40, 40, 5 * BECALM_MS, BECALM_EVIDENCE_GIVEN_UP);
    check_true(memcmp(&before, &scene.limit, sizeof before) == 0);
    scene_round(&scene, 40, 19, 6 * BECALM_MS, BECALM_EVIDENCE_GIVEN_UP);
    check_eq_u64(scene_limit(&scene), 10000); /* it is no timeout in a row: five of them would have cut */
    scene_round(&scene, 40, 1, 6 * BECALM_MS, BECALM_EVIDENCE_GIVEN_UP);
    check_eq_u64(scene_limit(&scene), 20);
    scene_init(&scene, BECALM_LIMIT_AIMD, 20 * BECALM_MS);
    before = scene.limit;
    scene_round(&scene, 40, 40, 20 * BECALM_MS, BECALM_EVIDENCE_GIVEN_UP);
    check_true(memcmp(&before, &scene.limit, sizeof before) == 0);
}

static void test_limit__what_was_given_up_may_still_be_worked_on(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_MS);
    scene_round(&scene, 16, 4, 10 * BECALM_MS, BECALM_EVIDENCE_TIMEOUT);
    scene_round(&scene, 16, 12, 10 * BECALM_MS, BECALM_EVIDENCE_GIVEN_UP);
    scene_send(&scene, 1);
    check_eq_u64(scene.slot[0].among, 4); /* 2^4: sixteen ghosts and itself */
    scene.at.now += BECALM_MS;
    scene_note(&scene, 0, BECALM_EVIDENCE_ANSWER); /* quick: in the order of arrival they are through */
    scene_give_all(&scene);
    scene_send(&scene, 1);
    check_eq_u64(scene.slot[0].among, 0);
    scene_give_all(&scene);
}

static void test_limit__the_table_comes_to_rest_after_a_slow_answer(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 400 * BECALM_MS);
    scene_round(&scene, 100, 1, 150 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    for (int i = 0; i < 5; i++) {
        scene_round(&scene, 100, 100, 100 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    }
    struct becalm_limit before = scene.limit;
    scene_round(&scene, 100, 100, 100 * BECALM_US, BECALM_EVIDENCE_SUCCESS);
    check_true(memcmp(&before, &scene.limit, sizeof before) == 0);
}

/* Bursts that make slow answers, one every two timeouts: the queue of each burst is empty before the next, whose first
 * attempt is alone. And then a queue that stays. */
static void test_limit__a_queue_that_goes_by_itself_is_not_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    for (int burst = 0; burst < 2; burst++) { /* after some more of them such answers would be usual */
        scene_send(&scene, 40);
        scene_stand(&scene);
        scene.slot[0].beside = 0;
        scene.at.now += 900 * BECALM_MS;
        for (uint32_t i = 0; i < 40; i++) {
            scene_note(&scene, i, BECALM_EVIDENCE_SUCCESS);
        }
        scene_give_all(&scene);
        scene.at.now += 1100 * BECALM_MS;
    }
    check_eq_u64(scene_limit(&scene), 10000);
    scene_round(&scene, 40, 40, 900 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_true(scene_limit(&scene) <= 20);
}

/* Three in flight, answered one after the other: no attempt is alone, and none is sent among a quarter of them. */
static void scene_few(struct scene *scene, int rounds, becalm_ns latency)
{
    for (int i = 0; i < rounds; i++) {
        scene_round(scene, 3, 3, latency, BECALM_EVIDENCE_SUCCESS);
    }
}

/* The table of rows has no data where few attempts are in flight; the usual time does. */
static void test_limit__slots_takes_usual_answers_of_few_for_usual(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    scene_few(&scene, 100, 300 * BECALM_MS);
    check_eq_u64(scene_limit(&scene), 10000);
    scene_few(&scene, 100, 590 * BECALM_MS); /* up to twice the usual time */
    check_eq_u64(scene_limit(&scene), 10000);
}

static void test_limit__slots_is_cut_by_answers_that_take_more_than_twice_the_usual(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    scene_few(&scene, 100, 300 * BECALM_MS);
    scene_round(&scene, 60, 60, 900 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_true(scene_limit(&scene) <= 30);
}

/* The limit after a burst of answers of 300 ms, where this number of samples says that 300 ms are usual. */
static uint32_t limit_after_usual(uint64_t samples)
{
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    scene.limit.usual = UINT64_C(300000) << 28 | samples;
    scene.limit.seen_at = scene.at.now + BECALM_S; /* no sample more */
    scene_round(&scene, 40, 40, 300 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    return scene_limit(&scene);
}

static void test_limit__slots_knows_what_is_usual_from_four_samples(void **state)
{
    (void)state;
    check_true(limit_after_usual(3) <= 20);
    check_eq_u64(limit_after_usual(4), 10000);
}

/* A service that has too much to do from the first call on takes longer and longer: that does not become the usual
 * time. */
static void test_limit__slots_does_not_take_the_first_longer_answers_for_usual(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 4 * BECALM_S);
    for (uint64_t i = 0; i < 16; i++) {
        scene_round(&scene, 1, 1, BECALM_S + i * 10 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(scene.limit.usual >> 28, 1000000);
    scene_round(&scene, 1, 1, 1640 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* the seventeenth has a weight */
    check_between_u64(scene.limit.usual >> 28, 1000001, 1640000);
    scene_init(&scene, BECALM_LIMIT_SLOTS, 4 * BECALM_S);
    scene_round(&scene, 1, 1, 1500 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_round(&scene, 1, 1, 1000 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* shorter ones have theirs at once */
    check_eq_u64(scene.limit.usual >> 28, 1250000);
}

/* While half of the limit is used, it may be the limit that keeps answers so short. */
static void test_limit__slots_learns_what_is_usual_while_less_than_half_is_used(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    scene.limit.units = 80; /* 20 slots */
    scene_send(&scene, 10);
    scene.at.now += 200 * BECALM_MS;
    scene_note(&scene, 0, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.usual, 0);
    scene_give_all(&scene);
    scene_send(&scene, 9);
    scene.at.now += 200 * BECALM_MS;
    scene_note(&scene, 0, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.usual & 0xff, 1);
    scene_give_all(&scene);
}

/* With one slot each attempt is alone, and that says nothing of those in line. */
static void test_limit__alone_in_the_only_slot_is_no_sign_of_an_idle_service(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    scene.limit.units = 4;
    scene_send(&scene, 1);
    scene.at.now += 10 * BECALM_MS;
    scene_note(&scene, 0, BECALM_EVIDENCE_SUCCESS);
    scene_give_all(&scene);
    check_eq_u64(scene.limit.alone_at, 0);
    scene.limit.units = 8;
    scene_send(&scene, 1);
    scene.at.now += BECALM_S;
    scene_note(&scene, 0, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.alone_at, scene.slot[0].sent_at);
    scene_give_all(&scene);
}

static void test_limit__slots_is_not_cut_by_timeouts_that_an_answer_overtook(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, BECALM_S);
    scene_send(&scene, 12);
    scene.at.now += 100 * BECALM_MS;
    scene_note(&scene, 0, BECALM_EVIDENCE_SUCCESS); /* sent with the others */
    scene.at.now += 900 * BECALM_MS;
    for (uint32_t i = 1; i < 12; i++) {
        scene_note(&scene, i, BECALM_EVIDENCE_TIMEOUT);
    }
    scene_give_all(&scene);
    check_eq_u64(scene_limit(&scene), 10000);
    scene.at.now += BECALM_MS;
    scene_round(&scene, 12, 11, BECALM_S, BECALM_EVIDENCE_TIMEOUT); /* sent later than all that succeeded */
    check_eq_u64(scene_limit(&scene), 6);
}

/* Timeouts that come one after the other, of attempts that were all sent before the first cut. */
static void test_limit__what_is_in_flight_is_cut_twice_at_most(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, 10 * BECALM_S);
    scene_send(&scene, 64);
    scene.at.now += 10 * BECALM_S;
    uint32_t ended = 0;
    for (uint32_t limit[] = {32, 16, 16, 16}, *is = limit; is < limit + 4; is++) {
        for (int i = 0; i < 6; i++) {
            scene_note(&scene, ended++, BECALM_EVIDENCE_TIMEOUT);
        }
        check_eq_u64(scene_limit(&scene), *is);
        scene.at.now += 501 * BECALM_MS;
    }
    scene_give_all(&scene);
    scene_round(&scene, 16, 5, 10 * BECALM_S, BECALM_EVIDENCE_TIMEOUT); /* sent since */
    check_eq_u64(scene_limit(&scene), 8);
}

/* A service with `workers` workers that take `work` each, in the order of arrival, and evenly spaced callers. The
 * limit after 40,000 of them; in *good how many of the last 5,000 were admitted and answered in time. */
static uint32_t service_run(uint32_t workers, becalm_ns work, becalm_ns every, becalm_ns timeout, uint32_t *good)
{
    enum { CALLS = 40000, LAST = 5000 };
    static struct becalm_slot slot[CALLS];
    static becalm_ns ends[CALLS];
    static becalm_ns free_at[MANY];
    struct scene scene;
    scene_init(&scene, BECALM_LIMIT_SLOTS, timeout);
    memset(slot, 0, sizeof slot);
    memset(free_at, 0, sizeof free_at);
    becalm_ns start = scene.at.now;
    uint32_t next = 0; /* worker, which is the first to be free since all work takes as long */
    uint32_t ended = 0;
    *good = 0;
    for (uint32_t i = 0; i < CALLS; i++) {
        becalm_ns now = start + i * every;
        for (; ended < i && (!slot[ended].held || ends[ended] <= now); ended++) {
            if (!slot[ended].held) {
                continue;
            }
            bool late = ends[ended] - slot[ended].sent_at >= timeout;
            scene.at.now = ends[ended];
            becalm_limit_note(&scene.limit, &scene.policy, &scene.at, &slot[ended],
                              late ? BECALM_EVIDENCE_TIMEOUT : BECALM_EVIDENCE_SUCCESS);
            becalm_limit_give(&scene.limit, &slot[ended]);
            *good += ended >= CALLS - LAST && !late;
        }
        scene.at.now = now;
        if (becalm_limit_admit(&scene.limit, &scene.policy, &scene.at, timeout, &slot[i])) {
            becalm_ns done = becalm_ns_max(free_at[next], now) + work;
            free_at[next] = done;
            next = (next + 1) % workers;
            ends[i] = becalm_ns_min(done, now + timeout); /* a caller that gives up leaves its work behind */
        }
    }
    return scene_limit(&scene);
}

/* For all numbers: with a worker for every caller the limit is not cut, however slow they are; with half of the needed
 * workers, admitted calls are answered, about as many as the workers can do. */
static void test_limit__tells_slow_from_overloaded(void **state)
{
    (void)state;
    uint64_t rand = 41;
    for (int i = 0; i < RUNS_OF(200); i++) {
        becalm_ns timeout = (1 + becalm_rand_next(&rand) % 100) * 100 * BECALM_MS;
        becalm_ns work = timeout / 100 * (2 + becalm_rand_next(&rand) % 70);
        uint32_t busy = (uint32_t)(4 + becalm_rand_next(&rand) % 200); /* workers, on average, without a limit */
        uint32_t good;
        uint32_t limit = service_run(4 * busy, work, work / busy, timeout, &good);
        check_true(limit == 10000 || busy < 8); /* so few that no attempt is sent with a quarter of them in flight */
        check_true(good + busy > 4900);         /* the last ones are still in flight */
        if (8 * work < timeout && busy >= 16) {
            (void)service_run(busy / 2, work, work / busy, timeout, &good);
            check_between_u64(good, 1000, 2600);
        }
    }
}

/* A caller that wants 300 attempts in flight of a service without a queue, for 200 rounds. Returns the limit. */
static uint32_t slow_service(enum becalm_limit_kind kind, becalm_ns latency, uint32_t *least)
{
    struct scene scene;
    scene_init(&scene, kind, 5 * BECALM_S);
    *least = UINT32_MAX;
    for (int i = 0; i < 200; i++) {
        scene_send(&scene, 300);
        scene.at.now += latency;
        for (uint32_t j = 0; j < scene.flying; j++) {
            scene_note(&scene, j, BECALM_EVIDENCE_SUCCESS);
        }
        scene_give_all(&scene);
        *least = scene_limit(&scene) < *least ? scene_limit(&scene) : *least;
    }
    return scene_limit(&scene);
}

static void test_limit__a_healthy_slow_service_gets_its_full_concurrency(void **state)
{
    (void)state;
    uint32_t least;
    check_eq_u64(slow_service(BECALM_LIMIT_SLOTS, BECALM_S, &least), 10000);
    check_eq_u64(least, 10000); /* below a quarter of the timeout it is never touched */
    check_eq_u64(slow_service(BECALM_LIMIT_SLOTS, 1500 * BECALM_MS, &least), 10000);
    check_eq_u64(least, 10000); /* beyond it, neither: the first took as long as the three-hundredth */
    check_eq_u64(slow_service(BECALM_LIMIT_SLOTS, 3 * BECALM_S, &least), 10000);
    check_eq_u64(least, 10000);
    check_eq_u64(slow_service(BECALM_LIMIT_AIMD, 3 * BECALM_S, &least), 1000);
    check_eq_u64(least, 1000);
}

/* 850 calls a second, of which three in ten hang until their timeout of 1 s and the others take 10 ms; 60 s of it. */
static uint32_t hanging_service(enum becalm_limit_kind kind)
{
    enum { STEPS = 60000, RING = 1024 };
    static struct becalm_slot hung[RING];
    static struct becalm_slot well[RING];
    struct scene scene;
    scene_init(&scene, kind, BECALM_S);
    memset(hung, 0, sizeof hung);
    memset(well, 0, sizeof well);
    uint64_t seed = 7;
    uint32_t least = UINT32_MAX;
    for (unsigned i = 0; i < STEPS; i++, scene.at.now += BECALM_MS) {
        struct becalm_slot *late = &hung[(i + RING - 1000) % RING];
        becalm_limit_note(&scene.limit, &scene.policy, &scene.at, late, BECALM_EVIDENCE_TIMEOUT);
        becalm_limit_give(&scene.limit, late);
        struct becalm_slot *done = &well[(i + RING - 10) % RING];
        becalm_limit_note(&scene.limit, &scene.policy, &scene.at, done, BECALM_EVIDENCE_SUCCESS);
        becalm_limit_give(&scene.limit, done);
        if (becalm_rand_chance(becalm_rand_next(&seed), 850000)) {
            bool hangs = becalm_rand_chance(becalm_rand_next(&seed), 300000);
            struct becalm_slot *slot = hangs ? &hung[i % RING] : &well[i % RING];
            becalm_limit_admit(&scene.limit, &scene.policy, &scene.at, BECALM_S, slot);
        }
        least = scene_limit(&scene) < least ? scene_limit(&scene) : least;
    }
    return least;
}

static void test_limit__hangs_of_three_in_ten_do_not_cut(void **state)
{
    (void)state;
    check_eq_u64(hanging_service(BECALM_LIMIT_SLOTS), 10000);
    check_eq_u64(hanging_service(BECALM_LIMIT_AIMD), 1000);
}

static void test_limit__a_reload_keeps_what_was_learned(void **state)
{
    (void)state;
    struct scene old;
    scene_cut_twice(&old);
    scene_round(&old, 25, 20, 5 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    scene_send(&old, 10);
    struct scene fresh;
    scene_init(&fresh, BECALM_LIMIT_SLOTS, BECALM_S);
    becalm_limit_carry(&fresh.limit, &fresh.policy, &old.limit, &old.policy);
    check_eq_u64(scene_limit(&fresh), 100);
    check_eq_u64(fresh.limit.reference, 5000);
    check_eq_u64(becalm_limit_in_flight(&fresh.limit), 0);
    scene_give_all(&old);

    fresh.policy.max = 30;
    becalm_limit_init(&fresh.limit, &fresh.policy);
    becalm_limit_carry(&fresh.limit, &fresh.policy, &old.limit, &old.policy);
    check_eq_u64(scene_limit(&fresh), 30);
    check_eq_u64(fresh.limit.units, 120);

    scene_init(&fresh, BECALM_LIMIT_AIMD, BECALM_S);
    becalm_limit_carry(&fresh.limit, &fresh.policy, &old.limit, &old.policy);
    check_eq_u64(scene_limit(&fresh), 100);
    check_eq_u64(fresh.limit.reference, 0);
}

static void test_limit__a_reload_keeps_the_pace(void **state)
{
    (void)state;
    struct scene old;
    struct scene fresh;
    scene_paced(&old);
    scene_init(&fresh, BECALM_LIMIT_AIMD, BECALM_S);
    fresh.at = old.at;
    becalm_limit_carry(&fresh.limit, &fresh.policy, &old.limit, &old.policy);
    check_eq_u64(scene_passing(&fresh), scene_passing(&old));
    scene_init(&fresh, BECALM_LIMIT_FIXED, BECALM_S);
    fresh.at = old.at;
    becalm_limit_carry(&fresh.limit, &fresh.policy, &old.limit, &old.policy);
    check_eq_u64(scene_passing(&fresh), 10000);
}

static void test_limit__a_reload_that_raises_max_widens_a_limit_that_was_never_cut(void **state)
{
    (void)state;
    struct scene old;
    struct scene fresh;
    scene_init(&old, BECALM_LIMIT_SLOTS, BECALM_S);
    scene_init(&fresh, BECALM_LIMIT_SLOTS, BECALM_S);
    old.policy.max = 50;
    becalm_limit_init(&old.limit, &old.policy);
    becalm_limit_carry(&fresh.limit, &fresh.policy, &old.limit, &old.policy);
    check_eq_u64(scene_limit(&fresh), 10000);
    old.limit.units = 199; /* a quarter of a slot below its start: it has been cut */
    becalm_limit_carry(&fresh.limit, &fresh.policy, &old.limit, &old.policy);
    check_eq_u64(scene_limit(&fresh), 49);
}

static void test_limit__random_notes_keep_it_within_its_bounds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t rand = seed;
        struct scene scene;
        scene_init(&scene, seed % 2 == 0 ? BECALM_LIMIT_SLOTS : BECALM_LIMIT_AIMD,
                   1 + becalm_rand_next(&rand) % BECALM_S);
        scene.policy.min = (uint32_t)(1 + becalm_rand_next(&rand) % 10);
        scene.policy.max = (uint32_t)(scene.policy.min + becalm_rand_next(&rand) % 500);
        becalm_limit_init(&scene.limit, &scene.policy);
        for (int i = 0; i < 50000; i++) {
            uint64_t draw = becalm_rand_next(&rand);
            scene.at.random = becalm_rand_next(&rand);
            scene.at.now += draw % (BECALM_S / 10) - (draw % 7 == 0 ? draw % (BECALM_S / 20) : 0);
            if (draw >> 60 < 9) {
                uint32_t want = scene.flying + (uint32_t)(draw >> 32) % 20;
                scene_send(&scene, want < MANY ? want : MANY);
            } else if (scene.flying > 0) {
                uint32_t victim = (uint32_t)(draw >> 32) % scene.flying;
                scene_note(&scene, victim, (enum becalm_evidence)((draw >> 20) % 5));
                becalm_limit_give(&scene.limit, &scene.slot[victim]);
                scene.slot[victim] = scene.slot[--scene.flying];
            }
            uint32_t now = scene_limit(&scene);
            if (now < scene.policy.min || now > scene.policy.max ||
                becalm_limit_in_flight(&scene.limit) != scene.flying) {
                fail_msg("seed %" PRIu64 " step %d: limit %" PRIu32 ", in flight %" PRIu32, seed, i, now, scene.flying);
            }
        }
    }
}

enum { THREADS = 8 };

struct crowd {
    struct becalm_limit limit;
    struct becalm_limit_policy policy;
    _Atomic(uint64_t) held;
    _Atomic(uint64_t) most;
    _Atomic(uint64_t) admitted;
    _Atomic(uint64_t) seeds;
    int rounds;
    bool answers; /* half of the attempts are answers in progress before they end */
};

/* Takes up to four slots at a time, ends them in random ways, and counts the slots that all threads hold. */
static void *crowd_run(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t rand = atomic_fetch_add_explicit(&crowd->seeds, 1, memory_order_relaxed);
    struct becalm_moment at = {.now = BECALM_S};
    for (int i = 0; i < crowd->rounds; i++) {
        struct becalm_slot slot[4] = {{.held = false}};
        for (int j = 0; j < 4; j++) {
            at.random = becalm_rand_next(&rand);
            if (becalm_limit_admit(&crowd->limit, &crowd->policy, &at, 4 * BECALM_MS, &slot[j])) {
                uint64_t held = atomic_fetch_add_explicit(&crowd->held, 1, memory_order_relaxed) + 1;
                uint64_t most = atomic_load_explicit(&crowd->most, memory_order_relaxed);
                while (held > most && !atomic_compare_exchange_weak_explicit(
                                          &crowd->most, &most, held, memory_order_relaxed, memory_order_relaxed)) {
                }
                atomic_fetch_add_explicit(&crowd->admitted, 1, memory_order_relaxed);
            }
        }
        at.now += becalm_rand_next(&rand) % (3 * BECALM_MS);
        for (int j = 0; j < 4; j++) {
            enum becalm_evidence evidence = (enum becalm_evidence)(1 + becalm_rand_next(&rand) % 3);
            becalm_limit_note(&crowd->limit, &crowd->policy, &at, &slot[j], evidence);
            if (crowd->answers && j % 2 == 0) {
                becalm_limit_answer(&crowd->limit, &slot[j]);
            }
            if (slot[j].held) {
                atomic_fetch_sub_explicit(&crowd->held, 1, memory_order_relaxed);
            }
            becalm_limit_give(&crowd->limit, &slot[j]);
        }
    }
    return NULL;
}

static void crowd_go(struct crowd *crowd)
{
    pthread_t thread[THREADS];
    becalm_limit_init(&crowd->limit, &crowd->policy);
    for (int i = 0; i < THREADS; i++) {
        check_true(pthread_create(&thread[i], NULL, crowd_run, crowd) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    check_eq_u64(becalm_limit_in_flight(&crowd->limit), 0);
    check_eq_u64(becalm_limit_answers(&crowd->limit), 0);
    check_true(crowd->admitted > 0);
}

static void test_limit__eight_threads_never_exceed_a_fixed_limit(void **state)
{
    (void)state;
    struct crowd crowd = {.policy = {BECALM_LIMIT_FIXED, 1, 5, 0}, .rounds = RUNS_OF(20000)};
    crowd_go(&crowd);
    check_between_u64(crowd.most, 1, 5);
}

static void test_limit__eight_threads_never_exceed_the_bound_of_answers(void **state)
{
    (void)state;
    struct crowd crowd = {.policy = {BECALM_LIMIT_FIXED, 1, 5, 7}, .rounds = RUNS_OF(20000), .answers = true};
    crowd_go(&crowd);
    check_between_u64(crowd.most, 1, 7);
}

static void test_limit__eight_threads_leave_slots_and_aimd_in_range(void **state)
{
    (void)state;
    for (int kind = BECALM_LIMIT_SLOTS; kind <= BECALM_LIMIT_AIMD; kind++) {
        struct crowd crowd = {.policy = {.kind = (enum becalm_limit_kind)kind, .min = 2, .max = 20},
                              .rounds = RUNS_OF(20000)};
        crowd_go(&crowd);
        check_between_u64(becalm_limit_now(&crowd.limit, &crowd.policy), 2, 20);
        check_between_u64(crowd.most, 1, 20);
        check_true((crowd.limit.evidence >> 32 & 0xff) < 40);
        check_true(crowd.limit.pace % (1 << 20) <= 1000000);
    }
}

/* It protects calls that can't wait: see becalm__limit_late(). */
static void test_limit__knows_when_an_attempt_with_a_written_timeout_timed_out(void **state)
{
    (void)state;
    const enum becalm_limit_kind kinds[] = {BECALM_LIMIT_SLOTS, BECALM_LIMIT_AIMD};
    for (int i = 0; i < 2; i++) {
        struct scene scene;
        scene_init(&scene, kinds[i], BECALM_S);
        scene_round(&scene, 1, 1, BECALM_S, BECALM_EVIDENCE_OVERDUE);
        check_eq_u64(scene.limit.cut_off_at, 0);
        scene_round(&scene, 1, 1, BECALM_S, BECALM_EVIDENCE_TIMEOUT);
        check_eq_u64(scene.limit.cut_off_at, scene.at.now);
        struct becalm_limit reloaded;
        becalm_limit_init(&reloaded, &scene.policy);
        becalm_limit_carry(&reloaded, &scene.policy, &scene.limit, &scene.policy);
        check_eq_u64(reloaded.cut_off_at, scene.at.now);
    }
}

BECALM_TESTS(cmocka_unit_test(test_limit__starts_empty_and_wide),
             cmocka_unit_test(test_limit__aimd_starts_within_its_bounds),
             cmocka_unit_test(test_limit__names_the_field_that_is_wrong),
             cmocka_unit_test(test_limit__fixed_admits_exactly_max_and_learns_nothing),
             cmocka_unit_test(test_limit__none_only_counts), cmocka_unit_test(test_limit__a_slot_is_given_back_once),
             cmocka_unit_test(test_limit__slots_halves_what_is_in_flight_after_twenty_slow_answers),
             cmocka_unit_test(test_limit__slots_halves_what_was_in_flight_when_the_slow_ones_were_sent),
             cmocka_unit_test(test_limit__slots_halves_the_limit_if_less_than_that_is_in_flight),
             cmocka_unit_test(test_limit__an_answer_in_progress_is_not_in_flight),
             cmocka_unit_test(test_limit__answers_in_progress_are_neither_cut_nor_kept_by_a_cut),
             cmocka_unit_test(test_limit__attempts_and_answers_together_stay_within_max_answers),
             cmocka_unit_test(test_limit__slots_wants_three_quarters_of_the_answers_slow),
             cmocka_unit_test(test_limit__an_answer_at_a_quarter_of_its_timeout_is_not_slow),
             cmocka_unit_test(test_limit__answered_errors_count_by_their_latency),
             cmocka_unit_test(test_limit__attempts_from_before_the_cut_are_no_evidence),
             cmocka_unit_test(test_limit__an_attempt_counts_from_when_it_was_sent),
             cmocka_unit_test(test_limit__two_cuts_that_did_not_shorten_the_answers_are_undone),
             cmocka_unit_test(test_limit__cuts_that_shortened_the_answers_go_on),
             cmocka_unit_test(test_limit__with_few_in_flight_one_cut_that_shortened_nothing_is_undone),
             cmocka_unit_test(test_limit__cuts_are_not_undone_when_half_timed_out),
             cmocka_unit_test(test_limit__a_cut_by_timeouts_ends_a_series_of_cuts),
             cmocka_unit_test(test_limit__a_healthy_spell_ends_a_series_of_cuts),
             cmocka_unit_test(test_limit__the_reference_ends_when_answers_take_less_than_half_of_it),
             cmocka_unit_test(test_limit__slots_grows_by_a_quarter_while_half_is_used),
             cmocka_unit_test(test_limit__slots_grows_by_a_whole_slot_when_answers_take_a_sixteenth_of_their_timeout),
             cmocka_unit_test(test_limit__slots_grows_fast_from_one_and_stops_at_max),
             cmocka_unit_test(test_limit__aimd_grows_by_a_twentieth_at_least_once_it_was_cut),
             cmocka_unit_test(test_limit__aimd_is_not_cut_by_slow_answers),
             cmocka_unit_test(test_limit__five_timeouts_in_a_row_halve_what_is_in_flight),
             cmocka_unit_test(test_limit__timeouts_in_a_row_are_not_enough_soon_after_a_success),
             cmocka_unit_test(test_limit__never_falls_below_min),
             cmocka_unit_test(test_limit__aimd_at_its_minimum_paces_more_with_each_timeout),
             cmocka_unit_test(test_limit__slots_does_not_pace),
             cmocka_unit_test(test_limit__the_pace_recovers_with_a_time_constant_of_five_seconds),
             cmocka_unit_test(test_limit__the_pace_of_short_timeouts_recovers_as_many_times_sooner),
             cmocka_unit_test(test_limit__the_pace_goes_by_the_timeout_that_lowered_it),
             cmocka_unit_test(test_limit__one_success_ends_the_pacing),
             cmocka_unit_test(test_limit__what_is_turned_away_below_ends_the_pacing),
             cmocka_unit_test(test_limit__a_probe_of_a_breaker_is_not_paced),
             cmocka_unit_test(test_limit__a_routine_success_ends_the_pacing_too),
             cmocka_unit_test(test_limit__an_older_now_does_not_cut),
             cmocka_unit_test(test_limit__an_older_now_does_not_raise_the_pace),
             cmocka_unit_test(test_limit__only_the_first_note_of_a_held_slot_counts),
             cmocka_unit_test(test_limit__a_healthy_service_is_not_written_at_all),
             cmocka_unit_test(test_limit__forty_one_slow_answers_move_a_limit_that_rests),
             cmocka_unit_test(test_limit__slow_by_nature_is_what_took_as_long_with_few_in_flight),
             cmocka_unit_test(test_limit__slow_by_nature_is_what_took_as_long_with_half_of_few_in_flight),
             cmocka_unit_test(test_limit__quick_answers_with_few_in_flight_say_that_others_queue),
             cmocka_unit_test(test_limit__most_slow_answers_say_what_few_in_flight_is),
             cmocka_unit_test(test_limit__slow_by_nature_needs_half_of_the_answers_with_few_in_flight),
             cmocka_unit_test(test_limit__nothing_is_cut_while_some_answers_are_quick),
             cmocka_unit_test(test_limit__what_its_caller_gave_up_counts_when_it_had_become_slow),
             cmocka_unit_test(test_limit__what_was_given_up_may_still_be_worked_on),
             cmocka_unit_test(test_limit__the_table_comes_to_rest_after_a_slow_answer),
             cmocka_unit_test(test_limit__tells_slow_from_overloaded),
             cmocka_unit_test(test_limit__a_healthy_slow_service_gets_its_full_concurrency),
             cmocka_unit_test(test_limit__hangs_of_three_in_ten_do_not_cut),
             cmocka_unit_test(test_limit__a_reload_keeps_what_was_learned),
             cmocka_unit_test(test_limit__a_reload_keeps_the_pace),
             cmocka_unit_test(test_limit__a_reload_that_raises_max_widens_a_limit_that_was_never_cut),
             cmocka_unit_test(test_limit__a_queue_that_goes_by_itself_is_not_cut),
             cmocka_unit_test(test_limit__slots_takes_usual_answers_of_few_for_usual),
             cmocka_unit_test(test_limit__slots_is_cut_by_answers_that_take_more_than_twice_the_usual),
             cmocka_unit_test(test_limit__slots_knows_what_is_usual_from_four_samples),
             cmocka_unit_test(test_limit__slots_does_not_take_the_first_longer_answers_for_usual),
             cmocka_unit_test(test_limit__slots_learns_what_is_usual_while_less_than_half_is_used),
             cmocka_unit_test(test_limit__alone_in_the_only_slot_is_no_sign_of_an_idle_service),
             cmocka_unit_test(test_limit__slots_is_not_cut_by_timeouts_that_an_answer_overtook),
             cmocka_unit_test(test_limit__what_is_in_flight_is_cut_twice_at_most),
             cmocka_unit_test(test_limit__random_notes_keep_it_within_its_bounds),
             cmocka_unit_test(test_limit__eight_threads_never_exceed_a_fixed_limit),
             cmocka_unit_test(test_limit__eight_threads_never_exceed_the_bound_of_answers),
             cmocka_unit_test(test_limit__eight_threads_leave_slots_and_aimd_in_range),
             cmocka_unit_test(test_limit__knows_when_an_attempt_with_a_written_timeout_timed_out))
