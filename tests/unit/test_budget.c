/* SPDX-License-Identifier: MIT */
#include <becalm/budget.h>

#include "lib/check.h"

#define PERCENT 10000u /* in ppm */
#define CELLS   2u

/* A budget with its rules and a hand-held clock. */
struct fixture {
    struct becalm_budget_policy policy;
    struct becalm_budget *b;
    struct becalm_moment at;
};

static void open_with(struct fixture *f, const struct becalm_budget_policy *policy)
{
    memset(f, 0, sizeof *f);
    f->policy = *policy;
    void *memory = aligned_alloc(64, becalm_budget_bytes(policy, CELLS));
    assert_non_null(memory);
    f->b = becalm_budget_init(memory, policy, CELLS);
}

static struct becalm_budget_policy defaults(enum becalm_budget_kind kind)
{
    struct becalm_budget_policy policy;
    becalm_budget_defaults(&policy, kind);
    return policy;
}

static void open_kind(struct fixture *f, enum becalm_budget_kind kind)
{
    struct becalm_budget_policy policy = defaults(kind);
    open_with(f, &policy);
}

static void close_budget(struct fixture *f)
{
    free(f->b);
}

static void begin(struct fixture *f, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        f->at.cell = i; /* any value is right */
        becalm_budget_begin(f->b, &f->policy, &f->at);
    }
}

static void note(struct fixture *f, enum becalm_outcome_kind kind, unsigned times)
{
    struct becalm_outcome outcome = {.kind = kind};
    for (unsigned i = 0; i < times; i++) {
        becalm_budget_note(f->b, &f->policy, &f->at, &outcome, false);
    }
}

static bool take_into(struct fixture *f, enum becalm_outcome_kind cause, struct becalm_spend *spend)
{
    return becalm_budget_take(f->b, &f->policy, &f->at, cause, spend);
}

static bool take(struct fixture *f)
{
    struct becalm_spend spend = {0};
    return take_into(f, BECALM_OUTCOME_FAILED, &spend);
}

/* How many retries there are until one is refused. */
static unsigned drain(struct fixture *f)
{
    unsigned taken = 0;
    while (taken < 1000000 && take(f)) {
        taken++;
    }
    return taken;
}

static void give(struct fixture *f, struct becalm_spend *spend, enum becalm_spend_end end)
{
    becalm_budget_give(f->b, &f->policy, &f->at, spend, end);
}

static uint64_t left(const struct fixture *f)
{
    return becalm_budget_left(f->b, &f->policy, f->at.now);
}

static uint32_t ratio(const struct fixture *f)
{
    return becalm_budget_retry_ratio(f->b, f->at.now);
}

/* ----------------------------------------------------------------------------------------------------------- earned */

static void test_budget__earned_starts_with_one_retry_and_no_more(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_EARNED);
    check_eq_u64(left(&f), BECALM_TOKEN);
    check_eq_u64(drain(&f), 1);
    check_eq_u64(left(&f), 0);
    close_budget(&f);
}

static void test_budget__earned_holds_at_most_its_cap(void **state)
{
    (void)state;
    static const struct {
        unsigned first;
        uint64_t tokens;
    } rows[] = {{0, 1},    {1, 1},    {10, 1},   {19, 1},   {20, 2},   {50, 5},    {99, 9},
                {100, 10}, {101, 10}, {500, 10}, {549, 10}, {550, 11}, {1000, 20}, {50000, 1000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
        policy.start = 1000 * BECALM_TOKEN;
        policy.share_ppm = 100 * PERCENT;
        struct fixture f;
        open_with(&f, &policy);
        begin(&f, rows[i].first);
        /* The cap limits the start tokens, on spending, and the tokens of successes. */
        check_eq_u64(left(&f) / BECALM_TOKEN, rows[i].tokens);
        check_eq_u64(drain(&f), rows[i].tokens);
        note(&f, BECALM_OUTCOME_OK, (unsigned)rows[i].tokens + 5);
        check_eq_u64(drain(&f), rows[i].tokens);
        close_budget(&f);
    }
}

static void test_budget__earned_cap_has_fractions_of_a_token(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    policy.start = 1000 * BECALM_TOKEN;
    struct fixture f;
    open_with(&f, &policy);
    begin(&f, 37);
    check_eq_u64(left(&f), 3700000);
    begin(&f, 1037 - 37);
    check_eq_u64(left(&f), 20740000);
    close_budget(&f);
}

static void test_budget__earned_cap_counts_first_attempts_of_the_last_ten_seconds(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    policy.start = 10 * BECALM_TOKEN;
    struct fixture f;
    open_with(&f, &policy);
    begin(&f, 100);
    f.at.now = 9 * BECALM_S;
    check_eq_u64(left(&f), 10 * BECALM_TOKEN);
    f.at.now = 10 * BECALM_S;
    check_eq_u64(left(&f), BECALM_TOKEN);
    check_eq_u64(drain(&f), 1);
    close_budget(&f);
}

static void test_budget__earned_cap_is_at_most_one_tick_old(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    policy.share_ppm = 100 * PERCENT;
    struct fixture f;
    open_with(&f, &policy);
    note(&f, BECALM_OUTCOME_OK, 1); /* computes the cap: there was no call yet */
    begin(&f, 50);
    note(&f, BECALM_OUTCOME_OK, 10);
    check_eq_u64(left(&f), BECALM_TOKEN);
    f.at.now = 68 * BECALM_MS;
    note(&f, BECALM_OUTCOME_OK, 10);
    check_eq_u64(left(&f), 5 * BECALM_TOKEN);
    f.at.now = 0; /* a clock that is behind gets the newer cap and leaves it alone */
    begin(&f, 50);
    note(&f, BECALM_OUTCOME_OK, 10);
    check_eq_u64(left(&f), 5 * BECALM_TOKEN);
    close_budget(&f);
}

static void test_budget__earned_is_paid_by_answers_that_are_no_failure(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        bool earns = kind == BECALM_OUTCOME_OK || kind == BECALM_OUTCOME_PERMANENT;
        struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
        policy.start = 0;
        struct fixture f;
        open_with(&f, &policy);
        note(&f, (enum becalm_outcome_kind)kind, 1);
        check_eq_u64(left(&f), earns ? 500000 : 0);
        close_budget(&f);
    }
}

/* Retries that end as `end`, however many tokens are left. */
/* After timeouts, unless `plain`. */
static void retries_end_after(struct fixture *f, enum becalm_spend_end end, unsigned times, bool plain)
{
    for (unsigned i = 0; i < times; i++) {
        struct becalm_spend spend = {.held = true, .hard = !plain};
        give(f, &spend, end);
    }
}

static void retries_end(struct fixture *f, enum becalm_spend_end end, unsigned times)
{
    retries_end_after(f, end, times, false);
}

static void test_budget__earned_two_successes_buy_one_retry_while_none_was_lost(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_EARNED);
    check_true(take(&f));
    note(&f, BECALM_OUTCOME_OK, 1);
    check_true(!take(&f));
    note(&f, BECALM_OUTCOME_OK, 1);
    check_true(take(&f));
    check_true(!take(&f));
    close_budget(&f);
}

/* The tokens of one success, in millionths, after `lost` lost retries and then `won` won ones. */
static uint64_t brings_after(uint32_t share_ppm, unsigned lost, unsigned won, bool plain)
{
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    policy.start = 0;
    policy.share_ppm = share_ppm;
    struct fixture f;
    open_with(&f, &policy);
    begin(&f, 10);
    retries_end_after(&f, BECALM_SPEND_LOST, lost, plain);
    retries_end_after(&f, BECALM_SPEND_UNUSED, 9, !plain); /* these say nothing */
    retries_end_after(&f, BECALM_SPEND_WON, won, plain);
    note(&f, BECALM_OUTCOME_OK, 1);
    uint64_t brought = left(&f);
    close_budget(&f);
    return brought;
}

static uint64_t brings(uint32_t share_ppm, unsigned lost, unsigned won)
{
    return brings_after(share_ppm, lost, won, false);
}

