/* SPDX-License-Identifier: MIT */
#include <becalm/breaker.h>

#define PPM       1000000u
#define SHORTEST  BECALM_MS
#define LONGEST   (86400 * BECALM_S)
#define COUNT_MAX 65535u /* probes and thresholds: 16 bits of the breaker's word */

void becalm_breaker_defaults(struct becalm_breaker_policy *policy)
{
    *policy = (struct becalm_breaker_policy){
        .enabled = true,
        .mode = BECALM_BREAKER_RATE,
        .failure_share_ppm = PPM,
        .slow_share_ppm = BECALM_BREAKER_SLOW_OFF,
        .slow_after = 60 * BECALM_S,
        .window_kind = BECALM_WINDOW_TIME,
        .window_size = 10,
        .min_calls = 20,
        .probes = 1,
        .half_open_for = 5 * BECALM_S,
        .open_for = BECALM_S,
        .open_factor_ppm = PPM,
        .open_cap = 60 * BECALM_S,
        .failure_threshold = 5,
        .success_threshold = 2,
    };
}

void becalm_breaker_resilience4j(struct becalm_breaker_policy *policy)
{
    becalm_breaker_defaults(policy);
    policy->failure_share_ppm = PPM / 2;
    policy->slow_share_ppm = PPM;
    policy->window_kind = BECALM_WINDOW_COUNT;
    policy->window_size = 100;
    policy->min_calls = 100;
    policy->probes = 10;
    policy->open_for = 60 * BECALM_S;
}

static bool between(uint64_t value, uint64_t low, uint64_t high)
{
    return low <= value && value <= high;
}

static const char *check_window(const struct becalm_breaker_policy *policy)
{
    switch (policy->window_kind) {
    case BECALM_WINDOW_COUNT:
        return between(policy->window_size, 1, BECALM_WINDOW_SIZE_MAX)
                   ? NULL
                   : "window_size must be 1 to 1,000,000 calls for a COUNT window";
    case BECALM_WINDOW_TIME:
        return between(policy->window_size, 1, LONGEST / BECALM_S)
                   ? NULL
                   : "window_size must be 1 to 86,400 seconds for a TIME window";
    }
    return "window_kind must be COUNT or TIME";
}

static const char *check_rate(const struct becalm_breaker_policy *policy)
{
    if (!between(policy->failure_share_ppm, 1, PPM)) {
        return "failure_share_ppm must be 1 to 1,000,000";
    }
    if (policy->slow_share_ppm > PPM) {
        return "slow_share_ppm must be at most 1,000,000";
    }
    if (policy->slow_share_ppm != BECALM_BREAKER_SLOW_OFF && !between(policy->slow_after, SHORTEST, LONGEST)) {
        return "slow_after must be 1 ms to 24 h";
    }
    if (!between(policy->min_calls, 1, BECALM_WINDOW_SIZE_MAX)) {
        return "min_calls must be 1 to 1,000,000";
    }
    if (!between(policy->probes, 1, COUNT_MAX)) {
        return "probes must be 1 to 65,535";
    }
    return NULL;
}

static const char *check_consecutive(const struct becalm_breaker_policy *policy)
{
    if (!between(policy->failure_threshold, 1, COUNT_MAX)) {
        return "failure_threshold must be 1 to 65,535";
    }
    if (!between(policy->success_threshold, 1, COUNT_MAX)) {
        return "success_threshold must be 1 to 65,535";
    }
    return NULL;
}

static const char *check_mode(const struct becalm_breaker_policy *policy)
{
    switch (policy->mode) {
    case BECALM_BREAKER_RATE:
        return check_rate(policy);
    case BECALM_BREAKER_CONSECUTIVE:
        return check_consecutive(policy);
    }
    return "mode must be RATE or CONSECUTIVE";
}

static const char *check_times(const struct becalm_breaker_policy *policy)
{
    if (!between(policy->half_open_for, SHORTEST, LONGEST)) {
        return "half_open_for must be 1 ms to 24 h";
    }
    if (!between(policy->open_for, SHORTEST, LONGEST)) {
        return "open_for must be 1 ms to 24 h";
    }
    if (!between(policy->open_factor_ppm, PPM, 100 * PPM)) {
        return "open_factor_ppm must be 1,000,000 to 100,000,000";
    }
    /* The cap bounds growth. Without growth it says nothing, so a long open_for alone needs no second setting. */
    if (policy->open_factor_ppm > PPM && !between(policy->open_cap, policy->open_for, LONGEST)) {
        return "open_cap must be at least open_for and at most 24 h";
    }
    return NULL;
}

int becalm_breaker_check(const struct becalm_breaker_policy *policy, const char **why)
{
    const char *wrong = check_mode(policy);
    if (wrong == NULL) {
        wrong = check_window(policy);
    }
    if (wrong == NULL) {
        wrong = check_times(policy);
    }
    if (why != NULL) {
        *why = wrong;
    }
    return wrong == NULL ? 0 : BECALM_EINVAL;
}
