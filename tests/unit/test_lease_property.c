/* SPDX-License-Identifier: MIT */
#include <becalm/lease.h>
#include <becalm/rand.h>

#include "lib/check.h"

/* Random fleets on a bad network: messages are lost, doubled, late or overtaken, instances die and come back, and the
 * store is away, hung or full of nonsense: the retries of all instances stay within the share of all first attempts. */

#if defined(BECALM_FEW_RUNS)
#define RUNS 45u
#else
#define RUNS 150u
#endif
#define STEP      (10 * BECALM_MS)
#define FLEET_MAX 12u
#define MAIL_MAX  4096u
#define STORE     1024u

/* A message on its way. */
struct mail {
    becalm_ns at;
    uint32_t instance;
    bool is_answer;
    struct becalm_lease_request request;
    struct becalm_lease_answer answer;
};

struct world {
    uint64_t random;
    becalm_ns now;
    struct becalm_lease_policy policy;
    struct becalm_lease_store *store;
    uint32_t fleet;
    struct becalm_lease *lease[FLEET_MAX];
    becalm_ns cut_until[FLEET_MAX]; /* an instance that can't reach the store */
    uint32_t held[FLEET_MAX];       /* retries that were paid for and wait */
    uint64_t called[FLEET_MAX];     /* first attempts */
    struct mail mail[MAIL_MAX];
    uint32_t mails;
    bool away;
    uint32_t rollback_ppm, clone_ppm; /* in each step */
    void *older;                      /* a copy of the store */
    uint64_t older_extra;             /* millionths of a retry that are there twice because of copies */
    uint64_t rollbacks, clones;
    uint32_t loss_ppm, double_ppm, nonsense_ppm, fail_ppm;
    becalm_ns delay_max;
    uint64_t first, sent;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    return becalm_rand_below(becalm_rand_next(&w->random), below);
}

static bool chance(struct world *w, uint32_t ppm)
{
    return becalm_rand_chance(becalm_rand_next(&w->random), ppm);
}

static void *memory_of(size_t bytes)
{
    void *memory = aligned_alloc(64, bytes);
    check_true(memory != NULL);
    return memory;
}

static void mail_post(struct world *w, const struct mail *mail)
{
    uint32_t copies = chance(w, w->loss_ppm) ? 0 : chance(w, w->double_ppm) ? 2 : 1;
    for (uint32_t i = 0; i < copies && w->mails < MAIL_MAX; i++) {
        w->mail[w->mails] = *mail;
        w->mail[w->mails++].at = w->now + draw(w, w->delay_max);
    }
}

static void nonsense(struct world *w, struct mail *mail)
{
    uint64_t *word = mail->is_answer ? &mail->answer.number : &mail->request.instance;
    size_t words = mail->is_answer ? 6 : 8;
    word[draw(w, words)] = becalm_rand_next(&w->random) | UINT64_C(1) << 60;
}

static void mail_deliver(struct world *w, struct mail mail)
{
    if (chance(w, w->nonsense_ppm) && mail.is_answer) {
        nonsense(w, &mail);
    }
    if (mail.is_answer) {
        (void)becalm_lease_answer(w->lease[mail.instance], w->now, &mail.answer);
        return;
    }
    struct mail answer = {.instance = mail.instance, .is_answer = true};
    if (!w->away && becalm_lease_store_exchange(w->store, &w->policy, w->now, &mail.request, &answer.answer)) {
        mail_post(w, &answer);
    }
}

static void mails_deliver(struct world *w)
{
    for (uint32_t i = 0; i < w->mails;) {
        if (w->mail[i].at > w->now) {
            i++;
            continue;
        }
        struct mail mail = w->mail[i];
        w->mail[i] = w->mail[--w->mails]; /* in any order: messages overtake each other */
        mail_deliver(w, mail);
    }
}

/* An instance calls, fails, retries or thinks better of it. */
static void instance_calls(struct world *w, uint32_t i)
{
    struct becalm_moment at = {.now = w->now, .random = becalm_rand_next(&w->random)};
    uint64_t calls = draw(w, 20) * (i % 3); /* some are quiet */
    for (uint64_t n = 0; n < calls; n++) {
        becalm_lease_begin(w->lease[i], &at);
        w->called[i]++;
        w->first++;
        if (chance(w, w->fail_ppm) && becalm_lease_take(w->lease[i], &at)) {
            w->held[i]++;
        }
    }
    while (w->held[i] > 0 && chance(w, 700000)) {
        w->held[i]--;
        if (chance(w, 100000)) {
            becalm_lease_give(w->lease[i]);
        } else {
            w->sent++;
        }
    }
}

static void instance_asks(struct world *w, uint32_t i)
{
    struct becalm_moment at = {.now = w->now, .random = becalm_rand_next(&w->random)};
    struct mail mail = {.instance = i};
    if (w->now < becalm_lease_ask_at(w->lease[i])) {
        return;
    }
    bool sends = becalm_lease_ask(w->lease[i], &w->policy, &at, &mail.request);
    if (chance(w, 5000)) {
        w->cut_until[i] = w->now + draw(w, 8 * BECALM_S);
    }
    if (sends && w->now >= w->cut_until[i]) {
        mail_post(w, &mail);
    }
}

