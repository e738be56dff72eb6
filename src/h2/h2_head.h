/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_HEAD_H
#define BECALM_H2_H2_HEAD_H

/* A head that comes field by field, put into the form of HTTP/1 and parsed as that. The rules of HTTP/2 alone are
 * checked before (RFC 9113, 8.2 and 8.3): pseudo fields come first, once, and are those that belong there; names are in
 * lower case; there is no field for one connection but `te: trailers`; values have no control bytes and no blanks
 * around them. */

#include "h2.h"

enum h2_block_kind { H2_BLOCK_REQUEST, H2_BLOCK_ANSWER, H2_BLOCK_TRAILERS };

/* Where a pseudo field's value stands in the text; behind it comes the head itself, from `begin` on. */
struct h2_span {
    uint32_t at;
    uint32_t length;
};

struct h2_block {
    struct text_sink text;
    enum h2_block_kind kind;
    uint32_t begin; /* of the first line; 0: it is not written yet */
    uint32_t fields;
    uint32_t cookie; /* where the value of Cookie ends; 0: there is none */
    uint32_t moved;  /* bytes that made room for crumbs of a cookie */
    uint64_t bytes;  /* of all fields as they were unpacked */
    struct h2_span method;
    struct h2_span scheme;
    struct h2_span authority;
    struct h2_span path;
    struct h2_span status;
    int64_t length; /* the value of Content-Length; -1: there is none */
    bool secret;    /* a field was marked as never indexed, or one of these: */
    bool secret_method;
    bool secret_authority;
    bool secret_path;
    bool secret_status;
    bool host;         /* there is a Host */
    bool malformed;    /* the head breaks a rule of HTTP/2 and is dropped */
    const char *wrong; /* the rule of HTTP/1 that it breaks; NULL: none so far */
};

void h2_block_begin(struct h2_block *, enum h2_block_kind, const struct h2_scratch *);
void h2_block_field(struct h2_block *, struct becalm_text name, struct becalm_text value);
/* The sender has marked the latest field as never indexed (RFC 7541, 6.2.3). */
void h2_block_hide(struct h2_block *, struct becalm_text name, struct becalm_text value);
/* For a head that is dropped: the field is only counted. */
void h2_block_count(struct h2_block *, struct becalm_text name, struct becalm_text value);
/* All fields are here: is the head well formed, with all required fields? */
bool h2_block_is_whole(const struct h2_block *);
/* Is the head so large that it must be an attack? */
bool h2_block_bomb(const struct h2_block *, const struct h2_limits *);

/* All is here: parses it. `end`: no body follows. An answer's framing depends on the request's method. */
struct h1_verdict h2_block_end(struct h2_block *, const struct h2_limits *, bool end, bool to_head, struct head *);
/* Of trailers: their text. */
struct becalm_text h2_block_trailers(struct h2_block *);

#endif
