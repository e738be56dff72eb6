/* SPDX-License-Identifier: MIT */
#include "source.h"

#include "../diag.h"
#include "../schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 64u /* keys of one mapping that a misspelt one is compared with */
#define PATH_BYTES 256
#define ALL_PPM    1000000u

/* ---- saying ---- */

void source_error(struct source *s, const struct yaml_node *node, const char *code, const char *format, ...)
{
    char message[sizeof s->diags->diag[0].message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    diags_make_room(s->diags, BECALM_ERROR);
    becalm_diag_add(s->diags, BECALM_ERROR, s->file, node->line, node->column, code, "%s", message);
    emit_note(s->emit, NULL,
              emit_text(s->emit, "error: %s:%u %s; it is left out", s->file, (unsigned)node->line, message));
}

/* One place of the source may become several endpoints; it gets one warning. */
static bool warned(const struct source *s, const struct yaml_node *node, const char *code, const char *path)
{
    size_t length = strlen(path);
    for (uint32_t i = 0; i < s->diags->count; i++) {
        const struct becalm_diag *d = &s->diags->diag[i];
        if (d->line == node->line && d->column == node->column && strcmp(d->code, code) == 0 &&
            strcmp(d->file, s->file) == 0 && strncmp(d->message, path, length) == 0) {
            return true;
        }
    }
    return false;
}

static enum becalm_severity severity_of(enum finding level)
{
    switch (level) {
    case FINDING_WARNING:
        return BECALM_WARNING;
    case FINDING_NOTE:
        return BECALM_NOTE;
    }
    BECALM_UNREACHABLE();
}

static void tell(struct source *s, enum finding level, struct emit_target *target, const struct from *from,
                 const char *code, const char *sentence)
{
    const struct yaml_node *node = from->node;
    enum becalm_severity severity = severity_of(level);
    if (!warned(s, node, code, from->path)) {
        s->left_out += strstr(sentence, "left out") != NULL;
        s->changed += strcmp(code, "no-equal") != 0; /* cut, or in conflict */
        diags_make_room(s->diags, severity);
        becalm_diag_add(s->diags, severity, s->file, node->line, node->column, code, "%s %s", from->path, sentence);
    }
    emit_note(s->emit, target,
              emit_text(s->emit, "%s: %s:%u %s %s", diag_severity_word(severity), s->file, (unsigned)node->line,
                        from->path, sentence));
}

static void warn(struct source *s, struct emit_target *target, const struct from *from, const char *code,
                 const char *sentence)
{
    tell(s, FINDING_WARNING, target, from, code, sentence);
}

void source_no_equal(struct source *s, struct emit_target *target, const struct from *from, const char *why)
{
    warn(s, target, from, "no-equal", emit_text(s->emit, "has no equivalent: %s", why));
}

void source_aside(struct source *s, struct emit_target *target, const struct from *from, const char *why)
{
    tell(s, FINDING_NOTE, target, from, "no-equal", emit_text(s->emit, "has no equivalent: %s", why));
}

const char *source_where(struct source *s, const struct from *from)
{
    const char *remark = from->remark == NULL ? "" : from->remark;
    return emit_text(s->emit, "%s:%u %s%s%s", s->file, (unsigned)from->node->line, from->path,
                     remark[0] == '\0' ? "" : "; ", remark);
}

/* ---- structure ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool source_same(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, "_");
        b += strspn(b, "_");
        if (lower(*a) != lower(*b)) {
            return false;
        }
        if (*a == '\0') {
            return true;
        }
        a++;
        b++;
    }
}

const struct yaml_node *source_get(const struct yaml_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->kind != YAML_MAPPING) {
        return NULL;
    }
    for (uint32_t i = 0; i < mapping->count; i++) {
        if (source_same(mapping->key[i]->text, key)) {
            return yaml_is_null(mapping->item[i]) ? NULL : mapping->item[i];
        }
    }
    return NULL;
}

bool source_is(struct source *s, const struct from *from, enum yaml_kind kind)
{
    static const char *const should[] = {
        [YAML_SCALAR] = "a single value", [YAML_SEQUENCE] = "a list", [YAML_MAPPING] = "a mapping of keys"};
    if (from->node == NULL || from->node->kind == kind) {
        return from->node != NULL;
    }
    source_error(s, from->node, "wrong-type", "%s is not %s, as %s wants it", from->path, should[kind], s->product);
    return false;
}

const char *source_text(struct source *s, const struct from *from)
{
    return source_is(s, from, YAML_SCALAR) ? from->node->text : NULL;
}

static const struct field *field_find(const struct field *fields, const char *name)
{
    while (fields->name != NULL && !source_same(fields->name, name)) {
        fields++;
    }
    return fields->name == NULL ? NULL : fields;
}

/* The nearest known key to an unknown one, among keys that the mapping does not have yet. NULL: none is near. */
static const char *field_meant(const struct field *fields, const struct yaml_node *mapping, const char *name)
{
    const char *read[FIELDS_MAX];
    size_t count = 0;
    for (; fields->name != NULL && count < FIELDS_MAX; fields++) {
        if (fields->why == NULL && source_get(mapping, fields->name) == NULL) {
            read[count++] = fields->name;
        }
    }
    return value_nearest(name, read, count);
}

const char source_narrows[] = "an endpoint can't have this condition, so the route is left out";

bool source_rest(struct source *s, struct emit_target *target, const struct yaml_node *mapping, const char *path,
                 const struct field *fields)
{
    bool narrows = false;
    for (uint32_t i = 0; mapping != NULL && mapping->kind == YAML_MAPPING && i < mapping->count; i++) {
        const struct field *field = field_find(fields, mapping->key[i]->text);
        if (field != NULL && field->why == NULL) {
            continue;
        }
        char name[PATH_BYTES];
        snprintf(name, sizeof name, "%s%s%s", path, path[0] == '\0' ? "" : ".", mapping->key[i]->text);
        const char *meant = field == NULL ? field_meant(fields, mapping, mapping->key[i]->text) : NULL;
        if (meant != NULL) {
            source_no_equal(s, target, &(struct from){mapping->key[i], name, NULL},
                            emit_text(s->emit, "%s has no such key; is %s meant?", s->product, meant));
            continue;
        }
        const char *why = field == NULL ? NOTE "it does not concern retries, or Becalm does not know it" : field->why;
        bool note = why[0] == NOTE[0];
        tell(s, note ? FINDING_NOTE : FINDING_WARNING, target, &(struct from){mapping->key[i], name, NULL}, "no-equal",
             emit_text(s->emit, "has no equivalent: %s", why + note));
        narrows = narrows || (field != NULL && field->why == source_narrows);
    }
    return narrows;
}

/* ---- typed values ---- */

static bool bad_value(struct source *s, const struct from *from, const char *should)
{
    const char *text = from->node->text;
    if (strstr(text, "{{") != NULL || strstr(text, "${") != NULL || strstr(text, "{%") != NULL) {
        should = "a value but a placeholder; render the template first";
    }
    source_error(s, from->node, "bad-value", "%s: \"%.64s\" is not %s", from->path, from->node->text, should);
    return false;
}

bool source_integer(struct source *s, const struct from *from, uint64_t *out)
{
    const char *text = source_text(s, from);
    if (text == NULL) {
        return false;
    }
    return value_integer(text, out) || bad_value(s, from, "a whole number");
}

/* Digits, and a fraction, in units of 1/scale; smaller parts are cut off. Returns the text after it, or NULL. */
static const char *decimal_read(const char *text, uint64_t scale, uint64_t *out)
{
    uint64_t value = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        uint64_t digit = (uint64_t)(*c - '0') * scale;
        if (value > (UINT64_MAX - digit) / 10) {
            return NULL;
        }
        value = value * 10 + digit;
    }
    if (c == text && *c != '.') { /* ".01s" is how people write it, grpc-go's own example too */
        return NULL;
    }
    if (*c == '.') {
        const char *fraction = ++c;
        for (; *c >= '0' && *c <= '9'; c++) {
            scale /= 10;
            uint64_t digit = (uint64_t)(*c - '0') * scale;
            if (value > UINT64_MAX - digit) {
                return NULL;
            }
            value += digit;
        }
        if (c == fraction) {
            return NULL;
        }
    }
    *out = value;
    return c;
}

