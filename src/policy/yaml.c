/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700 /* tsearch */
#include "yaml.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "yaml_internal.h"

struct place {
    uint32_t line;
    uint32_t column;
};

/* The place of the parsed text in the outer file. */
struct origin {
    uint32_t line;   /* lines above it */
    uint32_t column; /* columns to its left */
    bool fixed;      /* all places are `whole`: the positions inside a folded or quoted text are unknown */
    struct place whole;
};

/* A line of the text: libyaml's marks count characters, this code reads bytes. */
struct line {
    uint32_t character;
    uint32_t byte;
};

/* A collection that is being read. Its children lie in parse.child from `first` on; keys and values alternate. */
struct frame {
    struct node *node;
    size_t first;
    bool flow;        /* {...} or [...] */
    struct node *key; /* MAPPING: the key whose value comes next */
    bool drop;        /* MAPPING: that key was refused, and its value is dropped, too */
    bool named;       /* MAPPING: it has so many keys that they are in parse.names */
};

#define KEYS_COMPARED 16u /* keys of one mapping that are compared one by one */

/* Keys of mappings with many of them, by mapping, and anchors, with no mapping. */
struct name {
    const struct node *mapping;
    const char *text;
    size_t length;
    struct node *node;
};

enum progress { GO_ON, ENOUGH, FAILED };

struct parse {
    struct tree *tree;
    struct becalm_diags *diags;
    const char *text;
    size_t length;
    struct origin origin;
    struct line *lines;
    uint32_t line_count;
    yaml_parser_t yaml;
    struct frame frame[YAML_DEPTH_MAX];
    uint32_t depth;
    struct node **child;
    size_t child_count;
    size_t child_space;
    uint32_t nodes;
    uint32_t nodes_max;
    uint32_t documents;
    void *names; /* a tsearch tree of struct name: balanced, so that hostile keys cost no more than others */
};

/* ---- positions and diagnostics ---- */

/* Converts a place of the text to a place in the outer file. */
static struct place place_outer(const struct parse *p, uint32_t line, uint32_t column)
{
    if (p->origin.fixed) {
        return p->origin.whole;
    }
    return (struct place){p->origin.line + line, p->origin.column + column};
}

/* The line, from 0, that has the given character of the text. */
static uint32_t line_of(const struct parse *p, size_t character)
{
    uint32_t low = 0;
    uint32_t high = p->line_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (p->lines[middle].character <= character) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* libyaml also counts U+2028 as the end of a line, which no editor does: only its index is used. */
static struct place place_of(const struct parse *p, const yaml_mark_t *mark)
{
    uint32_t line = line_of(p, mark->index);
    return place_outer(p, line + 1, (uint32_t)mark->index - p->lines[line].character + 1);
}

#define REPORT(p, place, code, ...) \
    becalm_diag_add((p)->diags, BECALM_ERROR, (p)->tree->yaml.name, (place).line, (place).column, code, __VA_ARGS__)

static enum progress out_of_memory(struct parse *p)
{
    REPORT(p, p->origin.whole, "no-memory", "there is not enough memory to read the file");
    return FAILED;
}

/* ---- the text, before libyaml sees it: its own errors about bytes have no line ---- */

/* Reads one character of UTF-8, strictly. Returns its length, or 0. */
static size_t character_read(const unsigned char *at, size_t left, uint32_t *character)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf8 ? 4 : 0;
    if (length == 0 || length > left) {
        return 0;
    }
    *character = length == 1 ? at[0] : at[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        *character = *character << 6 | (at[i] & 0x3fu);
    }
    bool surrogate = *character >= 0xd800 && *character <= 0xdfff;
    return *character < smallest[length] || *character > 0x10ffff || surrogate ? 0 : length;
}

/* The characters that YAML allows, except U+0085, which ends a line only in YAML 1.1. */
static bool character_allowed(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0x7e) ||
           (c >= 0xa0 && c <= 0xfffd && c != 0xfeff) || c >= 0x10000;
}

