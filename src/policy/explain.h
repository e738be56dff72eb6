/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_EXPLAIN_H
#define BECALM_POLICY_EXPLAIN_H

/* How the values of a policy are written. */

#include <becalm/config.h>

#include "schema.h"

/* A key that the chosen kind of budget or mode of breaker does not use. */
bool explain_hides(const struct becalm_rules *, const struct schema_key *);

/* A number of this key's type, and the value of a key in its struct, written as in a policy file. */
void explain_number(const struct schema_key *, uint64_t value, char *text, size_t size);
void explain_value(const struct schema_key *, const void *base, char *text, size_t size);

#endif
