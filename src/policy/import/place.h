/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_PLACE_H
#define BECALM_IMPORT_PLACE_H

/* The address of a host, as other systems write it. */

#include "source.h"

struct host_place {
    const char *address; /* as `hosts` wants it: host:port, and https:// before it with TLS */
    const char *path;    /* the text after the port; "" if there is none */
    bool tls;
    bool h2; /* the scheme says HTTP/2: h2c, grpc, grpcs */
};

/* A URL, or host[:port] without a scheme, which is http. A port that is not written is 80, with TLS 443. False: a
 * policy can't say it. */
bool place_read(struct source *, const char *text, struct host_place *out);

/* The parts of one. */
bool place_of(struct source *, const char *scheme, const char *host, uint64_t port, struct host_place *out);

#endif
