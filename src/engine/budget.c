/* SPDX-License-Identifier: MIT */
#include <becalm/budget.h>

#include "apart_internal.h"
#include "wide_internal.h"
#include "window_internal.h"

#include <string.h>

/* Every kind counts first attempts and retries in its window, for the display. It decides by one of three:
 *
 *   a stock      earned, grpc, aws: `word` is an amount that is added to, up to a cap, and spent
 *   a clock      tokens: `word` is the instant at which the bucket is full again
 *   counts       concurrency: `word` counts calls and retries in progress; ratio, adaptive: the window itself
 *
 * Orders are relaxed throughout: no word here guards other memory, and a lost race only reads the word again. ratio and
 * adaptive need threads to see the notes of all threads; window.c has the memory orders for that. */

#define LINE         64u
#define MILLION      UINT64_C(1000000)
#define GRPC_FAILURE 1000u /* thousandths: a failure takes one token */

/* The window of kinds that have none of their own, and the time over which `earned` counts its W. */
#define SPAN_PLAIN   (10 * BECALM_S)
#define SLICES_PLAIN 10u
#define SLICES_LONG  120u

enum { FIRST, RETRIED, GOOD, ENDED }; /* lanes of the window */
#define LANE(lane) (1u << (lane))

/* Columns of the outcome table as sets: a bit test instead of a call, because every attempt's end asks. */
#define BIT_yes                                            1
#define BIT_no                                             0
#define LISTED_BIT(name, word, listed, ...)                | BIT_##listed << name
#define EARNING_BIT(name, word, listed, retry, earns, ...) | BIT_##earns << name
enum { LISTED_SET = 0 BECALM_OUTCOMES(LISTED_BIT), EARNING_SET = 0 BECALM_OUTCOMES(EARNING_BIT) };

