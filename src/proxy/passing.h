/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_PASSING_H
#define BECALM_PROXY_PASSING_H

/* Hosts that no service names, to which requests are passed on (`unlisted: pass`): their names and addresses. Workers
 * look names up here and never wait: the control thread resolves a new name, and resolves it again and again while it
 * is in use. */

#include "loop/address.h"

#include <becalm/http.h>
#include <becalm/ns.h>

#include <pthread.h>

#define PASSING_NAMES     1024u           /* names at once; further names must wait until others are not in use */
#define PASSING_ADDRESSES 8u              /* of one name; more are left out */
#define PASSING_UNUSED    (60 * BECALM_S) /* a name that is not used for so long is forgotten */

/* A host as a request names it: without its port, in lower case. */
struct passing_name {
    char text[ADDRESS_NAME_MAX + 1];
    uint16_t port;
    bool written; /* match.host has this very name: it may lead to any address */
};

/* Reads "Name.example:8080", "[::1]:80"; without a port it is 80. False: it is not a name or address. */
bool passing_name_read(struct becalm_text authority, struct passing_name *);

/* Is the name an address itself? Then it needs no resolver. */
bool passing_literal(const struct passing_name *, union address_socket *);

/* Is it an address that no pattern allows: loopback, link-local (as of cloud metadata), unspecified, multicast or
 * broadcast? */
bool passing_guards(const union address_socket *);

enum passing_found {
    PASSING_READY,
    PASSING_LATER,   /* the name is being resolved: ask again after WORKER_NAMES */
    PASSING_NONE,    /* the name can't be resolved */
    PASSING_GUARDED, /* all of its addresses are guarded */
    PASSING_FULL
};

struct passing_host {
    struct passing_host *next;
    struct passing_name name;
    bool asked; /* the control thread has been asked for it */
    bool ended; /* the latest question has an answer */
    bool guarded;
    uint32_t count;
    union address_socket address[PASSING_ADDRESSES];
    becalm_ns used_at;
    void *question; /* for the control thread */
};

struct passing {
    pthread_mutex_t lock; /* held for the time of a look-up */
    struct passing_host *hosts;
    uint32_t count;
    void (*ask)(void *asker); /* NULL: there is no resolver (any more) */
    void *asker;
};

void passing_init(struct passing *);
void passing_free(struct passing *);

/* Finds an address of the name. `random` chooses among its addresses. */
enum passing_found passing_find(struct passing *, const struct passing_name *, becalm_ns now, uint64_t random,
                                union address_socket *to);

/* For the control thread. Its `ask` is called for each name that is new. */
void passing_resolve_by(struct passing *, void (*ask)(void *asker), void *asker);
/* The next name that the control thread does not know yet; NULL: there is none. The pointer is valid until
 * passing_forget(). */
struct passing_host *passing_next(struct passing *);
/* The addresses of the name; a count of 0: it can't be resolved. */
void passing_answer(struct passing *, struct passing_host *, const union address_socket *list, uint32_t count);
/* A name that has not been in use for long, taken out of the table: to be freed. NULL: there is none. */
struct passing_host *passing_unused(struct passing *, becalm_ns now);

#endif