bool source_decimal(struct source *s, const struct from *from, uint64_t scale, uint64_t *out)
{
    const char *text = source_text(s, from);
    if (text == NULL) {
        return false;
    }
    const char *end = decimal_read(text, scale, out);
    return (end != NULL && *end == '\0') || bad_value(s, from, "a number");
}

/* Adds one number with its unit to *sum. Returns the text after it, or NULL. */
static const char *duration_part(const char *text, becalm_ns *sum)
{
    static const struct {
        const char *name;
        becalm_ns length;
    } units[] = {{"ns", 1},       {"us", BECALM_US},    {"ms", BECALM_MS},
                 {"s", BECALM_S}, {"m", 60 * BECALM_S}, {"h", 3600 * BECALM_S}};
    size_t number = strspn(text, "0123456789.");
    size_t unit = strspn(text + number, "abcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t value;
        if (strlen(units[i].name) == unit && strncmp(text + number, units[i].name, unit) == 0 &&
            decimal_read(text, units[i].length, &value) == text + number && value <= UINT64_MAX - *sum) {
            *sum += value;
            return text + number + unit;
        }
    }
    return NULL;
}

bool source_duration(struct source *s, const struct from *from, becalm_ns *out)
{
    const char *text = source_text(s, from);
    if (text == NULL) {
        return false;
    }
    becalm_ns sum = 0;
    const char *end = strcmp(text, "0") == 0 ? "" : text;
    while (end != NULL && (end == text || *end != '\0')) {
        end = duration_part(end, &sum);
    }
    if (end == NULL) {
        return bad_value(s, from, "a duration; write it like 1.5s or 250ms");
    }
    *out = sum;
    return true;
}