static void test_budget__earned_brings_more_while_retries_win_and_less_while_they_are_lost(void **state)
{
    (void)state;
    static const struct {
        unsigned lost;
        unsigned won;
        uint64_t brings;
    } rows[] = {
        {0, 0, 500000},  /* unknown: as if they won */
        {0, 9, 500000},  /* */
        {1, 0, 460000},  /* .25 */
        {1, 1, 500000},  /* .19 */
        {2, 0, 310000},  /* .44 */
        {2, 1, 397500},  /* .33 */
        {4, 0, 113124},  /* .68 */
        {5, 0, 100000},  /* .76 */
        {8, 0, 100000},  /* .90, not quite */
        {9, 0, 50000},   /* .92 */
        {50, 0, 50000},  /* 1 */
        {50, 1, 100000}, /* .75 */
        {50, 2, 210000}, /* .56 */
        {50, 5, 470155}, /* .24 */
        {50, 6, 500000}, /* .18 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_eq_u64(brings(10 * PERCENT, rows[i].lost, rows[i].won), rows[i].brings);
    }
}

/* Neither timeouts nor rejections: half of them may be lost. */
static void test_budget__earned_brings_more_while_half_of_the_retries_win_and_nothing_looks_like_overload(void **state)
{
    (void)state;
    check_eq_u64(brings_after(10 * PERCENT, 0, 0, true), 500000);
    check_eq_u64(brings_after(10 * PERCENT, 2, 0, true), 500000); /* .44 */
    check_eq_u64(brings_after(10 * PERCENT, 3, 0, true), 421875); /* .58 */
    check_eq_u64(brings_after(10 * PERCENT, 5, 0, true), 237304); /* .76 */
    check_eq_u64(brings_after(10 * PERCENT, 9, 0, true), 50000);  /* .92 */
    check_eq_u64(brings_after(10 * PERCENT, 50, 0, true), 50000);
    check_eq_u64(brings_after(10 * PERCENT, 50, 2, true), 437500); /* .56 */
}

/* Two retries were lost, .44: the effect depends on the failures that they answered. */
static void test_budget__earned_takes_timeouts_and_rejections_for_overload(void **state)
{
    (void)state;
    static const enum becalm_outcome_kind kinds[] = {
        BECALM_OUTCOME_TIMED_OUT, BECALM_OUTCOME_LATE,   BECALM_OUTCOME_REJECTED, BECALM_OUTCOME_RATE_LIMITED,
        BECALM_OUTCOME_BROKEN,    BECALM_OUTCOME_FAILED, BECALM_OUTCOME_CONFLICT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct fixture f;
        open_kind(&f, BECALM_BUDGET_EARNED);
        begin(&f, 100);
        note(&f, BECALM_OUTCOME_OK, 100);
        for (unsigned n = 0; n < 2; n++) {
            struct becalm_spend spend = {0};
            check_true(take_into(&f, kinds[i], &spend));
            give(&f, &spend, BECALM_SPEND_LOST);
        }
        uint64_t before = left(&f);
        note(&f, BECALM_OUTCOME_OK, 1);
        check_eq_u64(left(&f) - before, i < 4 ? 310000 : 500000);
        close_budget(&f);
    }
}

static void test_budget__earned_a_quiet_caller_banks_a_second_retry_once_one_has_won(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_EARNED);
    note(&f, BECALM_OUTCOME_OK, 100);
    check_eq_u64(left(&f), BECALM_TOKEN); /* nothing is known of retries */
    retries_end(&f, BECALM_SPEND_WON, 1);
    f.at.now += 10 * BECALM_MS;
    note(&f, BECALM_OUTCOME_OK, 100);
    check_eq_u64(left(&f), 2 * BECALM_TOKEN);
    retries_end(&f, BECALM_SPEND_LOST, 1);
    f.at.now += 10 * BECALM_MS;
    check_eq_u64(left(&f), BECALM_TOKEN); /* one is lost: it may bank no more than one again */
    retries_end(&f, BECALM_SPEND_WON, 1);
    f.at.now += 10 * BECALM_MS;
    note(&f, BECALM_OUTCOME_OK, 100);
    check_eq_u64(drain(&f), 2); /* in an outage that is all */
    close_budget(&f);
}

/* A page begins fifty calls at once: 5 ms later their tokens are in the budget. */
static void test_budget__earned_sees_a_burst_of_a_quiet_caller_at_once(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_EARNED);
    begin(&f, 1);
    note(&f, BECALM_OUTCOME_OK, 1);
    begin(&f, 49);
    f.at.now += 5 * BECALM_MS;
    note(&f, BECALM_OUTCOME_OK, 20);
    check_eq_u64(left(&f), 5 * BECALM_TOKEN);
    close_budget(&f);
}

static void test_budget__earned_brings_one_token_at_most(void **state)
{
    (void)state;
    check_eq_u64(brings(100 * PERCENT, 0, 0), BECALM_TOKEN);
    check_eq_u64(brings(30 * PERCENT, 0, 0), BECALM_TOKEN);
    check_eq_u64(brings(0, 0, 0), 0);
    check_eq_u64(brings(0, 50, 0), 0);
}

static void test_budget__earned_spends_no_more_in_an_outage_however_well_retries_went_before(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_EARNED);
    begin(&f, 100);
    note(&f, BECALM_OUTCOME_OK, 100);
    retries_end(&f, BECALM_SPEND_WON, 50);
    check_eq_u64(drain(&f), 10); /* its cap, as ever: nothing is earned where nothing succeeds */
    note(&f, BECALM_OUTCOME_TIMED_OUT, 1000);
    check_eq_u64(drain(&f), 0);
    close_budget(&f);
}

static void test_budget__earned_refunds_the_retry_that_won(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_EARNED);
    struct becalm_spend spend = {0};
    check_true(take_into(&f, BECALM_OUTCOME_FAILED, &spend));
    give(&f, &spend, BECALM_SPEND_WON);
    check_eq_u64(left(&f), BECALM_TOKEN);
    struct becalm_window_sums sums;
    becalm_budget_read(f.b, 0, &sums);
    check_eq_u64(sums.lane[1], 1); /* it was sent, so it counts */
    check_true(take_into(&f, BECALM_OUTCOME_FAILED, &spend));
    give(&f, &spend, BECALM_SPEND_LOST);
    check_eq_u64(left(&f), 0);
    close_budget(&f);
}

static void test_budget__earned_charges_half_after_an_attempt_that_was_never_sent(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_EARNED);
    struct becalm_spend spend = {0};
    check_true(take_into(&f, BECALM_OUTCOME_REFUSED, &spend));
    check_eq_u64(left(&f), BECALM_TOKEN / 2);
    check_true(!take_into(&f, BECALM_OUTCOME_FAILED, &spend));
    check_true(spend.held); /* a refusal leaves it untouched */
    give(&f, &spend, BECALM_SPEND_WON);
    check_eq_u64(left(&f), BECALM_TOKEN);
    close_budget(&f);
}

/* ------------------------------------------------------------------------------------------------------------ ratio */

static void test_budget__ratio_of_nothing_is_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_RATIO);
    check_eq_u64(left(&f), 0);
    check_true(!take(&f));
    close_budget(&f);
}

static void test_budget__ratio_refuses_the_retry_that_would_exceed_its_percent(void **state)
{
    (void)state;
    static const struct {
        unsigned first;
        uint32_t share_ppm;
        bool of_attempts;
        unsigned retries;
    } rows[] = {
        {9, 10 * PERCENT, false, 0},
        {10, 10 * PERCENT, false, 1},
        {19, 10 * PERCENT, false, 1},
        {1000, 10 * PERCENT, false, 100},
        {10, 60 * PERCENT, false, 6},
        {10, 30 * PERCENT, false, 3},
        {3, 333333, false, 0},
        {4, 333333, false, 1},
        {10, 0, false, 0},
        {10, 200 * PERCENT, false, 20},
        {8, 10 * PERCENT, true, 0},
        {9, 10 * PERCENT, true, 1},
        {90, 10 * PERCENT, true, 10},
        {100, 50 * PERCENT, true, 100},
        {10, 75 * PERCENT, true, 30},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct becalm_budget_policy policy = defaults(BECALM_BUDGET_RATIO);
        policy.share_ppm = rows[i].share_ppm;
        policy.of_attempts = rows[i].of_attempts;
        struct fixture f;
        open_with(&f, &policy);
        begin(&f, rows[i].first);
        check_eq_u64(left(&f) / BECALM_TOKEN, rows[i].retries);
        check_eq_u64(drain(&f), rows[i].retries);
        check_true(left(&f) < BECALM_TOKEN);
        close_budget(&f);
    }
}

