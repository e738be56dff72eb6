/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_FIELDS_H
#define BECALM_H2_H2_FIELDS_H

/* The fields of a head that goes. Those beyond H2_FIELDS_MAX are left out; no head has so many. */

#include "h2_packer.h"

#include "message/draft.h"

/* The most fields of a head: those of the received head, added ones, and :status, or :method and the other pseudo
 * fields. */
#define H2_FIELDS_MAX (HEAD_FIELDS_MAX + DRAFT_ADDED_MAX + 8)

struct h2_fields {
    struct h2_field field[H2_FIELDS_MAX];
    size_t count;
    size_t bytes; /* of names and values */
    size_t upper; /* bytes of names that are not in lower case, which HTTP/2 wants */
};

static inline void h2_fields_begin(struct h2_fields *fields)
{
    fields->count = fields->bytes = fields->upper = 0;
}
/* Puts those names into lower case; there is room for `upper` bytes, which lives as long as the fields are read. */
void h2_fields_lower(struct h2_fields *, char *room);

void h2_fields_add(struct h2_fields *, const char *name, struct becalm_text value);
/* Fields that were kept; the phrase among them has no name, and HTTP/2 no phrase. */
void h2_fields_add_packed(struct h2_fields *, struct becalm_text packed);
/* The field at this place is never indexed, with any name. */
static inline void h2_fields_hide(struct h2_fields *fields, size_t at)
{
    fields->field[at].remembering = H2_SECRET;
}
/* All of a draft but its first line. */
void h2_fields_add_draft(struct h2_fields *, const struct draft *);
/* Hides the secret fields of the draft's head, which was added from `first` on. */
void h2_fields_hide_draft(struct h2_fields *, const struct draft *, size_t first);

#endif
