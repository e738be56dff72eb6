/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_LISTENER_H
#define BECALM_PROXY_LISTENER_H

/* Sockets that clients come in by. Every worker has one of its own per TCP address (SO_REUSEPORT); Unix sockets and
 * those that systemd hands over are shared. Opened by the gateway before a snapshot that names them is published, so
 * that an address in use is an error of the reload and not a surprise. */

#include "loop/address.h"
#include "loop/loop.h"

struct worker;
struct gateway;

/* One address, and a descriptor for every worker. */
struct listening {
    struct listening *next;
    char *text; /* as in the policy */
    union address_socket address;
    bool handed_over; /* by systemd, whose file it is */
    int *fd;          /* by worker; -1: that worker has taken it */
};

/* One worker's. */
struct listener {
    struct source source; /* first */
    struct listener *next;
    struct worker *worker;
    struct timer pause; /* out of descriptors: looks again later */
    char *text;
    uint16_t door;           /* its number, see snapshot_door_of() */
    bool h2;                 /* spoken here, too */
    bool proxy_header;       /* comes before all else: see greeting.h */
    struct tls_context *tls; /* of the worker's snapshot; NULL: plain */
};

/* Opens what the settings name and is not open yet. 0, or BECALM_EIO with a sentence in `why`, and
 * which of them it is about. */
int listening_open(struct gateway *, const char *const *addresses, uint32_t *which, char *why, size_t size);
void listening_free(struct gateway *);
/* Closes what was opened for a snapshot that was not published in the end. */
void listening_forget(struct gateway *, const char *const *addresses);

/* Makes a listening socket. -1 with errno. Also for the admin address. */
int listen_on(const union address_socket *, bool reuse_port);

/* Sockets that somebody else opened for us: systemd, or the program around a gateway. */
struct handed {
    const int *fd;
    uint32_t count;
};
/* A copy of the one that is bound to this address; -1: there is none, or no descriptor for it. */
int listen_handed(const struct handed *, const union address_socket *);

/* The worker's listeners become those that its snapshot names. */
void listeners_update(struct worker *);
/* Takes in who is waiting already, then closes. */
void listeners_close(struct worker *);

#endif
