/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config_data.h"
#include "explain.h"
#include "value.h"

/* value / scale without trailing zeros. `scale` is a power of ten. */
static void write_decimal(uint64_t value, uint32_t scale, char *text, size_t size)
{
    uint64_t rest = value % scale;
    int used = snprintf(text, size, "%" PRIu64 "%s", value / scale, rest == 0 ? "" : ".");
    for (uint32_t digit = scale / 10; rest != 0 && digit > 0 && (size_t)used < size; digit /= 10) {
        used += snprintf(text + used, size - (size_t)used, "%u", (unsigned)(rest / digit));
        rest %= digit;
    }
}

static void write_size(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(text, size, "%" PRIu64 "%s", bytes, units[unit]);
}

void explain_number(const struct schema_key *key, uint64_t value, char *text, size_t size)
{
    if (key->word != NULL && value == key->stands_for) {
        (void)snprintf(text, size, "%s", key->word);
    } else if (key->type == TYPE_DURATION || key->type == TYPE_HEDGE_DELAY || key->type == TYPE_ATTEMPT_TIMEOUT) {
        (void)value_write_duration(value, text, size);
    } else if (key->type == TYPE_PERCENT) {
        write_decimal(value, 10000, text, size);
    } else if (key->type == TYPE_DECIMAL || key->type == TYPE_JITTER_FACTOR) {
        write_decimal(value, key->scale, text, size);
    } else if (key->type == TYPE_SIZE) {
        write_size(value, text, size);
    } else if (key->type == TYPE_RATE) {
        write_decimal(value, 1000, text, size);
    } else {
        (void)snprintf(text, size, "%" PRIu64, value);
    }
}

/* Adds one word of a list. */
static void list_add(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%s", used > 1 ? ", " : "", word);
}

static void write_retry_on(const struct becalm_retry_on *set, char *text, size_t size)
{
    (void)snprintf(text, size, "[");
    for (unsigned i = 0; becalm_retry_on_name(i) != NULL; i++) {
        struct becalm_retry_on one = {.tokens = 0};
        const char *name = becalm_retry_on_name(i);
        (void)becalm_retry_on_add(&one, (struct becalm_text){name, strlen(name)});
        bool has = (one.tokens | one.grpc) != 0 && (one.tokens & ~set->tokens) == 0 && (one.grpc & ~set->grpc) == 0;
        if (has) {
            list_add(text, size, name);
        }
    }
    for (uint32_t status = 100; status < 600; status++) {
        char number[8];
        if ((set->status[(status - 100) / 64] >> (status - 100) % 64 & 1) != 0) { /* by number, not by a token */
            (void)snprintf(number, sizeof number, "%u", status);
            list_add(text, size, number);
        }
    }
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "]");
}

static void write_outcomes(uint32_t set, char *text, size_t size)
{
    (void)snprintf(text, size, "[");
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        if ((set & BECALM_OUTCOME_BIT(kind)) != 0) {
            list_add(text, size, becalm_outcome_word((enum becalm_outcome_kind)kind));
        }
    }
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "]");
}

static void write_list(const char *const *list, char *text, size_t size)
{
    (void)snprintf(text, size, "[");
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        list_add(text, size, list[i]);
    }
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "]");
}

static void write_words(const char *const *words, uint32_t set, char *text, size_t size)
{
    (void)snprintf(text, size, "[");
    for (size_t i = 0; words[i] != NULL; i++) {
        if ((set >> i & 1) != 0) {
            list_add(text, size, words[i]);
        }
    }
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "]");
}

static void write_hedge_delay(const struct schema_key *key, const struct becalm_hedge_policy *hedge, char *text,
                              size_t size)
{
    if (hedge->delay > 0) {
        explain_number(key, hedge->delay, text, size);
        return;
    }
    (void)snprintf(text, size, "p");
    write_decimal(hedge->quantile_ppm, 10000, text + 1, size - 1);
}

/* Writes a URL without its password. */
static void write_redis(const char *url, char *text, size_t size)
{
    if (url == NULL) {
        (void)snprintf(text, size, "none");
        return;
    }
    const char *host = value_redis_host(url);
    int scheme = (int)(strstr(url, "://") + 3 - url);
    (void)snprintf(text, size, "%.*s%s%s", scheme, url, host == url + scheme ? "" : "***@", host);
}