/* Reports an invalid character, or byte, at the given place. */
static enum progress character_refuse(struct parse *p, struct place place, size_t length, uint32_t character,
                                      unsigned char byte)
{
    if (length == 0) {
        REPORT(p, place, "yaml-syntax", "the byte 0x%02X is no UTF-8; save the file as UTF-8", byte);
    } else if (character == 0xfeff) {
        REPORT(p, place, "yaml-syntax", "there is a byte order mark; save the file as UTF-8 without one");
    } else if (character == 0) {
        REPORT(p, place, "yaml-syntax", "there is a zero byte; is this a text file in UTF-8?");
    } else {
        REPORT(p, place, "yaml-syntax", "the control character U+%04X can't stand here; remove it",
               (unsigned)character);
    }
    return FAILED;
}

static size_t count_line_ends(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        count += text[i] == '\n' || text[i] == '\r';
    }
    return count;
}

/* Checks every character and notes where the lines begin. */
static enum progress text_scan(struct parse *p)
{
    const unsigned char *text = (const unsigned char *)p->text;
    p->lines = malloc((count_line_ends(p->text, p->length) + 1) * sizeof *p->lines);
    if (p->lines == NULL) {
        return out_of_memory(p);
    }
    p->lines[p->line_count++] = (struct line){0, 0};
    uint32_t count = 0;
    for (size_t i = 0; i < p->length;) {
        uint32_t character = 0;
        size_t length = character_read(text + i, p->length - i, &character);
        if (length == 0 || !character_allowed(character)) {
            uint32_t first = p->lines[p->line_count - 1].character;
            return character_refuse(p, place_outer(p, p->line_count, count - first + 1), length, character, text[i]);
        }
        i += length;
        count++;
        bool crlf = character == '\r' && i < p->length && text[i] == '\n';
        if (character == '\n' || (character == '\r' && !crlf)) {
            p->lines[p->line_count++] = (struct line){count, (uint32_t)i};
        }
    }
    return GO_ON;
}

/* The byte of the text at a mark; 0 at its end. */
static char byte_at(const struct parse *p, const yaml_mark_t *mark)
{
    const struct line *line = &p->lines[line_of(p, mark->index)];
    size_t byte = line->byte;
    for (size_t skip = mark->index - line->character; skip > 0 && byte < p->length; skip--) {
        do {
            byte++;
        } while (byte < p->length && ((unsigned char)p->text[byte] & 0xc0) == 0x80);
    }
    return byte < p->length ? p->text[byte] : 0;
}

/* ---- syntax errors ---- */

/* The messages of libyaml, and a better message with a correction for each. */
static const char *const clearer[][2] = {
    {"mapping values are not allowed in this context",
     "a \":\" can't stand here; indent the line like its neighbours, or put the text in quotes"},
    {"did not find expected key", "a key must begin here; check the indentation and the quotes"},
    {"block sequence entries are not allowed in this context",
     "a \"-\" can't stand here; begin the list on a line of its own"},
    {"did not find expected '-' indicator", "a \"-\" must stand here; indent the items of a list alike"},
    {"did not find expected ',' or ']'", "the list is not closed; a \",\" or a \"]\" must stand here"},
    {"did not find expected ',' or '}'", "the mapping is not closed; a \",\" or a \"}\" must stand here"},
    {"did not find expected node content", "a value is missing here; write one"},
    {"did not find expected <document start>", "the document is complete above; check the indentation and the quotes"},
    {"did not find expected comment or line break", "this can't stand here; only a comment may follow on this line"},
    {"found unknown escape character", "there is no such escape; use single quotes, or \"\\\\\" for a backslash"},
    {"did not find expected hexdecimal number", "the escape is cut short; it needs hexadecimal digits"},
    {"found invalid Unicode character escape code", "the escape is no character; write the character itself"},
    {"found undefined tag handle", "tags are not used here; remove the \"!\" and its word"},
    {"found unknown directive name", "there is no such directive; a line can't begin with \"%\""},
    {"found incompatible YAML document", "this version of YAML is not known; remove the %YAML line"},
};

/* Contexts of libyaml whose beginning is the better place for the error, with the message. */
static const char *const elsewhere[][3] = {
    {"while scanning a simple key", "could not find expected ':'",
     "there is no \": \" behind this key; write \"key: value\""},
    {"while scanning a quoted scalar", "found unexpected end of stream",
     "the quote that opens here is never closed; close it"},
    {"while scanning a quoted scalar", "found unexpected document indicator",
     "the quote that opens here is never closed; close it"},
    {"while scanning an alias", "did not find expected alphabetic or numeric character",
     "a text can't start with \"*\"; put it in quotes"},
    {"while scanning an anchor", "did not find expected alphabetic or numeric character",
     "a text can't start with \"&\"; put it in quotes"},
};

