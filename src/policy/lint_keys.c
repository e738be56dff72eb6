/* SPDX-License-Identifier: MIT */
#include "lint_internal.h"

#define RETRY_HORIZON (3600 * BECALM_S) /* apps that were offline and queues come back after minutes, not after hours \
                                         */

void lint_enforced_repeats(struct lint *l, const struct lint_target *target)
{
    const struct becalm_rules *rules = target->rules;
    struct lint_finding *finding = NULL;
    bool hedges = rules->policy.hedge.enabled;
    if (rules->key != BECALM_KEY_ENFORCED || (!rules->policy.idempotent && !hedges) ||
        (finding = lint_find(l, target, rules->policy.idempotent ? "idempotent" : "hedge.enabled")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: `idempotencyKey: enforced` sends nothing twice, so %s says what does not happen to calls with a key",
             l->who, rules->policy.idempotent ? "`idempotent: true`" : "`hedge`");
    lint_remedy(finding, "take it out; if the service knows keys itself, write `idempotencyKey: required`");
}

void lint_short_ttl(struct lint *l, const struct lint_target *target)
{
    becalm_ns ttl = becalm_config_settings(target->config)->store_ttl;
    struct lint_finding *finding = NULL;
    if (target->rules->key != BECALM_KEY_ENFORCED || ttl >= RETRY_HORIZON ||
        (finding = lint_find(l, target, "idempotencyKey")) == NULL) {
        return;
    }
    lint_say(
        finding,
        "%s: a key is forgotten %s after its call (idempotencyStore.ttl): a client that asks again later than that "
        "is executed twice",
        l->who, lint_duration(ttl).text);
    lint_remedy(finding, "write `idempotencyStore: {ttl: 24h}`, or at least as long as any client asks again");
}
