/* SPDX-License-Identifier: MIT */
#include "lint.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint_internal.h"
#include "policy/schema.h"
#include "policy/text/escape.h"
#include "policy/value.h"

/* Codes are written into policy files, to silence them: they never change their meaning. */
const struct lint_rule lint_rules[] = {
    {"stacked-retries", BECALM_WARNING, "retries at more than one layer of the call graph",
     .graph = lint_stacked_retries},
    {"no-jitter", BECALM_WARNING, "retries without jitter", .target = lint_no_jitter},
    {"no-budget", BECALM_WARNING, "retries without any budget", .target = lint_no_budget},
    {"no-slow-call-rate", BECALM_WARNING, "a breaker that does not see slow calls", .target = lint_no_slow_call_rate},
    {"post-retry", BECALM_WARNING, "retries of POST and PATCH without a key", .target = lint_post_retry},
    {"timeouts-exceed-deadline", BECALM_WARNING, "attempts and waits that do not fit into the deadline",
     .target = lint_timeouts_exceed_deadline},
    {"fresh-timeout", BECALM_WARNING, "a new timeout at each hop", .target = lint_endless_call,
     .graph = lint_fresh_timeout},
    {"many-attempts", BECALM_WARNING, "more than five attempts", .target = lint_many_attempts},
    {"tiny-percent", BECALM_WARNING, "a budget of less than a percent", .target = lint_tiny_percent},
    {"budget-floor", BECALM_WARNING, "a budget's minimum that multiplies with the instances",
     .target = lint_budget_floor},
    {"concurrency-budget", BECALM_WARNING, "a budget that grows when the service slows down",
     .target = lint_concurrency_budget},
    {"gateway-on-top", BECALM_WARNING, "a gateway that retries on top of services that retry",
     .graph = lint_gateway_on_top},
    {"hedge-and-retry", BECALM_WARNING, "hedge and retries written together", .target = lint_hedge_and_retry},
    {"breaker-never-trips", BECALM_WARNING, "a breaker that can't open at the declared traffic",
     .target = lint_breaker_never_trips},
    {"no-breaker-no-limit", BECALM_WARNING, "retries with neither breaker nor limit",
     .target = lint_no_breaker_no_limit},
    {"retry-4xx", BECALM_WARNING, "retries of answers that say that the request is wrong", .target = lint_retry_4xx},
    {"slow-above-timeout", BECALM_WARNING, "calls that are cut before they count as slow",
     .target = lint_slow_above_timeout},
    {"tiny-delay", BECALM_WARNING, "a first wait of zero, or below a round trip", .target = lint_tiny_delay},
    {"decorrelated-at-cap", BECALM_WARNING, "decorrelated jitter that stays at its cap",
     .target = lint_decorrelated_at_cap},
    {"rate-shared", BECALM_WARNING, "a client rate limit over more than one endpoint", .target = lint_rate_shared},
    {"enforced-repeats", BECALM_WARNING, "an enforced key beside rules that would repeat requests",
     .target = lint_enforced_repeats},
    {"short-ttl", BECALM_WARNING, "enforced keys that are forgotten before clients give up", .target = lint_short_ttl},
    {"grpc-keys", BECALM_NOTE, "gRPC streams whose requests are collected for their key", .target = lint_grpc_keys},
    {"keys-apart", BECALM_WARNING, "enforced keys that instances do not share", .target = lint_keys_apart},
    {"enforced-away", BECALM_WARNING, "enforced keys without their guarantee while the store is away",
     .target = lint_enforced_away},
    {"store-plain-answers", BECALM_NOTE, "answers that are unencrypted in a store", .graph = lint_store_plain_answers},
    {"fallback-circle", BECALM_WARNING, "a fallback that leads back to the failed service",
     .target = lint_fallback_circle},
    {"health-check-timeout", BECALM_WARNING, "health checks that may take longer than their interval",
     .target = lint_health_check_timeout},
    {"health-check-load", BECALM_WARNING, "health checks that are a large part of a service's traffic",
     .target = lint_health_check_load},
    {"key-room", BECALM_WARNING, "more keys within their ttl than there is room for", .target = lint_key_room},
    {"key-memory", BECALM_NOTE, "the memory that keys need at the declared traffic", .target = lint_key_memory},
    {"store-password-inline", BECALM_WARNING, "a password in the URL of a store", .target = lint_store_password_inline,
     .graph = lint_store_password},
    {"same-match", BECALM_WARNING, "a service or endpoint that another one hides", .target = lint_same_match},
    {"unreachable-endpoint", BECALM_WARNING, "an endpoint that no request of its service fits",
     .target = lint_unreachable},
    {"cycle", BECALM_ERROR, "services that call each other in a circle", .graph = lint_cycle},
    {"unknown-callee", BECALM_WARNING, "a call to a service that looks misspelt", .graph = lint_unknown_callee},
    {"unknown-rule", BECALM_WARNING, "a silenced rule that does not exist", .graph = lint_unknown_rule},
    {.code = NULL},
};

