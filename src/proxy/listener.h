/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_LISTENER_H
#define BECALM_PROXY_LISTENER_H

/* The addresses at which one worker accepts clients; listening.h opens their sockets. */

#include "client/client.h"

struct listener {
    struct source source; /* first */
    struct listener *next;
    struct worker *worker;
    struct timer pause; /* out of descriptors: tries again later */
    char *text;
    struct client_door door;
    bool proxy_header; /* comes before all else: see greeting.h */
};

/* The worker's listeners become those that its snapshot names. */
void listeners_update(struct worker *);
/* Accepts the connections that wait already, then closes. */
void listeners_close(struct worker *);
/* Closes at once, when the worker is freed: other workers may be gone, or were never made. */
void listeners_free(struct worker *);

#endif
