/* SPDX-License-Identifier: MIT */
#include <becalm/breaker.h>

#include <string.h>

#include "apart_internal.h"
#include "breaker_internal.h"
#include "window_internal.h"

/* How threads agree. `word` holds the state, and breaker_enter() alone changes it, by one compare-and-swap that also
 * starts a new generation. Values that do not fit into the word (`retest`, `tally`) carry the generation that they were
 * written for, and a thread that finds another generation there treats the value as not yet written.
 * So no thread ever waits for another: if a thread is preempted in the middle of a transition, the next thread
 * completes it. */

#define PPM        1000000u
#define COUNT_MAX  65535u /* probes and thresholds: 16 bits of the word and of the tally */
#define LINE       64u
#define SLICES_MAX 60u

enum { CALL_LANE, FAILED_LANE, SLOW_LANE }; /* of the window */
enum { CALL = 1u << CALL_LANE, FAILED = 1u << FAILED_LANE, SLOW = 1u << SLOW_LANE };

/* The word, see breaker_internal.h. */

#define LEFT_SHIFT     3
#define ONE_PROBE      (UINT64_C(1) << LEFT_SHIFT)
#define OPENINGS_SHIFT 19
#define OPENINGS_MAX   8191u

static uint64_t word_make(enum becalm_breaker_state state, uint32_t generation, uint32_t left, uint32_t openings)
{
    return (uint64_t)generation << BECALM__GENERATION_SHIFT | (uint64_t)openings << OPENINGS_SHIFT |
           (uint64_t)left << LEFT_SHIFT | (uint64_t)state;
}

static uint32_t word_left(uint64_t word)
{
    return (uint32_t)(word >> LEFT_SHIFT) & COUNT_MAX;
}

static uint32_t word_openings(uint64_t word)
{
    return (uint32_t)(word >> OPENINGS_SHIFT) & OPENINGS_MAX;
}

/* The end of the open time, or of the half-open lease: an instant in steps of 64 ns (so that whole milliseconds are
 * exact), and in the low bits the generation that it belongs to. */

#define RETEST_TAG UINT64_C(63)

static uint64_t retest_make(becalm_ns at, uint64_t word)
{
    return (at & ~RETEST_TAG) | (becalm__breaker_word_generation(word) & RETEST_TAG);
}

static bool retest_is_of(uint64_t retest, uint64_t word)
{
    return (retest & RETEST_TAG) == (becalm__breaker_word_generation(word) & RETEST_TAG);
}

static becalm_ns retest_time(uint64_t retest)
{
    becalm_ns at = retest & ~RETEST_TAG;
    return at == (BECALM_NEVER & ~RETEST_TAG) ? BECALM_NEVER : at;
}

static uint32_t policy_probes(const struct becalm_breaker_policy *policy)
{
    return policy->mode == BECALM_BREAKER_CONSECUTIVE ? policy->success_threshold : policy->probes;
}

static bool policy_has_slow_rule(const struct becalm_breaker_policy *policy)
{
    return policy->mode == BECALM_BREAKER_RATE && policy->slow_share_ppm != BECALM_BREAKER_SLOW_OFF;
}

/* Resilience4j: a COUNT window is judged when it is full at the latest. */
static uint32_t policy_min_calls(const struct becalm_breaker_policy *policy)
{
    if (policy->window_kind == BECALM_WINDOW_COUNT && policy->min_calls > policy->window_size) {
        return policy->window_size;
    }
    return policy->min_calls;
}

/* Are the rates of so many calls, failed and slow ones, at a threshold or above it? */
static bool policy_trips(const struct becalm_breaker_policy *policy, uint64_t calls, uint64_t failed, uint64_t slow)
{
    return failed * PPM >= policy->failure_share_ppm * calls ||
           (policy_has_slow_rule(policy) && slow * PPM >= policy->slow_share_ppm * calls);
}

/* Memory. */

static struct becalm_window_shape policy_shape(const struct becalm_breaker_policy *policy, uint32_t cells)
{
    uint32_t size = policy->window_size;
    return (struct becalm_window_shape){
        .kind = policy->window_kind,
        .size = size,
        .span = size * BECALM_S,
        .slices = size < SLICES_MAX ? size : SLICES_MAX,
        .lanes = 3,
        .cells = cells < 1                         ? 1
                 : cells < BECALM_WINDOW_CELLS_MAX ? cells
                                                   : BECALM_WINDOW_CELLS_MAX,
    };
}

static size_t head_bytes(void)
{
    return (sizeof(struct becalm_breaker) + LINE - 1) / LINE * LINE; /* the window wants a line of its own */
}

/* At the same distance wherever the memory is mapped. */
static inline struct becalm_window *window_of(const struct becalm_breaker *b)
{
    return (struct becalm_window *)((uintptr_t)b + head_bytes());
}

