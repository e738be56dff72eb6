/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_LISTENERS_H
#define BECALM_IMPORT_LISTENERS_H

/* The addresses that the source listens at. They become `listen` if one of them has TLS: then all of them are written,
 * because Becalm listens only at addresses in the list. Without TLS nothing is written, and the user sets `listen`. */

#include "source.h"

/* The address 0.0.0.0:443, or similar; settings from several parts of the source are merged. NULL: it is not an address
 * to listen at, which was reported, or no memory. Every function below accepts NULL. */
struct listener;
struct listener *listener_at(struct source *, const char *host, uint64_t port, const struct from *);

/* The listener has TLS with this certificate. */
void listener_certificate(struct source *, struct listener *, const char *cert, const char *key, const struct from *);

/* The listener has TLS with certificates that are not in the files, which was reported: it can't be written. */
void listener_spoil(struct listener *);

/* The other keys of `listen`: tls.clientCa, tls.clientAuth, tls.minVersion. */
struct emit_target *listener_keys(struct listener *);

/* Whether it speaks these; the protocols of all its parts come together. */
void listener_speaks(struct listener *, bool h1, bool h2);

/* The listener accepts only clients that ask for known names; one part that accepts every name is enough to accept all.
 */
void listener_names(struct listener *, bool all);

/* The oldest version of TLS, as Envoy and Istio call it: TLSv1_2, TLSV1_3, TLS_AUTO. */
void listener_oldest(struct source *, struct listener *, const struct from *);

/* All of them, once everything is read. */
void listeners_write(struct source *);

/* One name that a certificate must have, and one that is asked for: here they are the same. `names` is a list of texts,
 * or of matchers with `exact`; `sni` may have no node. */
void hosts_name_put(struct source *, struct emit_target *service, const struct from *sni, const struct from *names);

#endif
