/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_LISTENING_H
#define BECALM_PROXY_LISTENING_H

/* The listening sockets of a gateway. Every worker has its own per TCP address (SO_REUSEPORT); Unix sockets and sockets
 * from systemd are shared. The gateway opens them before it publishes a snapshot that names them, so that an address in
 * use is an error of the reload. */

#include "gateway_shared.h"

/* One address, and a descriptor for every worker. */
struct listening {
    struct listening *next;
    char *text; /* as in the policy */
    union address_socket address;
    bool handed_over; /* by systemd, which owns the socket's file */
    int *fd;          /* by worker; -1: that worker has taken it */
};

/* Opens the addresses that are not open yet. 0, or BECALM_EIO with a sentence in `why`, and the index of the address in
 * *which. */
int listening_open(struct gateway *, const char *const *addresses, uint32_t *which, char *why, size_t size);
/* The error of an address that can't be opened is reported at its place in the file, or at the top of the policy if the
 * address is a default. */
struct listening_complaint {
    const char *code;
    const char *why;
};
void listening_complain(struct becalm_diags *, const char *policy, const struct becalm_listener *,
                        const struct listening_complaint *);
void listening_free(struct gateway *);
/* Closes the sockets that were opened for a snapshot that was not published. */
void listening_forget(struct gateway *, const char *const *addresses);

/* The one with this address; NULL: there is none. With the gateway's lock. */
struct listening *listening_find(struct gateway *, const char *text);
/* Is this address among them? */
bool listening_names(const char *const *addresses, const char *text);

#endif
