/* SPDX-License-Identifier: MIT */
#include "outlier_internal.h"

#include <string.h>

#define LINE       64u
#define SLICES     10u
#define ASKED_MAX  64u     /* others that a host is compared with: reading a window takes a moment */
#define TIMES_MAX  100000u /* far beyond max_ejection; keeps the product small */
#define WORD_BITS  64u
#define ANSWERS_OF 16u                 /* of so many results a host that only sheds load answers one */
#define ONE_FAILS  (UINT64_C(1) << 32) /* in `out` */
#define FRESH      BECALM_S            /* a failure makes its host a second choice for at most this time */

/* late: timeouts and slow answers; shed: rejections */
enum { LANE_RESULTS, LANE_FAILED, LANE_LATE, LANE_SHED, LANE_COUNT };

_Static_assert(sizeof(struct becalm_host) == LINE, "a host is one cache line, so that two hosts never share one");

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

void becalm_outlier_defaults(struct becalm_outlier_policy *policy)
{
    *policy = (struct becalm_outlier_policy){
        .enabled = true,
        .failure_share_ppm = 500000,
        .min_calls = 5,
        .window = 10 * BECALM_S,
        .consecutive = 0,
        .interval = 30 * BECALM_S,
        .base_ejection = 5 * BECALM_S,
        .max_ejection = 300 * BECALM_S,
        .max_ejected_ppm = 500000,
    };
}

void becalm_outlier_istio(struct becalm_outlier_policy *policy)
{
    becalm_outlier_defaults(policy);
    policy->consecutive = 5;
    policy->base_ejection = 30 * BECALM_S;
    policy->max_ejected_ppm = 100000;
}

static const char *policy_complaint(const struct becalm_outlier_policy *policy)
{
    if (policy->failure_share_ppm < 1 || policy->failure_share_ppm > 1000000) {
        return "failure_share_ppm must be from 1 to 1,000,000";
    }
    if (policy->min_calls < 1 || policy->min_calls > 1000000) {
        return "min_calls must be from 1 to 1,000,000";
    }
    if (policy->window < 100 * BECALM_MS || policy->window > 3600 * BECALM_S) {
        return "window must be from 100 ms to 1 h";
    }
    if (policy->consecutive > 1000000) {
        return "consecutive must be at most 1,000,000";
    }
    if (policy->interval < BECALM_MS || policy->interval > 86400 * BECALM_S) {
        return "interval must be from 1 ms to 24 h";
    }
    if (policy->base_ejection < BECALM_MS) {
        return "base_ejection must be at least 1 ms";
    }
    if (policy->max_ejection < policy->base_ejection) {
        return "max_ejection must be at least base_ejection";
    }
    if (policy->max_ejection > 86400 * BECALM_S) {
        return "max_ejection must be at most 24 h";
    }
    if (policy->max_ejected_ppm > 1000000) {
        return "max_ejected_ppm must be at most 1,000,000";
    }
    return NULL;
}

int becalm_outlier_check(const struct becalm_outlier_policy *policy, const char **why)
{
    const char *complaint = policy->enabled ? policy_complaint(policy) : NULL;
    if (why != NULL) {
        *why = complaint;
    }
    return complaint == NULL ? 0 : BECALM_EINVAL;
}

/* By failures in a row, the streak is all that is needed. */
static bool counts_rates(const struct becalm_outlier_policy *policy)
{
    return policy->enabled && policy->consecutive == 0;
}

static struct becalm_window_shape window_shape(const struct becalm_outlier_policy *policy, uint32_t cells)
{
    return (struct becalm_window_shape){
        .kind = BECALM_WINDOW_TIME,
        .span = policy->window,
        .slices = SLICES,
        .lanes = LANE_COUNT,
        .cells = cells,
    };
}

static size_t window_bytes(const struct becalm_outlier_policy *policy, uint32_t cells)
{
    if (!counts_rates(policy)) {
        return 0;
    }
    struct becalm_window_shape shape = window_shape(policy, cells);
    return lines(becalm_window_bytes(&shape));
}

/* The hosts' own words, and behind them a bit for each host. */
static size_t head_bytes(uint32_t count)
{
    return lines(sizeof(struct becalm_hosts) + (count + WORD_BITS - 1) / WORD_BITS * sizeof(uint64_t));
}

