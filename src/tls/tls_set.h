/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TLS_TLS_SET_H
#define BECALM_TLS_TLS_SET_H

/* All contexts of one policy. */

#include "tls_context.h"
#include "tls_count.h"

struct tls_set {
    BECALM_ATOMIC(uint32_t) users;
    uint32_t listener_count;
    uint32_t service_count;
    struct tls_context **listener; /* in the policy's order; NULL: without TLS */
    struct tls_context **service;
    struct tls_context *admin;
};

/* The input for a new set. */
struct tls_set_plan {
    const struct becalm_config *config;
    const struct tls_set *before; /* the set that is replaced; NULL: none */
    struct tls_tickets *tickets;  /* NULL: the set is only for a check */
    bool starts;                  /* see struct tls_plan */
};

/* Loads the files of a policy. 0; BECALM_EPARSE with diagnostics that name the policy's lines; or BECALM_ENOMEM.
 * Warnings do not fail. */
int tls_set_make(struct tls_set **, const struct tls_set_plan *, struct becalm_diags *);
struct tls_set *tls_set_use(struct tls_set *);
void tls_set_drop(struct tls_set *); /* any thread */
/* Do both have the same contexts? Then nothing has changed. */
bool tls_set_equal(const struct tls_set *, const struct tls_set *);

/* The context of the listener with this address; NULL: without TLS. */
struct tls_context *tls_set_of_address(const struct tls_set *, const struct becalm_settings *, const char *address);

/* Is there TLS on that side? The admin address is on the clients'. */
bool tls_set_has(const struct tls_set *, enum tls_side);

/* The certificates in force, each file once, in the policy's order. Returns how many there are, and fills at most
 * `size`. */
uint32_t tls_set_certificates(const struct tls_set *, struct tls_expiry *, uint32_t size);

/* Calls `each` for every file that the policy's TLS names. */
void tls_set_files(const struct becalm_config *, void (*each)(const struct becalm_file *, void *data), void *data);

#endif
