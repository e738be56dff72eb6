/* SPDX-License-Identifier: MIT */
#include <becalm/limit.h>

#include "lib/check.h"

/* A caller's limit and a service that rejects what it has no place for: the last calls of each page. */

#define MANY    200
#define TIMEOUT BECALM_S
#define QUICK   BECALM_MS
#define PAGE    71
#define PLACES  58 /* in the service: it rejects an attempt that finds as many in flight */
#define START   1000

struct scene {
    struct becalm_limit limit;
    struct becalm_limit_policy policy;
    struct becalm_moment at;
    becalm_ns timeout;
    becalm_ns pause; /* between pages */
    becalm_ns took;
    bool waited; /* by each call, in line, for long */
};

static void scene_init(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    becalm_limit_defaults(&scene->policy, BECALM_LIMIT_AIMD);
    becalm_limit_init(&scene->limit, &scene->policy);
    scene->at.now = 100 * BECALM_S;
    scene->timeout = TIMEOUT;
    scene->pause = 10 * BECALM_S;
    scene->took = QUICK;
}

static uint32_t limit_of(const struct scene *scene)
{
    return becalm_limit_now(&scene->limit, &scene->policy);
}

/* Is an attempt rejected that was sent with so many others in flight? */
typedef bool rejecting(uint32_t beside);

static bool has_places(uint32_t beside)
{
    return beside >= PLACES;
}

static bool has_twenty_places(uint32_t beside)
{
    return beside >= 20;
}

static bool lacks_four_places(uint32_t beside)
{
    return beside >= PAGE - 4;
}

static bool rejects_a_quarter(uint32_t beside)
{
    return beside % 4 == 0;
}

static bool rejects_more_of_the_later(uint32_t beside)
{
    return beside % 8 == 0 || (beside >= 32 && beside % 4 == 0);
}

static bool rejects_all(uint32_t beside)
{
    (void)beside;
    return true;
}

static bool takes_all(uint32_t beside)
{
    (void)beside;
    return false;
}

static void end(struct scene *scene, struct becalm_slot *slot, enum becalm_evidence evidence)
{
    becalm_limit_note(&scene->limit, &scene->policy, &scene->at, slot, evidence);
    becalm_limit_give(&scene->limit, slot);
}

/* The first calls of a page, as many as there are slots for, at once. Rejections come first. Returns their number. */
static uint32_t page(struct scene *scene, uint32_t calls, rejecting *rejects)
{
    struct becalm_slot slot[MANY] = {{0}};
    uint32_t sent = 0;
    uint32_t rejected = 0;
    scene->at.now += scene->pause;
    while (sent < calls &&
           becalm_limit_admit(&scene->limit, &scene->policy, &scene->at, scene->timeout, &slot[sent])) {
        slot[sent].waited = scene->waited;
        sent++;
    }
    for (uint32_t i = 0; i < sent; i++) {
        if (rejects(i)) {
            end(scene, &slot[i], BECALM_EVIDENCE_REJECTED);
            rejected++;
        }
    }
    scene->at.now += scene->took;
    for (uint32_t i = 0; i < sent; i++) {
        if (!rejects(i)) {
            end(scene, &slot[i], BECALM_EVIDENCE_SUCCESS);
        }
    }
    return rejected;
}

static void pages(struct scene *scene, uint32_t count, rejecting *rejects)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)page(scene, PAGE, rejects);
    }
}

/* Three pages teach a caller that the service has fewer places than a page has calls. */
static void scene_init_narrowed(struct scene *scene)
{
    scene_init(scene);
    pages(scene, 3, has_places);
    check_eq_u64(limit_of(scene), 31);
}

static void test_limit_bursts__where_the_last_of_each_burst_are_rejected_the_limit_is_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(page(&scene, PAGE, has_places), PAGE - PLACES);
    check_eq_u64(page(&scene, PAGE, has_places), PAGE - PLACES);
    check_eq_u64(limit_of(&scene), START); /* notes begin with the first rejection, and one burst is not enough */
    check_eq_u64(page(&scene, PAGE, has_places), PAGE - PLACES);
    check_eq_u64(limit_of(&scene), 31); /* with 32 to 63 in flight a sixth of the attempts was rejected */
    check_eq_u64(page(&scene, PAGE, has_places), 0);
}

static void test_limit_bursts__a_service_that_goes_down_in_the_middle_of_a_burst_cuts_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 3, takes_all);
    (void)page(&scene, PAGE, has_places); /* the service went down at the 59th call */
    pages(&scene, 20, rejects_all);
    pages(&scene, 20, takes_all);
    check_eq_u64(limit_of(&scene), START);
}

static void test_limit_bursts__rejections_at_any_number_in_flight_cut_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 50, rejects_a_quarter);
    check_eq_u64(limit_of(&scene), START);
    pages(&scene, 50, rejects_more_of_the_later); /* twice as often, not four times */
    check_eq_u64(limit_of(&scene), START);
}

