/* SPDX-License-Identifier: MIT */
#include <becalm/limit.h>

#include "engine/limit_internal.h"
#include "lib/check.h"

/* How the limit of a single caller tells a slow tail from an overload, and comes back after an outage. */

#define MANY    2000
#define TIMEOUT BECALM_S
#define QUICK   (20 * BECALM_MS)
#define LATE    (600 * BECALM_MS)

struct scene {
    struct becalm_limit limit;
    struct becalm_limit_policy policy;
    struct becalm_moment at;
    struct becalm_slot slot[MANY];
    uint32_t flying;
};

static void scene_init(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    becalm_limit_defaults(&scene->policy, BECALM_LIMIT_AIMD);
    becalm_limit_init(&scene->limit, &scene->policy);
    scene->at.now = 100 * BECALM_S;
}

/* A caller that has made enough calls to know that they do not time out. */
static void scene_init_known(struct scene *scene)
{
    scene_init(scene);
    scene->limit.usual = 64; /* samples, none of them late */
}

static uint32_t limit_of(const struct scene *scene)
{
    return becalm_limit_now(&scene->limit, &scene->policy);
}

/* Sends `count` attempts, or as many as there are slots for. Returns how many. */
static uint32_t burst(struct scene *scene, uint32_t count)
{
    uint32_t sent = 0;
    while (sent < count && scene->flying < MANY &&
           becalm_limit_admit(&scene->limit, &scene->policy, &scene->at, TIMEOUT, &scene->slot[scene->flying])) {
        scene->flying++;
        sent++;
    }
    return sent;
}

/* The first `count` of those in flight end. */
static void finish(struct scene *scene, uint32_t count, enum becalm_evidence evidence)
{
    for (uint32_t i = 0; i < count; i++) {
        becalm_limit_note(&scene->limit, &scene->policy, &scene->at, &scene->slot[i], evidence);
        becalm_limit_give(&scene->limit, &scene->slot[i]);
    }
    memmove(scene->slot, scene->slot + count, (scene->flying - count) * sizeof scene->slot[0]);
    scene->flying -= count;
}

/* Sends as many attempts as fit, all with the same end. Returns their number. */
static uint32_t round_of(struct scene *scene, uint32_t count, becalm_ns latency, enum becalm_evidence evidence)
{
    uint32_t sent = burst(scene, count);
    scene->at.now += latency;
    finish(scene, sent, evidence);
    return sent;
}

/* Pages of `count` calls in a service that answers nothing, until one slot is left. The pace is put aside. */
static void outage(struct scene *scene, uint32_t count)
{
    for (int i = 0; i < 30 && limit_of(scene) > 1; i++) {
        scene->limit.pace = 1000000;
        (void)round_of(scene, count, TIMEOUT, BECALM_EVIDENCE_TIMEOUT);
    }
    check_eq_u64(limit_of(scene), 1);
    scene->limit.units = 20; /* no fraction of a second slot */
    scene->limit.pace = 1000000;
    scene->at.now += BECALM_MS; /* attempts from now on are sent after the last cut */
}

/* The same, but the service was slower and slower first. */
static void overload(struct scene *scene, uint32_t count)
{
    check_eq_u64(round_of(scene, count, LATE, BECALM_EVIDENCE_SUCCESS), count);
    outage(scene, count);
}

static void test_limit_aimd__before_the_first_cut_any_success_is_one_slot_more(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(round_of(&scene, 499, LATE, BECALM_EVIDENCE_SUCCESS), 499);
    check_eq_u64(limit_of(&scene), 1000); /* less than half was used */
    check_eq_u64(burst(&scene, 1500), 1000);
    scene.at.now += LATE;
    finish(&scene, 100, BECALM_EVIDENCE_SUCCESS); /* late or not */
    check_eq_u64(limit_of(&scene), 1100);
    finish(&scene, 900, BECALM_EVIDENCE_ANSWER); /* errors do not count */
    check_eq_u64(limit_of(&scene), 1100);
    scene.policy.max = 1101;
    check_eq_u64(burst(&scene, 1500), 1100);
    finish(&scene, 100, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(limit_of(&scene), 1101);
}

static void test_limit_aimd__the_tail_of_a_burst_does_not_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    for (int page = 0; page < 5; page++) {
        check_eq_u64(burst(&scene, 50), 50);
        scene.at.now += QUICK;
        finish(&scene, 40, BECALM_EVIDENCE_SUCCESS);
        scene.at.now += TIMEOUT - QUICK; /* ten were slow: they time out together, long after the others */
        finish(&scene, 10, BECALM_EVIDENCE_TIMEOUT);
        check_eq_u64(limit_of(&scene), 1000);
    }
}

