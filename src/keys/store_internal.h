/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_STORE_INTERNAL_H
#define BECALM_KEYS_STORE_INTERNAL_H

/* Shared by the kinds of stores. */

#include "store.h"

struct store_answer *store_answer_make(const struct store_result *); /* NULL: no memory */
uint64_t store_answer_bytes(const struct store_answer *);            /* of NULL 0 */

#endif