bool source_boolean(struct source *s, const struct from *from, bool *out)
{
    const char *text = source_text(s, from);
    if (text == NULL) {
        return false;
    }
    return value_boolean(text, out) || bad_value(s, from, "true or false");
}

/* ---- into the policy ---- */

static void put(struct source *s, struct emit_target *target, const char *key, const char *value,
                const struct from *from)
{
    const char *had = emit_put(target, key, value, source_where(s, from));
    if (had != NULL && strcmp(had, value) != 0) {
        source_conflict(s, target, from, key, value, had);
    }
}

void source_conflict(struct source *s, struct emit_target *target, const struct from *from, const char *key,
                     const char *value, const char *had)
{
    warn(s, target, from, "conflict",
         emit_text(s->emit, "would make %s %s, but it is %s already, from %s", key, value, had,
                   emit_comment(target, key)));
}

/* A number of the field's unit as text. */
typedef const char *write_fn(struct source *, uint64_t value, uint64_t scale);

static const char *integer_write(struct source *s, uint64_t value, uint64_t scale)
{
    (void)scale;
    return emit_text(s->emit, "%" PRIu64, value);
}

static const char *decimal_write(struct source *s, uint64_t value, uint64_t scale)
{
    char fraction[24];
    uint64_t rest = value % scale;
    size_t length = 0;
    for (uint64_t part = scale / 10; rest > 0; part /= 10) {
        fraction[length++] = (char)('0' + rest / part);
        rest %= part;
    }
    fraction[length] = '\0';
    return emit_text(s->emit, "%" PRIu64 "%s%s", value / scale, length == 0 ? "" : ".", fraction);
}

static const char *duration_write(struct source *s, uint64_t value, uint64_t scale)
{
    char text[48];
    (void)scale;
    value_write_duration(value, text, sizeof text);
    return emit_text(s->emit, "%s", text);
}

static void put_number(struct source *s, struct emit_target *target, const char *key, uint64_t value, uint64_t scale,
                       const struct from *from, write_fn *write)
{
    const struct schema_key *limits = emit_key(target, key);
    bool share = limits->type == TYPE_PERCENT; /* the schema may allow more than 100 %, but no text says so */
    uint64_t most = share && limits->max > ALL_PPM ? ALL_PPM : limits->max;
    uint64_t cut = value < limits->min ? limits->min : value > most ? most : value;
    if (cut != value) {
        warn(s, target, from, "out-of-range",
             emit_text(s->emit, "is %s; %s goes %s %s, and that is written", write(s, value, scale), key,
                       value < cut ? "down to" : "up to", write(s, cut, scale)));
    }
    put(s, target, key, write(s, cut, scale), from);
}

