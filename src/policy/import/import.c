/* SPDX-License-Identifier: MIT */
#include "import.h"

#include "dialect.h"

#include <stdlib.h>
#include <string.h>

#define LIST_DEPTH    4
#define DOCUMENTS_MAX 10000u
#define DIALECTS      ((enum import_dialect)(sizeof dialects / sizeof *dialects))

static const struct {
    const char *product;
    const char *word; /* on the command line */
    void (*read)(struct source *, const struct documents *);
} dialects[] = {[IMPORT_ISTIO] = {"Istio", "istio", istio_read},
                [IMPORT_GRPC] = {"gRPC", "grpc", grpc_read},
                [IMPORT_ENVOY] = {"Envoy", "envoy", envoy_read},
                [IMPORT_GATEWAY_API] = {"the Gateway API", "gateway-api", gateway_api_read}};

struct import {
    enum import_dialect dialect;
    struct becalm_diags *diags;
    struct yaml_tree **tree;
    uint32_t count;
    uint32_t space;
};

struct import *import_new(enum import_dialect dialect, struct becalm_diags *diags)
{
    struct import *import = calloc(1, sizeof *import);
    if (import != NULL) {
        import->dialect = dialect;
        import->diags = diags;
    }
    return import;
}

void import_free(struct import *import)
{
    for (uint32_t i = 0; import != NULL && i < import->count; i++) {
        yaml_free(import->tree[i]);
    }
    if (import != NULL) {
        free(import->tree);
    }
    free(import);
}

void import_make_room(struct becalm_diags *diags)
{
    if (diags->count < BECALM_DIAGS_MAX) {
        return;
    }
    for (uint32_t i = diags->count; i-- > 0;) {
        if (diags->diag[i].severity == BECALM_WARNING) {
            diags->count--;
            memmove(&diags->diag[i], &diags->diag[i + 1], (diags->count - i) * sizeof diags->diag[0]);
            return;
        }
    }
}

static bool no_memory(struct import *import, const char *name)
{
    import_make_room(import->diags);
    becalm_diag_add(import->diags, BECALM_ERROR, name, 1, 1, "no-memory", "there is not enough memory to import this");
    return false;
}

static bool tree_keep(struct import *import, struct yaml_tree *tree)
{
    if (import->count == DOCUMENTS_MAX) {
        becalm_diag_add(import->diags, BECALM_ERROR, tree->name, 1, 1, "too-many",
                        "there are over %u documents; import them in parts", DOCUMENTS_MAX);
        yaml_free(tree);
        return false;
    }
    if (import->count == import->space) {
        uint32_t space = import->space == 0 ? 16 : import->space * 2;
        struct yaml_tree **more = realloc(import->tree, space * sizeof *more);
        if (more == NULL) {
            no_memory(import, tree->name);
            yaml_free(tree);
            return false;
        }
        import->tree = more;
        import->space = space;
    }
    import->tree[import->count++] = tree;
    return true;
}

/* ---- documents ---- */

static size_t line_length(const char *text, size_t left)
{
    const char *end = memchr(text, '\n', left);
    return end == NULL ? left : (size_t)(end - text) + 1;
}

/* "---" at the start of a line begins a document wherever it stands: no value can contain such a line. */
static bool is_marker(const char *line, size_t length)
{
    return length >= 3 && memcmp(line, "---", 3) == 0 && (length == 3 || strchr(" \t\r\n", line[3]) != NULL);
}

/* Comments, blank lines and a marker are no document. */
static bool is_blank_line(const char *line, size_t length)
{
    size_t i = is_marker(line, length) ? 3 : 0;
    while (i < length && strchr(" \t\r\n", line[i]) != NULL && line[i] != '\0') {
        i++;
    }
    return i == length || line[i] == '#';
}

bool import_add(struct import *import, const char *name, const char *text, size_t length)
{
    bool fine = true;
    bool found = false;
    size_t start = 0;
    uint32_t above = 0; /* lines before the document */
    uint32_t lines = 0;
    bool blank = true; /* so far there is nothing in the document */
    if (length > YAML_BYTES_MAX) {
        yaml_free(yaml_parse(name, text, length, import->diags)); /* which says that it is too large */
        return false;
    }
    for (size_t at = 0; at <= length;) {
        size_t line = line_length(text + at, length - at);
        if (at == length || is_marker(text + at, line)) {
            if (!blank) {
                struct yaml_tree *tree = yaml_parse_part(name, text + start, at - start, above, import->diags);
                fine = tree != NULL && tree_keep(import, tree) && fine;
                found = true;
                if (import->count == DOCUMENTS_MAX && !fine) {
                    return false;
                }
            }
            start = at;
            above = lines;
            blank = true;
        }
        blank = blank && is_blank_line(text + at, line);
        lines++;
        at += line > 0 ? line : 1;
    }
    if (!found) {
        becalm_diag_add(import->diags, BECALM_ERROR, name, 1, 1, "empty", "there is nothing in the file");
    }
    return fine && found;
}

