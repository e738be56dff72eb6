/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_PACKED_H
#define BECALM_MESSAGE_PACKED_H

/* Fields that outlive their message, packed one after the other: the lengths of name and value, then both. The highest
 * bit of the name's length says that the field is secret. They can be kept in any memory, at any address, and any codec
 * can write them. The answer's phrase comes first, as a field without
 * a name. Trailers follow after a second field without a name, whose value is empty. */

#include "draft.h"

struct packed_field {
    struct becalm_text name;
    struct becalm_text value;
    bool secret; /* never indexed by HTTP/2: see field.h */
};

static inline struct packed_field packed_of(const struct head *head, const struct field *field)
{
    return (struct packed_field){field_name(head, field), field_value(head, field), field->secret};
}

void packed_put(struct text_sink *, struct packed_field);

/* The phrase and all fields of an answer. */
void packed_put_draft(struct text_sink *, const struct draft *);

/* Trailers, after phrase and fields. */
void packed_put_trailers(struct text_sink *, const struct head *);

/* Splits the trailers off and returns them: `packed` is then phrase and fields alone. */
struct becalm_text packed_split(struct becalm_text *packed);

/* For bytes from a store that other programs write, too: are they well-formed packed fields that may be written? */
bool packed_is_right(struct becalm_text);

/* Removes the fields of this name, which is in lower case; returns the length of the rest. */
size_t packed_without(char *at, size_t length, const char *name);

/* Reads the next field. False: there is none. */
bool packed_next(struct becalm_text *rest, struct packed_field *);

#endif