static void test_limit_bursts__a_few_rejections_cut_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 2, lacks_four_places);
    check_eq_u64(limit_of(&scene), START); /* four were noted */
    pages(&scene, 1, lacks_four_places);
    check_eq_u64(limit_of(&scene), 63);
}

static void test_limit_bursts__the_limit_stays_so_wide_that_no_call_waits_for_long(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.took = 50 * BECALM_MS;
    pages(&scene, 3, has_twenty_places);
    /* 15 slots are below all rejections. With them some 64 calls of 50 ms take .21 s; an eighth of 1 s allows 25. */
    check_eq_u64(limit_of(&scene), 25);
    scene_init(&scene);
    scene.took = 300 * BECALM_MS;
    pages(&scene, 10, has_twenty_places);
    check_eq_u64(limit_of(&scene), START); /* each of these calls alone takes longer than an eighth */
}

static void test_limit_bursts__the_limit_is_not_cut_below_what_is_in_flight_on_average(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.timeout = 100 * BECALM_S;
    scene.pause = 50 * BECALM_MS;
    scene.took = BECALM_S; /* one page after the other: 58 of 71 calls are in flight for 20 of 21 ms */
    pages(&scene, 4, has_places);
    check_eq_u64(limit_of(&scene), START); /* four times the latency have not passed since the first page */
    pages(&scene, 1, has_places);
    check_eq_u64(limit_of(&scene), 41); /* 3 x 58 x 1 s in 4 x 1.05 s; not 31 */
}

static void test_limit_bursts__the_limit_is_not_cut_below_its_minimum(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.policy.min = 40;
    pages(&scene, 3, has_places);
    check_eq_u64(limit_of(&scene), 40);
}

static void test_limit_bursts__a_cut_limit_widens_slowly(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    pages(&scene, 20, has_places); /* 620 successes: 20 steps of a twentieth, in each 32 of them one */
    check_eq_u64(limit_of(&scene), 32);
    pages(&scene, 300, takes_all);
    check_true(limit_of(&scene) > 40 && limit_of(&scene) < 55);
}

static void test_limit_bursts__a_cut_limit_widens_at_once_where_calls_wait_for_long(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    scene.waited = true;
    (void)page(&scene, PAGE, takes_all);
    check_eq_u64(limit_of(&scene), 52);
    scene_init_narrowed(&scene);
    scene.waited = true;
    scene.took = TIMEOUT / 2; /* these answers are not quick, as in an overload */
    (void)page(&scene, PAGE, takes_all);
    check_eq_u64(limit_of(&scene), 32);
}

static void test_limit_bursts__a_limit_that_timeouts_have_cut_learns_nothing_of_bursts(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 2, has_places);
    scene.limit.well = (uint64_t)400 * 20 << 1 | 1; /* before the cuts there were 400 slots */
    scene.limit.units = UINT64_C(100) * 20;
    (void)page(&scene, PAGE, has_places);
    check_true(limit_of(&scene) >= 100);
}

static void test_limit_bursts__a_wider_service_is_not_rejecting_any_more(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 1, has_places);
    pages(&scene, 20, takes_all); /* more than 512 notes, none of them a rejection: no notes any more */
    pages(&scene, 1, has_places); /* notes begin, */
    pages(&scene, 1, has_places); /* and one burst is not enough again */
    check_eq_u64(limit_of(&scene), START);
}

static void test_limit_bursts__a_reload_keeps_a_cut_limit(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    struct scene next;
    scene_init(&next);
    next.at.now = scene.at.now;
    becalm_limit_carry(&next.limit, &next.policy, &scene.limit, &scene.policy);
    check_eq_u64(limit_of(&next), 31);
    pages(&next, 5, takes_all);
    check_eq_u64(limit_of(&next), 31); /* it widens as slowly as before */
}

BECALM_TESTS(cmocka_unit_test(test_limit_bursts__where_the_last_of_each_burst_are_rejected_the_limit_is_cut),
             cmocka_unit_test(test_limit_bursts__a_service_that_goes_down_in_the_middle_of_a_burst_cuts_nothing),
             cmocka_unit_test(test_limit_bursts__rejections_at_any_number_in_flight_cut_nothing),
             cmocka_unit_test(test_limit_bursts__a_few_rejections_cut_nothing),
             cmocka_unit_test(test_limit_bursts__the_limit_stays_so_wide_that_no_call_waits_for_long),
             cmocka_unit_test(test_limit_bursts__the_limit_is_not_cut_below_what_is_in_flight_on_average),
             cmocka_unit_test(test_limit_bursts__the_limit_is_not_cut_below_its_minimum),
             cmocka_unit_test(test_limit_bursts__a_cut_limit_widens_slowly),
             cmocka_unit_test(test_limit_bursts__a_cut_limit_widens_at_once_where_calls_wait_for_long),
             cmocka_unit_test(test_limit_bursts__a_limit_that_timeouts_have_cut_learns_nothing_of_bursts),
             cmocka_unit_test(test_limit_bursts__a_wider_service_is_not_rejecting_any_more),
             cmocka_unit_test(test_limit_bursts__a_reload_keeps_a_cut_limit))
