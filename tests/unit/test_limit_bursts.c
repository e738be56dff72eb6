/* SPDX-License-Identifier: MIT */
#include <becalm/limit.h>

#include <pthread.h>

#include "lib/check.h"

/* A caller's limit and a service that rejects what it has no place for: the last calls of each page. */

#define MANY    800
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

static uint64_t units_of(const struct scene *scene)
{
    return atomic_load_explicit(&scene->limit.units, memory_order_relaxed);
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

static bool has_ten_places(uint32_t beside)
{
    return beside >= 10;
}

static bool has_four_hundred_places(uint32_t beside)
{
    return beside >= 400;
}

static bool lacks_one_place(uint32_t beside)
{
    return beside == PAGE - 1;
}

static bool lacks_two_places(uint32_t beside)
{
    return beside >= PAGE - 2;
}

static bool has_sixty_places(uint32_t beside)
{
    return beside >= 60;
}

/* Of the lower 31 attempts four are rejected as well. */
static bool rejects_an_eighth_below(uint32_t beside)
{
    return beside >= 31 || beside == 17 || (beside >= 3 && beside <= 5);
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

struct burst {
    struct becalm_slot slot[MANY];
    uint32_t sent;
};

/* The first calls of a page, as many as there are slots for, at once. */
static void burst_send(struct scene *scene, struct burst *burst, uint32_t calls)
{
    memset(burst, 0, sizeof *burst);
    scene->at.now += scene->pause;
    while (burst->sent < calls &&
           becalm_limit_admit(&scene->limit, &scene->policy, &scene->at, scene->timeout, &burst->slot[burst->sent])) {
        burst->slot[burst->sent].waited = scene->waited;
        burst->sent++;
    }
}

/* Rejections come first. Returns their number. */
static uint32_t page(struct scene *scene, uint32_t calls, rejecting *rejects)
{
    struct burst burst;
    uint32_t rejected = 0;
    burst_send(scene, &burst, calls);
    for (uint32_t i = 0; i < burst.sent; i++) {
        if (rejects(i)) {
            end(scene, &burst.slot[i], BECALM_EVIDENCE_REJECTED);
            rejected++;
        }
    }
    scene->at.now += scene->took;
    for (uint32_t i = 0; i < burst.sent; i++) {
        if (!rejects(i)) {
            end(scene, &burst.slot[i], BECALM_EVIDENCE_SUCCESS);
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
    check_eq_u64(limit_of(&scene), START); /* the first one begins the notes, and one noted burst is not enough */
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

/* Two bursts of which one attempt each was rejected, besides the one that begins the notes. */
static void scene_init_noted(struct scene *scene)
{
    scene_init(scene);
    pages(scene, 3, lacks_one_place);
    check_eq_u64(limit_of(scene), START);
}

static void test_limit_bursts__where_the_last_sent_are_rejected_before_the_rest_nothing_is_cut(void **state)
{
    (void)state;
    struct scene scene;
    struct burst burst;
    scene_init_noted(&scene);
    burst_send(&scene, &burst, PAGE);
    for (uint32_t i = PAGE; i-- > 0;) {
        end(&scene, &burst.slot[i], BECALM_EVIDENCE_REJECTED);
    }
    pages(&scene, 1, takes_all);
    check_eq_u64(limit_of(&scene), START);
}

static void test_limit_bursts__successes_that_were_sent_after_the_rejections_say_nothing_of_them(void **state)
{
    (void)state;
    struct scene scene;
    struct burst burst;
    scene_init_noted(&scene);
    burst_send(&scene, &burst, PAGE);
    for (uint32_t i = 0; i < PAGE; i++) {
        end(&scene, &burst.slot[i], i < PLACES ? BECALM_EVIDENCE_ANSWER : BECALM_EVIDENCE_REJECTED);
    }
    pages(&scene, 1, takes_all);
    check_eq_u64(limit_of(&scene), START);
}

static void test_limit_bursts__a_burst_without_a_success_does_not_count(void **state)
{
    (void)state;
    struct scene scene;
    struct burst burst;
    scene_init(&scene);
    (void)page(&scene, PAGE, has_places);
    burst_send(&scene, &burst, PAGE);
    for (uint32_t i = 0; i < PAGE; i++) {
        end(&scene, &burst.slot[i], i < PLACES ? BECALM_EVIDENCE_ANSWER : BECALM_EVIDENCE_REJECTED);
    }
    (void)page(&scene, PAGE, takes_all);
    (void)page(&scene, PAGE, has_places);
    check_eq_u64(limit_of(&scene), START); /* this was the only one */
    (void)page(&scene, PAGE, has_places);
    check_true(limit_of(&scene) < PAGE);
}

static void test_limit_bursts__a_further_cut_needs_two_more_bursts(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    pages(&scene, 1, has_twenty_places);
    check_eq_u64(limit_of(&scene), 31);
    pages(&scene, 1, has_twenty_places);
    check_eq_u64(limit_of(&scene), 15);
}

static void test_limit_bursts__rejections_between_the_successes_of_one_burst_are_one_burst(void **state)
{
    (void)state;
    struct scene scene;
    struct burst burst;
    scene_init(&scene);
    (void)page(&scene, PAGE, has_places);
    burst_send(&scene, &burst, PAGE);
    scene.at.now += scene.took;
    for (uint32_t i = PLACES; i < PAGE; i++) {
        end(&scene, &burst.slot[i], BECALM_EVIDENCE_REJECTED);
        end(&scene, &burst.slot[i - PLACES], BECALM_EVIDENCE_SUCCESS);
    }
    for (uint32_t i = PAGE - PLACES; i < PLACES; i++) {
        end(&scene, &burst.slot[i], BECALM_EVIDENCE_SUCCESS);
    }
    check_eq_u64(limit_of(&scene), START);
    (void)page(&scene, PAGE, has_places);
    check_eq_u64(limit_of(&scene), 31);
}

static void test_limit_bursts__bursts_that_are_larger_than_the_notes_are_learned_from_too(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < 4; i++) {
        (void)page(&scene, 600, has_four_hundred_places);
    }
    check_between_u64(limit_of(&scene), 1, 400);
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

static void test_limit_bursts__rejections_at_random_hardly_ever_cut_the_limit(void **state)
{
    (void)state;
    uint64_t rand = 54;
    uint32_t cut = 0;
    for (int run = 0; run < 100; run++) {
        struct scene scene;
        scene_init(&scene);
        for (int i = 0; i < 30; i++) {
            struct burst burst;
            burst_send(&scene, &burst, PAGE);
            bool rejected[PAGE];
            for (uint32_t j = 0; j < burst.sent; j++) {
                rejected[j] = becalm_rand_next(&rand) % 10 == 0;
                if (rejected[j]) {
                    end(&scene, &burst.slot[j], BECALM_EVIDENCE_REJECTED);
                }
            }
            scene.at.now += scene.took;
            for (uint32_t j = 0; j < burst.sent; j++) {
                if (!rejected[j]) {
                    end(&scene, &burst.slot[j], BECALM_EVIDENCE_SUCCESS);
                }
            }
        }
        cut += limit_of(&scene) < START;
    }
    check_true(cut <= 6); /* of a hundred callers with thirty pages each: three */
}

static void test_limit_bursts__a_few_rejections_cut_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 3, lacks_two_places);
    check_eq_u64(limit_of(&scene), START); /* four were noted */
    pages(&scene, 1, lacks_two_places);
    check_eq_u64(limit_of(&scene), 63);
}

static void test_limit_bursts__the_limit_is_below_the_lowest_row_of_which_an_eighth_is_rejected(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 4, has_sixty_places);
    check_eq_u64(limit_of(&scene), 63); /* of those with 32 to 63 in flight, 3 of 32 */
}

static void test_limit_bursts__a_row_without_attempts_says_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < 4; i++) {
        struct burst burst;
        burst_send(&scene, &burst, PAGE);
        for (uint32_t j = 0; j < PAGE; j++) {
            burst.slot[j].beside = j < 4 ? 0 : (uint16_t)(j / 4 + 63); /* none with 2 to 63 in flight */
        }
        for (uint32_t j = 20; j < PAGE; j++) {
            end(&scene, &burst.slot[j], BECALM_EVIDENCE_REJECTED);
        }
        scene.at.now += scene.took;
        for (uint32_t j = 20; j-- > 0;) {
            end(&scene, &burst.slot[j], BECALM_EVIDENCE_SUCCESS);
        }
    }
    check_eq_u64(limit_of(&scene), 63);
}

