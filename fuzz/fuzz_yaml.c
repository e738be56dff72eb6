/* SPDX-License-Identifier: MIT */
/* Random bytes as a YAML file, and each of its texts as a file inside it. */
#include "policy/yaml.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Counts the nodes, reads every byte, and checks the promises of yaml.h. */
static uint32_t walk(const struct yaml_node *node, uint32_t depth, const struct yaml_node **text)
{
    uint32_t nodes = 1;
    BECALM_ASSERT(node->line > 0 && node->column > 0);
    if (node->kind == YAML_SCALAR) {
        BECALM_ASSERT(strlen(node->text) == node->length && node->count == 0);
        *text = *text == NULL || node->literal ? node : *text;
        return nodes;
    }
    BECALM_ASSERT(depth < YAML_DEPTH_MAX);
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->kind == YAML_MAPPING) {
            BECALM_ASSERT(node->key[i]->kind == YAML_SCALAR && node->key[i]->length > 0);
            BECALM_ASSERT(i > 100 || yaml_get(node, node->key[i]->text) == node->item[i]); /* so each is there once */
            nodes++;
        }
        nodes += walk(node->item[i], depth + 1, text);
    }
    return nodes;
}

static void check_diags(const struct becalm_diags *diags, bool parsed)
{
    char line[1024];
    BECALM_ASSERT(parsed || diags->errors > 0);
    for (uint32_t i = 0; i < diags->count; i++) {
        BECALM_ASSERT(diags->diag[i].line > 0 && diags->diag[i].column > 0);
        BECALM_ASSERT(becalm_diag_write(&diags->diag[i], line, sizeof line) == strlen(line));
        BECALM_ASSERT(strcmp(diags->diag[i].code, "no-memory") != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_diags diags;
    const struct yaml_node *text = NULL;
    memset(&diags, 0, sizeof diags);
    struct yaml_tree *tree = yaml_parse("fuzz.yaml", (const char *)data, size, &diags);
    check_diags(&diags, tree != NULL);
    if (tree != NULL) {
        BECALM_ASSERT(walk(tree->root, 0, &text) <= YAML_NODES_MAX);
    }
    if (text != NULL) {
        memset(&diags, 0, sizeof diags);
        struct yaml_tree *inner = yaml_parse_inner(tree, text, &diags);
        check_diags(&diags, inner != NULL);
        for (uint32_t i = 0; i < diags.count; i++) { /* never above the text that it is in */
            BECALM_ASSERT(diags.diag[i].line >= text->line);
        }
        yaml_free(inner);
    }
    yaml_free(tree);
    return 0;
}
