/* SPDX-License-Identifier: MIT */
#include "h2_fields.h"

#include "http/text_internal.h"
#include "message/packed.h"

#include <string.h>

/* Secrets never enter the table of a connection. Fields that are new in each message don't either, because they would
 * only push out useful entries. */
#define SECRET                                                                                           \
    (FIELD_BIT(FIELD_AUTHORIZATION) | FIELD_BIT(FIELD_PROXY_AUTHORIZATION) | FIELD_BIT(FIELD_COOKIE) |   \
     FIELD_BIT(FIELD_IDEMPOTENCY_KEY) | FIELD_BIT(FIELD_REQUEST_ID) | FIELD_BIT(FIELD_TRACEPARENT) |     \
     FIELD_BIT(FIELD_DEADLINE_MS) | FIELD_BIT(FIELD_GRPC_TIMEOUT) | FIELD_BIT(FIELD_ENVOY_EXPECTED_MS) | \
     FIELD_BIT(FIELD_BECALM_EXPLAIN))

static bool is(struct becalm_text name, const char *word)
{
    return memcmp(name.at, word, name.length) == 0;
}

/* Of the fields that have no id: those that are new in most messages. */
static bool is_new_each_time(struct becalm_text name)
{
    switch (name.length) {
    case 3:
        return is(name, "age");
    case 4:
        return is(name, "etag");
    case 5:
        return is(name, ":path");
    case 8:
        return is(name, "location");
    case 10:
        return is(name, "set-cookie");
    case 13:
        return is(name, "if-none-match");
    case 17:
        return is(name, "if-modified-since");
    default: /* no other is so long */
        return false;
    }
}

static enum h2_remembering remembering_of(enum field_id id, struct becalm_text name)
{
    if (id == FIELD_OTHER) {
        return is_new_each_time(name) ? H2_SAID : H2_REMEMBERED;
    }
    return (SECRET >> id & 1) != 0 ? H2_SECRET : id == FIELD_CONTENT_LENGTH ? H2_SAID : H2_REMEMBERED;
}

static void add(struct h2_fields *fields, enum field_id id, struct becalm_text name, struct becalm_text value)
{
    if (fields->count < H2_FIELDS_MAX) {
        fields->bytes += name.length + value.length;
        fields->field[fields->count++] = (struct h2_field){
            .name = name,
            .value = value.length == 0 ? (struct becalm_text){"", 0} : value,
            .name_id = (uint8_t)id,
            .remembering = (uint8_t)remembering_of(id, name),
        };
    }
}

void h2_fields_add(struct h2_fields *fields, const char *name, struct becalm_text value)
{
    add(fields, FIELD_OTHER, (struct becalm_text){name, strlen(name)}, value);
}

static bool has_upper(struct becalm_text name)
{
    for (size_t i = 0; i < name.length; i++) {
        if (name.at[i] >= 'A' && name.at[i] <= 'Z') {
            return true;
        }
    }
    return false;
}

void h2_fields_lower(struct h2_fields *fields, char *room)
{
    for (size_t i = 0; fields->upper > 0 && i < fields->count; i++) {
        struct h2_field *field = &fields->field[i];
        if (has_upper(field->name)) {
            for (size_t at = 0; at < field->name.length; at++) {
                room[at] = to_lower(field->name.at[at]);
            }
            field->name.at = room;
            room += field->name.length;
            if (field->remembering != H2_SECRET) {
                field->remembering = (uint8_t)remembering_of(FIELD_OTHER, field->name);
            }
        }
    }
}

/* Adds a field of a head that is passed on. */
static void add_passed(struct h2_fields *fields, enum field_id id, struct becalm_text name, struct becalm_text value)
{
    if (id != FIELD_OTHER) {
        name = field_text(id);
    } else if (has_upper(name)) {
        fields->upper += name.length;
    }
    add(fields, id, name, value);
}

void h2_fields_add_packed(struct h2_fields *fields, struct becalm_text packed)
{
    struct packed_field field;
    while (packed_next(&packed, &field)) {
        if (field.name.length > 0) {
            add_passed(fields, field_find(field.name.at, field.name.length), field.name, field.value);
            if (field.secret) {
                h2_fields_hide(fields, fields->count - 1);
            }
        }
    }
}

/* Few heads have secrets: so the fields are walked a second time for them. An added field may contain a received one,
 * such as a list of addresses. */
void h2_fields_hide_draft(struct h2_fields *fields, const struct draft *draft, size_t first)
{
    const struct head *head = draft->passed;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if (!field->hop && (draft->skip >> field->id & 1) == 0) {
            if (field->secret) {
                h2_fields_hide(fields, first);
            }
            first++;
        }
    }
    for (; first < fields->count; first++) {
        enum field_id id = fields->field[first].name_id;
        if (id != FIELD_OTHER && head_has_secret(head, id)) {
            h2_fields_hide(fields, first);
        }
    }
}

void h2_fields_add_draft(struct h2_fields *fields, const struct draft *draft)
{
    const struct head *head = draft->passed;
    for (uint32_t i = 0; head != NULL && i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if (!field->hop && (draft->skip >> field->id & 1) == 0) {
            add_passed(fields, field->id, field_name(head, field), field_value(head, field));
        }
    }
    h2_fields_add_packed(fields, draft->packed);
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_field *added = &draft->added[i];
        add(fields, field_find(added->name.at, added->name.length), added->name, added->value);
    }
}
