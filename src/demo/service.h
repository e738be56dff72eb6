/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_SERVICE_H
#define BECALM_DEMO_SERVICE_H

/* A small service that can be overloaded and hurt. It has a number of workers and a queue in front of them. A worker
 * takes its time, calls the next service if there is one, and answers. Like most programs it does not notice that its
 * caller has given up, and does useless work. It passes deadlines down and marks up, in both lanes alike. A dead
 * service is stuck, as dead services mostly are: it still accepts requests while its queue has room, and answers none.
 */

#include "caller.h"

#define SERVICE_FAULTS(X)                         \
    X(SERVICE_HEALTHY, "healthy", "healthy")      \
    X(SERVICE_SLOW, "slow", "five times as slow") \
    X(SERVICE_ERRORS, "errors", "failing 10 %")   \
    X(SERVICE_DEAD, "dead", "dead")               \
    X(SERVICE_FLAPPING, "flapping", "dead every other 2 s")

enum service_fault {
#define SERVICE_ENUM(id, word, sentence) id,
    SERVICE_FAULTS(SERVICE_ENUM)
#undef SERVICE_ENUM
        SERVICE_FAULT_COUNT
};

#define SERVICE_SLOW_FACTOR 5u
#define SERVICE_ERROR_PPM   100000u
#define SERVICE_FLAP        (2 * BECALM_S)

const char *service_fault_word(enum service_fault);
const char *service_fault_sentence(enum service_fault);
/* False: no fault has this name. */
bool service_fault_find(struct becalm_text word, enum service_fault *);

struct service_plan {
    const char *name;
    uint32_t workers;
    uint32_t queue_max; /* more are refused with 503 */
    becalm_ns time;     /* of one request */
    const char *next;   /* the service that it asks for each request; NULL: none */
};

struct service_work;
struct service_conn;

struct service {
    struct source source; /* first: the listener */
    const struct service_plan *plan;
    struct loop *loop;
    struct caller *caller; /* by which it asks the next one */
    union address_socket address;
    enum service_fault fault;
    struct timer flap;
    bool stuck; /* takes requests and answers none */
    struct service_conn *conns;
    struct service_work *works; /* all of them */
    struct service_work *first_waiting;
    struct service_work **last_waiting;
    uint32_t waiting;
    uint32_t busy;
    uint64_t arrivals; /* ever */
    uint64_t good;     /* answers with 200 */
    uint64_t useless;  /* of these, answers that no caller waited for any more */
};

/* Listens on a free port of loopback. 0, or BECALM_EIO with errno. */
int service_open(struct service *, const struct service_plan *, struct loop *, struct caller *);
void service_close(struct service *); /* one that was not opened, but zeroed, is left alone */
void service_hurt(struct service *, enum service_fault);
/* Requests that have arrived and are not finished, also those that no caller waits for any more. */
uint32_t service_holds(const struct service *);

#endif
