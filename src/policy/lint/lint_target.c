/* SPDX-License-Identifier: MIT */

/* The rules that judge one target by itself. */

#include "lint_internal.h"
#include "policy/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PPM            1000000u
#define ATTEMPTS_MANY  5u
#define ROUND_TRIP     (10 * BECALM_MS) /* the file does not say it: few services answer over a network in less */
#define RETRIES_ADVICE 2u

static bool retries(const struct lint_target *target)
{
    return target->rules->policy.max_retries > 0;
}

/* The first two digits, so that a suggestion is a number that one would write. */
static becalm_ns round_down(becalm_ns value)
{
    becalm_ns unit = 1;
    while (value / unit >= 100) {
        unit *= 10;
    }
    return value / unit * unit;
}

/* Parts per million as a percentage with one decimal, without trailing zeros. */
static struct lint_text percent(uint64_t ppm)
{
    struct lint_text out;
    uint64_t tenths = (ppm + 500) / 1000;
    if (tenths % 10 == 0) {
        (void)snprintf(out.text, sizeof out.text, "%" PRIu64, tenths / 10);
    } else {
        (void)snprintf(out.text, sizeof out.text, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
    }
    return out;
}

void lint_no_jitter(struct lint *l, const struct lint_target *target)
{
    const struct becalm_backoff_policy *backoff = &target->rules->policy.backoff;
    bool still = backoff->jitter == BECALM_JITTER_NONE ||
                 (backoff->jitter == BECALM_JITTER_PROPORTIONAL && backoff->jitter_ppm == 0);
    struct lint_finding *finding = NULL;
    if (!retries(target) || !still || backoff->base == 0 ||
        (finding = lint_find(l, target, "jitterFactor jitter")) == NULL) {
        return;
    }
    lint_say(finding, "%s: retries without jitter: callers that failed together retry together", l->who);
    lint_remedy(finding, "write `jitter: full`, or remove the key: that is the default");
}

void lint_no_budget(struct lint *l, const struct lint_target *target)
{
    const struct becalm_policy *policy = &target->rules->policy;
    struct lint_finding *finding = NULL;
    if (!retries(target) || policy->budget.kind != BECALM_BUDGET_NONE || target->rules->shared_redis != NULL ||
        (finding = lint_find(l, target, "budget.kind")) == NULL) {
        return;
    }
    lint_say(finding, "%s: retries without any budget: in an outage every call makes %u attempts", l->who,
             policy->max_retries + 1);
    lint_remedy(finding, "write `budget: {kind: earned, percent: 10}`, or remove `budget`: that is the default");
}

void lint_no_slow_call_rate(struct lint *l, const struct lint_target *target)
{
    const struct becalm_policy *policy = &target->rules->policy;
    const struct becalm_breaker_policy *breaker = &policy->breaker;
    bool blind = breaker->mode == BECALM_BREAKER_CONSECUTIVE || breaker->slow_share_ppm == BECALM_BREAKER_SLOW_OFF;
    struct lint_finding *finding = NULL;
    if (!breaker->enabled || !blind || !lint_written(target->rules, "breaker.")) {
        return;
    }
    finding = lint_find(l, target,
                        "breaker.slowCallRateThreshold breaker.mode breaker.enabled breaker.failureRateThreshold "
                        "breaker.failureThreshold breaker.per breaker.slidingWindowType breaker.slidingWindowSize "
                        "breaker.minimumNumberOfCalls breaker.permittedNumberOfCallsInHalfOpenState "
                        "breaker.maxWaitDurationInHalfOpenState breaker.waitDurationInOpenState "
                        "breaker.openMultiplier breaker.successThreshold breaker.slowCallDurationThreshold");
    if (finding == NULL) {
        return;
    }
    lint_say(finding, "%s: the breaker counts failures only: a service that hangs without failing never opens it",
             l->who);
    lint_remedy(finding,
                "write `slowCallRateThreshold: 80` and a `slowCallDurationThreshold` below the attempt timeout (%s)%s",
                lint_duration(policy->attempt_timeout).text,
                breaker->mode == BECALM_BREAKER_CONSECUTIVE ? ", with `mode: rate`" : "");
}

/* Are all its requests of methods that may be repeated? */
static bool all_idempotent(const struct becalm_match *match)
{
    while (match != NULL && match->method != NULL &&
           becalm_http_idempotent((struct becalm_text){match->method, strlen(match->method)})) {
        match = match->next;
    }
    return match == NULL;
}

void lint_post_retry(struct lint *l, const struct lint_target *target)
{
    const struct becalm_rules *rules = target->rules;
    struct lint_finding *finding = NULL;
    if (!rules->policy.idempotent || rules->key == BECALM_KEY_REQUIRED || rules->key == BECALM_KEY_ENFORCED ||
        (!retries(target) && !rules->policy.hedge.enabled)) {
        return;
    }
    bool safe = target->endpoint != NULL && all_idempotent(&target->endpoint->match);
    if (safe || (target->service != NULL && all_idempotent(&target->service->match))) {
        return; /* a service for GET alone has only endpoints for GET */
    }
    finding = lint_find(l, target, "idempotent");
    if (finding == NULL) {
        return;
    }
    lint_say(finding,
             "%s: `idempotent: true` repeats POST and PATCH without an Idempotency-Key: they may be executed twice",
             l->who);
    lint_remedy(finding,
                "write `idempotencyKey: required`, or remove `idempotent`: then only calls with a key are retried");
}

/* The most retries with which a call still fits into its deadline, by halving; 0 also if not even one attempt does. */
static uint32_t retries_that_fit(const struct becalm_policy *policy)
{
    struct becalm_policy fewer = *policy;
    uint32_t fits = 0;
    uint32_t fails = policy->max_retries;
    while (fails - fits > 1) {
        fewer.max_retries = fits + (fails - fits) / 2;
        if (graph_whole(&fewer, graph_waits(&fewer)) <= policy->deadline) {
            fits = fewer.max_retries;
        } else {
            fails = fewer.max_retries;
        }
    }
    return fits;
}

void lint_timeouts_exceed_deadline(struct lint *l, const struct lint_target *target)
{
    const struct becalm_policy *policy = &target->rules->policy;
    becalm_ns waits = graph_waits(policy);
    becalm_ns whole = graph_whole(policy, waits);
    struct lint_finding *finding = NULL;
    bool alone = policy->timeout_kind == BECALM_TIMEOUT_EXACT && policy->attempt_timeout > policy->deadline;
    if (whole <= policy->deadline ||
        (finding = lint_find(l, target,
                             alone ? "attemptTimeout deadline"
                                   : "maxRetries attemptTimeout deadline maxDelay initialDelay multiplier growth "
                                     "jitterFactor jitter")) == NULL) {
        return;
    }
    if (alone) {
        lint_say(finding, "%s: one attempt alone may take %s, longer than the deadline of %s", l->who,
                 lint_duration(policy->attempt_timeout).text, lint_duration(policy->deadline).text);
        lint_remedy(finding, "write an `attemptTimeout` below %s, or a longer `deadline`",
                    lint_duration(policy->deadline).text);
        return;
    }
    uint32_t attempts = policy->max_retries + 1;
    lint_say(finding, "%s: %u attempt%s of %s and waits of up to %s take %s, but the deadline is %s", l->who, attempts,
             attempts == 1 ? "" : "s", lint_duration(policy->attempt_timeout).text, lint_duration(waits).text,
             lint_duration(whole).text, lint_duration(policy->deadline).text);
    uint32_t fewer = retries_that_fit(policy);
    becalm_ns timeout = round_down(becalm_ns_since(policy->deadline, waits) / attempts);
    char retry[48] = "";
    if (fewer > 0) {
        (void)snprintf(retry, sizeof retry, ", or `maxRetries: %u`", fewer);
    }
    if (timeout >= BECALM_MS) {
        lint_remedy(finding, "write `attemptTimeout: %s`%s, or a `deadline` of at least %s",
                    lint_duration(timeout).text, retry, lint_duration(whole).text);
    } else {
        lint_remedy(finding, "write a shorter `maxDelay`%s, or a `deadline` of at least %s", retry,
                    lint_duration(whole).text);
    }
}

/* The half of fresh-timeout that needs no graph. */
void lint_endless_call(struct lint *l, const struct lint_target *target)
{
    const struct becalm_policy *policy = &target->rules->policy;
    struct lint_finding *finding = NULL;
    if (!retries(target) || policy->deadline != BECALM_NEVER || (finding = lint_find(l, target, "deadline")) == NULL) {
        return;
    }
    if (policy->timeout_kind != BECALM_TIMEOUT_EXACT) {
        lint_say(finding, "%s: without a deadline or an attemptTimeout, a call that hangs never ends", l->who);
        lint_remedy(finding, "write a `deadline` that is as long as the slowest answer may take");
        return;
    }
    lint_say(finding, "%s: without a deadline each of %u attempts has a new timeout of %s", l->who,
             policy->max_retries + 1, lint_duration(policy->attempt_timeout).text);
    lint_remedy(finding, "write `deadline: %s`, enough for all attempts and waits",
                lint_duration(graph_whole(policy, graph_waits(policy))).text);
}

void lint_many_attempts(struct lint *l, const struct lint_target *target)
{
    uint32_t attempts = target->rules->policy.max_retries + 1;
    struct lint_finding *finding = NULL;
    if (attempts <= ATTEMPTS_MANY || (finding = lint_find(l, target, "maxRetries")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: %u attempts per call: a service that fails %u times is down, and gets %u times the load for it",
             l->who, attempts, ATTEMPTS_MANY, attempts);
    lint_remedy(finding, "write `maxRetries: %u`", RETRIES_ADVICE);
}

void lint_tiny_percent(struct lint *l, const struct lint_target *target)
{
    const struct becalm_budget_policy *budget = &target->rules->policy.budget;
    bool used = budget->kind == BECALM_BUDGET_EARNED || budget->kind == BECALM_BUDGET_RATIO;
    struct lint_finding *finding = NULL;
    if (!retries(target) || !used || budget->share_ppm == 0 || budget->share_ppm >= PPM / 100 ||
        (finding = lint_find(l, target, "budget.percent")) == NULL) {
        return;
    }
    lint_say(finding, "%s: a budget below 1 %% allows almost no retries; in other systems 0.1 means 10 %%", l->who);
    lint_remedy(finding, "for 10 %%, write `percent: 10`");
}

void lint_budget_floor(struct lint *l, const struct lint_target *target)
{
    const struct becalm_budget_policy *budget = &target->rules->policy.budget;
    const struct becalm_service *service = target->service;
    uint64_t instances = service == NULL ? 1 : service->instances;
    struct lint_finding *finding = NULL;
    if (!retries(target) || instances < 2) {
        return;
    }
    if (budget->kind == BECALM_BUDGET_RATIO && budget->min_per_second > 0 &&
        (finding = lint_find(l, target, "budget.minPerSecond")) != NULL) {
        uint64_t all = instances * budget->min_per_second; /* at most a million squared */
        char of_traffic[80] = "";
        if (service->traffic_milli > 0 && all < UINT64_MAX / 1000 / PPM) {
            (void)snprintf(of_traffic, sizeof of_traffic, " (%s %% of its traffic)",
                           percent(all * 1000 * PPM / service->traffic_milli).text);
        }
        lint_say(finding,
                 "%s: `minPerSecond: %u` in each of the %" PRIu64 " instances that call %s are %" PRIu64
                 " retries a second%s on top of the percentage",
                 l->who, budget->min_per_second, instances, service->name, all, of_traffic);
        lint_remedy(finding, "write `minPerSecond: %" PRIu64 "`, or remove the key",
                    budget->min_per_second / instances);
    } else if (budget->kind == BECALM_BUDGET_CONCURRENCY && budget->min_concurrency > 0 &&
               (finding = lint_find(l, target, "budget.minConcurrency budget.kind")) != NULL) {
        lint_say(finding,
                 "%s: `minConcurrency: %u` in each of the %" PRIu64 " instances that call %s are %" PRIu64
                 " retries at once, however few calls there are",
                 l->who, budget->min_concurrency, instances, service->name, instances * budget->min_concurrency);
        lint_remedy(finding,
                    "write `minConcurrency: %" PRIu64 "`, or retry at one gateway instead of %" PRIu64 " instances",
                    budget->min_concurrency / instances, instances);
    }
}

void lint_concurrency_budget(struct lint *l, const struct lint_target *target)
{
    const struct becalm_budget_policy *budget = &target->rules->policy.budget;
    struct lint_finding *finding = NULL;
    if (!retries(target) || budget->kind != BECALM_BUDGET_CONCURRENCY ||
        (finding = lint_find(l, target, "budget.kind")) == NULL) {
        return;
    }
    struct lint_text share = percent(budget->share_ppm);
    lint_say(finding,
             "%s: a concurrency budget changes with latency: %s %% of the calls in progress are more retries when "
             "calls are slow, and when calls fail fast only minConcurrency (%u) counts",
             l->who, share.text, budget->min_concurrency);
    if (budget->share_ppm == 0) {
        lint_remedy(finding, "write `budget: {kind: earned}`, which is the default");
    } else {
        lint_remedy(finding,
                    "write `budget: {kind: ratio, percent: %s}`: a share of calls, at any latency; or `kind: earned`",
                    share.text);
    }
}

void lint_hedge_and_retry(struct lint *l, const struct lint_target *target)
{
    struct becalm_origin hedge = becalm_rules_origin(target->rules, "hedge.enabled");
    struct becalm_origin retry = becalm_rules_origin(target->rules, "maxRetries");
    struct lint_finding *finding = NULL;
    if (!retries(target) || !target->rules->policy.hedge.enabled || hedge.level == BECALM_FROM_BUILT_IN ||
        hedge.level != retry.level || (finding = lint_find(l, target, "hedge.enabled")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: hedge and maxRetries are written together, but a call uses only one of them: calls that can "
             "be repeated hedge, all other calls retry",
             l->who);
    lint_remedy(finding, "keep one: `hedge` against slow answers, or `maxRetries` against failures");
}

/* Calls that one instance's breaker sees in its window, at most. */
static uint64_t calls_in_window(const struct lint_target *target)
{
    const struct becalm_policy *policy = &target->rules->policy;
    uint64_t attempts = policy->breaker.per_attempt ? policy->max_retries + UINT64_C(1) : 1;
    uint64_t rate = target->service->traffic_milli;
    uint64_t window = policy->breaker.window_size * attempts; /* below 2^37 */
    if (rate > UINT64_MAX / window) {
        return UINT64_MAX;
    }
    return rate * window / 1000 / target->service->instances;
}

void lint_breaker_never_trips(struct lint *l, const struct lint_target *target)
{
    static const char keys[] = "breaker.minimumNumberOfCalls breaker.slidingWindowSize breaker.slidingWindowType "
                               "breaker.failureRateThreshold breaker.preset breaker.enabled";
    const struct becalm_breaker_policy *breaker = &target->rules->policy.breaker;
    struct lint_finding *finding = NULL;
    if (!breaker->enabled || breaker->mode != BECALM_BREAKER_RATE || !lint_written(target->rules, "breaker.")) {
        return;
    }
    if (breaker->window_kind == BECALM_WINDOW_COUNT) {
        if (breaker->window_size < breaker->min_calls && (finding = lint_find(l, target, keys)) != NULL) {
            lint_say(finding, "%s: the breaker waits for %u calls, but its window holds %u: it never opens", l->who,
                     breaker->min_calls, breaker->window_size);
            lint_remedy(finding, "write `minimumNumberOfCalls: %u` or less", breaker->window_size);
        }
        return;
    }
    if (target->service == NULL || target->service->traffic_milli == 0) {
        return;
    }
    uint64_t calls = calls_in_window(target);
    if (calls < breaker->min_calls && (finding = lint_find(l, target, keys)) != NULL) {
        uint64_t enough = calls / 2 > 0 ? calls / 2 : 1;
        lint_say(finding,
                 "%s: the breaker waits for %u calls in %u s, but with the declared traffic an instance makes %" PRIu64
                 " calls to %s in that time: it never opens",
                 l->who, breaker->min_calls, breaker->window_size, calls, target->service->name);
        lint_remedy(finding, "write `minimumNumberOfCalls: %" PRIu64 "`, or a longer `slidingWindowSize`", enough);
    }
}

void lint_no_breaker_no_limit(struct lint *l, const struct lint_target *target)
{
    const struct becalm_rules *rules = target->rules;
    struct lint_finding *finding = NULL;
    if (!retries(target) || rules->policy.breaker.enabled || rules->auto_limit ||
        rules->policy.limit.kind != BECALM_LIMIT_NONE ||
        (finding = lint_find(l, target, "breaker.enabled limit.kind")) == NULL) {
        return;
    }
    lint_say(finding, "%s: retries with neither a breaker nor a limit: a service that is down gets the full load",
             l->who);
    lint_remedy(finding, "remove `limit: {kind: none}` or `breaker: {enabled: false}`");
}

/* The 4xx that are listed, other than 429 and 409: "400, 404". Returns how many, and the first. */
static uint32_t wrong_statuses(const struct becalm_retry_on *list, char *text, size_t size, uint32_t *first)
{
    uint32_t count = 0;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t status = 400; status < 500; status++) {
        if (status == 409 || status == 429 || !becalm_retry_on_has_status(list, status)) {
            continue;
        }
        if (count == 0) {
            *first = status;
        }
        count++;
        if (count <= 8 && used < size) {
            int written = snprintf(text + used, size - used, "%s%u", count == 1 ? "" : ", ", status);
            used += written > 0 ? (size_t)written : 0;
        }
    }
    return count;
}

void lint_retry_4xx(struct lint *l, const struct lint_target *target)
{
    const struct becalm_rules *rules = target->rules;
    char statuses[96];
    uint32_t first = 0;
    struct lint_finding *finding = NULL;
    if (!retries(target) || !lint_written(rules, "retryOn")) {
        return;
    }
    uint32_t count = wrong_statuses(&rules->retry_on, statuses, sizeof statuses, &first);
    bool conflict = becalm_retry_on_has_status(&rules->retry_on, 409) && rules->key != BECALM_KEY_REQUIRED;
    if ((count == 0 && !conflict) || (finding = lint_find(l, target, "retryOn")) == NULL) {
        return;
    }
    if (count > 0) {
        lint_say(finding,
                 "%s: retryOn lists %s%s: a 4xx says that the request is wrong, and a retry sends the same request%s",
                 l->who, statuses, count > 8 ? ", ..." : "",
                 first == 408 || first == 425
                     ? " (408 and 425 may succeed at a second attempt, at the price of sending it)"
                     : "");
        lint_remedy(finding, "of the 4xx list only 429%s",
                    conflict ? ", and 409 only with `idempotencyKey: required`" : "");
        return;
    }
    lint_say(finding, "%s: retryOn lists 409, which is retried only for calls with an Idempotency-Key, and keys are %s",
             l->who,
             rules->key == BECALM_KEY_OFF        ? "off"
             : rules->key == BECALM_KEY_ENFORCED ? "enforced, so no call is sent twice"
                                                 : "optional");
    lint_remedy(finding, rules->key == BECALM_KEY_ENFORCED
                             ? "remove 409 from retryOn"
                             : "write `idempotencyKey: required`, or remove 409 from retryOn");
}

void lint_slow_above_timeout(struct lint *l, const struct lint_target *target)
{
    const struct becalm_policy *policy = &target->rules->policy;
    const struct becalm_breaker_policy *breaker = &policy->breaker;
    struct lint_finding *finding = NULL;
    if (!breaker->enabled || breaker->mode != BECALM_BREAKER_RATE ||
        breaker->slow_share_ppm == BECALM_BREAKER_SLOW_OFF || breaker->slow_after <= graph_attempt(policy) ||
        !lint_written(target->rules, "breaker.") ||
        (finding = lint_find(l, target,
                             "breaker.slowCallDurationThreshold breaker.slowCallRateThreshold breaker.preset "
                             "attemptTimeout")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: a call is slow after %s, but an attempt is cut after %s: slow calls count as failed, if at all",
             l->who, lint_duration(breaker->slow_after).text, lint_duration(policy->attempt_timeout).text);
    lint_remedy(finding, "write `slowCallDurationThreshold: %s`, which is below the attempt timeout",
                lint_duration(round_down(policy->attempt_timeout / 5 * 4)).text);
}

void lint_tiny_delay(struct lint *l, const struct lint_target *target)
{
    const struct becalm_backoff_policy *backoff = &target->rules->policy.backoff;
    struct lint_finding *finding = NULL;
    if (!retries(target) || backoff->base >= ROUND_TRIP || (finding = lint_find(l, target, "initialDelay")) == NULL) {
        return;
    }
    if (backoff->base == 0) {
        lint_say(finding, "%s: with an initialDelay of 0 every wait is 0: retries arrive while the cause still lasts",
                 l->who);
    } else {
        lint_say(finding,
                 "%s: an initialDelay of %s is less than a round trip: retries arrive while the cause still lasts",
                 l->who, lint_duration(backoff->base).text);
    }
    lint_remedy(finding, "write `initialDelay: 100ms`, or at least the usual latency of the service");
}

void lint_decorrelated_at_cap(struct lint *l, const struct lint_target *target)
{
    const struct becalm_policy *policy = &target->rules->policy;
    becalm_ns top = policy->backoff.base;
    uint32_t n = 0;
    struct lint_finding *finding = NULL;
    if (policy->backoff.jitter != BECALM_JITTER_DECORRELATED || top == 0) {
        return;
    }
    while (n < policy->max_retries && top <= policy->backoff.cap) {
        top = becalm_ns_scale(top, 3, 1);
        n++;
    }
    if (top <= policy->backoff.cap ||
        (finding = lint_find(l, target, "jitter maxDelay initialDelay maxRetries")) == NULL) {
        return;
    }
    lint_say(
        finding,
        "%s: from retry %u on, three times the previous wait can be %s, above the cap of %s: every wait beyond the cap "
        "is exactly %s, and callers retry in step",
        l->who, n, lint_duration(top).text, lint_duration(policy->backoff.cap).text,
        lint_duration(policy->backoff.cap).text);
    lint_remedy(finding, "write `jitter: full`, which also spreads waits at the cap, or a longer `maxDelay`");
}

void lint_rate_shared(struct lint *l, const struct lint_target *target)
{
    const struct becalm_service *service = target->service;
    struct lint_finding *finding = NULL;
    if (service == NULL || target->endpoint != NULL || !target->rules->policy.rate.enabled) {
        return;
    }
    uint32_t covered = 0;
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        const struct becalm_rules *rules = &service->endpoints[i].rules;
        struct becalm_origin own = becalm_rules_origin(rules, "rate.enabled");
        covered += rules->policy.rate.enabled && own.level != BECALM_FROM_ENDPOINT;
    }
    if (covered < 2 || (finding = lint_find(l, target, "rate.enabled retryMode")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: `rate` covers %u endpoints of %s: a server that throttles one resource must not slow the others",
             l->who, covered, service->name);
    lint_remedy(finding, "write `rate: {enabled: true}` in the one endpoint that is throttled");
}

/* That of `store:` is told once, by lint_store_password(). */
void lint_store_password_inline(struct lint *l, const struct lint_target *target)
{
    const char *url = target->rules->shared_redis;
    struct lint_finding *finding = NULL;
    if (url == NULL || url == becalm_config_settings(target->config)->store.redis || !value_redis_has_password(url) ||
        (finding = lint_find(l, target, "budget.shared.redis")) == NULL) {
        return;
    }
    lint_say(finding, "%s: the policy has the password of the store, and every reader of the file sees it", l->who);
    lint_remedy(finding, "write `store: {redis: ..., passwordFile: FILE}` at the top of the policy");
}

/* ---- health checks ---- */

/* The checks of a service, judged once, with its own rules. NULL: there are none. */
static const struct becalm_health_check *checks_of(const struct lint_target *target)
{
    bool judged = target->service != NULL && target->endpoint == NULL &&
                  target->service->health_check.kind != BECALM_HEALTH_CHECK_OFF;
    return judged ? &target->service->health_check : NULL;
}

void lint_health_check_timeout(struct lint *l, const struct lint_target *target)
{
    const struct becalm_health_check *check = checks_of(target);
    struct lint_finding *finding = NULL;
    if (check == NULL || check->timeout <= check->interval || (finding = lint_find(l, target, NULL)) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: a health check may take %s, but the next one is due after %s: a host that hangs is detected later "
             "than the interval says",
             l->who, lint_duration(check->timeout).text, lint_duration(check->interval).text);
    lint_remedy(finding, "write `timeout: %s` or less", lint_duration(check->interval).text);
}

void lint_health_check_load(struct lint *l, const struct lint_target *target)
{
    const struct becalm_health_check *check = checks_of(target);
    struct lint_finding *finding = NULL;
    if (check == NULL || target->service->traffic_milli == 0) {
        return;
    }
    /* A name may be more hosts than one, so that there are at least so many. */
    uint64_t checkers = (uint64_t)target->service->instances * target->service->host_count;
    uint64_t milli = checkers * 1000 * BECALM_S / check->interval;
    if (milli * 10 < target->service->traffic_milli || (finding = lint_find(l, target, NULL)) == NULL) {
        return;
    }
    lint_say(finding, "%s: its hosts get %s health checks per second, beside %s calls", l->who,
             lint_amount(milli * 1000).text, lint_amount(target->service->traffic_milli * 1000).text);
    lint_remedy(finding, "write a longer `interval`, or rely on ejection (`outlier`), which sends no requests");
}

/* ---- fallbacks ---- */

/* A host that both have; NULL: none. */
static const char *host_of_both(const struct becalm_service *one, const struct becalm_service *other)
{
    for (uint32_t i = 0; i < one->host_count; i++) {
        for (uint32_t k = 0; k < other->host_count; k++) {
            if (strcmp(one->hosts[i], other->hosts[k]) == 0) {
                return one->hosts[i];
            }
        }
    }
    return NULL;
}

void lint_fallback_circle(struct lint *l, const struct lint_target *target)
{
    const char *name = target->rules->fallback.service;
    const struct becalm_service *service = target->service;
    const struct becalm_service *other =
        name == NULL || service == NULL ? NULL : becalm_config_find(target->config, name);
    struct lint_finding *finding = NULL;
    if (other == NULL || other == service) {
        return;
    }
    const char *both = host_of_both(service, other);
    const char *back = other->rules.fallback.service;
    bool circle = back != NULL && strcmp(back, service->name) == 0;
    if ((both == NULL && !circle) || (finding = lint_find(l, target, "fallback.service")) == NULL) {
        return;
    }
    if (both != NULL) {
        lint_say(finding, "%s: %s, its fallback, has the same host %s: if one fails, so does the other", l->who, name,
                 both);
    } else {
        lint_say(
            finding,
            "%s: its fallback is %s, and the fallback of %s leads back: if one fails, the other gets the load of both",
            l->who, name, name);
    }
    lint_remedy(finding, "name a service that is independent of both, or write an answer: `fallback: {status: 503}`");
}
