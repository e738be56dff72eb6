/* SPDX-License-Identifier: MIT */
#include "traefik_rule.h"

#include <string.h>

#define DEPTH_MAX 16u
#define ARGUMENTS 32u

static const char broken[] = "it is no rule that is known here; the route is left out";
static const char unsayable[] = "an endpoint can't have this condition, so the route is left out";

struct reader {
    struct source *s;
    const char *at;
    unsigned depth;
};

static void either_read(struct reader *r, struct traefik_rule *out);

static bool token(struct reader *r, const char *text)
{
    r->at += strspn(r->at, " \t\r\n");
    size_t length = strlen(text);
    if (strncmp(r->at, text, length) != 0) {
        return false;
    }
    r->at += length;
    return true;
}

/* `text`, "text" or 'text'. NULL: none is there. */
static const char *quoted(struct reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
    char quote = *r->at;
    const char *end = quote == '`' || quote == '"' || quote == '\'' ? strchr(r->at + 1, quote) : NULL;
    if (end == NULL) {
        return NULL;
    }
    const char *text = emit_text(r->s->emit, "%.*s", (int)(end - r->at - 1), r->at + 1);
    r->at = end + 1;
    return text;
}

static bool is_path(const struct route_match *m)
{
    return m->path != NULL || m->prefix != NULL || m->start != NULL;
}

/* Combines two matches; false: no match can express both. */
static bool match_join(const struct route_match *a, const struct route_match *b, struct route_match *out)
{
    if ((is_path(a) && is_path(b)) || (a->host != NULL && b->host != NULL) ||
        (a->method != NULL && b->method != NULL) || (a->header != NULL && b->header != NULL)) {
        return false;
    }
    *out = *a;
    if (is_path(b)) {
        out->path = b->path;
        out->prefix = b->prefix;
        out->start = b->start;
    }
    out->host = b->host != NULL ? b->host : a->host;
    out->method = b->method != NULL ? b->method : a->method;
    if (b->header != NULL) {
        out->header = b->header;
        out->value = b->value;
    }
    return true;
}

static void choice_add(struct traefik_rule *out, const struct route_match *m)
{
    if (out->count == TRAEFIK_CHOICES_MAX) {
        out->why = "it has too many alternatives; the route is left out";
    } else {
        out->match[out->count++] = *m;
    }
}

/* One matcher with its arguments, of which each is an alternative, but for a header: that is a name and its value. */
static void matcher_put(struct traefik_rule *out, const char *name, const char *const *argument, uint32_t count)
{
    bool header = strcmp(name, "Header") == 0 || strcmp(name, "Headers") == 0;
    if (header && count == 2) {
        choice_add(out, &(struct route_match){.header = argument[0], .value = argument[1]});
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct route_match m = {0};
        bool pattern = strchr(argument[i], '{') != NULL;
        if (strcmp(name, "Host") == 0) {
            m.host = argument[i];
        } else if (strcmp(name, "PathPrefix") == 0 && !pattern) {
            match_begins_with(&m, argument[i]);
        } else if (strcmp(name, "Path") == 0 && !pattern) {
            m.path = argument[i];
        } else if (strcmp(name, "Method") == 0) {
            m.method = argument[i];
        } else {
            out->why = unsayable;
            return;
        }
        choice_add(out, &m);
    }
    out->why = count == 0 ? broken : out->why;
}

static void call_read(struct reader *r, struct traefik_rule *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *argument[ARGUMENTS];
    uint32_t count = 0;
    size_t length = strspn(r->at, letters);
    const char *name = emit_text(r->s->emit, "%.*s", (int)length, r->at);
    r->at += length;
    if (length == 0 || !token(r, "(")) {
        out->why = broken;
        return;
    }
    do {
        const char *text = quoted(r);
        if (text == NULL || count == ARGUMENTS) {
            out->why = broken;
            return;
        }
        argument[count++] = text;
    } while (token(r, ","));
    if (!token(r, ")")) {
        out->why = broken;
        return;
    }
    matcher_put(out, name, argument, count);
}

static void one_read(struct reader *r, struct traefik_rule *out)
{
    *out = (struct traefik_rule){0};
    if (r->depth == 0) {
        out->why = broken;
    } else if (token(r, "!")) {
        out->why = unsayable;
    } else if (token(r, "(")) {
        r->depth--;
        either_read(r, out);
        r->depth++;
        out->why = out->why == NULL && !token(r, ")") ? broken : out->why;
    } else {
        call_read(r, out);
    }
}

static void all_read(struct reader *r, struct traefik_rule *out)
{
    one_read(r, out);
    while (out->why == NULL && token(r, "&&")) {
        struct traefik_rule *more = emit_take(r->s->emit, 2 * sizeof *more);
        if (more == NULL) {
            return;
        }
        one_read(r, &more[0]);
        for (uint32_t i = 0; more[0].why == NULL && i < out->count; i++) {
            for (uint32_t k = 0; k < more[0].count; k++) {
                struct route_match both;
                if (match_join(&out->match[i], &more[0].match[k], &both)) {
                    choice_add(&more[1], &both);
                } else {
                    more[1].why = unsayable;
                }
            }
        }
        more[1].why = more[0].why != NULL ? more[0].why : more[1].why;
        *out = more[1];
    }
}

static void either_read(struct reader *r, struct traefik_rule *out)
{
    all_read(r, out);
    while (out->why == NULL && token(r, "||")) {
        struct traefik_rule *more = emit_take(r->s->emit, sizeof *more);
        if (more == NULL) {
            return;
        }
        all_read(r, more);
        out->why = more->why;
        for (uint32_t i = 0; out->why == NULL && i < more->count; i++) {
            choice_add(out, &more->match[i]);
        }
    }
}

void traefik_rule_read(struct source *s, const char *text, struct traefik_rule *out)
{
    struct reader r = {s, text, DEPTH_MAX};
    either_read(&r, out);
    if (out->why == NULL && r.at[strspn(r.at, " \t\r\n")] != '\0') {
        out->why = broken;
    }
    for (uint32_t i = 0; out->why == NULL && i < out->count; i++) {
        out->why = match_is_possible(&out->match[i]) ? NULL : unsayable;
    }
}
