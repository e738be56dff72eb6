/* SPDX-License-Identifier: MIT */
#include <becalm/rate.h>

/* Rates are in thousandths of a request per second. */
#define FILL_MIN     UINT64_C(500)           /* one request every two seconds: the way back is never closed */
#define FILL_MAX     UINT64_C(4000000000)    /* 4 million a second; fits the 32 bits of becalm_ns_scale() */
#define SINCE_MAX    (60 * BECALM_S)         /* CUBIC has long left any real rate behind by then: 86,400 a second */
#define NS_PER_MILLI UINT64_C(1000000000000) /* ns between two requests at a rate of one thousandth per second */
#define HALF_SECOND  (BECALM_S / 2)

/* The word `bucket`: number of the half second + 1 (0: nothing was counted yet), and below it the count. 2^64 ns are
 * fewer than 2^36 half seconds. */
#define COUNT_BITS 28u
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)

void becalm_rate_init(struct becalm_rate *rate)
{
    atomic_init(&rate->full_at, 0);
    atomic_init(&rate->fill, 0);
    atomic_init(&rate->measured, 0);
    atomic_init(&rate->bucket, 0);
    atomic_init(&rate->last_max, 0);
    atomic_init(&rate->throttled_at, 0);
}

static void copy(_Atomic(uint64_t) *to, const _Atomic(uint64_t) *from)
{
    atomic_store_explicit(to, atomic_load_explicit(from, memory_order_relaxed), memory_order_relaxed);
}

void becalm_rate_carry(struct becalm_rate *to, const struct becalm_rate *from)
{
    copy(&to->full_at, &from->full_at);
    copy(&to->fill, &from->fill);
    copy(&to->measured, &from->measured);
    copy(&to->bucket, &from->bucket);
    copy(&to->last_max, &from->last_max);
    copy(&to->throttled_at, &from->throttled_at);
}

/* ------------------------------------------------------------------------------------------------------------ CUBIC */

static uint64_t at_most(uint64_t value, uint64_t bound)
{
    return value < bound ? value : bound;
}

/* The largest root whose cube is not above n: one bit of the root per round, from the top. n is below 2^54 here. */
static uint64_t cube_root(uint64_t n)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 18; bit != 0; bit >>= 1) {
        uint64_t tried = root | bit;
        if (tried * tried * tried <= n) {
            root = tried;
        }
    }
    return root;
}

uint64_t becalm_rate_k_ms(uint64_t max_milli)
{
    /* K^3 = w_max * (1 - 0.7) / 0.4 in s^3; in ms^3 and thousandths: * 10^9 / 10^3. */
    uint64_t cube = at_most(max_milli, FILL_MAX) * 750000;
    uint64_t root = cube_root(cube);
    uint64_t twice = 2 * root + 1; /* to the nearest: is (root + 1/2)^3 still not above it? */
    return twice * twice * twice <= 8 * cube ? root + 1 : root;
}

uint64_t becalm_rate_cubic(uint64_t max_milli, becalm_ns since)
{
    max_milli = at_most(max_milli, FILL_MAX);
    int64_t from_k = (int64_t)(becalm_ns_min(since, SINCE_MAX) / BECALM_MS) - (int64_t)becalm_rate_k_ms(max_milli);
    /* 0.4 * s^3 per second is ms^3 / 2,500,000 in thousandths. |from_k| is below 150,000, its cube below 2^52. */
    int64_t rate = (int64_t)max_milli + from_k * from_k * from_k / 2500000;
    return rate > 0 ? (uint64_t)rate : 0;
}

/* ------------------------------------------------------------------------------------------------------ measurement */

/* The half second is over: its rate goes into the average, with weight 0.8. Threads that end two half seconds at the
 * same moment may lose one of them: it is an estimate, and the next half second corrects it. */
static void measured_note(struct becalm_rate *rate, uint64_t count, uint64_t halves)
{
    uint64_t seen = at_most(2000 * count / halves, FILL_MAX);
    uint64_t was = atomic_load_explicit(&rate->measured, memory_order_relaxed);
    atomic_store_explicit(&rate->measured, (8 * seen + 2 * was) / 10, memory_order_relaxed);
}