static bool earning(enum becalm_outcome_kind kind)
{
    return (BECALM_OUTCOME_BIT(kind) & (unsigned)EARNING_SET) != 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* n whole retries in millionths. */
static uint64_t millionths(uint64_t n)
{
    return n < UINT64_MAX / MILLION ? n * MILLION : UINT64_MAX;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static bool has_window(const struct becalm_budget_policy *policy)
{
    return policy->kind == BECALM_BUDGET_RATIO || policy->kind == BECALM_BUDGET_ADAPTIVE;
}

/* Slices of one second where that gives neither too few of them nor too many. */
static uint32_t slices_of(becalm_ns window)
{
    if (window < SLICES_PLAIN * BECALM_S) {
        return SLICES_PLAIN;
    }
    return window <= SLICES_LONG * BECALM_S ? (uint32_t)(window / BECALM_S) : SLICES_LONG;
}

static struct becalm_window_shape shape_of(const struct becalm_budget_policy *policy, uint32_t cells)
{
    struct becalm_window_shape shape = {.kind = BECALM_WINDOW_TIME, .span = SPAN_PLAIN, .slices = SLICES_PLAIN};
    if (has_window(policy)) {
        shape.span = policy->window;
        shape.slices = slices_of(policy->window);
    }
    shape.lanes = policy->kind == BECALM_BUDGET_ADAPTIVE ? ENDED + 1 : RETRIED + 1;
    shape.cells = cells < 1 ? 1 : (uint32_t)least(cells, BECALM_WINDOW_CELLS_MAX); /* only a hint */
    return shape;
}

/* The window lies right behind the budget's own line, at the same distance wherever the memory is mapped. */
static inline struct becalm_window *window_of(const struct becalm_budget *b)
{
    return (struct becalm_window *)((uintptr_t)b + LINE);
}

size_t becalm_budget_bytes(const struct becalm_budget_policy *policy, uint32_t cells)
{
    if (becalm_budget_check(policy, NULL) != 0) {
        return 0;
    }
    struct becalm_window_shape shape = shape_of(policy, cells);
    return LINE + becalm_window_bytes(&shape);
}

static uint64_t word_at_start(const struct becalm_budget_policy *policy)
{
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return policy->start;
    case BECALM_BUDGET_GRPC:
        return policy->max_tokens_milli;
    case BECALM_BUDGET_AWS:
        return policy->capacity;
    case BECALM_BUDGET_TOKENS:
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_CONCURRENCY:
    case BECALM_BUDGET_ADAPTIVE:
    case BECALM_BUDGET_NONE:
        return 0;
    }
    BECALM_UNREACHABLE();
}

struct becalm_budget *becalm_budget_init(void *memory, const struct becalm_budget_policy *policy, uint32_t cells)
{
    _Static_assert(sizeof(struct becalm_budget) <= LINE, "the window begins on a line of its own");
    BECALM_ASSERT(becalm_budget_check(policy, NULL) == 0);
    struct becalm_window_shape shape = shape_of(policy, cells);
    struct becalm_budget *b = memory;
    memset(b, 0, LINE);
    (void)becalm_window_init(window_of(b), &shape);
    atomic_init(&b->word, word_at_start(policy));
    atomic_init(&b->cap, 0);
    atomic_init(&b->lost, 0);
    return b;
}

/* ------------------------------------------------------------------------------------------------------------ stock */

static uint64_t word_load(const struct becalm_budget *b)
{
    return atomic_load_explicit(&b->word, memory_order_relaxed);
}

/* False: another thread was first, and *seen is now the value that it wrote. */
static bool word_swap(struct becalm_budget *b, uint64_t *seen, uint64_t next)
{
    return atomic_compare_exchange_weak_explicit(&b->word, seen, next, memory_order_relaxed, memory_order_relaxed);
}

/* The cap moves a little with the traffic of each second. A stock just above it is left alone, because following every
 * move would write the word that all threads share; spending never counts more than the cap. */
static inline bool stock_is_full(uint64_t have, uint64_t cap)
{
    return have >= cap && have - cap <= cap / 8;
}

/* Adds up to the cap. A full stock is not written at all, so that healthy threads don't meet here. */
static void stock_add(struct becalm_budget *b, uint64_t amount, uint64_t cap)
{
    uint64_t have = word_load(b);
    for (;;) {
        if (stock_is_full(have, cap)) {
            return;
        }
        uint64_t next = least(have + amount, cap);
        if (next == have || word_swap(b, &have, next)) {
            return;
        }
    }
}

/* Tokens above the cap are lost with the first spending. */
static bool stock_spend(struct becalm_budget *b, uint64_t price, uint64_t cap)
{
    uint64_t have = word_load(b);
    while (least(have, cap) >= price) {
        if (word_swap(b, &have, least(have, cap) - price)) {
            return true;
        }
    }
    return false;
}

static void stock_drop(struct becalm_budget *b, uint64_t amount)
{
    uint64_t have = word_load(b);
    while (have > 0 && !word_swap(b, &have, minus(have, amount))) {
    }
}

/* ----------------------------------------------------------------------------------------------------------- earned */

/* The cap is max(1, min(10, W/10), W/50) tokens, and 2 at least where retries win; in fiftieths of a token it needs no
 * fraction. Summing W takes longer than everything else here, so it is kept in one word {tick:42, fiftieths:22} with
 * the tick until which it stands. A cap never decides whether a retry is allowed, because it is at least the price of
 * one: it only says how much may be banked. For that a figure that is 67 ms old will do where there is much traffic;
 * where there is little, a page of fifty calls may begin and be half over in that time, and must be seen. */
#define FIFTIETH  (BECALM_TOKEN / 50)
#define CAP_BITS  22u
#define CAP_MASK  ((UINT64_C(1) << CAP_BITS) - 1)
#define TICK_BITS 22u /* 2^22 ns: 4 ms */
#define MUCH      500u
#define MUCH_FOR  16u /* ticks: 67 ms */

static uint64_t earned_floor(const struct becalm_budget *b);

static uint64_t cap_word(const struct becalm_budget *b, becalm_ns now)
{
    uint64_t w = least(becalm_window_sum(window_of(b), now, FIRST), CAP_MASK);
    uint64_t banked = least(500, 5 * w);
    uint64_t cap = w > banked ? w : banked;
    uint64_t floor = earned_floor(b);
    uint64_t until = (now >> TICK_BITS) + (w < MUCH ? 0 : MUCH_FOR - 1);
    return until << CAP_BITS | (cap > floor ? cap : floor);
}

/* An older now, and the time until a carried cap runs out, find a tick ahead of them and leave the word alone. */
static bool cap_is_current(uint64_t word, becalm_ns now)
{
    return word != 0 && word >> CAP_BITS >= now >> TICK_BITS;
}

static uint64_t cap_tokens(uint64_t word)
{
    return (word & CAP_MASK) * FIFTIETH;
}

static uint64_t earned_peek_cap(const struct becalm_budget *b, becalm_ns now)
{
    uint64_t word = atomic_load_explicit(&b->cap, memory_order_relaxed);
    return cap_tokens(cap_is_current(word, now) ? word : cap_word(b, now));
}

static uint64_t earned_cap(struct becalm_budget *b, becalm_ns now)
{
    uint64_t word = atomic_load_explicit(&b->cap, memory_order_relaxed);
    if (!cap_is_current(word, now)) {
        word = cap_word(b, now);
        atomic_store_explicit(&b->cap, word, memory_order_relaxed);
    }
    return cap_tokens(word);
}

static uint64_t earned_price(const struct becalm_budget_policy *policy, enum becalm_outcome_kind cause)
{
    return cause == BECALM_OUTCOME_REFUSED ? policy->never_sent_cost : BECALM_TOKEN;
}

/* Retries that win cost the service little and help a lot; retries that lose are the storm. So the earnings of a
 * success follow how the latest retries ended: a moving mean with LOST as 1, WON as 0, each with a weight of a quarter.
 * It starts at 0, because a quiet caller has few retries to learn from, and `start` pays for the first that loses.
 *
 * How many retries may be lost depends on the failure before them. Timeouts and rejections are signs of overload, but a
 * timeout may also be too short for a healthy service. In an overload nearly all retries are lost, so earnings shrink
 * slowly from a fifth of them on. Where nearly all of the latest retries followed another failure, half of them may be
 * lost: a bad host behind one address fails at the same rate, however often it is called. Both means are in one word
 * {retries have won:1, hard:20, lost:20}.
 */
#define LEARN_WEIGHT 4
#define SHARE_BITS   20u
#define SHARE_MASK   ((UINT64_C(1) << SHARE_BITS) - 1)
#define HAVE_WON     (UINT64_C(1) << 2 * SHARE_BITS)
#define HARD_FEW     (MILLION / 10)

/* Up to `few` a success earns five times the share, from `many` on the share itself, from `most` on half of it. */
struct earned_rule {
    uint64_t few, many, most;
};

static const struct earned_rule rule_hard = {MILLION / 5, MILLION * 7 / 10, MILLION * 9 / 10};
static const struct earned_rule rule_plain = {MILLION / 2, MILLION * 9 / 10, MILLION * 9 / 10};

static uint64_t learned(const struct becalm_budget *b)
{
    return atomic_load_explicit(&b->lost, memory_order_relaxed);
}

static uint64_t lost_in(uint64_t word)
{
    return word & SHARE_MASK;
}

static uint64_t hard_in(uint64_t word)
{
    return word >> SHARE_BITS & SHARE_MASK;
}

static bool learned_is_sound(uint64_t word)
{
    return lost_in(word) <= MILLION && hard_in(word) <= MILLION && word < 2 * HAVE_WON;
}

static const struct earned_rule *rule_of(uint64_t word)
{
    return hard_in(word) > HARD_FEW ? &rule_hard : &rule_plain;
}

static uint64_t moved(uint64_t share, bool up)
{
    return share - share / LEARN_WEIGHT + (up ? MILLION / LEARN_WEIGHT : 0);
}

static void earned_learn(struct becalm_budget *b, bool lost, bool hard)
{
    uint64_t word = learned(b);
    uint64_t next;
    do {
        next = moved(hard_in(word), hard) << SHARE_BITS | moved(lost_in(word), lost);
        next |= (word & HAVE_WON) | (lost ? 0 : HAVE_WON);
    } while (!atomic_compare_exchange_weak_explicit(&b->lost, &word, next, memory_order_relaxed, memory_order_relaxed));
}

/* In fiftieths: a quiet caller may bank a second retry once one has won, while few are lost. */
static uint64_t earned_floor(const struct becalm_budget *b)
{
    uint64_t word = learned(b);
    return (word & HAVE_WON) != 0 && lost_in(word) <= rule_hard.few ? 100 : 50;
}

/* The earnings of one success: never more than a token. */
static uint64_t earned_by_success(const struct becalm_budget *b, const struct becalm_budget_policy *policy)
{
    uint64_t word = learned(b);
    const struct earned_rule *rule = rule_of(word);
    uint64_t lost = lost_in(word);
    uint64_t share = policy->share_ppm;
    if (lost >= rule->many) {
        return lost >= rule->most ? share / 2 : share;
    }
    uint64_t above = lost > rule->few ? lost - rule->few : 0;
    uint64_t span = rule->many - rule->few;
    uint64_t more = share * (BECALM_EARNED_FAVOUR - 1) * (span - above) / span;
    return least(share + more, BECALM_TOKEN);
}

/* With a full stock the results of retries are not read. */
static void earned_deposit(struct becalm_budget *b, const struct becalm_budget_policy *policy, uint64_t cap)
{
    if (!stock_is_full(word_load(b), cap)) {
        stock_add(b, earned_by_success(b, policy), cap);
    }
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

/* `word` is the instant at which the bucket is full again, and every token taken moves it on by the time of one refill.
 * So fractions carry over by themselves, and an older now finds the bucket emptier, never fuller. Without a refill it
 * is simply the number of tokens taken. */

static bool tokens_come_back(const struct becalm_budget_policy *policy)
{
    return policy->refill_every > 0 || policy->refill_per_second > 0;
}

/* Rounded up: never more tokens than the policy says. */
static becalm_ns tokens_interval(const struct becalm_budget_policy *policy)
{
    if (policy->refill_every > 0) {
        return policy->refill_every;
    }
    return (BECALM_S + policy->refill_per_second - 1) / policy->refill_per_second;
}

static bool tokens_count(struct becalm_budget *b, uint32_t capacity)
{
    uint64_t taken = word_load(b);
    while (taken < capacity) {
        if (word_swap(b, &taken, taken + 1)) {
            return true;
        }
    }
    return false;
}

static bool tokens_take(struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    if (!tokens_come_back(policy)) {
        return tokens_count(b, policy->capacity);
    }
    becalm_ns interval = tokens_interval(policy);
    becalm_ns full_at = word_load(b);
    for (;;) {
        becalm_ns next = becalm_ns_after(becalm_ns_max(full_at, now), interval);
        if (next == BECALM_NEVER || becalm_ns_since(next, now) > policy->capacity * interval) {
            return false;
        }
        if (word_swap(b, &full_at, next)) {
            return true;
        }
    }
}

/* Millionths of an interval, rounded up; of a long one a millionth of it more. */
static uint64_t tokens_part(becalm_ns missing, becalm_ns interval)
{
    if (interval <= UINT64_MAX / (2 * MILLION)) {
        return (missing * MILLION + interval - 1) / interval;
    }
    return least(missing / (interval / MILLION) + (missing > 0), MILLION);
}

/* Rounded down. */
static uint64_t tokens_left(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    uint64_t full = policy->capacity * MILLION;
    if (!tokens_come_back(policy)) {
        return minus(full, millionths(word_load(b)));
    }
    becalm_ns interval = tokens_interval(policy);
    becalm_ns missing = least(becalm_ns_since(word_load(b), now), policy->capacity * interval);
    return minus(full, missing / interval * MILLION + tokens_part(missing % interval, interval));
}

/* ------------------------------------------------------------------------------------------------------ concurrency */

/* `word` is {retries in progress:32, calls in progress:32}. Calls, also while they wait to retry, and never attempts:
 * else waiting would shrink the limit and retries would raise it. */
#define ONE_RETRY (UINT64_C(1) << 32)

static uint64_t retries_in(uint64_t word)
{
    return word >> 32;
}

static uint64_t calls_in(uint64_t word)
{
    return (uint32_t)word;
}

static uint64_t concurrency_limit(const struct becalm_budget_policy *policy, uint64_t word)
{
    uint64_t limit = calls_in(word) * policy->share_ppm / MILLION;
    return limit > policy->min_concurrency ? limit : policy->min_concurrency;
}

static bool concurrency_take(struct becalm_budget *b, const struct becalm_budget_policy *policy)
{
    uint64_t word = word_load(b);
    while (retries_in(word) < concurrency_limit(policy, word)) {
        if (word_swap(b, &word, word + ONE_RETRY)) {
            return true;
        }
    }
    return false;
}

/* Stops at 0: after a reload a call may end here that began in the old budget. */
static void concurrency_leave(struct becalm_budget *b, uint64_t one)
{
    uint64_t word = word_load(b);
    while ((one == ONE_RETRY ? retries_in(word) : calls_in(word)) > 0 && !word_swap(b, &word, word - one)) {
    }
}

/* -------------------------------------------------------------------------------------------------- ratio, adaptive */

/* Retries that are always allowed, in millionths. */
static uint64_t ratio_floor(const struct becalm_budget_policy *policy)
{
    return policy->min_per_second * (policy->window / BECALM_US);
}

/* Millionths of retries for so many first attempts, or attempts. The bound keeps the product within 64 bits. */
static uint64_t share_of(uint64_t attempts, uint64_t share_ppm)
{
    return least(attempts, UINT32_MAX) * share_ppm;
}

static bool ratio_allows(const struct becalm_budget_policy *policy, uint64_t first, uint64_t retries)
{
    uint64_t of = policy->of_attempts ? first + retries : first;
    return millionths(retries) <= share_of(of, policy->share_ppm) + ratio_floor(policy);
}

/* Rounded down, so never above the exact share. An empty window is taken as all success. */
static uint64_t adaptive_share(const struct becalm_budget_policy *policy, const struct becalm_window_sums *sums)
{
    uint64_t ended = sums->lane[ENDED];
    uint64_t good = least(sums->lane[GOOD], ended);
    uint64_t more = policy->max_share_ppm - policy->min_share_ppm;
    return ended == 0 ? policy->max_share_ppm : policy->min_share_ppm + more * good / ended;
}

/* Strictly below before the retry is added. With no first attempt at all in the window, one retry is let through: that
 * is how a call that outlasts the window can retry; letting all through would be no bound. */
static bool adaptive_allows(const struct becalm_budget_policy *policy, const struct becalm_window_sums *sums,
                            uint64_t retries)
{
    if (sums->lane[FIRST] == 0) {
        return retries <= 1;
    }
    return millionths(minus(retries, 1)) < share_of(sums->lane[FIRST], adaptive_share(policy, sums));
}

/* Are the retries in the window, and `more` on top of them, within the share? */
static bool window_allows(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now,
                          uint64_t more)
{
    struct becalm_window_sums sums;
    becalm_window_read(window_of(b), now, &sums);
    uint64_t retries = sums.lane[RETRIED] + more;
    if (policy->kind == BECALM_BUDGET_ADAPTIVE) {
        return adaptive_allows(policy, &sums, retries);
    }
    return ratio_allows(policy, sums.lane[FIRST], retries);
}

/* First counts the retry and then looks, and takes it back if that was one too many. Of several threads that do this at
 * once, the last to count sees the counts of all: a race may refuse a retry that there was room for, but never
 * overspends. The plain look before it spares the writes, and the false refusals that they cause, when nothing is left
 * anyway. */
static bool window_take(struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    if (!window_allows(b, policy, now, 1)) {
        return false;
    }
    struct becalm_moment at = {.now = now, .cell = 0};
    becalm_window_note(window_of(b), &at, LANE(RETRIED));
    if (window_allows(b, policy, now, 0)) {
        return true;
    }
    becalm_window_undo(window_of(b), now, 0, LANE(RETRIED));
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- grpc */

/* A failure is an outcome that would be retried, or with which the server asked not to retry. A refused connection is a
 * failure, too, because the application sees UNAVAILABLE. gRPC's transparent retries are free, but are not reported
 * here.
 */
static bool grpc_failure(const struct becalm_outcome *outcome)
{
    if (outcome->stop) {
        return true;
    }
    bool by_kind = (BECALM_OUTCOME_BIT(outcome->kind) & (unsigned)LISTED_SET) != 0;
    return outcome->kind != BECALM_OUTCOME_PERMANENT &&
           (outcome->listed == BECALM_LISTED_YES || (outcome->listed == BECALM_LISTED_BY_KIND && by_kind));
}

static void grpc_note(struct becalm_budget *b, const struct becalm_budget_policy *policy,
                      const struct becalm_outcome *outcome)
{
    if (outcome->kind == BECALM_OUTCOME_OK) {
        stock_add(b, policy->token_ratio_milli, policy->max_tokens_milli);
    } else if (outcome->kind != BECALM_OUTCOME_CANCELLED && grpc_failure(outcome)) {
        stock_drop(b, GRPC_FAILURE);
    }
}

/* -------------------------------------------------------------------------------------------------------- interface */

void becalm_budget_begin(struct becalm_budget *b, const struct becalm_budget_policy *policy,
                         const struct becalm_moment *at)
{
    if (policy->kind == BECALM_BUDGET_CONCURRENCY) {
        atomic_fetch_add_explicit(&b->word, 1, memory_order_relaxed);
    }
    becalm__window_note_one(window_of(b), at, FIRST);
}

void becalm_budget_end(struct becalm_budget *b, const struct becalm_budget_policy *policy)
{
    if (policy->kind == BECALM_BUDGET_CONCURRENCY) {
        concurrency_leave(b, 1);
    }
}

BECALM__OUTLINE static void note(struct becalm_budget *b, const struct becalm_budget_policy *policy,
                                 const struct becalm_moment *at, const struct becalm_outcome *outcome, bool retried)
{
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        if (earning(outcome->kind)) {
            earned_deposit(b, policy, earned_cap(b, at->now));
        }
        return;
    case BECALM_BUDGET_ADAPTIVE:
        if (outcome->kind != BECALM_OUTCOME_CANCELLED) { /* that says nothing about the callee */
            becalm_window_note(window_of(b), at, LANE(ENDED) | (earning(outcome->kind) ? LANE(GOOD) : 0));
        }
        return;
    case BECALM_BUDGET_GRPC:
        grpc_note(b, policy, outcome);
        return;
    case BECALM_BUDGET_AWS:
        if (outcome->kind == BECALM_OUTCOME_OK && !retried) {
            stock_add(b, 1, policy->capacity);
        }
        return;
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_TOKENS:
    case BECALM_BUDGET_CONCURRENCY:
    case BECALM_BUDGET_NONE:
        return;
    }
    BECALM_UNREACHABLE();
}

void becalm_budget_note(struct becalm_budget *b, const struct becalm_budget_policy *policy,
                        const struct becalm_moment *at, const struct becalm_outcome *outcome, bool retried)
{
    /* The way of every healthy call of the default kind, ahead of the switch. */
    uint64_t cap = atomic_load_explicit(&b->cap, memory_order_relaxed);
    if (policy->kind == BECALM_BUDGET_EARNED && earning(outcome->kind) && cap_is_current(cap, at->now)) {
        earned_deposit(b, policy, cap_tokens(cap));
        return;
    }
    note(b, policy, at, outcome, retried);
}

/* The price of a retry in units of the word, taken and given back; 0 for kinds that don't spend. */
static uint64_t price_of(const struct becalm_budget_policy *policy, enum becalm_outcome_kind cause)
{
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return earned_price(policy, cause);
    case BECALM_BUDGET_TOKENS:
        return tokens_come_back(policy) ? tokens_interval(policy) : 1;
    case BECALM_BUDGET_AWS:
        return cause == BECALM_OUTCOME_TIMED_OUT ? policy->timeout_cost : policy->retry_cost;
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_CONCURRENCY:
    case BECALM_BUDGET_ADAPTIVE:
    case BECALM_BUDGET_GRPC:
    case BECALM_BUDGET_NONE:
        return 0;
    }
    BECALM_UNREACHABLE();
}

uint64_t becalm_budget_price(const struct becalm_budget_policy *policy, enum becalm_outcome_kind cause)
{
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return earned_price(policy, cause);
    case BECALM_BUDGET_AWS: /* a plain retry is one; others cost so many of it */
        return price_of(policy, cause) * MILLION / policy->retry_cost;
    case BECALM_BUDGET_TOKENS:
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_CONCURRENCY:
    case BECALM_BUDGET_ADAPTIVE:
    case BECALM_BUDGET_GRPC:
    case BECALM_BUDGET_NONE:
        return BECALM_TOKEN;
    }
    BECALM_UNREACHABLE();
}

