/* SPDX-License-Identifier: MIT */
#include <becalm/rand.h>
#include <becalm/window.h>

#include "lease_internal.h"

#include <string.h>

#define LINE      64u
#define PPM       1000000u
#define FLOOR_MAX 100000000u

#define LATE       (200 * BECALM_MS) /* an answer that takes so long */
#define PACE_FOR   BECALM_S          /* the time over which the pace is averaged */
#define PACE_MAX   (BECALM_LEASE_LEVEL_MAX * UINT64_C(1000))
#define PACE_AHEAD (100 * BECALM_MS) /* so much of it is let out at once */

/* Orders are relaxed throughout: no word here guards other memory. A retry that one thread adds to `left` may be taken
 * by any thread, and all retries are alike. */

/* The counts of one thread. */
struct cell {
    BECALM_ATOMIC(uint64_t) first;
    BECALM_ATOMIC(uint64_t) refused;
    unsigned char rest[LINE - 2 * sizeof(uint64_t)];
};

void becalm_lease_defaults(struct becalm_lease_policy *policy)
{
    *policy = (struct becalm_lease_policy){.enabled = false, .share_ppm = 200000, .floor = 100000};
}

int becalm_lease_check(const struct becalm_lease_policy *policy, const char **why)
{
    const char *wrong = NULL;
    if (policy->share_ppm > PPM) {
        wrong = "share_ppm must be at most 1,000,000 (1)";
    } else if (policy->floor > FLOOR_MAX) {
        wrong = "floor must be at most 100,000,000 (100 retries a second)";
    }
    if (why != NULL) {
        *why = wrong;
    }
    return wrong == NULL ? 0 : BECALM_EINVAL;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static size_t header_bytes(void)
{
    return (sizeof(struct becalm_lease) + LINE - 1) / LINE * LINE;
}

static uint32_t cells_of(uint32_t cells)
{
    return cells < 1 ? 1 : cells < BECALM_WINDOW_CELLS_MAX ? cells : BECALM_WINDOW_CELLS_MAX;
}

static struct cell *cell_at(const struct becalm_lease *lease, uint32_t cell)
{
    uint32_t index = cell < lease->cells ? cell : cell % lease->cells; /* a division takes longer than all the rest */
    return (struct cell *)((uintptr_t)lease + header_bytes()) + index;
}

size_t becalm_lease_bytes(uint32_t cells)
{
    _Static_assert(sizeof(struct cell) == LINE, "no two threads write the same line");
    return header_bytes() + cells_of(cells) * sizeof(struct cell);
}

struct becalm_lease *becalm_lease_init(void *memory, uint32_t cells)
{
    struct becalm_lease *lease = memory;
    memset(lease, 0, header_bytes());
    atomic_init(&lease->left, 0);
    atomic_init(&lease->degraded, 1);
    atomic_init(&lease->live, 0);
    atomic_init(&lease->told_ever, 0);
    atomic_init(&lease->granted_ever, 0);
    atomic_init(&lease->spent_ever, 0);
    atomic_init(&lease->returned_ever, 0);
    lease->cells = cells_of(cells);
    for (uint32_t i = 0; i < lease->cells; i++) {
        atomic_init(&cell_at(lease, i)->first, 0);
        atomic_init(&cell_at(lease, i)->refused, 0);
    }
    return lease;
}

static bool byte_is_flag(const bool *flag)
{
    unsigned char byte;
    memcpy(&byte, flag, 1); /* reading a bool that holds anything else is not allowed */
    return byte <= 1;
}

/* Its times are of this clock, and no wait is longer than those that are drawn. Another process may have written them
 * since `now` was read. */
static bool times_are_sound(const struct becalm_lease *lease, becalm_ns now)
{
    return becalm_ns_since(lease->wanted_at, now) <= BECALM_S && becalm_ns_since(lease->asked_at, now) <= BECALM_S &&
           becalm_ns_since(lease->heard_at, now) <= BECALM_S && becalm_ns_since(lease->let_at, now) <= BECALM_S &&
           becalm_ns_since(lease->expires_at, now) <= BECALM_LEASE_TTL_MAX + BECALM_S &&
           lease->ttl <= BECALM_LEASE_TTL_MAX && lease->next <= BECALM_LEASE_NEXT_MAX &&
           becalm_ns_since(lease->next_at, now) <= 3 * BECALM_LEASE_NEXT_MAX;
}

bool becalm_lease_sound(const void *memory, uint32_t cells, becalm_ns now)
{
    const struct becalm_lease *lease = memory;
    if (lease->cells != cells_of(cells)) {
        return false;
    }
    const uint64_t totals[] = {
        becalm_lease_left(lease), lease->last.number,   lease->last.answered, lease->last.first,
        lease->last.granted,      lease->last.spent,    lease->last.returned, lease->last.era,
        lease->told_first,        lease->told_returned, lease->issued,        lease->seen_first,
        lease->seen_refused,      lease->seen_taken,    lease->wanted_most,   lease->room,
        lease->own.stock,         lease->own.told,      lease->own.peak,      lease->own.peak_before};
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        if (totals[i] > BECALM__LEASE_MOST) {
            return false;
        }
    }
    for (uint32_t i = 0; i < lease->cells; i++) {
        if (atomic_load_explicit(&cell_at(lease, i)->first, memory_order_relaxed) > BECALM__LEASE_MOST ||
            atomic_load_explicit(&cell_at(lease, i)->refused, memory_order_relaxed) > BECALM__LEASE_MOST) {
            return false;
        }
    }
    return atomic_load_explicit(&lease->degraded, memory_order_relaxed) <= 1 &&
           atomic_load_explicit(&lease->live, memory_order_relaxed) <= BECALM_LEASE_LIVE_MAX &&
           lease->level_max <= BECALM_LEASE_LEVEL_MAX && byte_is_flag(&lease->waiting) && byte_is_flag(&lease->late) &&
           lease->back <= BECALM__LEASE_MOST && lease->pace <= 2 * PACE_MAX && byte_is_flag(&lease->last.leaving) &&
           times_are_sound(lease, now);
}