size_t becalm_hosts_bytes(const struct becalm_outlier_policy *policy, uint32_t count, uint32_t cells)
{
    BECALM_ASSERT(count <= BECALM_HOSTS_MAX);
    size_t each = sizeof(struct becalm_host) + window_bytes(policy, cells);
    return head_bytes(count) + count * each;
}

struct becalm_hosts *becalm_hosts_init(void *memory, const struct becalm_outlier_policy *policy, uint32_t count,
                                       uint32_t cells)
{
    BECALM_ASSERT(count <= BECALM_HOSTS_MAX);
    BECALM_ASSERT(becalm_outlier_check(policy, NULL) == 0);
    BECALM_ASSERT((uintptr_t)memory % LINE == 0);
    size_t head = head_bytes(count);
    size_t array = count * sizeof(struct becalm_host);
    memset(memory, 0, head + array);

    struct becalm_hosts *hosts = memory;
    hosts->count = count;
    hosts->host = (struct becalm_host *)(void *)((char *)memory + head);
    hosts->failing = (void *)(hosts + 1);
    if (counts_rates(policy)) {
        struct becalm_window_shape shape = window_shape(policy, cells);
        size_t bytes = window_bytes(policy, cells);
        char *at = (char *)memory + head + array;
        for (uint32_t i = 0; i < count; i++, at += bytes) {
            hosts->host[i].window = becalm_window_init(at, &shape);
        }
    }
    return hosts;
}

/* All loads and stores of single words below are relaxed unless a comment says otherwise: no word guards other memory,
 * and a thread that acts on an old value loses the compare-and-swap on ejected_until that decides. */