static bool pay(struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now, uint64_t price)
{
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return stock_spend(b, price, earned_cap(b, now));
    case BECALM_BUDGET_TOKENS:
        return tokens_take(b, policy, now);
    case BECALM_BUDGET_CONCURRENCY:
        return concurrency_take(b, policy);
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_ADAPTIVE:
        return window_take(b, policy, now);
    case BECALM_BUDGET_GRPC:
        return 2 * word_load(b) > policy->max_tokens_milli; /* the failure that led here has paid already */
    case BECALM_BUDGET_AWS:
        return stock_spend(b, price, policy->capacity);
    case BECALM_BUDGET_NONE:
        return true;
    }
    BECALM_UNREACHABLE();
}

/* The signs of overload: no answer in time, or a rejection. */
static bool is_hard(enum becalm_outcome_kind cause)
{
    unsigned hard = BECALM_OUTCOME_BIT(BECALM_OUTCOME_TIMED_OUT) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_LATE) |
                    BECALM_OUTCOME_BIT(BECALM_OUTCOME_REJECTED) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_RATE_LIMITED);
    return (BECALM_OUTCOME_BIT(cause) & hard) != 0;
}

BECALM__OUTLINE static bool take(struct becalm_budget *b, const struct becalm_budget_policy *policy,
                                 const struct becalm_moment *at, enum becalm_outcome_kind cause,
                                 struct becalm_spend *spend)
{
    uint64_t price = price_of(policy, cause);
    if (!pay(b, policy, at->now, price)) {
        return false;
    }
    bool counted = has_window(policy); /* by window_take, in cell 0 */
    if (!counted) {
        becalm_window_note(window_of(b), at, LANE(RETRIED));
    }
    *spend = (struct becalm_spend){
        .amount = price, .taken_at = at->now, .cell = counted ? 0 : at->cell, .held = true, .hard = is_hard(cause)};
    return true;
}

