/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_ARENA_H
#define BECALM_POLICY_ARENA_H

/* Memory of a config: blocks that are freed together. */

#include <stddef.h>

struct arena {
    struct arena_block *blocks;
};

void *arena_take(struct arena *, size_t bytes); /* zeroed; NULL: no memory */
char *arena_text(struct arena *, const char *text);
void arena_free(struct arena *);

#endif
