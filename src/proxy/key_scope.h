/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_KEY_SCOPE_H
#define BECALM_PROXY_KEY_SCOPE_H

/* The scope of an idempotency key: the requested host, the policy's keyScope, and the values of that scope in the
 * request. Requests with the same list share keys and may get each other's stored answers. Requests with another list
 * have separate keys, so that no client learns which answers are stored, or which calls are in flight, for another
 * client.
 *
 * All lines of a field count, in their order, each by itself; no line differs from an empty line. Fields that do not
 * reach the service (Connection names them) don't count. Names are compared without case, and with _ as -, because
 * services behind CGI or WSGI can't tell them apart. `cookie:NAME` parses cookies strictly; if that fails, all lines of
 * Cookie count unchanged. */

#include "message/head.h"

#define KEY_SCOPE_HOST 512u /* a longer host counts as it came; DNS has none */
#define KEY_SCOPE_MAX  (3 + 2 * HEAD_FIELDS_MAX)

/* Points into itself, the request and the policy. */
struct key_scope {
    size_t count;
    struct becalm_text text[KEY_SCOPE_MAX];
    char host[KEY_SCOPE_HOST];
};

/* `scope` is a keyScope that the policy loader accepted. */
void key_scope_read(struct key_scope *, const char *scope, struct becalm_text host, const struct head *);

#endif