/* It is killed, and another begins in its place; of two of them one says goodbye. */
static void instance_ends(struct world *w, uint32_t i)
{
    struct becalm_moment at = {.now = w->now, .random = becalm_rand_next(&w->random)};
    struct mail mail = {.instance = i};
    w->sent += w->held[i];
    w->held[i] = 0;
    if (chance(w, 500000)) {
        becalm_lease_leave(w->lease[i], &at, &mail.request);
        mail_post(w, &mail);
    }
    becalm_lease_init(w->lease[i], 1);
    w->called[i] = 0;
}

static struct becalm_lease_record *record_of(void *store, uint64_t instance)
{
    struct becalm_lease_record *record = (void *)((char *)store + (sizeof(struct becalm_lease_store) + 63) / 64 * 64);
    for (uint32_t i = 0; i < STORE; i++) {
        if (record[i].instance == instance) {
            return &record[i];
        }
    }
    return NULL;
}

/* The store returns to an earlier state. The pot of that state may have been granted since; and first attempts that an
 * instance has reported since then without an answer are earned once more. */
static void store_rolls_back(struct world *w)
{
    struct becalm_lease_store *older = w->older;
    w->older_extra += older->pot.stock;
    for (uint32_t i = 0; i < w->fleet; i++) {
        const struct becalm_lease_request *last = &w->lease[i]->last;
        const struct becalm_lease_record *now = record_of(w->store, last->instance);
        const struct becalm_lease_record *then = record_of(w->older, last->instance);
        if (last->instance != 0 && now != NULL && then != NULL && last->answered <= then->number) {
            w->older_extra += (now->first - then->first) * w->policy.share_ppm;
        }
    }
    memcpy(w->store, w->older, becalm_lease_store_bytes(STORE));
    w->rollbacks++;
}

/* An instance is copied over another one, which ends. The copy has no connection, and so has another name; it spends
 * the retries of the first instance again, and earns again from first attempts that the first one has not reported
 * yet. */
static void instance_copies(struct world *w, uint32_t i)
{
    struct becalm_moment at = {.now = w->now, .random = becalm_rand_next(&w->random)};
    struct mail mail = {.instance = i};
    uint32_t from = (uint32_t)draw(w, w->fleet);
    if (from == i) {
        return;
    }
    w->sent += w->held[i];
    w->held[i] = 0;
    for (uint32_t m = 0; m < w->mails;) { /* answers to the earlier instance */
        if (w->mail[m].instance == i && w->mail[m].is_answer) {
            w->mail[m] = w->mail[--w->mails];
        } else {
            m++;
        }
    }
    memcpy(w->lease[i], w->lease[from], becalm_lease_bytes(1));
    const struct becalm_lease *copy = w->lease[i];
    uint64_t left = becalm_lease_left(copy);
    uint64_t counted = w->called[from] - copy->seen_first;
    uint64_t untold = becalm_lease_degraded(copy) ? 0 : copy->last.first - copy->told_first;
    w->older_extra += left * 1000000 + (counted + untold) * w->policy.share_ppm + copy->own.stock;
    w->called[i] = w->called[from];
    if (becalm_lease_lost(w->lease[i], &w->policy, &at, &mail.request)) {
        mail_post(w, &mail);
    }
    w->clones++;
}

static void world_open(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->random = seed;
    w->now = 1000 * BECALM_S;
    becalm_lease_defaults(&w->policy);
    w->policy.enabled = true;
    w->policy.share_ppm = (uint32_t)draw(w, 1000001);
    w->policy.floor = 0;
    w->fleet = 1 + (uint32_t)draw(w, FLEET_MAX);
    w->store = becalm_lease_store_init(memory_of(becalm_lease_store_bytes(STORE)), STORE);
    w->older = memory_of(becalm_lease_store_bytes(STORE));
    memcpy(w->older, w->store, becalm_lease_store_bytes(STORE));
    for (uint32_t i = 0; i < w->fleet; i++) {
        w->lease[i] = becalm_lease_init(memory_of(becalm_lease_bytes(1)), 1);
    }
    w->loss_ppm = (uint32_t)draw(w, 2) * (uint32_t)draw(w, 600000);
    w->double_ppm = (uint32_t)draw(w, 2) * (uint32_t)draw(w, 600000);
    w->nonsense_ppm = (uint32_t)draw(w, 2) * (uint32_t)draw(w, 600000);
    w->fail_ppm = (uint32_t)draw(w, 1000001);
    w->delay_max = 1 + draw(w, 2) * draw(w, 5 * BECALM_S);
}

static void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->fleet; i++) {
        free(w->lease[i]);
    }
    free(w->store);
    free(w->older);
}

/* `floor` millionths of a retry were there beside the share. */
static void bound_check(const struct world *w, uint64_t seed, uint64_t floor)
{
    if (w->sent * 1000000 > w->first * w->policy.share_ppm + floor + w->older_extra) {
        print_error("seed %" PRIu64 ": %" PRIu64 " retries of %" PRIu64 " first attempts at %u ppm\n", seed, w->sent,
                    w->first, w->policy.share_ppm);
        fail();
    }
}

