/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_CHECK_CMD_CHECK_STORE_H
#define BECALM_CLI_CHECK_CMD_CHECK_STORE_H

/* `becalm check --store`: connects to every Redis that a policy names. */

#include <becalm/config.h>

/* Adds an error for each that does not let us do what we must, and a note for each that does. 0, or BECALM_ENOMEM. */
int check_store(const struct becalm_config *, struct becalm_diags *);

#endif
