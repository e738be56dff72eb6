/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TLS_TLS_CONTEXT_H
#define BECALM_TLS_TLS_CONTEXT_H

/* Certificates, keys and rules of a listener, or of calls to a service's hosts: made of files off the data path,
 * immutable, shared by threads. Connections keep theirs by reference, so a reload closes none. */

#include "tls_tickets.h"

#include <becalm/config.h>

/* OpenSSL's SSL, SSL_CTX and SSL_SESSION; its headers are for this folder and wire_tls.c. */
struct ssl_st;
struct ssl_ctx_st;
struct ssl_session_st;

/* When a certificate ends. */
struct tls_expiry {
    const char *file;
    int64_t at; /* seconds since 1970 */
};

struct tls_context {
    BECALM_ATOMIC(uint32_t) users;
    unsigned char mark[32]; /* hash of the settings and the files: equal hashes are the same context */
    bool server;
    bool strict_sni;             /* a server: a client that asks for no certificate's name is refused */
    bool verifies;               /* the peer's certificate */
    uint32_t count;              /* of certificates; the first is for names that none has */
    struct ssl_ctx_st **ssl_ctx; /* one for each certificate; of calls to hosts: one */
    struct tls_expiry *expiry;
    uint32_t expiry_count;
    struct tls_name *name; /* of all certificates */
    uint32_t name_count;
    struct tls_tickets *tickets; /* of a listener */
    unsigned char alpn[16];      /* the protocols, in the order of preference */
    unsigned alpn_length;
};

/* The input for new contexts: the policy's name for diagnostics, and the old contexts, which are reused if nothing has
 * changed. */
struct tls_plan {
    const char *policy;
    struct tls_context *before;  /* NULL: none */
    struct tls_tickets *tickets; /* where a listener names no file */
    bool starts;                 /* there is nothing else to serve by, so an expired certificate is only a warning */
    struct becalm_diags *diags;
};

/* NULL: no memory, or *diags has errors. A certificate that has expired is an error, unless it is in force already:
 * then it is a warning, so that it does not stand in the way of other changes. */
struct tls_context *tls_context_server(const struct tls_plan *, const struct becalm_listener *);
struct tls_context *tls_context_client(const struct tls_plan *, const struct becalm_service *);
struct tls_context *tls_context_use(struct tls_context *);
void tls_context_drop(struct tls_context *); /* any thread */

/* The SSL_get_app_data() of every connection to a host: the receiver of a session that can be resumed, which owns the
 * session from then on. */
struct tls_link {
    void (*session)(struct tls_link *, struct ssl_session_st *);
};

/* A connection of it. NULL: no memory. */
struct ssl_st *tls_context_accept(struct tls_context *);
/* `name` is the name that the host's certificate must have, a DNS name or an IP address. NULL: out of memory, or the
 * name is invalid. */
struct ssl_st *tls_context_connect(struct tls_context *, const char *name);

#endif
