/* SPDX-License-Identifier: MIT */
#include "lint_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY_BYTES    576u  /* of memory for a key alone, if each has a scope and a client of its own: measured */
#define REDIS_BYTES  1300u /* of Redis for a key and its guard without its answer: measured */
#define TOLD_BYTES   96u   /* of a key that an instance remembers for a store that forgets */
#define ANSWER_BYTES 1024u /* the assumed size of an answer */
#define RETRY_HORIZON                                                                               \
    (3600 * BECALM_S) /* apps that were offline and queues come back after minutes, not after hours \
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
    lint_say(finding, "%s: `idempotencyKey: enforced` sends no call twice, so %s has no effect on calls with a key",
             l->who, rules->policy.idempotent ? "`idempotent: true`" : "`hedge`");
    lint_remedy(finding, "remove it; if the service knows keys itself, write `idempotencyKey: required`");
}

void lint_short_ttl(struct lint *l, const struct lint_target *target)
{
    becalm_ns ttl = becalm_config_settings(target->config)->store_ttl;
    struct lint_finding *finding = NULL;
    if (target->rules->key != BECALM_KEY_ENFORCED || ttl >= RETRY_HORIZON ||
        (finding = lint_find(l, target, "idempotencyKey")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: a key is forgotten %s after its call (idempotencyStore.ttl): a request that a client repeats later "
             "is executed twice",
             l->who, lint_duration(ttl).text);
    lint_remedy(finding, "write `idempotencyStore: {ttl: 24h}`, or at least as long as clients may repeat a request");
}

/* A target that lists gRPC codes beyond the defaults, or has gRPC health checks, uses gRPC. */
static bool speaks_grpc(const struct lint_target *target)
{
    struct becalm_retry_on usual = {.tokens = 0};
    const struct becalm_service *service = target->service;
    becalm_retry_on_defaults(&usual);
    return (target->rules->retry_on.grpc & ~usual.grpc) != 0 ||
           (service != NULL && service->health_check.kind == BECALM_HEALTH_CHECK_GRPC);
}

