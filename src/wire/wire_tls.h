/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WIRE_WIRE_TLS_H
#define BECALM_WIRE_WIRE_TLS_H

/* TLS below a wire. A wire with TLS reads and writes like a plain one. The encrypted bytes are in buffers that all
 * wires of a thread share, so one read and one write of the socket serve many records, and an idle connection has no
 * buffer of its own. */

#include "tls/tls_context.h"
#include "tls/tls_count.h"
#include "tls/tls_names.h"
#include "wire.h"

/* A thread's buffers for encrypted bytes. Zero all but `counts`: the buffers are made when the first wire needs them.
 */
struct wire_room {
    char *in;
    char *out;
    size_t out_length;
    char *plain;        /* small pieces are joined here before they are encrypted */
    struct bio_st *bio; /* OpenSSL reads and writes through it, for the wire of the present operation */
    struct tls_counts *counts;
};
void wire_room_free(struct wire_room *);

/* Shared by the connections to one host; belongs to one thread. */
struct wire_host {
    uint32_t users;
    struct tls_context *context;
    char *name;                     /* the host's certificate must have this name */
    struct ssl_session_st *session; /* the latest, to be offered again; NULL: none */
};
struct wire_host *wire_host_make(struct tls_context *, const char *name); /* NULL: no memory */
void wire_host_drop(struct wire_host *);

/* Turns a connected wire into one with TLS, before the first byte: we are the server, or the client. False: no memory.
 */
bool wire_tls_accept(struct wire *, struct tls_context *, struct wire_room *);
enum wire_offer { WIRE_OFFERS_H1, WIRE_OFFERS_H2, WIRE_OFFERS_BOTH }; /* the protocols that we offer by ALPN */
bool wire_tls_connect(struct wire *, struct wire_host *, enum wire_offer, struct wire_room *);

/* Continues the handshake, as far as the socket allows. As a server, wire_read() does this, too. */
enum wire_shake {
    WIRE_SHAKEN,
    WIRE_SHAKING,
    WIRE_UNSHAKEN, /* the handshake failed: one side refused */
    WIRE_LOST      /* the connection broke without an alert */
};
enum wire_shake wire_shake(struct wire *);

/* The handshake took too long, and is given up. */
void wire_shake_late(struct wire *);

/* How often the handshake has gone on: each time we send an answer in it, and at its end. A peer has to send a whole
 * flight for each, not just some bytes. 0 without TLS. */
uint32_t wire_shake_steps(const struct wire *);

/* Why the handshake failed, as a sentence without a full stop; never NULL. */
const char *wire_shake_why(const struct wire *);

/* Has the handshake chosen HTTP/2, by ALPN? False while it is in progress. */
bool wire_chose_h2(const struct wire *);

/* Calls `each` for the names of the peer's certificate, if it has shown one that was verified: its alternative names,
 * or its common name if it has none. See tls_names_find(). */
bool wire_peer_names(const struct wire *, tls_name_fits *each, void *data);

/* A number that the owner of a wire with TLS may keep with it; 0 at first. */
uint64_t *wire_word(const struct wire *);

#endif
