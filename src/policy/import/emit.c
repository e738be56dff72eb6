/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "emit.h"

#include "../schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS      32768u
#define CHUNK        16384u
#define COLUMNS      80u
#define NAME_BYTES   112u /* with a number behind it a name stays within the 128 that the loader takes */
#define NUMBER_BYTES 12u
#define GUTTER       34u /* comments begin here where the key leaves room */

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    _Alignas(max_align_t) char bytes[];
};

struct value {
    struct value *next; /* in the schema's order */
    const struct schema_key *key;
    unsigned order;
    const char *text;
    const char *comment;
};

struct note {
    struct note *next;
    const char *text;
    const char *comment; /* of an item of a list */
};

struct emit_target {
    struct emit *emit;
    struct emit_target *parent;
    const struct schema *schema; /* NULL: that of services and their rules */
    struct emit_target *next;
    struct emit_target *first; /* endpoints */
    struct emit_target *last;
    struct emit_target *same_wish; /* in the same bucket of emit.by_wish */
    struct emit_target *same_name;
    uint32_t count;
    const char *wish; /* the requested name */
    const char *name; /* the printed name */
    void *slot;
    const char *comment;
    struct value *values;
    struct note *notes;
    struct note *last_note;
    struct note *matches; /* a list; one match alone is keys */
    struct note *last_match;
    bool called; /* a route leads to it */
};

struct emit {
    struct chunk *chunks;
    bool failed; /* memory ran out: nothing will be printed */
    struct emit_target defaults;
    struct emit_target settings;
    struct emit_target listeners; /* their list */
    struct emit_target services;  /* their list; its notes are those of the file */
    struct emit_target *by_wish[BUCKETS];
    struct emit_target *by_name[BUCKETS];
};

/* ---- memory ---- */

void *emit_take(struct emit *e, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (e->failed) {
        return NULL;
    }
    if (e->chunks == NULL || e->chunks->size - e->chunks->used < size) {
        size_t room = size > CHUNK ? size : CHUNK;
        struct chunk *fresh = malloc(sizeof *fresh + room);
        if (fresh == NULL) {
            e->failed = true;
            return NULL;
        }
        *fresh = (struct chunk){.next = e->chunks, .size = room};
        e->chunks = fresh;
    }
    void *taken = e->chunks->bytes + e->chunks->used;
    e->chunks->used += size;
    memset(taken, 0, size);
    return taken;
}

