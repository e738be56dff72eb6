/* SPDX-License-Identifier: MIT */
#include "import.h"

#include "../diag.h"
#include "dialect.h"
#include "listeners.h"
#include "route.h"

#include <stdlib.h>
#include <string.h>

#define LIST_DEPTH    4
#define DOCUMENTS_MAX 10000u

/* In the order in which they are asked whether an object is theirs. */
static const struct dialect *const dialects[] = {
    &dialect_istio,   &dialect_gateway_api,   &dialect_grpc,         &dialect_envoy,   &dialect_haproxy,
    &dialect_nginx,   &dialect_ingress_nginx, &dialect_resilience4j, &dialect_linkerd, &dialect_kong,
    &dialect_traefik, &dialect_consul,        &dialect_dapr,         &dialect_aws,     &dialect_spring_gateway};

#define DIALECTS (sizeof dialects / sizeof *dialects)

struct document {
    struct yaml_tree *tree;
    const struct dialect *dialect; /* the dialect of a text that was no YAML; else NULL */
};

struct import {
    const struct dialect *dialect; /* of the command line; NULL: none is named */
    struct becalm_diags *diags;
    struct document *document;
    uint32_t count;
    uint32_t space;
    struct import_counts counts;
};

const struct import_counts *import_counts(const struct import *import)
{
    return &import->counts;
}

const char *import_word(size_t index)
{
    return index < DIALECTS ? dialects[index]->word : NULL;
}

static const struct dialect *dialect_named(const char *word)
{
    for (size_t i = 0; word != NULL && i < DIALECTS; i++) {
        if (strcmp(dialects[i]->word, word) == 0) {
            return dialects[i];
        }
    }
    return NULL;
}

bool import_knows(const char *word)
{
    return dialect_named(word) != NULL;
}

struct import *import_new(const char *word, struct becalm_diags *diags)
{
    struct import *import = calloc(1, sizeof *import);
    if (import != NULL) {
        import->dialect = dialect_named(word);
        import->diags = diags;
    }
    return import;
}

void import_free(struct import *import)
{
    for (uint32_t i = 0; import != NULL && i < import->count; i++) {
        yaml_free(import->document[i].tree);
    }
    if (import != NULL) {
        free(import->document);
    }
    free(import);
}

static bool no_memory(struct import *import, const char *name)
{
    diags_make_room(import->diags, BECALM_ERROR);
    becalm_diag_add(import->diags, BECALM_ERROR, name, 1, 1, "no-memory", "there is not enough memory to import this");
    return false;
}

static bool tree_keep(struct import *import, struct yaml_tree *tree, const struct dialect *dialect)
{
    if (import->count == DOCUMENTS_MAX) {
        becalm_diag_add(import->diags, BECALM_ERROR, tree->name, 1, 1, "too-many",
                        "there are over %u documents; import them in parts", DOCUMENTS_MAX);
        yaml_free(tree);
        return false;
    }
    if (import->count == import->space) {
        uint32_t space = import->space == 0 ? 16 : import->space * 2;
        struct document *more = realloc(import->document, space * sizeof *more);
        if (more == NULL) {
            no_memory(import, tree->name);
            yaml_free(tree);
            return false;
        }
        import->document = more;
        import->space = space;
    }
    import->document[import->count++] = (struct document){tree, dialect};
    return true;
}

/* ---- documents ---- */

static size_t line_length(const char *text, size_t left)
{
    const char *end = memchr(text, '\n', left);
    return end == NULL ? left : (size_t)(end - text) + 1;
}

/* "---" at the start of a line begins a document wherever it stands: no value can contain this line. */
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

/* Does the text begin as a mapping of YAML: `key:` at the start of its first line that is not empty or a comment? Then
 * deeper text in it, such as an nginx.conf in a ConfigMap, does not decide the language. */
static bool begins_as_yaml(const char *text, size_t length)
{
    size_t at = 0;
    size_t line = line_length(text, length);
    while (at < length && is_blank_line(text + at, line)) {
        at += line;
        line = line_length(text + at, length - at);
    }
    size_t key = 0;
    while (key < line && strchr(" \t\r\n{}=;:", text[at + key]) == NULL) {
        key++;
    }
    return key > 0 && key + 1 < line && text[at + key] == ':' && strchr(" \t\r\n", text[at + key + 1]) != NULL;
}

/* The dialect of a text that is no YAML; NULL: it is. */
static const struct dialect *text_dialect(const struct import *import, const char *text, size_t length)
{
    const struct dialect *named = import->dialect;
    if (named != NULL && named->parse != NULL && (!named->yaml || named->is_text(text, length))) {
        return named;
    }
    bool yaml = begins_as_yaml(text, length);
    for (size_t i = 0; import->dialect == NULL && i < DIALECTS; i++) {
        if (dialects[i]->is_text != NULL && (!yaml || dialects[i]->yaml) && dialects[i]->is_text(text, length)) {
            return dialects[i];
        }
    }
    return NULL;
}

