/* SPDX-License-Identifier: MIT */
#include "directives.h"

#include "http/utf8.h"

#include <becalm/base.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t directive_words(const struct yaml_node *directive)
{
    return directive->count - (directive_block(directive) != NULL);
}

const struct yaml_node *directive_word(const struct yaml_node *directive, uint32_t index)
{
    return index < directive_words(directive) ? directive->item[index] : NULL;
}

const char *directive_text(const struct yaml_node *directive, uint32_t index)
{
    const struct yaml_node *word = directive_word(directive, index);
    return word == NULL ? "" : word->text;
}

const struct yaml_node *directive_block(const struct yaml_node *directive)
{
    const struct yaml_node *last = directive->count == 0 ? NULL : directive->item[directive->count - 1];
    return last != NULL && last->kind == YAML_SEQUENCE ? last : NULL;
}

bool directive_is(const struct yaml_node *directive, const char *name)
{
    return strcmp(directive_text(directive, 0), name) == 0;
}

static void fail(struct directives *d, const char *code, const char *sentence)
{
    if (!d->failed) {
        directives_error(d, d->place, code, "%s", sentence);
    }
    d->failed = true;
}

static void no_memory(struct directives *d)
{
    fail(d, "no-memory", "there is not enough memory to read the file");
}

struct directives *directives_begin(const char *name, const char *text, size_t length, struct becalm_diags *diags)
{
    const char *zero = length == 0 ? NULL : memchr(text, 0, length);
    if (length > DIRECTIVES_BYTES_MAX || zero != NULL) {
        becalm_diag_add(diags, BECALM_ERROR, name, 1, 1, zero != NULL ? "bad-text" : "too-large", "%s",
                        zero != NULL ? "there is a zero byte; is this a text file in UTF-8?"
                                     : "the file is larger than 16 MiB; split it");
        return NULL;
    }
    struct directives *d = calloc(1, sizeof *d);
    struct yaml_tree *tree = yaml_tree_new(name);
    char *word = malloc(length + 1);
    if (d == NULL || tree == NULL || word == NULL) {
        becalm_diag_add(diags, BECALM_ERROR, name, 1, 1, "no-memory", "there is not enough memory to read the file");
        free(d);
        yaml_free(tree);
        free(word);
        return NULL;
    }
    *d = (struct directives){
        .text = text, .length = length, .place = {1, 1}, .diags = diags, .tree = tree, .word = word};
    d->at = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    directives_open(d, d->place);
    return d;
}

struct yaml_tree *directives_end(struct directives *d)
{
    struct yaml_tree *tree = d->tree;
    while (d->depth > 1) {
        directives_close(d);
    }
    if (!d->failed) {
        uint32_t count = (uint32_t)d->count;
        tree->root = yaml_tree_sequence(tree, 1, 1, d->item, count);
    }
    if (tree->root == NULL) {
        no_memory(d);
        yaml_free(tree);
        tree = NULL;
    }
    free(d->item);
    free(d->word);
    free(d);
    return tree;
}

int directives_peek(const struct directives *d)
{
    return d->at < d->length && !d->failed ? (unsigned char)d->text[d->at] : -1;
}

int directives_peek_next(const struct directives *d)
{
    return d->at + 1 < d->length && !d->failed ? (unsigned char)d->text[d->at + 1] : -1;
}

void directives_step(struct directives *d)
{
    int next = directives_peek_next(d);
    int byte = directives_peek(d);
    if (byte < 0) {
        return;
    }
    if (byte == '\n' || (byte == '\r' && next != '\n')) {
        d->place = (struct text_place){d->place.line + 1, 1};
    } else if (next < 0x80 || next >= 0xc0) { /* the bytes of one character are one column */
        d->place.column++;
    }
    d->at++;
}

void directives_skip_line(struct directives *d)
{
    for (int byte = directives_peek(d); byte >= 0 && byte != '\n' && byte != '\r'; byte = directives_peek(d)) {
        directives_step(d);
    }
}

static bool node_keep(struct directives *d, struct yaml_node *node)
{
    if (node == NULL) {
        no_memory(d);
        return false;
    }
    if (++d->nodes > DIRECTIVES_NODES_MAX) {
        fail(d, "too-many", "there are over 200,000 words in the file; split it");
        return false;
    }
    if (d->count == d->space) {
        size_t space = d->space == 0 ? 64 : d->space * 2;
        struct yaml_node **more = realloc(d->item, space * sizeof(struct yaml_node *));
        if (more == NULL) {
            no_memory(d);
            return false;
        }
        d->item = more;
        d->space = space;
    }
    d->item[d->count++] = node;
    return true;
}

void directives_open(struct directives *d, struct text_place place)
{
    if (d->depth == YAML_DEPTH_MAX) {
        fail(d, "too-deep", "blocks are nested over 31 levels deep; is a bracket missing above?");
    }
    if (!d->failed) {
        d->open[d->depth++] = (struct directives_open){place, d->count};
    }
}

void directives_close(struct directives *d)
{
    BECALM_ASSERT(d->depth > 1);
    const struct directives_open *open = &d->open[--d->depth];
    if (d->failed) {
        return;
    }
    uint32_t count = (uint32_t)(d->count - open->first);
    struct yaml_node *node =
        yaml_tree_sequence(d->tree, open->place.line, open->place.column, d->item + open->first, count);
    d->count = open->first;
    (void)node_keep(d, node);
}

uint32_t directives_items(const struct directives *d)
{
    return (uint32_t)(d->count - d->open[d->depth - 1].first);
}

void directives_word_byte(struct directives *d, char byte)
{
    if (d->word_length < d->length) {
        d->word[d->word_length++] = byte;
    }
}

/* Neither language asks for UTF-8, but a policy is UTF-8: any other byte becomes a question mark, before the word is
 * looked at. */
static void word_clean(struct directives *d)
{
    for (size_t i = 0; i < d->word_length;) {
        size_t length = utf8_length(d->word + i, d->word_length - i);
        if (length == 0) {
            d->word[i] = '?';
        }
        i += length == 0 ? 1 : length;
    }
}

void directives_word_end(struct directives *d, struct text_place place)
{
    word_clean(d);
    if (!d->failed) {
        (void)node_keep(d, yaml_tree_scalar(d->tree, place.line, place.column, d->word, d->word_length));
    }
    d->word_length = 0;
}

void directives_error(struct directives *d, struct text_place place, const char *code, const char *format, ...)
{
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    becalm_diag_add(d->diags, BECALM_ERROR, d->tree->name, place.line, place.column, code, "%s", message);
}