/* ---- findings ---- */

struct lint_finding *lint_append(struct lint_report *report)
{
    if (report->count - report->silenced >= LINT_FINDINGS_MAX || report->silenced >= LINT_SILENCED_MAX) {
        report->cut = true;
        return NULL;
    }
    if (report->count == report->room) {
        uint32_t room = report->room == 0 ? 16 : 2 * report->room;
        struct lint_finding *findings = realloc(report->findings, room * sizeof *findings);
        if (findings == NULL) {
            report->no_memory = true;
            return NULL;
        }
        report->findings = findings;
        report->room = room;
    }
    struct lint_finding *finding = &report->findings[report->count++];
    memset(finding, 0, sizeof *finding);
    return finding;
}

void lint_free(struct lint_report *report)
{
    free(report->findings);
    memset(report, 0, sizeof *report);
}

static int by_position(const void *a, const void *b)
{
    const struct lint_finding *x = a;
    const struct lint_finding *y = b;
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    if (x->line != y->line) {
        return x->line < y->line ? -1 : 1;
    }
    if (x->column != y->column) {
        return x->column < y->column ? -1 : 1;
    }
    int code = strcmp(x->code, y->code);
    return code != 0 ? code : strcmp(x->message, y->message);
}

void lint_sort(struct lint_report *report)
{
    if (report->count > 0) {
        qsort(report->findings, report->count, sizeof *report->findings, by_position);
    }
}

static void write_text(char *text, size_t size, const char *format, va_list args)
{
    char whole[1024]; /* longer than any text of a finding, so that escape_copy() sees whether this one is too long */
    (void)vsnprintf(whole, sizeof whole, format, args);
    escape_copy(text, size, whole);
}

void lint_say(struct lint_finding *finding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_text(finding->message, sizeof finding->message, format, args);
    va_end(args);
}

void lint_remedy(struct lint_finding *finding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_text(finding->remedy, sizeof finding->remedy, format, args);
    va_end(args);
}

/* ---- where ---- */

/* The most specific origin among keys that are written; of equals the first. BUILT_IN: none is written. */
static struct becalm_origin origin_of(const struct becalm_rules *rules, const char *keys)
{
    struct becalm_origin best = {.level = BECALM_FROM_BUILT_IN};
    while (keys != NULL && *keys != '\0') {
        char key[64];
        size_t length = strcspn(keys, " ");
        BECALM_ASSERT(length < sizeof key);
        memcpy(key, keys, length);
        key[length] = '\0';
        struct becalm_origin origin = becalm_rules_origin(rules, key);
        if (origin.level > best.level) {
            best = origin;
        }
        keys += length + (keys[length] == ' ');
    }
    return best;
}

bool lint_written(const struct becalm_rules *rules, const char *key)
{
    size_t length = strlen(key);
    if (key[length - 1] != '.') {
        return becalm_rules_origin(rules, key).level != BECALM_FROM_BUILT_IN;
    }
    for (uint32_t i = 0; i < schema_rules.count; i++) {
        const char *name = schema_rules.keys[i].name;
        if (strncmp(name, key, length) == 0 && becalm_rules_origin(rules, name).level != BECALM_FROM_BUILT_IN) {
            return true;
        }
    }
    return false;
}

static void who_is(struct lint *l, const struct lint_target *target, enum becalm_origin_level level)
{
    if (target->service == NULL || level == BECALM_FROM_DEFAULTS) {
        (void)snprintf(l->who, sizeof l->who, "defaults");
    } else if (target->endpoint == NULL || level == BECALM_FROM_SERVICE) {
        (void)snprintf(l->who, sizeof l->who, "%s", target->service->name);
    } else {
        (void)snprintf(l->who, sizeof l->who, "%s/%s", target->service->name, target->endpoint->name);
    }
}

/* The place of a finding none of whose keys is written: the target's own name. */
static struct becalm_origin origin_of_name(const struct lint_target *target)
{
    if (target->service == NULL) {
        return (struct becalm_origin){.line = 1, .column = 1};
    }
    if (target->endpoint == NULL) {
        return (struct becalm_origin){.line = target->service->line, .column = target->service->column};
    }
    return (struct becalm_origin){.line = target->endpoint->line, .column = target->endpoint->column};
}