/* A template of Helm, Jinja and their like is no YAML before it is rendered. */
static bool is_template(const char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] == '{' && (text[i + 1] == '{' || text[i + 1] == '%')) {
            return true;
        }
    }
    return false;
}

/* Does the text have nothing but `null`, `~`, `...`, comments? */
static bool is_nothing(const struct becalm_diags *diags, uint32_t errors)
{
    return diags->errors == errors + 1 && diags->count > 0 && strcmp(diags->diag[diags->count - 1].code, "empty") == 0;
}

/* One document, from `text` on. False: an error was added. */
static bool document_add(struct import *import, const char *name, struct becalm_text text, uint32_t above)
{
    struct becalm_diags *diags = import->diags;
    const uint32_t errors = diags->errors;
    const uint32_t count = diags->count;
    struct yaml_tree *tree = yaml_parse_part(name, text.at, text.length, above, diags);
    if (tree != NULL && diags->errors == errors) {
        return tree_keep(import, tree, NULL);
    }
    if (tree == NULL && is_nothing(diags, errors)) {
        diags->count = count;
        diags->errors = errors;
        return true;
    }
    if (is_template(text.at, text.length)) {
        diags->count = count;
        diags->errors = errors;
        becalm_diag_add(diags, BECALM_ERROR, name, above + 1, 1, "template",
                        "this is a template; render it first: helm template . | becalm import -");
        yaml_free(tree);
        return false;
    }
    if (tree != NULL) {
        (void)tree_keep(import, tree, NULL); /* other objects in it are reported and translated as well */
    }
    return false;
}

/* Directives (%YAML 1.2) stand before a document and are no part of its contents. */
static bool is_directive(const char *line, size_t length)
{
    return length > 0 && line[0] == '%';
}

static bool documents_add(struct import *import, const char *name, const char *text, size_t length)
{
    bool fine = true;
    size_t start = 0;
    uint32_t above = 0; /* lines before the document */
    uint32_t lines = 0;
    bool blank = true; /* so far there is nothing in the document */
    for (size_t at = 0; at <= length;) {
        size_t line = line_length(text + at, length - at);
        if (at == length || is_marker(text + at, line)) {
            if (!blank) {
                fine = document_add(import, name, (struct becalm_text){text + start, at - start}, above) && fine;
                if (import->count == DOCUMENTS_MAX && !fine) {
                    return false;
                }
            }
            start = at;
            above = lines;
            blank = true;
        }
        blank = blank && (is_blank_line(text + at, line) || is_directive(text + at, line));
        lines++;
        at += line > 0 ? line : 1;
        if (blank && is_directive(text + at - line, line)) {
            start = at;
            above = lines;
        }
    }
    return fine;
}

bool import_add(struct import *import, const char *name, const char *text, size_t length)
{
    static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark */
    const uint32_t count = import->count;
    if (length >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        length -= 3;
    }
    const struct dialect *own = text_dialect(import, text, length);
    if (own != NULL) {
        struct yaml_tree *tree = own->parse(name, text, length, import->diags);
        return tree != NULL && tree_keep(import, tree, own);
    }
    if (length > IMPORT_BYTES_MAX) {
        becalm_diag_add(import->diags, BECALM_ERROR, name, 1, 1, "too-large",
                        "the file is larger than %u MiB; import it in parts", IMPORT_BYTES_MAX >> 20);
        return false;
    }
    bool fine = documents_add(import, name, text, length);
    if (fine && import->count == count) {
        becalm_diag_add(import->diags, BECALM_ERROR, name, 1, 1, "empty", "there is nothing in the file");
        return false;
    }
    return fine;
}

/* ---- objects and their dialects ---- */

/* All objects of the documents; the arrays grow together. */
struct pile {
    struct object *object;
    const struct dialect **dialect; /* the dialect of each object; NULL: none */
    uint32_t count;
    uint32_t space;
};

static const char *scalar_of(const struct yaml_node *mapping, const char *key)
{
    const struct yaml_node *node = source_get(mapping, key);
    return node != NULL && node->kind == YAML_SCALAR ? node->text : "";
}

static const char *group_of(struct source *s, const struct yaml_node *object)
{
    const char *version = scalar_of(object, "apiVersion");
    const char *slash = strchr(version, '/');
    return slash == NULL ? "" : emit_text(s->emit, "%.*s", (int)(slash - version), version);
}

static const struct dialect *dialect_of(const struct import *import, const struct object *object)
{
    if (import->dialect != NULL && import->dialect->recognises(object)) {
        return import->dialect;
    }
    for (size_t i = 0; i < DIALECTS; i++) {
        if (dialects[i]->recognises(object)) {
            return dialects[i];
        }
    }
    return object->kind[0] == '\0' ? import->dialect : NULL;
}

