/* SPDX-License-Identifier: MIT */
#include "packed.h"

#include "http/text_internal.h"

struct lengths {
    uint32_t name;
    uint32_t value;
};

void packed_put(struct text_sink *out, struct becalm_text name, struct becalm_text value)
{
    struct lengths lengths = {(uint32_t)name.length, (uint32_t)value.length};
    text_put(out, (struct becalm_text){(const char *)&lengths, sizeof lengths});
    text_put(out, name);
    text_put(out, value);
}

void packed_put_draft(struct text_sink *out, const struct draft *draft)
{
    const struct head *head = draft->passed;
    packed_put(out, (struct becalm_text){0}, draft->phrase);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if (!field->hop && (draft->skip >> field->id & 1) == 0) {
            packed_put(out, field_name(head, field), field_value(head, field));
        }
    }
    for (uint32_t i = 0; i < draft->count; i++) {
        packed_put(out, draft->added[i].name, draft->added[i].value);
    }
    out->full |= draft->values.full;
}

void packed_put_trailers(struct text_sink *out, const struct head *head)
{
    packed_put(out, (struct becalm_text){0}, (struct becalm_text){0});
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (!head->field[i].hop) {
            packed_put(out, field_name(head, &head->field[i]), field_value(head, &head->field[i]));
        }
    }
}

struct becalm_text packed_split(struct becalm_text *packed)
{
    struct becalm_text rest = *packed;
    struct becalm_text name;
    struct becalm_text value;
    (void)packed_next(&rest, &name, &value); /* the phrase */
    const char *end = rest.at;
    while (packed_next(&rest, &name, &value) && name.length > 0) {
        end = rest.at;
    }
    packed->length = (size_t)(end - packed->at);
    return rest;
}

/* No line end, and no other character with a meaning to a parser of heads. */
static bool is_plain(struct becalm_text text, bool token)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (token ? !is_token_char((char)c) : (c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

bool packed_is_right(struct becalm_text packed)
{
    uint32_t nameless = 0;
    for (bool first = true; packed.length > 0; first = false) {
        struct lengths lengths;
        if (packed.length < sizeof lengths) {
            return false;
        }
        memcpy(&lengths, packed.at, sizeof lengths);
        if (lengths.name > packed.length || lengths.value > packed.length ||
            (size_t)lengths.name + lengths.value > packed.length - sizeof lengths) {
            return false;
        }
        nameless += lengths.name == 0;
        if (first ? lengths.name != 0 : lengths.name == 0 && (nameless > 2 || lengths.value != 0)) {
            return false;
        }
        struct becalm_text name = {0};
        struct becalm_text value = {0};
        (void)packed_next(&packed, &name, &value);
        if (!is_plain(name, true) || !is_plain(value, false)) {
            return false;
        }
    }
    return nameless > 0;
}

static bool is_name(struct becalm_text name, const char *wanted)
{
    size_t i = 0;
    while (i < name.length && wanted[i] != '\0' && to_lower(name.at[i]) == wanted[i]) {
        i++;
    }
    return i == name.length && wanted[i] == '\0';
}

size_t packed_without(char *at, size_t length, const char *name)
{
    struct becalm_text rest = {at, length};
    struct becalm_text found = {0};
    struct becalm_text value = {0};
    size_t kept = 0;
    for (const char *from = at; packed_next(&rest, &found, &value); from = rest.at) {
        if (!is_name(found, name)) {
            size_t size = (size_t)(rest.at - from);
            memmove(at + kept, from, size);
            kept += size;
        }
    }
    return kept;
}

bool packed_next(struct becalm_text *rest, struct becalm_text *name, struct becalm_text *value)
{
    struct lengths lengths;
    if (rest->length == 0) {
        return false;
    }
    memcpy(&lengths, rest->at, sizeof lengths);
    *name = (struct becalm_text){rest->at + sizeof lengths, lengths.name};
    *value = (struct becalm_text){name->at + name->length, lengths.value};
    size_t length = sizeof lengths + lengths.name + lengths.value;
    rest->at += length;
    rest->length -= length;
    return true;
}
