/* SPDX-License-Identifier: MIT */
#include "haproxy_internal.h"

#include <string.h>

/* Combines two matches; false: both restrict the same property. */
static bool match_join(struct route_match *to, const struct route_match *other)
{
    const char **const ours[] = {&to->path, &to->prefix, &to->method, &to->header, &to->value, &to->host};
    const char *const theirs[] = {other->path, other->prefix, other->method, other->header, other->value, other->host};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        if (theirs[i] != NULL && *ours[i] != NULL && strcmp(*ours[i], theirs[i]) != 0) {
            return false;
        }
        *ours[i] = theirs[i] != NULL ? theirs[i] : *ours[i];
    }
    return to->path == NULL || to->prefix == NULL;
}

/* a and b: combines each choice of a with each choice of b. */
static void choices_join(struct choices *to, const struct choices *other)
{
    struct choices all = {.impossible = to->impossible || other->impossible};
    for (uint32_t i = 0; i < to->count; i++) {
        for (uint32_t k = 0; k < other->count; k++) {
            struct route_match both = to->match[i];
            if (all.count == MATCHES_MAX || !match_join(&both, &other->match[k])) {
                all.impossible = true;
            } else {
                all.match[all.count++] = both;
            }
        }
    }
    *to = all;
}

void haproxy_choice_add(struct choices *to, const struct route_match *match)
{
    if (to->count < MATCHES_MAX) {
        to->match[to->count++] = *match;
    } else {
        to->impossible = true;
    }
}

/* The name in brackets of hdr(host): "" if there are none. */
static const char *argument_of(struct source *s, const char *sample)
{
    const char *open = strchr(sample, '(');
    const char *close = open == NULL ? NULL : strchr(open, ')');
    return close == NULL ? "" : emit_text(s->emit, "%.*s", (int)(close - open - 1), open + 1);
}

/* One test: a sample, flags, values. `at` is its first word, `end` one behind its last. */
static void test_read(struct haproxy *in, struct choices *out, const struct yaml_node *line, uint32_t at, uint32_t end)
{
    struct source *s = in->s;
    const char *sample = directive_text(line, at);
    const char *method = "";
    uint32_t value = at + 1;
    for (; value < end && directive_text(line, value)[0] == '-' && strcmp(directive_text(line, value), "--") != 0;
         value++) {
        if (strcmp(directive_text(line, value), "-m") == 0) {
            method = directive_text(line, ++value);
        } else if (strcmp(directive_text(line, value), "-i") != 0) {
            out->impossible = true; /* -f FILE and others */
        }
    }
    const char *name = strncmp(sample, "req.", 4) == 0 ? sample + 4 : sample;
    size_t length = strcspn(name, "(,");
    const char *base = emit_text(s->emit, "%.*s", (int)length, name);
    const char *argument = argument_of(s, name);
    bool plain = strcspn(name, ",") == strlen(name) || strcmp(name + strcspn(name, ","), ",lower") == 0;
    bool exact = method[0] == '\0' || strcmp(method, "str") == 0;
    bool host = (strcmp(argument, "host") == 0 || strcmp(argument, "Host") == 0) && strncmp(base, "hdr", 3) == 0;
    bool begins = strcmp(base, "path_beg") == 0 || (strcmp(base, "path") == 0 && strcmp(method, "beg") == 0);
    bool ends = strcmp(base, "hdr_end") == 0 || (strcmp(base, "hdr") == 0 && strcmp(method, "end") == 0);
    if (value >= end || !plain) {
        out->impossible = true;
    }
    for (; value < end; value++) {
        const char *text = directive_text(line, value);
        struct route_match m = {0};
        if (begins) {
            m.prefix = text;
        } else if (strcmp(base, "path") == 0 && exact) {
            m.path = text;
        } else if (strcmp(base, "method") == 0 && exact) {
            m.method = text;
        } else if (host && strcmp(base, "hdr") == 0 && exact) {
            m.host = text;
        } else if (host && ends && text[0] == '.') {
            m.host = emit_text(s->emit, "*%s", text);
        } else if (strcmp(base, "hdr") == 0 && exact && argument[0] != '\0' && !host) {
            m.header = argument;
            m.value = text;
        } else {
            out->impossible = true;
        }
        haproxy_choice_add(out, &m);
    }
}

/* An ACL by its name: all its lines, each of which will do. */
static void acl_read(struct haproxy *in, struct choices *out, const struct section *section, const char *name)
{
    const struct yaml_node *block = directive_block(section->line.node);
    if (strncmp(name, "METH_", 5) == 0) {
        haproxy_choice_add(out, &(struct route_match){.method = name + 5});
        return;
    }
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        if (directive_is(block->item[i], "acl") && strcmp(directive_text(block->item[i], 1), name) == 0) {
            test_read(in, out, block->item[i], 2, directive_words(block->item[i]));
        }
    }
    out->impossible = out->impossible || out->count == 0;
}

void haproxy_condition(struct haproxy *in, struct choices *out, const struct section *section,
                       const struct yaml_node *line, uint32_t at)
{
    struct choices all = {.match = {{0}}, .count = 1}; /* of the tests since the last `or` */
    uint32_t words = directive_words(line);
    for (; at < words; at++) {
        const char *word = directive_text(line, at);
        struct choices one = {0};
        if (strcmp(word, "||") == 0 || strcmp(word, "or") == 0) {
            for (uint32_t i = 0; i < all.count; i++) {
                haproxy_choice_add(out, &all.match[i]);
            }
            out->impossible = out->impossible || all.impossible;
            all = (struct choices){.match = {{0}}, .count = 1};
            continue;
        }
        if (strcmp(word, "{") == 0) {
            uint32_t end = at + 1;
            while (end < words && strcmp(directive_text(line, end), "}") != 0) {
                end++;
            }
            test_read(in, &one, line, at + 1, end);
            at = end;
        } else if (word[0] == '!') {
            one.impossible = true;
        } else {
            acl_read(in, &one, section, word);
        }
        choices_join(&all, &one);
    }
    for (uint32_t i = 0; i < all.count; i++) {
        haproxy_choice_add(out, &all.match[i]);
    }
    out->impossible = out->impossible || all.impossible;
}
