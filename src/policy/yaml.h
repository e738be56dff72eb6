/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_YAML_H
#define BECALM_POLICY_YAML_H

/* YAML (and JSON, which is YAML) as a tree of texts with positions. Types come later, from the schema, so that nothing
 * is a boolean or a number by accident. Caps: depth, nodes, bytes; duplicate keys, tags, merge keys and second
 * documents are errors; aliases are copied under the node cap. */

#include <becalm/config.h>

#define YAML_DEPTH_MAX 64u
#define YAML_NODES_MAX 100000u
#define YAML_BYTES_MAX (1024u * 1024u)

/* The bounds for files of other systems, such as a dump of a whole mesh. */
#define YAML_FOREIGN_NODES_MAX 2000000u
#define YAML_FOREIGN_BYTES_MAX (16u * 1024u * 1024u)

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    uint32_t line;    /* from 1, in the outer file */
    uint32_t column;  /* from 1 */
    bool plain;       /* SCALAR: neither quoted nor a block: an empty plain scalar, ~ and null mean "nothing" */
    bool literal;     /* SCALAR: a | block */
    const char *text; /* SCALAR: zero-terminated */
    size_t length;
    const char
        *written;     /* SCALAR: with ${NAME}, as the file has it: messages show this one; NULL: nothing was put in */
    const char *file; /* a key of a service that another file brings: that one; NULL: the tree's own */
    uint32_t count;   /* SEQUENCE: items; MAPPING: pairs */
    struct yaml_node *const *key;  /* MAPPING: scalars, each once */
    struct yaml_node *const *item; /* SEQUENCE: items; MAPPING: values */
};

struct yaml_tree {
    const char *name; /* the file, as diagnostics name it */
    struct yaml_node *root;
    /* the rest is yaml.c's */
};

/* Parses one document. NULL: errors are in *diags (always at least one). After an error that leaves a tree (a duplicate
 * key, a tag, an undefined alias, a second document) the rest of it comes back, so that the schema finds further errors
 * in the same run: only diags->errors says whether the text is valid. The text need not end with a zero. */
struct yaml_tree *yaml_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags);

/* The same for a part of a foreign file that begins after `lines_above` lines of it: one of several documents. It has
 * the wider bounds. */
struct yaml_tree *yaml_parse_part(const char *name, const char *text, size_t length, uint32_t lines_above,
                                  struct becalm_diags *diags);

/* Parses the text of a scalar inside `outer` as a document of its own. The positions of a literal block are those of
 * the outer file; in a folded or quoted text everything is at the scalar's own. */
struct yaml_tree *yaml_parse_inner(const struct yaml_tree *outer, const struct yaml_node *block,
                                   struct becalm_diags *diags);

/* libyaml exports a yaml_free of its own: with two functions of that name, either might get the memory of the other. */
#define yaml_free yaml_tree_free
void yaml_tree_free(struct yaml_tree *tree);

/* For parsers of other languages, which make trees of the same kind: positions are from 1, texts and lists are copied.
 * NULL: out of memory. */
struct yaml_tree *yaml_tree_new(const char *name);
struct yaml_node *yaml_tree_scalar(struct yaml_tree *, uint32_t line, uint32_t column, const char *text, size_t length);
struct yaml_node *yaml_tree_sequence(struct yaml_tree *, uint32_t line, uint32_t column, struct yaml_node *const *items,
                                     uint32_t count);
struct yaml_node *yaml_tree_mapping(struct yaml_tree *, uint32_t line, uint32_t column, struct yaml_node *const *keys,
                                    struct yaml_node *const *items, uint32_t count);

/* The value of a key of a mapping, or NULL. */
const struct yaml_node *yaml_get(const struct yaml_node *mapping, const char *key);
const char *yaml_shown(const struct yaml_node *scalar); /* its text, for a message: nothing that stands for ${NAME} */
bool yaml_is(const struct yaml_node *scalar, const char *text);
bool yaml_is_null(const struct yaml_node *node); /* also of NULL */

#endif