/* ----------------------------------------------------------------------------------------------------- any thread */

void becalm_lease_begin(struct becalm_lease *lease, const struct becalm_moment *at)
{
    atomic_fetch_add_explicit(&cell_at(lease, at->cell)->first, 1, memory_order_relaxed);
}

bool becalm_lease_take(struct becalm_lease *lease, const struct becalm_moment *at)
{
    uint64_t left = atomic_load_explicit(&lease->left, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&lease->left, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    atomic_fetch_add_explicit(&cell_at(lease, at->cell)->refused, 1, memory_order_relaxed);
    return false;
}

void becalm_lease_give(struct becalm_lease *lease)
{
    atomic_fetch_add_explicit(&lease->left, 1, memory_order_relaxed);
}

uint64_t becalm_lease_left(const struct becalm_lease *lease)
{
    return atomic_load_explicit(&lease->left, memory_order_relaxed);
}

bool becalm_lease_degraded(const struct becalm_lease *lease)
{
    return atomic_load_explicit(&lease->degraded, memory_order_relaxed) != 0;
}

uint32_t becalm_lease_live(const struct becalm_lease *lease)
{
    return (uint32_t)atomic_load_explicit(&lease->live, memory_order_relaxed);
}

struct becalm_lease_totals becalm_lease_totals(const struct becalm_lease *lease)
{
    return (struct becalm_lease_totals){
        .told = atomic_load_explicit(&lease->told_ever, memory_order_relaxed),
        .granted = atomic_load_explicit(&lease->granted_ever, memory_order_relaxed),
        .spent = atomic_load_explicit(&lease->spent_ever, memory_order_relaxed),
        .returned = atomic_load_explicit(&lease->returned_ever, memory_order_relaxed),
    };
}

/* ----------------------------------------------------------------------------------------------------- one thread */

static void left_add(struct becalm_lease *lease, uint64_t retries)
{
    lease->issued += retries;
    atomic_fetch_add_explicit(&lease->left, retries, memory_order_relaxed);
}

/* Takes back unspent retries, down to `keep`. Returns how many. */
static uint64_t left_cut(struct becalm_lease *lease, uint64_t keep)
{
    uint64_t left = becalm_lease_left(lease);
    while (left > keep && !atomic_compare_exchange_weak_explicit(&lease->left, &left, keep, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
    }
    uint64_t cut = left > keep ? left - keep : 0;
    lease->issued -= cut < lease->issued ? cut : lease->issued; /* one given back after a cut was counted as spent */
    return cut;
}

/* Returns retries above `keep` to the store, first those that are held back. A retry of its own share that was given
 * back after a lease had begun may be among them: the store takes no more than it has granted. */
static void left_return(struct becalm_lease *lease, uint64_t keep)
{
    struct becalm_lease_request *last = &lease->last;
    uint64_t cut = left_cut(lease, keep) + lease->back;
    lease->back = 0;
    last->returned += cut < last->granted - last->returned ? cut : last->granted - last->returned;
}

/* Releases retries that were granted late: 9/8 of the pace for the time since the last release; and at least a fifth of
 * them if `some`, because the pace of an instance that begins to fail says nothing. */
static void back_let(struct becalm_lease *lease, becalm_ns now, bool some)
{
    uint64_t pace = lease->pace + lease->pace / 8;
    becalm_ns passed = becalm_ns_since(now, lease->let_at);
    passed = passed < PACE_FOR ? passed : PACE_FOR;
    uint64_t most = pace * (passed / BECALM_US) / 1000; /* millionths of a retry */
    uint64_t out = most / BECALM__LEASE_TOKEN;
    /* A fraction of a retry is released the next time. */
    lease->let_at = pace == 0 ? now : now - (most - out * BECALM__LEASE_TOKEN) * 1000 / pace * BECALM_US;
    uint64_t fifth = pace < 1000 ? (lease->back + 4) / 5 : lease->back / 5;
    out = some && fifth > out ? fifth : out;
    out = out < lease->back ? out : lease->back;
    lease->back -= out;
    left_add(lease, out);
}

/* Retries were granted. Those of a late answer are released at the pace of the answers before, and so are all later
 * ones until none is held back: otherwise all retries on their way would be spent in one second when answers are quick
 * again.
 */
static void granted_take(struct becalm_lease *lease, becalm_ns now, uint64_t granted)
{
    bool late = becalm_ns_since(now, lease->asked_at) >= LATE;
    becalm_ns passed = lease->heard_at == 0 ? PACE_FOR : becalm_ns_since(now, lease->heard_at);
    passed = passed < BECALM_LEASE_TTL_MAX ? passed : BECALM_LEASE_TTL_MAX;
    if (late || lease->back == 0) {
        uint64_t pace = (lease->pace + granted * 1000) * (PACE_FOR / BECALM_US) / ((PACE_FOR + passed) / BECALM_US);
        lease->pace = pace < PACE_MAX ? pace : PACE_MAX;
    } else {
        lease->pace += lease->pace < PACE_MAX ? lease->pace / 128 : 0; /* so that none is kept back for long */
    }
    if ((late || lease->late) && lease->back == 0) {
        lease->let_at = now > PACE_AHEAD ? now - PACE_AHEAD : 0;
    }
    lease->late = late || lease->back > 0;
    lease->heard_at = now;
    if (lease->late) {
        lease->back += granted;
        back_let(lease, now, late);
    } else {
        left_add(lease, granted);
    }
}

#define WANTED_FOR (2 * BECALM_S) /* one call a second wants its retry a second after it was refused the last */

/* The counts since the last check. */
struct lately {
    uint64_t first;
    uint64_t wanted; /* retries, paid for or refused */
};

static uint64_t moved(uint64_t *seen, uint64_t now)
{
    uint64_t more = now > *seen ? now - *seen : 0; /* a retry that is given back lowers the count of taken ones */
    *seen = now;
    return more;
}

static struct lately lately_count(struct becalm_lease *lease, becalm_ns now)
{
    uint64_t first = 0;
    uint64_t refused = 0;
    for (uint32_t i = 0; i < lease->cells; i++) {
        first += atomic_load_explicit(&cell_at(lease, i)->first, memory_order_relaxed);
        refused += atomic_load_explicit(&cell_at(lease, i)->refused, memory_order_relaxed);
    }
    uint64_t left = becalm_lease_left(lease);
    uint64_t taken = lease->issued > left ? lease->issued - left : 0;
    struct lately lately = {
        .first = moved(&lease->seen_first, first),
        .wanted = moved(&lease->seen_taken, taken) + moved(&lease->seen_refused, refused),
    };
    if (lately.wanted >= lease->wanted_most || becalm_ns_since(now, lease->wanted_at) > WANTED_FOR) {
        lease->wanted_most = lately.wanted;
        lease->wanted_at = now;
    }
    return lately;
}

/* May this instance hold a retry that it does not need now? If there is not one for every instance, they take turns. */
static bool has_turn(const struct becalm_lease *lease, becalm_ns now)
{
    uint64_t live = becalm_lease_live(lease);
    uint64_t state = lease->last.instance ^ now / BECALM_LEASE_TURN;
    bool alone = becalm_lease_degraded(lease) && lease->last.answered == 0;
    return alone || live <= lease->room || becalm_rand_below(becalm_rand_next(&state), live) < lease->room;
}

/* How many retries it should hold until the next answer: as many as its own calls earn in that time, so that the first
 * failures are not refused; twice the number wanted since the last check; the number wanted in one of the last checks;
 * and one, if there is one for every instance. */
static uint64_t level_of(const struct becalm_lease *lease, const struct becalm_lease_policy *policy, becalm_ns now,
                         const struct lately *lately)
{
    uint64_t first = lately->first < UINT32_MAX ? lately->first : UINT32_MAX;
    uint64_t earned = first * policy->share_ppm / PPM;
    uint64_t wanted = lately->wanted < BECALM_LEASE_LEVEL_MAX ? 2 * lately->wanted : BECALM_LEASE_LEVEL_MAX;
    uint64_t level = earned > wanted ? earned : wanted;
    level = level > lease->wanted_most ? level : lease->wanted_most;
    level = level < BECALM_LEASE_LEVEL_MAX ? level : BECALM_LEASE_LEVEL_MAX;
    return level > 0 ? level : has_turn(lease, now);
}

/* Its part of the floor: the number of other instances is unknown until the store has said it. */
static uint32_t floor_part(const struct becalm_lease *lease, const struct becalm_lease_policy *policy)
{
    uint32_t live = becalm_lease_live(lease);
    return live == 0 ? 0 : policy->floor / live;
}

static void own_earn(struct becalm_lease *lease, const struct becalm_lease_policy *policy, becalm_ns now,
                     uint64_t first)
{
    struct becalm__lease_terms terms = {.share_ppm = policy->share_ppm, .floor = floor_part(lease, policy)};
    becalm__lease_pot_earn(&lease->own, &terms, now / BECALM_MS, first, 0);
}

/* Without a lease the instance lives on its own share. The share starts with the first attempts that were in no
 * request. They are not reported later, so they earn only once, and a store that is reachable again does not get all of
 * them in one second. */
static void degrade(struct becalm_lease *lease, const struct becalm_lease_policy *policy, becalm_ns now)
{
    left_return(lease, becalm_lease_left(lease)); /* retries that were held back */
    /* In a file that processes share, a process that was killed may have updated only one of the two counts. */
    uint64_t untold = lease->last.first > lease->told_first ? lease->last.first - lease->told_first : 0;
    lease->last.first = lease->told_first;
    becalm__lease_pot_init(&lease->own, now / BECALM_MS);
    own_earn(lease, policy, now, untold);
    atomic_store_explicit(&lease->degraded, 1, memory_order_relaxed);
}

/* Degraded: the share of its own first attempts, which the store is not told of any more. */
static void live_alone(struct becalm_lease *lease, const struct becalm_lease_policy *policy, becalm_ns now,
                       const struct lately *lately)
{
    uint64_t left = becalm_lease_left(lease);
    uint64_t level = level_of(lease, policy, now, lately);
    level = level > 1 ? level : 1; /* no other instance could have it */
    own_earn(lease, policy, now, lately->first);
    uint64_t there = becalm__lease_pot_whole(&lease->own);
    uint64_t want = level > left ? level - left : 0;
    uint64_t drawn = want < there ? want : there;
    becalm__lease_pot_draw(&lease->own, drawn);
    left_add(lease, drawn);
}

/* Leased: reports to the store, and returns retries that are far more than needed. */
static void live_on_lease(struct becalm_lease *lease, const struct becalm_lease_policy *policy, becalm_ns now,
                          const struct lately *lately)
{
    uint64_t level = level_of(lease, policy, now, lately);
    lease->last.first += lately->first;
    uint64_t enough = lease->wanted_most > 0
                          ? 2 * level
                          : level + level / 2; /* the wanted number varies a little from call to call */
    if (becalm_lease_left(lease) + lease->back > enough) {
        left_return(lease, level);
    }
    if (lease->back > 0) {
        back_let(lease, now, true);
    }
}

/* The lease is over: the rest of it is returned as soon as the store can be reached. */
static struct lately look_after(struct becalm_lease *lease, const struct becalm_lease_policy *policy,
                                const struct becalm_moment *at)
{
    struct lately lately = lately_count(lease, at->now);
    if (!becalm_lease_degraded(lease) && at->now >= lease->expires_at) {
        left_return(lease, 0);
        degrade(lease, policy, at->now);
    }
    if (becalm_lease_degraded(lease)) {
        live_alone(lease, policy, at->now, &lately);
    } else {
        live_on_lease(lease, policy, at->now, &lately);
    }
    becalm_ns next = lease->next == 0 ? BECALM_LEASE_NEXT : lease->next;
    uint64_t draw = becalm_rand_lane(at->random, BECALM_LANE_ASK);
    lease->next_at = becalm_ns_after(at->now, becalm_rand_between(draw, next * 2 / 3, next * 4 / 3));
    return lately;
}

/* Only one thread writes them. */
static void ever_add(BECALM_ATOMIC(uint64_t) * ever, uint64_t more)
{
    atomic_store_explicit(ever, atomic_load_explicit(ever, memory_order_relaxed) + more, memory_order_relaxed);
}

/* A retry that was given back lowers `spent`: the displayed total stays until it is spent again. */
static void totals_count(struct becalm_lease *lease)
{
    const struct becalm_lease_request *last = &lease->last;
    ever_add(&lease->told_ever, last->first - lease->told_first);
    ever_add(&lease->returned_ever, last->returned - lease->told_returned);
    if (last->spent > lease->spent_counted) {
        ever_add(&lease->spent_ever, last->spent - lease->spent_counted);
        lease->spent_counted = last->spent;
    }
}

/* The present totals. While degraded, `left` never came from the store, or counts as spent. */
static void request_fill(struct becalm_lease *lease, const struct becalm_moment *at)
{
    struct becalm_lease_request *last = &lease->last;
    if (last->instance == 0) {
        last->instance = becalm_rand_lane(at->random, BECALM_LANE_INSTANCE) | 1;
    }
    uint64_t left = becalm_lease_degraded(lease) ? 0 : becalm_lease_left(lease) + lease->back;
    uint64_t kept = last->granted - last->returned;
    last->spent = kept > left ? kept - left : 0;
    last->number++;
    totals_count(lease);
    lease->told_first = last->first;
    lease->told_returned = last->returned;
}

becalm_ns becalm_lease_ask_at(const struct becalm_lease *lease)
{
    return lease->next_at;
}

void becalm_lease_tend(struct becalm_lease *lease, const struct becalm_lease_policy *policy,
                       const struct becalm_moment *at)
{
    (void)look_after(lease, policy, at);
}

/* Nothing is to be told or asked, and the lease lasts for a while. */
static bool is_idle(const struct becalm_lease *lease, uint64_t level, becalm_ns now)
{
    return !becalm_lease_degraded(lease) && lease->last.first == lease->told_first &&
           lease->last.returned == lease->told_returned && lease->wanted_most == 0 &&
           becalm_lease_left(lease) + lease->back >= level && becalm_ns_since(lease->expires_at, now) > lease->ttl / 2;
}

bool becalm_lease_ask(struct becalm_lease *lease, const struct becalm_lease_policy *policy,
                      const struct becalm_moment *at, struct becalm_lease_request *request)
{
    struct lately lately = look_after(lease, policy, at);
    if (lease->waiting && becalm_ns_since(at->now, lease->asked_at) < BECALM_LEASE_TIMEOUT) {
        return false;
    }
    uint64_t level = level_of(lease, policy, at->now, &lately);
    if (is_idle(lease, level, at->now)) {
        return false;
    }
    request_fill(lease, at);
    lease->last.level = level;
    lease->level_max = level > lease->level_max ? level : lease->level_max;
    lease->waiting = true;
    lease->asked_at = at->now;
    *request = lease->last;
    return true;
}

/* Could the store have granted this many? The store grants no more than the instance asked for: at most the level of an
 * earlier request whose answer was lost. */
static bool is_sane(const struct becalm_lease *lease, const struct becalm_lease_answer *answer)
{
    return answer->granted >= lease->last.granted && answer->granted - lease->last.granted <= lease->level_max &&
           answer->live > 0 && answer->live <= BECALM_LEASE_LIVE_MAX && answer->next >= BECALM_LEASE_NEXT_MIN &&
           answer->era <= BECALM__LEASE_MOST && answer->next <= BECALM_LEASE_NEXT_MAX && answer->ttl > 0 &&
           answer->ttl <= BECALM_LEASE_TTL_MAX;
}

bool becalm_lease_answer(struct becalm_lease *lease, becalm_ns now, const struct becalm_lease_answer *answer)
{
    if (!lease->waiting || answer->number != lease->last.number || !is_sane(lease, answer)) {
        return false;
    }
    if (becalm_ns_since(now, lease->asked_at) >= answer->ttl) {
        return false; /* too late to be of use */
    }
    if (becalm_lease_degraded(lease)) {
        (void)left_cut(lease, 0); /* retries of its own share end with it */
        atomic_store_explicit(&lease->degraded, 0, memory_order_relaxed);
    }
    granted_take(lease, now, answer->granted - lease->last.granted);
    ever_add(&lease->granted_ever, answer->granted - lease->last.granted);
    lease->last.granted = answer->granted;
    lease->last.answered = answer->number;
    lease->level_max = 0;
    lease->waiting = false;
    lease->expires_at = becalm_ns_after(now, answer->ttl); /* the next answer may take as long as this one did */
    lease->ttl = answer->ttl;
    lease->next = answer->next;
    lease->room = answer->room;
    lease->last.era = answer->era;
    atomic_store_explicit(&lease->live, answer->live, memory_order_relaxed);
    return true;
}

/* The last request of a name. */
static void goodbye_fill(struct becalm_lease *lease, const struct becalm_moment *at,
                         struct becalm_lease_request *request)
{
    request_fill(lease, at);
    lease->last.level = 0;
    lease->last.leaving = true;
    lease->waiting = false;
    *request = lease->last;
}

/* The next request comes from a new instance: another name. */
static void name_forget(struct becalm_lease *lease)
{
    lease->last =
        (struct becalm_lease_request){.era = lease->last.era}; /* the era belongs to the store and outlives the name */
    lease->told_first = lease->told_returned = lease->spent_counted = 0;
    lease->level_max = 0;
    lease->waiting = false;
}

bool becalm_lease_lost(struct becalm_lease *lease, const struct becalm_lease_policy *policy,
                       const struct becalm_moment *at, struct becalm_lease_request *goodbye)
{
    bool known = lease->last.answered > 0;
    struct lately lately = lately_count(lease, at->now);
    if (!becalm_lease_degraded(lease)) {
        degrade(lease, policy, at->now);
    }
    live_alone(lease, policy, at->now, &lately);
    if (known) {
        goodbye_fill(lease, at, goodbye);
    }
    name_forget(lease);
    return known;
}

void becalm_lease_leave(struct becalm_lease *lease, const struct becalm_moment *at,
                        struct becalm_lease_request *request)
{
    struct lately lately = lately_count(lease, at->now);
    if (!becalm_lease_degraded(lease)) {
        lease->last.first += lately.first;
        left_return(lease, 0);
        atomic_store_explicit(&lease->degraded, 1, memory_order_relaxed);
    }
    goodbye_fill(lease, at, request);
    name_forget(lease);
}