void source_put_integer(struct source *s, struct emit_target *target, const char *key, uint64_t value,
                        const struct from *from)
{
    put_number(s, target, key, value, 1, from, integer_write);
}

void source_put_decimal(struct source *s, struct emit_target *target, const char *key, uint64_t value, uint64_t scale,
                        const struct from *from)
{
    put_number(s, target, key, value, scale, from, decimal_write);
}

void source_put_percent(struct source *s, struct emit_target *target, const char *key, uint64_t ppm,
                        const struct from *from)
{
    put_number(s, target, key, ppm, 10000, from, decimal_write);
}

void source_put_duration(struct source *s, struct emit_target *target, const char *key, becalm_ns value,
                         const struct from *from)
{
    put_number(s, target, key, value, 1, from, duration_write);
}

void source_put_word(struct source *s, struct emit_target *target, const char *key, const char *word,
                     const struct from *from)
{
    put(s, target, key, word, from);
}

void source_put_h2(struct source *s, struct emit_target *target, const struct from *from)
{
    if (emit_get(target, "protocol") == NULL) {
        source_put_word(s, target, "protocol", "h2", from);
    }
}

void source_put_text(struct source *s, struct emit_target *target, const char *key, const char *text,
                     const struct from *from)
{
    put(s, target, key, emit_quote(s->emit, text), from);
}

void source_put_certificate(struct source *s, struct emit_target *target, const struct from *cert,
                            const struct from *key)
{
    const char *cert_file = cert->node == NULL ? NULL : source_text(s, cert);
    const char *key_file = key->node == NULL ? NULL : source_text(s, key);
    if (cert_file != NULL && key_file != NULL) {
        source_put_text(s, target, "tls.cert", cert_file, cert);
        source_put_text(s, target, "tls.key", key_file, key);
    } else if (cert_file != NULL || key_file != NULL) {
        source_no_equal(s, target, cert_file != NULL ? cert : key,
                        "a certificate and its key belong together: write tls.cert and tls.key");
    }
}

bool source_list_has(const struct source_list *list, const char *item)
{
    const struct source_item *at = list->first;
    while (at != NULL && strcmp(at->text, item) != 0) {
        at = at->next;
    }
    return at != NULL;
}

const char *source_list_first(const struct source_list *list)
{
    return list->first == NULL ? NULL : list->first->text;
}

void source_list_add(struct source_list *list, const char *item)
{
    struct source_item *fresh = source_list_has(list, item) ? NULL : emit_take(list->emit, sizeof *fresh);
    if (fresh != NULL) {
        fresh->text = emit_text(list->emit, "%s", item);
        *(list->last == NULL ? &list->first : &list->last->next) = fresh;
        list->last = fresh;
        list->count++;
    }
}

void source_put_list(struct source *s, struct emit_target *target, const char *key, const struct source_list *list,
                     const struct from *from)
{
    size_t size = sizeof "[]";
    for (const struct source_item *item = list->first; item != NULL; item = item->next) {
        size += strlen(emit_quote(s->emit, item->text)) + strlen(", ");
    }
    char *text = emit_take(s->emit, size);
    size_t used = 0;
    if (text == NULL) {
        return;
    }
    text[used++] = '[';
    for (const struct source_item *item = list->first; item != NULL; item = item->next) {
        const char *between = item == list->first ? "" : ", ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", between, emit_quote(s->emit, item->text));
    }
    text[used] = ']';
    put(s, target, key, text, from);
}

void source_take_integer(struct source *s, struct emit_target *target, const char *key, const struct from *from)
{
    uint64_t value;
    if (source_integer(s, from, &value)) {
        source_put_integer(s, target, key, value, from);
    }
}

void source_take_percent(struct source *s, struct emit_target *target, const char *key, const struct from *from)
{
    uint64_t ppm;
    if (source_decimal(s, from, 10000, &ppm)) {
        source_put_percent(s, target, key, ppm, from);
    }
}

void source_take_duration(struct source *s, struct emit_target *target, const char *key, const struct from *from)
{
    becalm_ns value;
    if (source_duration(s, from, &value)) {
        source_put_duration(s, target, key, value, from);
    }
}