static void pile_push(struct source *s, struct pile *pile, const struct object *object, const struct dialect *dialect)
{
    if (pile->count == pile->space) { /* the arena keeps the old ones as well: twice the memory at most */
        uint32_t space = pile->space == 0 ? 64 : pile->space * 2;
        struct object *objects = emit_take(s->emit, space * sizeof *objects);
        const struct dialect **owners = emit_take(s->emit, space * sizeof *owners);
        if (objects == NULL || owners == NULL) {
            return;
        }
        if (pile->count > 0) {
            memcpy(objects, pile->object, pile->count * sizeof *objects);
            memcpy(owners, pile->dialect, pile->count * sizeof *owners);
        }
        *pile = (struct pile){objects, owners, pile->count, space};
    }
    pile->object[pile->count] = *object;
    pile->dialect[pile->count++] = dialect;
}

/* `dialect` is NULL if it must be found. */
static void pile_add(struct import *import, struct source *s, struct pile *pile, const struct yaml_node *node,
                     const struct dialect *dialect)
{
    const struct object object = {s->file, node, scalar_of(node, "kind"), group_of(s, node)};
    const struct dialect *owner = dialect != NULL ? dialect : dialect_of(import, &object);
    pile_push(s, pile, &object, owner);
    for (size_t i = 0; i < DIALECTS; i++) {
        if (dialects[i]->beside && dialects[i] != owner && dialects[i]->recognises(&object)) {
            pile_push(s, pile, &object, dialects[i]);
        }
    }
}

static bool is_list_of_objects(const struct yaml_node *node)
{
    uint32_t i = 0;
    while (node->kind == YAML_SEQUENCE && i < node->count && node->item[i]->kind == YAML_MAPPING) {
        i++;
    }
    return node->kind == YAML_SEQUENCE && node->count > 0 && i == node->count;
}

static void node_pile(struct import *import, struct source *s, struct pile *pile, const struct yaml_node *node,
                      unsigned depth)
{
    const char *kind = scalar_of(node, "kind");
    const struct from items = {source_get(node, "items"), "items", NULL};
    size_t length = strlen(kind);
    bool list = length >= 4 && strcmp(kind + length - 4, "List") == 0 && items.node != NULL;
    if (is_list_of_objects(node) && depth > 0) { /* as istioctl proxy-config prints it */
        for (uint32_t i = 0; i < node->count; i++) {
            node_pile(import, s, pile, node->item[i], depth - 1);
        }
        return;
    }
    if (!list || depth == 0 || !source_is(s, &items, YAML_SEQUENCE)) {
        pile_add(import, s, pile, node, NULL);
        return;
    }
    for (uint32_t i = 0; i < items.node->count; i++) {
        const struct from item = {items.node->item[i], "items", NULL};
        if (source_is(s, &item, YAML_MAPPING)) {
            node_pile(import, s, pile, item.node, depth - 1);
        }
    }
}

/* Objects that no dialect recognises: another kind of Kubernetes object, or something unknown. Each kind is reported
 * once. */
static void nobodys_tell(struct source *s, const struct pile *pile)
{
    struct source_list kinds = {.emit = s->emit};
    for (uint32_t i = 0; i < pile->count; i++) {
        const struct object *object = &pile->object[i];
        uint32_t times = 0;
        if (pile->dialect[i] != NULL || (object->kind[0] != '\0' && source_list_has(&kinds, object->kind))) {
            continue;
        }
        for (uint32_t k = i; object->kind[0] != '\0' && k < pile->count; k++) {
            times += pile->dialect[k] == NULL && strcmp(pile->object[k].kind, object->kind) == 0;
        }
        source_list_add(&kinds, object->kind);
        const char *path = object->kind[0] == '\0' ? "the document" : emit_text(s->emit, "kind \"%s\"", object->kind);
        const char *often = times > 1 ? emit_text(s->emit, " (%u times)", (unsigned)times) : "";
        s->file = object->file;
        source_aside(s, NULL, &(struct from){object->node, path, NULL},
                     emit_text(s->emit, "it is in no dialect that Becalm knows%s", often));
    }
}

/* ---- annotations ---- */

/* Does a dialect read the annotations of this domain at this object? */
static bool annotation_is_read(const struct object *object, const char *key)
{
    bool route = strcmp(object->kind, "HTTPRoute") == 0 || strcmp(object->kind, "GRPCRoute") == 0;
    if (strncmp(key, "retry.linkerd.io/", 17) == 0 || strncmp(key, "timeout.linkerd.io/", 19) == 0) {
        return route || strcmp(object->kind, "Service") == 0;
    }
    return strncmp(key, "nginx.ingress.kubernetes.io/", 28) == 0 && strcmp(object->kind, "Ingress") == 0;
}