static void test_limit_bursts__of_the_lower_rows_a_quarter_as_many_may_be_rejected(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    pages(&scene, 3, rejects_an_eighth_below);
    check_eq_u64(limit_of(&scene), 31);
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
    scene_init(&scene);
    scene.timeout = BECALM_US; /* an eighth of that is 0 */
    pages(&scene, 10, has_twenty_places);
    check_eq_u64(limit_of(&scene), START);
}

static void test_limit_bursts__the_limit_is_not_cut_below_what_is_in_flight_on_average(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.timeout = 100 * BECALM_S;
    scene.pause = 50 * BECALM_MS;
    scene.took = BECALM_S; /* one page after the other: 58 of 71 calls are in flight for 20 of 21 ms */
    pages(&scene, 3, has_places);
    check_eq_u64(limit_of(&scene), START); /* four times the latency have not passed since the first page */
    pages(&scene, 1, has_places);
    check_eq_u64(limit_of(&scene), 42); /* 3 x 58 x 1 s in 4 x 1.05 s, those in flight included; not 31 */
    scene_init(&scene);
    scene.timeout = 100 * BECALM_S;
    scene.pause = BECALM_S;
    scene.took = BECALM_S;
    (void)page(&scene, PAGE, has_places);
    for (int i = 0; i < 512 / PAGE; i++) { /* notes are halved, and the time, too */
        pages(&scene, 1, lacks_one_place);
        pages(&scene, 1, takes_all);
    }
    pages(&scene, 3, has_twenty_places);
    check_between_u64(limit_of(&scene), 32, 45); /* 71 x 1 s in 2 s, and less with three such pages */
}