static void list_each(struct source *s, const struct yaml_node *node, object_fn *each, void *data, unsigned depth)
{
    const struct yaml_node *kind = source_get(node, "kind");
    const char *word = kind != NULL && kind->kind == YAML_SCALAR ? kind->text : "";
    const struct from items = {source_get(node, "items"), "items", NULL};
    size_t length = strlen(word);
    bool list = length >= 4 && strcmp(word + length - 4, "List") == 0 && items.node != NULL;
    if (!list || depth == 0 || !source_is(s, &items, YAML_SEQUENCE)) {
        each(data, node, word);
        return;
    }
    for (uint32_t i = 0; i < items.node->count; i++) {
        const struct from item = {items.node->item[i], "items", NULL};
        if (source_is(s, &item, YAML_MAPPING)) {
            list_each(s, item.node, each, data, depth - 1);
        }
    }
}

void objects_each(struct source *s, const struct yaml_node *root, object_fn *each, void *data)
{
    if (source_is(s, &(struct from){root, "the document", NULL}, YAML_MAPPING)) {
        list_each(s, root, each, data, LIST_DEPTH);
    }
}

/* What a document looks like, by the words that only one of the dialects has; DIALECTS if nobody can tell. */
static enum import_dialect dialect_guess(const struct yaml_node *root)
{
    static const struct {
        enum import_dialect dialect;
        const char *kind; /* an object's kind, or */
        const char *key;  /* a key at the top */
    } signs[] = {
        {IMPORT_ISTIO, "VirtualService", NULL},
        {IMPORT_ISTIO, "DestinationRule", NULL},
        {IMPORT_GATEWAY_API, "HTTPRoute", NULL},
        {IMPORT_GATEWAY_API, "GRPCRoute", NULL},
        {IMPORT_GATEWAY_API, "XBackendTrafficPolicy", NULL},
        {IMPORT_GATEWAY_API, "BackendTrafficPolicy", NULL},
        {IMPORT_GRPC, NULL, "methodConfig"},
        {IMPORT_GRPC, NULL, "retryThrottling"},
        {IMPORT_GRPC, NULL, "retryPolicy"},
        {IMPORT_GRPC, NULL, "hedgingPolicy"},
        {IMPORT_ENVOY, NULL, "static_resources"},
        {IMPORT_ENVOY, NULL, "virtual_hosts"},
        {IMPORT_ENVOY, NULL, "retry_policy"},
        {IMPORT_ENVOY, NULL, "route_config"},
        {IMPORT_ENVOY, NULL, "circuit_breakers"},
    };
    const struct yaml_node *kind = root->kind == YAML_MAPPING ? yaml_get(root, "kind") : NULL;
    for (size_t i = 0; root->kind == YAML_MAPPING && i < sizeof signs / sizeof *signs; i++) {
        bool is =
            signs[i].kind != NULL ? kind != NULL && yaml_is(kind, signs[i].kind) : yaml_get(root, signs[i].key) != NULL;
        if (is) {
            return signs[i].dialect;
        }
    }
    return DIALECTS;
}

/* A file of another system, translated word by word, would give an empty policy and look like success. */
static void dialects_check(struct import *import)
{
    for (uint32_t i = 0; i < import->count; i++) {
        const struct yaml_tree *tree = import->tree[i];
        enum import_dialect guess = dialect_guess(tree->root);
        if (guess != DIALECTS && guess != import->dialect) {
            import_make_room(import->diags);
            becalm_diag_add(import->diags, BECALM_ERROR, tree->name, tree->root->line, tree->root->column, "dialect",
                            "this is configuration of %s, not of %s; write becalm import %s", dialects[guess].product,
                            dialects[import->dialect].product, dialects[guess].word);
        }
    }
}

char *import_finish(struct import *import)
{
    char *text = NULL;
    const char *product = dialects[import->dialect].product;
    struct emit *emit = emit_new();
    if (emit == NULL) {
        no_memory(import, "import");
        goto out;
    }
    struct source source = {.emit = emit, .diags = import->diags, .product = product};
    dialects_check(import);
    emit_note(emit, NULL, emit_text(emit, "What the configuration of %s means as a Becalm policy.", product));
    dialects[import->dialect].read(&source, &(struct documents){import->tree, import->count});
    if (import->diags->errors == 0 && emit_is_empty(emit) && import->count > 0) {
        import_make_room(import->diags);
        becalm_diag_add(import->diags, BECALM_ERROR, import->tree[0]->name, 1, 1, "nothing",
                        "there is nothing about retries of %s in it; give a whole object, or the block that holds them",
                        product);
    }
    if (import->diags->errors > 0) {
        goto out;
    }
    text = emit_print(emit);
    if (text == NULL) {
        no_memory(import, "import");
    }
out:
    emit_free(emit);
    return text;
}
