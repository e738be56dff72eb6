/* SPDX-License-Identifier: MIT */
#include "mesh.h"

#include <stdio.h>
#include <string.h>

#define TOKEN_BYTES 64

void mesh_preface(struct source *s)
{
    emit_note(s->emit, NULL,
              emit_text(s->emit,
                        "%s retries every method. Becalm repeats POST and PATCH only with an Idempotency-Key, or where "
                        "a policy says `idempotent: true`.",
                        s->product));
}

/* ---- conditions ---- */

/* In Envoy these mean every way to get no answer, as 5xx does there and here. */
static bool means_no_answer(const struct source_list *list)
{
    return (source_list_has(list, "gateway-error") || source_list_has(list, "reset")) && !source_list_has(list, "5xx");
}

static void condition_add(struct source *s, struct emit_target *target, const struct from *from, const char *token,
                          struct source_list *list)
{
    struct becalm_retry_on known = {0};
    if (becalm_retry_on_add(&known, (struct becalm_text){token, strlen(token)}) == 0) {
        source_list_add(list, token);
        return;
    }
    const char *path = emit_text(s->emit, "%s \"%s\"", from->path, token);
    source_no_equal(s, target, &(struct from){from->node, path, NULL},
                    strcmp(token, "retriable-headers") == 0 ? "no header of an answer decides about retries"
                                                            : "Becalm has no such condition");
}

static void conditions_split(struct source *s, struct emit_target *target, const struct from *from, const char *text,
                             struct source_list *list)
{
    while (*text != '\0') {
        char token[TOKEN_BYTES];
        text += strspn(text, ", \t");
        size_t length = strcspn(text, ", \t");
        if (length > 0) {
            snprintf(token, sizeof token, "%.*s", length < TOKEN_BYTES ? (int)length : TOKEN_BYTES - 1, text);
            condition_add(s, target, from, token, list);
        }
        text += length;
    }
}

static void codes_add(struct source *s, struct emit_target *target, const struct from *codes, struct source_list *list)
{
    if (!source_is(s, codes, YAML_SEQUENCE)) {
        return;
    }
    for (uint32_t i = 0; i < codes->node->count; i++) {
        uint64_t status;
        struct from item = {codes->node->item[i], codes->path, NULL};
        if (!source_integer(s, &item, &status)) {
            continue;
        }
        if (status < 400 || status > 599) {
            item.path = emit_text(s->emit, "%s %s", codes->path, item.node->text);
            source_no_equal(s, target, &item, "only statuses from 400 to 599 are failures");
        } else {
            source_list_add(list, emit_text(s->emit, "%u", (unsigned)status));
        }
    }
}

void mesh_application_tell(struct source *s, struct emit_target *target, const struct source_list *list,
                           const struct from *from)
{
    const char *text = emit_get(target, "maxRetries");
    uint64_t retries = 0;
    if ((source_list_has(list, "5xx") || source_list_has(list, "500")) && text != NULL &&
        value_integer(text, &retries) && retries > 1) {
        source_no_equal(s, target, from, "an error of the application (500) is retried once per call");
    }
}

void mesh_retry_on(struct source *s, struct emit_target *target, const struct from *on, const struct from *codes,
                   const struct from *block, const char *otherwise)
{
    static const char *const no_answer_words[] = {"reset", "connect-failure", "refused-stream", "timeout"};
    struct source_list list = {.emit = s->emit};
    struct from from = on->node == NULL ? *block : *on;
    const char *text = on->node == NULL ? otherwise : source_text(s, on);
    if (text == NULL) {
        return;
    }
    conditions_split(s, target, &from, text, &list);
    if (on->node == NULL) {
        from.remark = emit_text(s->emit, "%s's default; no conditions are written", s->product);
    }
    bool no_answer = means_no_answer(&list);
    for (size_t i = 0; no_answer && i < sizeof no_answer_words / sizeof *no_answer_words; i++) {
        source_list_add(&list, no_answer_words[i]);
    }
    if (no_answer) {
        from.remark = emit_text(s->emit, "for %s gateway-error and reset mean every way to get no answer", s->product);
    }
    codes_add(s, target, codes, &list);
    source_put_list(s, target, "retryOn", &list, &from);
    mesh_application_tell(s, target, &list, &from);
}

/* ---- times ---- */

void mesh_backoff(struct source *s, struct emit_target *target, const struct from *base, const struct from *cap,
                  const struct from *block)
{
    becalm_ns first = MESH_BASE;
    becalm_ns most;
    bool written = source_duration(s, base, &first);
    struct from from = written ? *base : *block;
    if (base->node != NULL && !written) {
        return;
    }
    if (!written) {
        from.remark = emit_text(s->emit, "%s's default; no backoff is written", s->product);
    }
    struct from cap_from = *cap;
    if (!source_duration(s, cap, &most)) {
        most = first < BECALM_NEVER / MESH_CAP ? first * MESH_CAP : BECALM_NEVER;
        cap_from = (struct from){from.node, from.path, emit_text(s->emit, "%s's default: ten times that", s->product)};
    }
    source_put_duration(s, target, "initialDelay", first, &from);
    source_put_duration(s, target, "maxDelay", most < first ? first : most, &cap_from);
}

void mesh_deadline(struct source *s, struct emit_target *target, const struct from *from)
{
    becalm_ns value;
    if (source_duration(s, from, &value)) {
        if (value == 0) {
            source_put_word(s, target, "deadline", "none", from);
        } else {
            source_put_duration(s, target, "deadline", value, from);
        }
    }
}

