/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LINT_INTERNAL_H
#define BECALM_LINT_INTERNAL_H

/* Helpers for the rules: lint.c has the machinery, lint_target.c the rules about one target, lint_match.c the rule
 * about routes, lint_keys.c the rules about idempotency keys, lint_graph.c the rules that need the whole graph. */

#include "lint.h"

/* One set of rules: of an endpoint, of a service, or, in a file without services, of `defaults`. */
struct lint_target {
    const struct becalm_config *config;
    const struct becalm_service *service;   /* NULL: defaults */
    const struct becalm_endpoint *endpoint; /* NULL: the service's own */
    const struct becalm_rules *rules;
};

struct lint {
    struct lint_report *report;
    const struct lint_rule *rule; /* the one that is judging */
    const struct becalm_config *const *configs;
    uint32_t count;
    const struct graph *graph;
    char who[264]; /* whom the last finding is about: "defaults", "payment", "payment/charge" */
};

/* A finding of the rule that is judging, about a place of the file. NULL: there is no room. */
struct lint_finding *lint_find_at(struct lint *, const struct becalm_config *, uint32_t line, uint32_t column);
/* The same about a target. `keys` are separated by blanks: the finding points to the value of the key that the file
 * sets most specifically (of several the first), or to the target's name if the file sets none of them. NULL: the same
 * was found already, or there is no room. Without keys it points to the name, and there may be several findings. */
struct lint_finding *lint_find(struct lint *, const struct lint_target *, const char *keys);

void lint_say(struct lint_finding *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lint_remedy(struct lint_finding *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Does the file set this key? A name that ends with a dot stands for all keys of that mapping. */
bool lint_written(const struct becalm_rules *, const char *key);

/* The target of a service as one hop declares it. */
struct lint_target lint_service(const struct graph_hop *);

void lint_no_jitter(struct lint *, const struct lint_target *);
void lint_no_budget(struct lint *, const struct lint_target *);
void lint_no_slow_call_rate(struct lint *, const struct lint_target *);
void lint_post_retry(struct lint *, const struct lint_target *);
void lint_timeouts_exceed_deadline(struct lint *, const struct lint_target *);
void lint_endless_call(struct lint *, const struct lint_target *);
void lint_many_attempts(struct lint *, const struct lint_target *);
void lint_tiny_percent(struct lint *, const struct lint_target *);
void lint_budget_floor(struct lint *, const struct lint_target *);
void lint_concurrency_budget(struct lint *, const struct lint_target *);
void lint_hedge_and_retry(struct lint *, const struct lint_target *);
void lint_breaker_never_trips(struct lint *, const struct lint_target *);
void lint_no_breaker_no_limit(struct lint *, const struct lint_target *);
void lint_retry_4xx(struct lint *, const struct lint_target *);
void lint_slow_above_timeout(struct lint *, const struct lint_target *);
void lint_tiny_delay(struct lint *, const struct lint_target *);
void lint_decorrelated_at_cap(struct lint *, const struct lint_target *);
void lint_rate_shared(struct lint *, const struct lint_target *);
void lint_enforced_repeats(struct lint *, const struct lint_target *);
void lint_short_ttl(struct lint *, const struct lint_target *);
void lint_fallback_circle(struct lint *, const struct lint_target *);
void lint_grpc_keys(struct lint *, const struct lint_target *);
void lint_keys_apart(struct lint *, const struct lint_target *);
void lint_enforced_away(struct lint *, const struct lint_target *);
void lint_store_plain_answers(struct lint *);
void lint_key_room(struct lint *, const struct lint_target *);
void lint_health_check_timeout(struct lint *, const struct lint_target *);
void lint_health_check_load(struct lint *, const struct lint_target *);
void lint_key_memory(struct lint *, const struct lint_target *);
void lint_store_password_inline(struct lint *, const struct lint_target *);
void lint_same_match(struct lint *, const struct lint_target *);
void lint_unreachable(struct lint *, const struct lint_target *);

void lint_stacked_retries(struct lint *);
void lint_fresh_timeout(struct lint *);
void lint_gateway_on_top(struct lint *);
void lint_cycle(struct lint *);
void lint_unknown_callee(struct lint *);
void lint_unknown_rule(struct lint *);
void lint_store_password(struct lint *);

#endif
