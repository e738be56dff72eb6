/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TLS_TLS_TICKETS_H
#define BECALM_TLS_TLS_TICKETS_H

/* The keys that session tickets are sealed with. All listeners, workers and reloads share one set, so that a client
 * resumes its session wherever it comes back: random keys, of which the newest seals, the two before it still open, and
 * a new one comes every hour; or those of a file, for replicas. */

#include <becalm/config.h>

#define TLS_TICKET_LIFE (2 * 3600) /* seconds for which a session can be resumed */

struct tls_tickets;
struct evp_cipher_ctx_st; /* OpenSSL's EVP_CIPHER_CTX and EVP_MAC_CTX */
struct evp_mac_ctx_st;

/* Random keys. NULL: no memory, or no randomness. */
struct tls_tickets *tls_tickets_random(void);
/* Those of a file's text: a line for each, 80 bytes in base64, as `openssl rand -base64 -A 80` or so writes it. The
 * first seals, all open. NULL: no memory, or *why says what is wrong. */
struct tls_tickets *tls_tickets_parse(const char *text, size_t length, const char **why);

struct tls_tickets *tls_tickets_use(struct tls_tickets *);
void tls_tickets_drop(struct tls_tickets *); /* any thread */

/* What OpenSSL asks for when it seals or opens a ticket: as the callback of SSL_CTX_set_tlsext_ticket_key_evp_cb(). */
int tls_tickets_key(struct tls_tickets *, unsigned char name[16], unsigned char *iv, struct evp_cipher_ctx_st *,
                    struct evp_mac_ctx_st *, bool seals);

/* The clock of the hourly change moves on, for tests. */
void tls_tickets_age(struct tls_tickets *, becalm_ns);

#endif
