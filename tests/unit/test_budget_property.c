/* SPDX-License-Identifier: MIT */
#include <becalm/budget.h>
#include <becalm/rand.h>

#include <stdio.h>

#include "lib/check.h"

/* Millions of random events, in virtual time: calls begin, attempts end well or badly, retries are paid for, wait, are
 * abandoned, win or lose, while latency and the callee's health change in steps. At every step the budget is compared
 * with its own promise, computed here from totals and without a look inside. */

#define LIVE_MAX 65536u
#define ATTEMPTS 3u
#define PHASES   8u

enum stage { ATTEMPT_ENDS, WAIT_ENDS };

struct live {
    becalm_ns due_at;
    uint64_t serial; /* of equal instants the older first, so that a seed gives one history */
    enum stage stage;
    unsigned attempts;
    struct becalm_spend spend;
};

/* The most that a budget may have allowed, in totals since the start. */
struct totals {
    uint64_t calls;   /* in progress */
    uint64_t retries; /* in progress: paid and not yet ended */
    uint64_t first;   /* first attempts begun */
    uint64_t good;    /* attempts that earned */
    uint64_t paid;    /* retries paid for and not given back unused */
    uint64_t price;   /* earned: millionths paid, and neither refunded nor given back */
    uint64_t earned;  /* earned: millionths that successes brought at most */
    uint64_t lost;    /* earned: share of the latest retries that were lost, ppm */
    uint64_t hard;    /* earned: the same of those that followed a timeout or a rejection */
    uint64_t level;   /* models of tokens, grpc and aws: the tokens, in the kind's own unit */
    becalm_ns at;     /* tokens: when the level was brought up to date */
};

struct world {
    struct becalm_budget_policy policy;
    struct becalm_budget *b;
    struct becalm_moment at;
    struct totals sum;
    uint64_t seed;
    uint64_t random;
    uint64_t serial;
    becalm_ns latency;
    uint32_t good_ppm;
    uint32_t live;
    struct live *heap; /* the earliest at 0 */
};

/* ------------------------------------------------------------------------------------------------------------- heap */

static bool before(const struct live *a, const struct live *b)
{
    return a->due_at != b->due_at ? a->due_at < b->due_at : a->serial < b->serial;
}

static void swap(struct live *a, struct live *b)
{
    struct live c = *a;
    *a = *b;
    *b = c;
}

