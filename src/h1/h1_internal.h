/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H1_H1_INTERNAL_H
#define BECALM_H1_H1_INTERNAL_H

/* What the files of the HTTP/1 codec share. */

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

/* Of equal length: is the text this word of letters, digits and hyphens, in upper or lower case? The text has no
 * control bytes. */
bool h1__is_known(const char *text, const char *known, size_t length);

bool h1__has_name(const char *bytes, const struct h1_field *, struct becalm_text name);

/* Which field this is, by a name that is known to be a token; H1_OTHER if nobody here cares. */
enum h1_name h1__name_find(const char *name, size_t length);

/* For one connection only (RFC 9110, 7.6.1), and the credentials for a proxy, which a service must not see. */
#define H1__HOP                                                                                                       \
    (H1_BIT(H1_CONNECTION) | H1_BIT(H1_KEEP_ALIVE) | H1_BIT(H1_PROXY_CONNECTION) | H1_BIT(H1_TE) |                    \
     H1_BIT(H1_UPGRADE) | H1_BIT(H1_TRANSFER_ENCODING) | H1_BIT(H1_HTTP2_SETTINGS) | H1_BIT(H1_PROXY_AUTHORIZATION) | \
     H1_BIT(H1_PROXY_AUTHENTICATE))

/* host[:port] of RFC 3986, without userinfo. An empty port is allowed, an empty host is not. */
bool h1__authority_valid(struct becalm_text);

/* Which body an answer can have (RFC 9112, 6.3). */
enum h1__body {
    H1__FRAMED,    /* as its fields say, or until the connection closes */
    H1__DESCRIBED, /* none: to HEAD and 304 the fields speak of another answer's body */
    H1__NEVER      /* none, whatever the fields say: 1xx, 204, and what opens a tunnel */
};

/* A head whose lines are known to be well formed: what its fields mean. `repeated` has bit n if the field with id n is
 * there more than once. They fill keep_alive, close, hop of what Connection names, expects_continue, upgrades,
 * websocket, framing and content_length. */
struct h1_verdict h1__settle_request(const char *bytes, struct h1_head *, uint64_t repeated);
struct h1_verdict h1__settle_answer(const char *bytes, struct h1_head *, uint64_t repeated, enum h1__body);

#endif
