/* SPDX-License-Identifier: MIT */
#include "hcl_parse.h"

#include "directives.h"
#include "http/utf8.h"

#include <stdlib.h>
#include <string.h>

struct hcl {
    struct yaml_tree *tree;
    struct becalm_diags *diags;
    const char *text;
    size_t length;
    size_t at;
    uint32_t line;
    uint32_t column;
    uint32_t nodes;
    uint32_t depth;
    bool failed;
};

/* The pairs of a body. */
struct pairs {
    struct yaml_node **key;
    struct yaml_node **item;
    uint32_t count;
    uint32_t space;
};

static struct yaml_node *value_read(struct hcl *h);
static struct yaml_node *body_read(struct hcl *h, int end);

static struct yaml_node *fail(struct hcl *h, const char *code, const char *sentence)
{
    if (!h->failed) {
        becalm_diag_add(h->diags, BECALM_ERROR, h->tree->name, h->line, h->column, code, "%s", sentence);
    }
    h->failed = true;
    return NULL;
}

static struct yaml_node *counted(struct hcl *h, struct yaml_node *node)
{
    if (node == NULL) {
        return fail(h, "no-memory", "there is not enough memory to read the file");
    }
    return ++h->nodes > HCL_NODES_MAX ? fail(h, "too-large", "there are over 200000 values; split the file") : node;
}

static int peek(const struct hcl *h, size_t ahead)
{
    return h->at + ahead < h->length ? (unsigned char)h->text[h->at + ahead] : -1;
}

static void step(struct hcl *h)
{
    bool newline = peek(h, 0) == '\n';
    h->line += newline;
    h->column = newline ? 1 : h->column + 1;
    h->at++;
}

static void line_skip(struct hcl *h)
{
    while (peek(h, 0) != -1 && peek(h, 0) != '\n') {
        step(h);
    }
}

/* Blanks, ends of lines, commas between pairs, and comments. */
static void space_skip(struct hcl *h)
{
    for (;;) {
        int c = peek(h, 0);
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            step(h);
        } else if (c == '#' || (c == '/' && peek(h, 1) == '/')) {
            line_skip(h);
        } else if (c == '/' && peek(h, 1) == '*') {
            while (peek(h, 0) != -1 && !(peek(h, 0) == '*' && peek(h, 1) == '/')) {
                step(h);
            }
            step(h);
            step(h);
        } else {
            return;
        }
    }
}

static bool is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '+';
}

/* A word, a number, or a text in quotes. */
static struct yaml_node *scalar_read(struct hcl *h)
{
    uint32_t line = h->line;
    uint32_t column = h->column;
    size_t start = h->at;
    if (peek(h, 0) != '"') {
        while (is_word(peek(h, 0))) {
            step(h);
        }
        if (h->at == start) {
            return fail(h, "bad-syntax", "a value, or the name of a key, is expected here");
        }
        return counted(h, yaml_tree_scalar(h->tree, line, column, h->text + start, h->at - start));
    }
    step(h);
    char *copy = malloc(h->length - h->at + 1);
    size_t used = 0;
    while (copy != NULL && peek(h, 0) != '"' && peek(h, 0) != '\n' && peek(h, 0) != -1) {
        if (peek(h, 0) == '\\' && peek(h, 1) != -1 && peek(h, 1) != '\n') {
            step(h);
        }
        copy[used++] = (char)peek(h, 0);
        step(h);
    }
    struct yaml_node *node = copy == NULL ? NULL : yaml_tree_scalar(h->tree, line, column, copy, used);
    free(copy);
    if (peek(h, 0) != '"') {
        return fail(h, "bad-syntax", "a text has no end: the quotation mark is missing");
    }
    step(h);
    return counted(h, node);
}

static bool pair_add(struct hcl *h, struct pairs *p, struct yaml_node *key, struct yaml_node *item)
{
    if (p->count == p->space) {
        uint32_t space = p->space == 0 ? 16 : p->space * 2;
        struct yaml_node **keys = realloc(p->key, space * sizeof *keys);
        p->key = keys != NULL ? keys : p->key;
        struct yaml_node **items = realloc(p->item, space * sizeof *items);
        p->item = items != NULL ? items : p->item;
        if (keys == NULL || items == NULL) {
            (void)fail(h, "no-memory", "there is not enough memory to read the file");
            return false;
        }
        p->space = space;
    }
    p->key[p->count] = key;
    p->item[p->count++] = item;
    return true;
}

static struct yaml_node *list_read(struct hcl *h)
{
    struct pairs p = {0};
    uint32_t line = h->line;
    uint32_t column = h->column;
    step(h);
    space_skip(h);
    while (!h->failed && peek(h, 0) != ']') {
        struct yaml_node *item = value_read(h);
        if (item == NULL || !pair_add(h, &p, NULL, item)) {
            break;
        }
        space_skip(h);
        if (peek(h, 0) == ',') {
            step(h);
            space_skip(h);
        } else if (peek(h, 0) != ']') {
            (void)fail(h, "bad-syntax", "a list goes on with , or ends with ]");
        }
    }
    struct yaml_node *node = h->failed ? NULL : counted(h, yaml_tree_sequence(h->tree, line, column, p.item, p.count));
    step(h);
    free(p.key);
    free(p.item);
    return node;
}

