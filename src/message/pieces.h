/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_PIECES_H
#define BECALM_MESSAGE_PIECES_H

/* Parts of a body that are here at once, and are passed on in one go. */

#include <becalm/http.h>

#include <stdbool.h>

struct head;

#define PIECES_MAX 64
struct pieces {
    struct becalm_text piece[PIECES_MAX];
    int count;
    size_t bytes; /* of all */
};

/* What comes of a body now, from an exchange to one of its sides. */
struct stream_part {
    const struct pieces *pieces;
    const struct head *trailers; /* behind the last piece; NULL: none */
    bool ended;                  /* nothing follows */
};

#endif