void lint_grpc_keys(struct lint *l, const struct lint_target *target)
{
    enum becalm_key_rule key = target->rules->key;
    struct lint_finding *finding = NULL;
    if ((key != BECALM_KEY_ENFORCED && key != BECALM_KEY_REQUIRED) || !speaks_grpc(target) ||
        (finding = lint_find(l, target, "idempotencyKey")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: a key is looked up with the whole request, so nothing is sent before its end: a client that "
             "waits for an answer before it ends its stream waits forever",
             l->who);
    lint_remedy(finding, "write `idempotencyKey` in the endpoints of unary methods, by their path, not for streams");
}

/* ---- keys of several gateways ---- */

void lint_keys_apart(struct lint *l, const struct lint_target *target)
{
    const struct becalm_settings *settings = becalm_config_settings(target->config);
    struct lint_finding *finding = NULL;
    if (target->rules->key != BECALM_KEY_ENFORCED || settings->store.redis == NULL || settings->keys.shared ||
        (finding = lint_find(l, target, "idempotencyKey")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: instances share a store, but each remembers enforced keys by itself: a request that a client "
             "repeats at another instance is executed twice",
             l->who);
    lint_remedy(finding, "write `idempotencyStore: {redis: inherit, secretFile: FILE}`");
}

void lint_enforced_away(struct lint *l, const struct lint_target *target)
{
    const struct becalm_keys *keys = &becalm_config_settings(target->config)->keys;
    struct lint_finding *finding = NULL;
    bool weak = keys->away == BECALM_KEYS_AWAY_LOCAL || keys->away == BECALM_KEYS_AWAY_PASS;
    if (target->rules->key != BECALM_KEY_ENFORCED || !keys->shared || !weak ||
        (finding = lint_find(l, target, "idempotencyKey")) == NULL) {
        return;
    }
    lint_say(finding, "%s: while the store is away an enforced key %s, so that a call may be executed twice", l->who,
             keys->away == BECALM_KEYS_AWAY_PASS ? "is ignored" : "is known to only one instance");
    lint_remedy(finding,
                "remove `onAway`: then calls with an enforced key are refused, and required keys are kept in memory");
}

void lint_store_plain_answers(struct lint *l)
{
    for (uint32_t c = 0; c < l->count; c++) {
        const struct becalm_keys *keys = &becalm_config_settings(l->configs[c])->keys;
        bool plain = keys->shared && keys->encrypt_file.path == NULL;
        struct lint_finding *finding =
            plain ? lint_find_at(l, l->configs[c], keys->secret_file.line, keys->secret_file.column) : NULL;
        if (finding == NULL) {
            continue;
        }
        lint_say(finding, "answers to calls with a key are in the store unencrypted, for everyone with access to it");
        lint_remedy(finding, "write `encryptFile: FILE` beside `secretFile`");
    }
}

/* ---- the memory that a time and a traffic need ---- */

struct need {
    uint64_t keys;  /* in each instance, or in the store, at any moment, if each call carries a key */
    uint64_t own;   /* of them one instance has ended */
    uint64_t bytes; /* of answers */
    char traffic[96];
};

/* False: no keys are remembered, or the policy does not declare the traffic. */
static bool need_of(const struct lint_target *target, struct need *need)
{
    const struct becalm_service *service = target->service;
    bool guards = target->rules->key == BECALM_KEY_REQUIRED || target->rules->key == BECALM_KEY_ENFORCED;
    if (!guards || service == NULL || service->traffic_milli == 0) {
        return false;
    }
    bool shared = becalm_config_settings(target->config)->keys.shared; /* then all of them are in one place */
    uint64_t instances = service->instances > 0 && !shared ? service->instances : 1;
    uint64_t seconds = becalm_config_settings(target->config)->store_ttl / BECALM_S;
    uint64_t milli = service->traffic_milli / instances + (service->traffic_milli % instances != 0);
    need->keys = seconds > UINT64_MAX / milli ? UINT64_MAX / 1000 : milli * seconds / 1000 + 1;
    need->own = shared && service->instances > 0 ? need->keys / service->instances + 1 : need->keys;
    need->bytes = need->keys > UINT64_MAX / ANSWER_BYTES ? UINT64_MAX : need->keys * ANSWER_BYTES;
    (void)snprintf(need->traffic, sizeof need->traffic, "%" PRIu64 ".%03" PRIu64 "/s for %s", milli / 1000,
                   milli % 1000, lint_duration(seconds * BECALM_S).text);
    return true;
}

static uint64_t mebibytes(uint64_t bytes)
{
    return bytes / (1024 * 1024) + 1;
}

static bool fits(const struct lint_target *target, const struct need *need)
{
    const struct becalm_settings *settings = becalm_config_settings(target->config);
    if (settings->keys.shared) {
        return true; /* Redis says by itself when it is full */
    }
    return need->keys <= settings->store_max_entries && need->bytes <= settings->store_max_bytes;
}

void lint_key_memory(struct lint *l, const struct lint_target *target)
{
    struct lint_finding *finding = NULL;
    struct need need;
    if (!need_of(target, &need) || !fits(target, &need) || (finding = lint_find(l, target, "idempotencyKey")) == NULL) {
        return;
    }
    if (becalm_config_settings(target->config)->keys.shared) {
        lint_say(finding,
                 "%s: up to %s are %" PRIu64 " keys in the store: %" PRIu64 " MiB of Redis, and %" PRIu64
                 " MiB with answers of 1 KiB",
                 l->who, need.traffic, need.keys, mebibytes(need.keys * REDIS_BYTES),
                 mebibytes(need.keys * REDIS_BYTES + need.bytes));
        uint32_t remembered = becalm_config_settings(target->config)->store_max_entries;
        if (target->rules->key == BECALM_KEY_ENFORCED && need.own > remembered) {
            lint_remedy(
                finding,
                "give Redis that `maxmemory`, with `maxmemory-policy noeviction`, and write `maxEntries: %" PRIu64
                "` (%" PRIu64
                " MiB in each instance): if the store forgets keys, each instance sends it its last %" PRIu32
                " keys again",
                need.own, mebibytes(need.own * TOLD_BYTES), remembered);
        } else {
            lint_remedy(finding, "give Redis that `maxmemory`, with `maxmemory-policy noeviction`");
        }
        return;
    }
    lint_say(finding,
             "%s: up to %s are %" PRIu64 " keys in each instance: %" PRIu64 " MiB, and %" PRIu64
             " MiB with answers of 1 KiB",
             l->who, need.traffic, need.keys, mebibytes(need.keys * KEY_BYTES),
             mebibytes(need.keys * KEY_BYTES + need.bytes));
    lint_remedy(finding, "nothing is wrong; idempotencyStore has room for them");
}

void lint_key_room(struct lint *l, const struct lint_target *target)
{
    const struct becalm_settings *settings = becalm_config_settings(target->config);
    bool once = target->rules->key == BECALM_KEY_ENFORCED;
    struct lint_finding *finding = NULL;
    struct need need;
    if (!need_of(target, &need) || fits(target, &need) || (finding = lint_find(l, target, "idempotencyKey")) == NULL) {
        return;
    }
    lint_say(finding,
             "%s: up to %s are %" PRIu64 " keys in each instance, and %" PRIu64
             " MiB with answers of 1 KiB; there is room for %" PRIu32 " and %" PRIu64 " MiB, beyond which %s",
             l->who, need.traffic, need.keys, mebibytes(need.bytes), settings->store_max_entries,
             settings->store_max_bytes / (1024 * 1024),
             once ? "keys are refused with 503 and answers are lost" : "the oldest are forgotten before their time");
    lint_remedy(finding,
                "write `idempotencyStore: {maxEntries: %" PRIu64 ", maxBytes: %" PRIu64 "MiB}`, with %" PRIu64
                " MiB of memory for the keys themselves, or a shorter `ttl`",
                need.keys, mebibytes(need.bytes), mebibytes(need.keys * KEY_BYTES));
}