static void test_budget__ratio_adds_its_floor_to_the_share(void **state)
{
    (void)state;
    static const struct {
        unsigned first;
        becalm_ns window;
        uint32_t min_per_second;
        bool of_attempts;
        unsigned retries;
    } rows[] = {{0, 10 * BECALM_S, 10, false, 100},  {100, 10 * BECALM_S, 10, false, 120},
                {0, 1500 * BECALM_MS, 1, false, 1},  {0, 60 * BECALM_S, 1, false, 60},
                {0, 10 * BECALM_S, 0, false, 0},     {0, 10 * BECALM_S, 8, true, 100},
                {0, 3600 * BECALM_S, 1, false, 3600}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct becalm_budget_policy policy = defaults(BECALM_BUDGET_RATIO);
        policy.share_ppm = 20 * PERCENT;
        policy.window = rows[i].window;
        policy.min_per_second = rows[i].min_per_second;
        policy.of_attempts = rows[i].of_attempts;
        struct fixture f;
        open_with(&f, &policy);
        begin(&f, rows[i].first);
        check_eq_u64(drain(&f), rows[i].retries);
        close_budget(&f);
    }
}

static void test_budget__ratio_forgets_what_is_older_than_its_window(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_RATIO);
    policy.window = 10 * BECALM_S;
    policy.min_per_second = 1;
    struct fixture f;
    open_with(&f, &policy);
    check_eq_u64(drain(&f), 10);
    f.at.now = 9 * BECALM_S;
    check_eq_u64(drain(&f), 0);
    f.at.now = 10 * BECALM_S; /* the spent floor comes back, as Finagle's does after its ttl */
    check_eq_u64(drain(&f), 10);
    f.at.now = 5 * BECALM_S; /* an older now brings nothing back */
    check_eq_u64(drain(&f), 0);
    close_budget(&f);
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

static void test_budget__tokens_starts_full_and_refills_one_every_interval(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_TOKENS);
    check_eq_u64(left(&f), 50 * BECALM_TOKEN);
    check_eq_u64(drain(&f), 50);
    check_eq_u64(left(&f), 0);
    f.at.now = 50 * BECALM_MS - 1;
    check_eq_u64(left(&f), BECALM_TOKEN - 1);
    check_true(!take(&f));
    f.at.now = 50 * BECALM_MS;
    check_true(take(&f));
    f.at.now = 75 * BECALM_MS; /* the half that is there is not lost */
    check_true(!take(&f));
    check_eq_u64(left(&f), BECALM_TOKEN / 2);
    f.at.now = 100 * BECALM_MS;
    check_true(take(&f));
    f.at.now = 3600 * BECALM_S;
    check_eq_u64(drain(&f), 50);
    close_budget(&f);
}

static void test_budget__tokens_an_older_now_refills_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_TOKENS);
    f.at.now = 10 * BECALM_S;
    check_eq_u64(drain(&f), 50);
    f.at.now = 5 * BECALM_S;
    check_true(!take(&f));
    check_eq_u64(left(&f), 0);
    f.at.now = 10 * BECALM_S + 50 * BECALM_MS;
    check_eq_u64(drain(&f), 1);
    close_budget(&f);
}

static void test_budget__tokens_without_refill_is_a_plain_count(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_TOKENS);
    policy.refill_per_second = 0;
    policy.capacity = 7;
    struct fixture f;
    open_with(&f, &policy);
    check_eq_u64(left(&f), 7 * BECALM_TOKEN);
    struct becalm_spend spend = {0};
    check_true(take_into(&f, BECALM_OUTCOME_FAILED, &spend));
    check_eq_u64(drain(&f), 6);
    f.at.now = BECALM_NEVER - 1;
    check_true(!take(&f));
    give(&f, &spend, BECALM_SPEND_UNUSED);
    check_eq_u64(left(&f), BECALM_TOKEN);
    check_eq_u64(drain(&f), 1);
    close_budget(&f);
}

static void test_budget__tokens_slower_than_one_a_second_are_exact_ten_an_hour(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_TOKENS);
    becalm_ns every = 6 * 60 * BECALM_S;
    policy.capacity = 10;
    policy.refill_every = every; /* with any refill_per_second */
    struct fixture f;
    open_with(&f, &policy);
    becalm_ns start_at = f.at.now;
    check_eq_u64(drain(&f), 10);
    f.at.now = start_at + every - 1;
    check_eq_u64(drain(&f), 0);
    f.at.now = start_at + every;
    check_eq_u64(drain(&f), 1);
    f.at.now = start_at + 10 * every - 1;
    check_eq_u64(drain(&f), 8);
    f.at.now = start_at + 100 * every;
    check_eq_u64(drain(&f), 10);
    close_budget(&f);
}

static void test_budget__tokens_that_come_back_once_a_day_are_told_in_parts(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_TOKENS);
    becalm_ns day = 24 * 3600 * BECALM_S;
    policy.capacity = 3;
    policy.refill_every = day;
    struct fixture f;
    open_with(&f, &policy);
    becalm_ns start_at = f.at.now;
    check_true(take(&f));
    check_eq_u64(left(&f), 2 * BECALM_TOKEN);
    f.at.now = start_at + day / 2;
    check_true(left(&f) >= 5 * BECALM_TOKEN / 2 - 2 && left(&f) <= 5 * BECALM_TOKEN / 2); /* never rounded up */
    f.at.now = start_at + day;
    check_eq_u64(left(&f), 3 * BECALM_TOKEN);
    close_budget(&f);
}

static void test_budget__tokens_survives_the_end_of_time_and_the_largest_numbers(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_TOKENS);
    policy.capacity = 1000000;
    policy.refill_per_second = 1;
    struct fixture f;
    open_with(&f, &policy);
    check_eq_u64(drain(&f), 1000000);
    check_eq_u64(left(&f), 0);
    f.at.now = BECALM_NEVER - 2;
    check_true(!take(&f)); /* a refill that would end after time itself */
    close_budget(&f);
}

/* 100 calls a second, all attempts fail, three attempts each. */
static unsigned attempts_in_last_second(struct fixture *f)
{
    unsigned attempts = 0;
    for (unsigned i = 0; i < 1000; i++) {
        f->at.now = i * 10 * BECALM_MS;
        begin(f, 1);
        attempts = i % 100 == 0 ? 1 : attempts + 1;
        for (unsigned retry = 0; retry < 2; retry++) {
            attempts += take(f);
        }
    }
    return attempts;
}

static void test_budget__tokens_turns_300_attempts_a_second_into_120(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_TOKENS);
    check_eq_u64(attempts_in_last_second(&f), 120);
    close_budget(&f);
    open_kind(&f, BECALM_BUDGET_NONE);
    check_eq_u64(attempts_in_last_second(&f), 300);
    close_budget(&f);
}

/* ------------------------------------------------------------------------------------------------------ concurrency */

