/* SPDX-License-Identifier: MIT */
#include <becalm/backoff.h>

#define FACTOR_ONE 1000000u
#define FACTOR_MAX 100000000u
#define BASE_MAX   (24 * 3600 * BECALM_S)

void becalm_backoff_defaults(struct becalm_backoff_policy *policy)
{
    *policy = (struct becalm_backoff_policy){
        .growth = BECALM_GROWTH_EXPONENTIAL,
        .jitter = BECALM_JITTER_FULL,
        .base = 100 * BECALM_MS,
        .cap = 10 * BECALM_S,
        .factor_ppm = 2 * FACTOR_ONE,
        .jitter_ppm = FACTOR_ONE / 2,
    };
}

int becalm_backoff_check(const struct becalm_backoff_policy *policy, const char **why)
{
    const char *wrong = NULL;
    if ((unsigned)policy->growth > BECALM_GROWTH_CONSTANT) {
        wrong = "growth must be one of enum becalm_growth";
    } else if ((unsigned)policy->jitter > BECALM_JITTER_CUSTOM) {
        wrong = "jitter must be one of enum becalm_jitter";
    } else if (policy->base > BASE_MAX) {
        wrong = "base must be at most 24 h";
    } else if (policy->cap < policy->base) {
        wrong = "cap must be at least base";
    } else if (policy->cap > BASE_MAX) {
        wrong = "cap must be at most 24 h";
    } else if (policy->factor_ppm < FACTOR_ONE || policy->factor_ppm > FACTOR_MAX) {
        wrong = "factor_ppm must be from 1,000,000 (1) to 100,000,000 (100)";
    } else if (policy->jitter_ppm > FACTOR_ONE) {
        wrong = "jitter_ppm must be at most 1,000,000 (1)";
    } else if (policy->jitter == BECALM_JITTER_CUSTOM && policy->custom == NULL) {
        wrong = "custom must be set when jitter is BECALM_JITTER_CUSTOM";
    }
    if (why != NULL) {
        *why = wrong;
    }
    return wrong == NULL ? 0 : BECALM_EINVAL;
}

/* One step of growth. Whole factors, doubling above all, need no division. */
static becalm_ns grown(becalm_ns delay, uint32_t factor_ppm)
{
    if (factor_ppm % FACTOR_ONE == 0 && delay <= BASE_MAX) {
        return delay * (factor_ppm / FACTOR_ONE);
    }
    return becalm_ns_scale(delay, factor_ppm, FACTOR_ONE);
}

becalm_ns becalm_backoff_delay(const struct becalm_backoff_policy *policy, uint32_t n)
{
    if (n == 0) {
        return 0;
    }
    becalm_ns delay = policy->base;
    switch (policy->growth) {
    case BECALM_GROWTH_CONSTANT:
        break;
    case BECALM_GROWTH_LINEAR:
        delay = becalm_ns_scale(policy->base, n, 1);
        break;
    case BECALM_GROWTH_EXPONENTIAL:
        /* A factor of 1 or a base of 0 never reaches the cap and would walk all n steps: one step says it all. */
        if (policy->factor_ppm == FACTOR_ONE || delay == 0) {
            break;
        }
        for (uint32_t i = 1; i < n && delay < policy->cap; i++) {
            becalm_ns longer = grown(delay, policy->factor_ppm);
            if (longer == delay) {
                break; /* a few nanoseconds times 1.0001: it will not grow any more */
            }
            delay = longer;
        }
        break;
    }
    return becalm_ns_min(delay, policy->cap);
}

static becalm_ns jitter_proportional(const struct becalm_backoff_policy *policy, becalm_ns delay, uint64_t random)
{
    becalm_ns spread = becalm_ns_scale(delay, policy->jitter_ppm, FACTOR_ONE);
    return becalm_rand_between(random, delay - spread, becalm_ns_min(policy->cap, becalm_ns_after(delay, spread)));
}

static becalm_ns jitter_decorrelated(const struct becalm_backoff_policy *policy, becalm_ns previous, uint64_t random)
{
    becalm_ns from = becalm_ns_max(previous, policy->base);
    return becalm_ns_min(policy->cap, becalm_rand_between(random, policy->base, becalm_ns_scale(from, 3, 1)));
}

static becalm_ns jittered(const struct becalm_backoff_policy *policy, const struct becalm_backoff_draw *draw,
                          becalm_ns delay)
{
    uint64_t random = becalm_rand_lane(draw->random, BECALM_LANE_JITTER);
    switch (policy->jitter) {
    case BECALM_JITTER_NONE:
        return delay;
    case BECALM_JITTER_FULL:
        return becalm_rand_between(random, 0, delay);
    case BECALM_JITTER_EQUAL:
        return becalm_rand_between(random, delay / 2, delay);
    case BECALM_JITTER_DECORRELATED:
        return jitter_decorrelated(policy, draw->previous, random);
    case BECALM_JITTER_PROPORTIONAL:
        return jitter_proportional(policy, delay, random);
    case BECALM_JITTER_CUSTOM:
        return becalm_ns_min(policy->cap, policy->custom(delay, random, policy->custom_data));
    }
    BECALM_UNREACHABLE();
}

void becalm_backoff_wait(const struct becalm_backoff_policy *policy, const struct becalm_backoff_draw *draw,
                         struct becalm_wait *wait)
{
    wait->delay = becalm_backoff_delay(policy, draw->n);
    wait->jittered = draw->n == 0 ? 0 : jittered(policy, draw, wait->delay);
    wait->wait = wait->jittered;
    wait->hinted = false;
    if (draw->hint == BECALM_NEVER) {
        return;
    }
    uint64_t random = becalm_rand_lane(draw->random, BECALM_LANE_HINT);
    becalm_ns spread = becalm_ns_after(draw->hint, becalm_rand_below(random, draw->hint / 2));
    if (spread > wait->wait) {
        wait->wait = spread;
        wait->hinted = true;
    }
}