bool becalm_budget_take(struct becalm_budget *b, const struct becalm_budget_policy *policy,
                        const struct becalm_moment *at, enum becalm_outcome_kind cause, struct becalm_spend *spend)
{
    /* Of the default kind most takes in a storm are refused: no cap is below the price, so there is no need of it. */
    if (policy->kind == BECALM_BUDGET_EARNED && word_load(b) < earned_price(policy, cause)) {
        return false;
    }
    return take(b, policy, at, cause, spend);
}

void becalm_budget_give(struct becalm_budget *b, const struct becalm_budget_policy *policy,
                        const struct becalm_moment *at, struct becalm_spend *spend, enum becalm_spend_end end)
{
    if (!spend->held) {
        return;
    }
    spend->held = false;
    if (end == BECALM_SPEND_UNUSED) {
        becalm_window_undo(window_of(b), spend->taken_at, spend->cell, LANE(RETRIED));
    }
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        if (end == BECALM_SPEND_WON || end == BECALM_SPEND_LOST) {
            earned_learn(b, end == BECALM_SPEND_LOST, spend->hard);
        }
        if (end != BECALM_SPEND_LOST) {
            stock_add(b, spend->amount, earned_cap(b, at->now));
        }
        return;
    case BECALM_BUDGET_AWS:
        if (end != BECALM_SPEND_LOST) {
            stock_add(b, spend->amount, policy->capacity);
        }
        return;
    case BECALM_BUDGET_TOKENS:
        if (end == BECALM_SPEND_UNUSED) {
            stock_drop(b, spend->amount); /* full again that much earlier */
        }
        return;
    case BECALM_BUDGET_CONCURRENCY:
        concurrency_leave(b, ONE_RETRY);
        return;
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_ADAPTIVE:
    case BECALM_BUDGET_GRPC:
    case BECALM_BUDGET_NONE:
        return;
    }
    BECALM_UNREACHABLE();
}

