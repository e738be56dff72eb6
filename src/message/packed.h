/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_PACKED_H
#define BECALM_MESSAGE_PACKED_H

/* Fields that outlive the message that they came with, one behind the other: the lengths of name and value, then both.
 * They can be kept in any memory, at any address, and be written by any codec. The answer's phrase comes first, as a
 * field without a name. Behind a second one, which is empty, are trailers. */

#include "draft.h"

void packed_put(struct text_sink *, struct becalm_text name, struct becalm_text value);

/* The phrase and all fields of an answer. */
void packed_put_draft(struct text_sink *, const struct draft *);

/* Trailers, behind phrase and fields. */
void packed_put_trailers(struct text_sink *, const struct head *);

/* Takes them out, with what is before them: `packed` is then phrase and fields alone. */
struct becalm_text packed_split(struct becalm_text *packed);

/* Of bytes that another program has kept: are they packed fields, each of which may be written? */
bool packed_is_right(struct becalm_text);

/* Takes out the fields of this name, which is in small letters; returns how long the rest is. */
size_t packed_without(char *at, size_t length, const char *name);

/* Takes the next one. False: there is none. */
bool packed_next(struct becalm_text *rest, struct becalm_text *name, struct becalm_text *value);

#endif