static bool silenced(const struct lint *l, const struct becalm_config *config)
{
    const char *const *codes = becalm_config_settings(config)->lint_code;
    while (*codes != NULL && strcmp(*codes, l->rule->code) != 0) {
        codes++;
    }
    return *codes != NULL;
}

static uint32_t order_of(const struct lint *l, const struct becalm_config *config)
{
    uint32_t order = 0;
    while (order < l->count && l->configs[order] != config) {
        order++;
    }
    return order;
}

struct lint_finding *lint_find_at(struct lint *l, const struct becalm_config *config, uint32_t line, uint32_t column)
{
    struct lint_finding *finding = lint_append(l->report);
    if (finding != NULL) {
        finding->code = l->rule->code;
        finding->severity = l->rule->severity;
        finding->silenced = silenced(l, config);
        l->report->silenced += finding->silenced;
        finding->order = order_of(l, config);
        finding->line = line;
        finding->column = column;
        (void)snprintf(finding->file, sizeof finding->file, "%s", becalm_config_name(config));
    }
    return finding;
}

struct lint_finding *lint_find(struct lint *l, const struct lint_target *target, const char *keys)
{
    struct becalm_origin origin = origin_of(target->rules, keys);
    who_is(l, target, origin.level);
    const char *file = becalm_service_file(target->config, target->service, origin);
    if (origin.level == BECALM_FROM_BUILT_IN) {
        origin = origin_of_name(target);
    } else if (origin.level == BECALM_FROM_SET) {
        file = "--set";
        origin.line = 1;
        origin.column = 1;
    }
    struct lint_report *report = l->report;
    uint32_t order = order_of(l, target->config);
    for (uint32_t i = 0; keys != NULL && i < report->count; i++) { /* inherited by several targets: once is enough */
        const struct lint_finding *f = &report->findings[i];
        if (f->line == origin.line && f->column == origin.column && f->order == order &&
            strcmp(f->code, l->rule->code) == 0 && strncmp(f->file, file, sizeof f->file - 1) == 0) {
            return NULL;
        }
    }
    struct lint_finding *finding = lint_find_at(l, target->config, origin.line, origin.column);
    if (finding != NULL) {
        (void)snprintf(finding->file, sizeof finding->file, "%s", file);
    }
    return finding;
}

struct lint_text lint_amount(uint64_t ppm)
{
    struct lint_text out;
    uint64_t milli = (ppm + 500) / 1000;
    int used = snprintf(out.text, sizeof out.text, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);
    while (out.text[used - 1] == '0') {
        used--;
    }
    out.text[out.text[used - 1] == '.' ? used - 1 : used] = '\0';
    return out;
}

struct lint_text lint_duration(becalm_ns duration)
{
    struct lint_text out;
    (void)value_write_duration(duration, out.text, sizeof out.text);
    return out;
}

struct lint_target lint_service(const struct graph_hop *hop)
{
    return (struct lint_target){.config = hop->config, .service = hop->service, .rules = &hop->service->rules};
}

/* ---- all rules over all files ---- */

static void judge(struct lint *l, const struct lint_target *target)
{
    for (l->rule = lint_rules; l->rule->code != NULL && !l->report->cut; l->rule++) {
        if (l->rule->target != NULL) {
            l->rule->target(l, target);
        }
    }
}

static void judge_config(struct lint *l, const struct becalm_config *config)
{
    uint32_t services = becalm_config_services(config);
    if (services == 0) { /* else judged where services inherit them: unused values do no harm */
        judge(l, &(struct lint_target){.config = config, .rules = becalm_config_defaults(config)});
    }
    for (uint32_t s = 0; s < services; s++) {
        const struct becalm_service *service = becalm_config_service(config, s);
        judge(l, &(struct lint_target){.config = config, .service = service, .rules = &service->rules});
        for (uint32_t e = 0; e < service->endpoint_count; e++) {
            const struct becalm_endpoint *endpoint = &service->endpoints[e];
            judge(l, &(struct lint_target){config, service, endpoint, &endpoint->rules});
        }
    }
}

int lint_run(struct lint_report *report, const struct becalm_config *const *configs, uint32_t count,
             const struct graph *graph)
{
    struct lint l = {.report = report, .configs = configs, .count = count, .graph = graph};
    for (uint32_t c = 0; c < count; c++) {
        judge_config(&l, configs[c]);
    }
    for (l.rule = lint_rules; l.rule->code != NULL; l.rule++) {
        if (l.rule->graph != NULL) {
            l.rule->graph(&l);
        }
    }
    lint_sort(report);
    return report->no_memory ? BECALM_ENOMEM : 0;
}
