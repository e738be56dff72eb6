/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_FIELD_RULES_H
#define BECALM_H2_H2_FIELD_RULES_H

/* Which bytes names and values of HTTP/2 may have (RFC 9113, 8.2 and 8.3). These functions check one field and know no
 * head. */

#include <becalm/http.h>

/* A field's name: in lower case, and a token. Pseudo fields are none. */
bool h2_is_name(struct becalm_text);
/* No control bytes but tabs, and no blanks around it. */
bool h2_is_value(struct becalm_text);

/* Values of pseudo fields; none is empty. */
bool h2_is_method(struct becalm_text);
bool h2_is_scheme(struct becalm_text);
bool h2_is_authority(struct becalm_text); /* Host, too */
bool h2_is_path(struct becalm_text);
bool h2_is_status(struct becalm_text);

/* The value of Content-Length; -1: not a number, or too large for any body. */
int64_t h2_length_of(struct becalm_text);

/* Fields that HTTP/2 has rules for. */
enum h2_field_kind {
    H2_FIELD_ANY,
    H2_FIELD_HOP, /* for one connection of HTTP/1 */
    H2_FIELD_TE,
    H2_FIELD_HOST,
    H2_FIELD_LENGTH
};
enum h2_field_kind h2_field_kind(struct becalm_text name);

#endif
