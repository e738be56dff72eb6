/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_LISTENING_H
#define BECALM_PROXY_LISTENING_H

/* The sockets of a gateway that clients come in by. Every worker has one of its own per TCP address (SO_REUSEPORT);
 * Unix sockets and those that systemd hands over are shared. Opened by the gateway before a snapshot that names them is
 * published, so that an address in use is an error of the reload and not a surprise. */

#include "gateway_shared.h"

/* One address, and a descriptor for every worker. */
struct listening {
    struct listening *next;
    char *text; /* as in the policy */
    union address_socket address;
    bool handed_over; /* by systemd, whose file it is */
    int *fd;          /* by worker; -1: that worker has taken it */
};

/* Opens what the settings name and is not open yet. 0, or BECALM_EIO with a sentence in `why`, and
 * which of them it is about. */
int listening_open(struct gateway *, const char *const *addresses, uint32_t *which, char *why, size_t size);
/* Why there can't be listened on an address is told where it stands in its file, or at the top of the policy if nobody
 * has written it. */
struct listening_complaint {
    const char *code;
    const char *why;
};
void listening_complain(struct becalm_diags *, const char *policy, const struct becalm_listener *,
                        const struct listening_complaint *);
void listening_free(struct gateway *);
/* Closes what was opened for a snapshot that was not published in the end. */
void listening_forget(struct gateway *, const char *const *addresses);

/* The one with this address; NULL: there is none. With the gateway's lock. */
struct listening *listening_find(struct gateway *, const char *text);
/* Is this address among them? */
bool listening_names(const char *const *addresses, const char *text);

#endif
