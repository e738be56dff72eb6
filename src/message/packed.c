/* SPDX-License-Identifier: MIT */
#include "packed.h"

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