/* " (in the list that begins at line 3)", if that is another line. */
static void since_write(const struct parse *p, uint32_t line, char *text, size_t size)
{
    const struct frame *frame = p->depth == 0 ? NULL : &p->frame[p->depth - 1];
    text[0] = 0;
    if (frame != NULL && frame->node->yaml.line < line) {
        bool mapping = frame->node->yaml.kind == YAML_MAPPING;
        const char *what = mapping ? (frame->flow ? "{...}" : "mapping") : (frame->flow ? "[...]" : "list");
        (void)snprintf(text, size, " (in the %s that begins at line %u)", what, (unsigned)frame->node->yaml.line);
    }
}

/* Reports an error whose cause is before the place where libyaml noticed it. True if it was reported. */
static bool syntax_error_elsewhere(struct parse *p, const char *problem)
{
    for (size_t i = 0; p->yaml.context != NULL && i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (strcmp(p->yaml.context, elsewhere[i][0]) == 0 && strcmp(problem, elsewhere[i][1]) == 0) {
            REPORT(p, place_of(p, &p->yaml.context_mark), "yaml-syntax", "%s", elsewhere[i][2]);
            return true;
        }
    }
    return false;
}

static enum progress syntax_error(struct parse *p)
{
    if (p->yaml.error == YAML_MEMORY_ERROR) {
        return out_of_memory(p);
    }
    const char *problem = p->yaml.problem == NULL ? "this is no YAML" : p->yaml.problem;
    struct place place = place_of(p, &p->yaml.problem_mark);
    char byte = byte_at(p, &p->yaml.problem_mark);
    if (byte == '\t') {
        REPORT(p, place, "yaml-syntax", "a tab can't indent a line; use spaces");
        return FAILED;
    }
    if (strcmp(problem, "found character that cannot start any token") == 0) {
        REPORT(p, place, "yaml-syntax", "a text can't start with \"%c\"; put it in quotes", byte);
        return FAILED;
    }
    if (syntax_error_elsewhere(p, problem)) {
        return FAILED;
    }
    for (size_t i = 0; i < sizeof clearer / sizeof *clearer; i++) {
        if (strcmp(problem, clearer[i][0]) == 0) {
            problem = clearer[i][1];
        }
    }
    char since[96];
    since_write(p, place.line, since, sizeof since);
    REPORT(p, place, "yaml-syntax", "%s%s", problem, since);
    return FAILED;
}

/* ---- names ---- */

static int name_compare(const void *a, const void *b)
{
    const struct name *one = a;
    const struct name *other = b;
    if (one->mapping != other->mapping) {
        return (uintptr_t)one->mapping < (uintptr_t)other->mapping ? -1 : 1;
    }
    if (one->length != other->length) {
        return one->length < other->length ? -1 : 1;
    }
    return memcmp(one->text, other->text, one->length);
}

static struct name *name_find(const struct parse *p, const struct name *wanted)
{
    struct name *const *found = tfind(wanted, &p->names, name_compare);
    return found == NULL ? NULL : *found;
}

static bool name_add(struct parse *p, struct name name)
{
    struct name *kept = yaml__take(p->tree, sizeof *kept);
    if (kept == NULL) {
        return false;
    }
    *kept = name;
    return tsearch(kept, &p->names, name_compare) != NULL;
}

static void names_free(struct parse *p)
{
    while (p->names != NULL) {
        (void)tdelete(*(struct name **)p->names, &p->names, name_compare);
    }
}

/* ---- nodes ---- */

/* Counts `size` more nodes that begin at `place`. */
static enum progress nodes_count(struct parse *p, struct place place, uint32_t size)
{
    if (size > p->nodes_max - p->nodes) {
        REPORT(p, place, "too-many", "the file has over %u values, counting each use of an alias; make it smaller",
               p->nodes_max);
        return FAILED;
    }
    p->nodes += size;
    return GO_ON;
}