/* Counts one request at its end, as the original does: one that still waits for its token has not been sent. */
static void measure(struct becalm_rate *rate, becalm_ns now)
{
    const uint64_t half = now / HALF_SECOND + 1;
    uint64_t word = atomic_load_explicit(&rate->bucket, memory_order_relaxed);
    uint64_t then;
    bool over;
    do { /* relaxed: the word guards no other memory */
        uint64_t counted = word >> COUNT_BITS;
        over = counted != 0 && half > counted;
        if (over) {
            then = half << COUNT_BITS;
        } else if (counted == 0) {
            then = half << COUNT_BITS | 1;
        } else {
            then = (word & COUNT_MASK) == COUNT_MASK ? word : word + 1; /* an older now counts in the newer half */
        }
    } while (
        !atomic_compare_exchange_weak_explicit(&rate->bucket, &word, then, memory_order_relaxed, memory_order_relaxed));
    if (over) {
        measured_note(rate, (word & COUNT_MASK) + 1, half - (word >> COUNT_BITS));
    }
}

/* ----------------------------------------------------------------------------------------------------------- bucket */

static becalm_ns interval_of(uint64_t fill)
{
    return NS_PER_MILLI / fill;
}

/* The bucket holds max(1, fill) tokens. In time that is one second at any rate from one a second on, and one interval
 * below. */
static becalm_ns span_of(uint64_t fill)
{
    return becalm_ns_max(BECALM_S, interval_of(fill));
}

/* A send at `now` moves full_at on by one interval; the time beyond a full bucket is how long the send has to wait. */
static becalm_ns pushed(becalm_ns full_at, becalm_ns now, uint64_t fill)
{
    return becalm_ns_after(becalm_ns_max(full_at, now), interval_of(fill));
}

static becalm_ns wait_of(becalm_ns full_at, becalm_ns now, uint64_t fill)
{
    return becalm_ns_since(full_at, becalm_ns_after(now, span_of(fill)));
}

/* The rate has changed: the bucket keeps its tokens, at most its new capacity, or those that it owes. */
static becalm_ns rebased(becalm_ns full_at, becalm_ns now, uint64_t was, uint64_t fill)
{
    const becalm_ns missing = becalm_ns_since(full_at, now);
    const becalm_ns span = span_of(was);
    if (missing <= span) {
        becalm_ns level = becalm_ns_scale(span - missing, (uint32_t)was, (uint32_t)fill);
        return becalm_ns_after(now, becalm_ns_since(span_of(fill), level));
    }
    becalm_ns owed = becalm_ns_scale(missing - span, (uint32_t)was, (uint32_t)fill);
    return becalm_ns_after(now, becalm_ns_after(span_of(fill), owed));
}

static void fill_set(struct becalm_rate *rate, becalm_ns now, uint64_t fill)
{
    if (atomic_load_explicit(&rate->fill, memory_order_relaxed) == fill) {
        return;
    }
    /* An exchange, so that every change is rebased exactly once, though other threads change it too. Between the two
     * words another thread may price a token at the new rate in a bucket of the old one: one token wrong, once. Hence
     * relaxed. */
    uint64_t was = atomic_exchange_explicit(&rate->fill, fill, memory_order_relaxed);
    if (was == 0 || was == fill) {
        return; /* the rate limit was off: the bucket is full */
    }
    uint64_t full_at = atomic_load_explicit(&rate->full_at, memory_order_relaxed);
    while (full_at > now) { /* else it is full, and stays so */
        if (atomic_compare_exchange_weak_explicit(&rate->full_at, &full_at, rebased(full_at, now, was, fill),
                                                  memory_order_relaxed, memory_order_relaxed)) {
            return;
        }
    }
}

becalm_ns becalm_rate_take(struct becalm_rate *rate, becalm_ns now)
{
    const uint64_t fill = atomic_load_explicit(&rate->fill, memory_order_relaxed);
    if (fill == 0) {
        return 0;
    }
    uint64_t full_at = atomic_load_explicit(&rate->full_at, memory_order_relaxed);
    uint64_t then;
    do { /* relaxed: the word guards no other memory; a lost race only re-reads it */
        then = pushed(full_at, now, fill);
    } while (!atomic_compare_exchange_weak_explicit(&rate->full_at, &full_at, then, memory_order_relaxed,
                                                    memory_order_relaxed));
    return wait_of(then, now, fill);
}

