/* SPDX-License-Identifier: MIT */
#include <becalm/throttle.h>

#include "window_internal.h"

#define LINE   64u
#define SLICES 60u /* 2 s each at the default window of 2 min */
#define CELLS  4u
#define PPM    UINT64_C(1000000)
#define MILLI  UINT64_C(1000)
#define K_MIN  1000u /* below 1 a healthy callee would be throttled */
#define K_MAX  100000u

/* The window follows the struct on a line of its own. */
#define WINDOW_OFFSET ((sizeof(struct becalm_throttle) + LINE - 1) / LINE * LINE)

enum { LANE_REQUESTS, LANE_ACCEPTS, LANES };

/* Every decision reads all cells, so more than a few cost more in reading than they save in writing: a microsecond and
 * a half with eight, thirteen with 64. A number out of range stays so, for the window to refuse. */
static uint32_t cells_of(uint32_t cells)
{
    return cells > CELLS && cells <= BECALM_WINDOW_CELLS_MAX ? CELLS : cells;
}

static struct becalm_window_shape shape_of(const struct becalm_throttle_policy *policy, uint32_t cells)
{
    return (struct becalm_window_shape){
        .kind = BECALM_WINDOW_TIME,
        .span = policy->window,
        .slices = SLICES,
        .lanes = LANES,
        .cells = cells_of(cells),
    };
}

void becalm_throttle_defaults(struct becalm_throttle_policy *policy)
{
    *policy = (struct becalm_throttle_policy){
        .enabled = false,
        .k_milli = 2000,
        .window = 120 * BECALM_S,
    };
}

int becalm_throttle_check(const struct becalm_throttle_policy *policy, const char **why)
{
    const char *wrong = NULL;
    if (policy->k_milli < K_MIN || policy->k_milli > K_MAX) {
        wrong = "k_milli must be from 1,000 (1) to 100,000 (100)";
    } else if (policy->window < BECALM_S || policy->window > 3600 * BECALM_S) {
        wrong = "window must be from 1 s to 1 h";
    }
    if (why != NULL) {
        *why = wrong;
    }
    return wrong == NULL ? 0 : BECALM_EINVAL;
}

size_t becalm_throttle_bytes(const struct becalm_throttle_policy *policy, uint32_t cells)
{
    struct becalm_window_shape shape = shape_of(policy, cells);
    size_t bytes = becalm_window_bytes(&shape);
    return bytes == 0 ? 0 : WINDOW_OFFSET + bytes;
}

struct becalm_throttle *becalm_throttle_init(void *memory, const struct becalm_throttle_policy *policy, uint32_t cells)
{
    BECALM_ASSERT(becalm_throttle_check(policy, NULL) == 0);
    BECALM_ASSERT((uintptr_t)memory % LINE == 0);
    struct becalm_window_shape shape = shape_of(policy, cells);
    struct becalm_throttle *throttle = memory;
    atomic_init(&throttle->waiting, 0);
    atomic_init(&throttle->credit, 0);
    throttle->window = becalm_window_init((unsigned char *)memory + WINDOW_OFFSET, &shape);
    return throttle;
}

/* (requests - K * accepts) / (requests + 1) in ppm, rounded down: so it never reaches 1,000,000. */
static uint32_t chance_of(uint64_t requests, uint64_t accepts, uint32_t k_milli)
{
    /* K is at least 1. An accept is noted in a later slice than its request, so there may even be more of them. */
    if (accepts >= requests) {
        return 0;
    }
    /* Only the ratio matters: bring the counts down until 10^9 times them fits 64 bits. */
    while (requests >> 33 != 0) {
        requests >>= 1;
        accepts >>= 1;
    }
    uint64_t sent = MILLI * requests;
    uint64_t allowed = k_milli * accepts;
    if (allowed >= sent) {
        return 0;
    }
    return (uint32_t)((sent - allowed) * PPM / (MILLI * (requests + 1)));
}

