/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_REPLY_H
#define BECALM_REDIS_REPLY_H

/* Reads the replies of Redis, one after the other: a word, an error, or a list of numbers and texts. hiredis parses the
 * protocol. The values are kept in a struct of fixed size and a buffer of bounded size, so that no reply can make us
 * allocate memory by claiming a large size. */

#include "loop/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLY_TEXT  128u /* of words and errors; the rest is cut */
#define REPLY_ITEMS 224u
#define REPLY_BYTES 65536u /* of one reply, unless its reader is opened for more */

enum reply_kind { REPLY_WORD, REPLY_ERROR, REPLY_NUMBER, REPLY_NOTHING, REPLY_LIST };

struct reply_item {
    enum reply_kind kind; /* a list in a list is NOTHING */
    long long number;     /* NUMBER; else -1 */
    const char *text;     /* WORD, ERROR; not ended by a zero. Else NULL */
    size_t length;
};

struct reply {
    enum reply_kind kind;
    char text[REPLY_TEXT];               /* WORD, ERROR: as much as fits, with a zero */
    struct reply_item item[REPLY_ITEMS]; /* LIST: all of them; else the first is the whole reply */
    uint32_t count;
};

struct redisReader;
struct reply_reader {
    struct redisReader *reader;
    struct reply reply;
    struct bytes texts; /* of the reply's items */
    size_t unread;      /* bytes that make no whole reply yet */
    size_t most;
    bool no_memory;
};

bool reply_open(struct reply_reader *, size_t most); /* 0: REPLY_BYTES. False: no memory */
void reply_close(struct reply_reader *);

/* Bytes have come. False: no memory. */
bool reply_feed(struct reply_reader *, const char *, size_t);

/* The next reply, until there is none. BROKEN: the bytes are no Redis reply, or a reply that is not allowed here. */
enum reply_next { REPLY_NONE, REPLY_THERE, REPLY_BROKEN };
enum reply_next reply_next(struct reply_reader *);

/* Is this text equal to the word? */
bool reply_says(const struct reply_item *, const char *);

#endif
