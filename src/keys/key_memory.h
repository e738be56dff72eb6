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
    uint64_t number;   /* the number of this end among those of the process, as the store counts them */
    becalm_ns until;   /* when it expires */
    const char *where; /* "service/endpoint" of one that is held; copied */
};

/* The state at the time of a request to the store. */
struct key_stamp {
    uint64_t name;    /* the number of the name under which the store counts */
    uint64_t counted; /* the highest count that the store has returned under this name */
};

struct key_memory;

struct key_memory *key_memory_make(uint32_t most);      /* keys, the last ones. NULL: no memory */
struct key_memory *key_memory_use(struct key_memory *); /* takes NULL, as the next */
void key_memory_drop(struct key_memory *);

/* Call it before a request: fills in the name under which the store counts the ends of this process. */
struct key_stamp key_memory_stamp(struct key_memory *, unsigned char name[STORE_ID]);

/* A key has ended, and the store has counted it. If memory runs out, the key is not remembered. */
void key_memory_add(struct key_memory *, const struct key_done *, const struct key_stamp *, becalm_ns now);

/* The store has returned its count. True: this answer or an earlier one shows that the store has forgotten keys. */
bool key_memory_misses(struct key_memory *, const struct key_stamp *, uint64_t count);

/* All remembered keys must be written to the store again, under another name. Returns how many. */
uint32_t key_memory_lost(struct key_memory *, becalm_ns now);

/* The next key that must be written again, searched from *from on; *from is moved behind it. *which names the key; its
 * `where` is in `place`. False: none is left. */
bool key_memory_next(struct key_memory *, uint64_t *from, becalm_ns now, struct key_done *, uint64_t *which,
                     char place[STORE_WHERE]);

/* The store has the key again, and has counted it with this number. */
void key_memory_told(struct key_memory *, uint64_t which, const struct key_stamp *, uint64_t count);

#endif