static void test_limit_aimd__what_was_sent_after_the_last_that_succeeded_does_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(burst(&scene, 40), 40);
    scene.at.now += BECALM_MS;
    check_eq_u64(burst(&scene, 10), 10);
    scene.at.now += QUICK;
    finish(&scene, 40, BECALM_EVIDENCE_SUCCESS);
    scene.at.now += TIMEOUT;
    finish(&scene, 10, BECALM_EVIDENCE_TIMEOUT); /* the sixth of them, of the five still in flight and itself */
    check_eq_u64(limit_of(&scene), 3);
}

/* At one slot each timeout would pace: those that were overtaken do not. */
static void test_limit_aimd__overtaken_timeouts_do_not_pace(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(burst(&scene, 20), 20);
    scene.limit.units = 20;
    scene.limit.well = 20 << 1;
    scene.limit.ok_sent_at = scene.at.now; /* one that was sent with them */
    scene.at.now += TIMEOUT;
    finish(&scene, 20, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene.limit.pace, 1000000);
    check_eq_u64(burst(&scene, 1), 1);
    scene.at.now += TIMEOUT;
    finish(&scene, 1, BECALM_EVIDENCE_TIMEOUT);
    check_true(scene.limit.pace != 1000000);
}

static void test_limit_aimd__quick_answers_bring_it_back_to_what_it_was_in_a_few_rounds(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 30);
    overload(&scene, 30);
    static const uint32_t sent[] = {1, 2, 4, 8, 14, 24};
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), sent[i]);
    }
    check_eq_u64(limit_of(&scene), 27); /* 26 were in flight at the cut: from there on by twentieths */
}

static void test_limit_aimd__late_answers_bring_it_back_by_one_over_the_limit(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 30);
    outage(&scene, 30);
    static const uint32_t sent[] = {1, 2, 2, 3, 4, 5};
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        check_eq_u64(round_of(&scene, 30, LATE, BECALM_EVIDENCE_SUCCESS), sent[i]);
    }
}

/* Answers ended from one moment to the next, and nothing came for a timeout: it was away, and has not too much to do.
 */
static void test_limit_aimd__the_first_quick_answer_after_a_silence_brings_it_back_at_once(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 30);
    outage(&scene, 30);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 1);
    check_eq_u64(limit_of(&scene), 26); /* the number in flight at the cut */
    check_eq_u64(burst(&scene, 30), 26);
}

static void test_limit_aimd__a_late_answer_after_a_silence_does_not_bring_it_back_at_once(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(round_of(&scene, 14, QUICK, BECALM_EVIDENCE_SUCCESS), 14);
    outage(&scene, 14); /* too few for an absence */
    check_eq_u64(round_of(&scene, 30, LATE, BECALM_EVIDENCE_SUCCESS), 1);
    check_eq_u64(limit_of(&scene), 2);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 2); /* the silence is over: round by round */
    check_eq_u64(limit_of(&scene), 4);
}

/* An answer to an attempt from before the last cut says nothing about the present. */
static void test_limit_aimd__an_answer_to_what_was_sent_before_the_cut_does_not_bring_it_back(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 30);
    outage(&scene, 30);
    check_eq_u64(burst(&scene, 1), 1);
    scene.limit.last_cut_at = scene.at.now;
    scene.at.now += QUICK;
    finish(&scene, 1, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(limit_of(&scene), 2);
}