static const char *limit_word(const struct becalm_rules *rules)
{
    return rules->auto_limit ? schema_limit_kinds[0] : schema_limit_kinds[rules->policy.limit.kind + 1];
}

static void write_file(const struct becalm_file *file, char *text, size_t size)
{
    (void)snprintf(text, size, "%s", file->path == NULL ? "" : file->path);
}

static void write_timeout(const struct schema_key *key, const struct becalm_policy *policy, char *text, size_t size)
{
    if (policy->timeout_kind == BECALM_TIMEOUT_EXACT) {
        explain_number(key, policy->attempt_timeout, text, size);
    } else {
        (void)snprintf(text, size, "%s", key->words[policy->timeout_kind]);
    }
}

/* Words that stand for a number of the struct. */
static const char *word_shown(const struct schema_key *key, const void *base, const void *field)
{
    if (key->type == TYPE_BOOLEAN) {
        return *(const bool *)field ? "true" : "false";
    }
    if (key->type == TYPE_LIMIT_KIND) {
        return limit_word(base);
    }
    return key->words[key->type == TYPE_EITHER ? *(const bool *)field : *(const int *)field];
}

/* A text that the file does not set is shown as the key's word for that, if there is one. */
static const char *text_shown(const struct schema_key *key, const char *value)
{
    return value == NULL && key->type == TYPE_TEXT ? key->word : value;
}

static void write_text(const char *value, char *text, size_t size)
{
    (void)snprintf(text, size, "%s", value == NULL ? "" : value);
}

void explain_value(const struct schema_key *key, const void *base, char *text, size_t size)
{
    const void *field = (const unsigned char *)base + key->offset;
    switch (key->type) {
    case TYPE_INTEGER:
    case TYPE_PERCENT:
    case TYPE_DECIMAL:
    case TYPE_JITTER_FACTOR:
        explain_number(key, *(const uint32_t *)field, text, size);
        return;
    case TYPE_DURATION:
    case TYPE_SIZE:
    case TYPE_RATE:
        explain_number(key, *(const uint64_t *)field, text, size);
        return;
    case TYPE_BOOLEAN:
    case TYPE_EITHER:
    case TYPE_WORD:
    case TYPE_BUDGET_KIND:
    case TYPE_LIMIT_KIND:
        write_text(word_shown(key, base, field), text, size);
        return;
    case TYPE_WORDS:
        write_words(key->words, *(const uint32_t *)field, text, size);
        return;
    case TYPE_TEXT:
    case TYPE_ADDRESS:
    case TYPE_ADMIN:
    case TYPE_HOST:
    case TYPE_PATH:
    case TYPE_METHOD:
    case TYPE_KEY_SCOPE:
    case TYPE_CLIENT_KEY:
        write_text(text_shown(key, *(const char *const *)field), text, size);
        return;
    case TYPE_REDIS:
        write_redis(*(const char *const *)field, text, size);
        return;
    case TYPE_LIST:
    case TYPE_HOSTS:
    case TYPE_LISTEN:
    case TYPE_LISTEN_OWN:
    case TYPE_NETWORKS:
        write_list(*(const char *const *const *)field, text, size);
        return;
    case TYPE_STATUSES:
        (void)value_write_statuses(field, text, size);
        return;
    case TYPE_RETRY_ON:
        write_retry_on(field, text, size);
        return;
    case TYPE_NON_FATAL:
        write_outcomes(*(const uint32_t *)field, text, size);
        return;
    case TYPE_ATTEMPT_TIMEOUT:
        write_timeout(key, &((const struct becalm_rules *)base)->policy, text, size);
        return;
    case TYPE_HEDGE_DELAY:
        write_hedge_delay(key, field, text, size);
        return;
    case TYPE_FILE:
        write_file(field, text, size);
        return;
    case TYPE_PRESET:
    case TYPE_RETRY_MODE:
    case TYPE_HEADER:
    case TYPE_CERTIFICATES:
    case TYPE_PROTOCOLS:
        text[0] = '\0';
        return;
    }
}

