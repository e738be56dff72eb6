/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ADMIN_ADMIN_INTERNAL_H
#define BECALM_ADMIN_ADMIN_INTERNAL_H

/* Shared by the files of the admin address. admin_conn.c reads a request, admin_guard.c allows or refuses it, and
 * admin_route.c finds its page; each page has a file. */

#include "admin.h"
#include "meter/metrics.h"

#include "h1/h1.h"
#include "loop/address.h"
#include "meter/buffer.h"
#include "proxy/snapshot.h"
#include "wire/wire_tls.h"

#define ADMIN_CONNS_MAX  64u
#define ADMIN_CONNS_OPEN 16u /* at least this many places are for new connections, so that a probe finds one */
#define ADMIN_HEAD_MAX   (8u * 1024)
#define ADMIN_BODY_MAX   (64u * 1024)
#define ADMIN_PAGE_MAX   (64u * 1024 * 1024)
#define ADMIN_NAME_MAX   129u /* as long as the policy lets names be, and a zero */

#define ADMIN_STREAMS_MAX 16u /* clients that follow /api/events at a time: others must poll */

struct admin_conn;
struct admin_listener;

struct admin {
    struct admin_place place;
    struct admin_listener *listener; /* NULL: none */
    char *token;                     /* NULL: no token is needed */
    struct admin_listener *next_listener;
    char *next_token;
    bool prepared;  /* next_listener and next_token are set */
    int reserve_fd; /* closed to accept a connection when no descriptors are left; -1: it is in use */
    struct timer pause;
    struct admin_conn *conns; /* the latest first */
    uint32_t conn_count;
    uint32_t stream_count;   /* of them follow /api/events */
    struct wire_room sealed; /* bytes of TLS */
};

/* ---- a request and its answer ---- */

struct admin_request {
    const struct head *head;
    struct becalm_text method;
    struct becalm_text path;
    struct becalm_text query; /* without the question mark; absent: none */
    struct becalm_text body;
    const union address_socket *local; /* the address that accepted it */
};

/* An answer with the usual values: fill `page`, and change those that differ. */
struct admin_answer {
    uint32_t status;
    const char *type;  /* Content-Type */
    const char *allow; /* 405: the value of Allow; NULL: no Allow field */
    bool ask_token;    /* 401 */
    bool is_known;     /* the request was allowed to see a page that needs a token */
    bool runs;     /* a page that runs in a browser: it may load our other files, and be cached while `etag` matches */
    bool streams;  /* has no end: admin_tell() adds to it */
    char etag[24]; /* with its quotes; "": none */
    struct buffer page;
};

/* Counts of the idempotency keys. */
void admin_store_count(struct gateway *, struct store_counts *);
/* Answers with a problem document (RFC 9457); the sentence may be NULL. */
void admin_problem(struct admin_answer *, uint32_t status, const char *sentence);

/* Is this request allowed? If not, the answer says why. `is_open`: the page needs no token. Called before the body has
 * arrived. */
bool admin_guard(const struct admin *, const struct admin_request *, bool is_open, struct admin_answer *);

/* A page: one star stands for one segment of its path. */
struct admin_route {
    const char *path;
    const char *order; /* the method of an order; NULL: a page, by GET and HEAD */
    bool is_open;      /* needs no token, because it reveals nothing */
    const char *type;
    void (*answer)(struct admin *, const struct admin_request *, struct admin_answer *);
};

/* Before the body: checks that the request is allowed and the page exists. After the body: makes the page. */
bool admin_route_check(const struct admin *, const struct admin_request *, struct admin_answer *);
void admin_route_answer(struct admin *, const struct admin_request *, struct admin_answer *);

/* The value of a parameter of the query, with its escapes undone, in `text`, which is "" if there is none. BAD: it does
 * not fit, is badly escaped or has a zero byte. */
enum admin_value { ADMIN_ABSENT, ADMIN_GIVEN, ADMIN_BAD };
enum admin_value admin_query(struct becalm_text query, const char *name, char *text, size_t size);
/* The same for a parameter that is a name. False: the parameter is BAD, and the answer has the error. */
bool admin_name(const struct admin_request *, const char *name, char text[ADMIN_NAME_MAX], struct admin_answer *);
/* Undoes %XX. False: malformed, a zero byte, or it does not fit. */
bool admin_unescape(struct becalm_text, char *text, size_t size);

/* ---- pages ---- */

void admin_state(struct admin *, const struct admin_request *, struct admin_answer *);
/* The stores that the gateway shares with others, as many as there is room for. */
#define ADMIN_STORES 8u
uint32_t admin_stores(const struct admin *, struct metrics_redis *);

/* The results of active health checks of a service's host. False: it is not checked. */
bool admin_health(const struct admin *, const char *service, const union address_socket *, struct admin_health *);

void admin_fleet(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_metrics(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_policy(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_keys(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_key_release(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_decisions(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_reload(struct admin *, const struct admin_request *, struct admin_answer *);
/* Injected faults. admin_put_faults() writes the list of those in force, as a member of a page. */
void admin_faults(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_fault_inject(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_fault_clear(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_put_faults(struct buffer *, struct gateway *, becalm_ns now);
void admin_breaker(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_history(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_sample(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_events(struct admin *, const struct admin_request *, struct admin_answer *);

/* The dashboard: its page, for clients that ask for HTML, and the files that it loads. */
bool admin_wants_html(const struct admin_request *);
void admin_dashboard(struct admin *, const struct admin_request *, struct admin_answer *);
void admin_asset(struct admin *, const struct admin_request *, struct admin_answer *);
/* One file of those that are built in, by its name. */
void admin_file(struct becalm_text name, const struct admin_request *, struct admin_answer *);

/* The latest second of every target, for /api/sample and each event. */
void admin_put_sample(struct admin *, struct buffer *);

/* The names of hosts on pages and in metrics: the address, or the DNS name while it is not resolved; unique within a
 * service. Texts of all hosts; free it. NULL: no memory. */
char **admin_host_names(const struct snapshot_service *);

/* ---- connections ---- */

/* Takes over a connected descriptor. `reserved`: the last one that the process has, so be brief. */
void admin_conn_accept(struct admin *, int fd, bool reserved);
void admin_conn_close(struct admin_conn *);
/* Bytes that have come on a connection are read before it is closed for another one: they may be the rest of a request.
 * admin_conns_make_room: all places are taken. admin_conns_give_up: descriptors are short, so it closes a connection
 * that had its answer, or has been silent for a while. False: there is none. */
void admin_conns_make_room(struct admin *);
bool admin_conns_give_up(struct admin *);
/* Closes idle connections at once, and busy ones after their answer. */
void admin_conns_quiet(struct admin *);

/* A connection is gone, and with it a descriptor. */
void admin_conn_gone(struct admin *, bool reserved);
/* Takes the descriptor of a connection that was accepted with the reserve as the new reserve; the connection ends. */
void admin_reserve_back(struct admin *, struct source *);

#endif
