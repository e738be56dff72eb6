/* SPDX-License-Identifier: MIT */
#include "packed.h"

#include "http/text_internal.h"

struct lengths {
    uint32_t name;
    uint32_t value;
};

/* No name is so long. */
#define SECRET 0x80000000u

void packed_put(struct text_sink *out, struct packed_field field)
{
    struct lengths lengths = {(uint32_t)field.name.length | (field.secret ? SECRET : 0), (uint32_t)field.value.length};
    text_put(out, (struct becalm_text){(const char *)&lengths, sizeof lengths});
    text_put(out, field.name);
    text_put(out, field.value);
}

void packed_put_draft(struct text_sink *out, const struct draft *draft)
{
    const struct head *head = draft->passed;
    packed_put(out, (struct packed_field){.value = draft->phrase});
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if (!field->hop && (draft->skip >> field->id & 1) == 0) {
            packed_put(out, packed_of(head, field));
        }
    }
    for (uint32_t i = 0; i < draft->count; i++) {
        packed_put(out, (struct packed_field){draft->added[i].name, draft->added[i].value, false});
    }
    out->full |= draft->values.full;
}

void packed_put_trailers(struct text_sink *out, const struct head *head)
{
    packed_put(out, (struct packed_field){0});
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (!head->field[i].hop) {
            packed_put(out, packed_of(head, &head->field[i]));
        }
    }
}

struct becalm_text packed_split(struct becalm_text *packed)
{
    struct becalm_text rest = *packed;
    struct packed_field field;
    (void)packed_next(&rest, &field); /* the phrase */
    const char *end = rest.at;
    while (packed_next(&rest, &field) && field.name.length > 0) {
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
        lengths.name &= lengths.name == SECRET ? SECRET : ~SECRET; /* without a name nothing is */
        if (lengths.name > packed.length || lengths.value > packed.length ||
            (size_t)lengths.name + lengths.value > packed.length - sizeof lengths) {
            return false;
        }
        nameless += lengths.name == 0;
        if (first ? lengths.name != 0 : lengths.name == 0 && (nameless > 2 || lengths.value != 0)) {
            return false;
        }
        struct packed_field field = {0};
        (void)packed_next(&packed, &field);
        if (!is_plain(field.name, true) || !is_plain(field.value, false)) {
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
    struct packed_field found = {0};
    size_t kept = 0;
    for (const char *from = at; packed_next(&rest, &found); from = rest.at) {
        if (!is_name(found.name, name)) {
            size_t size = (size_t)(rest.at - from);
            memmove(at + kept, from, size);
            kept += size;
        }
    }
    return kept;
}

bool packed_next(struct becalm_text *rest, struct packed_field *field)
{
    struct lengths lengths;
    if (rest->length == 0) {
        return false;
    }
    memcpy(&lengths, rest->at, sizeof lengths);
    size_t name_length = lengths.name & ~SECRET;
    field->name = (struct becalm_text){rest->at + sizeof lengths, name_length};
    field->value = (struct becalm_text){field->name.at + name_length, lengths.value};
    field->secret = (lengths.name & SECRET) != 0;
    size_t length = sizeof lengths + name_length + lengths.value;
    rest->at += length;
    rest->length -= length;
    return true;
}