static struct yaml_node *value_read(struct hcl *h)
{
    struct yaml_node *node = NULL;
    if (h->depth == HCL_DEPTH_MAX) {
        return fail(h, "too-deep", "this is nested over 32 levels deep");
    }
    h->depth++;
    switch (peek(h, 0)) {
    case '[':
        node = list_read(h);
        break;
    case '{':
        step(h);
        node = body_read(h, '}');
        step(h);
        break;
    case '<':
        node = fail(h, "bad-syntax", "a text over several lines is not read; write it in quotes");
        break;
    default:
        node = scalar_read(h);
        break;
    }
    h->depth--;
    return node;
}

/* A block that comes again makes a list of both; any other key is there once. */
static bool entry_put(struct hcl *h, struct pairs *p, struct yaml_node *key, struct yaml_node *item, bool block)
{
    uint32_t i = 0;
    while (i < p->count && strcmp(p->key[i]->text, key->text) != 0) {
        i++;
    }
    if (i == p->count) {
        return pair_add(h, p, key, item);
    }
    struct yaml_node *had = p->item[i];
    if (!block || had->kind == YAML_SCALAR) {
        (void)fail(h, "duplicate-key", "this key is there already");
        return false;
    }
    struct pairs all = {0};
    for (uint32_t k = 0; had->kind == YAML_SEQUENCE && k < had->count; k++) {
        (void)pair_add(h, &all, NULL, had->item[k]);
    }
    if (had->kind == YAML_MAPPING) {
        (void)pair_add(h, &all, NULL, had);
    }
    (void)pair_add(h, &all, NULL, item);
    struct yaml_node *list =
        h->failed ? NULL : counted(h, yaml_tree_sequence(h->tree, had->line, had->column, all.item, all.count));
    free(all.key);
    free(all.item);
    p->item[i] = list;
    return list != NULL;
}

static bool entry_read(struct hcl *h, struct pairs *p)
{
    struct yaml_node *key = scalar_read(h);
    if (key == NULL) {
        return false;
    }
    space_skip(h);
    bool block = peek(h, 0) != '=' && peek(h, 0) != ':';
    if (!block) {
        step(h);
        space_skip(h);
    }
    while (block && peek(h, 0) == '"') { /* labels say nothing in a configuration entry */
        if (scalar_read(h) == NULL) {
            return false;
        }
        space_skip(h);
    }
    if (block && peek(h, 0) != '{') {
        (void)fail(h, "bad-syntax", "= or { is expected behind the name of a key");
        return false;
    }
    struct yaml_node *item = value_read(h);
    return item != NULL && entry_put(h, p, key, item, block);
}

/* Pairs until `end`, which is -1 for that of the text. */
static struct yaml_node *body_read(struct hcl *h, int end)
{
    struct pairs p = {0};
    uint32_t line = h->line;
    uint32_t column = h->column;
    for (;;) {
        space_skip(h);
        if (peek(h, 0) == ',') {
            step(h);
            continue;
        }
        if (h->failed || peek(h, 0) == end) {
            break;
        }
        if (peek(h, 0) == -1) {
            (void)fail(h, "bad-syntax", "a block has no end: } is missing");
            break;
        }
        if (!entry_read(h, &p)) {
            break;
        }
    }
    struct yaml_node *node =
        h->failed ? NULL : counted(h, yaml_tree_mapping(h->tree, line, column, p.key, p.item, p.count));
    free(p.key);
    free(p.item);
    return node;
}

/* HCL is UTF-8, as a policy is. */
static bool bytes_are_fine(struct hcl h)
{
    while (h.at < h.length) {
        size_t length = utf8_length(h.text + h.at, h.length - h.at);
        if (length == 0) {
            becalm_diag_add(h.diags, BECALM_ERROR, h.tree->name, h.line, h.column, "bad-syntax",
                            "the byte 0x%02X is no UTF-8; save the file as UTF-8", (unsigned)peek(&h, 0));
            return false;
        }
        step(&h);
        h.at += length - 1;
    }
    return true;
}

struct yaml_tree *hcl_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags)
{
    if (length > DIRECTIVES_BYTES_MAX || memchr(text, 0, length) != NULL) {
        becalm_diag_add(diags, BECALM_ERROR, name, 1, 1, "too-large",
                        "the file is larger than 16 MiB, or there is a zero byte in it");
        return NULL;
    }
    struct yaml_tree *tree = yaml_tree_new(name);
    if (tree == NULL) {
        becalm_diag_add(diags, BECALM_ERROR, name, 1, 1, "no-memory", "there is not enough memory to read the file");
        return NULL;
    }
    struct hcl h = {.tree = tree, .diags = diags, .text = text, .length = length, .line = 1, .column = 1};
    tree->root = bytes_are_fine(h) ? body_read(&h, -1) : NULL;
    if (h.failed || tree->root == NULL) {
        yaml_free(tree);
        return NULL;
    }
    return tree;
}
