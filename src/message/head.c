/* SPDX-License-Identifier: MIT */
#include "head.h"

#include "http/grpc_text.h"
#include "http/text_internal.h"

bool field_is_named(const struct head *head, const struct field *field, struct becalm_text name)
{
    if (field->name_length != name.length) {
        return false;
    }
    for (size_t i = 0; i < name.length; i++) {
        if (to_lower(head->bytes[field->name + i]) != to_lower(name.at[i])) {
            return false;
        }
    }
    return true;
}

bool head_has_secret(const struct head *head, enum field_id id)
{
    for (uint32_t i = 0; head->secret && i < head->field_count; i++) {
        if (head->field[i].secret && head->field[i].id == id) {
            return true;
        }
    }
    return false;
}

struct becalm_text head_find(const struct head *head, enum field_id name)
{
    if (head_has(head, name)) {
        for (uint32_t i = 0; i < head->field_count; i++) {
            if (head->field[i].id == name) {
                return field_value(head, &head->field[i]);
            }
        }
    }
    return (struct becalm_text){0};
}

struct becalm_text head_find_other(const struct head *head, struct becalm_text name)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (field_is_named(head, &head->field[i], name)) {
            return field_value(head, &head->field[i]);
        }
    }
    return (struct becalm_text){0};
}

struct becalm_text head_find_last(const struct head *head, struct becalm_text name)
{
    for (uint32_t i = head->field_count; i > 0; i--) {
        if (field_is_named(head, &head->field[i - 1], name)) {
            return field_value(head, &head->field[i - 1]);
        }
    }
    return (struct becalm_text){0};
}

uint32_t head_grpc_status(const struct head *head)
{
    uint32_t code = BECALM_GRPC_NONE;
    for (uint32_t i = 0; head_has(head, FIELD_GRPC_STATUS) && i < head->field_count; i++) {
        if (head->field[i].id == FIELD_GRPC_STATUS) {
            code = becalm__grpc_status_both(code, becalm__grpc_status_read(field_value(head, &head->field[i])));
        }
    }
    return code;
}

bool head_has_value(const struct head *head, struct becalm_text name, struct becalm_text value)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct becalm_text found = field_value(head, &head->field[i]);
        if (found.length == value.length && memcmp(found.at, value.at, value.length) == 0 &&
            field_is_named(head, &head->field[i], name)) {
            return true;
        }
    }
    return false;
}

struct head *head_copy(void *to, const struct head *head)
{
    size_t fields = offsetof(struct head, field) + head->field_count * sizeof head->field[0];
    struct head *copy = memcpy(to, head, fields);
    copy->bytes = memcpy((char *)to + fields, head->bytes, head->length);
    return copy;
}