static void test_budget__concurrency_is_the_larger_of_share_and_minimum(void **state)
{
    (void)state;
    static const struct {
        unsigned calls;
        uint32_t percent;
        uint32_t min;
        unsigned retries;
    } rows[] = {{0, 20, 3, 3},  {0, 20, 0, 0},   {100, 20, 3, 20}, {20, 20, 3, 4}, {20, 20, 5, 5},
                {19, 20, 0, 3}, {4, 20, 0, 0},   {5, 20, 0, 1},    {15, 20, 3, 3}, {16, 20, 3, 3},
                {1, 100, 0, 1}, {1000, 0, 3, 3}, {1000, 0, 0, 0},  {25, 20, 3, 5}, {24, 20, 3, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct becalm_budget_policy policy = defaults(BECALM_BUDGET_CONCURRENCY);
        policy.share_ppm = rows[i].percent * PERCENT;
        policy.min_concurrency = rows[i].min;
        struct fixture f;
        open_with(&f, &policy);
        begin(&f, rows[i].calls);
        check_eq_u64(left(&f), rows[i].retries * UINT64_C(1000000));
        check_eq_u64(drain(&f), rows[i].retries);
        check_eq_u64(left(&f), 0);
        close_budget(&f);
    }
}

static void test_budget__concurrency_retries_leave_its_denominator_alone(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_CONCURRENCY);
    begin(&f, 100);
    struct becalm_spend spend[20] = {{0}};
    for (unsigned i = 0; i < 20; i++) {
        check_true(take_into(&f, BECALM_OUTCOME_FAILED, &spend[i]));
    }
    check_true(!take(&f));
    for (unsigned i = 0; i < 50; i++) {
        becalm_budget_end(f.b, &f.policy);
    }
    check_eq_u64(left(&f), 0); /* 20 in progress, 10 allowed */
    for (unsigned i = 0; i < 11; i++) {
        give(&f, &spend[i], (enum becalm_spend_end)(i % 3)); /* however it ended */
    }
    check_eq_u64(left(&f), BECALM_TOKEN);
    check_eq_u64(drain(&f), 1);
    close_budget(&f);
}

static void test_budget__concurrency_ends_without_beginnings_do_no_harm(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_CONCURRENCY);
    struct becalm_spend spend = {.held = true, .amount = 1};
    becalm_budget_end(f.b, &f.policy);
    give(&f, &spend, BECALM_SPEND_LOST);
    check_eq_u64(left(&f), 3 * BECALM_TOKEN);
    begin(&f, 20);
    check_eq_u64(left(&f), 4 * BECALM_TOKEN);
    close_budget(&f);
}

/* --------------------------------------------------------------------------------------------------------- adaptive */

static void test_budget__adaptive_lets_one_retry_through_an_empty_window(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_ADAPTIVE);
    check_eq_u64(left(&f), BECALM_TOKEN);
    check_eq_u64(drain(&f), 1);
    check_eq_u64(left(&f), 0);
    close_budget(&f);
}

static void test_budget__adaptive_scales_its_share_by_the_success_rate(void **state)
{
    (void)state;
    static const struct {
        unsigned first, good, bad;
        uint32_t min, max;
        unsigned retries;
    } rows[] = {
        {100, 100, 0, 10, 30, 30}, {100, 0, 100, 10, 30, 10}, {100, 50, 50, 10, 30, 20}, {100, 0, 0, 10, 30, 30},
        {100, 25, 75, 10, 30, 15}, {1, 0, 1, 10, 30, 1},      {10, 0, 10, 10, 30, 1},    {11, 0, 11, 10, 30, 2},
        {100, 0, 100, 0, 30, 0},   {100, 0, 100, 20, 20, 20}, {30, 10, 20, 10, 40, 6},   {10, 10, 0, 100, 100, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct becalm_budget_policy policy = defaults(BECALM_BUDGET_ADAPTIVE);
        policy.min_share_ppm = rows[i].min * PERCENT;
        policy.max_share_ppm = rows[i].max * PERCENT;
        struct fixture f;
        open_with(&f, &policy);
        begin(&f, rows[i].first);
        note(&f, BECALM_OUTCOME_OK, rows[i].good);
        note(&f, BECALM_OUTCOME_TIMED_OUT, rows[i].bad);
        note(&f, BECALM_OUTCOME_CANCELLED, 17); /* says nothing about the callee */
        check_eq_u64(left(&f), rows[i].retries * UINT64_C(1000000));
        check_eq_u64(drain(&f), rows[i].retries);
        check_eq_u64(left(&f), 0);
        f.at.now = policy.window; /* all forgotten */
        check_eq_u64(drain(&f), 1);
        close_budget(&f);
    }
}

/* ------------------------------------------------------------------------------------------------------------- grpc */

static void test_budget__grpc_retries_while_more_than_half_is_left(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_GRPC);
    check_eq_u64(drain(&f), 1000000); /* a take costs nothing itself */
    note(&f, BECALM_OUTCOME_REJECTED, 4);
    check_eq_u64(left(&f), BECALM_TOKEN);
    check_true(take(&f));
    note(&f, BECALM_OUTCOME_REJECTED, 1); /* 5 of 10 is not more than half */
    check_eq_u64(left(&f), 0);
    check_true(!take(&f));
    note(&f, BECALM_OUTCOME_OK, 1);
    check_eq_u64(left(&f), BECALM_TOKEN / 10);
    check_true(take(&f));
    note(&f, BECALM_OUTCOME_REJECTED, 100); /* not below 0: fifty successes and one bring it back */
    note(&f, BECALM_OUTCOME_OK, 50);
    check_true(!take(&f));
    note(&f, BECALM_OUTCOME_OK, 1);
    check_true(take(&f));
    note(&f, BECALM_OUTCOME_OK, 1000); /* nor above its maximum */
    check_eq_u64(left(&f), 5 * BECALM_TOKEN);
    close_budget(&f);
}

static void test_budget__grpc_counts_thousandths_of_a_token(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_GRPC);
    policy.token_ratio_milli = 546; /* 0.5466, cut after three decimals */
    struct fixture f;
    open_with(&f, &policy);
    note(&f, BECALM_OUTCOME_REJECTED, 2);
    note(&f, BECALM_OUTCOME_OK, 1);
    check_eq_u64(left(&f), 3546000);
    f.policy.max_tokens_milli = 1; /* after a reload */
    check_eq_u64(left(&f), 500);
    note(&f, BECALM_OUTCOME_REJECTED, 10);
    check_true(!take(&f));
    note(&f, BECALM_OUTCOME_OK, 1);
    check_true(take(&f));
    close_budget(&f);
}

/* The effect of one attempt's end on a bucket with 6 of 10 tokens. */
static int64_t grpc_move(struct becalm_outcome outcome)
{
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_GRPC);
    note(&f, BECALM_OUTCOME_REJECTED, 3);
    uint64_t before = left(&f);
    becalm_budget_note(f.b, &f.policy, &f.at, &outcome, true);
    int64_t moved = (int64_t)left(&f) - (int64_t)before;
    close_budget(&f);
    return moved / 1000;
}

static void test_budget__grpc_failure_is_what_would_be_retried_or_was_forbidden(void **state)
{
    (void)state;
    static const struct {
        struct becalm_outcome outcome;
        int64_t moved;
    } rows[] = {
        {{.kind = BECALM_OUTCOME_OK}, 100},
        {{.kind = BECALM_OUTCOME_OK, .stop = true}, 100},
        {{.kind = BECALM_OUTCOME_PERMANENT}, 0},
        {{.kind = BECALM_OUTCOME_PERMANENT, .listed = BECALM_LISTED_YES}, 0},
        {{.kind = BECALM_OUTCOME_PERMANENT, .stop = true}, -1000},
        {{.kind = BECALM_OUTCOME_FAILED}, 0},
        {{.kind = BECALM_OUTCOME_FAILED, .listed = BECALM_LISTED_YES}, -1000},
        {{.kind = BECALM_OUTCOME_FAILED, .stop = true}, -1000},
        {{.kind = BECALM_OUTCOME_BROKEN}, -1000},
        {{.kind = BECALM_OUTCOME_LATE}, -1000},
        {{.kind = BECALM_OUTCOME_REJECTED}, -1000},
        {{.kind = BECALM_OUTCOME_REJECTED, .listed = BECALM_LISTED_NO}, 0},
        {{.kind = BECALM_OUTCOME_REJECTED, .listed = BECALM_LISTED_NO, .stop = true}, -1000},
        {{.kind = BECALM_OUTCOME_RATE_LIMITED}, -1000},
        {{.kind = BECALM_OUTCOME_CONFLICT}, 0},
        {{.kind = BECALM_OUTCOME_REFUSED}, -1000},
        {{.kind = BECALM_OUTCOME_REFUSED, .stop = true}, -1000},
        {{.kind = BECALM_OUTCOME_TLS}, 0},
        {{.kind = BECALM_OUTCOME_TIMED_OUT}, -1000},
        {{.kind = BECALM_OUTCOME_CANCELLED}, 0},
        {{.kind = BECALM_OUTCOME_CANCELLED, .stop = true}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(grpc_move(rows[i].outcome), rows[i].moved);
    }
}

/* -------------------------------------------------------------------------------------------------------------- aws */

static void test_budget__aws_has_a_hundred_retries_or_fifty_after_timeouts(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_AWS);
    check_eq_u64(left(&f), 100 * BECALM_TOKEN);
    check_eq_u64(drain(&f), 100);
    close_budget(&f);
    open_kind(&f, BECALM_BUDGET_AWS);
    struct becalm_spend spend = {0};
    for (unsigned i = 0; i < 50; i++) {
        check_true(take_into(&f, BECALM_OUTCOME_TIMED_OUT, &spend));
    }
    check_true(!take_into(&f, BECALM_OUTCOME_REFUSED, &spend));
    close_budget(&f);
}

