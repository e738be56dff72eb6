/* SPDX-License-Identifier: MIT */
/* Random bytes as configuration that is no YAML: the first says in which language. */
#include "policy/import/directives.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Counts the nodes, reads every byte, and checks the promises of directives.h. */
static uint32_t walk(const struct yaml_node *node, uint32_t depth)
{
    uint32_t nodes = 1;
    BECALM_ASSERT(node->line > 0 && node->column > 0 && depth <= YAML_DEPTH_MAX);
    if (node->kind == YAML_SCALAR) {
        BECALM_ASSERT(strlen(node->text) == node->length && depth >= 2);
        return nodes;
    }
    BECALM_ASSERT(node->kind == YAML_SEQUENCE && (depth % 2 == 0 || node->count > 0));
    for (uint32_t i = 0; i < node->count; i++) {
        const struct yaml_node *item = node->item[i];
        bool directive = depth % 2 == 0; /* the root and other blocks */
        BECALM_ASSERT(directive ? item->kind == YAML_SEQUENCE : item->kind == YAML_SCALAR || i + 1 == node->count);
        nodes += walk(item, depth + 1);
    }
    return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    typedef struct yaml_tree *parse_fn(const char *, const char *, size_t, struct becalm_diags *);
    static parse_fn *const parse[] = {nginx_parse, haproxy_parse, ini_parse, properties_parse};
    static struct becalm_diags diags;
    if (size == 0) {
        return 0;
    }
    const char *text = (const char *)data + 1;
    memset(&diags, 0, sizeof diags);
    struct yaml_tree *tree = parse[data[0] % 4]("fuzz.conf", text, size - 1, &diags);
    BECALM_ASSERT(tree != NULL || diags.errors > 0);
    for (uint32_t i = 0; i < diags.count; i++) {
        BECALM_ASSERT(diags.diag[i].line > 0 && diags.diag[i].column > 0 && diags.diag[i].message[0] != '\0');
        BECALM_ASSERT(strcmp(diags.diag[i].code, "no-memory") != 0);
    }
    if (tree != NULL) {
        BECALM_ASSERT(walk(tree->root, 0) <= DIRECTIVES_NODES_MAX + 1);
    }
    (void)(nginx_is(text, size - 1) + haproxy_is(text, size - 1) + ini_is(text, size - 1) +
           properties_is(text, size - 1));
    yaml_free(tree);
    return 0;
}
