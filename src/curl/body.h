/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_BODY_H
#define BECALM_CURL_BODY_H

/* The body of a request that has to be sent again. One in memory libcurl sends again by itself; one from a callback or
 * a FILE has to go back to where it stood when the call began, which may fail. */

#include "handle.h"

#include <sys/types.h>

struct body {
    off_t from; /* where a FILE stood when the call began; -1: it can't tell */
    bool read;  /* an attempt may have read some of it */
};

/* Does libcurl read it with a callback, or from a FILE? */
bool body_is_read(const struct handle_options *);

/* The call begins. False: the body can't be sent a second time. */
bool body_begin(struct body *, const struct handle_options *);

/* Back to its beginning, as libcurl itself would go there; with a form it does so itself. */
bool body_rewind(const struct body *, const struct handle_options *);

#endif