static void test_budget__aws_refuses_what_costs_more_than_there_is(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_AWS);
    drain(&f);
    note(&f, BECALM_OUTCOME_OK, 4);
    check_true(!take(&f));
    note(&f, BECALM_OUTCOME_OK, 3);
    struct becalm_spend spend = {0};
    check_true(!take_into(&f, BECALM_OUTCOME_TIMED_OUT, &spend));
    check_true(take_into(&f, BECALM_OUTCOME_BROKEN, &spend));
    check_eq_u64(left(&f), 2 * BECALM_TOKEN / 5);
    close_budget(&f);
}

static void test_budget__aws_success_refunds_its_own_cost_or_gives_one(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_AWS);
    drain(&f);
    note(&f, BECALM_OUTCOME_OK, 10);
    note(&f, BECALM_OUTCOME_PERMANENT, 10); /* not a success to them */
    struct becalm_spend spend = {0};
    check_true(take_into(&f, BECALM_OUTCOME_TIMED_OUT, &spend));
    check_eq_u64(left(&f), 0);
    struct becalm_outcome ok = {.kind = BECALM_OUTCOME_OK};
    becalm_budget_note(f.b, &f.policy, &f.at, &ok, true); /* the retry's success brings no extra token */
    give(&f, &spend, BECALM_SPEND_WON);
    check_eq_u64(left(&f), 2 * BECALM_TOKEN);
    note(&f, BECALM_OUTCOME_OK, 1000);
    check_eq_u64(left(&f), 100 * BECALM_TOKEN);
    check_true(take_into(&f, BECALM_OUTCOME_BROKEN, &spend));
    give(&f, &spend, BECALM_SPEND_LOST);
    check_eq_u64(left(&f), 99 * BECALM_TOKEN);
    close_budget(&f);
}

/* -------------------------------------------------------------------------------------------------------- all kinds */

static void test_budget__none_allows_everything_and_counts_it(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_NONE);
    check_true(left(&f) == UINT64_MAX);
    begin(&f, 4);
    for (unsigned i = 0; i < 9; i++) {
        check_true(take(&f));
    }
    check_eq_u64(ratio(&f), 2250000);
    close_budget(&f);
}

static void test_budget__retry_ratio_is_retries_per_first_attempt(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct fixture f;
        open_kind(&f, (enum becalm_budget_kind)kind);
        check_eq_u64(ratio(&f), 0);
        begin(&f, 40);
        check_true(take(&f));
        check_eq_u64(ratio(&f), 25000);
        f.at.now = 120 * BECALM_S;
        check_eq_u64(ratio(&f), 0);
        close_budget(&f);
    }
}

static void test_budget__the_cap_is_what_is_left_before_any_retry(void **state)
{
    (void)state;
    static const uint64_t after_a_hundred_calls[] = {
        [BECALM_BUDGET_EARNED] = 10000000, /* a tenth of the calls, and not more than ten */
        [BECALM_BUDGET_RATIO] = 10000000,    [BECALM_BUDGET_TOKENS] = 50000000, [BECALM_BUDGET_CONCURRENCY] = 20000000,
        [BECALM_BUDGET_ADAPTIVE] = 30000000, [BECALM_BUDGET_GRPC] = 5000000,    [BECALM_BUDGET_AWS] = 100000000,
        [BECALM_BUDGET_NONE] = UINT64_MAX,
    };
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct fixture f;
        open_kind(&f, (enum becalm_budget_kind)kind);
        f.at.now = BECALM_S;
        begin(&f, 100);
        note(&f, BECALM_OUTCOME_OK, 100);
        uint64_t before = becalm_budget_cap(f.b, &f.policy, f.at.now);
        check_eq_u64(before, after_a_hundred_calls[kind]);
        check_eq_u64(left(&f), before);
        check_true(take(&f));
        check_eq_u64(becalm_budget_cap(f.b, &f.policy, f.at.now), before);
        check_true(kind == BECALM_BUDGET_NONE || kind == BECALM_BUDGET_GRPC || left(&f) < before);
        close_budget(&f);
    }
}

static void test_budget__fill_is_the_share_of_what_it_may_hold(void **state)
{
    (void)state;
    static const uint32_t after_one[] = {
        [BECALM_BUDGET_EARNED] = 0,           /* the one that it starts with */
        [BECALM_BUDGET_RATIO] = 750000,       /* 1 of 4: a tenth of 40 */
        [BECALM_BUDGET_TOKENS] = 980000,      /* 1 of 50 */
        [BECALM_BUDGET_CONCURRENCY] = 875000, /* 1 of 8: a fifth of 40 */
        [BECALM_BUDGET_ADAPTIVE] = 916667,    /* 1 of 12: three tenths of 40, nothing having failed */
        [BECALM_BUDGET_GRPC] = 1000000,       /* it counts failures */
        [BECALM_BUDGET_AWS] = 990000,         /* 5 of 500 */
        [BECALM_BUDGET_NONE] = 1000000,
    };
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct fixture f;
        open_kind(&f, (enum becalm_budget_kind)kind);
        begin(&f, 40);
        uint32_t full = kind == BECALM_BUDGET_EARNED ? 250000 : 1000000; /* one token of four: a tenth of 40 */
        check_eq_u64(becalm_budget_fill_ppm(f.b, &f.policy, f.at.now), full);
        check_true(take(&f));
        check_eq_u64(becalm_budget_fill_ppm(f.b, &f.policy, f.at.now), after_one[kind]);
        close_budget(&f);
    }
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_GRPC);
    note(&f, BECALM_OUTCOME_REJECTED, 2);
    check_eq_u64(becalm_budget_fill_ppm(f.b, &f.policy, f.at.now), 600000); /* 3 of the 5 above half */
    close_budget(&f);
}

/* The whole visible state, and the word behind it. */
struct picture {
    uint64_t word;
    uint64_t left;
    uint32_t ratio;
};

static struct picture picture_of(const struct fixture *f)
{
    uint64_t word = atomic_load_explicit(&f->b->word, memory_order_relaxed);
    return (struct picture){.word = word, .left = left(f), .ratio = ratio(f)};
}

static void check_same(struct picture after, struct picture before)
{
    check_eq_u64(after.word, before.word);
    check_eq_u64(after.left, before.left);
    check_eq_u64(after.ratio, before.ratio);
}

static void test_budget__what_was_not_used_comes_back_exactly_and_once(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct fixture f;
        open_kind(&f, (enum becalm_budget_kind)kind);
        f.at.now = BECALM_S;
        begin(&f, 50);
        note(&f, BECALM_OUTCOME_OK, 25);
        check_true(take(&f)); /* so that a bucket is not at its cap */
        note(&f, BECALM_OUTCOME_OK, 10);
        struct picture before = picture_of(&f);
        struct becalm_spend spend = {0};
        check_true(take_into(&f, BECALM_OUTCOME_TIMED_OUT, &spend));
        check_true(ratio(&f) > before.ratio);
        f.at.now += 2 * BECALM_MS;
        for (unsigned times = 0; times < 3; times++) {
            give(&f, &spend, BECALM_SPEND_UNUSED);
        }
        check_true(!spend.held);
        f.at.now -= 2 * BECALM_MS;
        check_same(picture_of(&f), before);
        close_budget(&f);
    }
}

