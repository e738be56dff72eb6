/* SPDX-License-Identifier: MIT */
#include "substitute.h"

#include <stdlib.h>
#include <string.h>

#include "file.h"

#define VALUE_MAX (64u * 1024u) /* of one text, all in all */

struct substitution {
    struct arena *arena;
    struct becalm_diags *diags;
    const char *name; /* of the tree */
    const struct yaml_node *node;
    char *text; /* the result; VALUE_MAX + 1 bytes */
    size_t length;
    bool fine;
};

static void complain(struct substitution *s, const char *code, const char *message, const char *what, size_t length)
{
    becalm_diag_add(s->diags, BECALM_ERROR, s->name, s->node->line, s->node->column, code, message,
                    (int)(length > 128 ? 128 : length), what);
    s->fine = false;
}

static void put(struct substitution *s, const char *text, size_t length)
{
    if (length > VALUE_MAX - s->length) {
        if (s->fine) {
            complain(s, "too-large", "a value has more than 64 KiB after %.*s is replaced; write less", "${...}", 6);
        }
        return;
    }
    memcpy(s->text + s->length, text, length);
    s->length += length;
}

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') || text[i] == '_';
        if (!letter && (i == 0 || text[i] < '0' || text[i] > '9')) {
            return false;
        }
    }
    return length > 0;
}

/* ${file:PATH}; a relative path is relative to the policy's folder. */
static void put_file(struct substitution *s, const char *path, size_t length)
{
    char whole[4096];
    const char *slash = strrchr(s->name, '/');
    size_t folder = path[0] != '/' && slash != NULL ? (size_t)(slash - s->name) + 1 : 0;
    const char *why = "the path is too long";
    size_t bytes = 0;
    char *text = NULL;
    if (folder + length < sizeof whole) {
        memcpy(whole, s->name, folder);
        memcpy(whole + folder, path, length);
        whole[folder + length] = '\0';
        text = file_read_regular(whole, &bytes, &why);
    }
    if (text == NULL) {
        becalm_diag_add(s->diags, BECALM_ERROR, s->name, s->node->line, s->node->column, "unreadable",
                        "${file:%.*s}: %s", (int)(length > 128 ? 128 : length), path, why);
        s->fine = false;
        return;
    }
    while (bytes > 0 && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r')) {
        bytes--;
    }
    if (memchr(text, '\0', bytes) != NULL) {
        complain(s, "wrong-type", "${file:%.*s} has a zero byte; name a file with one line of text", path, length);
    } else {
        put(s, text, bytes);
    }
    free(text);
}

/* Replaces the text between the braces. */
static void put_named(struct substitution *s, const char *inside, size_t length)
{
    char name[256];
    const char *dash = NULL;
    for (size_t i = 0; i + 1 < length && dash == NULL; i++) {
        dash = inside[i] == ':' && inside[i + 1] == '-' ? inside + i : NULL;
    }
    size_t name_length = dash == NULL ? length : (size_t)(dash - inside);
    if (strncmp(inside, "file:", 5) == 0 && length > 5) {
        put_file(s, inside + 5, length - 5);
        return;
    }
    if (!is_name(inside, name_length) || name_length >= sizeof name) {
        complain(s, "wrong-type",
                 "${%.*s} is none of ${NAME}, ${NAME:-default} and ${file:PATH}; write $${ for a plain ${", inside,
                 length);
        return;
    }
    memcpy(name, inside, name_length);
    name[name_length] = '\0';
    const char *value = getenv(name);
    if (value != NULL && (value[0] != '\0' || dash == NULL)) {
        put(s, value, strlen(value));
    } else if (dash != NULL) {
        put(s, dash + 2, length - name_length - 2);
    } else {
        complain(s, "missing", "%.*s is not in the environment; set it, or write ${NAME:-default}", inside,
                 name_length);
    }
}

static void put_all(struct substitution *s)
{
    const char *text = s->node->text;
    for (const char *at = strstr(text, "${"); at != NULL && s->fine; at = strstr(text, "${")) {
        if (at > text && at[-1] == '$') {
            put(s, text, (size_t)(at - text) - 1);
            put(s, "${", 2);
            text = at + 2;
            continue;
        }
        const char *end = strchr(at, '}');
        put(s, text, (size_t)(at - text));
        if (end == NULL) {
            complain(s, "wrong-type", "%.*s has no }; write ${NAME}, or $${ for a plain ${", at, strlen(at));
            return;
        }
        put_named(s, at + 2, (size_t)(end - at) - 2);
        text = end + 1;
    }
    put(s, text, strlen(text));
}

static bool scalar(struct yaml_node *node, const struct substitution *all)
{
    struct substitution s = *all;
    if (strstr(node->text, "${") == NULL) {
        return true;
    }
    s.node = node;
    s.fine = true;
    s.text = malloc(VALUE_MAX + 1);
    if (s.text == NULL) {
        return false;
    }
    put_all(&s);
    s.text[s.length] = '\0';
    char *kept = s.fine ? arena_text(s.arena, s.text) : NULL;
    free(s.text);
    if (kept != NULL) {
        node->written = node->text;
        node->text = kept;
        node->length = s.length;
    }
    return kept != NULL || !s.fine;
}

/* The depth of a tree is bounded by its parser. */
static bool walk(struct yaml_node *node, const struct substitution *all)
{
    if (node->kind == YAML_SCALAR) {
        return scalar(node, all);
    }
    for (uint32_t i = 0; i < node->count; i++) {
        if (!walk(node->item[i], all)) {
            return false;
        }
    }
    return true;
}

bool substitute_tree(struct yaml_tree *tree, struct arena *arena, struct becalm_diags *diags)
{
    const struct substitution all = {.arena = arena, .diags = diags, .name = tree->name};
    return walk(tree->root, &all);
}
