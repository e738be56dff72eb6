/* SPDX-License-Identifier: MIT */
#include <becalm/budget.h>

/* Checks a budget's policy. Only the fields of its kind are checked: all other fields have no meaning. */

#define MILLION          1000000u
#define REFILL_EVERY_MAX (24 * 3600 * BECALM_S)
#define REFILL_ALL_MAX   (100 * 365 * REFILL_EVERY_MAX) /* until an empty bucket is full; with room for sums */
#define START_MAX        (1000 * BECALM_TOKEN)
#define SHARE_MAX        (1000 * MILLION) /* Finagle's bound: a thousand retries per first attempt */

void becalm_budget_defaults(struct becalm_budget_policy *policy, enum becalm_budget_kind kind)
{
    *policy = (struct becalm_budget_policy){
        .kind = kind,
        .share_ppm = kind == BECALM_BUDGET_CONCURRENCY ? 200000 : 100000,
        .start = BECALM_TOKEN,
        .never_sent_cost = BECALM_TOKEN / 2,
        .window = 120 * BECALM_S,
        .min_per_second = 0,
        .of_attempts = false,
        .min_concurrency = 3,
        .min_share_ppm = 100000,
        .max_share_ppm = 300000,
        .capacity = kind == BECALM_BUDGET_AWS ? 500 : 50,
        .refill_per_second = 20,
        .max_tokens_milli = 10000,
        .token_ratio_milli = 100,
        .retry_cost = 5,
        .timeout_cost = 10,
    };
}

/* Each of the next functions names the first field of its kind that is out of range; NULL: none is. */

static const char *earned_fault(const struct becalm_budget_policy *policy)
{
    if (policy->share_ppm > MILLION) {
        return "share_ppm must be at most 1000000: a success earns at most one token";
    }
    if (policy->start > START_MAX) {
        return "start must be at most 1000 tokens (1000000000)";
    }
    if (policy->never_sent_cost < 1 || policy->never_sent_cost > BECALM_TOKEN) {
        return "never_sent_cost must be from 1 to 1000000, one token";
    }
    return NULL;
}

static const char *window_fault(const struct becalm_budget_policy *policy)
{
    if (policy->window < BECALM_S || policy->window > 3600 * BECALM_S) {
        return "window must be from 1 s to 1 h";
    }
    return NULL;
}

static const char *ratio_fault(const struct becalm_budget_policy *policy)
{
    if (policy->of_attempts && policy->share_ppm >= MILLION) {
        return "share_ppm must be below 1000000 with of_attempts: retries can't be all attempts";
    }
    if (policy->share_ppm > SHARE_MAX) {
        return "share_ppm must be at most 1000000000: a thousand retries per first attempt";
    }
    if (policy->min_per_second > MILLION) {
        return "min_per_second must be at most 1000000";
    }
    return window_fault(policy);
}

static const char *tokens_fault(const struct becalm_budget_policy *policy)
{
    if (policy->capacity < 1 || policy->capacity > MILLION) {
        return "capacity must be from 1 to 1000000 tokens";
    }
    if (policy->refill_per_second > MILLION) {
        return "refill_per_second must be at most 1000000";
    }
    if (policy->refill_every > REFILL_EVERY_MAX) {
        return "refill_every must be at most a day";
    }
    if (policy->refill_every > REFILL_ALL_MAX / policy->capacity) {
        return "capacity times refill_every must be at most 100 years";
    }
    return NULL;
}

static const char *concurrency_fault(const struct becalm_budget_policy *policy)
{
    if (policy->share_ppm > MILLION) {
        return "share_ppm must be at most 1000000: no more retries than calls in progress";
    }
    if (policy->min_concurrency > MILLION) {
        return "min_concurrency must be at most 1000000";
    }
    return NULL;
}

static const char *adaptive_fault(const struct becalm_budget_policy *policy)
{
    if (policy->max_share_ppm > MILLION) {
        return "max_share_ppm must be at most 1000000";
    }
    if (policy->min_share_ppm > policy->max_share_ppm) {
        return "min_share_ppm must be at most max_share_ppm";
    }
    return window_fault(policy);
}

static const char *grpc_fault(const struct becalm_budget_policy *policy)
{
    if (policy->max_tokens_milli < 1 || policy->max_tokens_milli > MILLION) {
        return "max_tokens_milli must be from 1 to 1000000 (1000 tokens)";
    }
    if (policy->token_ratio_milli < 1 || policy->token_ratio_milli > MILLION) {
        return "token_ratio_milli must be from 1 to 1000000";
    }
    return NULL;
}

static const char *aws_fault(const struct becalm_budget_policy *policy)
{
    if (policy->capacity < 1 || policy->capacity > MILLION) {
        return "capacity must be from 1 to 1000000 tokens";
    }
    if (policy->retry_cost < 1 || policy->retry_cost > policy->capacity) {
        return "retry_cost must be from 1 to the capacity";
    }
    if (policy->timeout_cost < 1 || policy->timeout_cost > policy->capacity) {
        return "timeout_cost must be from 1 to the capacity";
    }
    return NULL;
}

static const char *fault(const struct becalm_budget_policy *policy)
{
    switch (policy->kind) {
    case BECALM_BUDGET_EARNED:
        return earned_fault(policy);
    case BECALM_BUDGET_RATIO:
        return ratio_fault(policy);
    case BECALM_BUDGET_TOKENS:
        return tokens_fault(policy);
    case BECALM_BUDGET_CONCURRENCY:
        return concurrency_fault(policy);
    case BECALM_BUDGET_ADAPTIVE:
        return adaptive_fault(policy);
    case BECALM_BUDGET_GRPC:
        return grpc_fault(policy);
    case BECALM_BUDGET_AWS:
        return aws_fault(policy);
    case BECALM_BUDGET_NONE:
        return NULL;
    }
    return "kind must be one of the eight kinds of budget";
}

int becalm_budget_check(const struct becalm_budget_policy *policy, const char **why)
{
    const char *sentence = fault(policy);
    if (sentence == NULL) {
        return 0;
    }
    if (why != NULL) {
        *why = sentence;
    }
    return BECALM_EINVAL;
}