/* The window still counts it, tokens are spent, and nothing is learned of it. */
static void test_budget__a_retry_that_was_beaten_is_refunded_like_one_that_won_and_teaches_nothing(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct picture after[2];
        uint64_t learned[3];
        for (unsigned end = 0; end < 3; end++) {
            struct fixture f;
            open_kind(&f, (enum becalm_budget_kind)kind);
            f.at.now = BECALM_S;
            begin(&f, 50);
            note(&f, BECALM_OUTCOME_OK, 25);
            check_true(take(&f));
            struct becalm_spend spend = {0};
            learned[2] = atomic_load_explicit(&f.b->lost, memory_order_relaxed);
            check_true(take_into(&f, BECALM_OUTCOME_TIMED_OUT, &spend));
            if (end < 2) {
                give(&f, &spend, end == 0 ? BECALM_SPEND_BEATEN : BECALM_SPEND_WON);
                after[end] = picture_of(&f);
                check_true(after[end].ratio > 0);
                learned[end] = atomic_load_explicit(&f.b->lost, memory_order_relaxed);
            }
            close_budget(&f);
        }
        check_same(after[0], after[1]);
        check_eq_u64(learned[0], learned[2]);
        check_true(kind != BECALM_BUDGET_EARNED || learned[1] != learned[2]);
    }
}

static void test_budget__a_spend_that_is_not_held_changes_nothing(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct fixture f;
        open_kind(&f, (enum becalm_budget_kind)kind);
        begin(&f, 50);
        take(&f);
        struct picture before = picture_of(&f);
        struct becalm_spend spend = {.amount = 1};
        give(&f, &spend, BECALM_SPEND_UNUSED);
        give(&f, &spend, BECALM_SPEND_WON);
        check_same(picture_of(&f), before);
        close_budget(&f);
    }
}

static void test_budget__two_levels_take_both_or_none(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < BECALM_BUDGET_NONE; kind++) {
        struct fixture endpoint;
        open_kind(&endpoint, (enum becalm_budget_kind)kind);
        begin(&endpoint, 50);
        struct becalm_budget_policy nothing = defaults(BECALM_BUDGET_EARNED);
        nothing.start = 0;
        struct fixture service;
        open_with(&service, &nothing);
        struct picture before = picture_of(&endpoint);
        struct becalm_spend spend = {0};
        struct becalm_spend service_spend = {0};
        check_true(take_into(&endpoint, BECALM_OUTCOME_FAILED, &spend));
        check_true(!take_into(&service, BECALM_OUTCOME_FAILED, &service_spend));
        check_true(!service_spend.held);
        give(&endpoint, &spend, BECALM_SPEND_UNUSED);
        check_same(picture_of(&endpoint), before);
        close_budget(&service);
        close_budget(&endpoint);
    }
}

static void test_budget__a_spend_of_another_policy_never_overfills(void **state)
{
    (void)state;
    static const uint64_t full[] = {
        [BECALM_BUDGET_EARNED] = 5,       [BECALM_BUDGET_RATIO] = 5,     [BECALM_BUDGET_TOKENS] = 50,
        [BECALM_BUDGET_CONCURRENCY] = 10, [BECALM_BUDGET_ADAPTIVE] = 15, [BECALM_BUDGET_GRPC] = 5,
        [BECALM_BUDGET_AWS] = 100};
    for (unsigned kind = 0; kind < BECALM_BUDGET_NONE; kind++) {
        for (unsigned end = BECALM_SPEND_UNUSED; end <= BECALM_SPEND_LOST; end++) {
            struct fixture f;
            open_kind(&f, (enum becalm_budget_kind)kind);
            begin(&f, 50);
            struct becalm_spend spend = {
                .amount = UINT64_C(1) << 60, .taken_at = 77 * BECALM_S, .cell = 99, .held = true};
            give(&f, &spend, (enum becalm_spend_end)end);
            check_true(left(&f) <= full[kind] * BECALM_TOKEN);
            check_eq_u64(ratio(&f), 0);
            close_budget(&f);
        }
    }
}

static void test_budget__numbers_may_shrink_in_use(void **state)
{
    (void)state;
    struct fixture f;
    open_kind(&f, BECALM_BUDGET_AWS);
    f.policy.capacity = 20;
    check_eq_u64(left(&f), 4 * BECALM_TOKEN);
    check_eq_u64(drain(&f), 4);
    close_budget(&f);
    open_kind(&f, BECALM_BUDGET_TOKENS);
    drain(&f);
    f.policy.capacity = 1;
    check_eq_u64(left(&f), 0);
    check_true(!take(&f));
    f.at.now = 3 * BECALM_S;
    check_eq_u64(drain(&f), 1);
    close_budget(&f);
}

/* ------------------------------------------------------------------------------------------------------------ carry */

static void carry(struct fixture *to, const struct fixture *from)
{
    to->at = from->at;
    becalm_budget_carry(to->b, &to->policy, from->b, &from->policy, from->at.now);
}

static void test_budget__carry_keeps_the_fill_fraction(void **state)
{
    (void)state;
    struct fixture from;
    open_kind(&from, BECALM_BUDGET_AWS); /* 500, of which 200 are left: two fifths */
    for (unsigned i = 0; i < 60; i++) {
        check_true(take(&from));
    }
    from.at.now = 1000 * BECALM_S;
    struct becalm_budget_policy counted = defaults(BECALM_BUDGET_TOKENS);
    counted.refill_per_second = 0;
    static const enum becalm_budget_kind kinds[] = {BECALM_BUDGET_AWS, BECALM_BUDGET_GRPC, BECALM_BUDGET_TOKENS,
                                                    BECALM_BUDGET_EARNED};
    static const uint64_t expected[] = {40 * BECALM_TOKEN, 0, 20 * BECALM_TOKEN, 400000};
    struct fixture to;
    for (size_t i = 0; i < 4; i++) {
        open_kind(&to, kinds[i]);
        carry(&to, &from);
        check_eq_u64(left(&to), expected[i]);
        close_budget(&to);
    }
    open_with(&to, &counted);
    carry(&to, &from);
    check_eq_u64(drain(&to), 20);
    close_budget(&to);
    close_budget(&from);
}

static void test_budget__carry_to_the_same_policy_changes_nothing(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        if (kind == BECALM_BUDGET_RATIO || kind == BECALM_BUDGET_ADAPTIVE) {
            continue; /* their windows begin empty */
        }
        struct fixture from;
        open_kind(&from, (enum becalm_budget_kind)kind);
        from.at.now = BECALM_S;
        begin(&from, 70);
        note(&from, BECALM_OUTCOME_OK, 39);
        note(&from, BECALM_OUTCOME_REJECTED, 3);
        for (unsigned i = 0; i < 3; i++) {
            take(&from);
        }
        for (unsigned i = 0; i < 70; i++) {
            becalm_budget_end(from.b, &from.policy);
        }
        struct fixture to;
        open_kind(&to, (enum becalm_budget_kind)kind);
        carry(&to, &from);
        if (kind != BECALM_BUDGET_CONCURRENCY) {
            check_eq_u64(left(&to), left(&from));
        } else {
            check_eq_u64(left(&to), 3 * BECALM_TOKEN); /* calls in progress end in the old budget */
        }
        close_budget(&to);
        close_budget(&from);
    }
}

