/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_CHECK_CMD_CHECK_STORE_H
#define BECALM_CLI_CHECK_CMD_CHECK_STORE_H

/* `becalm check --store`: connects to every Redis that a policy names. */

#include <becalm/config.h>

/* Adds an error for each store that refuses a command that we need, and a note for each store that works. 0, or
 * BECALM_ENOMEM. */
int check_store(const struct becalm_config *, struct becalm_diags *);

#endif