void mesh_attempt_timeout(struct source *s, struct emit_target *target, const struct from *from)
{
    becalm_ns value;
    if (!source_duration(s, from, &value)) {
        return;
    }
    if (value == 0) {
        source_put_word(s, target, "attemptTimeout", "none", from);
    } else {
        source_put_duration(s, target, "attemptTimeout", value, from);
    }
}

/* ---- limits ---- */

static void budget_put(struct source *s, struct emit_target *target, const struct mesh_limits *l)
{
    uint64_t percent = MESH_PERCENT;
    uint64_t minimum = MESH_MINIMUM;
    const char *unwritten = emit_text(s->emit, "%s's default", s->product);
    struct from percent_from = l->percent.node != NULL ? l->percent : l->budget;
    struct from minimum_from = l->minimum.node != NULL ? l->minimum : l->budget;
    if (!source_decimal(s, &l->percent, 10000, &percent)) {
        percent_from.remark = unwritten;
    }
    if (!source_integer(s, &l->minimum, &minimum)) {
        minimum_from.remark = unwritten;
    }
    if (percent > 1000000) {
        source_error(s, percent_from.node, "bad-value", "%s is above 100 percent", percent_from.path);
        return;
    }
    source_put_word(s, target, "budget.kind", "concurrency", &l->budget);
    source_put_percent(s, target, "budget.percent", percent, &percent_from);
    source_put_integer(s, target, "budget.minConcurrency", minimum, &minimum_from);
    source_put_word(s, target, "budget.level", "service", &l->budget);
    if (l->interval.node != NULL) {
        source_no_equal(s, target, &l->interval,
                        "it compares retries in progress with requests of a time; kind ratio with a window counts both "
                        "alike");
    }
    if (l->retries.node != NULL) {
        source_no_equal(s, target, &l->retries, "the retry budget beside it wins");
    }
}

/* max_retries: the most retries in progress, at any traffic. */
static void retries_put(struct source *s, struct emit_target *target, const struct from *retries)
{
    uint64_t most;
    struct from from = *retries;
    if (!source_integer(s, retries, &most)) {
        return;
    }
    source_put_word(s, target, "budget.kind", "concurrency", &from);
    from.remark = "a fixed number, no share of the traffic";
    source_put_percent(s, target, "budget.percent", 0, &from);
    from.remark = NULL;
    source_put_integer(s, target, "budget.minConcurrency", most, &from);
    source_put_word(s, target, "budget.level", "service", &from);
}

void mesh_limits(struct source *s, struct emit_target *target, const struct mesh_limits *l)
{
    uint64_t requests;
    if (source_is(s, &l->budget, YAML_MAPPING)) {
        budget_put(s, target, l);
    } else {
        retries_put(s, target, &l->retries);
    }
    if (source_integer(s, &l->requests, &requests)) {
        source_put_word(s, target, "limit.kind", "fixed", &l->requests);
        source_put_integer(s, target, "limit.max", requests, &l->requests);
    }
    source_take_integer(s, target, "gate.maxQueue", &l->pending);
}

/* ---- ejection ---- */

static void outlier_time(struct source *s, struct emit_target *target, const char *key, const struct from *from,
                         const struct mesh_outlier *o, becalm_ns otherwise)
{
    if (from->node != NULL) {
        source_take_duration(s, target, key, from);
    } else {
        const char *remark = emit_text(s->emit, "%s's default", s->product);
        source_put_duration(s, target, key, otherwise, &(struct from){o->block.node, o->block.path, remark});
    }
}

/* How many failures in a row eject a host. Every gateway error is a 5xx too: a number of them that is not below that of
 * 5xx never acts, and one that is below has to count all 5xx here. False: a value is wrong. */
static bool outlier_count(struct source *s, struct emit_target *target, const struct mesh_outlier *o, uint64_t *count,
                          const struct from **from)
{
    uint64_t gateway = 0;
    if ((o->consecutive.node != NULL && !source_integer(s, &o->consecutive, count)) ||
        (o->gateway.node != NULL && !source_integer(s, &o->gateway, &gateway))) {
        return false;
    }
    if (gateway > 0 && (*count == 0 || gateway < *count)) {
        source_no_equal(s, target, &o->gateway, "every 5xx counts here, not 502, 503 and 504 alone");
        *count = gateway;
        *from = &o->gateway;
    }
    return true;
}

void mesh_outlier(struct source *s, struct emit_target *target, const struct mesh_outlier *o)
{
    uint64_t consecutive = 5;
    const char *unwritten = emit_text(s->emit, "%s's default", s->product);
    struct from block = {o->block.node, o->block.path, unwritten};
    const struct from *from = o->consecutive.node != NULL ? &o->consecutive : &block;
    if (!outlier_count(s, target, o, &consecutive, &from)) {
        return;
    }
    if (consecutive == 0) {
        source_put_word(s, target, "outlier.enabled", "false", from); /* in Becalm 0 would mean: by rate */
        return;
    }
    source_put_integer(s, target, "outlier.consecutive5xxErrors", consecutive, from);
    outlier_time(s, target, "outlier.interval", &o->interval, o, 10 * BECALM_S);
    outlier_time(s, target, "outlier.baseEjectionTime", &o->ejection, o, MESH_EJECTION);
    if (o->percent.node != NULL) {
        source_take_percent(s, target, "outlier.maxEjectionPercent", &o->percent);
    } else {
        source_put_percent(s, target, "outlier.maxEjectionPercent", 100000, &block);
    }
}