const char *becalm_origin_word(enum becalm_origin_level level)
{
    switch (level) {
    case BECALM_FROM_BUILT_IN:
        return "default";
    case BECALM_FROM_DEFAULTS:
        return "defaults";
    case BECALM_FROM_SERVICE:
        return "service";
    case BECALM_FROM_ENDPOINT:
        return "endpoint";
    case BECALM_FROM_SET:
        return "--set";
    }
    BECALM_UNREACHABLE();
}

struct becalm_origin becalm_rules_origin(const struct becalm_rules *rules, const char *key)
{
    const struct schema_key *known = schema_find(&schema_rules, key);
    return known == NULL ? (struct becalm_origin){.level = BECALM_FROM_BUILT_IN}
                         : rules->origins->key[known - schema_rules.keys];
}

/* Does this key have an effect with the chosen kind of budget and breaker? */
static bool key_matters(const struct becalm_rules *rules, const struct schema_key *key)
{
    static const struct {
        const char *key;
        uint32_t kinds; /* bits of enum becalm_budget_kind */
    } uses[] = {
        {"budget.percent", 1u << BECALM_BUDGET_EARNED | 1u << BECALM_BUDGET_RATIO | 1u << BECALM_BUDGET_CONCURRENCY},
        {"budget.start", 1u << BECALM_BUDGET_EARNED},
        {"budget.neverSentCost", 1u << BECALM_BUDGET_EARNED},
        {"budget.window", 1u << BECALM_BUDGET_RATIO | 1u << BECALM_BUDGET_ADAPTIVE},
        {"budget.minPerSecond", 1u << BECALM_BUDGET_RATIO},
        {"budget.of", 1u << BECALM_BUDGET_RATIO},
        {"budget.minConcurrency", 1u << BECALM_BUDGET_CONCURRENCY},
        {"budget.minPercent", 1u << BECALM_BUDGET_ADAPTIVE},
        {"budget.maxPercent", 1u << BECALM_BUDGET_ADAPTIVE},
        {"budget.capacity", 1u << BECALM_BUDGET_TOKENS | 1u << BECALM_BUDGET_AWS},
        {"budget.refillPerSecond", 1u << BECALM_BUDGET_TOKENS},
        {"budget.refillEvery", 1u << BECALM_BUDGET_TOKENS},
        {"budget.maxTokens", 1u << BECALM_BUDGET_GRPC},
        {"budget.tokenRatio", 1u << BECALM_BUDGET_GRPC},
        {"budget.retryCost", 1u << BECALM_BUDGET_AWS},
        {"budget.timeoutCost", 1u << BECALM_BUDGET_AWS},
    };
    bool slow = rules->policy.budget.refill_every > 0;
    if (strcmp(key->name, slow ? "budget.refillPerSecond" : "budget.refillEvery") == 0) {
        return false; /* the other key counts */
    }
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        if (strcmp(key->name, uses[i].key) == 0) {
            return (uses[i].kinds >> rules->policy.budget.kind & 1u) != 0;
        }
    }
    if (strcmp(key->name, "breaker.failureThreshold") == 0 || strcmp(key->name, "breaker.successThreshold") == 0) {
        return rules->policy.breaker.mode == BECALM_BREAKER_CONSECUTIVE;
    }
    if (strcmp(key->name, "breaker.failureRateThreshold") == 0 ||
        strcmp(key->name, "breaker.minimumNumberOfCalls") == 0) {
        return rules->policy.breaker.mode == BECALM_BREAKER_RATE;
    }
    if (strcmp(key->name, "jitterFactor") == 0) {
        return rules->policy.backoff.jitter == BECALM_JITTER_PROPORTIONAL;
    }
    return key->type != TYPE_PRESET && key->type != TYPE_RETRY_MODE;
}

bool explain_hides(const struct becalm_rules *rules, const struct schema_key *key)
{
    return key->type != TYPE_PRESET && key->type != TYPE_RETRY_MODE && !key_matters(rules, key);
}

void becalm_rules_explain(const struct becalm_rules *rules, becalm_explain_fn *each, void *data)
{
    for (uint32_t i = 0; i < schema_rules.count; i++) {
        const struct schema_key *key = &schema_rules.keys[i];
        char value[512];
        if (key_matters(rules, key)) {
            explain_value(key, rules, value, sizeof value);
            each(key->name, value, rules->origins->key[i], key->sentence, data);
        }
    }
}
