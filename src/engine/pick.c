/* SPDX-License-Identifier: MIT */
#include <becalm/pick.h>

#include "outlier_internal.h"

#define GUESS_ABOVE 16u /* with fewer hosts, looking at each is cheaper than guessing */
#define GUESSES     8u  /* per choice; with half of the hosts unfit, one of 128 picks looks at them all */

/* The inputs of one pick. */
struct choice {
    const struct becalm_hosts *hosts;
    const struct becalm_outlier_policy *policy;
    const struct becalm_moment *at;
    const struct becalm_tried *tried; /* NULL: a first attempt */
};

/* How far a host is from fit, the lower the better. "Not usable" outweighs the rest: a host that has just failed this
 * call often answers the next attempt, one that is ejected has failed all callers. One that fails its checks fails now,
 * one that was ejected has failed a while ago. */
enum { FIT = 0, ASKED_FOR_QUIET = 1, TRIED = 2, NOT_USABLE = 4, FAILS_CHECKS = 8 };

static uint64_t in_flight(const struct becalm_hosts *hosts, uint32_t host)
{
    /* relaxed: a number to compare by; a choice by an old one is still a choice */
    return atomic_load_explicit(&hosts->host[host].in_flight, memory_order_relaxed);
}

/* How much a host has to do, and its failures in a row while the last one is fresh: a host that refuses everything at
 * once has nothing to do, and would otherwise draw all attempts to itself until it is ejected. An attempt that timed
 * out was something to do: its failure is fresh for twice as long as the attempt took, any other for a second. */
static uint64_t burden(const struct choice *c, uint32_t host)
{
    const struct becalm_host *h = &c->hosts->host[host];
    struct becalm__streak streak = becalm__streak_read(h);
    if (streak.failures > 0) {
        becalm_ns failed_at = atomic_load_explicit(&h->calm_since, memory_order_relaxed);
        streak.failures = becalm_ns_since(c->at->now, failed_at) < streak.fresh ? streak.failures : 0;
    }
    return in_flight(c->hosts, host) + streak.failures;
}

/* Of two choices the one with the smaller burden; the first if they are equal. */
static uint32_t idler(const struct choice *c, uint32_t first, uint32_t second)
{
    return burden(c, second) < burden(c, first) ? second : first;
}

static bool was_tried(const struct becalm_tried *tried, uint32_t host)
{
    for (uint32_t i = 0; i < tried->count; i++) {
        if (tried->host[i] == host) {
            return true;
        }
    }
    return false;
}

static unsigned unfitness(const struct choice *c, uint32_t host)
{
    unsigned unfit = c->tried != NULL && was_tried(c->tried, host) ? TRIED : FIT;
    if (!becalm_host_usable(c->hosts, c->policy, host, c->at->now)) {
        return unfit | (becalm_host_fails_checks(c->hosts, host) ? FAILS_CHECKS : NOT_USABLE);
    }
    bool quiet = c->tried != NULL && becalm_hosts_hint(c->hosts, host, c->at->now) > 0;
    return quiet ? unfit | ASKED_FOR_QUIET : unfit;
}

/* Every host is as good as any other: two different ones, without a look at the rest. */
static uint32_t pick_any(const struct choice *c)
{
    uint32_t count = c->hosts->count;
    if (count == 1) {
        return 0;
    }
    uint32_t first = (uint32_t)becalm_rand_below(becalm_rand_lane(c->at->random, BECALM_LANE_PICK), count);
    uint32_t second = (uint32_t)becalm_rand_below(becalm_rand_lane(c->at->random, BECALM_LANE_PICK_OTHER), count - 1);
    second += second >= first;
    return idler(c, first, second);
}

/* A fit host other than `other` by a few guesses, or BECALM_NO_HOST. */
static uint32_t guess(const struct choice *c, enum becalm_lane lane, uint32_t other)
{
    uint64_t state = becalm_rand_lane(c->at->random, lane);
    for (uint32_t i = 0; i < GUESSES; i++) {
        uint32_t host = (uint32_t)becalm_rand_below(becalm_rand_next(&state), c->hosts->count);
        if (host != other && unfitness(c, host) == FIT) {
            return host;
        }
    }
    return BECALM_NO_HOST;
}

/* Two of the least unfit hosts, each pair with the same chance: a reservoir of two, so one look at each host is enough
 * and no list is needed. */
static uint32_t pick_by_scan(const struct choice *c)
{
    uint64_t state = becalm_rand_lane(c->at->random, BECALM_LANE_PICK);
    uint32_t kept[2] = {BECALM_NO_HOST, BECALM_NO_HOST};
    unsigned least = UINT32_MAX;
    uint64_t seen = 0;
    for (uint32_t host = 0; host < c->hosts->count; host++) {
        unsigned unfit = unfitness(c, host);
        if (unfit < least) {
            least = unfit;
            seen = 0;
        }
        if (unfit == least) {
            uint64_t place = seen < 2 ? seen : becalm_rand_below(becalm_rand_next(&state), seen + 1);
            seen++;
            if (place < 2) {
                kept[place] = host;
            }
        }
    }
    if (seen == 1) {
        return kept[0];
    }
    /* The reservoir keeps low numbers first: a coin decides which is the first choice, or ties would always go there.
     */
    uint64_t coin = becalm_rand_below(becalm_rand_lane(c->at->random, BECALM_LANE_PICK_OTHER), 2);
    return idler(c, kept[coin], kept[1 - coin]);
}

uint32_t becalm_pick(const struct becalm_hosts *hosts, const struct becalm_outlier_policy *policy,
                     const struct becalm_moment *at, const struct becalm_tried *tried)
{
    if (hosts->count == 0) {
        return BECALM_NO_HOST;
    }
    struct choice c = {hosts, policy, at, tried != NULL && tried->count > 0 ? tried : NULL};
    /* relaxed: a host that is ejected at this moment may still get this attempt */
    if (c.tried == NULL && atomic_load_explicit(&hosts->out, memory_order_relaxed) == 0) {
        return pick_any(&c);
    }
    if (hosts->count > GUESS_ABOVE) {
        uint32_t first = guess(&c, BECALM_LANE_PICK, BECALM_NO_HOST);
        uint32_t second = first == BECALM_NO_HOST ? first : guess(&c, BECALM_LANE_PICK_OTHER, first);
        if (second != BECALM_NO_HOST) {
            return idler(&c, first, second);
        }
    }
    return pick_by_scan(&c);
}

uint32_t becalm_pick_probe(const struct becalm_hosts *hosts, const struct becalm_outlier_policy *policy,
                           const struct becalm_moment *at)
{
    struct choice c = {hosts, policy, at, NULL};
    uint32_t best = BECALM_NO_HOST;
    unsigned least = UINT32_MAX;
    uint32_t fewest = UINT32_MAX;
    if (hosts->count == 0) {
        return best;
    }
    /* From a random host on, so that of equal ones each has its turn. */
    uint32_t first = (uint32_t)becalm_rand_below(becalm_rand_lane(at->random, BECALM_LANE_PICK), hosts->count);
    for (uint32_t i = 0; i < hosts->count; i++) {
        uint32_t host = (first + i) % hosts->count;
        unsigned unfit = unfitness(&c, host);
        uint32_t failures = becalm__streak_read(&hosts->host[host]).failures;
        if (unfit < least || (unfit == least && failures < fewest)) {
            best = host;
            least = unfit;
            fewest = failures;
        }
    }
    return best;
}