static void test_limit_bursts__the_limit_is_not_cut_below_its_minimum(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.policy.min = 40;
    pages(&scene, 3, has_places);
    check_eq_u64(units_of(&scene), 40 * 20);
}

/* How many successes in a wider service widen the limit? */
static uint32_t successes_until_wider(struct scene *scene)
{
    uint64_t units = units_of(scene);
    for (uint32_t successes = 1;; successes++) {
        struct becalm_slot slot = {.held = false};
        scene->at.now += scene->pause;
        check_true(becalm_limit_admit(&scene->limit, &scene->policy, &scene->at, scene->timeout, &slot));
        slot.beside = (uint16_t)(limit_of(scene) - 1);
        slot.waited = scene->waited;
        scene->at.now += scene->took;
        end(scene, &slot, BECALM_EVIDENCE_SUCCESS);
        if (units_of(scene) > units || successes > 100000) {
            return successes;
        }
    }
}

/* Pages, until the limit has become so wide that rejections cut it again. */
static void widen_until_cut(struct scene *scene)
{
    uint64_t before = units_of(scene);
    for (int i = 0; i < 1000; i++) {
        (void)page(scene, PAGE, has_places);
        if (units_of(scene) < before) {
            break;
        }
        before = units_of(scene);
    }
    check_eq_u64(limit_of(scene), 31);
}

static void test_limit_bursts__a_cut_limit_holds_for_a_while_and_then_widens(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    uint32_t rest = PLACES - 3; /* the third success of the third page led to the cut */
    check_eq_u64(successes_until_wider(&scene), 1024 - rest + 1);
    check_eq_u64(units_of(&scene), 31 * 20 + 1);
    check_eq_u64(successes_until_wider(&scene), 1); /* and so on, by 1/20 each */
    scene_init_narrowed(&scene);
    scene.waited = true;
    for (uint32_t i = 0; i < 1024 - rest; i++) {
        check_eq_u64(successes_until_wider(&scene), 1);
    }
    scene.waited = false;
    check_eq_u64(successes_until_wider(&scene), 1); /* so many successes there were */
}

