/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_SITE_H
#define BECALM_CURL_SITE_H

/* What the calls from one place of a program to one target have counted. A meter has one writer; here any thread may
 * be it, so a site has several meters, and a thread that counts takes one that is free for the moment. Gauges go up in
 * one and down in another, and only their sum means something, which is all that is read. */

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
