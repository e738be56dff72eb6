/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TLS_TLS_TICKETS_H
#define BECALM_TLS_TLS_TICKETS_H

/* The keys that encrypt session tickets. All listeners, workers and reloads share one set, so that a client can resume
 * its session at any of them. Either random keys: the newest encrypts, it and the two before it decrypt, and there is a
 * new one every hour. Or the keys of a file, for replicas. */

#include <becalm/config.h>

#define TLS_TICKET_LIFE (2 * 3600) /* seconds for which a session can be resumed */

struct tls_tickets;
struct evp_cipher_ctx_st; /* OpenSSL's EVP_CIPHER_CTX and EVP_MAC_CTX */
struct evp_mac_ctx_st;

/* Random keys. NULL: no memory, or no randomness. */
struct tls_tickets *tls_tickets_random(void);
/* The keys of a file's text: one per line, 80 bytes in base64, as `openssl rand -base64 -A 80` writes it. The first
 * encrypts, all decrypt. NULL: no memory, or *why has the error. */
struct tls_tickets *tls_tickets_parse(const char *text, size_t length, const char **why);

struct tls_tickets *tls_tickets_use(struct tls_tickets *);
void tls_tickets_drop(struct tls_tickets *); /* any thread */

/* OpenSSL calls this when it encrypts or decrypts a ticket: the callback of SSL_CTX_set_tlsext_ticket_key_evp_cb(). */
int tls_tickets_key(struct tls_tickets *, unsigned char name[16], unsigned char *iv, struct evp_cipher_ctx_st *,
                    struct evp_mac_ctx_st *, bool seals);

/* The clock of the hourly change moves on, for tests. */
void tls_tickets_age(struct tls_tickets *, becalm_ns);

#endif