static void push(struct world *w, struct live call)
{
    call.serial = w->serial++;
    uint32_t i = w->live++;
    w->heap[i] = call;
    for (; i > 0 && before(&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
    }
}

static struct live pop(struct world *w)
{
    struct live first = w->heap[0];
    w->heap[0] = w->heap[--w->live];
    for (uint32_t i = 0;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < w->live; child++) {
            least = before(&w->heap[child], &w->heap[least]) ? child : least;
        }
        if (least == i) {
            return first;
        }
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
}

/* --------------------------------------------------------------------------------------------------------- promises */

static uint64_t draw(struct world *w, uint64_t bound)
{
    return becalm_rand_below(becalm_rand_next(&w->random), bound);
}

static void promise_at(struct world *w, bool kept, const char *claim, int line)
{
    if (!kept) {
        print_error("kind %d, seed %" PRIu64 ", at %" PRIu64 " ns: not so: %s\n", (int)w->policy.kind, w->seed,
                    w->at.now, claim);
        _fail(__FILE__, line);
    }
}

#define promise(w, claim) promise_at((w), (claim), #claim, __LINE__)

/* Spans of the window begun since the start: each may have its own floor or its own last retry. */
static uint64_t windows_begun(const struct world *w)
{
    return w->at.now / w->policy.window + 1;
}

static becalm_ns interval(const struct world *w)
{
    return w->policy.refill_every > 0 ? w->policy.refill_every : BECALM_S / w->policy.refill_per_second;
}

/* Brings the model of `tokens`, a level in ns, up to now. */
static void tokens_refill(struct world *w)
{
    becalm_ns level = w->sum.level + (w->at.now - w->sum.at);
    w->sum.level = becalm_ns_min(level, w->policy.capacity * interval(w));
    w->sum.at = w->at.now;
}

/* Compares the result of a take with the model: exactly, for kinds that depend only on totals. */
static void promise_take(struct world *w, bool taken, enum becalm_outcome_kind cause)
{
    const struct becalm_budget_policy *p = &w->policy;
    uint64_t share = w->sum.calls * p->share_ppm / 1000000;
    uint64_t cost = cause == BECALM_OUTCOME_TIMED_OUT ? p->timeout_cost : p->retry_cost;
    switch (p->kind) {
    case BECALM_BUDGET_CONCURRENCY:
        promise(w, taken == (w->sum.retries < (share > p->min_concurrency ? share : p->min_concurrency)));
        return;
    case BECALM_BUDGET_TOKENS:
        tokens_refill(w);
        promise(w, taken == (w->sum.level >= interval(w)));
        w->sum.level -= taken ? interval(w) : 0;
        return;
    case BECALM_BUDGET_GRPC:
        promise(w, taken == (2 * w->sum.level > p->max_tokens_milli));
        return;
    case BECALM_BUDGET_AWS:
        promise(w, taken == (w->sum.level >= cost));
        w->sum.level -= taken ? cost : 0;
        return;
    case BECALM_BUDGET_NONE:
        promise(w, taken);
        return;
    case BECALM_BUDGET_RATIO: /* for these three see promise_totals, and take: all reported tokens can be taken */
    case BECALM_BUDGET_ADAPTIVE:
    case BECALM_BUDGET_EARNED:
        return;
    }
}

/* The bounds that hold at every instant. */
static void promise_totals(struct world *w)
{
    const struct becalm_budget_policy *p = &w->policy;
    uint64_t paid = w->sum.paid * 1000000;
    uint64_t of = w->sum.first + (p->of_attempts ? w->sum.paid : 0);
    uint64_t floor = p->min_per_second * (p->window / BECALM_US) * windows_begun(w);
    if (p->kind == BECALM_BUDGET_EARNED) {
        promise(w, w->sum.price <= p->start + w->sum.earned);
        promise(w, w->sum.price <= p->start + 5 * (uint64_t)p->share_ppm * w->sum.good);
    } else if (p->kind == BECALM_BUDGET_RATIO) {
        promise(w, paid <= of * p->share_ppm + floor);
    } else if (p->kind == BECALM_BUDGET_ADAPTIVE) {
        promise(w, paid <= w->sum.first * p->max_share_ppm + windows_begun(w) * 1000000);
    }
}

/* At the moment of a take the window itself is within the share, too. */
static void promise_window(struct world *w)
{
    const struct becalm_budget_policy *p = &w->policy;
    struct becalm_window_sums sums;
    becalm_budget_read(w->b, w->at.now, &sums);
    uint64_t first = sums.lane[0];
    uint64_t retries = sums.lane[1];
    uint64_t of = first + (p->of_attempts ? retries : 0);
    uint64_t floor = p->min_per_second * (p->window / BECALM_US);
    if (p->kind == BECALM_BUDGET_RATIO) {
        promise(w, retries * 1000000 <= of * p->share_ppm + floor);
    } else if (p->kind == BECALM_BUDGET_ADAPTIVE) {
        promise(w, (retries - 1) * 1000000 < first * p->max_share_ppm || (first == 0 && retries == 1));
    }
}

/* ----------------------------------------------------------------------------------------------------------- events */

static enum becalm_outcome_kind draw_outcome(struct world *w)
{
    static const enum becalm_outcome_kind bad[] = {BECALM_OUTCOME_FAILED,    BECALM_OUTCOME_BROKEN,
                                                   BECALM_OUTCOME_REJECTED,  BECALM_OUTCOME_REFUSED,
                                                   BECALM_OUTCOME_TIMED_OUT, BECALM_OUTCOME_CANCELLED};
    if (draw(w, 1000000) < w->good_ppm) {
        return draw(w, 20) == 0 ? BECALM_OUTCOME_PERMANENT : BECALM_OUTCOME_OK;
    }
    return bad[draw(w, sizeof bad / sizeof bad[0])];
}

static bool earns(enum becalm_outcome_kind kind)
{
    return kind == BECALM_OUTCOME_OK || kind == BECALM_OUTCOME_PERMANENT;
}

/* The models of grpc and aws. */
static void model_note(struct world *w, enum becalm_outcome_kind kind, bool retried)
{
    const struct becalm_budget_policy *p = &w->policy;
    uint64_t level = w->sum.level;
    bool ok = kind == BECALM_OUTCOME_OK;
    bool failure = kind == BECALM_OUTCOME_BROKEN || kind == BECALM_OUTCOME_REJECTED ||
                   kind == BECALM_OUTCOME_TIMED_OUT || kind == BECALM_OUTCOME_REFUSED;
    if (p->kind == BECALM_BUDGET_GRPC) {
        level = ok ? becalm_ns_min(level + p->token_ratio_milli, p->max_tokens_milli) : level;
        level = failure ? becalm_ns_since(level, 1000) : level;
    } else if (p->kind == BECALM_BUDGET_AWS && ok && !retried) {
        level = becalm_ns_min(level + 1, p->capacity);
    }
    w->sum.level = level;
}

/* The tokens of one success by the table of docs/budget.md. */
static uint64_t success_earns(uint64_t share, uint64_t lost, uint64_t hard)
{
    bool plain = hard <= 100000;
    if (lost >= (plain ? 900000u : 700000u)) {
        return share / 2;
    }
    uint64_t times = 5000000 - (plain ? 10 * becalm_ns_since(lost, 500000) : 20 * becalm_ns_since(lost, 200000));
    times = plain || lost < 400000 ? times : 1000000;
    return becalm_ns_min(share * times / 1000000 + 1, BECALM_TOKEN);
}

static void note(struct world *w, enum becalm_outcome_kind kind, bool retried)
{
    struct becalm_outcome outcome = {.kind = kind};
    becalm_budget_note(w->b, &w->policy, &w->at, &outcome, retried);
    w->sum.good += earns(kind);
    w->sum.earned += earns(kind) ? success_earns(w->policy.share_ppm, w->sum.lost, w->sum.hard) : 0;
    model_note(w, kind, retried);
}

static bool take(struct world *w, enum becalm_outcome_kind cause, struct becalm_spend *spend)
{
    bool cheap = w->policy.kind == BECALM_BUDGET_EARNED && cause == BECALM_OUTCOME_REFUSED;
    bool counts = w->policy.kind != BECALM_BUDGET_GRPC && w->policy.kind != BECALM_BUDGET_AWS;
    uint64_t left = becalm_budget_left(w->b, &w->policy, w->at.now);
    bool taken = becalm_budget_take(w->b, &w->policy, &w->at, cause, spend);
    promise(w, !counts || taken == (left >= (cheap ? w->policy.never_sent_cost : BECALM_TOKEN)));
    promise_take(w, taken, cause);
    if (taken) {
        w->sum.retries++;
        w->sum.paid++;
        w->sum.price += spend->amount;
        promise_window(w);
    }
    return taken;
}

static void give(struct world *w, struct becalm_spend *spend, enum becalm_spend_end end)
{
    becalm_budget_give(w->b, &w->policy, &w->at, spend, end);
    w->sum.retries--;
    w->sum.paid -= end == BECALM_SPEND_UNUSED;
    w->sum.price -= end == BECALM_SPEND_LOST ? 0 : spend->amount;
    if (end == BECALM_SPEND_WON || end == BECALM_SPEND_LOST) {
        w->sum.lost = w->sum.lost - w->sum.lost / 4 + (end == BECALM_SPEND_LOST ? 250000 : 0);
        w->sum.hard = w->sum.hard - w->sum.hard / 4 + (spend->hard ? 250000 : 0);
    }
    if (w->policy.kind == BECALM_BUDGET_AWS && end != BECALM_SPEND_LOST) {
        w->sum.level = becalm_ns_min(w->sum.level + spend->amount, w->policy.capacity);
    } else if (w->policy.kind == BECALM_BUDGET_TOKENS && end == BECALM_SPEND_UNUSED) {
        tokens_refill(w);
        w->sum.level = becalm_ns_min(w->sum.level + spend->amount, w->policy.capacity * interval(w));
    }
}

static void call_end(struct world *w)
{
    becalm_budget_end(w->b, &w->policy);
    w->sum.calls--;
}

static void attempt_send(struct world *w, struct live *call)
{
    call->attempts++;
    call->stage = ATTEMPT_ENDS;
    call->due_at = w->at.now + w->latency / 2 + draw(w, w->latency);
    push(w, *call);
}

static void attempt_end(struct world *w, struct live *call)
{
    enum becalm_outcome_kind kind = draw_outcome(w);
    bool retried = call->attempts > 1;
    note(w, kind, retried);
    if (retried) {
        bool beaten = kind == BECALM_OUTCOME_CANCELLED && draw(w, 2) == 0;
        give(w, &call->spend, earns(kind) ? BECALM_SPEND_WON : beaten ? BECALM_SPEND_BEATEN : BECALM_SPEND_LOST);
    }
    bool again = !earns(kind) && kind != BECALM_OUTCOME_CANCELLED && call->attempts < ATTEMPTS;
    if (!again || !take(w, kind, &call->spend)) {
        call_end(w);
        return;
    }
    call->stage = WAIT_ENDS;
    call->due_at = w->at.now + draw(w, 200 * BECALM_MS);
    push(w, *call);
}

static void wait_end(struct world *w, struct live *call)
{
    if (draw(w, 10) == 0) {
        give(w, &call->spend, BECALM_SPEND_UNUSED);
        call_end(w);
        return;
    }
    attempt_send(w, call);
}

static void call_begin(struct world *w)
{
    struct live call = {0};
    becalm_budget_begin(w->b, &w->policy, &w->at);
    w->sum.calls++;
    w->sum.first++;
    attempt_send(w, &call);
}

static void live_step(struct world *w)
{
    struct live call = pop(w);
    w->at.now = call.due_at;
    w->at.cell = (uint32_t)draw(w, 4);
    if (call.stage == ATTEMPT_ENDS) {
        attempt_end(w, &call);
    } else {
        wait_end(w, &call);
    }
    promise_totals(w);
}

/* Begins calls at the given rate, with a new latency and a new health in each phase. */
static void run(struct world *w, becalm_ns between, becalm_ns latency_max, unsigned calls)
{
    static const becalm_ns parts[] = {1000, 100, 1, 10, 300, 2};
    static const uint32_t health[] = {990000, 0, 900000, 500000, 0, 700000, 999000, 100000};
    for (unsigned i = 0; i < calls; i++) {
        if (i % (calls / PHASES) == 0) {
            unsigned phase = i / (calls / PHASES);
            w->latency = latency_max / parts[phase % (sizeof parts / sizeof parts[0])] + 1;
            w->good_ppm = health[phase % (sizeof health / sizeof health[0])];
        }
        becalm_ns next = i * between + draw(w, between);
        while (w->live > 0 && w->heap[0].due_at <= next) {
            live_step(w);
        }
        w->at.now = next;
        call_begin(w);
        promise(w, w->live < LIVE_MAX);
    }
    while (w->live > 0) {
        live_step(w);
    }
    promise(w, w->sum.calls == 0 && w->sum.retries == 0);
}

static void explore(const struct becalm_budget_policy *policy, uint64_t seed)
{
    static const struct {
        becalm_ns between;
        becalm_ns latency_max;
        unsigned calls;
    } rates[] = {{10 * BECALM_S, 600 * BECALM_S, 4000},
                 {BECALM_S, 300 * BECALM_S, 8000},
                 {100 * BECALM_MS, 150 * BECALM_S, 16000},
                 {BECALM_MS, 4 * BECALM_S, 48000}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct world w = {.policy = *policy, .seed = seed, .random = seed + i};
        void *memory = aligned_alloc(64, becalm_budget_bytes(policy, 3));
        w.heap = malloc(LIVE_MAX * sizeof *w.heap);
        check_true(memory != NULL && w.heap != NULL);
        w.b = becalm_budget_init(memory, policy, 3);
        w.sum.level = policy->kind == BECALM_BUDGET_GRPC ? policy->max_tokens_milli : policy->capacity;
        if (policy->kind == BECALM_BUDGET_TOKENS) {
            w.sum.level = policy->capacity * interval(&w);
        }
        run(&w, rates[i].between, rates[i].latency_max, RUNS_OF(rates[i].calls));
        free(w.heap);
        free(memory);
    }
}

/* ------------------------------------------------------------------------------------------------------------ tests */

static struct becalm_budget_policy defaults(enum becalm_budget_kind kind)
{
    struct becalm_budget_policy policy;
    becalm_budget_defaults(&policy, kind);
    return policy;
}

static void test_budget__earned_pays_for_failed_retries_from_its_start_and_successes(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    explore(&policy, 1);
    policy.start = 50 * BECALM_TOKEN;
    policy.share_ppm = 333333;
    policy.never_sent_cost = 1;
    explore(&policy, 2);
}

static void test_budget__ratio_never_exceeds_its_percent_at_any_rate_or_latency(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_RATIO);
    explore(&policy, 3);
    policy.window = BECALM_S;
    policy.share_ppm = 333333;
    explore(&policy, 4);
    policy.window = 10 * BECALM_S;
    policy.min_per_second = 2;
    explore(&policy, 5);
    policy.min_per_second = 0;
    policy.of_attempts = true;
    explore(&policy, 6);
}