/* A new node; NULL: no memory or too many, which is reported. */
static struct node *node_new(struct parse *p, enum yaml_kind kind, struct place place)
{
    if (nodes_count(p, place, 1) != GO_ON) {
        return NULL;
    }
    struct node *node = yaml__take(p->tree, sizeof *node);
    if (node == NULL) {
        (void)out_of_memory(p);
        return NULL;
    }
    node->yaml = (struct yaml_node){.kind = kind, .line = place.line, .column = place.column, .text = ""};
    node->size = 1;
    return node;
}

static enum progress anchor_set(struct parse *p, const yaml_char_t *anchor, struct node *node)
{
    if (anchor == NULL) {
        return GO_ON;
    }
    const char *text = (const char *)anchor;
    struct name name = {.text = text, .length = strlen(text), .node = node};
    struct name *known = name_find(p, &name);
    if (known != NULL) {
        known->node = node; /* in YAML a later anchor replaces an earlier one of the same name */
        return GO_ON;
    }
    name.text = yaml__text(p->tree, text, name.length);
    return name.text != NULL && name_add(p, name) ? GO_ON : out_of_memory(p);
}

/* Tags would give a text another type than the schema; only tags without an effect are allowed. */
static void tag_check(struct parse *p, const yaml_char_t *tag, const char *harmless, struct place place)
{
    const char *text = (const char *)tag;
    if (tag != NULL && strcmp(text, harmless) != 0) {
        const char *core = "tag:yaml.org,2002:";
        bool short_form = strncmp(text, core, strlen(core)) == 0;
        REPORT(p, place, "tag", "the tag %s%s is not used here; remove it", short_form ? "!!" : "",
               short_form ? text + strlen(core) : text);
    }
}

static enum progress child_push(struct parse *p, struct node *node)
{
    if (p->child_count == p->child_space) {
        size_t space = p->child_space == 0 ? 256 : p->child_space * 2;
        struct node **child = realloc(p->child, space * sizeof(struct node *));
        if (child == NULL) {
            return out_of_memory(p);
        }
        p->child = child;
        p->child_space = space;
    }
    p->child[p->child_count++] = node;
    return GO_ON;
}

static struct name key_name(const struct frame *frame, struct node *key)
{
    return (struct name){.mapping = frame->node, .text = key->yaml.text, .length = key->yaml.length, .node = key};
}

/* Adds the keys of a mapping to the tree of names, once there are too many to compare each with each. */
static bool keys_name(struct parse *p, struct frame *frame)
{
    if (frame->named || p->child_count - frame->first < 2 * KEYS_COMPARED) {
        return true;
    }
    frame->named = true;
    for (size_t i = frame->first; i < p->child_count; i += 2) {
        if (!name_add(p, key_name(frame, p->child[i]))) {
            return false;
        }
    }
    return true;
}

/* The same key of the mapping, or NULL. */
static const struct node *key_find(const struct parse *p, const struct frame *frame, struct node *key)
{
    if (frame->named) {
        const struct name wanted = key_name(frame, key);
        const struct name *found = name_find(p, &wanted);
        return found == NULL ? NULL : found->node;
    }
    for (size_t i = frame->first; i < p->child_count; i += 2) {
        const struct yaml_node *other = &p->child[i]->yaml;
        if (other->length == key->yaml.length && memcmp(other->text, key->yaml.text, other->length) == 0) {
            return p->child[i];
        }
    }
    return NULL;
}

/* Checks a key. A refused key is dropped with its value, and the parse continues to find more errors. */
static enum progress key_take(struct parse *p, struct frame *frame, struct node *key)
{
    struct place place = {key->yaml.line, key->yaml.column};
    frame->key = key;
    frame->drop = true;
    if (key->yaml.kind != YAML_SCALAR) {
        REPORT(p, place, "key-type", "a %s can't be a key; write a name",
               key->yaml.kind == YAML_SEQUENCE ? "list" : "mapping");
        return GO_ON;
    }
    if (key->yaml.length == 0) {
        REPORT(p, place, "key-type", "the key is empty; write a name before the \":\"");
        return GO_ON;
    }
    if (key->yaml.plain && strcmp(key->yaml.text, "<<") == 0) {
        REPORT(p, place, "merge-key", "merge keys (<<) are not used here; write the keys out, or use `defaults:`");
        return GO_ON;
    }
    if (!keys_name(p, frame)) {
        return out_of_memory(p);
    }
    const struct node *first = key_find(p, frame, key);
    if (first != NULL) {
        REPORT(p, place, "duplicate-key", "the key \"%s\" is here twice; the first is at line %u, keep one of them",
               key->yaml.text, (unsigned)first->yaml.line);
        return GO_ON;
    }
    frame->drop = false;
    return !frame->named || name_add(p, key_name(frame, key)) ? GO_ON : out_of_memory(p);
}

