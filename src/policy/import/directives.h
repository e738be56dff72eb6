/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_DIRECTIVES_H
#define BECALM_IMPORT_DIRECTIVES_H

/* Configuration that is no YAML: nginx.conf, haproxy.cfg, INI and .properties, as trees of the same kind. A block is a
 * sequence of directives. A directive is a sequence of words; if it has a block of its own, that is its last item. The
 * root is a block. Each word knows its line and column. Bounds: 16 MiB, 200,000 nodes, 64 levels. */

#include "../yaml.h"

#define DIRECTIVES_BYTES_MAX (16u * 1024u * 1024u)
#define DIRECTIVES_NODES_MAX 200000u

/* One parser per language. NULL: errors are in *diags. After an error the tree may hold the part that could be read. */
struct yaml_tree *nginx_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags);
struct yaml_tree *haproxy_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags);

/* [section], then key = value. A section is the directive [name, block]; a key before the first section stands at the
 * top. A line that is indented below a key without a value is a nested key, as in AWS's files: [key, block]. */
struct yaml_tree *ini_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags);

/* Java's format: every directive is [key, value]. */
struct yaml_tree *properties_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags);

/* Does a text look like this language? For files whose language is not given. */
bool nginx_is(const char *text, size_t length);
bool haproxy_is(const char *text, size_t length);
bool ini_is(const char *text, size_t length);
bool properties_is(const char *text, size_t length);

/* The parts of a directive: its words, and the block behind them. A missing part is NULL, or "". */
const struct yaml_node *directive_word(const struct yaml_node *directive, uint32_t index);
const char *directive_text(const struct yaml_node *directive, uint32_t index);
uint32_t directive_words(const struct yaml_node *directive);
const struct yaml_node *directive_block(const struct yaml_node *directive);
bool directive_is(const struct yaml_node *directive, const char *name);

/* ---- for the parsers ---- */

struct text_place {
    uint32_t line;
    uint32_t column;
};

struct directives_open {
    struct text_place place;
    size_t first; /* of its items in directives.item */
};

/* A text that is being read, and the tree that is being built. After a failure every function does nothing, and
 * directives_end() returns NULL. */
struct directives {
    const char *text;
    size_t length;
    size_t at;
    struct text_place place; /* of text[at] */
    struct becalm_diags *diags;
    struct yaml_tree *tree;
    bool failed;
    struct yaml_node **item; /* of the collections that are open */
    size_t count;
    size_t space;
    uint32_t nodes;
    struct directives_open open[YAML_DEPTH_MAX];
    uint32_t depth;
    char *word; /* the word that is being read; it can't be longer than the text */
    size_t word_length;
};

/* NULL: an error is in *diags. A byte order mark is skipped. */
struct directives *directives_begin(const char *name, const char *text, size_t length, struct becalm_diags *diags);
struct yaml_tree *directives_end(struct directives *); /* frees it */

/* The byte ahead, or -1 at the end; and the next one. */
int directives_peek(const struct directives *);
int directives_peek_next(const struct directives *);
void directives_step(struct directives *);
void directives_skip_line(struct directives *);

void directives_open(struct directives *, struct text_place);
void directives_close(struct directives *);
uint32_t directives_items(const struct directives *); /* of the collection that was opened last */
void directives_word_byte(struct directives *, char);
void directives_word_end(struct directives *, struct text_place); /* adds the word, which may be empty */
void directives_error(struct directives *, struct text_place, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
