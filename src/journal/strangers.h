/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_STRANGERS_H
#define BECALM_JOURNAL_STRANGERS_H

/* Counts requests for hosts that no service names, for the first STRANGERS of these hosts since the policy was loaded.
 * Safe from any thread; only requests without a route are counted here. */

#include <becalm/http.h>

#include <pthread.h>

#define STRANGERS          32u
#define STRANGERS_NAME_MAX 128u

struct stranger {
    char host[STRANGERS_NAME_MAX]; /* in lower case, cut */
    uint64_t requests;
};

struct strangers {
    pthread_mutex_t lock;
    uint32_t count;
    bool more; /* there were others */
    struct stranger list[STRANGERS];
};

/* Was this host seen before? */
enum stranger_news { STRANGER_KNOWN, STRANGER_NEW, STRANGER_TOO_MANY };

void strangers_init(struct strangers *);
void strangers_free(struct strangers *);
enum stranger_news strangers_note(struct strangers *, struct becalm_text host);
void strangers_forget(struct strangers *); /* all of them */
/* Copies them, in the order in which they came; returns how many. */
uint32_t strangers_read(struct strangers *, struct stranger list[STRANGERS]);

#endif