static void test_limit_bursts__after_each_further_cut_the_limit_holds_for_four_times_as_long(void **state)
{
    (void)state;
    static const uint32_t holds[] = {1024, 4096, 16384, 65536, 65536};
    struct scene scene;
    scene_init(&scene);
    for (size_t i = 0; i < sizeof holds / sizeof holds[0]; i++) {
        widen_until_cut(&scene);
        check_between_u64(successes_until_wider(&scene), holds[i] - PAGE, holds[i] + 1);
    }
}

static void test_limit_bursts__a_limit_that_could_widen_for_as_long_has_forgotten_its_cuts(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    widen_until_cut(&scene);
    for (uint32_t holds = 1024; holds <= 4096; holds *= 4) {
        for (int i = 1; i < (int)(holds / 1024); i *= 4) {
            widen_until_cut(&scene);
        }
        for (uint32_t successes = 0; successes < 2 * holds;) {
            successes += successes_until_wider(&scene);
        }
        widen_until_cut(&scene);
        check_between_u64(successes_until_wider(&scene), 1024 - PAGE, 1024);
    }
}

static void test_limit_bursts__a_cut_limit_widens_at_once_where_calls_wait_for_long(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    scene.waited = true;
    (void)page(&scene, PAGE, takes_all);
    check_eq_u64(limit_of(&scene), 53); /* 22 of 31 successes came while half of it was used */
    scene_init_narrowed(&scene);
    scene.waited = true;
    scene.took = TIMEOUT / 2; /* these answers are not quick, as in an overload */
    (void)page(&scene, PAGE, takes_all);
    check_eq_u64(limit_of(&scene), 32);
    scene_init_narrowed(&scene);
    scene.waited = true;
    scene.limit.narrowed = 0; /* timeouts have cut the limit, not rejections */
    (void)page(&scene, PAGE, takes_all);
    check_eq_u64(limit_of(&scene), 32);
}

static void test_limit_bursts__a_limit_that_timeouts_have_cut_learns_nothing_of_bursts(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.pause = 100 * BECALM_MS; /* no silence that ends */
    pages(&scene, 2, has_places);
    scene.limit.well = (uint64_t)400 * 20 << 1 | 1; /* before the cuts there were 400 slots */
    scene.limit.units = UINT64_C(100) * 20;
    (void)page(&scene, PAGE, has_places);
    check_true(limit_of(&scene) >= 100);
    scene.limit.units = UINT64_C(400) * 20;
    (void)page(&scene, PAGE, has_places);
    check_eq_u64(limit_of(&scene), 31);
}

static void test_limit_bursts__below_its_cut_a_limit_widens_as_after_any_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    scene.limit.units = 2 * 20; /* timeouts have cut the limit when little was in flight, */
    scene.limit.well = 2 * 20 << 1 | 1;
    struct scene next = scene;
    becalm_limit_init(&next.limit, &next.policy);
    becalm_limit_carry(&next.limit, &next.policy, &scene.limit, &scene.policy);
    pages(&next, 40, takes_all);
    check_eq_u64(limit_of(&next), 31); /* and it is back where rejections cut it */
    pages(&next, 20, takes_all);
    check_eq_u64(limit_of(&next), 31);
    scene.limit.units = 35 * 20; /* and when much was: it comes back to that at once */
    scene.limit.well = 50 * 20 << 1 | 1;
    scene.pause = 100 * BECALM_MS;
    pages(&scene, 2, takes_all);
    check_eq_u64(limit_of(&scene), 50);
}

static void test_limit_bursts__the_size_of_a_burst_is_known_from_its_last_success(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.took = 100 * BECALM_MS;
    for (int i = 0; i < 3; i++) {
        struct burst burst;
        burst_send(&scene, &burst, 127);
        for (uint32_t j = 100; j < 127; j++) {
            end(&scene, &burst.slot[j], BECALM_EVIDENCE_REJECTED);
        }
        scene.at.now += scene.took;
        for (uint32_t j = 100; j-- > 0;) {
            end(&scene, &burst.slot[j], BECALM_EVIDENCE_SUCCESS);
        }
    }
    check_eq_u64(limit_of(&scene), 80); /* 100 calls of .1 s in an eighth of 1 s; with 64 of them, 63 slots */
}