static void test_budget__carry_keeps_the_earned_cap_until_the_window_is_full_again(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    policy.share_ppm = 100 * PERCENT;
    struct fixture from;
    open_with(&from, &policy);
    begin(&from, 100);
    note(&from, BECALM_OUTCOME_OK, 8);
    struct fixture to;
    open_with(&to, &policy);
    carry(&to, &from);
    check_eq_u64(left(&to), 9 * BECALM_TOKEN);
    to.at.now = 9 * BECALM_S;
    note(&to, BECALM_OUTCOME_OK, 5);
    check_eq_u64(left(&to), 10 * BECALM_TOKEN);
    begin(&to, 20);
    to.at.now = 11 * BECALM_S;
    check_eq_u64(left(&to), 2 * BECALM_TOKEN);
    check_eq_u64(drain(&to), 2);
    close_budget(&to);
    close_budget(&from);
}

static void test_budget__carry_keeps_how_retries_ended(void **state)
{
    (void)state;
    struct fixture from;
    open_kind(&from, BECALM_BUDGET_EARNED);
    check_true(take(&from));
    retries_end(&from, BECALM_SPEND_LOST, 9);
    struct fixture to;
    open_kind(&to, BECALM_BUDGET_EARNED);
    carry(&to, &from);
    note(&to, BECALM_OUTCOME_OK, 1);
    check_eq_u64(left(&to), 50000);
    close_budget(&to);
    close_budget(&from);
}

/* ------------------------------------------------------------------------------------------------------- parameters */

static void test_budget__defaults_pass_their_check(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct becalm_budget_policy policy = defaults((enum becalm_budget_kind)kind);
        assert_int_equal(becalm_budget_check(&policy, NULL), 0);
        for (uint32_t cells = 0; cells < 200; cells += 67) { /* also those that are out of bounds */
            void *memory = aligned_alloc(64, becalm_budget_bytes(&policy, cells));
            assert_non_null(becalm_budget_init(memory, &policy, cells));
            free(memory);
        }
    }
}

#define refuses(kind_, field_, value_)                                         \
    do {                                                                       \
        struct becalm_budget_policy policy_ = defaults(kind_);                 \
        policy_.field_ = (value_);                                             \
        const char *why_ = "";                                                 \
        assert_int_equal(becalm_budget_check(&policy_, &why_), BECALM_EINVAL); \
        assert_int_equal(becalm_budget_check(&policy_, NULL), BECALM_EINVAL);  \
        assert_int_equal(strncmp(why_, #field_, strlen(#field_)), 0);          \
    } while (0)

#define accepts(kind_, field_, value_)                            \
    do {                                                          \
        struct becalm_budget_policy policy_ = defaults(kind_);    \
        policy_.field_ = (value_);                                \
        assert_int_equal(becalm_budget_check(&policy_, NULL), 0); \
    } while (0)

static void test_budget__bad_parameters_are_refused_by_name(void **state)
{
    (void)state;
    refuses(BECALM_BUDGET_EARNED, kind, (enum becalm_budget_kind)(BECALM_BUDGET_NONE + 1));
    refuses(BECALM_BUDGET_EARNED, share_ppm, 1000001);
    refuses(BECALM_BUDGET_EARNED, start, UINT32_MAX);
    refuses(BECALM_BUDGET_EARNED, never_sent_cost, 0);
    refuses(BECALM_BUDGET_EARNED, never_sent_cost, BECALM_TOKEN + 1);
    refuses(BECALM_BUDGET_RATIO, share_ppm, UINT32_MAX);
    refuses(BECALM_BUDGET_RATIO, min_per_second, UINT32_MAX);
    refuses(BECALM_BUDGET_RATIO, window, 0);
    refuses(BECALM_BUDGET_RATIO, window, BECALM_S - 1);
    refuses(BECALM_BUDGET_RATIO, window, BECALM_NEVER);
    refuses(BECALM_BUDGET_TOKENS, capacity, 0);
    refuses(BECALM_BUDGET_TOKENS, capacity, UINT32_MAX);
    refuses(BECALM_BUDGET_TOKENS, refill_per_second, UINT32_MAX);
    refuses(BECALM_BUDGET_TOKENS, refill_every, 24 * 3600 * BECALM_S + 1);
    refuses(BECALM_BUDGET_TOKENS, refill_every, BECALM_NEVER);
    refuses(BECALM_BUDGET_CONCURRENCY, share_ppm, 1000001);
    refuses(BECALM_BUDGET_CONCURRENCY, min_concurrency, UINT32_MAX);
    refuses(BECALM_BUDGET_ADAPTIVE, max_share_ppm, UINT32_MAX);
    refuses(BECALM_BUDGET_ADAPTIVE, min_share_ppm, 300001);
    refuses(BECALM_BUDGET_ADAPTIVE, window, 3601 * BECALM_S);
    refuses(BECALM_BUDGET_GRPC, max_tokens_milli, 0);
    refuses(BECALM_BUDGET_GRPC, max_tokens_milli, 1000001);
    refuses(BECALM_BUDGET_GRPC, token_ratio_milli, 0);
    refuses(BECALM_BUDGET_GRPC, token_ratio_milli, UINT32_MAX);
    refuses(BECALM_BUDGET_AWS, capacity, 0);
    refuses(BECALM_BUDGET_AWS, capacity, 1000001);
    refuses(BECALM_BUDGET_AWS, retry_cost, 0);
    refuses(BECALM_BUDGET_AWS, retry_cost, 501);
    refuses(BECALM_BUDGET_AWS, timeout_cost, 0);
    refuses(BECALM_BUDGET_AWS, timeout_cost, UINT32_MAX);
    struct becalm_budget_policy tokens = defaults(BECALM_BUDGET_TOKENS);
    tokens.capacity = 36501;
    tokens.refill_every = 24 * 3600 * BECALM_S;
    assert_int_equal(becalm_budget_check(&tokens, NULL), BECALM_EINVAL);
    tokens.capacity = 36500;
    assert_int_equal(becalm_budget_check(&tokens, NULL), 0);
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_RATIO);
    policy.of_attempts = true;
    policy.share_ppm = 1000000;
    assert_int_equal(becalm_budget_check(&policy, NULL), BECALM_EINVAL);
    check_eq_u64(becalm_budget_bytes(&policy, 1), 0);
    policy.share_ppm = 999999;
    assert_int_equal(becalm_budget_check(&policy, NULL), 0);
}

static void test_budget__the_bounds_themselves_and_fields_of_other_kinds_are_accepted(void **state)
{
    (void)state;
    accepts(BECALM_BUDGET_EARNED, share_ppm, 0);
    accepts(BECALM_BUDGET_EARNED, share_ppm, 1000000);
    accepts(BECALM_BUDGET_EARNED, start, 0);
    accepts(BECALM_BUDGET_EARNED, start, 1000 * BECALM_TOKEN);
    accepts(BECALM_BUDGET_EARNED, window, 0);
    accepts(BECALM_BUDGET_RATIO, share_ppm, 1000000000);
    accepts(BECALM_BUDGET_RATIO, window, BECALM_S);
    accepts(BECALM_BUDGET_RATIO, window, 3600 * BECALM_S);
    accepts(BECALM_BUDGET_TOKENS, refill_per_second, 0);
    accepts(BECALM_BUDGET_TOKENS, refill_every, 24 * 3600 * BECALM_S);
    accepts(BECALM_BUDGET_TOKENS, capacity, 1000000);
    accepts(BECALM_BUDGET_CONCURRENCY, min_concurrency, 0);
    accepts(BECALM_BUDGET_GRPC, max_tokens_milli, 1);
    accepts(BECALM_BUDGET_NONE, capacity, 0);
}

/* The largest numbers that pass the check, in windows of the longest span, must not overflow. */
static void test_budget__the_largest_numbers_do_not_overflow(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_RATIO);
    policy.share_ppm = 1000000000;
    policy.min_per_second = 1000000;
    policy.window = 3600 * BECALM_S;
    struct fixture f;
    open_with(&f, &policy);
    begin(&f, 1000);
    check_eq_u64(left(&f), UINT64_C(1000000) * 1000000 + UINT64_C(3600000000) * 1000000);
    check_true(take(&f));
    close_budget(&f);
    policy.share_ppm = 999999;
    policy.of_attempts = true;
    open_with(&f, &policy);
    check_true(take(&f));
    check_true(left(&f) > UINT64_C(3600000000) * 1000000);
    close_budget(&f);
}