/* Adds a complete node to its parent, as an item, a key or a value, or makes it the root. */
static enum progress node_done(struct parse *p, struct node *node)
{
    if (p->depth == 0) {
        p->tree->yaml.root = &node->yaml;
        return GO_ON;
    }
    struct frame *frame = &p->frame[p->depth - 1];
    struct node *parent = frame->node;
    parent->size += node->size;
    if (parent->height < node->height + 1) {
        parent->height = node->height + 1;
    }
    if (parent->yaml.kind == YAML_SEQUENCE) {
        return child_push(p, node);
    }
    if (frame->key == NULL) {
        return key_take(p, frame, node);
    }
    struct node *key = frame->key;
    frame->key = NULL;
    if (frame->drop) {
        return GO_ON;
    }
    return child_push(p, key) == GO_ON ? child_push(p, node) : FAILED;
}

/* The indentation of a block's text. The first line that is not blank has it, and perhaps more spaces. */
static uint32_t block_indent(const struct parse *p, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    uint32_t blank = 0;
    while (text[blank] == '\n') {
        blank++;
    }
    uint32_t line = line_of(p, event->start_mark.index) + 1 + blank;
    if (line >= p->line_count) {
        return p->origin.column;
    }
    uint32_t spaces = 0;
    for (size_t i = p->lines[line].byte; i < p->length && p->text[i] == ' '; i++) {
        spaces++;
    }
    uint32_t own = 0;
    while (text[blank + own] == ' ') {
        own++;
    }
    return p->origin.column + (spaces > own ? spaces - own : 0);
}

/* ---- events ---- */

static enum progress on_scalar(struct parse *p, const yaml_event_t *event)
{
    struct place place = place_of(p, &event->start_mark);
    struct node *node = node_new(p, YAML_SCALAR, place);
    if (node == NULL) {
        return FAILED;
    }
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    tag_check(p, event->data.scalar.tag, YAML_STR_TAG, place);
    if (memchr(text, 0, length) != NULL) {
        REPORT(p, place, "yaml-syntax", "there is a \"\\0\" in the text; a value can't hold one");
        length = strlen(text);
    }
    node->yaml.plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->yaml.literal = event->data.scalar.style == YAML_LITERAL_SCALAR_STYLE;
    node->yaml.length = length;
    node->yaml.text = yaml__text(p->tree, text, length);
    if (node->yaml.text == NULL) {
        return out_of_memory(p);
    }
    if (node->yaml.literal) {
        node->indent = block_indent(p, event);
    }
    return anchor_set(p, event->data.scalar.anchor, node) == GO_ON ? node_done(p, node) : FAILED;
}

static enum progress too_deep(struct parse *p, struct place place)
{
    REPORT(p, place, "too-deep", "values are nested more than %u levels deep; make the nesting flatter",
           YAML_DEPTH_MAX);
    return FAILED;
}

static enum progress on_collection(struct parse *p, const yaml_event_t *event, enum yaml_kind kind,
                                   const yaml_char_t *anchor, bool flow)
{
    struct place place = place_of(p, &event->start_mark);
    if (p->depth == YAML_DEPTH_MAX) {
        return too_deep(p, place);
    }
    struct node *node = node_new(p, kind, place);
    if (node == NULL || anchor_set(p, anchor, node) != GO_ON) {
        return FAILED;
    }
    node->open = true;
    node->height = 1;
    p->frame[p->depth++] = (struct frame){.node = node, .first = p->child_count, .flow = flow};
    return GO_ON;
}