static uint32_t chance_now(const struct becalm_throttle *throttle, const struct becalm_throttle_policy *policy,
                           const struct becalm_window_sums *sums)
{
    uint64_t waiting = atomic_load_explicit(&throttle->waiting, memory_order_relaxed); /* relaxed: only a statistic */
    uint64_t requests = sums->lane[LANE_REQUESTS];
    return chance_of(requests > waiting ? requests - waiting : 0, sums->lane[LANE_ACCEPTS], policy->k_milli);
}

uint32_t becalm_throttle_chance(const struct becalm_throttle *throttle, const struct becalm_throttle_policy *policy,
                                becalm_ns now)
{
    struct becalm_window_sums sums;
    becalm_window_read(throttle->window, now, &sums);
    return chance_now(throttle, policy, &sums);
}

void becalm_throttle_wait(struct becalm_throttle *throttle)
{
    atomic_fetch_add_explicit(&throttle->waiting, 1, memory_order_relaxed);
}

void becalm_throttle_decided(struct becalm_throttle *throttle)
{
    atomic_fetch_sub_explicit(&throttle->waiting, 1, memory_order_relaxed);
}

/* Adding the window up for every call is the dearest part of a healthy one. Within a slice nothing falls out of the
 * window, so while K * accepts is above the requests by n, the next n calls pass, however the calls before them end.
 */
static bool credit_take(struct becalm_throttle *throttle, uint32_t slice)
{
    uint64_t credit = atomic_load_explicit(&throttle->credit, memory_order_relaxed);
    return credit >> 32 == slice && (uint32_t)credit > 0 &&
           atomic_compare_exchange_strong_explicit(&throttle->credit, &credit, credit - 1, memory_order_relaxed,
                                                   memory_order_relaxed); /* lost: the sum is still exact */
}

static void credit_set(struct becalm_throttle *throttle, const struct becalm_throttle_policy *policy, uint32_t slice,
                       const struct becalm_window_sums *sums)
{
    uint64_t accepts = sums->lane[LANE_ACCEPTS] < UINT32_MAX ? sums->lane[LANE_ACCEPTS] : UINT32_MAX;
    uint64_t allowed = policy->k_milli * accepts / MILLI;
    uint64_t requests = sums->lane[LANE_REQUESTS] + 1; /* this one */
    uint64_t count = allowed > requests ? allowed - requests : 0;
    count = count < UINT32_MAX ? count : UINT32_MAX;
    atomic_store_explicit(&throttle->credit, (uint64_t)slice << 32 | count, memory_order_relaxed);
}

bool becalm_throttle_admit(struct becalm_throttle *throttle, const struct becalm_throttle_policy *policy,
                           const struct becalm_moment *at)
{
    uint32_t slice = (uint32_t)becalm__window_slice(throttle->window, at->now);
    if (credit_take(throttle, slice)) {
        becalm_window_note(throttle->window, at, 1u << LANE_REQUESTS);
        return true;
    }
    /* The call itself is no evidence yet. If it were counted before the sums are read, a single call after a quiet
     * window would be refused every other time: (1 - 0) / (1 + 1). It is counted whether or not the draw lets it pass.
     */
    struct becalm_window_sums sums;
    becalm_window_read(throttle->window, at->now, &sums);
    uint32_t chance = chance_now(throttle, policy, &sums);
    credit_set(throttle, policy, slice, &sums);
    becalm_window_note(throttle->window, at, 1u << LANE_REQUESTS);
    return !becalm_rand_chance(becalm_rand_lane(at->random, BECALM_LANE_THROTTLE), chance);
}

void becalm_throttle_note(struct becalm_throttle *throttle, const struct becalm_moment *at,
                          const struct becalm_outcome *outcome)
{
    if (becalm_outcome_traits(outcome->kind)->acceptance == BECALM_ACCEPTANCE_YES) {
        becalm_window_note(throttle->window, at, 1u << LANE_ACCEPTS);
    }
}
