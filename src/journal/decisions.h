/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_DECISIONS_H
#define BECALM_JOURNAL_DECISIONS_H

/* The latest decisions of one worker, for /api/decisions: every call that was retried, refused or failed, and one of
 * sixty-four of all other calls. Bounded; the oldest are overwritten. The worker writes, the admin thread reads. */

#include <becalm/http.h>

#include <pthread.h>

#define DECISIONS 256u

struct decision {
    uint64_t number;   /* counts up, 0: none */
    uint64_t wall;     /* of its beginning, ns since 1970 */
    uint64_t snapshot; /* the number of the snapshot to which the record's host numbers belong */
    uint32_t status;   /* of the answer to the client */
    char service[129]; /* as long as the policy lets names be */
    char endpoint[129];
    char method[16];
    char path[128];
    char request_id[64];
    char asked[128];    /* the host that the request names, if its service has no hosts of its own; else "" */
    char fallback[129]; /* the fallback: "answer", or the service that was called instead; "": none */
    char fault[40];     /* the injected fault that hit it; "": none */
    struct becalm_record record;
};

struct decisions {
    pthread_mutex_t lock;
    uint64_t count; /* ever kept */
    uint64_t calls; /* ever seen */
    struct decision *ring;
};

int decisions_init(struct decisions *); /* 0 or BECALM_ENOMEM */
void decisions_free(struct decisions *);

/* Is this call to be kept? */
bool decisions_want(struct decisions *, const struct becalm_record *);
void decisions_keep(struct decisions *, const struct decision *);

/* Copies the latest, newest first; returns how many. */
uint32_t decisions_read(struct decisions *, struct decision *list, uint32_t size);

#endif
