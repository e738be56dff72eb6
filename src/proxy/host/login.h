/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_LOGIN_H
#define BECALM_PROXY_LOGIN_H

/* Logins that belong to a connection. NTLM (MS-NTHT) and Negotiate (RFC 4559) authenticate the connection and not the
 * request: any request that is sent on it afterwards counts as the logged-in user's. So a connection to a host on which
 * one of these logins was seen, or only offered, belongs to its client from then on. */

#include "message/head.h"

#define LOGIN_ASKED  (FIELD_BIT(FIELD_AUTHORIZATION) | FIELD_BIT(FIELD_PROXY_AUTHORIZATION))   /* by a request */
#define LOGIN_WANTED (FIELD_BIT(FIELD_WWW_AUTHENTICATE) | FIELD_BIT(FIELD_PROXY_AUTHENTICATE)) /* by an answer */

/* Does one of these fields name NTLM or Negotiate, in any of its lines and challenges? */
bool login__seen(const struct head *, uint64_t names);
static inline bool login_seen(const struct head *head, uint64_t names)
{
    return (head->seen & names) != 0 && login__seen(head, names);
}

/* For tests: one value. */
bool login_named(struct becalm_text value);

#endif