static uint64_t word_get(const BECALM_ATOMIC(uint64_t) * word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void word_set(BECALM_ATOMIC(uint64_t) * word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static bool word_swap(BECALM_ATOMIC(uint64_t) * word, uint64_t old, uint64_t value)
{
    return atomic_compare_exchange_strong_explicit(word, &old, value, memory_order_relaxed, memory_order_relaxed);
}

static struct becalm_host *host_at(const struct becalm_hosts *hosts, uint32_t host)
{
    BECALM_ASSERT(host < hosts->count);
    return &hosts->host[host];
}

static uint64_t bit_of(uint32_t host)
{
    return UINT64_C(1) << host % WORD_BITS;
}

bool becalm_host_fails_checks(const struct becalm_hosts *hosts, uint32_t host)
{
    BECALM_ASSERT(host < hosts->count);
    return (word_get(&hosts->failing[host / WORD_BITS]) & bit_of(host)) != 0;
}

void becalm_hosts_check(struct becalm_hosts *hosts, uint32_t host, bool passes)
{
    BECALM_ASSERT(host < hosts->count);
    BECALM_ATOMIC(uint64_t) *word = &hosts->failing[host / WORD_BITS];
    uint64_t bit = bit_of(host);
    /* relaxed: a pick that sees the count before the bit, or the bit before the count, looks at hosts in vain */
    uint64_t was = passes ? atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed)
                          : atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    if (passes && (was & bit) != 0) {
        atomic_fetch_sub_explicit(&hosts->out, ONE_FAILS, memory_order_relaxed);
    } else if (!passes && (was & bit) == 0) {
        atomic_fetch_add_explicit(&hosts->out, ONE_FAILS, memory_order_relaxed);
    }
}

bool becalm_hosts_all_fail(const struct becalm_hosts *hosts)
{
    return hosts->count > 0 && word_get(&hosts->out) >> 32 >= hosts->count;
}

void becalm_host_carry(struct becalm_hosts *to, uint32_t host, const struct becalm_hosts *from, uint32_t from_host)
{
    const struct becalm_host *old = host_at(from, from_host);
    struct becalm_host *h = host_at(to, host);
    uint64_t until = word_get(&old->ejected_until);
    word_set(&h->ejected_until, until);
    word_set(&h->times, word_get(&old->times));
    word_set(&h->calm_since, word_get(&old->calm_since));
    word_set(&h->streak, word_get(&old->streak));
    word_set(&h->hint_until, word_get(&old->hint_until));
    atomic_fetch_add_explicit(&to->out, until != 0, memory_order_relaxed);
    becalm_hosts_check(to, host, !becalm_host_fails_checks(from, from_host));
}

void becalm_hosts_carry(struct becalm_hosts *to, const struct becalm_hosts *from)
{
    for (uint32_t i = 0; to->count == from->count && i < to->count; i++) {
        becalm_host_carry(to, i, from, i);
    }
}

/* How many may be out at once: the rounded-down share, and never the last host. */
static uint64_t ejected_max(const struct becalm_hosts *hosts, const struct becalm_outlier_policy *policy)
{
    uint64_t share = (uint64_t)hosts->count * policy->max_ejected_ppm / 1000000;
    return share < hosts->count ? share : hosts->count - (hosts->count > 0);
}

bool becalm_hosts_ignored(const struct becalm_hosts *hosts, const struct becalm_outlier_policy *policy)
{
    return (uint32_t)word_get(&hosts->out) > ejected_max(hosts, policy);
}

bool becalm_host_ejected(const struct becalm_hosts *hosts, uint32_t host, becalm_ns now)
{
    return now < word_get(&host_at(hosts, host)->ejected_until);
}

bool becalm_host_read(const struct becalm_hosts *hosts, uint32_t host, becalm_ns now, uint64_t *results,
                      uint64_t *failed)
{
    const struct becalm_window *window = host_at(hosts, host)->window;
    *results = window == NULL ? 0 : becalm_window_sum(window, now, LANE_RESULTS);
    *failed = window == NULL ? 0 : becalm_window_sum(window, now, LANE_FAILED);
    return window != NULL;
}

/* The ejection `until` is over, and its probe is not out or is lost. */
static bool probe_due(const struct becalm_host *h, becalm_ns until, becalm_ns now)
{
    uint64_t probing = word_get(&h->probing);
    return now >= until && (probing == 0 || now >= probing);
}

/* A result that comes now is taken as the probe's. It may be the result of an attempt from before the ejection: that
 * also shows whether the host is well. */
static bool probe_out(const struct becalm_host *h, becalm_ns until, becalm_ns now)
{
    return now >= until && word_get(&h->probing) != 0;
}

bool becalm_host_usable(const struct becalm_hosts *hosts, const struct becalm_outlier_policy *policy, uint32_t host,
                        becalm_ns now)
{
    const struct becalm_host *h = host_at(hosts, host);
    uint64_t until = word_get(&h->ejected_until);
    if (becalm_host_fails_checks(hosts, host) && !becalm_hosts_all_fail(hosts)) {
        return false;
    }
    return until == 0 || !policy->enabled || probe_due(h, until, now) || becalm_hosts_ignored(hosts, policy);
}

void becalm_hosts_sent(struct becalm_hosts *hosts, uint32_t host, becalm_ns now)
{
    if (host == BECALM_NO_HOST) {
        return;
    }
    struct becalm_host *h = host_at(hosts, host);
    atomic_fetch_add_explicit(&h->in_flight, 1, memory_order_relaxed);
    uint64_t until = word_get(&h->ejected_until);
    if (until != 0 && probe_due(h, until, now)) {
        /* A thread that loses this race has sent an ordinary attempt beside the probe. */
        word_swap(&h->probing, word_get(&h->probing), becalm_ns_after(now, BECALM_PROBE_LEASE));
    }
}

/* The results of all other hosts that are in, together. Of many other hosts only the next in the list are asked. */
struct others {
    uint64_t results;
    uint64_t failed;
};

static struct others others_of(const struct becalm_hosts *hosts, const struct becalm_host *h, becalm_ns now)
{
    uint32_t self = (uint32_t)(h - hosts->host);
    uint32_t asked = hosts->count - 1 < ASKED_MAX ? hosts->count - 1 : ASKED_MAX;
    struct others others = {0};
    for (uint32_t i = 1; i <= asked; i++) {
        const struct becalm_host *other = &hosts->host[(self + i) % hosts->count];
        if (word_get(&other->ejected_until) == 0) {
            struct becalm_window_sums sums;
            becalm_window_read(other->window, now, &sums);
            others.results += sums.lane[LANE_RESULTS];
            others.failed += sums.lane[LANE_FAILED];
        }
    }
    return others;
}

/* Does it fail at least twice as often as the others? Otherwise this host is not the cause: its ejection would only
 * make a common problem worse, because the rest gets its load. */
static bool worse_than_others(const struct becalm_window_sums *sums, const struct others *others)
{
    return sums->lane[LANE_FAILED] * others->results >= 2 * others->failed * sums->lane[LANE_RESULTS];
}

/* Does the host only queue, beside others that have more to do than they can, too? If it queues, its timeouts are late
 * answers, and the answers that come in time are slow: counted as if every failure were late, half of its answers are.
 * A host that hangs for a part of its calls answers the rest of them quickly, and one that hangs altogether answers
 * nothing. Its ejection would give its load to the others. They can take it if fewer than an eighth of their results
 * are failures: then the host alone is slow or hangs, even in a service whose good answers are usually slow. */
static bool only_queues(const struct becalm_window_sums *sums, const struct others *others)
{
    uint64_t results = sums->lane[LANE_RESULTS];
    uint64_t failed = sums->lane[LANE_FAILED];
    return results > failed && 2 * sums->lane[LANE_LATE] >= results + failed && 8 * others->failed >= others->results;
}

/* Does the host only shed load that the others can't take? A host that rejects some calls and answers the rest has too
 * much to do, and keeps its queue short. Its ejection would give its load to the others, which would then shed as well.
 * They can take it if fewer than an eighth of their results are failures, and if together they have at least twice its
 * results: then their load grows by at most a half. A host that rejects everything, or has begun to, is broken. */
static bool only_sheds(const struct becalm_host *h, const struct becalm_window_sums *sums, const struct others *others)
{
    uint64_t results = sums->lane[LANE_RESULTS];
    uint64_t failed = sums->lane[LANE_FAILED];
    bool full = 8 * others->failed >= others->results || others->results < 2 * results;
    bool answers = results > failed && becalm__streak_read(h).failures < ANSWERS_OF;
    return answers && 2 * sums->lane[LANE_SHED] >= failed && full;
}

/* Is the host bad enough to be ejected? Both rules use the results noted up to now. */
static bool host_deserves(const struct becalm_hosts *hosts, const struct becalm_host *h,
                          const struct becalm_outlier_policy *policy, becalm_ns now)
{
    if (policy->consecutive > 0) {
        return becalm__streak_read(h).failures >= policy->consecutive;
    }
    if (h->window == NULL) { /* made for another policy: see becalm_hosts_bytes() */
        return false;
    }
    struct becalm_window_sums sums;
    becalm_window_read(h->window, now, &sums);
    uint64_t results = sums.lane[LANE_RESULTS];
    uint64_t failed = sums.lane[LANE_FAILED];
    if (results < policy->min_calls || failed * 1000000 < results * policy->failure_share_ppm) {
        return false;
    }
    struct others others = others_of(hosts, h, now);
    return worse_than_others(&sums, &others) && !only_queues(&sums, &others) && !only_sheds(h, &sums, &others);
}

/* Entry: ejected_until is `was`, 0 or an ejection that is over. Exit: ejected anew, or another thread was first. */
static void host_eject(struct becalm_hosts *hosts, struct becalm_host *h, uint64_t was,
                       const struct becalm_outlier_policy *policy, becalm_ns now)
{
    /* The host is counted before it is out, so that the count is never below the truth: the release here and the
     * acquire in host_readmit order this addition before the subtraction that undoes it. */
    bool newly = was == 0;
    if (newly) {
        atomic_fetch_add_explicit(&hosts->out, 1, memory_order_relaxed);
    }
    /* An ejection that is ignored is none, and the host is not made to pay for it later. */
    uint64_t times = word_get(&h->times);
    if (!becalm_hosts_ignored(hosts, policy) && times < TIMES_MAX) {
        times++;
    }
    becalm_ns stay = becalm_ns_scale(policy->base_ejection, times > 0 ? (uint32_t)times : 1, 1);
    becalm_ns until = becalm_ns_after(now, becalm_ns_min(stay, policy->max_ejection));
    if (atomic_compare_exchange_strong_explicit(&h->ejected_until, &was, until, memory_order_release,
                                                memory_order_relaxed)) {
        word_set(&h->times, times);
        word_set(&h->probing, 0);
    } else if (newly) {
        atomic_fetch_sub_explicit(&hosts->out, 1, memory_order_relaxed);
    }
}

/* Entry: ejected_until is `was`, not 0. Exit: the host is in, or another thread was first. */
static void host_readmit(struct becalm_hosts *hosts, struct becalm_host *h, uint64_t was, becalm_ns now)
{
    if (!atomic_compare_exchange_strong_explicit(&h->ejected_until, &was, 0, memory_order_acquire,
                                                 memory_order_relaxed)) {
        return;
    }
    atomic_fetch_sub_explicit(&hosts->out, 1, memory_order_relaxed); /* after its addition: see host_eject */
    word_set(&h->probing, 0);
    word_set(&h->calm_since, now);
    if (h->window != NULL) {
        becalm_window_clear(h->window);
    }
}

void becalm_hosts_back(struct becalm_hosts *hosts, uint32_t host, becalm_ns now)
{
    if (host == BECALM_NO_HOST) {
        return;
    }
    struct becalm_host *h = host_at(hosts, host);
    uint64_t until = word_get(&h->ejected_until);
    word_set(&h->streak, 0);
    if (until != 0) {
        host_readmit(hosts, h, until, now);
    }
}

/* Counts `times` down by one for each interval that has passed since the last failure, then starts the next one. */
static void times_calm(struct becalm_host *h, const struct becalm_outlier_policy *policy, becalm_ns now)
{
    BECALM_ASSERT(policy->interval > 0);
    uint64_t since = word_get(&h->calm_since);
    uint64_t intervals = becalm_ns_since(now, since) / policy->interval;
    if (now <= since || !word_swap(&h->calm_since, since, now)) {
        return; /* an older clock, or another thread has just done it */
    }
    uint64_t times = word_get(&h->times);
    if (intervals > 0 && times > 0) {
        word_set(&h->times, times - (intervals < times ? intervals : times));
    }
}

static void host_ok(struct becalm_hosts *hosts, struct becalm_host *h, const struct becalm_outlier_policy *policy,
                    const struct becalm_moment *at, bool slow)
{
    if (becalm__streak_read(h).failures != 0) { /* a healthy host's streak is not written */
        word_set(&h->streak, 0);
    }
    if (h->window != NULL) {
        becalm_window_note(h->window, at, 1u << LANE_RESULTS | (unsigned)slow << LANE_LATE);
    }
    uint64_t until = word_get(&h->ejected_until);
    if (until == 0) {
        return;
    }
    /* While ejections are ignored the host is in use, so its results say when it is well; no call has to wait for a
     * probe.
     */
    if (probe_out(h, until, at->now) ||
        (becalm_hosts_ignored(hosts, policy) && !host_deserves(hosts, h, policy, at->now))) {
        host_readmit(hosts, h, until, at->now);
    }
}

/* One more failure in a row. A host that refuses at once has nothing in flight, so its failure counts as its load for
 * a while. An attempt that timed out was in flight for all of its time: its failure counts twice as long as it took. */
static void streak_extend(struct becalm_host *h, const struct becalm__result *result)
{
    bool waited = result->outcome->kind == BECALM_OUTCOME_TIMED_OUT && result->took > 0;
    struct becalm__streak next = {.fresh = waited ? becalm_ns_min(becalm_ns_scale(result->took, 2, 1), FRESH) : FRESH};
    uint64_t have = word_get(&h->streak);
    do { /* no thread's failure is lost; the last one decides how long they are fresh */
        uint32_t failures = becalm__streak_of(have).failures;
        next.failures = failures < UINT32_MAX ? failures + 1 : failures;
    } while (!atomic_compare_exchange_weak_explicit(&h->streak, &have, becalm__streak_word(next), memory_order_relaxed,
                                                    memory_order_relaxed));
}

static unsigned failed_lanes(enum becalm_outcome_kind kind)
{
    unsigned late = kind == BECALM_OUTCOME_TIMED_OUT;
    unsigned shed = kind == BECALM_OUTCOME_REJECTED;
    return 1u << LANE_RESULTS | 1u << LANE_FAILED | late << LANE_LATE | shed << LANE_SHED;
}

static void host_failed(struct becalm_hosts *hosts, struct becalm_host *h, const struct becalm_outlier_policy *policy,
                        const struct becalm_moment *at, const struct becalm__result *result)
{
    streak_extend(h, result);
    if (h->window != NULL) {
        becalm_window_note(h->window, at, failed_lanes(result->outcome->kind));
    }
    uint64_t until = word_get(&h->ejected_until);
    if (until == 0) {
        times_calm(h, policy, at->now);
        if (host_deserves(hosts, h, policy, at->now)) {
            host_eject(hosts, h, 0, policy, at->now);
        }
        return;
    }
    /* A host that is in use all the same, since ejections are ignored, must not look as if it had long been calm. */
    if (at->now > word_get(&h->calm_since)) {
        word_set(&h->calm_since, at->now);
    }
    if (probe_out(h, until, at->now)) {
        host_eject(hosts, h, until, policy, at->now);
    }
}

/* A result that says nothing about the host. If it was the probe's, the next attempt is the probe. */
static void host_unproven(struct becalm_host *h, becalm_ns now)
{
    uint64_t until = word_get(&h->ejected_until);
    if (until != 0 && probe_out(h, until, now)) {
        word_set(&h->probing, 0);
    }
}

/* The health of the host by this outcome, including marks. */
static enum becalm_health outcome_health(const struct becalm_outcome *outcome)
{
    enum becalm_health health = becalm_outcome_traits(outcome->kind)->health;
    if (outcome->kind == BECALM_OUTCOME_CANCELLED || health == BECALM_HEALTH_OK) {
        return health; /* a mark of another layer does not turn a success into a failure */
    }
    if (outcome->mark == BECALM_MARK_OVERLOADED_HOST) {
        return BECALM_HEALTH_FAILED;
    }
    if (health == BECALM_HEALTH_REJECTED) {
        return outcome->mark == BECALM_MARK_OVERLOADED ? BECALM_HEALTH_NONE : BECALM_HEALTH_FAILED;
    }
    return health;
}

/* How long the host wants no retries from any caller; 0: it did not say. A hint for one client applies to that call
 * alone: otherwise a service with a limit per client would end the retries of all clients with each 429. */
static becalm_ns outcome_quiet(const struct becalm_outcome *outcome)
{
    bool may_ask = outcome->kind == BECALM_OUTCOME_RATE_LIMITED || outcome->kind == BECALM_OUTCOME_REJECTED;
    if (outcome->has_hint && !outcome->own_hint && may_ask) {
        return becalm_ns_min(outcome->hint, BECALM_HINT_MAX);
    }
    return outcome->mark == BECALM_MARK_OVERLOADED_HOST ? BECALM_HINT_MARKED : 0;
}

/* Hints only grow: a server's later and shorter hint does not undo a longer one that it gave another call. */
static void hint_extend(struct becalm_host *h, becalm_ns until)
{
    uint64_t have = word_get(&h->hint_until);
    while (have < until) {
        if (atomic_compare_exchange_weak_explicit(&h->hint_until, &have, until, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return;
        }
    }
}

void becalm__hosts_note(struct becalm_hosts *hosts, const struct becalm_outlier_policy *policy,
                        const struct becalm_moment *at, uint32_t host, const struct becalm__result *result)
{
    if (host == BECALM_NO_HOST) {
        return;
    }
    struct becalm_host *h = host_at(hosts, host);
    uint64_t in_flight = atomic_fetch_sub_explicit(&h->in_flight, 1, memory_order_relaxed);
    BECALM_ASSERT(in_flight > 0);

    becalm_ns quiet = outcome_quiet(result->outcome);
    if (quiet > 0) {
        hint_extend(h, becalm_ns_after(at->now, quiet));
    }
    if (!policy->enabled) {
        return;
    }
    switch (outcome_health(result->outcome)) {
    case BECALM_HEALTH_OK:
        host_ok(hosts, h, policy, at, result->slow);
        return;
    case BECALM_HEALTH_FAILED:
        host_failed(hosts, h, policy, at, result);
        return;
    case BECALM_HEALTH_NONE:
        host_unproven(h, at->now);
        return;
    case BECALM_HEALTH_REJECTED: /* outcome_health has decided between the two above */
        break;
    }
    BECALM_UNREACHABLE();
}

void becalm_hosts_note(struct becalm_hosts *hosts, const struct becalm_outlier_policy *policy,
                       const struct becalm_moment *at, uint32_t host, const struct becalm_outcome *outcome)
{
    becalm__hosts_note(hosts, policy, at, host, &(struct becalm__result){.outcome = outcome});
}

becalm_ns becalm_hosts_hint(const struct becalm_hosts *hosts, uint32_t host, becalm_ns now)
{
    if (host == BECALM_NO_HOST) {
        return 0;
    }
    /* A clock that lags behind the one of the note must not wait for longer than the cap either. */
    return becalm_ns_min(becalm_ns_left(now, word_get(&host_at(hosts, host)->hint_until)), BECALM_HINT_MAX);
}
