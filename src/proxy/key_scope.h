/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_KEY_SCOPE_H
#define BECALM_PROXY_KEY_SCOPE_H

/* Whose an idempotency key is: the host that was asked, the policy's keyScope, and what the request has of that. Two
 * requests with the same list may see each other's answers; everybody else has keys of their own, so that nobody is
 * told what is stored, or being done, for another.
 *
 * All lines of a field count, in their order, each by itself; none is not the same as an empty one. Fields that do not
 * reach the service (Connection names them) don't count. Names are compared without case, and with _ as -, because
 * services behind a gateway interface can't tell them apart. `cookie:NAME` reads cookies strictly, and where that fails
 * all lines of Cookie count as they are. */

#include "message/head.h"

#define KEY_SCOPE_HOST 512u /* a longer host counts as it came; DNS has none */
#define KEY_SCOPE_MAX  (3 + 2 * HEAD_FIELDS_MAX)

/* Points into itself, the request and the policy. */
struct key_scope {
    size_t count;
    struct becalm_text text[KEY_SCOPE_MAX];
    char host[KEY_SCOPE_HOST];
};

/* `scope` is a keyScope that the loader took. */
void key_scope_read(struct key_scope *, const char *scope, struct becalm_text host, const struct head *);

#endif
