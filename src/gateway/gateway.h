/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_GATEWAY_H
#define BECALM_GATEWAY_GATEWAY_H

/* A gateway: workers, a control thread, and their shared state. No process globals: a program may run several. This
 * header has its start, its orders and its end; proxy/gateway_shared.h has the state that its threads share. */

#include "proxy/gateway_shared.h"

struct gateway_options {
    const char *path; /* of the policy; with `text` its name in diagnostics */
    const char *text; /* the policy itself, for a program that carries it; NULL: read the file */
    const struct becalm_load_options *load;
    struct handed handed;
    int log_fd;
    int access_fd;
};

/* Loads the policy and opens the listeners, but does not serve clients yet. 0; BECALM_EPARSE or BECALM_EIO with
 * diagnostics; or BECALM_ENOMEM. Without a diagnostic, errno has the reason. */
int gateway_make(struct gateway **, const struct gateway_options *, struct becalm_diags *);
/* Starts its threads. 0, or BECALM_EIO with errno. */
int gateway_start(struct gateway *);
void gateway_free(struct gateway *); /* ends everything at once, if it has not ended */

/* Safe from any thread. These functions return at once; gateway_wait() waits for the end. */
uint64_t gateway_order_reload(struct gateway *); /* the order's number */
void gateway_order_drain(struct gateway *);
void gateway_order_stop(struct gateway *);
void gateway_wait(struct gateway *);
int gateway_end_fd(const struct gateway *); /* becomes readable at the end, for programs that poll */

/* Becomes readable when a reload is over, by signal or by the admin address: every worker serves by the new policy, or
 * it was refused. gateway_reload_told() makes it unreadable again, writes how the latest went as one line, and returns
 * the number of the latest order that is answered by it. */
int gateway_reload_fd(const struct gateway *);
uint64_t gateway_reload_told(struct gateway *, char *text, size_t size);

/* Has every worker and the control thread finished a turn of its loop since the last call? For a watchdog, which calls
 * this again and again, from one thread. */
bool gateway_moves(struct gateway *);

#endif