static enum progress on_collection_end(struct parse *p)
{
    struct frame *frame = &p->frame[--p->depth];
    struct node *node = frame->node;
    size_t children = p->child_count - frame->first;
    bool mapping = node->yaml.kind == YAML_MAPPING;
    size_t count = mapping ? children / 2 : children;
    p->child_count = frame->first;
    node->open = false;
    node->yaml.count = (uint32_t)count;
    if (children > 0) {
        struct yaml_node **list = yaml__take(p->tree, children * sizeof(struct yaml_node *));
        if (list == NULL) {
            return out_of_memory(p);
        }
        for (size_t i = 0; i < children; i++) { /* keys first, then all values */
            list[mapping ? i / 2 + i % 2 * count : i] = &p->child[frame->first + i]->yaml;
        }
        node->yaml.key = mapping ? list : NULL;
        node->yaml.item = mapping ? list + count : list;
    }
    return node_done(p, node);
}

/* A copy of a node and all nodes below it, which are counted already; NULL: no memory. The recursion is bounded by
 * YAML_DEPTH_MAX. */
static struct node *node_copy(struct tree *tree, const struct node *from)
{
    struct node *copy = yaml__take(tree, sizeof *copy);
    if (copy == NULL) {
        return NULL;
    }
    *copy = *from;
    bool mapping = from->yaml.kind == YAML_MAPPING;
    size_t count = from->yaml.count;
    if (count == 0) {
        return copy;
    }
    struct yaml_node **list = yaml__take(tree, (mapping ? 2 : 1) * count * sizeof(struct yaml_node *));
    if (list == NULL) {
        return NULL;
    }
    copy->yaml.key = mapping ? list : NULL;
    copy->yaml.item = mapping ? list + count : list;
    struct yaml_node *const *source = mapping ? from->yaml.key : from->yaml.item; /* values follow the keys */
    for (size_t i = 0; i < (mapping ? 2 : 1) * count; i++) {
        struct node *child = node_copy(tree, (const struct node *)source[i]);
        if (child == NULL) {
            return NULL;
        }
        list[i] = &child->yaml;
    }
    return copy;
}

/* A copy of the node that an alias names; NULL: an error, which is reported. */
static struct node *alias_copy(struct parse *p, const struct node *anchor, struct place place)
{
    if (p->depth + anchor->height > YAML_DEPTH_MAX) {
        (void)too_deep(p, place);
        return NULL;
    }
    if (nodes_count(p, place, anchor->size) != GO_ON) {
        return NULL;
    }
    struct node *copy = node_copy(p->tree, anchor);
    if (copy == NULL) {
        (void)out_of_memory(p);
        return NULL;
    }
    copy->yaml.line = place.line;
    copy->yaml.column = place.column;
    copy->yaml.literal = false; /* its lines are at the anchor, not here */
    return copy;
}

/* An invalid node is left out, together with its key, and the parse continues. */
static enum progress node_left_out(struct parse *p, struct place place)
{
    struct frame *frame = p->depth == 0 ? NULL : &p->frame[p->depth - 1];
    if (frame == NULL || frame->node->yaml.kind == YAML_SEQUENCE) {
        return GO_ON;
    }
    if (frame->key != NULL) {
        frame->key = NULL;
        return GO_ON;
    }
    frame->key = node_new(p, YAML_SCALAR, place); /* a key to throw away with its value */
    frame->drop = true;
    return frame->key == NULL ? FAILED : GO_ON;
}

static enum progress on_alias(struct parse *p, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.alias.anchor;
    struct place place = place_of(p, &event->start_mark);
    struct name wanted = {.text = text, .length = strlen(text)};
    const struct name *name = name_find(p, &wanted);
    if (name == NULL) {
        REPORT(p, place, "alias", "the anchor &%s is not defined above; define it, or write the value out", text);
        return node_left_out(p, place);
    }
    if (name->node->open) {
        REPORT(p, place, "alias", "the alias *%s stands inside its own anchor; write the value out", text);
        return node_left_out(p, place);
    }
    struct node *node = alias_copy(p, name->node, place);
    return node == NULL ? FAILED : node_done(p, node);
}

static enum progress on_document(struct parse *p, const yaml_event_t *event)
{
    if (p->documents++ == 0) {
        return GO_ON;
    }
    REPORT(p, place_of(p, &event->start_mark), "second-document",
           "a second document begins here; put it into a file of its own");
    return ENOUGH;
}