static void test_budget__adaptive_never_exceeds_its_maximum_by_a_whole_retry(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_ADAPTIVE);
    explore(&policy, 7);
    policy.window = BECALM_S;
    explore(&policy, 8);
}

static void test_budget__tokens_follows_its_bucket_to_the_nanosecond(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_TOKENS);
    explore(&policy, 9);
    policy.capacity = 3;
    policy.refill_per_second = 1;
    explore(&policy, 10);
    policy.refill_every = 7 * BECALM_S + 1; /* slower than one a second, and no divisor of anything */
    explore(&policy, 17);
}

static void test_budget__concurrency_allows_exactly_its_share_of_calls(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_CONCURRENCY);
    explore(&policy, 11);
    policy.min_concurrency = 0;
    policy.share_ppm = 333333;
    explore(&policy, 12);
}

static void test_budget__grpc_and_aws_follow_their_models_exactly(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_GRPC);
    explore(&policy, 13);
    policy.max_tokens_milli = 1000000;
    policy.token_ratio_milli = 546;
    explore(&policy, 14);
    policy = defaults(BECALM_BUDGET_AWS);
    explore(&policy, 15);
    policy = defaults(BECALM_BUDGET_NONE);
    explore(&policy, 16);
}

BECALM_TESTS(cmocka_unit_test(test_budget__earned_pays_for_failed_retries_from_its_start_and_successes),
             cmocka_unit_test(test_budget__ratio_never_exceeds_its_percent_at_any_rate_or_latency),
             cmocka_unit_test(test_budget__adaptive_never_exceeds_its_maximum_by_a_whole_retry),
             cmocka_unit_test(test_budget__tokens_follows_its_bucket_to_the_nanosecond),
             cmocka_unit_test(test_budget__concurrency_allows_exactly_its_share_of_calls),
             cmocka_unit_test(test_budget__grpc_and_aws_follow_their_models_exactly))