static void test_limit_bursts__the_size_of_bursts_before_the_cut_is_remembered(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.took = 50 * BECALM_MS;
    pages(&scene, 3, has_twenty_places);
    check_eq_u64(limit_of(&scene), 25);
    pages(&scene, 10, has_ten_places); /* of the 25 that are in flight now; 10 slots would be enough for these */
    check_eq_u64(limit_of(&scene), 25);
    struct scene next = scene;
    becalm_limit_init(&next.limit, &next.policy);
    becalm_limit_carry(&next.limit, &next.policy, &scene.limit, &scene.policy);
    pages(&next, 10, has_ten_places);
    check_eq_u64(limit_of(&next), 25);
    pages(&scene, 2 * 1024 / 25 + 1, takes_all); /* no cut for so long: bursts are smaller now */
    for (int i = 0; i < 10; i++) {
        (void)page(&scene, 24, has_ten_places);
    }
    check_eq_u64(limit_of(&scene), 7);
}

static void test_limit_bursts__notes_end_after_512_without_a_rejection(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    (void)page(&scene, PAGE, has_places);
    pages(&scene, 512 / PAGE, takes_all);
    pages(&scene, 2, has_places); /* two noted bursts */
    check_eq_u64(limit_of(&scene), 63);
    scene_init(&scene);
    (void)page(&scene, PAGE, has_places);
    pages(&scene, 512 / PAGE + 1, takes_all);
    pages(&scene, 2, has_places); /* the first of these begins the notes again */
    check_eq_u64(limit_of(&scene), START);
    pages(&scene, 40, takes_all); /* the noted burst is forgotten, too */
    pages(&scene, 2, has_places);
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
    check_eq_u64(successes_until_wider(&next), successes_until_wider(&scene)); /* it holds for as long as before */
}

static void test_limit_bursts__a_limit_that_a_reload_has_lowered_still_learns(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_narrowed(&scene);
    struct scene next;
    scene_init(&next);
    next.at.now = scene.at.now;
    next.policy.max = 20;
    next.pause = 100 * BECALM_MS;
    becalm_limit_carry(&next.limit, &next.policy, &scene.limit, &scene.policy);
    check_eq_u64(limit_of(&next), 20);
    pages(&next, 4, has_ten_places);
    check_eq_u64(limit_of(&next), 7);
}

#define THREADS 8

/* A service with twenty places, and callers that share a limit. */
struct crowd {
    struct becalm_limit limit;
    struct becalm_limit_policy policy;
    _Atomic uint64_t seeds;
    _Atomic uint64_t rejected;
    int rounds;
};

static void *crowd_run(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t rand = atomic_fetch_add_explicit(&crowd->seeds, 1, memory_order_relaxed);
    struct becalm_moment at = {.now = BECALM_S};
    for (int i = 0; i < crowd->rounds; i++) {
        struct becalm_slot slot[8] = {{.held = false}};
        for (int j = 0; j < 8; j++) {
            (void)becalm_limit_admit(&crowd->limit, &crowd->policy, &at, BECALM_S, &slot[j]);
        }
        at.now += BECALM_MS + becalm_rand_next(&rand) % BECALM_MS;
        for (int j = 7; j >= 0; j--) {
            bool takes = slot[j].beside < 20;
            becalm_limit_note(&crowd->limit, &crowd->policy, &at, &slot[j],
                              takes ? BECALM_EVIDENCE_SUCCESS : BECALM_EVIDENCE_REJECTED);
            atomic_fetch_add_explicit(&crowd->rejected, !takes, memory_order_relaxed);
            becalm_limit_give(&crowd->limit, &slot[j]);
        }
    }
    return NULL;
}

