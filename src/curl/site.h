/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_SITE_H
#define BECALM_CURL_SITE_H

/* The counts of the calls from one place of a program to one target. A meter has one writer at a time. Here any thread
 * may count, so a site has several meters, and a thread takes a free one for the moment. A gauge may go up in one meter
 * and down in another: only the sum has a meaning, and only the sum is read. */

#include "meter/step.h"

#define SITE_LANES 8u

struct site_lane {
    _Alignas(64) BECALM_ATOMIC(bool) taken;
    struct meter meter;
};

struct site {
    struct site *next;
    const char *operation; /* NULL: calls without one */
    struct site_lane lane[SITE_LANES];
};

/* NULL: no memory. The operation outlives it. */
struct site *site_make(const char *operation);
void sites_free(struct site *first);

/* Takes a meter for a few additions; `hint` is best another one for each thread. Give it back at once. */
struct meter *site_take(struct site *, uint32_t hint);
void site_give(struct meter *);

#endif