/* Now and then the store is copied, and now and then it returns to the last copy. */
static void store_is_copied(struct world *w)
{
    if (w->rollback_ppm > 0 && chance(w, 2 * w->rollback_ppm)) {
        memcpy(w->older, w->store, becalm_lease_store_bytes(STORE));
    }
    if (w->rollback_ppm > 0 && chance(w, w->rollback_ppm)) {
        store_rolls_back(w);
    }
}

static void world_pass(struct world *w, uint64_t seed, uint64_t floor_each)
{
    uint64_t floor = floor_each;
    for (uint32_t step = 0; step < 2000; step++) {
        w->now += STEP;
        w->away = chance(w, 2000) ? !w->away : w->away;
        mails_deliver(w);
        store_is_copied(w);
        for (uint32_t i = 0; i < w->fleet; i++) {
            instance_calls(w, i);
            instance_asks(w, i);
            if (w->clone_ppm > 0 && chance(w, w->clone_ppm)) {
                instance_copies(w, i);
            }
            if (chance(w, 500)) {
                instance_ends(w, i);
                floor += floor_each;
            }
        }
        uint64_t steps = step + 1;
        bound_check(w, seed, floor + steps * STEP / BECALM_US * w->policy.floor / 1000000 * (1 + w->fleet));
    }
}

static void test_lease__the_retries_of_all_stay_within_the_share_whatever_happens(void **state)
{
    (void)state;
    struct world *w = memory_of((sizeof *w + 63) / 64 * 64);
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        world_open(w, seed);
        world_pass(w, seed, 0);
        world_close(w);
    }
    free(w);
}

static void test_lease__the_floor_adds_no_more_than_it_says(void **state)
{
    (void)state;
    struct world *w = memory_of((sizeof *w + 63) / 64 * 64);
    for (uint64_t seed = 1; seed <= RUNS / 3; seed++) {
        world_open(w, seed);
        w->policy.floor = (uint32_t)draw(w, 5000000);
        world_pass(w, seed, 1000000); /* a store without requests begins with one retry, and no instance does */
        world_close(w);
    }
    free(w);
}

static void test_lease__a_store_that_is_an_older_copy_gives_no_more_than_one_pot(void **state)
{
    (void)state;
    struct world *w = memory_of((sizeof *w + 63) / 64 * 64);
    uint64_t rollbacks = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        world_open(w, seed);
        w->rollback_ppm = 1000;
        world_pass(w, seed, 0);
        rollbacks += w->rollbacks;
        world_close(w);
    }
    check_true(rollbacks > RUNS * 4 / 3);
    free(w);
}

static void test_lease__a_copied_instance_spends_no_more_than_its_lease_twice(void **state)
{
    (void)state;
    struct world *w = memory_of((sizeof *w + 63) / 64 * 64);
    uint64_t clones = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        world_open(w, seed);
        w->clone_ppm = 500;
        world_pass(w, seed, 0);
        clones += w->clones;
        world_close(w);
    }
    check_true(clones > RUNS * 10 / 3);
    free(w);
}

/* Ten instances on a good network, some of which fail: at least 95 % of the available retries are used. */
static void test_lease__what_is_there_is_used(void **state)
{
    (void)state;
    struct world *w = memory_of((sizeof *w + 63) / 64 * 64);
    static const uint32_t shares[] = {50000, 200000, 500000};
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        world_open(w, 1 + s);
        w->policy.share_ppm = shares[s];
        w->loss_ppm = w->double_ppm = w->nonsense_ppm = 0;
        w->fail_ppm = 900000;
        w->delay_max = 5 * BECALM_MS;
        for (uint32_t step = 0; step < 6000; step++) {
            w->now += STEP;
            mails_deliver(w);
            for (uint32_t i = 0; i < w->fleet; i++) {
                instance_calls(w, i);
                if (w->now >= becalm_lease_ask_at(w->lease[i])) {
                    struct becalm_moment at = {.now = w->now, .random = becalm_rand_next(&w->random)};
                    struct mail mail = {.instance = i};
                    if (becalm_lease_ask(w->lease[i], &w->policy, &at, &mail.request)) {
                        mail_post(w, &mail);
                    }
                }
            }
        }
        for (uint32_t i = 0; i < w->fleet; i++) {
            w->sent += w->held[i];
        }
        check_between_u64(w->sent * 1000000 / w->first, shares[s] / 100 * 95, shares[s]);
        world_close(w);
    }
    free(w);
}

BECALM_TESTS(cmocka_unit_test(test_lease__the_retries_of_all_stay_within_the_share_whatever_happens),
             cmocka_unit_test(test_lease__the_floor_adds_no_more_than_it_says),
             cmocka_unit_test(test_lease__a_store_that_is_an_older_copy_gives_no_more_than_one_pot),
             cmocka_unit_test(test_lease__a_copied_instance_spends_no_more_than_its_lease_twice),
             cmocka_unit_test(test_lease__what_is_there_is_used))