/* ---------------------------------------------------------------------------------------------------------- display */

static uint64_t ratio_left(const struct becalm_budget_policy *policy, uint64_t first, uint64_t retries)
{
    uint64_t of = policy->of_attempts ? first + retries : first;
    uint64_t room = minus(share_of(of, policy->share_ppm) + ratio_floor(policy), millionths(retries));
    if (!policy->of_attempts) {
        return room;
    }
    /* Each further retry is an attempt too, so it takes only 1 - share of the room. */
    uint64_t each = MILLION - policy->share_ppm;
    uint64_t whole = millionths(room / each);
    return whole == UINT64_MAX ? whole : whole + room % each * MILLION / each;
}

static uint64_t window_left(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    struct becalm_window_sums sums;
    becalm_window_read(window_of(b), now, &sums);
    uint64_t retries = sums.lane[RETRIED];
    if (policy->kind == BECALM_BUDGET_RATIO) {
        return ratio_left(policy, sums.lane[FIRST], retries);
    }
    uint64_t share = share_of(sums.lane[FIRST], adaptive_share(policy, &sums));
    uint64_t limit = sums.lane[FIRST] == 0 ? 1 : share / MILLION + (share % MILLION != 0);
    return millionths(minus(limit, retries));
}

uint64_t becalm_budget_left(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    uint64_t word = word_load(b);
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return least(word, earned_peek_cap(b, now));
    case BECALM_BUDGET_TOKENS:
        return tokens_left(b, policy, now);
    case BECALM_BUDGET_CONCURRENCY:
        return millionths(minus(concurrency_limit(policy, word), retries_in(word)));
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_ADAPTIVE:
        return window_left(b, policy, now);
    case BECALM_BUDGET_GRPC: /* the tokens above half, from thousandths to millionths */
        return minus(2 * least(word, policy->max_tokens_milli), policy->max_tokens_milli) * 500;
    case BECALM_BUDGET_AWS:
        return least(word, policy->capacity) * MILLION / policy->retry_cost;
    case BECALM_BUDGET_NONE:
        return UINT64_MAX;
    }
    BECALM_UNREACHABLE();
}