size_t becalm_breaker_bytes(const struct becalm_breaker_policy *policy, uint32_t cells)
{
    struct becalm_window_shape shape = policy_shape(policy, cells);
    return head_bytes() + becalm_window_bytes(&shape);
}

struct becalm_breaker *becalm_breaker_init(void *memory, const struct becalm_breaker_policy *policy, uint32_t cells)
{
    BECALM_ASSERT(becalm_breaker_check(policy, NULL) == 0);
    BECALM_ASSERT((uintptr_t)memory % LINE == 0);
    struct becalm_window_shape shape = policy_shape(policy, cells);
    enum becalm_breaker_state state = policy->enabled ? BECALM_BREAKER_CLOSED : BECALM_BREAKER_DISABLED;
    struct becalm_breaker *b = (struct becalm_breaker *)memory;
    uint64_t word = word_make(state, 0, 0, 0);
    memset(b, 0, sizeof *b);
    (void)becalm_window_init(window_of(b), &shape);
    /* relaxed: no other thread has the object yet; handing it to other threads is the caller's synchronisation. */
    atomic_store_explicit(&b->retest, retest_make(BECALM_NEVER, word), memory_order_relaxed);
    atomic_store_explicit(&b->word, word, memory_order_relaxed);
    return b;
}

void becalm_breaker_carry(struct becalm_breaker *to, const struct becalm_breaker *from)
{
    uint64_t word = becalm__breaker_word(from);
    uint64_t retest = atomic_load_explicit(&from->retest, memory_order_acquire);
    uint64_t tally = atomic_load_explicit(&from->tally, memory_order_acquire);
    uint64_t late = atomic_load_explicit(&from->late, memory_order_relaxed); /* a counter for display */
    uint64_t failed_took = atomic_load_explicit(&from->failed_took, memory_order_relaxed);
    /* Switched off by the new policy, or by nothing but the old one: no hand has touched generation 0. */
    bool off_now = becalm__breaker_word_state(becalm__breaker_word(to)) == BECALM_BREAKER_DISABLED;
    bool off_before =
        becalm__breaker_word_state(word) == BECALM_BREAKER_DISABLED && becalm__breaker_word_generation(word) == 0;
    if (off_now || off_before) {
        return;
    }
    becalm_ns at = retest_is_of(retest, word) ? retest_time(retest) : 0; /* not published: due at once, never stuck */
    if (becalm__breaker_word_state(word) == BECALM_BREAKER_HALF_OPEN) {
        /* Its probes report to `from`. Here the episode begins again: as open, with the open time over. */
        word = word_make(BECALM_BREAKER_OPEN, becalm__breaker_word_generation(word) + 1, 0, word_openings(word));
        at = 0;
    }
    /* relaxed: as in init, `to` is not shared yet. */
    atomic_store_explicit(&to->tally, tally, memory_order_relaxed);
    atomic_store_explicit(&to->late, late, memory_order_relaxed);
    atomic_store_explicit(&to->failed_took, failed_took, memory_order_relaxed);
    atomic_store_explicit(&to->retest, retest_make(at, word), memory_order_relaxed);
    atomic_store_explicit(&to->word, word, memory_order_relaxed);
}

/* Transitions. */

/* open_for * factor^(openings - 1), capped, then jittered downward: a fleet that opened together does not come back
 * together. */
static becalm_ns open_time(const struct becalm_breaker_policy *policy, uint32_t openings, uint64_t random)
{
    becalm_ns longest = policy->open_for;
    if (policy->open_factor_ppm > PPM) {
        for (uint32_t i = 1; i < openings && longest < policy->open_cap; i++) {
            longest = becalm_ns_scale(longest, policy->open_factor_ppm, PPM);
        }
        longest = becalm_ns_min(longest, policy->open_cap);
    }
    return becalm_rand_between(becalm_rand_lane(random, BECALM_LANE_BREAKER), longest - longest / 5, longest);
}

/* Where one probe decides, its late success closes all the same, so that nothing is lost if another one is sent
 * meanwhile; and a probe that hangs must not keep others from finding that the target is back. */
static becalm_ns lease(const struct becalm_breaker_policy *policy)
{
    return policy_probes(policy) == 1 ? becalm_ns_min(policy->half_open_for, policy->open_for) : policy->half_open_for;
}

static becalm_ns state_ends_at(const struct becalm_breaker_policy *policy, const struct becalm_moment *at,
                               uint64_t word)
{
    switch (becalm__breaker_word_state(word)) {
    case BECALM_BREAKER_OPEN:
        return becalm_ns_after(at->now, open_time(policy, word_openings(word), at->random));
    case BECALM_BREAKER_HALF_OPEN:
        return becalm_ns_after(at->now, lease(policy));
    case BECALM_BREAKER_CLOSED:
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_FORCED_OPEN:
    case BECALM_BREAKER_METRICS_ONLY:
        return BECALM_NEVER;
    }
    BECALM_UNREACHABLE();
}

