/* SPDX-License-Identifier: MIT */
/* Random bytes as HCL: a tree within its bounds, or an error with its place. */
#include "policy/import/hcl_parse.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t walk(const struct yaml_node *node, uint32_t depth)
{
    uint32_t nodes = 1;
    BECALM_ASSERT(node->line > 0 && node->column > 0 && depth <= HCL_DEPTH_MAX);
    if (node->kind == YAML_SCALAR) {
        BECALM_ASSERT(strlen(node->text) == node->length);
        return nodes;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        nodes += node->kind == YAML_MAPPING ? walk(node->key[i], depth) : 0;
        nodes += walk(node->item[i], node->item[i]->kind == YAML_SCALAR ? depth : depth + 1);
    }
    return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_diags diags;
    memset(&diags, 0, sizeof diags);
    struct yaml_tree *tree = hcl_parse("fuzz.hcl", (const char *)data, size, &diags);
    BECALM_ASSERT((tree != NULL) == (diags.errors == 0));
    for (uint32_t i = 0; i < diags.count; i++) {
        BECALM_ASSERT(diags.diag[i].line > 0 && diags.diag[i].column > 0 && diags.diag[i].message[0] != '\0');
    }
    if (tree != NULL) {
        BECALM_ASSERT(tree->root->kind == YAML_MAPPING && walk(tree->root, 0) <= HCL_NODES_MAX);
    }
    yaml_free(tree);
    return 0;
}