void becalm_budget_read(const struct becalm_budget *b, becalm_ns now, struct becalm_window_sums *sums)
{
    becalm_window_read(window_of(b), now, sums);
}

uint32_t becalm_budget_retry_ratio(const struct becalm_budget *b, becalm_ns now)
{
    uint64_t first = becalm_window_sum(window_of(b), now, FIRST);
    uint64_t retries = becalm_window_sum(window_of(b), now, RETRIED);
    return first == 0 ? 0 : (uint32_t)least(millionths(retries) / first, UINT32_MAX);
}

/* have / full of `of`, to the nearest; have <= full. In steps of 2^-32, since only the product may have 128 bits. */
static uint64_t in_proportion(uint64_t have, uint64_t full, uint64_t of)
{
    while (full > UINT32_MAX) {
        full >>= 1;
        have >>= 1;
    }
    uint64_t fraction = (have << 32) / full;
    return (uint64_t)(((becalm__wide)fraction * of + (UINT64_C(1) << 31)) >> 32);
}

/* Retries that are counted now by a kind that has no stock. */
static uint64_t counted(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    return policy->kind == BECALM_BUDGET_CONCURRENCY ? retries_in(word_load(b))
                                                     : becalm_window_sum(window_of(b), now, RETRIED);
}

uint64_t becalm_budget_cap(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    uint64_t left;
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return earned_peek_cap(b, now);
    case BECALM_BUDGET_TOKENS:
        return policy->capacity * MILLION;
    case BECALM_BUDGET_GRPC:
        return policy->max_tokens_milli * UINT64_C(500);
    case BECALM_BUDGET_AWS:
        return policy->capacity * MILLION / policy->retry_cost;
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_ADAPTIVE:
    case BECALM_BUDGET_CONCURRENCY:
        left = becalm_budget_left(b, policy, now);
        return left + least(millionths(counted(b, policy, now)), UINT64_MAX - left);
    case BECALM_BUDGET_NONE:
        return UINT64_MAX;
    }
    BECALM_UNREACHABLE();
}

