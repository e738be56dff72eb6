/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_RULES_H
#define BECALM_POLICY_RULES_H

/* The rules of `defaults`, of a service or of an endpoint: inheritance, and checks over several keys. */

#include "loader.h"

/* Rules without a parent, as those of `defaults:`: the built-in values, then those of the file, if there are any,
 * checked together. False: no memory. */
bool rules_load(struct loader *, struct becalm_rules *, const char *whose, const struct yaml_node *);

/* The policy of these rules for a caller, which is not a gateway: `limit: auto` is aimd. */
void rules_caller_policy(const struct becalm_rules *, struct becalm_policy *);

/* Rules that begin as a copy of those they inherit from. False: no memory. */
bool rules_inherit(struct loader *, struct becalm_rules *, const struct becalm_rules *from);

/* Where the keys of rules go while they are being loaded. */
struct space rules_space(struct becalm_rules *);

/* After all keys of rules were read: derives values from them, and reports keys that contradict each other. The line
 * and the column are of the mapping that has them. */
void rules_check(struct loader *, struct becalm_rules *, const char *whose, uint32_t line, uint32_t column);

#endif
