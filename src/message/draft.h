/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_DRAFT_H
#define BECALM_MESSAGE_DRAFT_H

/* A head that is going to be written, independent of the protocol: the fields of another head that are passed on, and
 * fields that are added. A codec writes it: h1_put_request() and h1_put_answer() for HTTP/1. A draft only has pointers
 * and owns nothing. */

#include "head.h"
#include "text_sink.h"

#define DRAFT_ADDED_MAX 16u

/* The name is in lower case, and must outlive the draft. */
struct draft_field {
    struct becalm_text name;
    struct becalm_text value;
};

struct draft {
    struct becalm_text method; /* requests */
    struct becalm_text path;   /* with its query */
    struct becalm_text authority;
    uint32_t status;           /* answers */
    struct becalm_text phrase; /* HTTP/1 alone knows it; absent: the registered one */
    const struct head *passed; /* all of its fields that are not hop and not in `skip`; NULL: none */
    uint64_t skip;
    struct becalm_text packed;  /* or these: see packed.h */
    struct becalm_text upgrade; /* the protocol that is asked for, or switched to; absent: none */
    enum body_framing framing;  /* BODY_OPEN: the codec marks the end in its own way; a length is among the fields */
    bool te_trailers;           /* of a request: trailers are welcome */
    bool close;                 /* no other message follows on this connection */
    uint32_t count;
    struct becalm_text lines[3]; /* more fields, as HTTP/1 writes them, for requests by it alone; absent: none */
    struct text_sink values;     /* room for values that are made here */

    /* From here on nothing is zeroed: it is filled before it is read. */
    struct draft_field added[DRAFT_ADDED_MAX];
};

static inline void draft_begin(struct draft *draft, char *room, size_t size)
{
    memset(draft, 0, offsetof(struct draft, added));
    draft->values = (struct text_sink){.at = room, .size = size};
}

static inline void draft_add(struct draft *draft, const char *name, struct becalm_text value)
{
    BECALM_ASSERT(draft->count < DRAFT_ADDED_MAX);
    draft->added[draft->count++] = (struct draft_field){{name, strlen(name)}, value};
}

static inline void draft_add_chars(struct draft *draft, const char *name, const char *value)
{
    draft_add(draft, name, (struct becalm_text){value, strlen(value)});
}

void draft_add_number(struct draft *, const char *name, uint64_t number);

/* A value that was made in `values`: all that stands there from this length on. */
static inline void draft_add_made(struct draft *draft, const char *name, size_t from)
{
    draft_add(draft, name, (struct becalm_text){draft->values.at + from, draft->values.length - from});
}

#endif