uint32_t becalm_budget_fill_ppm(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    uint64_t cap = becalm_budget_cap(b, policy, now);
    uint64_t left = least(becalm_budget_left(b, policy, now), cap); /* other threads may spend between the two */
    return cap == 0 ? 0 : cap == UINT64_MAX ? MILLION : (uint32_t)in_proportion(left, cap, MILLION);
}

/* ------------------------------------------------------------------------------------------------------------ sound */

/* Is the word one that this policy can have left? `now` may be older than the word: others write it meanwhile. */
static bool word_is_sound(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now)
{
    uint64_t word = word_load(b);
    uint64_t cap = atomic_load_explicit(&b->cap, memory_order_relaxed);
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return word <= CAP_MASK * FIFTIETH && learned_is_sound(learned(b)) &&
               cap >> CAP_BITS <= becalm_ns_after(now, SPAN_PLAIN + BECALM_S) >> TICK_BITS;
    case BECALM_BUDGET_TOKENS:
        return tokens_come_back(policy)
                   ? becalm_ns_since(word, now) <= policy->capacity * tokens_interval(policy) + BECALM_S
                   : word <= policy->capacity;
    case BECALM_BUDGET_GRPC:
        return word <= policy->max_tokens_milli;
    case BECALM_BUDGET_AWS:
        return word <= policy->capacity;
    case BECALM_BUDGET_CONCURRENCY: /* any number of calls and retries may be in progress */
        return true;
    case BECALM_BUDGET_RATIO:
    case BECALM_BUDGET_ADAPTIVE:
    case BECALM_BUDGET_NONE:
        return word == 0;
    }
    return false;
}

