/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_KEY_MEMORY_H
#define BECALM_KEYS_KEY_MEMORY_H

/* The enforced keys that this process has ended in a shared store. A store that has forgotten them gets them again
 * (decision 0022). The store counts the ended keys of each process, and returns the number at each end: if the next
 * number is not higher than all before, the store has lost some. Then all remembered keys are written again, and
 * counted under another name, because a restored store may have any older count. Safe from any thread. */

#include "store.h"

/* One key that has ended. */
struct key_done {
    unsigned char id[STORE_ID];
    unsigned char guard[STORE_ID];
    unsigned char fingerprint[STORE_HASH];
    uint32_t status;   /* of its answer; 0: the outcome is unknown */
    uint64_t number;   /* which end of this process it was, as the store counts them */
    becalm_ns until;   /* the end of its time */
    const char *where; /* "service/endpoint" of one that is held; copied */
};

/* The state when the store was asked. */
struct key_stamp {
    uint64_t name;    /* which name it was */
    uint64_t counted; /* the highest number that the store has told under it */
};

struct key_memory;

struct key_memory *key_memory_make(uint32_t most);      /* keys, the last ones. NULL: no memory */
struct key_memory *key_memory_use(struct key_memory *); /* takes NULL, as the next */
void key_memory_drop(struct key_memory *);

/* Before the store is asked: by which name it counts the ends of this process. */
struct key_stamp key_memory_stamp(struct key_memory *, unsigned char name[STORE_ID]);

/* A key has ended, and the store has counted it. One for which there is no memory is not remembered. */
void key_memory_add(struct key_memory *, const struct key_done *, const struct key_stamp *, becalm_ns now);

/* The store was asked for its count. True: it has forgotten some, as this or an answer before says. */
bool key_memory_misses(struct key_memory *, const struct key_stamp *, uint64_t count);

/* All that is remembered is to be told again, under another name. Returns how many keys. */
uint32_t key_memory_lost(struct key_memory *, becalm_ns now);

/* The next key that must be written again, searched from *from on; *from is moved behind it. *which names the key; its
 * `where` is in `place`. False: none is left. */
bool key_memory_next(struct key_memory *, uint64_t *from, becalm_ns now, struct key_done *, uint64_t *which,
                     char place[STORE_WHERE]);

/* The store has the key again, and has counted it with this number. */
void key_memory_told(struct key_memory *, uint64_t which, const struct key_stamp *, uint64_t count);

#endif