becalm_ns becalm_rate_peek(const struct becalm_rate *rate, becalm_ns now)
{
    const uint64_t fill = atomic_load_explicit(&rate->fill, memory_order_relaxed);
    if (fill == 0) {
        return 0;
    }
    uint64_t full_at = atomic_load_explicit(&rate->full_at, memory_order_relaxed);
    return wait_of(pushed(full_at, now, fill), now, fill);
}

void becalm_rate_give(struct becalm_rate *rate, becalm_ns now)
{
    const uint64_t fill = atomic_load_explicit(&rate->fill, memory_order_relaxed);
    if (fill == 0) {
        return;
    }
    uint64_t full_at = atomic_load_explicit(&rate->full_at, memory_order_relaxed);
    while (full_at > now) { /* else it is full: there is no room for the token */
        uint64_t then = becalm_ns_since(full_at, interval_of(fill));
        if (atomic_compare_exchange_weak_explicit(&rate->full_at, &full_at, then, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ notes */

/* Never more than twice the measured rate: an idle caller earns no right to a burst. */
static uint64_t fill_of(uint64_t wanted, uint64_t measured)
{
    uint64_t fill = at_most(at_most(wanted, 2 * measured), FILL_MAX);
    return fill > FILL_MIN ? fill : FILL_MIN;
}

static void note_throttled(struct becalm_rate *rate, becalm_ns now)
{
    measure(rate, now);
    const uint64_t measured = atomic_load_explicit(&rate->measured, memory_order_relaxed);
    const uint64_t fill = atomic_load_explicit(&rate->fill, memory_order_relaxed);
    const uint64_t max = fill == 0 ? measured : at_most(measured, fill);
    if (now > atomic_load_explicit(&rate->throttled_at, memory_order_relaxed)) {
        atomic_store_explicit(&rate->throttled_at, now, memory_order_relaxed);
    }
    /* Release, and acquire below: a thread that sees the new w_max sees its instant too. With the opposite order CUBIC
     * would compute with the new w_max and the instant of the old one. */
    atomic_store_explicit(&rate->last_max, max, memory_order_release);
    fill_set(rate, now, fill_of(max * 7 / 10, measured));
}

static void note_answered(struct becalm_rate *rate, becalm_ns now)
{
    measure(rate, now);
    if (atomic_load_explicit(&rate->fill, memory_order_relaxed) == 0) {
        return;
    }
    const uint64_t max = atomic_load_explicit(&rate->last_max, memory_order_acquire);
    const becalm_ns throttled_at = atomic_load_explicit(&rate->throttled_at, memory_order_relaxed);
    const uint64_t measured = atomic_load_explicit(&rate->measured, memory_order_relaxed);
    fill_set(rate, now, fill_of(becalm_rate_cubic(max, becalm_ns_since(now, throttled_at)), measured));
}

void becalm_rate_note(struct becalm_rate *rate, becalm_ns now, const struct becalm_outcome *outcome)
{
    switch (outcome->kind) {
    case BECALM_OUTCOME_REJECTED:
    case BECALM_OUTCOME_RATE_LIMITED:
        note_throttled(rate, now);
        return;
    case BECALM_OUTCOME_OK:
    case BECALM_OUTCOME_PERMANENT:
    case BECALM_OUTCOME_FAILED:
    case BECALM_OUTCOME_BROKEN:
    case BECALM_OUTCOME_LATE:
    case BECALM_OUTCOME_CONFLICT:
        note_answered(rate, now);
        return;
    case BECALM_OUTCOME_TIMED_OUT:
    case BECALM_OUTCOME_CANCELLED:
        measure(rate, now); /* the attempt was sent, and no answer says whether the rate was too high */
        return;
    case BECALM_OUTCOME_REFUSED:
    case BECALM_OUTCOME_TLS:
        return; /* never sent */
    }
    BECALM_UNREACHABLE();
}

uint64_t becalm_rate_now(const struct becalm_rate *rate)
{
    return atomic_load_explicit(&rate->fill, memory_order_relaxed);
}