static bool sound(const struct fixture *f)
{
    return becalm_budget_sound(f->b, &f->policy, CELLS, f->at.now);
}

static void test_budget__is_sound_in_use_and_at_another_address(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        struct fixture f;
        open_kind(&f, (enum becalm_budget_kind)kind);
        f.at.now = 1000 * BECALM_S;
        check_true(sound(&f));
        begin(&f, 40);
        note(&f, BECALM_OUTCOME_OK, 5);
        check_true(take(&f));
        check_true(sound(&f));
        uint64_t left = becalm_budget_left(f.b, &f.policy, f.at.now);
        size_t bytes = becalm_budget_bytes(&f.policy, CELLS);
        void *elsewhere = aligned_alloc(64, bytes);
        memcpy(elsewhere, f.b, bytes);
        memset(f.b, 0xff, bytes); /* nothing leads back here */
        free(f.b);
        f.b = elsewhere;
        check_true(sound(&f));
        check_eq_u64(becalm_budget_left(f.b, &f.policy, f.at.now), left);
        begin(&f, 1);
        close_budget(&f);
    }
}

static void test_budget__is_not_sound_with_a_word_that_it_can_t_have_left(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_TOKENS);
    struct fixture f;
    open_with(&f, &policy);
    f.at.now = 1000 * BECALM_S;
    atomic_store_explicit(&f.b->word, f.at.now + 3 * BECALM_S, memory_order_relaxed); /* 50 tokens at 20/s are 2.5 s */
    check_true(sound(&f));
    atomic_store_explicit(&f.b->word, f.at.now + 4 * BECALM_S, memory_order_relaxed);
    check_true(!sound(&f));
    close_budget(&f);
    policy = defaults(BECALM_BUDGET_EARNED);
    open_with(&f, &policy);
    atomic_store_explicit(&f.b->lost, 1000000, memory_order_relaxed);
    check_true(sound(&f));
    atomic_store_explicit(&f.b->lost, 1000001, memory_order_relaxed);
    check_true(!sound(&f));
    close_budget(&f);
    policy = defaults(BECALM_BUDGET_AWS);
    open_with(&f, &policy);
    atomic_store_explicit(&f.b->word, 501, memory_order_relaxed);
    check_true(!sound(&f));
    f.policy.window = 3 * BECALM_S; /* of no use to this kind */
    f.policy.capacity = 501;
    check_true(sound(&f));
    f.policy.kind = BECALM_BUDGET_ADAPTIVE; /* another window */
    check_true(!sound(&f));
    close_budget(&f);
}

BECALM_TESTS(
    cmocka_unit_test(test_budget__is_sound_in_use_and_at_another_address),
    cmocka_unit_test(test_budget__is_not_sound_with_a_word_that_it_can_t_have_left),
    cmocka_unit_test(test_budget__earned_starts_with_one_retry_and_no_more),
    cmocka_unit_test(test_budget__earned_holds_at_most_its_cap),
    cmocka_unit_test(test_budget__earned_cap_has_fractions_of_a_token),
    cmocka_unit_test(test_budget__earned_cap_counts_first_attempts_of_the_last_ten_seconds),
    cmocka_unit_test(test_budget__earned_cap_is_at_most_one_tick_old),
    cmocka_unit_test(test_budget__earned_is_paid_by_answers_that_are_no_failure),
    cmocka_unit_test(test_budget__earned_two_successes_buy_one_retry_while_none_was_lost),
    cmocka_unit_test(test_budget__earned_brings_more_while_retries_win_and_less_while_they_are_lost),
    cmocka_unit_test(test_budget__earned_brings_more_while_half_of_the_retries_win_and_nothing_looks_like_overload),
    cmocka_unit_test(test_budget__earned_takes_timeouts_and_rejections_for_overload),
    cmocka_unit_test(test_budget__earned_a_quiet_caller_banks_a_second_retry_once_one_has_won),
    cmocka_unit_test(test_budget__earned_sees_a_burst_of_a_quiet_caller_at_once),
    cmocka_unit_test(test_budget__earned_brings_one_token_at_most),
    cmocka_unit_test(test_budget__earned_spends_no_more_in_an_outage_however_well_retries_went_before),
    cmocka_unit_test(test_budget__earned_refunds_the_retry_that_won),
    cmocka_unit_test(test_budget__earned_charges_half_after_an_attempt_that_was_never_sent),
    cmocka_unit_test(test_budget__ratio_of_nothing_is_nothing),
    cmocka_unit_test(test_budget__ratio_refuses_the_retry_that_would_exceed_its_percent),
    cmocka_unit_test(test_budget__ratio_adds_its_floor_to_the_share),
    cmocka_unit_test(test_budget__ratio_forgets_what_is_older_than_its_window),
    cmocka_unit_test(test_budget__tokens_starts_full_and_refills_one_every_interval),
    cmocka_unit_test(test_budget__tokens_an_older_now_refills_nothing),
    cmocka_unit_test(test_budget__tokens_without_refill_is_a_plain_count),
    cmocka_unit_test(test_budget__tokens_slower_than_one_a_second_are_exact_ten_an_hour),
    cmocka_unit_test(test_budget__tokens_that_come_back_once_a_day_are_told_in_parts),
    cmocka_unit_test(test_budget__tokens_survives_the_end_of_time_and_the_largest_numbers),
    cmocka_unit_test(test_budget__tokens_turns_300_attempts_a_second_into_120),
    cmocka_unit_test(test_budget__concurrency_is_the_larger_of_share_and_minimum),
    cmocka_unit_test(test_budget__concurrency_retries_leave_its_denominator_alone),
    cmocka_unit_test(test_budget__concurrency_ends_without_beginnings_do_no_harm),
    cmocka_unit_test(test_budget__adaptive_lets_one_retry_through_an_empty_window),
    cmocka_unit_test(test_budget__adaptive_scales_its_share_by_the_success_rate),
    cmocka_unit_test(test_budget__grpc_retries_while_more_than_half_is_left),
    cmocka_unit_test(test_budget__grpc_counts_thousandths_of_a_token),
    cmocka_unit_test(test_budget__grpc_failure_is_what_would_be_retried_or_was_forbidden),
    cmocka_unit_test(test_budget__aws_has_a_hundred_retries_or_fifty_after_timeouts),
    cmocka_unit_test(test_budget__aws_refuses_what_costs_more_than_there_is),
    cmocka_unit_test(test_budget__aws_success_refunds_its_own_cost_or_gives_one),
    cmocka_unit_test(test_budget__none_allows_everything_and_counts_it),
    cmocka_unit_test(test_budget__retry_ratio_is_retries_per_first_attempt),
    cmocka_unit_test(test_budget__the_cap_is_what_is_left_before_any_retry),
    cmocka_unit_test(test_budget__fill_is_the_share_of_what_it_may_hold),
    cmocka_unit_test(test_budget__what_was_not_used_comes_back_exactly_and_once),
    cmocka_unit_test(test_budget__a_retry_that_was_beaten_is_refunded_like_one_that_won_and_teaches_nothing),
    cmocka_unit_test(test_budget__a_spend_that_is_not_held_changes_nothing),
    cmocka_unit_test(test_budget__two_levels_take_both_or_none),
    cmocka_unit_test(test_budget__a_spend_of_another_policy_never_overfills),
    cmocka_unit_test(test_budget__numbers_may_shrink_in_use),
    cmocka_unit_test(test_budget__carry_keeps_the_fill_fraction),
    cmocka_unit_test(test_budget__carry_to_the_same_policy_changes_nothing),
    cmocka_unit_test(test_budget__carry_keeps_the_earned_cap_until_the_window_is_full_again),
    cmocka_unit_test(test_budget__carry_keeps_how_retries_ended),
    cmocka_unit_test(test_budget__defaults_pass_their_check),
    cmocka_unit_test(test_budget__bad_parameters_are_refused_by_name),
    cmocka_unit_test(test_budget__the_bounds_themselves_and_fields_of_other_kinds_are_accepted),
    cmocka_unit_test(test_budget__the_largest_numbers_do_not_overflow))
