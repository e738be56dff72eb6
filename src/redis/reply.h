/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_REPLY_H
#define BECALM_REDIS_REPLY_H

/* What Redis says, one reply after the other: a word, an error, or a list of numbers. hiredis reads the protocol; what
 * it finds goes into a place of fixed size, so that no answer, however long it says to be, takes memory. */

#include "script.h"

#define REPLY_TEXT    128u /* of words and errors; the rest is cut */
#define REPLY_NUMBERS (SCRIPT_BUDGETS * SCRIPT_NUMBERS)
#define REPLY_BYTES   65536u /* of one reply: none that we ask for is as long */

enum reply_kind { REPLY_WORD, REPLY_ERROR, REPLY_LIST };

struct reply {
    enum reply_kind kind;
    char text[REPLY_TEXT]; /* WORD, ERROR */
    long long number[REPLY_NUMBERS];
    uint32_t count; /* LIST; what is not a number in it is -1 */
};

struct redisReader;
struct reply_reader {
    struct redisReader *reader;
    struct reply reply;
    size_t unread; /* bytes that make no whole reply yet */
};

bool reply_open(struct reply_reader *); /* false: no memory */
void reply_close(struct reply_reader *);

/* Bytes have come. False: no memory. */
bool reply_feed(struct reply_reader *, const char *, size_t);

/* The next reply, until there is none. BROKEN: what came is no answer of a Redis, or none that may come. */
enum reply_next { REPLY_NONE, REPLY_THERE, REPLY_BROKEN };
enum reply_next reply_next(struct reply_reader *);

#endif
