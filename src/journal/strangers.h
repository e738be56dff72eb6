/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_STRANGERS_H
#define BECALM_JOURNAL_STRANGERS_H

/* Hosts that requests asked for and that no service has: how often, for the first STRANGERS of them since the policy
 * was loaded. Any thread; only requests that are refused come here. */

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

/* What is new about it. */
enum stranger_news { STRANGER_KNOWN, STRANGER_NEW, STRANGER_TOO_MANY };

void strangers_init(struct strangers *);
void strangers_free(struct strangers *);
enum stranger_news strangers_note(struct strangers *, struct becalm_text host);
void strangers_forget(struct strangers *); /* all of them */
/* Copies them, in the order in which they came; returns how many. */
uint32_t strangers_read(struct strangers *, struct stranger list[STRANGERS]);

#endif
