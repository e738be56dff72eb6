/* SPDX-License-Identifier: MIT */
#include "h2_fields.h"

#include "http/text_internal.h"
#include "message/packed.h"

#include <string.h>

static nghttp2_nv field_of(struct becalm_text name, struct becalm_text value, uint8_t flags)
{
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.at,
        .namelen = name.length,
        .value = (uint8_t *)(uintptr_t)(value.length == 0 ? "" : value.at),
        .valuelen = value.length,
        .flags = flags,
    };
}

/* Secrets never enter a table of a connection (RFC 7541, 7.1.3), and what is new in each message would only push out
 * what is not. */
#define NEVER_INDEXED                                                                                    \
    (FIELD_BIT(FIELD_AUTHORIZATION) | FIELD_BIT(FIELD_PROXY_AUTHORIZATION) | FIELD_BIT(FIELD_COOKIE) |   \
     FIELD_BIT(FIELD_IDEMPOTENCY_KEY) | FIELD_BIT(FIELD_REQUEST_ID) | FIELD_BIT(FIELD_TRACEPARENT) |     \
     FIELD_BIT(FIELD_DEADLINE_MS) | FIELD_BIT(FIELD_GRPC_TIMEOUT) | FIELD_BIT(FIELD_ENVOY_EXPECTED_MS) | \
     FIELD_BIT(FIELD_BECALM_EXPLAIN))

static uint8_t flags_of(uint32_t id)
{
    return (NEVER_INDEXED >> id & 1) != 0 ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
}

static void add(struct h2_fields *fields, struct becalm_text name, struct becalm_text value, uint8_t flags)
{
    if (fields->count < H2_FIELDS_MAX) {
        fields->field[fields->count++] = field_of(name, value, flags);
    }
}

void h2_fields_add(struct h2_fields *fields, const char *name, struct becalm_text value)
{
    add(fields, (struct becalm_text){name, strlen(name)}, value, NGHTTP2_NV_FLAG_NONE);
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
        nghttp2_nv *field = &fields->field[i];
        if (has_upper((struct becalm_text){(const char *)field->name, field->namelen})) {
            for (size_t at = 0; at < field->namelen; at++) {
                room[at] = to_lower((char)field->name[at]);
            }
            field->name = (uint8_t *)room;
            room += field->namelen;
        }
    }
}

/* A field of somebody else's head. */
static void add_passed(struct h2_fields *fields, enum field_id id, struct becalm_text name, struct becalm_text value)
{
    if (id != FIELD_OTHER) {
        add(fields, field_text(id), value, flags_of(id));
    } else {
        fields->upper += has_upper(name) ? name.length : 0;
        add(fields, name, value, NGHTTP2_NV_FLAG_NONE);
    }
}

void h2_fields_add_packed(struct h2_fields *fields, struct becalm_text packed)
{
    struct becalm_text name;
    struct becalm_text value;
    while (packed_next(&packed, &name, &value)) {
        if (name.length > 0) {
            add_passed(fields, field_find(name.at, name.length), name, value);
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
        add(fields, added->name, added->value, flags_of(field_find(added->name.at, added->name.length)));
    }
}