const char *emit_text(struct emit *e, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : emit_take(e, (size_t)length + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    va_end(arguments);
    return text == NULL ? "" : text;
}

struct emit *emit_new(void)
{
    struct emit *e = calloc(1, sizeof *e);
    if (e != NULL) {
        e->defaults = (struct emit_target){.emit = e, .wish = "defaults", .name = "defaults"};
        e->settings = (struct emit_target){.emit = e, .schema = &schema_settings};
        e->listeners = (struct emit_target){.emit = e};
        e->services = (struct emit_target){.emit = e};
    }
    return e;
}

void emit_free(struct emit *e)
{
    while (e != NULL && e->chunks != NULL) {
        struct chunk *next = e->chunks->next;
        free(e->chunks);
        e->chunks = next;
    }
    free(e);
}

/* ---- targets ---- */

/* The bucket of a child's wish or name. */
static uint32_t bucket_of(const struct emit_target *parent, const char *name)
{
    uint32_t hash = 2166136261u ^ (uint32_t)((uintptr_t)parent / _Alignof(max_align_t));
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    return (hash ^ hash >> 16) % BUCKETS;
}

static struct emit_target *child_find(const struct emit_target *parent, const char *wish)
{
    struct emit_target *at = parent->emit->by_wish[bucket_of(parent, wish)];
    while (at != NULL && (at->parent != parent || strcmp(at->wish, wish) != 0)) {
        at = at->same_wish;
    }
    return at;
}

static bool name_taken(const struct emit_target *parent, const char *name)
{
    const struct emit_target *at = parent->emit->by_name[bucket_of(parent, name)];
    while (at != NULL && (at->parent != parent || strcmp(at->name, name) != 0)) {
        at = at->same_name;
    }
    return at != NULL;
}

/* `wish` with nothing in it that the loader would refuse: letters, digits, - _ . and the characters in `more`. */
static size_t name_make(const char *wish, const char *more, char *name, size_t size)
{
    size_t length = 0;
    for (const char *c = wish; *c != '\0' && length + 1 < size; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (plain || (length > 0 && strchr(more, *c) != NULL)) {
            name[length++] = *c;
        } else if (length > 0 && name[length - 1] != '-') {
            name[length++] = '-';
        }
    }
    while (length > 0 && strchr("-.:/", name[length - 1]) != NULL) {
        length--;
    }
    name[length] = '\0';
    return length > 0 ? length : (size_t)snprintf(name, size, "unnamed");
}

static struct emit_target *child_add(struct emit_target *parent, const char *wish, const char *more,
                                     const char *comment)
{
    char name[NAME_BYTES + NUMBER_BYTES];
    struct emit *e = parent->emit;
    size_t length = name_make(wish, more, name, NAME_BYTES);
    /* The number of children grows with each of them, so that a number is hardly ever taken twice. */
    for (uint32_t number = parent->count + 1; name_taken(parent, name); number++) {
        snprintf(name + length, sizeof name - length, "-%u", number);
    }
    struct emit_target *child = emit_take(e, sizeof *child);
    if (child == NULL) {
        return NULL;
    }
    *child = (struct emit_target){.emit = e, .parent = parent, .comment = comment};
    child->wish = emit_text(e, "%s", wish);
    child->name = strcmp(name, wish) == 0 ? child->wish : emit_text(e, "%s", name);
    struct emit_target **wishes = &e->by_wish[bucket_of(parent, child->wish)];
    struct emit_target **names = &e->by_name[bucket_of(parent, child->name)];
    child->same_wish = *wishes;
    child->same_name = *names;
    *wishes = child;
    *names = child;
    *(parent->last == NULL ? &parent->first : &parent->last->next) = child;
    parent->last = child;
    parent->count++;
    return child;
}

struct emit_target *emit_defaults(struct emit *e)
{
    return &e->defaults;
}

struct emit_target *emit_settings(struct emit *e)
{
    return &e->settings;
}

struct emit_target *emit_listener(struct emit *e, const char *address, const char *comment)
{
    struct emit_target *listener = emit_take(e, sizeof *listener);
    if (listener != NULL) {
        *listener = (struct emit_target){.emit = e, .schema = &schema_listener, .name = address, .comment = comment};
    }
    return listener;
}

void emit_listen(struct emit_target *listener)
{
    struct emit_target *all = listener == NULL ? NULL : &listener->emit->listeners;
    if (all != NULL) {
        *(all->last == NULL ? &all->first : &all->last->next) = listener;
        all->last = listener;
    }
}

struct emit_target *emit_service(struct emit *e, const char *wish, const char *comment)
{
    struct emit_target *service = child_find(&e->services, wish);
    if (service == NULL) {
        service = child_add(&e->services, wish, "_.:/", comment);
        if (service != NULL && strcmp(service->name, wish) != 0) {
            service->comment = emit_text(e, "%s \"%s\"", comment, wish);
        }
    }
    return service;
}

struct emit_target *emit_next(struct emit *e, const struct emit_target *service)
{
    return service == NULL ? e->services.first : service->next;
}

struct emit_target *emit_next_endpoint(struct emit_target *service, const struct emit_target *endpoint)
{
    return endpoint == NULL ? service->first : endpoint->next;
}

struct emit_target *emit_endpoint(struct emit_target *service, const char *wish, const char *comment)
{
    return service == NULL ? NULL : child_add(service, wish, "_.", comment);
}

const char *emit_name(const struct emit_target *target)
{
    return target == NULL ? "" : target->name;
}

struct emit_target *emit_loose(struct emit *e, const char *comment)
{
    struct emit_target *loose = emit_take(e, sizeof *loose);
    if (loose != NULL) {
        *loose = (struct emit_target){.emit = e, .wish = "", .name = "", .comment = comment};
    }
    return loose;
}

void emit_set_called(struct emit_target *target)
{
    if (target != NULL) {
        target->called = true;
    }
}

bool emit_is_called(const struct emit_target *target)
{
    return target != NULL && target->called;
}

void **emit_slot(struct emit_target *target)
{
    return &target->slot;
}

/* ---- keys ---- */

static const struct schema_key *key_find(const struct emit_target *target, const char *name, unsigned *order)
{
    const struct schema *own = target == NULL || target->schema == NULL ? &schema_service : target->schema;
    const struct schema_key *key = schema_find(own, name);
    if (key != NULL && own != &schema_service) {
        *order = (unsigned)(key - own->keys);
        return key;
    }
    if (key != NULL) {
        *order = (unsigned)(key - schema_service.keys);
        return key;
    }
    key = schema_find(&schema_rules, name);
    BECALM_ASSERT(key != NULL);
    *order = schema_service.count + (unsigned)(key - schema_rules.keys);
    return key;
}

const struct schema_key *emit_key(const struct emit_target *target, const char *key)
{
    unsigned order = 0;
    return key_find(target, key, &order);
}

static const struct value *value_find(const struct emit_target *target, const char *key)
{
    const struct value *v = target == NULL ? NULL : target->values;
    while (v != NULL && strcmp(v->key->name, key) != 0) {
        v = v->next;
    }
    return v;
}

const char *emit_get(const struct emit_target *target, const char *key)
{
    const struct value *v = value_find(target, key);
    return v == NULL ? NULL : v->text;
}

const char *emit_get_inherited(const struct emit_target *target, const char *key)
{
    const char *text = NULL;
    for (const struct emit_target *at = target; at != NULL && text == NULL; at = at->parent) {
        text = emit_get(at, key);
    }
    return text != NULL || target == NULL ? text : emit_get(&target->emit->defaults, key);
}

const char *emit_comment(const struct emit_target *target, const char *key)
{
    if (key == NULL) {
        return target == NULL || target->comment == NULL ? "" : target->comment;
    }
    const struct value *v = value_find(target, key);
    return v == NULL ? "" : v->comment;
}

const char *emit_put(struct emit_target *target, const char *name, const char *text, const char *comment)
{
    const char *had = emit_get(target, name);
    struct value *v = target == NULL || had != NULL ? NULL : emit_take(target->emit, sizeof *v);
    if (v == NULL) {
        return had;
    }
    unsigned order = 0;
    const struct schema_key *key = key_find(target, name, &order);
    struct value **place = &target->values;
    while (*place != NULL && (*place)->order < order) {
        place = &(*place)->next;
    }
    *v = (struct value){.next = *place, .key = key, .order = order, .text = text, .comment = comment};
    *place = v;
    return NULL;
}

void emit_drop(struct emit_target *target, const char *key)
{
    struct value **place = &target->values;
    while (*place != NULL && strcmp((*place)->key->name, key) != 0) {
        place = &(*place)->next;
    }
    if (*place != NULL) {
        *place = (*place)->next;
    }
}

void emit_note(struct emit *e, struct emit_target *target, const char *text)
{
    struct note *note = emit_take(e, sizeof *note);
    struct emit_target *at = target == NULL ? &e->services : target;
    if (note != NULL) {
        note->text = text;
        *(at->last_note == NULL ? &at->notes : &at->last_note->next) = note;
        at->last_note = note;
    }
}

void emit_match(struct emit_target *target, const char *text, const char *comment)
{
    struct note *item = target == NULL ? NULL : emit_take(target->emit, sizeof *item);
    if (item != NULL) {
        *item = (struct note){.text = text, .comment = comment};
        *(target->last_match == NULL ? &target->matches : &target->last_match->next) = item;
        target->last_match = item;
    }
}

void emit_note_once(struct emit *e, struct emit_target *target, const char *text)
{
    const struct note *note = target == NULL ? e->services.notes : target->notes;
    while (note != NULL && strcmp(note->text, text) != 0) {
        note = note->next;
    }
    if (note == NULL) {
        emit_note(e, target, text);
    }
}

void emit_copy(struct emit_target *to, const struct emit_target *from, emit_clash_fn *clash, void *data)
{
    if (to == NULL || from == NULL) {
        return;
    }
    for (const struct value *v = from->values; v != NULL; v = v->next) {
        const char *had = emit_put(to, v->key->name, v->text, v->comment);
        if (had != NULL && strcmp(had, v->text) != 0 && clash != NULL) {
            clash(data, v->key->name, v->text, v->comment, had);
        }
    }
    for (const struct note *note = from->notes; note != NULL; note = note->next) {
        emit_note(to->emit, to, note->text);
    }
}

bool emit_same(const struct emit_target *a, const struct emit_target *b)
{
    const struct value *v = a == NULL ? NULL : a->values;
    const struct value *w = b == NULL ? NULL : b->values;
    while (v != NULL && w != NULL && v->key == w->key && strcmp(v->text, w->text) == 0) {
        v = v->next;
        w = w->next;
    }
    return v == NULL && w == NULL;
}

/* ---- text ---- */

/* Reads a character of UTF-8, strictly; returns its length, or 0. */
static unsigned character_read(const unsigned char *c, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned length = c[0] < 0x80 ? 1 : c[0] < 0xc0 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf8 ? 4 : 0;
    *code = length == 1 ? c[0] : c[0] & (0x7fu >> length);
    for (unsigned i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | (c[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return length == 0 || *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

/* May this character stand in YAML unescaped? Control characters may not, nor characters that libyaml takes for the end
 * of a line. */
static bool character_plain(uint32_t code)
{
    bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool line_end = code == 0x2028 || code == 0x2029;
    bool special = code == 0xfeff || code == 0xfffe || code == 0xffff;
    return !control && !line_end && !special;
}

static bool is_bare(const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "none", "auto", NULL};
    if (text[0] == '\0' || text[0] == '-' || text[0] == '.' || text[strspn(text, safe)] != '\0') {
        return false;
    }
    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            return false;
        }
    }
    return true;
}

const char *emit_quote(struct emit *e, const char *text)
{
    if (is_bare(text)) {
        return emit_text(e, "%s", text);
    }
    char *quoted = emit_take(e, 4 * strlen(text) + 3);
    if (quoted == NULL) {
        return "\"\"";
    }
    char *to = quoted;
    *to++ = '"';
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        uint32_t code;
        unsigned length = character_read(c, &code);
        if (length == 0) {
            *to++ = '?'; /* no character at all */
        } else if (!character_plain(code)) {
            to += sprintf(to, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
        } else {
            if (code == '"' || code == '\\') {
                *to++ = '\\';
            }
            memcpy(to, c, length);
            to += length;
        }
        c += length == 0 ? 1 : length;
    }
    *to++ = '"';
    *to = '\0';
    return quoted;
}

/* ---- printing ---- */

/* Writes text that may contain anything into a comment, broken between words; every line begins with `indent` blanks
 * and "# ". */
static void comment_print(FILE *out, unsigned indent, const char *text)
{
    size_t column = 0;
    const unsigned char *c = (const unsigned char *)text;
    while (*c != '\0') {
        size_t word = strcspn((const char *)c, " ");
        if (column > 0 && column + 1 + word > COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        column += (size_t)(column == 0 ? fprintf(out, "%*s# ", (int)indent, "") : fprintf(out, " ")) + word;
        for (const unsigned char *end = c + word; c < end;) {
            uint32_t code;
            unsigned length = character_read(c, &code);
            if (length > 0 && character_plain(code)) {
                fwrite(c, 1, length, out);
            } else {
                fputc('?', out);
            }
            c += length == 0 ? 1 : length;
        }
        c += strspn((const char *)c, " ");
    }
    fputc('\n', out);
}

/* Writes a key and its value; a list that is too long goes on in the next lines. */
static void text_print(FILE *out, unsigned indent, const char *text)
{
    size_t column = indent + strlen(text);
    const char *list = column > COLUMNS ? strchr(text, '[') : NULL;
    if (list == NULL || text[strlen(text) - 1] != ']') {
        fprintf(out, "%*s%s", (int)indent, "", text);
        return;
    }
    size_t hang = indent + (size_t)(list + 1 - text);
    fprintf(out, "%*s%.*s", (int)indent, "", (int)(list + 1 - text), text);
    column = hang;
    for (const char *item = list + 1; *item != '\0';) {
        const char *comma = strstr(item, ", ");
        size_t length = comma == NULL ? strlen(item) : (size_t)(comma - item) + 1;
        if (column > hang && column + 1 + length > COLUMNS) {
            fprintf(out, "\n%*s", (int)hang, "");
            column = hang;
        } else if (column > hang) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)length, item);
        column += length;
        item += length + (comma == NULL ? 0 : 1);
    }
}

/* "key: value   # comment", or the comment in lines of its own above if that is too long. */
static void line_print(FILE *out, unsigned indent, const char *text, const char *comment)
{
    size_t used = indent + strlen(text);
    size_t length = comment == NULL ? 0 : strlen("# ") + strlen(comment);
    size_t start = used + 2 < GUTTER && GUTTER + length <= COLUMNS ? GUTTER : used + 2;
    bool beside = length > 0 && start + length <= COLUMNS;
    if (length > 0 && !beside) {
        comment_print(out, indent, comment);
    }
    text_print(out, indent, text);
    if (beside) {
        comment_print(out, (unsigned)(start - used), comment);
    } else {
        fputc('\n', out);
    }
}

static void values_print(struct emit *e, FILE *out, unsigned indent, const struct emit_target *target)
{
    if (target->matches != NULL) {
        line_print(out, indent, "match:", NULL);
    }
    for (const struct note *item = target->matches; item != NULL; item = item->next) {
        line_print(out, indent + 2, emit_text(e, "- %s", item->text), item->comment);
    }
    const char *group = "";
    for (const struct value *v = target->values; v != NULL; v = v->next) {
        const char *dot = strchr(v->key->name, '.');
        size_t length = dot == NULL ? 0 : (size_t)(dot - v->key->name);
        if (dot != NULL && (strncmp(group, v->key->name, length) != 0 || group[length] != '.')) {
            line_print(out, indent, emit_text(e, "%.*s:", (int)length, v->key->name), NULL);
        }
        group = v->key->name;
        const char *name = dot == NULL ? v->key->name : dot + 1;
        line_print(out, indent + (dot == NULL ? 0 : 2), emit_text(e, "%s: %s", name, v->text), v->comment);
    }
    for (const struct note *note = target->notes; note != NULL; note = note->next) {
        comment_print(out, indent, note->text);
    }
}

static void target_print(struct emit *e, FILE *out, unsigned indent, const struct emit_target *target)
{
    /* An entry without a value would be nothing; {} says that it is meant. */
    const char *empty = target->values == NULL && target->first == NULL && target->matches == NULL ? " {}" : "";
    line_print(out, indent, emit_text(e, "%s:%s", target->name, empty), target->comment);
    values_print(e, out, indent + 2, target);
    if (target->first != NULL) {
        line_print(out, indent + 2, "endpoints:", NULL);
    }
    for (const struct emit_target *child = target->first; child != NULL; child = child->next) {
        target_print(e, out, indent + 4, child);
    }
}

/* "- address: 0.0.0.0:443", and its keys below that. */
static void listener_print(struct emit *e, FILE *out, const struct emit_target *listener)
{
    line_print(out, 2, emit_text(e, "- address: %s", emit_quote(e, listener->name)), listener->comment);
    values_print(e, out, 4, listener);
}

bool emit_is_empty(const struct emit *e)
{
    return e->defaults.values == NULL && e->services.first == NULL && e->listeners.first == NULL &&
           e->settings.values == NULL && !e->failed;
}

char *emit_print(const struct emit *source)
{
    struct emit *e = source->defaults.emit; /* the lines are put together in its arena */
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    for (const struct note *note = e->services.notes; note != NULL; note = note->next) {
        comment_print(out, 0, note->text);
    }
    line_print(out, 0, "version: 1", NULL);
    if (e->listeners.first != NULL) {
        line_print(out, 0, "listen:", NULL);
    }
    for (const struct emit_target *listener = e->listeners.first; listener != NULL; listener = listener->next) {
        listener_print(e, out, listener);
    }
    values_print(e, out, 0, &e->settings);
    if (e->defaults.values != NULL || e->defaults.notes != NULL) {
        target_print(e, out, 0, &e->defaults);
    }
    if (e->services.first != NULL) {
        line_print(out, 0, "services:", NULL);
    }
    for (const struct emit_target *service = e->services.first; service != NULL; service = service->next) {
        target_print(e, out, 2, service);
    }
    bool bad = ferror(out) != 0;
    if (fclose(out) != 0 || bad || e->failed) {
        free(text);
        return NULL;
    }
    return text;
}