static void test_limit_bursts__eight_threads_leave_the_limit_in_range(void **state)
{
    (void)state;
    struct crowd crowd = {.policy = {BECALM_LIMIT_AIMD, 2, 50, 0}, .rounds = RUNS_OF(20000)};
    pthread_t thread[THREADS];
    becalm_limit_init(&crowd.limit, &crowd.policy);
    for (int i = 0; i < THREADS; i++) {
        check_true(pthread_create(&thread[i], NULL, crowd_run, &crowd) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    check_eq_u64(becalm_limit_in_flight(&crowd.limit), 0);
    check_between_u64(crowd.limit.units, UINT64_C(2) * 20, UINT64_C(50) * 20);
    check_between_u64(crowd.limit.narrowed & 0xff, 0, 3);
    check_true(crowd.limit.narrowed >> 8 <= 2 * 65536);
    check_true(crowd.limit.narrowed_to <= UINT64_C(50) * 20);
    check_true(crowd.limit.burst <= 64);
    check_true((crowd.limit.bursts_notes >> 32) + (crowd.limit.bursts_notes & UINT32_MAX) < 512 + THREADS);
}

BECALM_TESTS(cmocka_unit_test(test_limit_bursts__where_the_last_of_each_burst_are_rejected_the_limit_is_cut),
             cmocka_unit_test(test_limit_bursts__a_service_that_goes_down_in_the_middle_of_a_burst_cuts_nothing),
             cmocka_unit_test(test_limit_bursts__where_the_last_sent_are_rejected_before_the_rest_nothing_is_cut),
             cmocka_unit_test(test_limit_bursts__successes_that_were_sent_after_the_rejections_say_nothing_of_them),
             cmocka_unit_test(test_limit_bursts__a_burst_without_a_success_does_not_count),
             cmocka_unit_test(test_limit_bursts__a_further_cut_needs_two_more_bursts),
             cmocka_unit_test(test_limit_bursts__rejections_between_the_successes_of_one_burst_are_one_burst),
             cmocka_unit_test(test_limit_bursts__bursts_that_are_larger_than_the_notes_are_learned_from_too),
             cmocka_unit_test(test_limit_bursts__rejections_at_any_number_in_flight_cut_nothing),
             cmocka_unit_test(test_limit_bursts__rejections_at_random_hardly_ever_cut_the_limit),
             cmocka_unit_test(test_limit_bursts__a_few_rejections_cut_nothing),
             cmocka_unit_test(test_limit_bursts__the_limit_is_below_the_lowest_row_of_which_an_eighth_is_rejected),
             cmocka_unit_test(test_limit_bursts__a_row_without_attempts_says_nothing),
             cmocka_unit_test(test_limit_bursts__of_the_lower_rows_a_quarter_as_many_may_be_rejected),
             cmocka_unit_test(test_limit_bursts__the_limit_stays_so_wide_that_no_call_waits_for_long),
             cmocka_unit_test(test_limit_bursts__the_limit_is_not_cut_below_what_is_in_flight_on_average),
             cmocka_unit_test(test_limit_bursts__the_limit_is_not_cut_below_its_minimum),
             cmocka_unit_test(test_limit_bursts__a_cut_limit_holds_for_a_while_and_then_widens),
             cmocka_unit_test(test_limit_bursts__after_each_further_cut_the_limit_holds_for_four_times_as_long),
             cmocka_unit_test(test_limit_bursts__a_limit_that_could_widen_for_as_long_has_forgotten_its_cuts),
             cmocka_unit_test(test_limit_bursts__a_cut_limit_widens_at_once_where_calls_wait_for_long),
             cmocka_unit_test(test_limit_bursts__a_limit_that_timeouts_have_cut_learns_nothing_of_bursts),
             cmocka_unit_test(test_limit_bursts__below_its_cut_a_limit_widens_as_after_any_cut),
             cmocka_unit_test(test_limit_bursts__the_size_of_a_burst_is_known_from_its_last_success),
             cmocka_unit_test(test_limit_bursts__the_size_of_bursts_before_the_cut_is_remembered),
             cmocka_unit_test(test_limit_bursts__notes_end_after_512_without_a_rejection),
             cmocka_unit_test(test_limit_bursts__a_reload_keeps_a_cut_limit),
             cmocka_unit_test(test_limit_bursts__a_limit_that_a_reload_has_lowered_still_learns),
             cmocka_unit_test(test_limit_bursts__eight_threads_leave_the_limit_in_range))
