/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BENCH_CALLER_H
#define BECALM_BENCH_CALLER_H

/* A client of a proxy: HTTP/1.1 on connections that are kept, as many as are needed at once. */

#include "loop.h"

#define MARK_MAX 128u /* of a becalm-retry header, with its 0 */

/* Connections to one proxy. */
struct caller {
    struct loop *loop;
    struct sockaddr_in to;
    char name[96]; /* by which gateways tell callers apart: all of them have one address */
    struct caller_conn *idle;
};

/* One request; the caller owns it until it is answered. */
struct ask {
    void (*done)(struct ask *, unsigned status, const char *mark); /* 0: no answer; "": no mark */
};

struct question {
    const char *service;   /* the path: the name of the service */
    becalm_ns deadline_at; /* BECALM_NEVER: none */
};

void caller_ask(struct caller *, struct ask *, const struct question *);

/* The value of a header in a head that ends with a 0, or NULL; its length. */
const char *header_find(const char *head, const char *name, size_t *length);

#endif