/* Annotations of gateways set rules for calls, each in its own words. Annotations that no dialect reads are reported:
 * as a warning if their name is about retries or timeouts. */
static void annotations_tell(struct source *s, const struct object *object)
{
    static const char *const domains[] = {"gateway.envoyproxy.io/",
                                          "konghq.com/",
                                          "projectcontour.io/",
                                          "traefik.ingress.kubernetes.io/",
                                          "haproxy.org/",
                                          "haproxy-ingress.github.io/",
                                          "nginx.org/",
                                          "alb.ingress.kubernetes.io/",
                                          "balancer.linkerd.io/",
                                          "getambassador.io/"};
    static const char *const words[] = {"retr", "timeout", "circuit", "next-upstream", "max-fails", "fail-timeout"};
    const struct yaml_node *all = source_get(source_get(object->node, "metadata"), "annotations");
    for (uint32_t i = 0; all != NULL && all->kind == YAML_MAPPING && i < all->count; i++) {
        const char *key = all->key[i]->text;
        const char *slash = strchr(key, '/');
        bool calls = false;
        bool known = false;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            calls = calls || strstr(slash == NULL ? key : slash, words[k]) != NULL;
        }
        for (size_t k = 0; k < sizeof domains / sizeof *domains; k++) {
            known = known || strncmp(key, domains[k], strlen(domains[k])) == 0;
        }
        calls = calls || strncmp(key, "retry.linkerd.io/", 17) == 0;
        if ((!calls && !known) || annotation_is_read(object, key)) {
            continue;
        }
        const struct from from = {all->key[i], emit_text(s->emit, "annotation %s", key), NULL};
        s->file = object->file;
        if (calls) {
            source_no_equal(s, NULL, &from, "it is not read here");
        } else {
            source_aside(s, NULL, &from, "it is not read here");
        }
    }
}

/* Gives each dialect the objects that are its own. */
static void pile_read(struct source *s, const struct pile *pile)
{
    for (size_t i = 0; i < DIALECTS; i++) {
        struct object *own = pile->count == 0 ? NULL : emit_take(s->emit, pile->count * sizeof *own);
        struct objects objects = {own, 0};
        for (uint32_t k = 0; own != NULL && k < pile->count; k++) {
            if (pile->dialect[k] == dialects[i]) {
                own[objects.count++] = pile->object[k];
            }
        }
        if (objects.count > 0) {
            s->dialect = dialects[i];
            s->product = dialects[i]->product;
            emit_note(s->emit, NULL,
                      emit_text(s->emit, "The configuration of %s, translated into a Becalm policy.", s->product));
            dialects[i]->read(s, &objects);
        }
    }
}

static void nothing_found(struct import *import)
{
    const char *product = import->dialect == NULL ? NULL : import->dialect->product;
    diags_make_room(import->diags, BECALM_ERROR);
    becalm_diag_add(import->diags, BECALM_ERROR, import->document[0].tree->name, 1, 1, "nothing",
                    "there is nothing about retries%s%s in it; give a whole object, or the block that holds them%s",
                    product == NULL ? "" : " of ", product == NULL ? "" : product,
                    product == NULL ? " with its dialect: becalm import istio FILE" : "");
}

char *import_finish(struct import *import)
{
    char *text = NULL;
    struct emit *emit = emit_new();
    struct pile pile = {0};
    if (emit == NULL) {
        no_memory(import, "import");
        goto out;
    }
    struct source source = {.emit = emit, .diags = import->diags, .product = "any dialect"};
    for (uint32_t i = 0; i < import->count; i++) {
        const struct document *document = &import->document[i];
        source.file = document->tree->name;
        if (document->dialect != NULL) {
            pile_add(import, &source, &pile, document->tree->root, document->dialect);
        } else {
            node_pile(import, &source, &pile, document->tree->root, LIST_DEPTH);
        }
    }
    pile_read(&source, &pile);
    nobodys_tell(&source, &pile);
    for (uint32_t i = 0; i < pile.count; i++) {
        if (pile.object[i].kind[0] != '\0') {
            annotations_tell(&source, &pile.object[i]);
        }
    }
    listeners_write(&source);
    bool written = routes_write(&source, &import->counts.routes);
    import->counts.left_out = source.left_out;
    import->counts.changed = source.changed;
    for (const struct emit_target *each = emit_next(emit, NULL); each != NULL; each = emit_next(emit, each)) {
        import->counts.services++;
    }
    if (!written) {
        goto out;
    }
    if (emit_is_empty(emit)) {
        if (import->diags->errors == 0 && import->count > 0) {
            nothing_found(import);
        }
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
