/* SPDX-License-Identifier: MIT */
#include "fallback.h"

#include <string.h>
#include <strings.h>

#include "http/text_internal.h"
#include "policy/config_data.h"

#define HEADERS_MAX 8u
#define BODY_MAX    (64u * 1024)

void fallback_defaults(struct becalm_fallback *fallback)
{
    static const char *const nothing[] = {NULL};
    *fallback = (struct becalm_fallback){.on = BECALM_FALLBACK_ALL, .headers = nothing, .fields = nothing};
}

/* Where the rules of this level have it; a line of 0: nowhere. */
static struct becalm_origin written(const struct loader *l, const struct becalm_rules *rules, const char *key)
{
    struct becalm_origin origin = becalm_rules_origin(rules, key);
    return origin.level == l->level ? origin : (struct becalm_origin){0};
}

static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = to_lower(text[i]);
        if (!((c >= 'a' && c <= 'z') || is_digit(c) || strchr("!#$%&'*+-.^_`|~", c) != NULL)) {
            return false;
        }
    }
    return length > 0;
}

static bool is_value(const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Fields that frame the answer, or that only the gateway sets. */
static bool is_ours(const char *name, size_t length)
{
    static const char *const ours[] = {
        "content-length", "transfer-encoding", "connection",   "keep-alive",      "upgrade",       "trailer", "te",
        "date",           "proxy-status",      "becalm-retry", "becalm-fallback", "becalm-explain"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (strlen(ours[i]) == length && strncasecmp(ours[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* "Name: value" in two texts, the name in lower case. False: it is none, or there is no memory. */
static bool field_split(struct loader *l, const char *header, const char **to)
{
    size_t length = strcspn(header, ":");
    const char *value = header + length + (header[length] == ':');
    value += strspn(value, " \t");
    char *name = arena_take(l->arena, length + 1);
    if (name == NULL) {
        return loader_no_memory(l);
    }
    for (size_t i = 0; i < length; i++) {
        name[i] = to_lower(header[i]);
    }
    name[length] = '\0';
    to[0] = name;
    to[1] = value;
    return header[length] == ':' && is_token(header, length) && is_value(value) && !is_ours(header, length);
}

static void fields_make(struct loader *l, struct becalm_rules *rules, const char *whose)
{
    struct becalm_fallback *fallback = &rules->fallback;
    struct becalm_origin at = written(l, rules, "fallback.headers");
    size_t count = 0;
    while (fallback->headers[count] != NULL) {
        count++;
    }
    const char **fields = arena_take(l->arena, (2 * count + 1) * sizeof *fields);
    if (fields == NULL) {
        (void)loader_no_memory(l);
        return;
    }
    if (count > HEADERS_MAX) {
        loader_error(l, at.line, at.column, "out-of-range", "%s: fallback.headers has room for %u", whose, HEADERS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (!field_split(l, fallback->headers[i], &fields[2 * i]) && !l->no_memory) {
            loader_error(
                l, at.line, at.column, "wrong-type",
                "%s: fallback.headers: \"%.64s\" can't be sent; write \"name: value\", and no field that frames "
                "an answer or is the gateway's own",
                whose, fallback->headers[i]);
        }
    }
    fallback->fields = fields;
}

void fallback_settle(struct loader *l, struct becalm_rules *rules, const char *whose)
{
    const struct becalm_fallback *fallback = &rules->fallback;
    struct becalm_origin headers = written(l, rules, "fallback.headers");
    struct becalm_origin body = written(l, rules, "fallback.body");
    struct becalm_origin status = written(l, rules, "fallback.status");
    if (headers.line > 0 || headers.level == BECALM_FROM_SET) {
        fields_make(l, rules, whose);
    }
    bool says = fallback->body != NULL || fallback->headers[0] != NULL;
    struct becalm_origin *at = body.line > 0 ? &body : &headers;
    if (at->line > 0 && says && fallback->status == 0) {
        loader_error(l, at->line, at->column, "conflict",
                     "%s: fallback: an answer needs a status; write fallback: {status: 200, ...}", whose);
    }
    bool empty = fallback->status == 204 || fallback->status == 304;
    if (empty && fallback->body != NULL && (body.line > 0 || status.line > 0)) {
        at = body.line > 0 ? &body : &status;
        loader_error(l, at->line, at->column, "conflict", "%s: fallback: an answer with status %u has no body", whose,
                     fallback->status);
    }
    if (body.line > 0 && strlen(fallback->body == NULL ? "" : fallback->body) > BODY_MAX) {
        loader_error(l, body.line, body.column, "out-of-range", "%s: fallback.body has more than 64 KiB", whose);
    }
}

/* One service's own rules, or an endpoint's. A fallback in `defaults:` need not suit each service. */
static void check(struct loader *l, const struct becalm_service *service, const struct becalm_rules *rules)
{
    const char *name = rules->fallback.service;
    struct becalm_origin at = becalm_rules_origin(rules, "fallback.service");
    const struct becalm_service *there = name == NULL ? NULL : becalm_config_find(l->config, name);
    if (name == NULL) {
        return;
    }
    if (there == NULL) {
        loader_error(l, at.line, at.column, "missing", "fallback.service: there is no service \"%.64s\"", name);
    } else if (there->unlisted) {
        loader_error(l, at.line, at.column, "conflict",
                     "fallback.service: %.64s has no hosts of its own; name a service with hosts", name);
    } else if (there == service && at.level != BECALM_FROM_DEFAULTS) {
        loader_error(l, at.line, at.column, "conflict",
                     "fallback.service: %.64s would be its own fallback; name another service", name);
    }
}

void fallback_check(struct loader *l)
{
    const char *name = l->name;
    for (uint32_t i = 0; i < l->config->service_count; i++) {
        const struct becalm_service *service = &l->config->services[i];
        l->name = service->file;
        check(l, service, &service->rules);
        for (uint32_t k = 0; k < service->endpoint_count; k++) {
            const struct becalm_rules *rules = &service->endpoints[k].rules;
            struct becalm_origin at = becalm_rules_origin(rules, "fallback.service");
            if (at.level == BECALM_FROM_ENDPOINT) {
                check(l, service, rules);
            }
        }
    }
    l->name = name;
}
