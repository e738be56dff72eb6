/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_TRUST_H
#define BECALM_ORIGIN_TRUST_H

/* The peers whose deadline, attempt and mark headers count: `trust:` of the policy. An IPv4 address inside of an IPv6
 * one (::ffff:10.0.0.1, as a listener for both sees it) is that IPv4 address. Peers at Unix sockets are trusted only if
 * the list has the word unix: a peer there may be a TLS terminator that accepts every client. A peer that has shown a
 * certificate may be listed by its name. */

#include "tls/tls_names.h"

#include <becalm/base.h>

#include <sys/socket.h>

struct trust;

/* Of networks and names that the loader has checked; the list ends with NULL. Returns NULL without memory. */
struct trust *trust_make(const char *const *networks);
void trust_free(struct trust *);

bool trust_has(const struct trust *, const struct sockaddr *peer);

/* Does the list have names of certificates? Is this one of them? */
bool trust_names_any(const struct trust *);
bool trust_names(const struct trust *, enum tls_name_kind, struct becalm_text name);

#endif
