/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_PACKER_H
#define BECALM_H2_H2_PACKER_H

/* Packs the heads that one side of a connection sends (HPACK, RFC 7541). It keeps a table of sent fields, of which the
 * peer has a copy: a field in the table is sent as a number. The peer sets the largest size of the table. Without
 * memory for an entry the field is sent and not remembered, so nothing here fails. */

#include "loop/blocks.h"

#include <becalm/http.h>

enum h2_remembering {
    H2_REMEMBERED, /* the field enters the table */
    H2_SAID,  /* the field does not enter the table: it is new in each message, and would push out useful entries */
    H2_SECRET /* never indexed, also not by proxies after the peer (RFC 7541, 6.2.3); a field that arrives with this
                 mark keeps it */
};

struct h2_field {
    struct becalm_text name;
    struct becalm_text value; /* never NULL */
    uint8_t name_id;          /* not 0: no other name has it, and this one always; so names need not be compared */
    uint8_t remembering;      /* enum h2_remembering */
};

#define H2_PACKER_SLOTS 32u /* a power of 2 */

struct h2_packed;
struct h2_packer {
    struct blocks *blocks;                    /* NULL: malloc() */
    struct h2_packed *slot[H2_PACKER_SLOTS];  /* by name and value, the newest first */
    struct h2_packed *named[H2_PACKER_SLOTS]; /* by name: the newest one alone, so that some names are not found */
    struct h2_packed *oldest;
    struct h2_packed *newest;
    uint32_t added; /* entries, since ever */
    uint32_t bytes; /* of the table, as HPACK counts */
    uint32_t limit; /* of them */
    uint32_t least; /* that the limit was since the latest head */
    bool changed;   /* since then; the peer is to be told */
};

void h2_packer_init(struct h2_packer *, struct blocks *, uint32_t limit);
void h2_packer_free(struct h2_packer *);

/* The table may have so many bytes from the next head on. */
void h2_packer_limit(struct h2_packer *, uint32_t bytes);
/* The peer will not see the latest heads: forgets all, and tells the peer so with the next head. */
void h2_packer_forget(struct h2_packer *);

/* How many bytes a head of so many fields, whose names and values have so many bytes, may take at most. */
static inline size_t h2_pack_bound(size_t count, size_t bytes)
{
    return 2 * 6 + count * (1 + 2 * 6) + bytes; /* a number has at most 6 bytes */
}
/* Packs a head. Returns its length. */
size_t h2_pack(struct h2_packer *, const struct h2_field *, size_t count, char *to);

#endif
