/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_LISTEN_H
#define BECALM_LOOP_LISTEN_H

/* Listening sockets: opened here, or handed over by the program that started this one. */

#include "address.h"

#define LISTEN_BACKLOG 4096

/* Makes a listening socket. -1 with errno. */
int listen_on(const union address_socket *, bool reuse_port);

/* Sockets that another program opened for this one: systemd, or the program around a gateway. */
struct handed {
    const int *fd;
    uint32_t count;
};
/* The descriptor among them that is bound to this address; -1: there is none. */
int listen_find(const struct handed *, const union address_socket *);
/* A duplicate of that descriptor; -1: there is none, or no descriptor is left. */
int listen_handed(const struct handed *, const union address_socket *);

#endif