static enum progress on_event(struct parse *p, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(p, event);
    case YAML_SEQUENCE_START_EVENT:
        tag_check(p, event->data.sequence_start.tag, YAML_SEQ_TAG, place_of(p, &event->start_mark));
        return on_collection(p, event, YAML_SEQUENCE, event->data.sequence_start.anchor,
                             event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
    case YAML_MAPPING_START_EVENT:
        tag_check(p, event->data.mapping_start.tag, YAML_MAP_TAG, place_of(p, &event->start_mark));
        return on_collection(p, event, YAML_MAPPING, event->data.mapping_start.anchor,
                             event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_collection_end(p);
    case YAML_ALIAS_EVENT:
        return on_alias(p, event);
    case YAML_DOCUMENT_START_EVENT:
        return on_document(p, event);
    case YAML_STREAM_END_EVENT:
        return ENOUGH;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return GO_ON;
    }
    BECALM_UNREACHABLE();
}

/* Entry: the text has been scanned. Exit: ENOUGH, with a root or nothing in the file, or FAILED and reported. */
static enum progress events_read(struct parse *p)
{
    if (!yaml_parser_initialize(&p->yaml)) {
        return out_of_memory(p);
    }
    yaml_parser_set_encoding(&p->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p->yaml, (const unsigned char *)p->text, p->length);
    enum progress progress = GO_ON;
    while (progress == GO_ON) {
        yaml_event_t event;
        if (!yaml_parser_parse(&p->yaml, &event)) {
            progress = syntax_error(p);
            break;
        }
        progress = on_event(p, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&p->yaml);
    return progress;
}

/* The bounds of a text: its bytes and its values. */
struct bounds {
    size_t bytes;
    uint32_t nodes;
};

static const struct bounds own_bounds = {YAML_BYTES_MAX, YAML_NODES_MAX};
static const struct bounds foreign_bounds = {YAML_FOREIGN_BYTES_MAX, YAML_FOREIGN_NODES_MAX};

static struct yaml_tree *text_parse(const char *name, const char *text, size_t length, struct origin origin,
                                    const struct bounds *bounds, struct becalm_diags *diags)
{
    bool done = false;
    const uint32_t errors = diags->errors;
    struct parse *p = calloc(1, sizeof *p);
    struct tree *tree = yaml__tree_new(name);
    if (p == NULL || tree == NULL) {
        becalm_diag_add(diags, BECALM_ERROR, name, origin.whole.line, origin.whole.column, "no-memory",
                        "there is not enough memory to read the file");
        goto out;
    }
    p->tree = tree;
    p->diags = diags;
    p->text = text;
    p->length = length;
    p->origin = origin;
    p->nodes_max = bounds->nodes;
    if (length > bounds->bytes) {
        REPORT(p, p->origin.whole, "too-large", "the file is larger than %u MiB; split it",
               (unsigned)(bounds->bytes >> 20));
        goto out;
    }
    if (text_scan(p) != GO_ON || events_read(p) == FAILED) {
        goto out;
    }
    if (yaml_is_null(tree->yaml.root)) {
        if (diags->errors == errors) {
            REPORT(p, p->origin.whole, "empty", "the file is empty; write at least one key and its value");
        }
        goto out;
    }
    done = true;
out:
    if (p != NULL) {
        names_free(p);
        free(p->child);
        free(p->lines);
        free(p);
    }
    if (!done) {
        yaml_tree_free(tree == NULL ? NULL : &tree->yaml);
        return NULL;
    }
    return &tree->yaml;
}

struct yaml_tree *yaml_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags)
{
    return text_parse(name, text, length, (struct origin){.whole = {1, 1}}, &own_bounds, diags);
}

struct yaml_tree *yaml_parse_part(const char *name, const char *text, size_t length, uint32_t lines_above,
                                  struct becalm_diags *diags)
{
    return text_parse(name, text, length, (struct origin){.line = lines_above, .whole = {lines_above + 1, 1}},
                      &foreign_bounds, diags);
}

struct yaml_tree *yaml_parse_inner(const struct yaml_tree *outer, const struct yaml_node *block,
                                   struct becalm_diags *diags)
{
    struct origin origin = {.fixed = !block->literal, .whole = {block->line, block->column}};
    if (block->literal) { /* the text begins on the line below the | */
        origin.line = block->line;
        origin.column = ((const struct node *)block)->indent;
    }
    return text_parse(outer->name, block->text, block->length, origin, &own_bounds, diags);
}
