/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H1_H1_INTERNAL_H
#define BECALM_H1_H1_INTERNAL_H

/* Shared by the files of the HTTP/1 codec. */

#include "h1.h"

#include "http/text_internal.h"

static inline struct h1_verdict h1__ok(void)
{
    return (struct h1_verdict){.kind = H1_OK};
}

static inline struct h1_verdict h1__bad(uint32_t status, const char *what)
{
    return (struct h1_verdict){.kind = H1_BAD, .status = status, .what = what};
}

/* host[:port] of RFC 3986, without userinfo. An empty port is allowed, an empty host is not. */
bool h1__authority_valid(struct becalm_text);

/* Which body an answer can have (RFC 9112, 6.3). */
enum h1__body {
    H1__FRAMED,    /* as its fields say, or until the connection closes */
    H1__DESCRIBED, /* none: to HEAD and 304 the fields speak of another answer's body */
    H1__NEVER      /* no body, regardless of the fields: 1xx, 204, and an answer that opens a tunnel */
};

/* A head whose lines are known to be well formed: what its fields mean. `repeated` has bit n if the field with id n is
 * there more than once. They fill keep_alive, close, hop of the fields that Connection names, expects_continue,
 * upgrades, websocket, framing and content_length. */
struct h1_verdict h1__settle_request(struct head *, uint64_t repeated);
struct h1_verdict h1__settle_answer(struct head *, uint64_t repeated, enum h1__body);

#endif