bool becalm_budget_sound(const void *memory, const struct becalm_budget_policy *policy, uint32_t cells, becalm_ns now)
{
    BECALM_ASSERT(becalm_budget_check(policy, NULL) == 0);
    const struct becalm_budget *b = memory;
    struct becalm_window_shape shape = shape_of(policy, cells);
    return becalm_window_sound(window_of(b), &shape) && word_is_sound(b, policy, now);
}

/* ------------------------------------------------------------------------------------------------------------ carry */

/* As in_proportion(), but rounded down, for stocks that are counted in whole units: numbers that change back and forth
 * must not make a unit out of halves. The rounding error of the fraction itself is added again first. */
static uint64_t units_in_proportion(uint64_t have, uint64_t full, uint64_t of)
{
    while (full > UINT32_MAX) {
        full >>= 1;
        have >>= 1;
    }
    uint64_t fraction = (have << 32) / full + 4;
    return least((uint64_t)((becalm__wide)fraction * of >> 32), of);
}

/* Kinds without a stock count as full: their counts start at 0 in the other budget. */
static void fill_of(const struct becalm_budget *b, const struct becalm_budget_policy *policy, becalm_ns now,
                    uint64_t *have, uint64_t *full)
{
    *have = *full = 1;
    if (policy->kind == BECALM_BUDGET_EARNED) {
        *full = earned_peek_cap(b, now);
        *have = least(word_load(b), *full);
    } else if (policy->kind == BECALM_BUDGET_TOKENS) {
        *full = policy->capacity * MILLION;
        *have = tokens_left(b, policy, now);
    } else if (policy->kind == BECALM_BUDGET_GRPC || policy->kind == BECALM_BUDGET_AWS) {
        *full = word_at_start(policy);
        *have = least(word_load(b), *full);
    }
}

void becalm_budget_carry(struct becalm_budget *to, const struct becalm_budget_policy *to_policy,
                         const struct becalm_budget *from, const struct becalm_budget_policy *from_policy,
                         becalm_ns now)
{
    uint64_t have;
    uint64_t full;
    fill_of(from, from_policy, now, &have, &full);
    uint64_t word = word_load(to);
    if (to_policy->kind == BECALM_BUDGET_EARNED && from_policy->kind == BECALM_BUDGET_EARNED) {
        /* The new window knows no W yet, so the old cap stands until it has seen as much as the old one had. */
        uint64_t until = becalm_ns_after(now, SPAN_PLAIN) >> TICK_BITS << CAP_BITS;
        atomic_store_explicit(&to->cap, until | full / FIFTIETH, memory_order_relaxed);
        atomic_store_explicit(&to->lost, learned(from), memory_order_relaxed);
        word = have;
    } else if (to_policy->kind == BECALM_BUDGET_EARNED) {
        word = in_proportion(have, full, BECALM_TOKEN); /* the cap of an empty window */
    } else if (to_policy->kind == BECALM_BUDGET_TOKENS) {
        bool refilled = tokens_come_back(to_policy);
        uint64_t whole = to_policy->capacity * (refilled ? tokens_interval(to_policy) : 1);
        uint64_t missing = whole - (refilled ? in_proportion : units_in_proportion)(have, full, whole);
        word = refilled ? becalm_ns_after(now, missing) : missing;
    } else if (to_policy->kind == BECALM_BUDGET_GRPC || to_policy->kind == BECALM_BUDGET_AWS) {
        word = units_in_proportion(have, full, word);
    }
    atomic_store_explicit(&to->word, word, memory_order_relaxed);
}