/* Cuts without a success between them are one series, however few are in flight at the later ones. */
static void test_limit_aimd__a_series_of_cuts_keeps_what_was_in_use_before_it(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_known(&scene);
    outage(&scene, 30);
    for (int i = 0; i < 3; i++) {
        scene.limit.pace = 1000000;
        check_eq_u64(round_of(&scene, 1, TIMEOUT, BECALM_EVIDENCE_TIMEOUT), 1);
    }
    check_eq_u64(scene.limit.well, 26 * 20 << 1); /* the number in flight at the fifth timeout */
    scene.limit.pace = 1000000;
    check_eq_u64(round_of(&scene, 1, QUICK, BECALM_EVIDENCE_SUCCESS), 1);
    check_eq_u64(round_of(&scene, 2, QUICK, BECALM_EVIDENCE_SUCCESS), 2);
    check_eq_u64(limit_of(&scene), 4);
    /* A cut after a success begins a new series: the service was healthy with four, and the limit goes back to four. */
    check_eq_u64(burst(&scene, 4), 4);
    scene.at.now += TIMEOUT;
    finish(&scene, 4, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(burst(&scene, 4), 4);
    scene.at.now += TIMEOUT;
    finish(&scene, 4, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene.limit.well, 4 * 20 << 1);
}

/* An answer to an attempt from before the cut does not end the series. */
static void test_limit_aimd__only_what_was_sent_since_the_cut_ends_a_series(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_known(&scene);
    check_eq_u64(burst(&scene, 30), 30);
    scene.at.now += TIMEOUT;
    finish(&scene, 10, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene.limit.well, 26 * 20 << 1);
    finish(&scene, 1, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.well & 1, 0);
    scene.at.now += BECALM_S;
    finish(&scene, 19, BECALM_EVIDENCE_NONE);
    check_eq_u64(burst(&scene, 1), 1);
    scene.at.now += QUICK;
    finish(&scene, 1, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(scene.limit.well & 1, 1);
}

/* The last attempt to time out was sent among all the others: that number counts, and not the few that are left. */
static void test_limit_aimd__what_was_in_use_is_counted_where_the_timed_out_was_sent(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_known(&scene);
    check_eq_u64(burst(&scene, 100), 100);
    scene.at.now += QUICK;
    finish(&scene, 90, BECALM_EVIDENCE_ANSWER); /* errors: neither a success nor a timeout */
    scene.at.now += TIMEOUT;
    finish(&scene, 10, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene.limit.well, 95 * 20 << 1); /* 94 were sent before the fifth that timed out */
    check_eq_u64(limit_of(&scene), 3);
}

/* The service answers quickly, and then no more. Five timeouts in a row cut the limit; the fifth is the first of
 * `count` attempts in flight. */
static void goes_away(struct scene *scene, uint32_t count)
{
    check_eq_u64(round_of(scene, 10, QUICK, BECALM_EVIDENCE_SUCCESS), 10);
    scene->at.now += BECALM_MS;
    check_eq_u64(burst(scene, 4 + count), 4 + count);
    scene->at.now += TIMEOUT;
    finish(scene, 5, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(scene->flying, count - 1);
}

static void test_limit_aimd__what_hangs_in_a_service_that_went_away_holds_no_slot(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    goes_away(&scene, 640);
    check_eq_u64(limit_of(&scene), 639 + 1);
    scene.at.now += BECALM_MS;
    check_eq_u64(burst(&scene, 10), 1); /* one asks whether the service is back */
    finish(&scene, 604, BECALM_EVIDENCE_NONE);
    check_eq_u64(limit_of(&scene), 35 + 1);
    becalm_limit_answer(&scene.limit, &scene.slot[0]); /* its answer begins: it does not hang any more */
    check_eq_u64(limit_of(&scene), 34 + 1);
    finish(&scene, 1, BECALM_EVIDENCE_NONE);
    check_eq_u64(limit_of(&scene), 34 + 1);
    finish(&scene, 34, BECALM_EVIDENCE_NONE);
    check_eq_u64(limit_of(&scene), 1);
    check_eq_u64(scene.flying, 1);
    check_eq_u64(burst(&scene, 10), 0);
    finish(&scene, 1, BECALM_EVIDENCE_NONE); /* this one was sent later, and hung without a slot */
    check_eq_u64(burst(&scene, 10), 1);
}

static void test_limit_aimd__timeouts_of_what_hung_cut_nothing_and_let_more_ask(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    goes_away(&scene, 640);
    becalm_ns cut_at = scene.limit.last_cut_at;
    for (int i = 0; i < 8; i++) {
        scene.at.now += TIMEOUT / 8;
        finish(&scene, 10, BECALM_EVIDENCE_TIMEOUT);
    }
    check_eq_u64(scene.limit.last_cut_at, cut_at);
    check_eq_u64(scene.limit.pace, 1000000);
    check_eq_u64(limit_of(&scene), scene.flying + 40); /* a sixteenth of the 640 after a timeout */
    scene.at.now += TIMEOUT / 2;
    finish(&scene, 100, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(limit_of(&scene), scene.flying + 40); /* and no more than that */
    uint32_t hung = scene.flying;
    check_eq_u64(burst(&scene, 100), 40);
    finish(&scene, hung, BECALM_EVIDENCE_NONE);
    scene.at.now += TIMEOUT;
    finish(&scene, 10, BECALM_EVIDENCE_TIMEOUT); /* these were sent since the cut: that is news, and cuts again */
    check_eq_u64(scene.limit.last_cut_at, scene.at.now);
    check_eq_u64(limit_of(&scene), 40); /* but as many ask on, and each of them holds its slot */
    finish(&scene, 30, BECALM_EVIDENCE_NONE);
}

static void test_limit_aimd__an_answer_to_what_was_sent_since_ends_the_absence(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    goes_away(&scene, 640);
    scene.at.now += BECALM_MS;
    check_eq_u64(burst(&scene, 1), 1);
    struct becalm_slot back = scene.slot[--scene.flying];
    scene.at.now += QUICK;
    becalm_limit_note(&scene.limit, &scene.policy, &scene.at, &back, BECALM_EVIDENCE_SUCCESS);
    becalm_limit_give(&scene.limit, &back);
    check_eq_u64(limit_of(&scene), scene.flying + 640); /* hanging attempts still hang, and the good limit is back */
    scene.at.now += TIMEOUT;
    finish(&scene, scene.flying, BECALM_EVIDENCE_TIMEOUT); /* overtaken by that answer */
    check_eq_u64(limit_of(&scene), 640);
    scene.at.now += BECALM_MS;
    overload(&scene, 320); /* cuts it to one slot: no attempt probes any more whether the service is back */
}

/* The service was away, and the first answer to an attempt since then is late. */
static void returns_late(struct scene *scene)
{
    goes_away(scene, 640);
    uint32_t hung = scene->flying;
    scene->at.now += BECALM_MS;
    check_eq_u64(burst(scene, 10), 1);
    finish(scene, hung, BECALM_EVIDENCE_NONE);
    scene->at.now += LATE;
    finish(scene, 1, BECALM_EVIDENCE_SUCCESS);
}

/* Of a service that went away the first answer may be a late one by chance: the next may still say that all is well. */
/* Where no timeout is written, an attempt that was overdue before the cut may be answered in time after all. */
static void test_limit_aimd__an_answer_in_time_ends_the_absence(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    goes_away(&scene, 640);
    struct becalm_slot late = {.sent_at = scene.limit.last_cut_at - TIMEOUT, .timeout = TIMEOUT};
    scene.limit.cut_off_at = 0; /* those that timed out were overdue, too */
    becalm__limit_late(&scene.limit, &scene.policy, scene.at.now, &late);
    check_eq_u64(limit_of(&scene), 1000 + scene.flying);
    finish(&scene, scene.flying, BECALM_EVIDENCE_NONE);
    scene.at.now += BECALM_MS;
    outage(&scene, 12); /* nothing of the absence before lets more attempts ask in this one */
}

static void test_limit_aimd__a_late_answer_leaves_the_end_of_an_absence_to_the_next(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    returns_late(&scene);
    check_eq_u64(limit_of(&scene), 2);
    check_eq_u64(round_of(&scene, 1, QUICK, BECALM_EVIDENCE_SUCCESS), 1);
    check_eq_u64(limit_of(&scene), 640);
}

/* But not to any later one: a service that is back and slow has too much to do. */
static void test_limit_aimd__two_late_answers_end_an_absence_without_a_return(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    returns_late(&scene);
    check_eq_u64(round_of(&scene, 1, LATE, BECALM_EVIDENCE_SUCCESS), 1);
    check_eq_u64(round_of(&scene, 1, QUICK, BECALM_EVIDENCE_SUCCESS), 1);
    check_true(limit_of(&scene) <= 4);
}

static void test_limit_aimd__who_gets_too_much_to_do_has_not_gone_away(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(round_of(&scene, 10, LATE, BECALM_EVIDENCE_SUCCESS), 10); /* it waited in a queue */
    scene.at.now += BECALM_MS;
    check_eq_u64(burst(&scene, 640), 640);
    scene.at.now += TIMEOUT;
    finish(&scene, 5, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(limit_of(&scene), 320 - 2); /* half of the 636 in flight */
    check_eq_u64(burst(&scene, 1), 0);
    finish(&scene, scene.flying, BECALM_EVIDENCE_NONE);
}

static void test_limit_aimd__a_service_that_never_answered_has_not_gone_away(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_known(&scene);
    check_eq_u64(burst(&scene, 640), 640);
    scene.at.now += TIMEOUT;
    finish(&scene, 5, BECALM_EVIDENCE_TIMEOUT);
    check_eq_u64(limit_of(&scene), 320 - 2);
    finish(&scene, scene.flying, BECALM_EVIDENCE_NONE);
}

static void test_limit_aimd__few_that_hang_are_no_absence(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    goes_away(&scene, 15); /* a sixteenth of them is no slot */
    check_eq_u64(limit_of(&scene), 7);
    finish(&scene, 14, BECALM_EVIDENCE_NONE);
    scene_init(&scene);
    goes_away(&scene, 16);
    check_eq_u64(limit_of(&scene), 15 + 1);
    finish(&scene, 15, BECALM_EVIDENCE_NONE);
}

static void test_limit_aimd__what_waited_for_its_connection_did_not_hang(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    goes_away(&scene, 640);
    scene.at.now += BECALM_MS;
    becalm_limit_sent(&scene.limit, &scene.slot[0], scene.at.now);
    check_eq_u64(limit_of(&scene), 638 + 1);
    finish(&scene, 1, BECALM_EVIDENCE_NONE);
    check_eq_u64(limit_of(&scene), 638 + 1);
    finish(&scene, scene.flying, BECALM_EVIDENCE_NONE);
    check_eq_u64(limit_of(&scene), 1);
}

/* Calls one after the other, each alone, of which every `good`-th succeeds after `took`, for `count` calls. */
static void calls(struct scene *scene, uint32_t count, uint32_t good, becalm_ns took)
{
    for (uint32_t i = 1; i <= count; i++) {
        bool ok = i % good == 0;
        scene->limit.pace = 1000000;
        check_eq_u64(round_of(scene, 1, ok ? took : TIMEOUT, ok ? BECALM_EVIDENCE_SUCCESS : BECALM_EVIDENCE_TIMEOUT),
                     1);
    }
}

/* Hosts refuse connections: what was in flight ends, and the few attempts that hang then cut the limit. */
static void cut_by_few(struct scene *scene)
{
    scene->at.now += BECALM_S;
    check_eq_u64(round_of(scene, 6, TIMEOUT, BECALM_EVIDENCE_TIMEOUT), 6);
    check_true(limit_of(scene) <= 3);
}

static void test_limit_aimd__what_was_in_use_is_counted_at_quick_answers_too(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < 20; i++) {
        check_eq_u64(burst(&scene, 270), 270);
        scene.at.now += TIMEOUT / 4;
        finish(&scene, 269, BECALM_EVIDENCE_NONE);
        finish(&scene, 1, BECALM_EVIDENCE_SUCCESS); /* the one that was sent last */
    }
    cut_by_few(&scene);
    check_eq_u64(scene.limit.well, 270 * 20 << 1);
}

static void test_limit_aimd__only_quick_answers_say_what_was_in_use(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_known(&scene);
    for (int i = 0; i < 20; i++) {
        check_eq_u64(burst(&scene, 270), 270);
        scene.at.now += LATE; /* an overload */
        finish(&scene, 269, BECALM_EVIDENCE_NONE);
        finish(&scene, 1, BECALM_EVIDENCE_SUCCESS);
        scene.limit.usual = 64; /* and not usual */
    }
    cut_by_few(&scene);
    check_eq_u64(scene.limit.well, 5 * 20 << 1); /* in flight when the fifth that timed out was sent */
}

/* A thirty-second part less with each quick sample; timeouts lower it by nothing. */
static void test_limit_aimd__what_was_in_use_is_forgotten_with_quick_answers_only(void **state)
{
    (void)state;
    struct scene scene;
    scene_init_known(&scene);
    scene.limit.undo_one = 320;
    calls(&scene, 1, 1, QUICK);
    check_eq_u64(scene.limit.undo_one, 310);
    scene.at.now += TIMEOUT;
    check_eq_u64(round_of(&scene, 4, TIMEOUT, BECALM_EVIDENCE_TIMEOUT), 4);
    check_eq_u64(scene.limit.undo_one, 310);
    for (int i = 0; i < 400; i++) {
        calls(&scene, 1, 1, QUICK);
        scene.at.now += TIMEOUT;
    }
    check_eq_u64(scene.limit.undo_one, 1);
}

static void test_limit_aimd__where_answers_usually_take_long_a_usual_one_is_quick(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    calls(&scene, 20, 1, LATE);
    check_eq_u64(round_of(&scene, 40, LATE, BECALM_EVIDENCE_SUCCESS), 40);
    outage(&scene, 40);
    (void)round_of(&scene, 1, LATE + 200 * BECALM_MS, BECALM_EVIDENCE_SUCCESS); /* more than 5/4 of it */
    check_eq_u64(limit_of(&scene), 2);
    (void)round_of(&scene, 2, LATE + 100 * BECALM_MS, BECALM_EVIDENCE_SUCCESS);
    check_eq_u64(limit_of(&scene), 4); /* one each */
}

/* A thousand answers of an overload count as much as one, and none while the limit is below the last good one. */
static void test_limit_aimd__what_is_usual_is_learned_by_time_and_in_health(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < 70; i++) {
        calls(&scene, 1, 1, QUICK);
        scene.at.now += TIMEOUT;
    }
    uint64_t before = scene.limit.usual;
    check_eq_u64(round_of(&scene, 1000, LATE, BECALM_EVIDENCE_SUCCESS), 1000);
    uint64_t after = scene.limit.usual;
    check_between_u64(after >> 28, before >> 28, (before >> 28) + LATE / BECALM_US / 50);
    outage(&scene, 40);
    after = scene.limit.usual;
    calls(&scene, 10, 1, LATE);
    check_eq_u64(scene.limit.usual, after);
}

static void test_limit_aimd__where_half_of_all_attempts_time_out_ten_in_a_row_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    calls(&scene, 80, 2, LATE);
    check_true(limit_of(&scene) >= 1000);
    check_eq_u64(burst(&scene, 20), 20);
    scene.at.now += TIMEOUT;
    finish(&scene, 9, BECALM_EVIDENCE_TIMEOUT);
    check_true(limit_of(&scene) >= 1000); /* nine: that happens by chance */
    finish(&scene, 4, BECALM_EVIDENCE_TIMEOUT);
    check_true(limit_of(&scene) < 20);
}

/* How many timeouts in a row cut the limit of a caller that has made `count` calls, of which every `good`-th succeeded.
 */
static uint32_t run_that_cuts(uint32_t count, uint32_t good, enum becalm_evidence kind)
{
    struct scene scene;
    scene_init(&scene);
    calls(&scene, count, good, LATE);
    scene.limit.evidence = 0; /* no run yet */
    check_eq_u64(burst(&scene, 40), 40);
    scene.at.now += TIMEOUT;
    uint32_t run = 0;
    while (limit_of(&scene) >= 1000) {
        check_true(run < 40);
        finish(&scene, 1, kind);
        run++;
    }
    return run;
}

static void test_limit_aimd__of_few_attempts_a_share_is_half_known(void **state)
{
    (void)state;
    check_eq_u64(run_that_cuts(0, 1, BECALM_EVIDENCE_TIMEOUT), 6);  /* of one: a third, with two that are assumed */
    check_eq_u64(run_that_cuts(4, 1, BECALM_EVIDENCE_TIMEOUT), 5);  /* one of five */
    check_eq_u64(run_that_cuts(4, 4, BECALM_EVIDENCE_TIMEOUT), 12); /* four of five: 4 / 7 */
    check_eq_u64(run_that_cuts(8, 2, BECALM_EVIDENCE_TIMEOUT), 8);  /* five of nine: 5 / 11 */
    check_eq_u64(run_that_cuts(16, 2, BECALM_EVIDENCE_TIMEOUT), 10);
}

static void test_limit_aimd__where_no_timeout_is_written_a_share_of_few_says_nothing(void **state)
{
    (void)state;
    check_eq_u64(run_that_cuts(0, 1, BECALM_EVIDENCE_OVERDUE), 5);
    check_eq_u64(run_that_cuts(4, 4, BECALM_EVIDENCE_OVERDUE), 5);
    check_eq_u64(run_that_cuts(16, 2, BECALM_EVIDENCE_OVERDUE), 10);
}

static void test_limit_aimd__a_reload_keeps_what_it_goes_back_to(void **state)
{
    (void)state;
    struct scene old;
    scene_init(&old);
    check_eq_u64(round_of(&old, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 30);
    overload(&old, 30);
    struct scene scene;
    scene_init(&scene);
    becalm_limit_carry(&scene.limit, &scene.policy, &old.limit, &old.policy);
    scene.at.now = old.at.now;
    check_eq_u64(scene.limit.ok_sent_at, old.limit.ok_sent_at);
    check_eq_u64(scene.limit.well, old.limit.well);
    check_eq_u64(scene.limit.quick_at, old.limit.quick_at);
    check_eq_u64(scene.limit.usual, old.limit.usual);
    check_true(old.limit.undo_one > 0);
    check_eq_u64(scene.limit.undo_one, old.limit.undo_one);
    check_eq_u64(scene.limit.seen_at, old.limit.seen_at);
    scene.limit.pace = 1000000;
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 1);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 2);
    check_eq_u64(round_of(&scene, 30, QUICK, BECALM_EVIDENCE_SUCCESS), 4);
}

BECALM_TESTS(cmocka_unit_test(test_limit_aimd__before_the_first_cut_any_success_is_one_slot_more),
             cmocka_unit_test(test_limit_aimd__the_tail_of_a_burst_does_not_cut),
             cmocka_unit_test(test_limit_aimd__what_was_sent_after_the_last_that_succeeded_does_cut),
             cmocka_unit_test(test_limit_aimd__overtaken_timeouts_do_not_pace),
             cmocka_unit_test(test_limit_aimd__quick_answers_bring_it_back_to_what_it_was_in_a_few_rounds),
             cmocka_unit_test(test_limit_aimd__late_answers_bring_it_back_by_one_over_the_limit),
             cmocka_unit_test(test_limit_aimd__the_first_quick_answer_after_a_silence_brings_it_back_at_once),
             cmocka_unit_test(test_limit_aimd__a_late_answer_after_a_silence_does_not_bring_it_back_at_once),
             cmocka_unit_test(test_limit_aimd__an_answer_to_what_was_sent_before_the_cut_does_not_bring_it_back),
             cmocka_unit_test(test_limit_aimd__a_series_of_cuts_keeps_what_was_in_use_before_it),
             cmocka_unit_test(test_limit_aimd__only_what_was_sent_since_the_cut_ends_a_series),
             cmocka_unit_test(test_limit_aimd__what_was_in_use_is_counted_where_the_timed_out_was_sent),
             cmocka_unit_test(test_limit_aimd__what_was_in_use_is_counted_at_quick_answers_too),
             cmocka_unit_test(test_limit_aimd__only_quick_answers_say_what_was_in_use),
             cmocka_unit_test(test_limit_aimd__what_was_in_use_is_forgotten_with_quick_answers_only),
             cmocka_unit_test(test_limit_aimd__what_hangs_in_a_service_that_went_away_holds_no_slot),
             cmocka_unit_test(test_limit_aimd__timeouts_of_what_hung_cut_nothing_and_let_more_ask),
             cmocka_unit_test(test_limit_aimd__an_answer_to_what_was_sent_since_ends_the_absence),
             cmocka_unit_test(test_limit_aimd__an_answer_in_time_ends_the_absence),
             cmocka_unit_test(test_limit_aimd__a_late_answer_leaves_the_end_of_an_absence_to_the_next),
             cmocka_unit_test(test_limit_aimd__two_late_answers_end_an_absence_without_a_return),
             cmocka_unit_test(test_limit_aimd__who_gets_too_much_to_do_has_not_gone_away),
             cmocka_unit_test(test_limit_aimd__a_service_that_never_answered_has_not_gone_away),
             cmocka_unit_test(test_limit_aimd__few_that_hang_are_no_absence),
             cmocka_unit_test(test_limit_aimd__what_waited_for_its_connection_did_not_hang),
             cmocka_unit_test(test_limit_aimd__where_answers_usually_take_long_a_usual_one_is_quick),
             cmocka_unit_test(test_limit_aimd__what_is_usual_is_learned_by_time_and_in_health),
             cmocka_unit_test(test_limit_aimd__where_half_of_all_attempts_time_out_ten_in_a_row_cut),
             cmocka_unit_test(test_limit_aimd__of_few_attempts_a_share_is_half_known),
             cmocka_unit_test(test_limit_aimd__where_no_timeout_is_written_a_share_of_few_says_nothing),
             cmocka_unit_test(test_limit_aimd__a_reload_keeps_what_it_goes_back_to))