/* The thread that entered a generation publishes its end right after. A thread that comes in between does it instead,
 * with a `now` that is as good. NEVER if the generation is over already. */
BECALM__OUTLINE static becalm_ns retest_publish(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                                                const struct becalm_moment *at, uint64_t word)
{
    /* acquire: if this was written for a later generation, the load in the loop sees that generation. With the opposite
     * order, a thread that was suspended could replace a new instant by an old one. */
    uint64_t seen = atomic_load_explicit(&b->retest, memory_order_acquire);
    while (!retest_is_of(seen, word)) {
        if (becalm__breaker_word_generation(becalm__breaker_word(b)) != becalm__breaker_word_generation(word)) {
            return BECALM_NEVER;
        }
        uint64_t mine = retest_make(state_ends_at(policy, at, word), word);
        if (atomic_compare_exchange_weak_explicit(&b->retest, &seen, mine, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return retest_time(mine);
        }
    }
    return retest_time(seen);
}

/* When the generation of `word` ends by time. */
static becalm_ns retest_settle(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                               const struct becalm_moment *at, uint64_t word)
{
    uint64_t seen = atomic_load_explicit(&b->retest, memory_order_acquire);
    return retest_is_of(seen, word) ? retest_time(seen) : retest_publish(b, policy, at, word);
}

/* The word of the generation after `word`, in `state`. */
static uint64_t word_next(const struct becalm_breaker_policy *policy, uint64_t word, enum becalm_breaker_state state)
{
    uint32_t generation = becalm__breaker_word_generation(word) + 1;
    uint32_t openings = word_openings(word);
    switch (state) {
    case BECALM_BREAKER_OPEN:
        return word_make(state, generation, 0, openings < OPENINGS_MAX ? openings + 1 : OPENINGS_MAX);
    case BECALM_BREAKER_HALF_OPEN:
        return word_make(state, generation, policy_probes(policy), openings);
    case BECALM_BREAKER_CLOSED:
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_FORCED_OPEN:
    case BECALM_BREAKER_METRICS_ONLY:
        return word_make(state, generation, 0, 0);
    }
    BECALM_UNREACHABLE();
}

/* The only writer of the state. *word is the word that was evaluated, `next` the result of word_next() for it. False,
 * with the present word in *word, if it has changed since. */
static bool breaker_enter(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                          const struct becalm_moment *at, uint64_t *word, uint64_t next)
{
    enum becalm_breaker_state state = becalm__breaker_word_state(next);
    if (state == BECALM_BREAKER_CLOSED || state == BECALM_BREAKER_METRICS_ONLY) {
        /* Before the swap: after it, another thread could judge the new generation by the failures of the old one. A
         * thread that then loses the swap may have wiped a few notes, which delays an opening and causes none. */
        becalm_window_clear(window_of(b));
    }
    /* release: publishes the cleared window with the word. acquire: the loser of the race continues with the new word.
     */
    if (!atomic_compare_exchange_strong_explicit(&b->word, word, next, memory_order_acq_rel, memory_order_acquire)) {
        return false;
    }
    *word = next;
    (void)retest_publish(b, policy, at, next);
    return true;
}

/* The same, and tells the permit. */
static bool permit_enter(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                         const struct becalm_moment *at, uint64_t *word, struct becalm_permit *permit, uint64_t next)
{
    enum becalm_breaker_state from = becalm__breaker_word_state(*word);
    bool entered = breaker_enter(b, policy, at, word, next);
    permit->from = entered ? from : becalm__breaker_word_state(*word);
    permit->to = becalm__breaker_word_state(*word);
    return entered;
}

/* The tally: 16 bits each of generation, results, failed and slow ones. Half open: the probes that have reported.
 * Closed, in CONSECUTIVE mode: `failed` is the number of failures in a row. */

#define TALLY_SLOW      0
#define TALLY_FAILED    16
#define TALLY_ENDED     32
#define TALLY_TAG_SHIFT 48

static uint32_t tally_get(uint64_t tally, unsigned shift)
{
    return (uint32_t)(tally >> shift) & COUNT_MAX;
}

/* The tally as it counts for a generation: an empty one if no thread has written it yet. */
static uint64_t tally_for(uint64_t tally, uint32_t generation)
{
    uint64_t empty = (uint64_t)(generation & COUNT_MAX) << TALLY_TAG_SHIFT;
    return tally >> TALLY_TAG_SHIFT == empty >> TALLY_TAG_SHIFT ? tally : empty;
}

static uint64_t lanes_tally(unsigned lanes)
{
    return (lanes & CALL ? UINT64_C(1) << TALLY_ENDED : 0) | (lanes & FAILED ? UINT64_C(1) << TALLY_FAILED : 0) |
           (lanes & SLOW ? UINT64_C(1) << TALLY_SLOW : 0);
}

/* Adds `more` to the tally of a generation, and returns the sum; false if the generation is over. */
static bool tally_add(struct becalm_breaker *b, uint32_t generation, uint64_t more, uint64_t *tally)
{
    uint64_t seen = atomic_load_explicit(&b->tally, memory_order_acquire);
    /* The tally first (acquire), then the word: as in retest_settle, so that no later generation's tally is lost. */
    while (becalm__breaker_word_generation(becalm__breaker_word(b)) == generation) {
        *tally = tally_for(seen, generation) + more;
        if (atomic_compare_exchange_weak_explicit(&b->tally, &seen, *tally, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

/* A success ends the row of failures. A row that has not begun is not written. */
static void tally_end_row(struct becalm_breaker *b, uint32_t generation)
{
    uint64_t seen = atomic_load_explicit(&b->tally, memory_order_acquire); /* the order is tally_add's */
    while (tally_get(tally_for(seen, generation), TALLY_FAILED) > 0 &&
           becalm__breaker_word_generation(becalm__breaker_word(b)) == generation) {
        if (atomic_compare_exchange_weak_explicit(&b->tally, &seen, tally_for(0, generation), memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return;
        }
    }
}

/* Half open. */

static enum becalm_breaker_state trial_verdict(const struct becalm_breaker_policy *policy, uint32_t calls,
                                               uint32_t failed, uint32_t slow)
{
    bool bad = policy->mode == BECALM_BREAKER_CONSECUTIVE ? failed > 0 : policy_trips(policy, calls, failed, slow);
    return bad ? BECALM_BREAKER_OPEN : BECALM_BREAKER_CLOSED;
}

/* Calls failed at once, as they do where connections are refused, and then a single probe was silent for its whole
 * lease: the target accepts requests again, and takes longer than the lease to answer. Not where slow calls may have
 * opened the breaker. */
static bool silence_is_news(const struct becalm_breaker *b, const struct becalm_breaker_policy *policy)
{
    uint64_t took = atomic_load_explicit(&b->failed_took, memory_order_relaxed); /* a hint that guards no memory */
    return policy_probes(policy) == 1 && !policy_has_slow_rule(policy) && took != 0 && took <= lease(policy) / 2;
}

/* How an episode ends when its lease expires: a probe that was sent and has no result counts as failed, unless its
 * silence is news; a probe that was never requested counts as nothing. With none out there is no evidence at all, and a
 * new lease begins. */
static enum becalm_breaker_state trial_overdue(const struct becalm_breaker *b,
                                               const struct becalm_breaker_policy *policy, uint64_t word)
{
    uint32_t probes = policy_probes(policy);
    uint32_t left = word_left(word); /* may be above `probes` if the policy has changed in mid-episode */
    uint32_t handed = probes > left ? probes - left : 0;
    uint64_t tally =
        tally_for(atomic_load_explicit(&b->tally, memory_order_acquire), becalm__breaker_word_generation(word));
    uint32_t ended = tally_get(tally, TALLY_ENDED);
    uint32_t silent = handed > ended ? handed - ended : 0;
    if (handed == 0) {
        return BECALM_BREAKER_HALF_OPEN;
    }
    if (silent > 0 && silence_is_news(b, policy)) {
        return BECALM_BREAKER_CLOSED;
    }
    return trial_verdict(policy, handed, tally_get(tally, TALLY_FAILED) + silent, tally_get(tally, TALLY_SLOW));
}

BECALM__OUTLINE static uint64_t breaker_sweep(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                                              const struct becalm_moment *at, uint64_t word,
                                              struct becalm_permit *permit)
{
    while (becalm__breaker_word_state(word) == BECALM_BREAKER_HALF_OPEN &&
           at->now >= retest_settle(b, policy, at, word)) {
        uint64_t next = word_next(policy, word, trial_overdue(b, policy, word));
        /* Lost means that a probe was taken or given back meanwhile: judge again. */
        if (permit_enter(b, policy, at, &word, permit, next)) {
            break;
        }
    }
    return word;
}

/* Every function on a permit begins so: the word as it stands, once a lease that is over has been dealt with. */
static uint64_t breaker_now(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                            const struct becalm_moment *at, struct becalm_permit *permit)
{
    uint64_t word = becalm__breaker_word(b);
    permit->from = permit->to = becalm__breaker_word_state(word);
    return becalm__breaker_word_state(word) == BECALM_BREAKER_HALF_OPEN ? breaker_sweep(b, policy, at, word, permit)
                                                                        : word;
}

static bool permit_refuse(struct becalm_permit *permit)
{
    permit->held = permit->probe = false;
    return false;
}

/* Takes a probe of this half-open time, if one is left. If the state changes meanwhile, the new state decides: a call
 * must not be refused by a breaker that was half open with probes left, and is closed now. */
static bool probe_take(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                       const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit)
{
    uint32_t generation = becalm__breaker_word_generation(word);
    while (becalm__breaker_word_generation(word) == generation) {
        if (word_left(word) == 0) {
            return permit_refuse(permit);
        }
        /* acq_rel on success keeps the release of breaker_enter alive for the next thread that reads this word. */
        if (atomic_compare_exchange_weak_explicit(&b->word, &word, word - ONE_PROBE, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return becalm__permit_give(permit, word, retest_settle(b, policy, at, word));
        }
    }
    return becalm__breaker_admit_any(b, policy, at, word, permit);
}

/* A probe without a result gives its place to the next probe. Only in the probe's own generation: a later generation
 * has counted its places anew. */
static void probe_give(struct becalm_breaker *b, uint32_t generation)
{
    uint64_t word = becalm__breaker_word(b);
    while (becalm__breaker_word_generation(word) == generation) {
        if (atomic_compare_exchange_weak_explicit(&b->word, &word, word + ONE_PROBE, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return;
        }
    }
}

static void trial_count(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                        const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit, unsigned lanes)
{
    uint64_t tally;
    if (!tally_add(b, becalm__breaker_word_generation(word), lanes_tally(lanes), &tally)) {
        return;
    }
    uint32_t ended = tally_get(tally, TALLY_ENDED);
    uint32_t failed = tally_get(tally, TALLY_FAILED);
    bool over = ended >= policy_probes(policy);
    if (!over && !(policy->mode == BECALM_BREAKER_CONSECUTIVE && failed > 0)) {
        return;
    }
    uint32_t generation = becalm__breaker_word_generation(word);
    enum becalm_breaker_state verdict = trial_verdict(policy, ended, failed, tally_get(tally, TALLY_SLOW));
    /* Lost by a place taken or given back: the verdict stands. Lost to another generation: that one stands. */
    while (!permit_enter(b, policy, at, &word, permit, word_next(policy, word, verdict)) &&
           becalm__breaker_word_generation(word) == generation) {
    }
}

/* Closed. */

/* Notes the lanes in the window, or adds them to the note that the permit has there already. */
static void window_count(struct becalm_breaker *b, const struct becalm_moment *at, struct becalm_permit *permit,
                         unsigned lanes)
{
    if (lanes & CALL) {
        permit->note = becalm_window_note(window_of(b), at, lanes);
    } else {
        becalm_window_amend(window_of(b), at, permit->note, lanes);
    }
}

/* Where the window stands, in the unit in which it forgets: notes or time. */
static uint64_t window_place(const struct becalm_breaker_policy *policy, const struct becalm_moment *at,
                             const struct becalm_permit *permit)
{
    return policy->window_kind == BECALM_WINDOW_COUNT ? permit->note : at->now;
}

/* Until when, after a failed or slow note, a plain success may bring a rate to its threshold; 0: it can't. The window
 * is summed only when its rates can have risen, and a plain success raises none by itself: it is never the one that
 * makes 100 %. But COUNT: it may be the note that makes min_calls full, so that the rates count from now on. TIME:
 * older successes leave the window, so any note may find a higher rate as long as the window remembers this one.
 * Rounded up by at most 67 ms, so that a storm of failures rarely writes. */
static uint64_t plain_trips_until(const struct becalm_breaker_policy *policy, uint64_t place, uint64_t calls)
{
    if (policy->failure_share_ppm == PPM && !(policy_has_slow_rule(policy) && policy->slow_share_ppm < PPM)) {
        return 0;
    }
    if (policy->window_kind == BECALM_WINDOW_COUNT) {
        uint32_t min_calls = policy_min_calls(policy);
        return calls < min_calls ? place + (min_calls - calls) : 0;
    }
    return becalm_ns_after(place, policy->window_size * BECALM_S) | ((UINT64_C(1) << 26) - 1);
}

/* relaxed: plain_until is a hint that guards no memory; a thread that misses it leaves the judgement to the next note.
 */
static void plain_until_extend(struct becalm_breaker *b, uint64_t until)
{
    uint64_t seen = atomic_load_explicit(&b->plain_until, memory_order_relaxed);
    while (seen < until && !atomic_compare_exchange_weak_explicit(&b->plain_until, &seen, until, memory_order_relaxed,
                                                                  memory_order_relaxed)) {
    }
}

/* The note that finds it past takes it away, and is judged like those before: it makes up for notes that were under way
 * when it was set. */
static void plain_until_end(struct becalm_breaker *b, uint64_t place)
{
    uint64_t seen = atomic_load_explicit(&b->plain_until, memory_order_relaxed);
    if (place > seen) {
        (void)atomic_compare_exchange_strong_explicit(&b->plain_until, &seen, 0, memory_order_relaxed,
                                                      memory_order_relaxed);
    }
}

static bool rate_trips(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                       const struct becalm_moment *at, const struct becalm_permit *permit, unsigned lanes)
{
    uint64_t place = window_place(policy, at, permit);
    struct becalm_window_sums sums;
    becalm_window_read(window_of(b), at->now, &sums);
    if (lanes & (FAILED | SLOW)) {
        plain_until_extend(b, plain_trips_until(policy, place, sums.lane[0]));
    } else {
        plain_until_end(b, place);
    }
    return sums.lane[0] >= policy_min_calls(policy) && policy_trips(policy, sums.lane[0], sums.lane[1], sums.lane[2]);
}

static bool row_trips(struct becalm_breaker *b, const struct becalm_breaker_policy *policy, uint32_t generation,
                      unsigned lanes)
{
    uint64_t tally;
    if (lanes & FAILED) {
        return tally_add(b, generation, lanes_tally(FAILED), &tally) &&
               tally_get(tally, TALLY_FAILED) >= policy->failure_threshold;
    }
    tally_end_row(b, generation);
    return false;
}

static void closed_count(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                         const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit, unsigned lanes)
{
    window_count(b, at, permit, lanes);
    bool trips = policy->mode == BECALM_BREAKER_CONSECUTIVE
                     ? row_trips(b, policy, becalm__breaker_word_generation(word), lanes)
                     : rate_trips(b, policy, at, permit, lanes);
    if (trips) {
        /* Lost the race: another thread has opened it. */
        (void)permit_enter(b, policy, at, &word, permit, word_next(policy, word, BECALM_BREAKER_OPEN));
    }
}

/* Counts the new results of a permit of the present generation. */
static void permit_count(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                         const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit, unsigned lanes)
{
    switch (becalm__breaker_word_state(word)) {
    case BECALM_BREAKER_CLOSED:
        closed_count(b, policy, at, word, permit, lanes);
        return;
    case BECALM_BREAKER_HALF_OPEN:
        trial_count(b, policy, at, word, permit, lanes);
        return;
    case BECALM_BREAKER_METRICS_ONLY:
        window_count(b, at, permit, lanes);
        return;
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_OPEN: /* these two hand out no permits */
    case BECALM_BREAKER_FORCED_OPEN:
        return;
    }
    BECALM_UNREACHABLE();
}

/* The functions on permits. */

/* Entry: OPEN, and the open time may be over. Exit: HALF_OPEN if it is. A thread that loses this race takes one of
 * the remaining probes, if there is one. */
BECALM__OUTLINE static bool open_admit(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                                       const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit)
{
    bool due = at->now >= retest_settle(b, policy, at, word);
    uint64_t seen = word;
    /* The first probe is taken already: it belongs to the call that made the transition. */
    uint64_t next = word_next(policy, word, BECALM_BREAKER_HALF_OPEN) - ONE_PROBE;
    if (due && permit_enter(b, policy, at, &word, permit, next)) {
        return becalm__permit_give(permit, word, retest_settle(b, policy, at, word));
    }
    word = becalm__breaker_word(b);
    return word == seen ? permit_refuse(permit) : becalm__breaker_admit_any(b, policy, at, word, permit);
}

/* Entry: HALF_OPEN. Exit: the same, with a probe less if one was left; or, when the lease is over, OPEN or CLOSED. */
BECALM__OUTLINE static bool half_open_admit(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                                            const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit)
{
    word = breaker_sweep(b, policy, at, word, permit);
    if (becalm__breaker_word_state(word) == BECALM_BREAKER_CLOSED) {
        return becalm__permit_give(permit, word, BECALM_NEVER);
    }
    return probe_take(b, policy, at, word, permit); /* an open one has none left */
}

static bool retest_is_ahead(const struct becalm_breaker *b, uint64_t word, becalm_ns now)
{
    uint64_t retest = atomic_load_explicit(&b->retest, memory_order_acquire);
    return retest_is_of(retest, word) && now < retest_time(retest);
}

bool becalm__breaker_admit_any(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                               const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit)
{
    switch (becalm__breaker_word_state(word)) {
    case BECALM_BREAKER_CLOSED:
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_METRICS_ONLY:
        return becalm__permit_give(permit, word, BECALM_NEVER);
    case BECALM_BREAKER_OPEN:
        return retest_is_ahead(b, word, at->now) ? permit_refuse(permit) : open_admit(b, policy, at, word, permit);
    case BECALM_BREAKER_HALF_OPEN:
        return half_open_admit(b, policy, at, word, permit);
    case BECALM_BREAKER_FORCED_OPEN:
        return permit_refuse(permit);
    }
    BECALM_UNREACHABLE();
}

bool becalm_breaker_admit(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                          const struct becalm_moment *at, struct becalm_permit *permit)
{
    return becalm__breaker_admit(b, policy, at, permit);
}

/* The generation's end by time, as far as it is published; NEVER, which is not due, in the instant before that. */
static becalm_ns retest_peek(const struct becalm_breaker *b, uint64_t word)
{
    uint64_t retest = atomic_load_explicit(&b->retest, memory_order_acquire);
    return retest_is_of(retest, word) ? retest_time(retest) : BECALM_NEVER;
}

static bool word_passes(const struct becalm_breaker *b, uint64_t word, becalm_ns now)
{
    switch (becalm__breaker_word_state(word)) {
    case BECALM_BREAKER_CLOSED:
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_METRICS_ONLY:
        return true;
    case BECALM_BREAKER_OPEN:
        return now >= retest_peek(b, word);
    case BECALM_BREAKER_HALF_OPEN:
        return word_left(word) > 0 || now >= retest_peek(b, word);
    case BECALM_BREAKER_FORCED_OPEN:
        return false;
    }
    BECALM_UNREACHABLE();
}

/* Before it refuses, it reads the word again: another thread may have entered HALF_OPEN meanwhile. */
bool becalm_breaker_peek(const struct becalm_breaker *b, becalm_ns now)
{
    uint64_t word = becalm__breaker_word(b);
    uint64_t seen;
    do {
        if (word_passes(b, word, now)) {
            return true;
        }
        seen = word;
        word = becalm__breaker_word(b);
    } while (word != seen);
    return false;
}

bool becalm_breaker_probes(const struct becalm_breaker *b, becalm_ns now)
{
    uint64_t word = becalm__breaker_word(b);
    return becalm__breaker_word_state(word) == BECALM_BREAKER_HALF_OPEN && word_left(word) == 0 &&
           now < retest_peek(b, word);
}

bool becalm_breaker_closed(const struct becalm_breaker *b)
{
    switch (becalm__breaker_word_state(becalm__breaker_word(b))) {
    case BECALM_BREAKER_CLOSED:
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_METRICS_ONLY:
        return true;
    case BECALM_BREAKER_OPEN:
    case BECALM_BREAKER_HALF_OPEN:
    case BECALM_BREAKER_FORCED_OPEN:
        return false;
    }
    BECALM_UNREACHABLE();
}

void becalm_breaker_slow(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                         const struct becalm_moment *at, struct becalm_permit *permit)
{
    uint64_t word = breaker_now(b, policy, at, permit);
    if (!permit->held || permit->slow || !policy_has_slow_rule(policy) ||
        permit->generation != becalm__breaker_word_generation(word)) {
        return;
    }
    permit->slow = true;
    permit_count(b, policy, at, word, permit, CALL | SLOW);
}

/* A success of the present generation, neither slow nor a probe, that can't open anything: all that is left to do is to
 * note it. This is nearly every call of a healthy target, and the short way for it. */
static bool note_is_plain(const struct becalm_breaker *b, const struct becalm_breaker_policy *policy, uint64_t word,
                          const struct becalm_permit *permit, becalm_ns took)
{
    return becalm__breaker_word_state(word) == BECALM_BREAKER_CLOSED && permit->held && !permit->slow &&
           permit->generation == becalm__breaker_word_generation(word) && policy->mode == BECALM_BREAKER_RATE &&
           (policy->slow_share_ppm == BECALM_BREAKER_SLOW_OFF || took < policy->slow_after) &&
           atomic_load_explicit(&b->plain_until, memory_order_relaxed) == 0;
}

static bool is_slow(const struct becalm_breaker_policy *policy, becalm_ns took)
{
    return policy_has_slow_rule(policy) && took >= policy->slow_after;
}

/* A probe was silent when its lease ended, so that it counted as failed, and now it has succeeded. Where one probe
 * decides, it decides now: a service that takes longer than the lease would else never be found well. */
static void late_probe_note(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                            const struct becalm_moment *at, uint64_t word, struct becalm_permit *permit)
{
    enum becalm_breaker_state first = permit->from; /* the end of its lease may have been seen in this same step */
    enum becalm_breaker_state state = becalm__breaker_word_state(word);
    while (policy_probes(policy) == 1 && (state == BECALM_BREAKER_OPEN || state == BECALM_BREAKER_HALF_OPEN)) {
        if (permit_enter(b, policy, at, &word, permit, word_next(policy, word, BECALM_BREAKER_CLOSED))) {
            permit->from = first;
            return;
        }
        first = state = becalm__breaker_word_state(word);
    }
}

BECALM__OUTLINE static void permit_end(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                                       const struct becalm_moment *at, struct becalm_permit *permit,
                                       enum becalm_verdict verdict, becalm_ns took)
{
    uint64_t word = breaker_now(b, policy, at, permit);
    if (!permit->held) {
        return;
    }
    permit->held = false;
    if (verdict == BECALM_VERDICT_NEUTRAL) {
        if (permit->probe && !permit->slow) {
            probe_give(b, permit->generation);
        }
        return;
    }
    if (permit->generation != becalm__breaker_word_generation(word)) {
        atomic_fetch_add_explicit(&b->late, 1, memory_order_relaxed); /* relaxed: a counter for display */
        if (permit->probe && !permit->slow && verdict == BECALM_VERDICT_OK && !is_slow(policy, took)) {
            late_probe_note(b, policy, at, word, permit);
        }
        return;
    }
    unsigned lanes = 0;
    if (verdict == BECALM_VERDICT_FAILED) {
        lanes = FAILED;
        atomic_store_explicit(&b->failed_took, becalm_ns_after(took, 1), memory_order_relaxed);
    }
    if (!permit->slow) {
        lanes |= CALL | (is_slow(policy, took) ? SLOW : 0);
    }
    if (lanes != 0) { /* 0: counted as slow when it became so, and a success since */
        permit_count(b, policy, at, word, permit, lanes);
    }
}

void becalm_breaker_note(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                         const struct becalm_moment *at, struct becalm_permit *permit, enum becalm_verdict verdict,
                         becalm_ns took)
{
    uint64_t word = becalm__breaker_word(b);
    if (verdict == BECALM_VERDICT_OK && note_is_plain(b, policy, word, permit, took)) {
        permit->held = false;
        permit->from = permit->to = BECALM_BREAKER_CLOSED;
        becalm__window_note_one(window_of(b), at, CALL_LANE);
        return;
    }
    permit_end(b, policy, at, permit, verdict, took);
}

/* Memory that others may have damaged. */

/* Can the generation end when `retest` says so? `now` may be older than it: others write it meanwhile. */
static bool retest_is_sound(const struct becalm_breaker *b, const struct becalm_breaker_policy *policy, uint64_t word,
                            becalm_ns now)
{
    uint64_t retest = atomic_load_explicit(&b->retest, memory_order_acquire);
    if (!retest_is_of(retest, word)) {
        return true; /* not published yet: the next thread does that */
    }
    becalm_ns longest = becalm_ns_max(policy->open_for, policy->open_factor_ppm > PPM ? policy->open_cap : 0);
    becalm_ns lasts = becalm__breaker_word_state(word) == BECALM_BREAKER_OPEN ? longest : policy->half_open_for;
    return becalm_ns_since(retest_time(retest), now) <= becalm_ns_after(lasts, BECALM_S);
}

bool becalm_breaker_sound(const void *memory, const struct becalm_breaker_policy *policy, uint32_t cells, becalm_ns now)
{
    BECALM_ASSERT(becalm_breaker_check(policy, NULL) == 0);
    const struct becalm_breaker *b = memory;
    struct becalm_window_shape shape = policy_shape(policy, cells);
    uint64_t word = becalm__breaker_word(b);
    if (!becalm_window_sound(window_of(b), &shape)) {
        return false;
    }
    switch (becalm__breaker_word_state(word)) {
    case BECALM_BREAKER_CLOSED:
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_FORCED_OPEN:
    case BECALM_BREAKER_METRICS_ONLY:
        return word_left(word) == 0;
    case BECALM_BREAKER_OPEN:
    case BECALM_BREAKER_HALF_OPEN:
        return word_left(word) <= policy_probes(policy) && retest_is_sound(b, policy, word, now);
    }
    return false;
}

/* Displays and the operator. */

enum becalm_breaker_state becalm_breaker_force(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                                               const struct becalm_moment *at, enum becalm_breaker_state state)
{
    uint64_t word = becalm__breaker_word(b);
    enum becalm_breaker_state before;
    do {
        before = becalm__breaker_word_state(word);
    } while (!breaker_enter(b, policy, at, &word, word_next(policy, word, state)));
    return before;
}

enum becalm_breaker_state becalm_breaker_state(const struct becalm_breaker *b)
{
    return becalm__breaker_word_state(becalm__breaker_word(b));
}

becalm_ns becalm_breaker_retest_at(const struct becalm_breaker *b)
{
    return retest_peek(b, becalm__breaker_word(b));
}

uint64_t becalm_breaker_late(const struct becalm_breaker *b)
{
    return atomic_load_explicit(&b->late, memory_order_relaxed); /* a counter for display */
}

void becalm_breaker_read(const struct becalm_breaker *b, becalm_ns now, struct becalm_window_sums *sums)
{
    becalm_window_read(window_of(b), now, sums);
}

const char *becalm_breaker_word(enum becalm_breaker_state state)
{
    switch (state) {
    case BECALM_BREAKER_CLOSED:
        return "CLOSED";
    case BECALM_BREAKER_OPEN:
        return "OPEN";
    case BECALM_BREAKER_HALF_OPEN:
        return "HALF_OPEN";
    case BECALM_BREAKER_DISABLED:
        return "DISABLED";
    case BECALM_BREAKER_FORCED_OPEN:
        return "FORCED_OPEN";
    case BECALM_BREAKER_METRICS_ONLY:
        return "METRICS_ONLY";
    }
    return "UNKNOWN";
}
