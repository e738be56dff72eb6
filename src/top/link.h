/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_LINK_H
#define BECALM_TOP_LINK_H

/* Asks a gateway's admin address for pages, one at a time and without blocking, so that the caller can wait for an
 * answer and for keys at once. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_DEFAULT    "http://127.0.0.1:9900"
#define LINK_WHY_MAX    256u
#define LINK_ANSWER_MAX (64u << 20) /* no page of a gateway is larger */

/* The gateway that is asked. */
struct link_place {
    char url[512];    /* without a slash at its end */
    char socket[108]; /* "": by TCP */
    char name[256];   /* for messages */
};

/* "http://host:port", "https://...", "host:port" or "unix:/path". False, and a sentence: it is none of these. */
bool link_place_parse(const char *admin, struct link_place *, char why[LINK_WHY_MAX]);

struct link;

enum link_state { LINK_IDLE, LINK_BUSY, LINK_DONE, LINK_FAILED };

/* NULL: no memory. Both texts must outlive it; token_file may be NULL. */
struct link *link_new(const struct link_place *, const char *token_file);
void link_free(struct link *);

/* Begins to ask for a path; an answer or question before is dropped. `service` is put behind it, escaped, unless it is
 * NULL. The token is read anew each time. */
void link_ask(struct link *, const char *path, const char *service);

/* The same with an order: a method, and a body of JSON or NULL. DONE then means that there is an answer, with any
 * link_status(). */
void link_order(struct link *, const char *method, const char *path, const char *name, const char *body);
long link_status(const struct link *);
/* Waits for the end of the request or order. */
enum link_state link_end(struct link *);

/* Waits until something happens on the link or one of the descriptors can be read, at most so long. */
void link_wait(struct link *, const int *fd, uint32_t count, int timeout_ms);

/* How far it is. DONE: link_text() is the page. FAILED: link_why() says why, without control characters. */
enum link_state link_step(struct link *);
const char *link_text(const struct link *, size_t *length);
const char *link_why(const struct link *);

#endif
