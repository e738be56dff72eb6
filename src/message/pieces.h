/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_PIECES_H
#define BECALM_MESSAGE_PIECES_H

/* Parts of a body that arrived together, and are passed on with one write. */

#include <becalm/http.h>

#include <stdbool.h>

struct head;

#define PIECES_MAX 64
struct pieces {
    struct becalm_text piece[PIECES_MAX];
    int count;
    size_t bytes; /* of all */
};

/* The next part of a body, from an exchange to its client's or host's side. */
struct stream_part {
    const struct pieces *pieces;
    const struct head *trailers; /* after the last piece; NULL: none */
    bool ended;                  /* this is the end of the body */
};

#endif
