/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_CALLER_H
#define BECALM_DEMO_CALLER_H

/* The client of a gateway: for the users of the demonstration, and for its services when they call another service. It
 * sends GET requests over connections that are kept and reused. */

#include "loop/address.h"
#include "loop/loop.h"

#include <becalm/http.h>

#define CALLER_WORD_MAX 128u /* of a field's value that is passed on */

struct caller_conn;

struct caller {
    struct loop *loop;
    union address_socket to;
    struct caller_conn *conns; /* all of them */
    struct caller_conn *idle;
    uint32_t count;
    uint32_t count_max;
};

struct caller_request {
    const char *service;  /* as Host */
    const char *deadline; /* x-request-deadline-ms; NULL, or empty: none */
};

struct caller_answer {
    uint32_t status;         /* 0: none came */
    struct becalm_text mark; /* becalm-retry; absent: none */
};

/* One request in progress. The caller embeds it; it must stay valid until done() or caller_cancel(). */
struct caller_call {
    struct caller_conn *conn; /* NULL: not in progress */
    void (*done)(struct caller_call *, const struct caller_answer *);
};

void caller_init(struct caller *, struct loop *, const union address_socket *to, uint32_t connections_max);
void caller_close(struct caller *); /* abandons all calls without calling done() */

/* False: there are too many connections, or no descriptors; done() will not be called. Else it will, later. */
bool caller_ask(struct caller *, struct caller_call *, const struct caller_request *);
/* Hangs up. One that is not in progress is left alone. */
void caller_cancel(struct caller_call *);

#endif
